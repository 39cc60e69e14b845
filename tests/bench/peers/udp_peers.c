/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ends of the bench udp-peers: clients and an echo server that are kernel sockets.
 *
 *   bench-udp-peers serve --port 8500 --threads 2
 *   bench-udp-peers ask --to 10.200.0.100 --port 8500 --sockets 64 --window 1 --size 1024 --seconds
 * 3
 *
 * serve echoes until it is killed. ask keeps --window requests outstanding on each of --sockets
 * connected sockets, in one thread, compares every byte of every reply, and prints its figures as
 * JSON. Its exit status is 1 when a reply was wrong or a request was lost.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/option_table.h"

#define BURST       64   /* datagrams per system call, and sockets per epoll_wait() */
#define SIZE_MAX_B  1472 /* bytes of a datagram at an MTU of 1500 */
#define SOCKETS_MAX 1024
#define WINDOW_MAX  64
#define BUFFER      4194304 /* bytes of a socket's buffer */
#define WATCHED_MAX 8
#define LOST_NS     1000000000ull
#define BUCKETS     20000 /* of latencies, BUCKET_NS wide; the last has all that are longer */
#define BUCKET_NS   1000

struct options {
	const char *to;
	unsigned int port, threads, sockets, window, size, seconds, n_watched;
	pid_t watched[WATCHED_MAX];
};

static struct options options = {.to = "127.0.0.1",
				 .port = 8500,
				 .threads = 1,
				 .sockets = 64,
				 .window = 1,
				 .size = 1024,
				 .seconds = 3};

