/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client. Every connection keeps <pipeline> requests open; all bytes of all replies are
 * compared. A stall is a time in which a connection with open requests saw no progress, by the
 * kernel's counters of bytes that the server acknowledged and of bytes that came, which are read
 * every 10 ms.
 */
#include <err.h>
#include <errno.h>
#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "exchange.h"
#include "stream.h"

#define EVENTS       64
#define OPEN_MAX     64
#define READ_B       262144
#define SAMPLE_US    10000
#define SMALL        16 /* bytes of the side that has no drawn size */
#define LATENCIES_N0 65536

struct asked {
	struct stream_head head; /* unless echo */
	size_t offset;           /* in the pattern */
	uint32_t up, down;
	uint64_t hash; /* of the request, unless echo */
	uint64_t begun_us;
};

struct asking {
	int fd;
	bool over;
	struct asked open[OPEN_MAX]; /* oldest first */
	uint32_t first, n, requests;
	uint64_t sent; /* bytes of the newest one, with its length in front */
	bool sending;
	uint8_t front[STREAM_REPLY_HEAD]; /* of the oldest one's reply */
	uint32_t front_have, got;
	uint64_t random;
	/* progress */
	uint64_t acked, received, moved_us, stall_us;
	uint32_t retransmits;
};

struct ask {
	const struct stream_ask *o;
	int poll;
	struct asking *asking;
	uint32_t alive;
	uint8_t *pattern, *bytes; /* of <pattern_b> bytes; READ_B */
	size_t pattern_b;
	uint64_t asked, answered, wrong, refused, failed, bytes_up, bytes_down;
	uint64_t end_us; /* nothing is asked after it */
	uint32_t *latency_us;
	size_t n_latencies, room_latencies;
	bool no_sack, no_timestamps, no_scaling;
	uint64_t next_sample_us;
};

static uint64_t ask_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static uint32_t ask_draw_size(const struct ask *c, struct asking *a)
{
	double low = log(c->o->min), high = log((double)c->o->max + 1), u;
	double size;

	u = (double)(ask_random(&a->random) >> 11) / (double)(UINT64_C(1) << 53);
	size = exp(low + (high - low) * u);
	return size > c->o->max ? c->o->max : size < c->o->min ? c->o->min : (uint32_t)size;
}

/* --- requests ---------------------------------------------------------------------------------
 */

/* May a connection ask another one? The requests of all are shared evenly. */
static bool ask_wants(const struct ask *c, const struct asking *a)
{
	const struct stream_ask *o = c->o;
	uint64_t i = (uint64_t)(a - c->asking);

	if (a->n == o->pipeline)
		return false;
	if (o->requests == 0)
		return stream_now_us() < c->end_us;
	return a->requests < o->requests / o->connections + (i < o->requests % o->connections);
}

static void ask_begin(struct ask *c, struct asking *a)
{
	struct asked *q = &a->open[(a->first + a->n) % OPEN_MAX];
	uint32_t size = ask_draw_size(c, a);

	*q = (struct asked){.up = size, .down = size, .begun_us = stream_now_us()};
	q->offset = ask_random(&a->random) % (c->pattern_b / 2);
	if (c->o->mode != STREAM_ECHO) {
		q->up = c->o->mode == STREAM_UP ? size : SMALL;
		q->down = c->o->mode == STREAM_UP ? SMALL : size;
		q->head = (struct stream_head){q->down, a->requests, ask_random(&a->random)};
		q->hash = stream_hash(stream_hash(0, &q->head, sizeof(q->head)),
				      c->pattern + q->offset, q->up - sizeof(q->head));
	}
	if (a->n++ == 0)
		a->moved_us = q->begun_us;
	a->requests++;
	a->sent = 0;
	a->sending = true;
	c->asked++;
}

/* Sends a part of the newest request. Returns what sendmsg() does. */
static ssize_t ask_send(struct ask *c, struct asking *a, const struct asked *q)
{
	uint64_t skip = a->sent, head = c->o->mode == STREAM_ECHO ? 0 : sizeof(q->head);
	struct iovec part[3] = {
		{(void *)&q->up, STREAM_REQUEST_HEAD},
		{(void *)&q->head, head},
		{c->pattern + q->offset, q->up - head},
	};
	struct msghdr message = {.msg_iov = part, .msg_iovlen = 3};
	/* Bytes that another request follows may wait for it. */
	int flags = a->n < c->o->pipeline && ask_wants(c, a) ? MSG_MORE : 0;

	for (unsigned int i = 0; i < 3; i++) {
		uint64_t cut = skip < part[i].iov_len ? skip : part[i].iov_len;

		part[i].iov_base = (uint8_t *)part[i].iov_base + cut;
		part[i].iov_len -= cut;
		skip -= cut;
	}
	return sendmsg(a->fd, &message, MSG_NOSIGNAL | flags);
}

