/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bad wire between two interfaces, for net tests: forwards all frames, and applies the faults of
 * the options to RoCE packets in both directions. Other frames (registration, address resolution)
 * are only delayed. SIGUSR1 cuts the wire, SIGUSR2 mends it; SIGTERM ends the program, which prints
 * its counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
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

static const struct option options[] = {
	{"drop", required_argument, NULL, 'd'},     {"duplicate", required_argument, NULL, 'u'},
	{"reorder", required_argument, NULL, 'r'},  {"corrupt", required_argument, NULL, 'c'},
	{"delay-us", required_argument, NULL, 'l'}, {"mbit", required_argument, NULL, 'm'},
	{"mark-kb", required_argument, NULL, 'e'},  {"queue-kb", required_argument, NULL, 'q'},
	{"seed", required_argument, NULL, 's'},     {NULL, 0, NULL, 0},
};

static void usage(void)
{
	fputs("usage: fault-wire [options] INTERFACE-A INTERFACE-B\n\n"
	      "  --drop P --duplicate P --reorder P --corrupt P   of each RoCE packet, 0 to 1\n"
	      "  --delay-us US                                    of every frame\n"
	      "  --mbit N --mark-kb N --queue-kb N                a switch in the middle\n"
	      "  --seed N\n",
	      stderr);
	exit(2);
}

static double number(const char *text, double max)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value >= 0) || value > max) {
		fprintf(stderr, "fault-wire: '%s' is not a number from 0 to %g\n", text, max);
		usage();
	}
	return value;
}

static void parse(int argc, char **argv, struct faults_params *p)
{
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			p->drop = number(optarg, 1);
			break;
		case 'u':
			p->duplicate = number(optarg, 1);
			break;
		case 'r':
			p->reorder = number(optarg, 1);
			break;
		case 'c':
			p->corrupt = number(optarg, 1);
			break;
		case 'l':
			p->delay_ns = number(optarg, 1e9) * 1000;
			break;
		case 'm':
			p->bytes_per_s = number(optarg, 1e6) * 1e6 / 8;
			break;
		case 'e':
			p->mark_bytes = number(optarg, 1e6) * 1000;
			break;
		case 'q':
			p->queue_bytes = number(optarg, 1e6) * 1000;
			break;
		case 's':
			p->seed = number(optarg, 1e15);
			break;
		default:
			usage();
		}
	}
	if (argc - optind != 2)
		usage();
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
	struct faults_params params = {.seed = 1}, rest = {0};
	struct direction d[2];

	parse(argc, argv, &params);
	catch_signals();
	rest.delay_ns = params.delay_ns;
	for (unsigned int i = 0; i < 2; i++) {
		d[i] = (struct direction){.in = open_interface(argv[optind + i])};
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
