/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients, workers, an operator and time do anything in any order, as a seed says. Then each
 * request has had one end, answers came in order and are those of their requests, and nothing is
 * left. WALK_SEEDS="FROM N" runs others than the first fifteen, three of each kind.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "edge/edge_private.h"
#include "grpc_text.h"
#include "http_client.h"
#include "lb.h"
#include "membership/operator_settings.h"
#include "membership/registry.h"
#include "packet/request.h"

#define EVENTS   600u
#define PEERS    14u /* connections at a time, of three clients */
#define ASKED    4096u
#define DATAGRAM 4096u /* of UDP, in all */
#define WORKERS  40u   /* in all */

enum kind { ROWS, TEXTS, CALLS, LENGTHS, TAGS, KINDS };

struct peer {
	struct http_client *c; /* NULL: none */
	bool finished;
	unsigned int asked, answered;
	uint32_t n_out, at; /* bytes to send, and how many were */
	char out[65536];
	bool ended[ASKED];              /* calls, tags */
	bool half[ASKED], given[ASKED]; /* calls: said all; given up */
};

static struct walk *w;
static enum kind kind;
static uint64_t random_state;
static struct peer peer[PEERS];
static unsigned int n_datagrams, n_ended[DATAGRAM];
static uint16_t next_port;
static bool calm;       /* workers answer in one piece */
static bool starved;    /* there was no memory at times: segments and notices were lost */
static bool memoryless; /* now */

/* Less than <n>. */
static uint32_t any(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return n == 0 ? 0 : (uint32_t)(random_state >> 33) % n;
}

/* The load balancer's random numbers follow from the seed, too. */
ssize_t getrandom(void *buffer, size_t size, unsigned int flags);

ssize_t getrandom(void *buffer, size_t size, unsigned int flags)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)buffer)[i] = any(256);
	return (ssize_t)size;
}

/* --- the load balancer --------------------------------------------------------------------------
 */

static const char *services(void)
{
	static const char *const framing[KINDS] = {"kserve", "kserve", "kserve", "length",
						   "tagged"};
	static const char *const more[] = {
		", deadline_ms: 20, replay: 1",
		", deadline_ms: 50, queue: 8",
		", replay: 2",
		", deadline_ms: 5, request_timeout_ms: 100, priority: 2",
		", deadline_ms: 100, request_timeout_ms: 60, replay: 1, policy: earliest-finish",
		", queue: 0, deadline_ms: 30"};
	const char *size = kind == ROWS ? "2" : "64KiB";
	static char text[1024];

	snprintf(text, sizeof(text),
		 "  - {name: a, protocol: tcp, framing: %s, address: " PACKET_DESTINATION4
		 ", port: 8000, model: echo, max_request: %s, max_reply: %s%s}\n"
		 "  - {name: b, framing: tagged, address: " PACKET_DESTINATION4
		 ", port: 8001, model: other%s}\n",
		 framing[kind], size, size, more[any(RTE_DIM(more))], more[any(RTE_DIM(more))]);
	return text;
}

static struct walk_params *params(void)
{
	static const char *const memory[] = {
		"connections: 32, buffer_mb: 1, window: 64KiB, pipeline: 4",
		"connections: 64, buffer_mb: 2, window: 64KiB, pipeline: 64, client_percent: 60",
		"connections: 64, buffer_mb: 16, pipeline: 16"};
	static struct walk_params p;
	static char more[256];

	snprintf(more, sizeof(more),
		 "tcp: {connections_percent: 100, stream_heartbeat_ms: 40, %s}\n",
		 memory[any(RTE_DIM(memory))]);
	p = (struct walk_params){.client_ports = 2,
				 .services = services(),
				 .packets = any(3) == 0 ? 256 : 4096,
				 .more = more};
	return &p;
}