/* Sends while the socket takes it. False: the connection failed. */
static bool ask_more(struct ask *c, struct asking *a)
{
	for (;;) {
		const struct asked *q;
		ssize_t n;

		if (!a->sending) {
			if (!ask_wants(c, a))
				return true;
			ask_begin(c, a);
		}
		q = &a->open[(a->first + a->n - 1) % OPEN_MAX];
		n = ask_send(c, a, q);
		if (n < 0)
			return errno == EAGAIN || errno == ENOTCONN;
		a->sent += (uint64_t)n;
		c->bytes_up += (uint64_t)n;
		a->sending = a->sent < STREAM_REQUEST_HEAD + (uint64_t)q->up;
	}
}

/* --- replies ----------------------------------------------------------------------------------
 */

static void ask_note_latency(struct ask *c, uint64_t us)
{
	if (c->n_latencies == c->room_latencies) {
		c->room_latencies = 2 * c->room_latencies + LATENCIES_N0;
		c->latency_us = realloc(c->latency_us, c->room_latencies * sizeof(uint32_t));
		if (c->latency_us == NULL)
			err(1, "memory");
	}
	c->latency_us[c->n_latencies++] = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static bool ask_equal(const struct ask *c, const struct asked *q, uint32_t from, const uint8_t *at,
		      uint32_t n)
{
	if (c->o->mode == STREAM_ECHO)
		return memcmp(c->pattern + q->offset + from, at, n) == 0;
	return exchange_compare(q->hash, from, at, n) == n;
}

/* The oldest reply is whole. */
static void ask_answered(struct ask *c, struct asking *a)
{
	const struct asked *q = &a->open[a->first];
	uint32_t status;

	memcpy(&status, a->front + 4, sizeof(status));
	if (status != 0)
		c->refused++;
	else
		c->answered++;
	ask_note_latency(c, stream_now_us() - q->begun_us);
	a->first = (a->first + 1) % OPEN_MAX;
	a->n--;
	a->front_have = a->got = 0;
}

/* Says what is wrong with the reply that is being read. */
static void ask_say(const struct asking *a, const char *what)
{
	const struct asked *q = &a->open[a->first];
	struct sockaddr_storage own = {0};
	socklen_t length = sizeof(own);
	uint32_t front[2];

	memcpy(front, a->front, sizeof(front));
	getsockname(a->fd, (struct sockaddr *)&own, &length);
	fprintf(stderr, "port %u: %s in the reply to %u bytes, %u bytes in, with %u open; it says %u bytes and status %u\n",
		ntohs(((const struct sockaddr_in *)&own)->sin_port), what, q->down, a->got, a->n,
		front[0], front[1]);
}

/* Says where bytes that are not the request's come from: of another place in the pattern, and how
 * many are wrong in a row. */
static void ask_say_where(const struct ask *c, const struct asked *q, uint32_t from,
			  const uint8_t *at, uint32_t n)
{
	const uint8_t *right = c->pattern + q->offset + from, *found;
	uint32_t first = 0, run = 0;

	if (c->o->mode != STREAM_ECHO)
		return;
	while (first < n && at[first] == right[first])
		first++;
	while (first + run < n && at[first + run] != right[first + run])
		run++;
	found = memmem(c->pattern, c->pattern_b, at + first, run < 16 ? run : 16);
	fprintf(stderr, "byte %u and %u more of %u are wrong", from + first, run - 1, n - first);
	if (found == NULL)
		fprintf(stderr, ": found nowhere:");
	else
		fprintf(stderr, ": the pattern's at %+td:", found - (right + first));
	for (uint32_t i = 0; i < 16 && i < run; i++)
		fprintf(stderr, " %02x", at[first + i]);
	fprintf(stderr, "\n");
}

/* Takes bytes of replies. False: they are wrong. */
static bool ask_take(struct ask *c, struct asking *a, const uint8_t *at, uint32_t n)
{
	uint32_t front[2], part;

	while (n > 0) {
		const struct asked *q = &a->open[a->first];

		if (a->n == 0) {
			ask_say(a, "bytes that nothing asked for");
			return false;
		}
		if (a->front_have < sizeof(a->front)) {
			part = sizeof(a->front) - a->front_have;
			part = part < n ? part : n;
			memcpy(a->front + a->front_have, at, part);
			a->front_have += part;
		} else {
			part = q->down - a->got < n ? q->down - a->got : n;
			if (!ask_equal(c, q, a->got, at, part)) {
				ask_say(a, "other bytes");
				ask_say_where(c, q, a->got, at, part);
				return false;
			}
			a->got += part;
		}
		at += part;
		n -= part;
		if (a->front_have < sizeof(a->front))
			continue;
		memcpy(front, a->front, sizeof(front));
		if (front[0] != (front[1] == 0 ? q->down : 0)) {
			ask_say(a, "another length");
			return false;
		}
		if (a->got == front[0])
			ask_answered(c, a);
	}
	return true;
}

/* --- connections ------------------------------------------------------------------------------
 */

static void ask_sample_one(struct ask *c, struct asking *a, uint64_t now)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	if (getsockopt(a->fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
		return;
	if (info.tcpi_bytes_acked != a->acked || info.tcpi_bytes_received != a->received ||
	    a->n == 0) {
		if (a->n > 0 && now - a->moved_us > a->stall_us)
			a->stall_us = now - a->moved_us;
		a->moved_us = now;
	}
	a->acked = info.tcpi_bytes_acked;
	a->received = info.tcpi_bytes_received;
	a->retransmits = info.tcpi_total_retrans;
	if (info.tcpi_bytes_received == 0)
		return;
	c->no_sack |= !(info.tcpi_options & TCPI_OPT_SACK);
	c->no_timestamps |= !(info.tcpi_options & TCPI_OPT_TIMESTAMPS);
	c->no_scaling |= !(info.tcpi_options & TCPI_OPT_WSCALE);
}

static void ask_sample(struct ask *c, uint64_t now)
{
	if (now < c->next_sample_us)
		return;
	c->next_sample_us = now + SAMPLE_US;
	for (uint32_t i = 0; i < c->o->connections; i++)
		if (!c->asking[i].over)
			ask_sample_one(c, &c->asking[i], now);
}

static void ask_connect(struct ask *c, struct asking *a)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = a};
	struct sockaddr_storage at;
	socklen_t length = stream_address(c->o->address, c->o->port, &at);

	a->fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	stream_prepare(a->fd);
	a->moved_us = stream_now_us();
	if (connect(a->fd, (struct sockaddr *)&at, length) != 0 && errno != EINPROGRESS)
		err(1, "connect");
	epoll_ctl(c->poll, EPOLL_CTL_ADD, a->fd, &event);
}

