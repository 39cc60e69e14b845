/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of kernel TCP sockets that asks a model, one request at a time on each connection, and
 * compares every reply with the one that is expected: byte by byte, or as float32 within a
 * tolerance. The same bytes go to Doorbell (framing `length`) and to an HTTP server (POST, kept
 * alive), which may be Doorbell with framing `kserve`: a body is one raw tensor. One thread.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LOAD_EVENTS      64
#define LOAD_HEAD_MAX    2048
#define LOAD_LENGTH_HEAD 8
#define LOAD_MORE        256 /* status of `length`: more chunks of the reply follow */
#define LOAD_PATIENCE_NS 20000000000ull
#define LOAD_JSON_LENGTH "\r\nInference-Header-Content-Length:"

struct load_options {
	struct sockaddr_in to;
	bool spin, sleep;
	const char *post; /* a path; NULL: framing `length` */
	const char *requests, *replies, *latencies;
	uint32_t request_b, reply_b, open;
	double seconds, warm_up_s, rate; /* requests per second; 0: as soon as a reply is there */
	double tolerance;                /* of the row's largest value; 0: bytes are compared */
	uint64_t seed;
};

struct load_connection {
	int fd;
	bool busy;
	uint32_t row;
	uint64_t begun_ns, sent;
	char head[LOAD_HEAD_MAX];
	uint32_t head_have;
	uint32_t json_left;  /* bytes in front of the reply's */
	uint32_t chunk_left; /* bytes of the reply until the next head */
	bool last;           /* no chunk follows */
	uint32_t got;
	uint8_t *reply;
};

struct load {
	struct load_options o;
	const uint8_t *requests, *replies;
	uint32_t rows, next_row;
	int poll;
	struct load_connection *connection;
	char front[512];
	uint32_t front_b;
	uint64_t begin_ns, measure_ns, end_ns, due_ns;
	uint64_t asked, answered, wrong, other_class, refused;
	double worst; /* largest difference, of the row's largest value */
	uint32_t *latency_us;
	size_t n_latencies, room_latencies;
	uint64_t measured; /* answers that came from measure_ns to end_ns */
};

static uint64_t load_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static double load_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (double)((x ^ x >> 31) >> 11) / (double)(1ull << 53);
}

/* --- requests -----------------------------------------------------------------------------------
 */

static void load_make_front(struct load *l)
{
	uint32_t length = htole32(l->o.request_b);

	if (l->o.post != NULL) {
		int n = snprintf(l->front, sizeof(l->front),
				 "POST %s HTTP/1.1\r\nHost: model\r\n"
				 "Content-Type: application/octet-stream\r\n"
				 "Inference-Header-Content-Length: 0\r\n"
				 "Content-Length: %u\r\n\r\n",
				 l->o.post, l->o.request_b);

		if (n >= (int)sizeof(l->front))
			errx(2, "--post: the path is too long");
		l->front_b = (uint32_t)n;
		return;
	}
	memcpy(l->front, &length, sizeof(length));
	l->front_b = sizeof(length);
}

/* Send while the socket takes it. */
static void load_send(struct load *l, struct load_connection *c)
{
	const uint8_t *row = l->requests + (size_t)c->row * l->o.request_b;
	uint64_t whole = l->front_b + (uint64_t)l->o.request_b;

	while (c->sent < whole) {
		uint64_t skip = c->sent < l->front_b ? c->sent : l->front_b;
		uint64_t body = c->sent - skip;
		struct iovec part[2] = {{l->front + skip, l->front_b - skip},
					{(void *)(uintptr_t)(row + body), l->o.request_b - body}};
		struct msghdr message = {.msg_iov = part, .msg_iovlen = 2};
		ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			err(1, "send");
		c->sent += (uint64_t)n;
	}
}

static void load_ask(struct load *l, struct load_connection *c, uint64_t begun_ns)
{
	c->busy = true;
	c->row = l->next_row++ % l->rows;
	c->begun_ns = begun_ns;
	c->sent = c->head_have = c->json_left = c->chunk_left = c->got = 0;
	c->last = false;
	l->asked++;
	load_send(l, c);
}

/* Start what is due at a given rate on connections that are free; the rest waits, and its time
 * runs. */
static void load_ask_due(struct load *l, uint64_t now)
{
	for (uint32_t i = 0; l->due_ns <= now && l->due_ns < l->end_ns && i < l->o.open; i++) {
		if (l->connection[i].busy)
			continue;
		load_ask(l, &l->connection[i], l->due_ns);
		l->due_ns +=
			(uint64_t)(-log(1 - load_random(&l->o.seed)) * 1e9 / l->o.rate) + 1;
	}
}

/* --- replies ------------------------------------------------------------------------------------
 */

