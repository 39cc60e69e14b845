/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <sys/socket.h>

#include "wire/wire_parent.h"

/* --- talking ------------------------------------------------------------------------------------
 */

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

static void take_answer(const struct wire_child *c, struct wire_answer *a)
{
	if (recv(c->socket, a, sizeof(*a), 0) != sizeof(*a))
		wire_die("%s is gone; its reason is above", c->name);
}

static bool ask(const struct wire_child *c, const struct wire_order *what, struct wire_answer *a)
{
	return send(c->socket, what, sizeof(*what), MSG_NOSIGNAL) == sizeof(*what) &&
	       recv(c->socket, a, sizeof(*a), 0) == sizeof(*a);
}

/* The load balancer may know why the generator got an unexpected packet. */
static void order(const struct wire_parent *p, const struct wire_child *c,
		  const struct wire_order *what, struct wire_answer *a)
{
	static const struct wire_order why = {.kind = WIRE_SNAPSHOT};

	if (ask(c, what, a))
		return;
	if (c == &p->gen && ask(&p->lb, &why, a) && a->lb[0].unwanted > 0)
		wire_die("%s is gone; the load balancer counts what must not happen:%s", c->name,
			 a->unwanted);
	wire_die("%s is gone; its reason is above", c->name);
}

/* --- children ------------------------------------------------------------------------------------
 */

struct part {
	void (*main)(const struct wire_options *o, int socket);
	const struct wire_options *o;
};

static void run_part(const void *argument, int socket)
{
	const struct part *part = argument;

	part->main(part->o, socket);
}

static void start_child(struct wire_child *c, const char *name,
			void (*child_main)(const struct wire_options *o, int socket),
			const struct wire_options *o, struct wire_answer *ready)
{
	struct part part = {.main = child_main, .o = o};

	wire_child_start(c, name, run_part, &part);
	take_answer(c, ready);
}

static void end_child(const struct wire_parent *p, const struct wire_child *c)
{
	static const struct wire_order end = {.kind = WIRE_END};
	struct wire_answer a;

	order(p, c, &end, &a);
	wire_child_end(c);
}

void wire_parent_end(struct wire_parent *p)
{
	static const struct wire_order stop = {.kind = WIRE_STOP};
	struct wire_answer a;

	order(p, &p->gen, &stop, &a);
	order(p, &p->lb, &stop, &a);
	wire_child_let_go(&p->gen);
	end_child(p, &p->lb);
	end_child(p, &p->gen);
}

void wire_parent_start(struct wire_parent *p)
{
	struct wire_order join = {.kind = WIRE_JOIN};
	struct wire_answer a;

	start_child(&p->gen, "generator", wire_gen_main, &p->o, &a);
	start_child(&p->lb, "load balancer", wire_lb_main, &p->o, &a);
	join.address = a.address;
	order(p, &p->gen, &join, &a);
	order(p, &p->lb, &join, &a);
}

/* --- loads ---------------------------------------------------------------------------------------
 */

void wire_parent_sample(const struct wire_parent *p, struct wire_sample *s)
{
	static const struct wire_order what = {.kind = WIRE_SNAPSHOT};

	order(p, &p->gen, &what, &s->gen);
	order(p, &p->lb, &what, &s->lb);
	if (s->lb.lb[0].unwanted > 0)
		wire_die("the load balancer counts what must not happen:%s", s->lb.unwanted);
}

static void begin(const struct wire_parent *p, const struct wire_load *load)
{
	struct wire_order start = {.kind = WIRE_START, .load = *load};
	struct wire_answer a;

	order(p, &p->lb, &start, &a);
	order(p, &p->gen, &start, &a);
}

/* A segment that comes twice is refused; no other may be. */
static void check_refused(const struct wire_parent *p, const struct wire_sample *s)
{
	uint64_t refused = 0, resent = 0;

	for (unsigned int q = 0; q < p->o.lcores; q++) {
		refused += s->lb.lb[q].refused;
		resent += s->gen.gen.queue[q].resent;
	}
	if (refused > resent)
		wire_die("%lu segments were refused, only %lu were sent twice", refused, resent);
}

/* All packets that were sent must have arrived once they had the time. */
static void finish(struct wire_parent *p)
{
	static const struct wire_order drain = {.kind = WIRE_DRAIN};
	struct wire_sample s;
	struct wire_answer a;
	uint64_t lost = 0;

	order(p, &p->gen, &drain, &a);
	wire_parent_sample(p, &s);
	for (unsigned int q = 0; q < p->o.lcores; q++)
		lost += s.gen.gen.queue[q].sent - s.gen.gen.queue[q].answered;
	p->lost += lost;
	if (a.status < 0)
		wire_die("%lu of the requests were not answered", lost);
	check_refused(p, &s);
}

void wire_parent_open_flows(struct wire_parent *p)
{
	struct wire_load all = {
		.frame = 1024,
		.in_turn = true,
		.limit = 2ull * ((p->o.flows + p->o.lcores - 1) / p->o.lcores),
	};

	begin(p, &all);
	finish(p);
}

void wire_parent_check_tcp(struct wire_parent *p, unsigned int n, unsigned int lose)
{
	struct wire_load load = {.tcp = true, .verify = true, .limit = n, .lose = lose};
	uint64_t bytes = 0, resent = 0, unsent = 0;
	struct wire_sample before, after;

	wire_parent_sample(p, &before);
	begin(p, &load);
	finish(p);
	wire_parent_sample(p, &after);
	for (unsigned int q = 0; q < p->o.lcores; q++) {
		const struct wire_queue_counters *x = &before.gen.gen.queue[q];
		const struct wire_queue_counters *y = &after.gen.gen.queue[q];

		bytes += y->tcp_bytes - x->tcp_bytes;
		resent += y->resent - x->resent;
		unsent += y->unsent - x->unsent;
	}
	if (bytes != (uint64_t)n * p->o.lcores * WIRE_TCP_BYTES)
		wire_die("%lu bytes of %u requests per queue came", bytes, n);
	if (lose > 0 && (unsent == 0 || resent < unsent))
		wire_die("%lu segments were lost, and %lu sent again", unsent, resent);
}

static void span(struct wire_parent *p, const struct wire_load *load, uint32_t settle_ms,
		 struct wire_sample *before, struct wire_sample *after)
{
	begin(p, load);
	poll(NULL, 0, (int)settle_ms);
	wire_parent_sample(p, before);
	poll(NULL, 0, (int)p->o.measure_ms);
	wire_parent_sample(p, after);
	finish(p);
}

unsigned int wire_parent_measure(struct wire_parent *p, const struct wire_load *load,
				 uint32_t settle_ms, struct wire_sample *before,
				 struct wire_sample *after)
{
	unsigned int disturbed = 0;

	span(p, load, settle_ms, before, after);
	while (disturbed < p->o.tries - 1 && wire_sums_disturbed(&p->o, before, after)) {
		disturbed++;
		span(p, load, settle_ms, before, after);
	}
	return disturbed;
}