static bool ask_receive(struct ask *c, struct asking *a)
{
	ssize_t n;

	do {
		n = recv(a->fd, c->bytes, READ_B, 0);
		if (n > 0) {
			c->bytes_down += (uint64_t)n;
			if (!ask_take(c, a, c->bytes, (uint32_t)n)) {
				c->wrong++;
				return false;
			}
		}
	} while (n == READ_B);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != ENOTCONN)) {
		fprintf(stderr, "a connection ended with %u open: %s\n", a->n,
			n == 0 ? "closed" : strerror(errno));
		c->failed++;
		return false;
	}
	return true;
}

static void ask_run(struct ask *c, struct asking *a)
{
	bool good = ask_receive(c, a);

	/* A slot that a reply has freed is used at once. */
	good = good && ask_more(c, a);
	if (good && (a->n > 0 || ask_wants(c, a)))
		return;
	ask_sample_one(c, a, stream_now_us());
	close(a->fd);
	a->over = true;
	c->alive--;
}

/* --- figures ----------------------------------------------------------------------------------
 */

static int ask_by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static double ask_percentile(const uint32_t *sorted, size_t n, double percent)
{
	return n == 0 ? 0 : sorted[(size_t)((double)(n - 1) * percent / 100)];
}

static double ask_cpu_s(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
		err(1, "--watch %d", pid);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void ask_read_cpu(const struct stream_ask *o, double *cpu)
{
	cpu[0] = ask_cpu_s(0);
	for (uint32_t i = 0; i < o->n_watched; i++)
		cpu[i + 1] = ask_cpu_s(o->watched[i]);
}

static void ask_print_stalls(struct ask *c)
{
	uint32_t *stall = calloc(c->o->connections, sizeof(*stall)), retransmits = 0;

	for (uint32_t i = 0; i < c->o->connections; i++) {
		stall[i] = (uint32_t)c->asking[i].stall_us;
		retransmits += c->asking[i].retransmits;
	}
	qsort(stall, c->o->connections, sizeof(*stall), ask_by_size);
	printf("\"stall_ms\": %.0f, \"stall_median_ms\": %.0f, \"retransmits\": %u, ",
	       ask_percentile(stall, c->o->connections, 100) / 1e3,
	       ask_percentile(stall, c->o->connections, 50) / 1e3, retransmits);
	free(stall);
}

static void ask_print(struct ask *c, uint64_t lost, double seconds, const double *cpu)
{
	qsort(c->latency_us, c->n_latencies, sizeof(*c->latency_us), ask_by_size);
	printf("{\"requests\": %lu, \"answered\": %lu, \"wrong\": %lu, \"refused\": %lu, "
	       "\"failed\": %lu, \"lost\": %lu, \"seconds\": %.3f, \"rps\": %.1f, "
	       "\"mbit_up\": %.2f, \"mbit_down\": %.2f, \"p50_us\": %.0f, \"p99_us\": %.0f, ",
	       (unsigned long)c->asked, (unsigned long)c->answered, (unsigned long)c->wrong,
	       (unsigned long)c->refused, (unsigned long)c->failed, (unsigned long)lost, seconds,
	       (double)c->n_latencies / seconds, (double)c->bytes_up * 8e-6 / seconds,
	       (double)c->bytes_down * 8e-6 / seconds,
	       ask_percentile(c->latency_us, c->n_latencies, 50),
	       ask_percentile(c->latency_us, c->n_latencies, 99));
	ask_print_stalls(c);
	printf("\"sack\": %s, \"timestamps\": %s, \"scaling\": %s, \"cpu_s_per_million\": [",
	       c->no_sack ? "false" : "true", c->no_timestamps ? "false" : "true",
	       c->no_scaling ? "false" : "true");
	for (uint32_t i = 0; i <= c->o->n_watched; i++)
		printf("%s%.3f", i == 0 ? "" : ", ",
		       cpu[i] * 1e6 / (double)(c->n_latencies > 0 ? c->n_latencies : 1));
	puts("]}");
}

/* --- the whole --------------------------------------------------------------------------------
 */

/* Runs until <until_us>, or until all connections are over. */
static void ask_until(struct ask *c, uint64_t until_us)
{
	struct epoll_event events[EVENTS];
	uint64_t now;

	while (c->alive > 0 && (now = stream_now_us()) < until_us) {
		int n = epoll_wait(c->poll, events, EVENTS, SAMPLE_US / 1000);

		for (int i = 0; i < n; i++)
			if (!((struct asking *)events[i].data.ptr)->over)
				ask_run(c, events[i].data.ptr);
		ask_sample(c, stream_now_us());
	}
}

static void ask_open(struct ask *c)
{
	const struct stream_ask *o = c->o;
	uint64_t random = o->seed, word;

	c->poll = epoll_create1(0);
	c->asking = calloc(o->connections, sizeof(*c->asking));
	c->pattern_b = 2 * (((size_t)o->max | 4095) + 1);
	c->pattern = malloc(c->pattern_b);
	c->bytes = malloc(READ_B);
	if (c->asking == NULL || c->pattern == NULL || c->bytes == NULL)
		err(1, "memory");
	for (size_t i = 0; i < c->pattern_b; i += sizeof(word)) {
		word = ask_random(&random);
		memcpy(c->pattern + i, &word, sizeof(word));
	}
	c->alive = o->connections;
	for (uint32_t i = 0; i < o->connections; i++) {
		c->asking[i].random = o->seed * 1000003 + i;
		ask_connect(c, &c->asking[i]);
	}
}

/* Measures from here on; fills <cpu> with the CPU time of each process. Returns seconds. */
static double ask_measure(struct ask *c, double *cpu)
{
	const struct stream_ask *o = c->o;
	double before[STREAM_WATCHED_MAX + 1];
	uint64_t began;

	c->n_latencies = c->bytes_up = c->bytes_down = 0;
	ask_read_cpu(o, before);
	began = stream_now_us();
	ask_until(c, began + (uint64_t)((o->requests == 0 ? o->seconds : o->limit_s) * 1e6));
	ask_read_cpu(o, cpu);
	for (uint32_t i = 0; i <= o->n_watched; i++)
		cpu[i] -= before[i];
	return (double)(stream_now_us() - began) / 1e6;
}

/* Requests that are open at the end must be answered, but are not measured. */
static void ask_finish(struct ask *c)
{
	size_t measured = c->n_latencies;
	uint64_t up = c->bytes_up, down = c->bytes_down;

	c->end_us = 0;
	if (c->o->requests == 0)
		ask_until(c, stream_now_us() + c->o->limit_s * UINT64_C(1000000));
	c->n_latencies = measured;
	c->bytes_up = up;
	c->bytes_down = down;
}

int stream_ask(const struct stream_ask *o)
{
	struct ask c = {.o = o, .end_us = UINT64_MAX};
	double cpu[STREAM_WATCHED_MAX + 1], seconds;
	uint64_t lost = 0;

	ask_open(&c);
	if (o->warm_up_s > 0)
		ask_until(&c, stream_now_us() + (uint64_t)(o->warm_up_s * 1e6));
	seconds = ask_measure(&c, cpu);
	ask_finish(&c);
	for (uint32_t i = 0; i < o->connections; i++)
		lost += c.asking[i].n;
	ask_print(&c, lost, seconds, cpu);
	return c.wrong + c.refused + c.failed + lost > 0 || c.answered == 0;
}