static uint32_t load_largest(const float *at, uint32_t n)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < n; i++)
		if (at[i] > at[best])
			best = i;
	return best;
}

static void load_compare_floats(struct load *l, const float *got, const float *expected)
{
	uint32_t n = l->o.reply_b / sizeof(float);
	double off = 0, scale = 0;

	for (uint32_t i = 0; i < n; i++) {
		double d = fabs((double)got[i] - (double)expected[i]);

		off = d > off || isnan(d) ? d : off;
		scale = fabs((double)expected[i]) > scale ? fabs((double)expected[i]) : scale;
	}
	off /= scale > 0 ? scale : 1;
	l->worst = off > l->worst || isnan(off) ? off : l->worst;
	if (!(off <= l->o.tolerance))
		l->wrong++;
	if (load_largest(got, n) != load_largest(expected, n))
		l->other_class++;
}

static void load_note(struct load *l, uint64_t now, uint64_t begun_ns)
{
	l->measured += now >= l->measure_ns && now < l->end_ns;
	/* Also one that is answered after the end, or slow ones would be left out. */
	if (begun_ns < l->measure_ns || begun_ns >= l->end_ns)
		return;
	if (l->n_latencies == l->room_latencies) {
		l->room_latencies = 2 * l->room_latencies + 65536;
		l->latency_us = realloc(l->latency_us, l->room_latencies * sizeof(uint32_t));
		if (l->latency_us == NULL)
			err(1, "memory");
	}
	l->latency_us[l->n_latencies++] = (uint32_t)((now - begun_ns) / 1000);
}

/* A reply is whole: compare it, and ask again. */
static void load_answered(struct load *l, struct load_connection *c)
{
	const uint8_t *expected = l->replies + (size_t)c->row * l->o.reply_b;
	uint64_t now = load_now_ns();

	load_note(l, now, c->begun_ns);
	l->answered++;
	c->busy = false;
	if (c->got != l->o.reply_b)
		l->wrong++;
	else if (l->o.tolerance > 0)
		load_compare_floats(l, (const void *)c->reply, (const void *)expected);
	else if (memcmp(c->reply, expected, l->o.reply_b) != 0)
		l->wrong++;
	if (l->o.rate == 0 && now < l->end_ns)
		load_ask(l, c, load_now_ns());
}

/* The head of a chunk of framing `length`. */
static void load_head_length(struct load *l, struct load_connection *c)
{
	uint32_t word[2];

	memcpy(word, c->head, sizeof(word));
	c->chunk_left = le32toh(word[0]);
	c->last = le32toh(word[1]) != LOAD_MORE;
	c->head_have = 0;
	if (le32toh(word[1]) != 0 && c->last) {
		warnx("refused: notice %u", le32toh(word[1]));
		l->refused++;
	}
}

/* The head of an HTTP response. */
static void load_head_http(struct load *l, struct load_connection *c)
{
	char *line = c->head, *length, *json;

	c->head[c->head_have] = '\0';
	if (strncmp(line, "HTTP/1.1 200", 12) != 0) {
		warnx("refused: %.*s", (int)strcspn(line, "\r\n"), line);
		l->refused++;
	}
	length = strcasestr(line, "\r\nContent-Length:");
	if (length == NULL)
		errx(1, "no Content-Length in: %s", line);
	c->chunk_left = (uint32_t)strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
	json = strcasestr(line, LOAD_JSON_LENGTH);
	if (json != NULL)
		c->json_left = (uint32_t)strtoul(json + strlen(LOAD_JSON_LENGTH), NULL, 10);
	if (c->json_left > c->chunk_left)
		errx(1, "a body of %u bytes with JSON of %u", c->chunk_left, c->json_left);
	c->chunk_left -= c->json_left;
	c->last = true;
}

/* Receive bytes of a head, never more than it has. Returns what recv() does. */
static ssize_t load_receive_head(struct load *l, struct load_connection *c)
{
	uint32_t room = LOAD_LENGTH_HEAD - c->head_have, end;
	ssize_t n;
	char *stop;

	if (l->o.post == NULL) {
		n = recv(c->fd, c->head + c->head_have, room, 0);
		if (n > 0 && (c->head_have += (uint32_t)n) == LOAD_LENGTH_HEAD)
			load_head_length(l, c);
		return n;
	}
	room = LOAD_HEAD_MAX - 1 - c->head_have;
	if (room == 0)
		errx(1, "an HTTP head of %u bytes", c->head_have);
	n = recv(c->fd, c->head + c->head_have, room, MSG_PEEK);
	if (n <= 0)
		return n;
	stop = memmem(c->head, c->head_have + (uint32_t)n, "\r\n\r\n", 4);
	end = stop == NULL ? c->head_have + (uint32_t)n : (uint32_t)(stop - c->head) + 4;
	n = recv(c->fd, c->head + c->head_have, end - c->head_have, 0);
	c->head_have = end;
	if (stop != NULL)
		load_head_http(l, c);
	return n;
}