static void fail(const char *what)
{
	fprintf(stderr, "bench-udp-peers: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int open_socket(int flags)
{
	int fd = socket(AF_INET, SOCK_DGRAM | flags, 0), buffer = BUFFER;

	if (fd < 0)
		fail("socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	return fd;
}

/* --- serve ------------------------------------------------------------------------------------ */

struct burst {
	struct mmsghdr message[BURST];
	struct iovec vector[BURST];
	struct sockaddr_in from[BURST];
	uint8_t bytes[BURST][SIZE_MAX_B];
};

static void burst_init(struct burst *b)
{
	for (unsigned int i = 0; i < BURST; i++) {
		b->vector[i] = (struct iovec){b->bytes[i], SIZE_MAX_B};
		b->message[i].msg_hdr = (struct msghdr){.msg_name = &b->from[i],
							.msg_namelen = sizeof(b->from[i]),
							.msg_iov = &b->vector[i],
							.msg_iovlen = 1};
	}
}

static void burst_echo(struct burst *b, int fd)
{
	int n = recvmmsg(fd, b->message, BURST, MSG_WAITFORONE, NULL), sent = 0;

	for (int i = 0; i < n; i++)
		b->vector[i].iov_len = b->message[i].msg_len;
	while (sent < n) {
		int ret = sendmmsg(fd, b->message + sent, n - sent, 0);

		if (ret < 0 && errno != EINTR && errno != ENOBUFS)
			fail("sendmmsg");
		sent += ret > 0 ? ret : 0;
	}
	for (int i = 0; i < n; i++)
		b->vector[i].iov_len = SIZE_MAX_B;
}

static void *serve_thread(void *unused)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(options.port)};
	struct burst *b = calloc(1, sizeof(*b));
	int fd = open_socket(0), one = 1;

	if (b == NULL || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) != 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		fail("bind");
	burst_init(b);
	for (;;)
		burst_echo(b, fd);
	return NULL;
}

static int serve(void)
{
	pthread_t thread;

	for (unsigned int i = 1; i < options.threads; i++)
		if (pthread_create(&thread, NULL, serve_thread, NULL) != 0)
			fail("thread");
	serve_thread(NULL);
	return 0;
}

/* --- ask -------------------------------------------------------------------------------------- */

/* A request that has no reply yet; serial 0 = none. */
struct place {
	uint64_t serial, sent_ns;
};

struct asker {
	int epoll;
	int fd[SOCKETS_MAX];
	struct place place[SOCKETS_MAX][WINDOW_MAX];
	uint64_t serial;
	uint64_t answered, lost, wrong, late;
	uint64_t latency[BUCKETS];
	uint8_t bytes[SIZE_MAX_B]; /* of all requests, behind place and serial number */
};

struct header {
	uint64_t place, serial;
};

static void ask_send(struct asker *a, unsigned int s, unsigned int w)
{
	struct header header = {w, ++a->serial};

	a->place[s][w] = (struct place){header.serial, clock_now_ns()};
	memcpy(a->bytes, &header, sizeof(header));
	/* A send that fails is a lost request. */
	(void)!send(a->fd[s], a->bytes, options.size, 0);
}

static void ask_answered(struct asker *a, unsigned int s, const uint8_t *bytes, ssize_t length)
{
	const size_t front = sizeof(struct header);
	struct header header = {WINDOW_MAX, 0};
	uint64_t ns;

	if (length == (ssize_t)options.size)
		memcpy(&header, bytes, front);
	if (header.place >= options.window ||
	    memcmp(bytes + front, a->bytes + front, options.size - front) != 0) {
		a->wrong++;
	} else if (a->place[s][header.place].serial != header.serial) {
		a->late++;
	} else {
		ns = clock_now_ns() - a->place[s][header.place].sent_ns;
		a->latency[ns / BUCKET_NS < BUCKETS ? ns / BUCKET_NS : BUCKETS - 1]++;
		a->answered++;
		ask_send(a, s, header.place);
	}
}

static void ask_socket(struct asker *a, unsigned int s)
{
	uint8_t bytes[SIZE_MAX_B + 1];
	ssize_t length;

	/* One datagram at a time: with a window of 1 there is no second one to look for. */
	for (unsigned int i = 0; i < options.window; i++) {
		length = recv(a->fd[s], bytes, sizeof(bytes), MSG_DONTWAIT);
		if (length < 0)
			return;
		ask_answered(a, s, bytes, length);
	}
}

/* Requests without a reply for LOST_NS are sent again, and count as lost. */
static void ask_lost(struct asker *a)
{
	uint64_t now = clock_now_ns();

	for (unsigned int s = 0; s < options.sockets; s++)
		for (unsigned int w = 0; w < options.window; w++)
			if (now - a->place[s][w].sent_ns > LOST_NS) {
				a->lost++;
				ask_send(a, s, w);
			}
}

static void ask_until(struct asker *a, uint64_t end)
{
	struct epoll_event ready[BURST];
	uint64_t now = clock_now_ns(), look = now;
	int n;

	for (; now < end; now = clock_now_ns()) {
		n = epoll_wait(a->epoll, ready, BURST, 100);
		for (int i = 0; i < n; i++)
			ask_socket(a, ready[i].data.u32);
		if (now - look > LOST_NS / 10) {
			ask_lost(a);
			look = now;
		}
	}
}

static void ask_open(struct asker *a)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(options.port)};

	if (inet_pton(AF_INET, options.to, &to.sin_addr) != 1) {
		errno = EINVAL;
		fail(options.to);
	}
	a->epoll = epoll_create1(0);
	for (unsigned int i = 0; i < sizeof(a->bytes); i++)
		a->bytes[i] = i * 2654435761u >> 24;
	for (unsigned int s = 0; s < options.sockets; s++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = s};

		a->fd[s] = open_socket(SOCK_NONBLOCK);
		if (connect(a->fd[s], (struct sockaddr *)&to, sizeof(to)) != 0 ||
		    epoll_ctl(a->epoll, EPOLL_CTL_ADD, a->fd[s], &event) != 0)
			fail("connect");
		for (unsigned int w = 0; w < options.window; w++)
			ask_send(a, s, w);
	}
}

/* us; the upper end of the bucket that <percent> of the latencies are in or below */
static double ask_percentile(const struct asker *a, double percent)
{
	uint64_t seen = 0;

	for (unsigned int i = 0; i < BUCKETS; i++) {
		seen += a->latency[i];
		if (seen > 0 && seen >= a->answered * percent / 100)
			return (i + 1) * (BUCKET_NS / 1000.0);
	}
	return 0;
}