/* A worker of the TCP service's model, or of the other one's. */
static void join(bool other)
{
	static struct model_description rows, text = {.version = "1",
						      .n_inputs = 1,
						      .n_outputs = 1,
						      .input = {{.name = "text",
								 .datatype = DATATYPE_BYTES,
								 .rank = 1,
								 .shape = {1}}},
						      .output = {{.name = "said",
								  .datatype = DATATYPE_BYTES,
								  .rank = 1,
								  .shape = {1}}}};
	static char name[WORKERS][WORKER_NAME_MAX];
	struct walk_worker_params p = {.slots = 8u << any(3),
				       .max_request = 65536,
				       .max_reply = 65536,
				       .room = 262144,
				       .max_chunks = 64,
				       .max_batch = 4};
	struct lb_registration r;
	struct walk_worker *v;

	if (w->n_workers == WORKERS)
		return;
	snprintf(name[w->n_workers], sizeof(name[0]), "w%u", w->n_workers);
	if (other)
		p = (struct walk_worker_params){.model = "other", .max_chunks = 8};
	else if (kind == ROWS)
		p = (struct walk_worker_params){.max_request = 2, .max_reply = 2, .max_batch = 16};
	p.name = name[w->n_workers];
	walk_worker_registration(w, &p, &r);
	rows = kserve_one_tensor(DATATYPE_UINT16);
	rows.batch = true;
	if (!other && kind <= CALLS) {
		r.worker.min_request = kind == ROWS ? 2 : 4;
		r.worker.description = kind == ROWS ? &rows : &text;
	}
	v = walk_worker_register_as(w, &r);
	if (v != NULL)
		walk_worker_start(v);
}

/* --- what clients say ---------------------------------------------------------------------------
 */

static void dial(struct peer *p)
{
	static const char *const source[] = {NULL, NULL, "192.0.2.99", "198.51.100.9"};

	memset(p, 0, sizeof(*p));
	p->c = http_dial_from(w, source[(p - peer) % 4], next_port++);
}

static void hang_up(struct peer *p)
{
	http_forget(p->c);
	p->c = NULL;
}

static uint32_t deadline_us(void)
{
	return any(3) != 0 ? 0 : 1000 + any(60000);
}

static uint32_t write_http(char *at, const char *endpoint, const char *json, uint32_t raw)
{
	uint32_t n = strlen(json);

	n = sprintf(at,
		    "POST /v2/models/echo/%s HTTP/1.1\r\nHost: h\r\nContent-Length: %u\r\n"
		    "Inference-Header-Content-Length: %u\r\n\r\n%s",
		    endpoint, n + raw, n, json);
	for (uint32_t i = 0; i < raw; i++)
		at[n + i] = (char)i;
	return n + raw;
}

static uint32_t write_rows(const struct peer *p, char *at)
{
	uint32_t rows = 1 + any(any(3) != 0 ? 3 : 16);
	char json[512];

	sprintf(json,
		"{\"id\":\"%u\",\"inputs\":[{\"name\":\"a\",\"shape\":[%u],\"datatype\":\"UINT16\","
		"\"parameters\":{\"binary_data_size\":%u}}],\"parameters\":{\"timeout\":%u,"
		"\"priority\":%u,\"binary_data_output\":%s}}",
		p->asked, rows, 2 * rows, deadline_us(), any(5), any(2) ? "true" : "false");
	return write_http(at, "infer", json, 2 * rows);
}

static uint32_t write_text(const struct peer *p, char *at)
{
	static const char many[7001] = {[0 ... 6999] = 'x'};
	static char json[8192];

	sprintf(json, "{\"id\":\"%u\",\"text_input\":\"%.*s\",\"parameters\":{\"timeout\":%u}}",
		p->asked, (int)any(any(8) != 0 ? 30 : 7000), many, deadline_us());
	return write_http(at, any(2) ? "generate_stream" : "generate", json, 0);
}

/* The bytes of a request say which it is. */
static uint32_t write_length(const struct peer *p, char *at)
{
	uint32_t n = 1 + any(any(10) != 0 ? 100 : 9000);

	memcpy(at, &n, 4);
	memset(at + 4, (char)p->asked, n);
	return 4 + n;
}