/* The response describes its tensors; only their bytes are compared. */
static ssize_t load_receive_json(struct load_connection *c)
{
	char json[LOAD_HEAD_MAX];
	ssize_t n = recv(c->fd, json, c->json_left < sizeof(json) ? c->json_left : sizeof(json), 0);

	if (n > 0)
		c->json_left -= (uint32_t)n;
	return n;
}

static ssize_t load_receive_body(struct load *l, struct load_connection *c)
{
	ssize_t n;

	if (c->got + c->chunk_left > l->o.reply_b)
		errx(1, "a reply of %u bytes and more, not %u", c->got + c->chunk_left,
		     l->o.reply_b);
	n = recv(c->fd, c->reply + c->got, c->chunk_left, 0);
	if (n > 0) {
		c->got += (uint32_t)n;
		c->chunk_left -= (uint32_t)n;
	}
	return n;
}

static ssize_t load_receive_some(struct load *l, struct load_connection *c)
{
	if (c->json_left > 0)
		return load_receive_json(c);
	return c->chunk_left > 0 ? load_receive_body(l, c) : load_receive_head(l, c);
}

static void load_receive(struct load *l, struct load_connection *c)
{
	while (c->busy) {
		ssize_t n = load_receive_some(l, c);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			err(1, "receive");
		if (n == 0)
			errx(1, "the server has closed a connection");
		if (c->last && c->json_left == 0 && c->chunk_left == 0)
			load_answered(l, c);
	}
}

/* --- the whole ----------------------------------------------------------------------------------
 */

static void load_connect(struct load *l, struct load_connection *c)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
	int one = 1;

	c->reply = malloc(l->o.reply_b);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->reply == NULL || c->fd < 0)
		err(1, "socket");
	if (connect(c->fd, (const void *)&l->o.to, sizeof(l->o.to)) != 0)
		err(1, "connect");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	epoll_ctl(l->poll, EPOLL_CTL_ADD, c->fd, &event);
}

static bool load_is_open(const struct load *l)
{
	for (uint32_t i = 0; i < l->o.open; i++)
		if (l->connection[i].busy)
			return true;
	return false;
}

/* With a rate it does not sleep, unless told to: a timer comes late. */
static struct timespec load_wait(const struct load *l, uint64_t now)
{
	uint64_t ns = 100000000;

	if (l->o.spin || (l->o.rate > 0 && !l->o.sleep))
		ns = 0;
	else if (l->o.rate > 0 && now < l->end_ns)
		ns = l->due_ns > now ? l->due_ns - now : 0;
	return (struct timespec){.tv_nsec = (long)(ns < 100000000 ? ns : 100000000)};
}

static void load_run(struct load *l)
{
	struct epoll_event events[LOAD_EVENTS];
	uint64_t now = load_now_ns();

	while (now < l->end_ns || load_is_open(l)) {
		struct timespec wait = load_wait(l, now);
		int n = epoll_pwait2(l->poll, events, LOAD_EVENTS, &wait, NULL);

		for (int i = 0; i < n; i++) {
			struct load_connection *c = events[i].data.ptr;

			if (c->busy)
				load_send(l, c);
			load_receive(l, c);
		}
		now = load_now_ns();
		if (l->o.rate > 0)
			load_ask_due(l, now);
		if (now > l->end_ns + LOAD_PATIENCE_NS)
			return;
	}
}

static const uint8_t *load_file(const char *path, size_t *size)
{
	struct stat found;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at;

	if (fd < 0 || fstat(fd, &found) != 0)
		err(1, "%s", path);
	at = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (at == MAP_FAILED)
		err(1, "%s", path);
	close(fd);
	*size = (size_t)found.st_size;
	return at;
}

static void load_open(struct load *l)
{
	size_t up, down;

	l->requests = load_file(l->o.requests, &up);
	l->replies = load_file(l->o.replies, &down);
	l->rows = (uint32_t)(up / l->o.request_b);
	if (l->rows == 0 || up % l->o.request_b != 0 || down != (size_t)l->rows * l->o.reply_b)
		errx(1, "%s has %zu bytes and %s %zu: not as many rows of %u and %u", l->o.requests, up,
		     l->o.replies, down, l->o.request_b, l->o.reply_b);
	l->next_row = (uint32_t)l->o.seed;
	load_make_front(l);
	l->poll = epoll_create1(EPOLL_CLOEXEC);
	l->connection = calloc(l->o.open, sizeof(*l->connection));
	if (l->connection == NULL)
		err(1, "memory");
	for (uint32_t i = 0; i < l->o.open; i++)
		load_connect(l, &l->connection[i]);
	l->begin_ns = load_now_ns();
	l->measure_ns = l->begin_ns + (uint64_t)(l->o.warm_up_s * 1e9);
	l->end_ns = l->measure_ns + (uint64_t)(l->o.seconds * 1e9);
	l->due_ns = l->begin_ns;
	for (uint32_t i = 0; l->o.rate == 0 && i < l->o.open; i++)
		load_ask(l, &l->connection[i], load_now_ns());
}

