/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bad wire between two interfaces, for net tests: forwards all frames, and applies the faults of
 * the options to RoCE packets in both directions. Other frames (registration, address resolution)
 * are only delayed. SIGUSR1 cuts the wire, SIGUSR2 mends it; SIGTERM ends the program, which prints
 * its counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>

#include "faults.h"
#include "rdma/frame.h"
#include "runtime/option_table.h"

#define FRAME_MAX 65536

/* One direction: what comes in at one end leaves at the other. */
struct direction {
	int in, out;
	struct faults *roce, *rest;
	uint64_t refused; /* by the interface */
};

static volatile sig_atomic_t stop, cut;

static void on_signal(int number)
{
	if (number == SIGTERM || number == SIGINT)
		stop = 1;
	else
		cut = number == SIGUSR1;
}

static void die(const char *what)
{
	fprintf(stderr, "fault-wire: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int open_interface(const char *name)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(name),
	};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), room = 1 << 24, on = 1;

	if (fd < 0 || address.sll_ifindex == 0)
		die(name);
	/* Frames that this program sends must not come back. */
	if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die(name);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void receive(struct direction *d)
{
	static uint8_t frame[FRAME_MAX];
	struct roce_frame at;
	ssize_t n;

	while ((n = recv(d->in, frame, sizeof(frame), 0)) > 0)
		faults_put(frame_locate(frame, n, &at) == FRAME_ROCE ? d->roce : d->rest, frame, n,
			   now_ns());
}

static void deliver(struct direction *d, struct faults *f)
{
	static uint8_t frame[FRAME_MAX];
	uint32_t n;

	while ((n = faults_take(f, now_ns(), frame, sizeof(frame))) > 0)
		if (send(d->out, frame, n, 0) < 0)
			d->refused++; /* an interface that is down, or a full queue: lost too */
}

static uint64_t deadline(const struct direction *d)
{
	uint64_t at = UINT64_MAX, one;

	for (unsigned int i = 0; i < 2; i++) {
		one = faults_deadline(d[i].roce);
		at = one < at ? one : at;
		one = faults_deadline(d[i].rest);
		at = one < at ? one : at;
	}
	return at;
}

static void forward(struct direction *d)
{
	struct pollfd fds[2] = {{.fd = d[0].in, .events = POLLIN},
				{.fd = d[1].in, .events = POLLIN}};
	uint64_t now = now_ns(), due = deadline(d), ns = due <= now ? 0 : due - now;
	struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	sigset_t none;

	sigemptyset(&none);
	/* Signals are let in here only, so that none is missed. */
	ppoll(fds, 2, due == UINT64_MAX ? NULL : &t, &none);
	for (unsigned int i = 0; i < 2; i++) {
		faults_cut(d[i].roce, cut);
		faults_cut(d[i].rest, cut);
		receive(&d[i]);
		deliver(&d[i], d[i].roce);
		deliver(&d[i], d[i].rest);
	}
}

static void report(const struct direction *d)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct faults_stats *s = faults_stats(d[i].roce);

		printf("%s%lu in: dropped %lu duplicated %lu reordered %lu corrupted %lu marked "
		       "%lu "
		       "overflowed %lu refused %lu",
		       i == 0 ? "" : "; ", s->in, s->dropped, s->duplicated, s->reordered,
		       s->corrupted, s->marked, s->overflowed, d[i].refused);
	}
	puts("");
}

struct wire_options {
	struct faults_params faults;
	double delay_us, mbit, mark_kb, queue_kb;
};

#define AT(field) OPTION_AT(struct wire_options, field)

static const struct option_row rows[] = {
	{"drop", OPTION_REAL, AT(faults.drop), "P", "probability, of each RoCE packet", 0, 1},
	{"duplicate", OPTION_REAL, AT(faults.duplicate), "P", "the same", 0, 1},
	{"reorder", OPTION_REAL, AT(faults.reorder), "P", "the same", 0, 1},
	{"corrupt", OPTION_REAL, AT(faults.corrupt), "P", "the same", 0, 1},
	{"delay-us", OPTION_REAL, AT(delay_us), NULL, "of every frame", 0, 1000000000},
	{"mbit", OPTION_REAL, AT(mbit), NULL, "Mbit/s of a switch in the middle", 0, 1000000},
	{"mark-kb", OPTION_REAL, AT(mark_kb), NULL, "waiting there: packets get CE", 0, 1000000},
	{"queue-kb", OPTION_REAL, AT(queue_kb), NULL, "waiting there: packets are dropped", 0,
	 1000000},
	{"seed", OPTION_NUMBER, AT(faults.seed), NULL, "of the faults"},
	{0},
};

static const struct option_table table = {
	.program = "fault-wire",
	.usage = "fault-wire [option ...] INTERFACE-A INTERFACE-B",
	.rows = rows,
	.operands = true,
};

static void parse(int argc, char **argv, struct faults_params *p)
{
	struct wire_options o = {.faults.seed = 1};
	int ret = options_parse(&table, argc, argv, &o, NULL);

	if (ret != 0)
		exit(ret > 0 ? EXIT_SUCCESS : 2);
	if (argv[1] == NULL || argv[2] == NULL || argv[3] != NULL) {
		fputs("fault-wire: give two interfaces (see --help)\n", stderr);
		exit(2);
	}
	*p = o.faults;
	p->delay_ns = (uint64_t)(o.delay_us * 1000);
	p->bytes_per_s = (uint64_t)(o.mbit * 1e6 / 8);
	p->mark_bytes = (uint64_t)(o.mark_kb * 1000);
	p->queue_bytes = (uint64_t)(o.queue_kb * 1000);
}

static void catch_signals(void)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (unsigned int i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

int main(int argc, char **argv)
{
	struct faults_params params, rest = {0};
	struct direction d[2];

	parse(argc, argv, &params);
	catch_signals();
	rest.delay_ns = params.delay_ns;
	for (unsigned int i = 0; i < 2; i++) {
		d[i] = (struct direction){.in = open_interface(argv[1 + i])};
		d[i].roce = faults_create(&params);
		d[i].rest = faults_create(&rest);
		params.seed += 0x10000; /* the directions differ */
		if (d[i].roce == NULL || d[i].rest == NULL)
			die("no memory");
	}
	d[0].out = d[1].in;
	d[1].out = d[0].in;
	puts("ready");
	fflush(stdout);
	while (!stop)
		forward(d);
	report(d);
	return EXIT_SUCCESS;
}