static uint32_t write_tag(const struct peer *p, char *at, bool cancel)
{
	uint64_t id = cancel ? any(p->asked) : p->asked;
	uint32_t n = cancel ? 0 : 1 + any(any(10) != 0 ? 100 : 9000);
	uint32_t us = htonl(cancel ? 0 : deadline_us()), length = htonl(n);

	memset(at, 0, LB_REQUEST_LENGTH);
	memcpy(at, LB_REQUEST_MAGIC, 4);
	at[4] = 1;
	at[5] = cancel ? LB_REQUEST_CANCEL : LB_REQUEST_REQUEST;
	at[6] = (char)(cancel ? 0 : any(5));
	memcpy(at + 8, &id, 8);
	memcpy(at + 16, &us, 4);
	memcpy(at + 20, &length, 4);
	memset(at + LB_REQUEST_LENGTH, (char)id, n);
	return LB_REQUEST_LENGTH + n;
}

#define HEAD(path)                                                                                 \
	GRPC_FIELD("\7:method", "\4", "POST")                                                      \
	GRPC_FIELD("\7:scheme", "\4", "http")                                                      \
	GRPC_FIELD("\12:authority", "\1", "h")                                                     \
	path GRPC_FIELD("\xc"                                                                      \
			"content-type",                                                            \
			"\x10", "application/grpc") GRPC_FIELD("\xc"                               \
							       "grpc-timeout",                     \
							       "\3", "50m")
#define HEAD_STREAM                                                                                \
	HEAD(GRPC_FIELD("\5:path", "\x30", "/inference.GRPCInferenceService/ModelStreamInfer"))
#define HEAD_ONE HEAD(GRPC_FIELD("\5:path", "\x2a", GRPC_PATH))
#define MESSAGE  "\0\0\0\0\x20\x0a\4echo\x2a\x10\x0a\4text\x12\5BYTES\x1a\1\1\x3a\6\2\0\0\0ab"

static void add_message(struct text *t, uint32_t call, bool last)
{
	text_frame(t, FRAME_DATA, last ? FRAME_END_STREAM : 0, 2 * call + 1, MESSAGE,
		   sizeof(MESSAGE) - 1);
}

static void add_end(struct peer *p, struct text *t, uint32_t call)
{
	if (!p->half[call] && !p->given[call])
		text_frame(t, FRAME_DATA, FRAME_END_STREAM, 2 * call + 1, "", 0);
	p->half[call] = true;
}

static void add_window(struct text *t, uint32_t stream, uint32_t more)
{
	text_frame(t, FRAME_WINDOW, 0, stream, &(uint32_t){htonl(more)}, 4);
}

static void add_call(struct peer *p, struct text *t)
{
	bool streams = any(2);
	uint32_t call = p->asked++;

	text_frame(t, FRAME_HEADERS, FRAME_END_HEADERS, 2 * call + 1,
		   streams ? HEAD_STREAM : HEAD_ONE,
		   streams ? sizeof(HEAD_STREAM) - 1 : sizeof(HEAD_ONE) - 1);
	for (uint32_t n = streams ? any(4) : 1; n > 0; n--)
		add_message(t, call, false);
	if (!streams || any(2))
		add_end(p, t, call);
}

static void add_frames(struct peer *p, struct text *t)
{
	uint32_t call = any(p->asked);

	switch (p->asked == 0 ? 0 : any(8)) {
	case 0:
	case 1:
	case 2:
		return add_call(p, t);
	case 3:
		if (!p->half[call] && !p->given[call])
			add_message(t, call, false);
		return;
	case 4:
		return add_end(p, t, call);
	case 5:
		if (!p->given[call] && any(2))
			text_frame(t, FRAME_RST, 0, 2 * call + 1, "\0\0\0\10", 4);
		else
			return;
		p->given[call] = true;
		return;
	case 6:
		return add_window(t, 0, 1 + any(20000));
	default:
		if (!p->ended[call])
			add_window(t, 2 * call + 1, 1 + any(20000));
	}
}

/* The rest of all calls, and windows for their answers. */
static void end_calls(struct peer *p)
{
	static struct text t;

	if (p->c == NULL || p->finished || p->asked == 0 || kind != CALLS)
		return;
	t.n = 0;
	text_frame(&t, FRAME_SETTINGS, 0, 0, "\0\4\0\x7f\xff\xff", 6);
	add_window(&t, 0, 100000000);
	for (uint32_t i = 0; i < p->asked; i++)
		add_end(p, &t, i);
	memcpy(p->out + p->n_out, t.at, t.n);
	p->n_out += t.n;
}