/* Latencies go to a file: those of several clients are one distribution. */
static void load_report(const struct load *l)
{
	FILE *file = l->o.latencies == NULL ? NULL : fopen(l->o.latencies, "wb");

	if (l->o.latencies != NULL &&
	    (file == NULL ||
	     fwrite(l->latency_us, sizeof(uint32_t), l->n_latencies, file) != l->n_latencies ||
	     fclose(file) != 0))
		err(1, "%s", l->o.latencies);
	printf("{\"asked\": %lu, \"answered\": %lu, \"wrong\": %lu, \"other_class\": %lu, "
	       "\"refused\": %lu, \"lost\": %lu, \"worst\": %.3e, \"measured\": %lu, "
	       "\"seconds\": %.3f}\n",
	       (unsigned long)l->asked, (unsigned long)l->answered, (unsigned long)l->wrong,
	       (unsigned long)l->other_class, (unsigned long)l->refused,
	       (unsigned long)(l->asked - l->answered), l->worst, (unsigned long)l->measured,
	       l->o.seconds);
}

/* --- options ------------------------------------------------------------------------------------
 */

static void load_take_address(struct load_options *o, char *text)
{
	char *colon = strchr(text, ':');

	if (colon == NULL)
		errx(2, "--to ADDRESS:PORT");
	*colon = '\0';
	o->to = (struct sockaddr_in){.sin_family = AF_INET,
				     .sin_port = htons((uint16_t)atoi(colon + 1))};
	if (inet_pton(AF_INET, text, &o->to.sin_addr) != 1)
		errx(2, "--to: %s is no IPv4 address", text);
}

static const struct option load_long_options[] = {
	{"to", required_argument, NULL, 't'},
	{"post", required_argument, NULL, 'h'},
	{"spin", no_argument, NULL, 'p'},
	{"sleep", no_argument, NULL, 'z'},
	{"requests", required_argument, NULL, 'q'},
	{"replies", required_argument, NULL, 'a'},
	{"latencies", required_argument, NULL, 'l'},
	{"request-bytes", required_argument, NULL, 'u'},
	{"reply-bytes", required_argument, NULL, 'd'},
	{"open", required_argument, NULL, 'o'},
	{"seconds", required_argument, NULL, 's'},
	{"warm-up", required_argument, NULL, 'w'},
	{"rate", required_argument, NULL, 'r'},
	{"tolerance", required_argument, NULL, 'e'},
	{"seed", required_argument, NULL, 'n'},
	{0},
};

static void load_take_option(struct load_options *o, int option)
{
	switch (option) {
	case 't': load_take_address(o, optarg); break;
	case 'h':
		o->post = optarg;
		break;
	case 'p': o->spin = true; break;
	case 'z':
		o->sleep = true;
		break;
	case 'q': o->requests = optarg; break;
	case 'a': o->replies = optarg; break;
	case 'l': o->latencies = optarg; break;
	case 'u': o->request_b = (uint32_t)strtoul(optarg, NULL, 10); break;
	case 'd': o->reply_b = (uint32_t)strtoul(optarg, NULL, 10); break;
	case 'o': o->open = (uint32_t)strtoul(optarg, NULL, 10); break;
	case 's': o->seconds = atof(optarg); break;
	case 'w': o->warm_up_s = atof(optarg); break;
	case 'r': o->rate = atof(optarg); break;
	case 'e': o->tolerance = atof(optarg); break;
	case 'n': o->seed = strtoull(optarg, NULL, 10); break;
	default: exit(2);
	}
}

int main(int argc, char **argv)
{
	struct load l = {.o = {.open = 1, .seconds = 1, .seed = 1}};
	int option;

	while ((option = getopt_long(argc, argv, "", load_long_options, NULL)) != -1)
		load_take_option(&l.o, option);
	if (l.o.to.sin_family == 0 || l.o.requests == NULL || l.o.replies == NULL ||
	    l.o.request_b == 0 || l.o.reply_b == 0 || l.o.open == 0)
		errx(2, "--to, --requests, --replies, --request-bytes and --reply-bytes are needed");
	load_open(&l);
	load_run(&l);
	load_report(&l);
	return l.wrong + l.refused > 0 || l.answered == 0 || l.answered < l.asked;
}