/* Seconds of CPU time of a process since its start, with what the kernel did on its behalf. */
static double process_seconds(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
		fail("--watch");
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* The same of this process, and of those that --watch names. */
static double ask_seconds(void)
{
	double seconds = process_seconds(0);

	for (unsigned int i = 0; i < options.n_watched; i++)
		seconds += process_seconds(options.watched[i]);
	return seconds;
}

static int take_watched(void *whole, const char *text, char *error, size_t size)
{
	struct options *o = whole;

	if (o->n_watched == WATCHED_MAX || atoi(text) <= 0) {
		snprintf(error, size, "is not the id of a process, or too many");
		return -EINVAL;
	}
	o->watched[o->n_watched++] = atoi(text);
	return 0;
}

static int ask(void)
{
	struct asker *a = calloc(1, sizeof(*a));
	double cpu, first;
	uint64_t begin, ns;

	if (a == NULL)
		fail("memory");
	ask_open(a);
	ask_until(a, clock_now_ns() + 500000000); /* warm-up */
	a->answered = 0;
	memset(a->latency, 0, sizeof(a->latency));
	first = options.n_watched > 0 ? process_seconds(options.watched[0]) : 0;
	cpu = ask_seconds();
	begin = clock_now_ns();
	ask_until(a, begin + options.seconds * 1000000000ull);
	ns = clock_now_ns() - begin;
	cpu = ask_seconds() - cpu;
	first = options.n_watched > 0 ? process_seconds(options.watched[0]) - first : 0;
	printf("{\"answered\": %lu, \"rps\": %.0f, \"p50_us\": %.0f, \"p99_us\": %.0f, \"lost\": "
	       "%lu, "
	       "\"wrong\": %lu, \"late\": %lu, \"cpu_s_per_million\": %.3f, "
	       "\"first_cpu_s_per_million\": %.3f}\n",
	       a->answered, a->answered * 1e9 / ns, ask_percentile(a, 50), ask_percentile(a, 99),
	       a->lost, a->wrong, a->late, cpu * 1e6 / a->answered, first * 1e6 / a->answered);
	return a->lost + a->wrong > 0 || a->answered == 0;
}

/* --- command line ------------------------------------------------------------------------------
 */

#define AT(field) OPTION_AT(struct options, field)

static const struct option_row rows[] = {
	{"to", OPTION_TEXT, AT(to), "ADDRESS", "IPv4 address to ask"},
	{"port", OPTION_NUMBER, AT(port), NULL, "UDP port", 1, 65535},
	{"threads", OPTION_NUMBER, AT(threads), NULL, "of the server, a socket each", 1, 64},
	{"sockets", OPTION_NUMBER, AT(sockets), NULL, "clients", 1, SOCKETS_MAX},
	{"window", OPTION_NUMBER, AT(window), NULL, "requests that each client has outstanding", 1,
	 WINDOW_MAX},
	{"size", OPTION_NUMBER, AT(size), NULL, "bytes of a request", sizeof(struct header),
	 SIZE_MAX_B},
	{"seconds", OPTION_NUMBER, AT(seconds), NULL, "that are measured, after 0.5 s", 1, 3600},
	{"watch", OPTION_CALL, OPTION_WHOLE(struct options), "PID",
	 "add the CPU time of this process", .take = take_watched},
	{0},
};

static const struct option_table table = {
	.program = "bench-udp-peers",
	.usage = "bench-udp-peers serve|ask [option ...]",
	.rows = rows,
	.operands = true,
};

int main(int argc, char **argv)
{
	int ret = options_parse(&table, argc, argv, &options, NULL);

	if (ret != 0)
		return ret < 0 ? 2 : 0;
	if (argv[1] != NULL && strcmp(argv[1], "serve") == 0)
		return serve();
	if (argv[1] != NULL && strcmp(argv[1], "ask") == 0)
		return ask();
	fprintf(stderr, "bench-udp-peers: write serve or ask first\n");
	return 2;
}