static void say(struct peer *p)
{
	char *at = p->out + p->n_out;
	static struct text t;

	if (p->n_out > 30000 || p->asked == ASKED - 1 || p->finished)
		return;
	switch (kind) {
	case ROWS:
		p->n_out += write_rows(p, at);
		break;
	case TEXTS:
		p->n_out += write_text(p, at);
		break;
	case LENGTHS:
		p->n_out += write_length(p, at);
		break;
	case TAGS:
		if (p->asked > 0 && any(4) == 0) {
			p->n_out += write_tag(p, at, true);
			return;
		}
		p->n_out += write_tag(p, at, false);
		break;
	default:
		t.n = 0;
		if (p->asked == 0)
			text_preface(&t);
		add_frames(p, &t);
		memcpy(at, t.at, t.n);
		p->n_out += t.n;
		return;
	}
	p->asked++;
}

/* Sends some bytes, as far as the window is open. */
static void put(struct peer *p, uint32_t most)
{
	int32_t window = (int32_t)(p->c->offered - p->c->seq);
	uint32_t n = RTE_MIN(RTE_MIN(p->n_out - p->at, most), 1400u);

	n = window < (int32_t)n ? (uint32_t)RTE_MAX(window, 0) : n;
	if (n == 0)
		return;
	http_put(p->c, p->out + p->at, n);
	p->at += n;
	if (p->at == p->n_out)
		p->at = p->n_out = 0;
}

/* --- what clients get ---------------------------------------------------------------------------
 */

static void forget(struct peer *p, uint32_t n)
{
	memmove(p->c->got, p->c->got + n, p->c->n - n);
	p->c->n -= n;
	p->c->got[p->c->n] = '\0';
}

/* Bytes of a body in chunks behind <at>; 0: more come. */
static uint32_t chunks_length(const struct http_client *c, uint32_t at)
{
	for (uint32_t n = at;;) {
		char *end;
		uint32_t size = strtoul(c->got + n, &end, 16);

		n = (uint32_t)(end + 2 - c->got) + size + 2;
		if (n > c->n)
			return 0;
		walk_need(end[0] == '\r' && end[1] == '\n', "no chunk: %.300s", c->got);
		if (size == 0)
			return n - at;
	}
}

/* Each of these returns how long the first answer is; 0: more of it comes. */

static uint32_t read_http(struct peer *p)
{
	struct http_client *c = p->c;
	const char *end = strstr(c->got, "\r\n\r\n"), *length = strstr(c->got, "Content-Length: ");
	uint32_t head, body;

	walk_need(c->n < 9 || memcmp(c->got, "HTTP/1.1 ", 9) == 0, "no head: %.300s", c->got);
	if (c->n == 0 || end == NULL)
		return 0;
	head = (uint32_t)(end + 4 - c->got);
	body = length != NULL && length < end ? (uint32_t)atoi(length + 16)
					      : chunks_length(c, head);
	if (body == 0 || c->n < head + body)
		return 0;
	for (const char *id = c->got; (id = memmem(id, c->got + head + body - id, "\"id\":\"", 6));
	     id += 6)
		walk_expect((unsigned int)atoi(id + 6) == p->answered, "answer %u is of %d",
			    p->answered, atoi(id + 6));
	p->answered++;
	return head + body;
}

static uint32_t read_frame(struct peer *p)
{
	const uint8_t *h = (const uint8_t *)p->c->got;
	uint32_t n, call;

	if (p->c->n < 9)
		return 0;
	n = (uint32_t)h[0] << 16 | (uint32_t)h[1] << 8 | h[2];
	call = ((uint32_t)h[5] << 24 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 8 | h[8]) / 2;
	walk_need(n <= 16384 && h[3] <= 9, "a frame of %u bytes, type %u", n, h[3]);
	if (p->c->n < 9 + n)
		return 0;
	if (h[8] % 2 == 0 || h[3] == FRAME_WINDOW)
		return 9 + n;
	walk_need(call < p->asked, "call %u of %u", call, p->asked);
	walk_expect(h[3] == FRAME_RST || !p->ended[call], "more of call %u, which is over", call);
	if (h[3] == FRAME_RST || (h[3] <= FRAME_HEADERS && h[4] & FRAME_END_STREAM)) {
		p->answered += !p->ended[call];
		p->ended[call] = true;
	}
	return 9 + n;
}

