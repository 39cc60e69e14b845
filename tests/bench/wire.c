/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire-100g: what one load balancer core carries from end to end, over two memif ports, with a
 * million flows and real packets. This is the parent: options, both children, what is measured and
 * when. See README.md.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"
#include "wire_report.h"

/* From the first request to the first that counts. */
#define SETTLE_MS 100

struct child {
	const char *name;
	pid_t pid;
	int socket;
};

struct bench {
	struct wire_options o;
	struct child lb, gen;
	struct report report;
	uint64_t lost;
};

/* --- talking ------------------------------------------------------------------------------------
 */

static const char *role = "wire-100g";
/* The parent's; none in a child. */
static pid_t children[2];

/* Whoever comes next wants the memory that they have. */
static void kill_children(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (children[i] == 0)
			continue;
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
}

void wire_die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "%s: ", role);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	kill_children();
	_exit(EXIT_FAILURE);
}

void wire_take_order(int socket, struct wire_order *order)
{
	if (recv(socket, order, sizeof(*order), 0) != sizeof(*order))
		order->kind = WIRE_END;
}

void wire_answer(int socket, const struct wire_answer *answer)
{
	if (send(socket, answer, sizeof(*answer), MSG_NOSIGNAL) != sizeof(*answer))
		wire_die("nobody listens");
}

uint64_t wire_cpu_ns(int clock)
{
	struct timespec t = {0};

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void take_answer(const struct child *c, struct wire_answer *a)
{
	if (recv(c->socket, a, sizeof(*a), 0) != sizeof(*a))
		wire_die("%s is gone; its reason is above", c->name);
}

static void order(const struct child *c, const struct wire_order *what, struct wire_answer *a)
{
	if (send(c->socket, what, sizeof(*what), MSG_NOSIGNAL) != sizeof(*what))
		wire_die("%s is gone; its reason is above", c->name);
	take_answer(c, a);
}

/* --- children ------------------------------------------------------------------------------------
 */

static void start_child(struct child *c, const char *name,
			void (*child_main)(const struct wire_options *o, int socket),
			const struct wire_options *o, struct wire_answer *ready)
{
	int pair[2];

	c->name = name;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		wire_die("socketpair: %s", strerror(errno));
	fflush(stdout);
	c->pid = fork();
	if (c->pid < 0)
		wire_die("fork: %s", strerror(errno));
	if (c->pid == 0) {
		role = name;
		memset(children, 0, sizeof(children));
		/* Not left over when the parent is interrupted. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		child_main(o, pair[1]);
		_exit(EXIT_SUCCESS);
	}
	children[children[0] != 0] = c->pid;
	close(pair[1]);
	c->socket = pair[0];
	take_answer(c, ready);
}

static void end_child(const struct child *c)
{
	static const struct wire_order end = {.kind = WIRE_END};
	struct wire_answer a;
	int status;

	order(c, &end, &a);
	if (waitpid(c->pid, &status, 0) != c->pid || status != 0)
		wire_die("%s ended badly", c->name);
}

static void end_both(struct bench *b)
{
	static const struct wire_order stop = {.kind = WIRE_STOP};
	struct wire_answer a;

	order(&b->gen, &stop, &a);
	order(&b->lb, &stop, &a);
	memset(children, 0, sizeof(children));
	end_child(&b->lb);
	end_child(&b->gen);
}

static void start_both(struct bench *b)
{
	struct wire_order join = {.kind = WIRE_JOIN};
	struct wire_answer a;

	start_child(&b->gen, "generator", wire_gen_main, &b->o, &a);
	start_child(&b->lb, "load balancer", wire_lb_main, &b->o, &a);
	join.address = a.address;
	order(&b->gen, &join, &a);
	order(&b->lb, &join, &a);
}

/* --- measuring -----------------------------------------------------------------------------------
 */

static void snapshot(const struct bench *b, struct wire_sample *s)
{
	static const struct wire_order what = {.kind = WIRE_SNAPSHOT};

	order(&b->gen, &what, &s->gen);
	order(&b->lb, &what, &s->lb);
	if (s->lb.lb[0].unwanted > 0)
		wire_die("the load balancer counts what must not happen:%s", s->lb.unwanted);
}

static void begin(const struct bench *b, const struct wire_load *load)
{
	struct wire_order start = {.kind = WIRE_START, .load = *load};
	struct wire_answer a;

	order(&b->lb, &start, &a);
	order(&b->gen, &start, &a);
}

/* Whatever was sent must have arrived, once it had the time. */
static void finish(struct bench *b)
{
	static const struct wire_order drain = {.kind = WIRE_DRAIN};
	struct wire_sample s;
	struct wire_answer a;
	uint64_t lost = 0;

	order(&b->gen, &drain, &a);
	snapshot(b, &s);
	for (unsigned int q = 0; q < b->o.lcores; q++)
		lost += s.gen.gen.queue[q].sent - s.gen.gen.queue[q].answered;
	b->lost += lost;
	if (a.status < 0)
		wire_die("%lu of the requests were not answered", lost);
}

static void load_all(struct bench *b, const struct wire_load *load)
{
	begin(b, load);
	finish(b);
}

/* Every flow comes into being, and is established: its client speaks again after an answer. */
static void warm_up(struct bench *b)
{
	struct wire_load all = {
		.frame = 1024,
		.in_turn = true,
		.limit = 2ull * ((b->o.flows + b->o.lcores - 1) / b->o.lcores),
	};

	load_all(b, &all);
}

static void measure_span(struct bench *b, const struct wire_load *load, struct wire_sample *before,
			 struct wire_sample *after)
{
	begin(b, load);
	poll(NULL, 0, SETTLE_MS);
	snapshot(b, before);
	poll(NULL, 0, b->o.measure_ms);
	snapshot(b, after);
	finish(b);
}

/* A span in which something else had a thread's CPU is measured again, some times. */
static void measure(struct bench *b, const struct wire_load *load)
{
	struct wire_sample before, after;
	unsigned int disturbed = 0;

	measure_span(b, load, &before, &after);
	while (disturbed < b->o.tries - 1 && wire_report_disturbed(&b->o, &before, &after)) {
		disturbed++;
		measure_span(b, load, &before, &after);
	}
	report_add(&b->report, disturbed, "disturbed_spans");
	wire_report_add(&b->report, &b->o, load, &before, &after);
}

static void measure_all(struct bench *b)
{
	for (unsigned int run = 0; run < b->o.runs; run++) {
		for (unsigned int i = 0; i < WIRE_SCENARIOS; i++)
			if (wire_report_wants(&b->o, i))
				measure(b, &wire_scenarios[i].load);
		report_add(&b->report, b->lost, "lost");
	}
}

int main(int argc, char **argv)
{
	static struct bench b;
	int ret = 0;

	if (!wire_options_parse(argc, argv, &b.o))
		return 2;
	if (b.o.print_pages)
		return printf("%u\n", wire_options_pages(&b.o)) < 0;
	start_both(&b);
	warm_up(&b);
	measure_all(&b);
	end_both(&b);
	wire_report_print(&b.report, &b.o);
	if (b.o.json != NULL)
		ret = wire_report_write(&b.report, &b.o);
	if (ret < 0)
		fprintf(stderr, "wire-100g: cannot write %s\n", b.o.json);
	report_fini(&b.report);
	return ret < 0;
}
