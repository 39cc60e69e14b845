/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request is in one place at a time:
 *
 *   submit -> queue -> sent, with a slot -> finished -> the caller
 *               ^             |
 *               +-- backoff <-+  where the status and the request allow another try
 *
 * A slot is the client's memory of an answer that is to come. `tagged`: slot id % slots; ids count
 * up from a random number and none is used again, so that a late answer finds no slot. `length`:
 * the slots are a ring in the order of requests; a request that is given up leaves its slot behind,
 * for the answer that will come. `datagram`: one slot, and a socket for each request.
 */
#include "doorbell_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define TAGGED_HEAD      24
#define LENGTH_HEAD      4 /* of a request; of an answer 8 */
#define LENGTH_ANSWER    8
#define LENGTH_MORE      256
#define NOTICE_LENGTH    16
#define NOTICE_ID_AT     8
#define ADDRESSES_MAX    8
#define IN_FLIGHT_MAX    65536
#define SCRATCH_SIZE     65536 /* above the largest datagram */
#define READS_MAX        64    /* of one process(), so that it ends */
#define DEADLINE_DEFAULT 12000 /* ms; the services' default limits, 10 s and 1 s, and some way */
#define PROGRESS         4096  /* bytes of an answer; fewer in silence_ms are none */
#define NEVER            INT64_MAX

enum {
	KIND_REQUEST = 1,
	KIND_CANCEL = 2,
	KIND_REPLY = 3,
	KIND_NOTICE = 4,
};

enum place {
	PLACE_CALLER,
	PLACE_QUEUE,
	PLACE_BACKOFF,
	PLACE_SENT,
	PLACE_FINISHED,
};

enum state {
	STATE_CLOSED,
	STATE_CONNECTING,
	STATE_OPEN,
};

static const uint8_t tagged_magic[5] = {0xdb, 'D', 'B', 'Q', 1};
static const uint8_t notice_magic[5] = {0xdb, 'D', 'B', 'N', 1};

struct list {
	struct doorbell_request *first, **last;
};

struct slot {
	struct doorbell_request *request; /* NULL: given up */
	uint64_t id;
	bool used;
};

struct address {
	struct sockaddr_storage at;
	socklen_t length;
};

/* The frame that is being written: a head, and the bytes of a request; or the head of a cancel. */
struct frame {
	uint8_t head[TAGGED_HEAD];
	size_t head_length; /* 0: nothing is being written */
	size_t sent;        /* of head and bytes */
	struct doorbell_request *request;
};

/* The answer that is being read from a TCP connection. */
struct answer {
	uint8_t head[TAGGED_HEAD];
	size_t got; /* of the head */
	bool in_body;
	bool more;                        /* chunks follow this one */
	struct doorbell_request *request; /* NULL: nobody waits for the bytes */
	uint64_t left;                    /* bytes of the chunk */
};

struct doorbell_client {
	struct doorbell_options options;
	struct address addresses[ADDRESSES_MAX];
	uint32_t n_addresses, address, addresses_failed;
	int fd;
	enum state state;
	bool blocked;     /* the socket takes no more for now */
	bool socket_used; /* `datagram`: an answer to another request may come to it */
	uint64_t frames;  /* begun on this connection */
	int64_t connect_until;
	int64_t waiting_since; /* TCP: an answer is to come, and none did since. 0: not waiting */
	uint64_t answers;      /* TCP: complete chunks and notices */
	size_t progress;       /* TCP: bytes since the last of them */
	int64_t due;           /* nothing happens by time before this */
	struct list queue, backoff, finished;
	struct slot *slots;
	uint32_t mask, n_used, head; /* <head>: oldest of the ring */
	uint64_t next_id, random;
	uint64_t *cancels; /* ids; a ring of as many as there are slots */
	uint32_t first_cancel, n_cancels;
	struct frame frame;
	struct answer answer;
	struct doorbell_counters counters;
	char error[DOORBELL_ERROR_SIZE];
	uint8_t scratch[SCRATCH_SIZE];
};

static void client_lost(struct doorbell_client *c, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* --- time, lists, numbers ------------------------------------------------------------------- */

/* us */
static int64_t client_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void list_init(struct list *l)
{
	l->first = NULL;
	l->last = &l->first;
}

static void list_add(struct list *l, struct doorbell_request *r, enum place place)
{
	r->place = (uint8_t)place;
	r->next = NULL;
	r->link = l->last;
	*l->last = r;
	l->last = &r->next;
}

static void list_remove(struct list *l, struct doorbell_request *r)
{
	*r->link = r->next;
	if (r->next != NULL)
		r->next->link = r->link;
	else
		l->last = r->link;
	r->place = PLACE_CALLER;
}

static uint64_t client_random(struct doorbell_client *c)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return c->random;
}