static uint32_t read_length(struct peer *p)
{
	uint32_t head[2];
	uint8_t of;

	if (p->c->n < sizeof(head))
		return 0;
	memcpy(head, p->c->got, sizeof(head));
	if (p->c->n < sizeof(head) + head[0])
		return 0;
	of = head[0] == 0 ? 0 : (uint8_t)p->c->got[8];
	walk_expect(of == 0 || of == (uint8_t)p->answered, "answer %u is of %u", p->answered, of);
	p->answered += !(head[1] & STREAM_LENGTH_MORE);
	return sizeof(head) + head[0];
}

static uint32_t read_tag(struct peer *p)
{
	const uint8_t *at = (const uint8_t *)p->c->got;
	uint32_t n;
	uint64_t id;

	if (p->c->n < LB_REQUEST_LENGTH)
		return 0;
	memcpy(&n, at + 20, 4);
	n = ntohl(n);
	if (p->c->n < LB_REQUEST_LENGTH + n)
		return 0;
	memcpy(&id, at + 8, 8);
	walk_need(memcmp(at, LB_REQUEST_MAGIC, 4) == 0 && id < p->asked, "no header");
	walk_expect(!p->ended[id], "id %" PRIu64 " was over", id);
	walk_expect(n == 0 || at[24] == 0 || at[24] == (uint8_t)id, "id %" PRIu64 " has %u", id,
		    at[24]);
	p->ended[id] = at[5] == LB_REQUEST_NOTICE || at[6] == 0;
	p->answered += p->ended[id];
	return LB_REQUEST_LENGTH + n;
}

static void read_datagrams(void)
{
	static struct walk_frame f;
	uint64_t id;

	while (walk_take(w, 1, &f)) {
		if (f.kind != WALK_UDP)
			continue;
		if (f.notice)
			id = f.tag;
		else
			memcpy(&id, f.payload + 8, 8);
		walk_need(id < n_datagrams, "id %" PRIu64, id);
		walk_expect(n_ended[id] == 0, "datagram %" PRIu64 " was over", id);
		n_ended[id] += f.notice || f.payload[6] == 0;
	}
}

static void read_all(void)
{
	static uint32_t (*const read[KINDS])(struct peer *) = {read_http, read_http, read_frame,
							       read_length, read_tag};

	http_take_all(&(struct http_client){.w = w});
	for (struct peer *p = peer; p < peer + PEERS; p++) {
		uint32_t n;

		if (p->c == NULL)
			continue;
		while ((n = read[kind](p)) > 0)
			forget(p, n);
		walk_expect(p->answered <= p->asked, "%u of %u", p->answered, p->asked);
		if (p->c->reset)
			hang_up(p);
	}
	read_datagrams();
}

/* --- events -------------------------------------------------------------------------------------
 */

static void answer(struct walk_worker *v)
{
	bool other = strcmp(v->registration.worker.model, "other") == 0;
	unsigned int i = any(4) != 0 ? 0 : any(v->n_requests);
	static uint8_t bytes[65536];
	struct walk_reply r = {0};
	uint32_t n = any(any(10) != 0 ? 60 : 20000);

	if (v->gone || v->n_requests == 0)
		return;
	memset(bytes, 0, 4 + n);
	if (!other && (kind == TEXTS || kind == CALLS)) {
		memcpy(bytes, &n, 4);
		memset(bytes + 4, 'y', n);
		r.bytes = bytes;
		r.n_bytes = 4 + n - (any(30) == 0 ? 1 : 0);
	} else if (!other && kind > CALLS && any(2)) {
		r.bytes = bytes;
		r.n_bytes = n;
	}
	if (any(12) == 0) {
		r = (struct walk_reply){.status = (uint8_t)(1 + any(4)), .bytes = ""};
	} else if (!calm && v->registration.max_chunks > v->request[i].chunks + 2) {
		r.more = any(3) == 0;
	}
	walk_answer(v, i, &r);
}

static void remove_worker(struct walk_worker *v)
{
	v->gone = true;
	if (walk_worker_of(v) != NULL)
		lb_worker_remove(w->lb, walk_worker_of(v), "it leaves");
}

static void replace(const struct walk_worker *old, const struct walk_worker *by)
{
	if (old != by && walk_worker_of(old) != NULL && walk_worker_of(by) != NULL &&
	    strcmp(old->registration.worker.model, by->registration.worker.model) == 0)
		lb_settings_replace(w->lb, walk_worker_of(old), walk_worker_of(by), any(2),
				    w->error, sizeof(w->error));
}

static void worker_event(struct walk_worker *v)
{
	switch (any(16)) {
	case 0:
		v->answers = !v->answers;
		break;
	case 1:
		v->delay_ms = any(40);
		break;
	case 2:
		v->lose = any(3);
		break;
	case 3:
		v->acknowledges = any(4) != 0;
		break;
	case 4:
		v->gone |= any(4) == 0;
		break;
	case 5:
		if (any(4) == 0)
			remove_worker(v);
		break;
	case 6:
		join(any(3) == 0);
		break;
	case 7:
		lb_settings_drain(w->lb, v->name, any(2), w->error, sizeof(w->error));
		break;
	case 8:
		replace(v, w->worker[any(w->n_workers)]);
		break;
	case 9:
		v->by_deadline = any(2);
		v->run_ns = any(20) * UINT64_C(1000000);
		break;
	case 10:
		v->beats = any(4) != 0;
		break;
	default:
		for (unsigned int n = any(6); n > 0; n--)
			answer(v);
	}
}

static void datagram_event(bool cancel)
{
	struct walk_tagged t = {.id = cancel ? any(n_datagrams) : n_datagrams,
				.kind = cancel ? LB_REQUEST_CANCEL : 0,
				.priority = (uint8_t)(cancel ? 0 : any(5)),
				.deadline_us = cancel ? 0 : deadline_us()};
	struct packet p = walk_tagged(&t);

	if (cancel ? n_datagrams == 0 : n_datagrams == DATAGRAM)
		return;
	n_datagrams += !cancel;
	p.destination_port = 8001;
	p.source_port = (uint16_t)(2000 + t.id % 3);
	walk_send(w, 1, &p);
}

static void client_event(struct peer *p)
{
	switch (any(14)) {
	case 0:
		http_acknowledge(p->c);
		break;
	case 1:
		p->c->window = (uint16_t)(any(3) != 0 ? 65535 : any(3000));
		http_acknowledge(p->c);
		break;
	case 2:
		if (any(4) != 0)
			break;
		http_put_reset(p->c);
		hang_up(p);
		break;
	case 3:
		if (any(6) == 0 && p->n_out == 0 && !p->finished) {
			p->finished = true;
			http_finish(p->c);
		}
		break;
	case 4:
	case 5:
	case 6:
		put(p, any(3) != 0 ? 1400 : any(200));
		break;
	default:
		for (unsigned int n = any(4); n > 0; n--)
			say(p);
		put(p, 1400);
	}
}

static void memory_event(void)
{
	if (memoryless)
		walk_give_memory(w);
	else if (any(4) == 0)
		walk_take_memory(w);
	else
		return;
	memoryless = !memoryless;
	starved = true;
}

static void time_event(void)
{
	switch (any(7)) {
	case 0:
		return walk_pass(w, 1 + any(20));
	case 1:
		walk_jump(w, any(any(4) != 0 ? 10 : 80));
		break;
	case 2:
		walk_jump_us(w, any(2000));
		break;
	default:
		walk_turns(w, any(4));
	}
	walk_turn(w);
}

static void reload_event(const struct walk_params *p)
{
	static char text[65536];

	walk_yaml(p, services(), text, sizeof(text));
	walk_reload(w, text);
}

static void event(const struct walk_params *p)
{
	struct peer *at = &peer[any(PEERS)];

	switch (any(20)) {
	case 0:
	case 1:
	case 2:
		worker_event(w->worker[any(w->n_workers)]);
		break;
	case 3:
		datagram_event(false);
		break;
	case 4:
		datagram_event(any(3) == 0);
		break;
	case 5:
		if (any(6) == 0)
			walk_forget(w, 0); /* frames to clients are lost */
		break;
	case 6:
		if (any(12) == 0)
			reload_event(p);
		break;
	case 7:
		memory_event();
		break;
	case 8:
	case 9:
	case 10:
		time_event();
		break;
	default:
		if (at->c == NULL)
			dial(at);
		client_event(at);
	}
	read_all();
}