static uint32_t get_be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_be32(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t get_le32(const uint8_t *at)
{
	return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static uint64_t get_id(const uint8_t *at)
{
	return (uint64_t)get_be32(at) << 32 | get_be32(at + 4);
}

/* --- words ---------------------------------------------------------------------------------- */

const char *doorbell_client_text(int status)
{
	static const char *const notice[] = {
		"ok",        "busy",     "timeout",   "worker lost", "model error", "expired",
		"cancelled", "deadline", "malformed", "stopping",    "too large",
	};
	static const char *const own[] = {
		"no answer",      "not sent",        "disconnected",
		"protocol error", "reply too large", "reply incomplete",
	};

	if (status == DOORBELL_PENDING)
		return "pending";
	if (status >= 0 && status <= DOORBELL_TOO_LARGE)
		return notice[status];
	if (status >= DOORBELL_NO_ANSWER && status <= DOORBELL_REPLY_CUT)
		return own[status - DOORBELL_NO_ANSWER];
	return "unknown notice";
}

enum doorbell_ran doorbell_client_ran(int status)
{
	switch (status) {
	case DOORBELL_BUSY:
	case DOORBELL_EXPIRED:
	case DOORBELL_MALFORMED:
	case DOORBELL_STOPPING:
	case DOORBELL_TOO_LARGE:
	case DOORBELL_NOT_SENT:
		return DOORBELL_NEVER_RAN;
	case DOORBELL_OK:
	case DOORBELL_REPLY_LARGE:
	case DOORBELL_REPLY_CUT:
		return DOORBELL_RAN;
	default:
		return DOORBELL_MAY_HAVE_RUN;
	}
}

const char *doorbell_client_error(const struct doorbell_client *c)
{
	return c->error;
}

struct doorbell_counters doorbell_client_counters(const struct doorbell_client *c)
{
	return c->counters;
}

/* --- the end of a try ----------------------------------------------------------------------- */

static bool client_retries(const struct doorbell_request *r, int status)
{
	if (r->tries > r->retries || r->chunks > 0)
		return false;
	switch (status) {
	case DOORBELL_BUSY:
	case DOORBELL_STOPPING:
	case DOORBELL_NOT_SENT:
		return true;
	case DOORBELL_TIMEOUT:
	case DOORBELL_WORKER_LOST:
	case DOORBELL_NO_ANSWER:
	case DOORBELL_DISCONNECTED:
		return r->idempotent;
	default:
		return status > DOORBELL_TOO_LARGE && status < DOORBELL_NO_ANSWER && r->idempotent;
	}
}

/* us until the next try. */
static int64_t client_backoff(struct doorbell_client *c, const struct doorbell_request *r,
			      int status)
{
	int64_t wait = c->options.backoff_ms;

	/* Another worker takes it at once; and who was silent has been waited for. */
	if (status == DOORBELL_WORKER_LOST || status == DOORBELL_NO_ANSWER)
		return 0;
	for (uint32_t i = 1; i < r->tries && wait < c->options.backoff_max_ms; i++)
		wait *= 2;
	if (wait > c->options.backoff_max_ms)
		wait = c->options.backoff_max_ms;
	wait *= 1000;
	return wait - (int64_t)(client_random(c) % (uint64_t)(wait / 2 + 1));
}

static void client_due(struct doorbell_client *c, int64_t due)
{
	if (due < c->due)
		c->due = due;
}

static void client_finish(struct doorbell_client *c, struct doorbell_request *r, int status)
{
	r->status = status;
	list_add(&c->finished, r, PLACE_FINISHED);
}

/* A try of <r>, which is in no place now, ended with <status>. */
static void client_over(struct doorbell_client *c, struct doorbell_request *r, int status)
{
	r->answer = status;
	if (client_retries(r, status)) {
		r->due = client_now() + client_backoff(c, r, status);
		if (r->due < r->deadline) {
			r->reply_length = 0;
			list_add(&c->backoff, r, PLACE_BACKOFF);
			client_due(c, r->due);
			return;
		}
	}
	client_finish(c, r, status);
}

/* --- slots ---------------------------------------------------------------------------------- */

static bool client_in_order(const struct doorbell_client *c)
{
	return c->options.framing == DOORBELL_LENGTH;
}

static void slot_take(struct doorbell_client *c, struct doorbell_request *r)
{
	uint32_t at = (c->head + c->n_used) & c->mask;

	if (!client_in_order(c)) {
		/* 0 is no request's: a notice about the connection has it. */
		while (c->next_id == 0 || c->slots[c->next_id & c->mask].used)
			c->next_id++;
		r->id = c->next_id++;
		at = (uint32_t)(r->id & c->mask);
	}
	c->slots[at] = (struct slot){.request = r, .id = r->id, .used = true};
	c->n_used++;
	r->slot = at;
}

static void slot_free(struct doorbell_client *c, uint32_t at)
{
	c->slots[at].used = false;
	c->slots[at].request = NULL;
	c->n_used--;
	if (client_in_order(c) && at == c->head)
		c->head = (c->head + 1) & c->mask;
}

/* NULL: no request that waits has this id. */
static struct doorbell_request *slot_find(struct doorbell_client *c, uint64_t id)
{
	struct slot *s = &c->slots[id & c->mask];

	return s->used && s->id == id ? s->request : NULL;
}

/* The answer to the request in slot <at> is complete. */
static void slot_settle(struct doorbell_client *c, uint32_t at, int status)
{
	struct doorbell_request *r = c->slots[at].request;

	slot_free(c, at);
	if (r == NULL)
		return;
	if (status == DOORBELL_OK && r->reply_length > r->reply_size)
		status = DOORBELL_REPLY_LARGE;
	if (status == DOORBELL_OK || status == DOORBELL_REPLY_LARGE)
		c->counters.replies++;
	/* One that is refused while it is still being written: its bytes are needed to the end. */
	if (r == c->frame.request)
		r->answer = status;
	else
		client_over(c, r, status);
}

/* --- connections ---------------------------------------------------------------------------- */

static void client_say(struct doorbell_client *c, const char *format, va_list arguments)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];
	const struct address *a = &c->addresses[c->address];
	int n;

	if (getnameinfo((const struct sockaddr *)&a->at, a->length, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		host[0] = port[0] = '\0';
	n = snprintf(c->error, sizeof(c->error),
		     a->at.ss_family == AF_INET6 ? "[%.64s]:%.8s: " : "%.64s:%.8s: ", host, port);
	vsnprintf(c->error + n, sizeof(c->error) - (size_t)n, format, arguments);
}

static void client_close_socket(struct doorbell_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->state = STATE_CLOSED;
	c->blocked = false;
}

static void client_next_address(struct doorbell_client *c)
{
	c->address = (c->address + 1) % c->n_addresses;
}

/* No address can be reached: that was a try for all that wait. */
static void client_fail_queue(struct doorbell_client *c)
{
	struct doorbell_request *r;
	struct list all = c->queue;

	list_init(&c->queue);
	while ((r = all.first) != NULL) {
		all.first = r->next;
		r->tries++;
		client_over(c, r, DOORBELL_NOT_SENT);
	}
}

static void client_forget_connection(struct doorbell_client *c)
{
	client_close_socket(c);
	c->frame.head_length = 0;
	c->frame.request = NULL;
	c->answer = (struct answer){0};
	c->n_cancels = 0;
	c->waiting_since = 0;
	c->progress = 0;
}

/* The connection has ended, or is ended: <status> is what became of the requests sent over it. */
static void client_lost(struct doorbell_client *c, int status, const char *format, ...)
{
	struct doorbell_request *half = c->frame.request;
	bool useless = c->frames == 0;
	va_list arguments;

	va_start(arguments, format);
	client_say(c, format, arguments);
	va_end(arguments);
	client_forget_connection(c);
	client_next_address(c);
	if (half != NULL) {
		if (half->answer == DOORBELL_PENDING) {
			slot_free(c, half->slot);
			half->answer = DOORBELL_NOT_SENT;
		}
		client_over(c, half, half->answer);
	}
	for (uint32_t i = 0, at = c->head; i <= c->mask; i++, at = (at + 1) & c->mask) {
		struct doorbell_request *r = c->slots[at].request;

		c->slots[at] = (struct slot){0};
		if (r != NULL)
			client_over(c, r, status);
	}
	c->n_used = c->head = 0;
	/* It was opened, and closed by the peer before anything was sent. */
	if (useless)
		client_fail_queue(c);
}

static int client_socket(struct doorbell_client *c)
{
	const struct address *a = &c->addresses[c->address];
	bool tcp = c->options.protocol == DOORBELL_TCP;
	int one = 1, error;
	int fd = socket(a->at.ss_family,
			(tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (tcp)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)&a->at, a->length) < 0 && errno != EINPROGRESS) {
		error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

static void client_opened(struct doorbell_client *c)
{
	c->state = STATE_OPEN;
	c->addresses_failed = 0;
	c->socket_used = false;
	c->frames = 0;
	c->counters.connections++;
}

static void client_complain(struct doorbell_client *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void client_complain(struct doorbell_client *c, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	client_say(c, format, arguments);
	va_end(arguments);
}

/* The address does not let us in. True: there is another one to try. */
static bool client_connect_failed(struct doorbell_client *c, int error)
{
	client_complain(c, "no connection: %s", strerror(error));
	client_close_socket(c);
	client_next_address(c);
	if (++c->addresses_failed < c->n_addresses)
		return true;
	c->addresses_failed = 0;
	client_fail_queue(c);
	return false;
}

static void client_connect(struct doorbell_client *c)
{
	int fd;

	do {
		fd = client_socket(c);
	} while (fd < 0 && client_connect_failed(c, -fd));
	if (fd < 0)
		return;
	c->fd = fd;
	c->state = STATE_CONNECTING;
	c->connect_until = client_now() + (int64_t)c->options.connect_ms * 1000;
	client_due(c, c->connect_until);
	if (c->options.protocol == DOORBELL_UDP)
		client_opened(c);
}

static void client_connecting(struct doorbell_client *c, int64_t now)
{
	struct pollfd p = {.fd = c->fd, .events = POLLOUT};
	int error = 0;
	socklen_t length = sizeof(error);

	if (poll(&p, 1, 0) <= 0) {
		error = now >= c->connect_until ? ETIMEDOUT : 0;
		if (error == 0)
			return;
	} else if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0) {
		error = errno;
	}
	if (error == 0)
		client_opened(c);
	else if (client_connect_failed(c, error))
		client_connect(c);
}

/* --- giving up ------------------------------------------------------------------------------ */

static void client_add_cancel(struct doorbell_client *c, uint64_t id)
{
	if (c->options.framing != DOORBELL_TAGGED || c->n_cancels > c->mask)
		return;
	c->cancels[(c->first_cancel + c->n_cancels++) & c->mask] = id;
}

/* The caller does not want the answer any more. */
static void client_drop_sent(struct doorbell_client *c, struct doorbell_request *r)
{
	if (c->answer.request == r)
		c->answer.request = NULL;
	if (client_in_order(c)) {
		c->slots[r->slot].request = NULL;
		return;
	}
	slot_free(c, r->slot);
	client_add_cancel(c, r->id);
}

/* Take a pending request out of its place. True: a part of it was written, which costs the
 * connection. */
static bool client_forget(struct doorbell_client *c, struct doorbell_request *r)
{
	/* An answer that begins before its request is written belongs to it all the same. */
	bool half = c->frame.request == r && (c->frame.sent > 0 || c->answer.request == r);

	if (r->place == PLACE_QUEUE) {
		list_remove(&c->queue, r);
	} else if (r->place == PLACE_BACKOFF) {
		list_remove(&c->backoff, r);
	} else if (c->frame.request == r) {
		c->frame.request = NULL;
		c->frame.head_length = 0;
		if (r->answer == DOORBELL_PENDING)
			slot_free(c, r->slot); /* the newest of the ring */
		if (half)
			client_lost(c, DOORBELL_DISCONNECTED,
				    "closed: a request was given up while it was being written");
	} else {
		client_drop_sent(c, r);
	}
	r->place = PLACE_CALLER;
	return half;
}

/* --- time ----------------------------------------------------------------------------------- */

static int64_t request_due(const struct doorbell_request *r)
{
	return r->place == PLACE_QUEUE || r->deadline < r->due ? r->deadline : r->due;
}

/* The first request for which the time has come. NULL: none, and <next> is when one is due. */
static struct doorbell_request *client_first_due(struct doorbell_client *c, int64_t now,
						 int64_t *next)
{
	struct doorbell_request *lists[] = {c->queue.first, c->backoff.first, NULL};

	*next = NEVER;
	lists[2] = c->frame.request;
	for (uint32_t i = 0; i <= c->mask + 3; i++) {
		bool is_list = i < 3;
		struct doorbell_request *r = is_list ? lists[i] : c->slots[i - 3].request;

		for (; r != NULL; r = i < 2 ? r->next : NULL) {
			int64_t due = request_due(r);

			if (due <= now)
				return r;
			if (due < *next)
				*next = due;
		}
	}
	return NULL;
}

static void client_ring(struct doorbell_client *c, struct doorbell_request *r, int64_t now)
{
	bool was_sent = r->place == PLACE_SENT, was_waiting = r->place == PLACE_BACKOFF;

	if (now < r->deadline && was_waiting) {
		list_remove(&c->backoff, r);
		list_add(&c->queue, r, PLACE_QUEUE);
		return;
	}
	if (was_sent) {
		int status = client_forget(c, r) ? DOORBELL_NOT_SENT : DOORBELL_NO_ANSWER;

		if (r->answer != DOORBELL_PENDING)
			status = r->answer;
		if (now < r->deadline)
			client_over(c, r, status);
		else
			client_finish(c, r, status);
		return;
	}
	client_forget(c, r);
	client_finish(c, r, r->tries > 0 ? r->answer : DOORBELL_NOT_SENT);
}

static void client_timers(struct doorbell_client *c, int64_t now)
{
	int64_t silence = (int64_t)c->options.silence_ms * 1000, next;
	struct doorbell_request *r;

	if (now < c->due)
		return;
	if (c->waiting_since != 0 && now - c->waiting_since >= silence)
		client_lost(c, DOORBELL_DISCONNECTED, "closed: nothing came for %u ms",
			    c->options.silence_ms);
	while ((r = client_first_due(c, now, &next)) != NULL)
		client_ring(c, r, now);
	/* So that many that are due one after the other cost one look per ms. */
	c->due = next < now + 1000 ? now + 1000 : next;
	if (c->waiting_since != 0)
		client_due(c, c->waiting_since + silence);
	if (c->state == STATE_CONNECTING)
		client_due(c, c->connect_until);
}

/* --- reading -------------------------------------------------------------------------------- */

static void client_ignore(struct doorbell_client *c)
{
	c->counters.ignored++;
}

static void request_take_bytes(struct doorbell_request *r, const uint8_t *bytes, size_t n)
{
	size_t room = r->reply_length < r->reply_size ? r->reply_size - r->reply_length : 0;

	if (n > 0 && room > 0)
		memcpy((uint8_t *)r->reply + r->reply_length, bytes, n < room ? n : room);
	r->reply_length += n;
}

static void client_notice(struct doorbell_client *c, uint64_t id, uint8_t code)
{
	struct doorbell_request *r = slot_find(c, id);

	c->counters.notices++;
	if (r == NULL)
		return client_ignore(c);
	slot_settle(c, r->slot, code);
}

static bool is_notice(const uint8_t *at, size_t n)
{
	return n == NOTICE_LENGTH && memcmp(at, notice_magic, sizeof(notice_magic)) == 0 &&
	       at[5] != 0;
}

/* Do the fields behind magic and version name a reply, and no kind that only clients send? */
static bool is_reply_head(const uint8_t *head)
{
	return memcmp(head, tagged_magic, sizeof(tagged_magic)) == 0 && head[5] == KIND_REPLY &&
	       head[6] <= 1 && head[7] == 0;
}

static void client_take_tagged_datagram(struct doorbell_client *c, const uint8_t *at, size_t n)
{
	struct doorbell_request *r;
	uint32_t chunk;

	if (is_notice(at, n))
		return client_notice(c, get_id(at + NOTICE_ID_AT), at[5]);
	if (n < TAGGED_HEAD || !is_reply_head(at) || get_be32(at + 20) != 0)
		return client_ignore(c);
	r = slot_find(c, get_id(at + 8));
	chunk = get_be32(at + 16);
	if (r == NULL || chunk < r->chunks)
		return client_ignore(c);
	if (chunk > r->chunks)
		return slot_settle(c, r->slot, DOORBELL_REPLY_CUT);
	request_take_bytes(r, at + TAGGED_HEAD, n - TAGGED_HEAD);
	r->chunks++;
	if (at[6] == 0)
		slot_settle(c, r->slot, DOORBELL_OK);
}

/* A notice has the first 8 bytes of the request. */
static bool is_notice_for(const struct doorbell_request *r, const uint8_t *at)
{
	uint8_t first[8] = {0};

	memcpy(first, r->data, r->length < sizeof(first) ? r->length : sizeof(first));
	return memcmp(first, at + NOTICE_ID_AT, sizeof(first)) == 0;
}

static void client_take_plain_datagram(struct doorbell_client *c, const uint8_t *at, size_t n)
{
	struct doorbell_request *r = NULL;

	for (uint32_t i = 0; i <= c->mask && r == NULL; i++)
		r = c->slots[i].request;
	if (is_notice(at, n)) {
		c->counters.notices++;
		if (r == NULL || !is_notice_for(r, at))
			return client_ignore(c);
		return slot_settle(c, r->slot, at[5]);
	}
	if (r == NULL)
		return client_ignore(c);
	request_take_bytes(r, at, n);
	r->chunks++;
	slot_settle(c, r->slot, DOORBELL_OK);
}

static void client_begin_body(struct doorbell_client *c, struct doorbell_request *r, bool more,
			      uint32_t length)
{
	c->answer.request = r;
	c->answer.in_body = true;
	c->answer.more = more;
	c->answer.left = length;
	if (r == NULL)
		client_ignore(c);
}

static void client_end_body(struct doorbell_client *c)
{
	struct doorbell_request *r = c->answer.request;

	c->answers++;
	c->answer.in_body = false;
	c->answer.request = NULL;
	if (r != NULL)
		r->chunks++;
	if (c->answer.more)
		return;
	if (r != NULL)
		slot_settle(c, r->slot, DOORBELL_OK);
	else if (client_in_order(c))
		slot_free(c, c->head);
}

/* False: the connection is lost. */
static bool client_take_tagged_head(struct doorbell_client *c)
{
	const uint8_t *head = c->answer.head;
	uint32_t length = get_be32(head + 20);
	uint64_t id = get_id(head + 8);
	struct doorbell_request *r;

	if (memcmp(head, tagged_magic, sizeof(tagged_magic)) == 0 && head[5] == KIND_NOTICE &&
	    head[6] != 0 && head[7] == 0 && length == 0) {
		c->answers++;
		if (id == 0)
			client_complain(c, "notice to this connection: %s",
					doorbell_client_text(head[6]));
		client_notice(c, id, head[6]);
		return true;
	}
	if (!is_reply_head(head)) {
		client_lost(c, DOORBELL_PROTOCOL, "closed: what came is no header of an answer");
		return false;
	}
	if (length > c->options.max_reply) {
		client_lost(c, DOORBELL_PROTOCOL, "closed: a chunk claims %u bytes", length);
		return false;
	}
	r = slot_find(c, id);
	if (r != NULL && r->chunks != get_be32(head + 16)) {
		client_lost(c, DOORBELL_PROTOCOL, "closed: chunk %u came where %u was due",
			    get_be32(head + 16), r->chunks);
		return false;
	}
	client_begin_body(c, r, head[6] == 1, length);
	return true;
}

static bool client_take_length_head(struct doorbell_client *c)
{
	uint32_t length = get_le32(c->answer.head), status = get_le32(c->answer.head + 4);

	if (c->n_used == 0) {
		client_lost(c, DOORBELL_PROTOCOL, "closed: an answer came that nothing asked for");
		return false;
	}
	if (status > LENGTH_MORE || length > c->options.max_reply ||
	    (status != 0 && status != LENGTH_MORE && length != 0)) {
		client_lost(c, DOORBELL_PROTOCOL, "closed: an answer claims status %u and %u bytes",
			    status, length);
		return false;
	}
	if (status == 0 || status == LENGTH_MORE) {
		client_begin_body(c, c->slots[c->head].request, status == LENGTH_MORE, length);
		return true;
	}
	c->answers++;
	c->counters.notices++;
	if (c->slots[c->head].request == NULL)
		client_ignore(c);
	slot_settle(c, c->head, (int)status);
	return true;
}

/* The next <n> bytes of the stream. False: the connection is lost. */
static bool client_take_stream(struct doorbell_client *c, const uint8_t *at, size_t n)
{
	struct answer *a = &c->answer;
	size_t head = client_in_order(c) ? LENGTH_ANSWER : TAGGED_HEAD, take;

	while (n > 0 || (a->in_body && a->left == 0)) {
		if (a->in_body) {
			take = n < a->left ? n : (size_t)a->left;
			if (a->request != NULL)
				request_take_bytes(a->request, at, take);
			a->left -= take;
			if (a->left == 0)
				client_end_body(c);
		} else {
			take = n < head - a->got ? n : head - a->got;
			memcpy(a->head + a->got, at, take);
			a->got += take;
			if (a->got == head) {
				a->got = 0;
				if (!(client_in_order(c) ? client_take_length_head(c)
							 : client_take_tagged_head(c)))
					return false;
			}
		}
		at += take;
		n -= take;
	}
	return true;
}

static bool is_transient(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ENOBUFS ||
	       error == ENOMEM;
}

/* The bytes of a long chunk go to their place without a copy. */
static size_t client_read_room(struct doorbell_client *c, uint8_t **at)
{
	const struct doorbell_request *r = c->answer.request;
	size_t room;

	*at = c->scratch;
	if (r == NULL || c->answer.left < sizeof(c->scratch) || r->reply_length >= r->reply_size)
		return sizeof(c->scratch);
	room = r->reply_size - r->reply_length;
	if (room < sizeof(c->scratch))
		return sizeof(c->scratch);
	*at = (uint8_t *)r->reply + r->reply_length;
	return room < c->answer.left ? room : (size_t)c->answer.left;
}

/* <n> bytes came, and were read. A trickle counts as silence: it would keep the connection busy
 * with an answer that nobody waits for any more. */
static void client_progress(struct doorbell_client *c, size_t n, bool answered)
{
	c->progress += n;
	if (!answered && c->progress < PROGRESS)
		return;
	c->progress = 0;
	c->waiting_since = c->n_used > 0 || c->answer.in_body ? client_now() : 0;
}

/* False: nothing more is to be read now. */
static bool client_read_stream(struct doorbell_client *c)
{
	uint8_t *at;
	size_t room = client_read_room(c, &at);
	uint64_t answers = c->answers;
	ssize_t n = recv(c->fd, at, room, 0), came = n;

	if (n < 0 && is_transient(errno))
		return false;
	if (n <= 0) {
		client_lost(c, DOORBELL_DISCONNECTED, "the connection ended: %s",
			    n == 0 ? "closed by the peer" : strerror(errno));
		return false;
	}
	if (at != c->scratch) {
		c->answer.request->reply_length += (size_t)n;
		c->answer.left -= (size_t)n;
		n = 0;
	}
	if (!client_take_stream(c, at, (size_t)n))
		return false;
	client_progress(c, (size_t)came, c->answers != answers);
	return true;
}

static bool client_read_datagram(struct doorbell_client *c)
{
	ssize_t n = recv(c->fd, c->scratch, sizeof(c->scratch), 0);

	if (n < 0 && is_transient(errno))
		return false;
	if (n < 0) {
		client_lost(c, DOORBELL_DISCONNECTED, "%s", strerror(errno));
		return false;
	}
	if (c->options.framing == DOORBELL_TAGGED)
		client_take_tagged_datagram(c, c->scratch, (size_t)n);
	else
		client_take_plain_datagram(c, c->scratch, (size_t)n);
	return true;
}

static void client_read(struct doorbell_client *c)
{
	bool tcp = c->options.protocol == DOORBELL_TCP;

	for (int i = 0; i < READS_MAX && c->state == STATE_OPEN; i++)
		if (!(tcp ? client_read_stream(c) : client_read_datagram(c)))
			return;
}

/* --- writing -------------------------------------------------------------------------------- */

/* us that are left of the deadline, for the load balancer; 0: it has its own. */
static uint32_t request_deadline_us(const struct doorbell_request *r)
{
	int64_t left = r->deadline - client_now();

	if (r->deadline_ms == 0)
		return 0;
	if (left < 1)
		return 1;
	return left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
}

static void frame_tagged_head(struct doorbell_client *c, uint8_t kind, uint64_t id)
{
	uint8_t *head = c->frame.head;

	memset(head, 0, TAGGED_HEAD);
	memcpy(head, tagged_magic, sizeof(tagged_magic));
	head[5] = kind;
	put_be32(head + 8, (uint32_t)(id >> 32));
	put_be32(head + 12, (uint32_t)id);
	c->frame.head_length = TAGGED_HEAD;
}

static void frame_begin(struct doorbell_client *c, struct doorbell_request *r)
{
	bool tcp = c->options.protocol == DOORBELL_TCP;
	uint32_t length = (uint32_t)r->length;

	c->frame.sent = 0;
	c->frame.head_length = 0;
	c->frame.request = r;
	if (c->options.framing == DOORBELL_TAGGED) {
		frame_tagged_head(c, KIND_REQUEST, r->id);
		c->frame.head[6] = r->priority;
		put_be32(c->frame.head + 16, request_deadline_us(r));
		put_be32(c->frame.head + 20, tcp ? length : 0);
	} else if (c->options.framing == DOORBELL_LENGTH) {
		for (int i = 0; i < 4; i++)
			c->frame.head[i] = (uint8_t)(length >> (8 * i));
		c->frame.head_length = LENGTH_HEAD;
	}
}

/* When a try without an answer is given up for the next one. */
static int64_t client_try_end(const struct doorbell_client *c, const struct doorbell_request *r,
			      int64_t now)
{
	if (c->options.protocol != DOORBELL_UDP || !r->idempotent || r->tries > r->retries)
		return NEVER;
	if (r->try_ms != 0)
		return now + (int64_t)r->try_ms * 1000;
	return now + (r->deadline - now) / (r->retries - r->tries + 2);
}

/* Begin to write the first request of the queue. */
static void client_send_request(struct doorbell_client *c)
{
	struct doorbell_request *r = c->queue.first;

	list_remove(&c->queue, r);
	r->place = PLACE_SENT;
	r->answer = DOORBELL_PENDING;
	c->counters.retries += r->tries > 0;
	c->counters.sent++;
	r->tries++;
	r->due = client_try_end(c, r, client_now());
	client_due(c, r->due);
	slot_take(c, r);
	frame_begin(c, r);
	c->frames++;
	c->socket_used = true;
}

static bool client_has_frame(const struct doorbell_client *c)
{
	return c->frame.head_length > 0 || c->frame.request != NULL;
}

/* `datagram`: another port, so that no answer to an earlier request can come there. The old socket
 * is closed after the new one has its port. */
static bool client_fresh_socket(struct doorbell_client *c)
{
	int fd = client_socket(c);

	if (fd < 0) {
		client_lost(c, DOORBELL_DISCONNECTED, "no socket: %s", strerror(-fd));
		return false;
	}
	close(c->fd);
	c->fd = fd;
	c->socket_used = false;
	c->counters.connections++;
	return true;
}

/* Choose what to write next. False: nothing. */
static bool client_next_frame(struct doorbell_client *c)
{
	if (client_has_frame(c))
		return true;
	if (c->n_cancels > 0) {
		frame_tagged_head(c, KIND_CANCEL, c->cancels[c->first_cancel & c->mask]);
		c->frame.sent = 0;
		c->first_cancel++;
		c->n_cancels--;
		return true;
	}
	if (c->queue.first == NULL || c->n_used >= c->options.in_flight)
		return false;
	if (c->options.framing == DOORBELL_DATAGRAM && c->socket_used && !client_fresh_socket(c))
		return false;
	client_send_request(c);
	return true;
}

/* All of it is written. */
static void client_end_frame(struct doorbell_client *c)
{
	struct doorbell_request *r = c->frame.request;

	c->frame.head_length = 0;
	c->frame.request = NULL;
	if (r == NULL)
		return;
	if (r->answer != DOORBELL_PENDING) {
		client_over(c, r, r->answer);
		return;
	}
	if (c->options.protocol == DOORBELL_TCP && c->waiting_since == 0) {
		c->waiting_since = client_now();
		client_due(c, c->waiting_since + (int64_t)c->options.silence_ms * 1000);
	}
}

static ssize_t client_write(struct doorbell_client *c)
{
	const struct frame *f = &c->frame;
	const struct doorbell_request *r = f->request;
	size_t of_head = f->sent < f->head_length ? f->head_length - f->sent : 0;
	size_t of_body = f->sent > f->head_length ? f->sent - f->head_length : 0;
	struct iovec v[2] = {{.iov_base = (void *)(uintptr_t)(f->head + f->head_length - of_head),
			      .iov_len = of_head}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};

	if (r != NULL) {
		v[1].iov_base = (void *)(uintptr_t)((const uint8_t *)r->data + of_body);
		v[1].iov_len = r->length - of_body;
	}
	return sendmsg(c->fd, &m, MSG_NOSIGNAL);
}

/* A datagram could not be sent. */
static void client_write_datagram_failed(struct doorbell_client *c, int error)
{
	struct doorbell_request *r = c->frame.request;

	c->frame.request = NULL;
	c->frame.head_length = 0;
	client_complain(c, "cannot send: %s", strerror(error));
	if (r == NULL)
		return;
	slot_free(c, r->slot);
	client_over(c, r, error == EMSGSIZE ? DOORBELL_TOO_LARGE : DOORBELL_NOT_SENT);
}

static void client_write_failed(struct doorbell_client *c, int error)
{
	if (c->options.protocol == DOORBELL_UDP) {
		/* The error may be that of an earlier datagram, by ICMP; then this one can be sent.
		 */
		if (error == EMSGSIZE || client_write(c) < 0)
			client_write_datagram_failed(c, error);
		else
			client_end_frame(c);
		return;
	}
	client_read(c); /* what came before the end */
	if (c->state == STATE_OPEN)
		client_lost(c, DOORBELL_DISCONNECTED, "the connection ended: %s", strerror(error));
}

static void client_send(struct doorbell_client *c)
{
	c->blocked = false;
	while (c->state == STATE_OPEN && client_next_frame(c)) {
		const struct doorbell_request *r = c->frame.request;
		size_t all = c->frame.head_length + (r != NULL ? r->length : 0);
		ssize_t n = client_write(c);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && is_transient(errno)) {
			c->blocked = true;
			return;
		}
		if (n < 0) {
			client_write_failed(c, errno);
			continue;
		}
		c->frame.sent += (size_t)n;
		if (c->frame.sent == all)
			client_end_frame(c);
	}
}

static void client_push(struct doorbell_client *c)
{
	if (c->state == STATE_CLOSED && c->queue.first != NULL)
		client_connect(c);
	if (c->state == STATE_OPEN)
		client_send(c);
}

/* --- the calls ------------------------------------------------------------------------------ */

int doorbell_client_submit(struct doorbell_client *c, struct doorbell_request *r)
{
	uint32_t ms = r->deadline_ms != 0 ? r->deadline_ms : DEADLINE_DEFAULT;

	if (r->length == 0 || r->data == NULL || r->priority > 4 ||
	    (r->reply == NULL && r->reply_size > 0) || r->place != PLACE_CALLER)
		return -EINVAL;
	r->status = r->answer = DOORBELL_PENDING;
	r->reply_length = 0;
	r->chunks = r->tries = 0;
	r->deadline = client_now() + (int64_t)ms * 1000;
	if (r->length > UINT32_MAX) {
		client_finish(c, r, DOORBELL_TOO_LARGE);
		return 0;
	}
	/* That the peer closed an idle connection is better known before than after. */
	if (c->state == STATE_OPEN && c->n_used == 0)
		client_read(c);
	list_add(&c->queue, r, PLACE_QUEUE);
	client_due(c, r->deadline);
	client_push(c);
	return 0;
}

void doorbell_client_cancel(struct doorbell_client *c, struct doorbell_request *r)
{
	if (r->status != DOORBELL_PENDING || r->place == PLACE_CALLER)
		return;
	client_forget(c, r);
	r->status = DOORBELL_CANCELLED;
	client_push(c);
}

int doorbell_client_wants(struct doorbell_client *c, struct pollfd *p)
{
	int64_t wait;

	p->fd = c->fd;
	p->events =
		(short)(c->state == STATE_CONNECTING ? POLLOUT
						     : (c->blocked ? POLLIN | POLLOUT : POLLIN));
	p->revents = 0;
	if (c->state == STATE_CLOSED && c->queue.first != NULL)
		return 0;
	if (c->due == NEVER)
		return -1;
	wait = (c->due - client_now() + 999) / 1000;
	return wait < 0 ? 0 : (wait > INT_MAX ? INT_MAX : (int)wait);
}

void doorbell_client_process(struct doorbell_client *c)
{
	int64_t now = client_now();

	if (c->state == STATE_CONNECTING)
		client_connecting(c, now);
	client_read(c);
	client_timers(c, now);
	client_push(c);
}

struct doorbell_request *doorbell_client_finished(struct doorbell_client *c)
{
	struct doorbell_request *r = c->finished.first;

	if (r != NULL)
		list_remove(&c->finished, r);
	return r;
}

int doorbell_client_call(struct doorbell_client *c, struct doorbell_request *r)
{
	struct pollfd p;
	int error = doorbell_client_submit(c, r), wait;

	if (error < 0)
		return error;
	while (r->status == DOORBELL_PENDING) {
		wait = doorbell_client_wants(c, &p);
		poll(&p, 1, wait);
		doorbell_client_process(c);
	}
	list_remove(&c->finished, r);
	return r->status;
}

/* --- open and close ------------------------------------------------------------------------- */

static bool open_failed(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool open_failed(char *error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (error != NULL)
		vsnprintf(error, DOORBELL_ERROR_SIZE, format, arguments);
	va_end(arguments);
	return false;
}

/* Cut "host:port" or "[host]:port" into its parts, within <text>. */
static bool open_split(char *text, char **host, char **port)
{
	char *colon = strrchr(text, ':'), *end;
	long number;

	if (colon == NULL)
		return false;
	*port = colon + 1;
	*colon = '\0';
	*host = text;
	if (text[0] == '[' && colon > text && colon[-1] == ']') {
		colon[-1] = '\0';
		*host = text + 1;
	} else if (strchr(text, ':') != NULL) {
		return false; /* IPv6 without brackets: which of the colons is the port's? */
	}
	number = strtol(*port, &end, 10);
	return **host != '\0' && **port >= '0' && **port <= '9' && *end == '\0' && number > 0 &&
	       number < 65536;
}

static bool open_look_up(struct doorbell_client *c, const char *address, char *error)
{
	struct addrinfo hints = {.ai_socktype = c->options.protocol == DOORBELL_TCP ? SOCK_STREAM
										    : SOCK_DGRAM,
				 .ai_flags = AI_NUMERICSERV};
	struct addrinfo *found;
	char text[NI_MAXHOST + NI_MAXSERV + 4], *host, *port;
	int failed;

	if (snprintf(text, sizeof(text), "%s", address) >= (int)sizeof(text) ||
	    !open_split(text, &host, &port))
		return open_failed(error, "'%.60s' is not HOST:PORT or [IPv6]:PORT", address);
	failed = getaddrinfo(host, port, &hints, &found);
	if (failed != 0)
		return open_failed(error, "%.60s: %s", address, gai_strerror(failed));
	for (const struct addrinfo *a = found; a != NULL && c->n_addresses < ADDRESSES_MAX;
	     a = a->ai_next) {
		memcpy(&c->addresses[c->n_addresses].at, a->ai_addr, a->ai_addrlen);
		c->addresses[c->n_addresses++].length = a->ai_addrlen;
	}
	freeaddrinfo(found);
	return true;
}

static bool open_check(const struct doorbell_options *o, char *error)
{
	if ((o->protocol != DOORBELL_UDP && o->protocol != DOORBELL_TCP) ||
	    (o->framing != DOORBELL_TAGGED &&
	     o->framing != (o->protocol == DOORBELL_TCP ? DOORBELL_LENGTH : DOORBELL_DATAGRAM)))
		return open_failed(error, "the framing is not one of this protocol");
	if (o->in_flight > IN_FLIGHT_MAX)
		return open_failed(error, "in_flight: %u is more than %u", o->in_flight,
				   IN_FLIGHT_MAX);
	return true;
}

static void open_defaults(struct doorbell_options *o)
{
	o->in_flight = o->framing == DOORBELL_DATAGRAM ? 1 : (o->in_flight ? o->in_flight : 64);
	o->connect_ms = o->connect_ms ? o->connect_ms : 3000;
	o->silence_ms = o->silence_ms ? o->silence_ms : 15000;
	o->backoff_ms = o->backoff_ms ? o->backoff_ms : 100;
	o->backoff_max_ms = o->backoff_max_ms ? o->backoff_max_ms : 3000;
	o->max_reply = o->max_reply ? o->max_reply : (uint64_t)1 << 30;
}

static bool open_memory(struct doorbell_client *c, char *error)
{
	uint32_t n = 1;
	uint64_t seed[2];

	while (n < c->options.in_flight)
		n *= 2;
	c->mask = n - 1;
	c->slots = calloc(n, sizeof(*c->slots));
	c->cancels = calloc(n, sizeof(*c->cancels));
	if (c->slots == NULL || c->cancels == NULL)
		return open_failed(error, "no memory");
	if (getentropy(seed, sizeof(seed)) < 0)
		return open_failed(error, "no random numbers: %s", strerror(errno));
	c->next_id = seed[0];
	c->random = seed[1] | 1;
	return true;
}

struct doorbell_client *doorbell_client_open(const char *address,
					     const struct doorbell_options *options, char *error)
{
	struct doorbell_client *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		open_failed(error, "no memory");
		return NULL;
	}
	c->fd = -1;
	c->due = NEVER;
	list_init(&c->queue);
	list_init(&c->backoff);
	list_init(&c->finished);
	if (options != NULL)
		c->options = *options;
	if (open_check(&c->options, error)) {
		open_defaults(&c->options);
		if (open_memory(c, error) && open_look_up(c, address, error))
			return c;
	}
	doorbell_client_close(c);
	return NULL;
}

static void close_list(struct list *l)
{
	while (l->first != NULL) {
		struct doorbell_request *r = l->first;

		list_remove(l, r);
		if (r->status == DOORBELL_PENDING)
			r->status = DOORBELL_CANCELLED;
	}
}

void doorbell_client_close(struct doorbell_client *c)
{
	if (c == NULL)
		return;
	client_close_socket(c);
	close_list(&c->queue);
	close_list(&c->backoff);
	close_list(&c->finished);
	if (c->frame.request != NULL)
		c->frame.request->status = DOORBELL_CANCELLED;
	for (uint32_t i = 0; c->slots != NULL && i <= c->mask; i++)
		if (c->slots[i].request != NULL)
			c->slots[i].request->status = DOORBELL_CANCELLED;
	free(c->slots);
	free(c->cancels);
	free(c);
}