/* --- the end ------------------------------------------------------------------------------------
 */

/* Workers that are there serve. */
static void calm_down(void)
{
	if (memoryless)
		walk_give_memory(w);
	memoryless = false;
	calm = true;
	for (unsigned int i = 0; i < w->n_workers; i++) {
		struct walk_worker *v = w->worker[i];

		if (v->gone || walk_worker_of(v) == NULL)
			remove_worker(v);
		lb_settings_drain(w->lb, v->name, false, w->error, sizeof(w->error));
		v->answers = false;
		v->acknowledges = v->beats = true;
		v->lose = v->delay_ms = 0;
	}
	for (struct peer *p = peer; p < peer + PEERS; p++) {
		if (p->c != NULL)
			p->c->window = 65535;
		end_calls(p);
	}
}

/* Workers answer, and clients read and say the rest: for 5 ms. */
static void go_on(unsigned int turn)
{
	walk_pass(w, 5);
	for (unsigned int i = 0; i < w->n_workers; i++)
		for (struct walk_worker *v = w->worker[i]; !v->gone && v->n_requests > 0;)
			answer(v);
	read_all();
	for (struct peer *p = peer; p < peer + PEERS; p++) {
		if (p->c == NULL)
			continue;
		put(p, 1400);
		if (p->c != NULL && turn % 4 == 0)
			http_acknowledge(p->c);
	}
}

static void expect_ends(void)
{
	for (unsigned int i = 0; i < n_datagrams; i++)
		walk_expect(n_ended[i] == 1 || starved, "datagram %u has no end", i);
	for (struct peer *p = peer; p < peer + PEERS; p++) {
		if (p->c == NULL)
			continue;
		for (unsigned int i = 0; kind == CALLS && i < p->asked; i++)
			p->answered += p->given[i] && !p->ended[i];
		walk_expect(p->c->fin || p->finished || starved ||
				    (p->answered == p->asked && p->n_out == 0),
			    "port %u: %u of %u are answered", p->c->port, p->answered, p->asked);
		http_put_reset(p->c);
		walk_turn(w);
		hang_up(p);
	}
}

static void expect_nothing_left(void)
{
	const struct edge *e = w->lb->lcore[0]->edge;

	for (unsigned int i = 0; i < 100 && e->n_open > 0; i++) {
		walk_jump(w, 5000);
		walk_turn(w);
		walk_settle(w);
	}
	walk_settle(w);
	walk_expect_eq(e->n_open, 0);
	walk_expect_eq(e->held + e->replies + e->reserved, 0);
	walk_expect_eq(e->n_requests + e->n_streaming + e->n_batches + e->n_rows, 0);
	walk_expect_eq(e->n_clients + e->n_turns + e->n_others + e->n_graves + e->n_sessions, 0);
	walk_expect_eq(w->lb->lcore[0]->replay_streams, 0);
}

static void run(uint64_t seed)
{
	const struct walk_params *p;

	random_state = seed;
	any(1);
	kind = (enum kind)(seed % KINDS);
	walk_context("seed %" PRIu64, seed);
	memset(peer, 0, sizeof(peer));
	memset(n_ended, 0, sizeof(n_ended));
	n_datagrams = 0;
	next_port = 10000;
	calm = starved = false;
	p = params();
	w = walk_create(p);
	join(false);
	join(false);
	join(true);
	for (unsigned int i = 0; i < EVENTS; i++)
		event(p);
	calm_down();
	for (unsigned int i = 0; i < 400; i++)
		go_on(i);
	expect_ends();
	expect_nothing_left();
	walk_destroy(w);
	walk_context("%s", "");
}

WALK(whatever_happens_each_request_has_one_end_and_nothing_is_left)
{
	const char *seeds = getenv("WALK_SEEDS");
	uint64_t from = 1;
	unsigned int n = 3 * KINDS;

	walk_need(seeds == NULL || sscanf(seeds, "%" SCNu64 " %u", &from, &n) == 2);
	for (; n > 0; n--)
		run(from++);
}
