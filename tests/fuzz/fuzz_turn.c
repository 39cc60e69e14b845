/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as operations on a whole load balancer: two lcores that share a queue, clients
 * that send good and bad frames, workers that join, answer, lie, fall silent and die, time that
 * passes, an operator who changes the configuration. The first byte of an operation says which, the
 * next ones how. README.md of tests/walk says what must hold; the load balancer is the same for all
 * inputs and must be empty after each.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "reload/apply.h"
#include "config/config_diff.h"
#include "membership/registry.h"
#include "packet/request.h"
#include "tcp/header.h"
#include "worker.h"
#include "lb.h"

#define LCORES      2
#define WORKERS     4  /* at a time */
#define JOINS       12 /* in an input */
#define CLIENTS_MAX 256
#define FLOWS_MS    1000
#define BEGIN_MS    UINT64_C(1024) /* a whole number of a flow table's ticks */
#define WRAP_MS     ((UINT64_C(1) << 32) - 60 * 1024)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct client {
	struct in6_addr address;
	uint16_t port;
};

/* A client's end of a TCP connection. */
struct talk {
	uint32_t seq, ack; /* next to send, next expected */
};

/* One input. */
struct story {
	const uint8_t *at, *end;
	struct walk *w;
	unsigned int n_clients;
	struct client client[CLIENTS_MAX];
	unsigned int joins, reloads;
	uint64_t requests; /* well-formed requests that reached the port */
	struct talk talk[8];
	bool odd; /* frames came that may or may not be requests */
};

/* Small and quick: an input can fill them and see them time out. */
#define SERVICE(name, port, model, queue, timeout_ms, more)                                        \
	WALK_SERVICE(name, port, model,                                                            \
		     ", queue: " #queue ", queue_timeout_ms: 50, request_timeout_ms: " #timeout_ms \
		     ", flow_timeout_ms: 1000, one_way_timeout_ms: 500" more)

#define TCP_SERVICE(name, port, more)                                                              \
	"  - {name: " name ", protocol: tcp, address: " PACKET_DESTINATION4 ", port: " #port       \
	", model: echo, queue: 8, queue_timeout_ms: 50, request_timeout_ms: 200"                   \
	", max_request: 20000, max_reply: 20000" more "}\n"
#define TCP_KEYS                                                                                   \
	"tcp: {connections: 32, buffer_mb: 2, backlog: 2, pipeline: 4, window: 8KiB, "             \
	"keepalive_ms: 1000, keepalive_interval_ms: 100, keepalive_probes: 1, fin_wait_ms: 500, "  \
	"time_wait_ms: 500, give_up_ms: 1000, syn_retries: 1}\n"

static const char *const services[] = {
	SERVICE("a", 8000, "echo", 8, 200, ", replay: 1") //
	TCP_SERVICE("e", 8004, "") TCP_SERVICE("f", 8005, ", framing: tagged")
		SERVICE("b", 8001, "echo", 4, 100,
			", framing: tagged, affinity: flow, payload_crc: true") //
	SERVICE("c", 8002, "other", 8, 400, ", affinity: sticky, deadline_ms: 20"),
	SERVICE("a", 8000, "echo", 2, 400, ", max_request: 300") //
	TCP_SERVICE("f", 8005, ", framing: tagged, deadline_ms: 20") SERVICE(
		"c", 8002, "other", 8, 400, ", affinity: flow, policy: maglev, probe_bytes: 20"),
	SERVICE("a", 8000, "other", 0, 400, ", replay: 2")                               //
	SERVICE("b", 8001, "echo", 8, 400, ", framing: tagged, policy: earliest-finish") //
	SERVICE("d", 8003, "echo", 8, 400, ", max_reply: 60, policy: power-of-two"),
};

static const struct walk_worker_params roomy = {.room = 65536};
static struct lb_config configs[RTE_DIM(services)], only_first;
static struct walk *walk;
static uint64_t random_state;

/* Many objects are reached through DPDK's memory only, which is not searched for pointers. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/* The same input gives the same numbers. See -Wl,--wrap in meson.build. */
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned int flags);

ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned int flags)
{
	uint8_t *at = buffer;

	for (size_t i = 0; i < size; i++) {
		random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
		at[i] = random_state >> 56;
	}
	return size;
}

/* Keeping account of each feature's rarity would take longer than the inputs. */
static void add_flag(int *argc, char ***argv)
{
	static char flag[] = "-entropic=0";
	char **more = calloc(*argc + 2, sizeof(*more));

	walk_need(more != NULL);
	memcpy(more, *argv, *argc * sizeof(*more));
	more[(*argc)++] = flag;
	*argv = more;
}

static uint8_t byte(struct story *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

static uint16_t word(struct story *s)
{
	uint16_t low = byte(s);

	return low | byte(s) << 8;
}

/* --- clients ------------------------------------------------------------------------------------
 */

/* Notes the frame's sender as one that may be answered from now on. */
static void note_client(struct story *s, const uint8_t *frame, uint32_t length)
{
	struct flow_key key;
	uint16_t vlan;

	if (s->n_clients < CLIENTS_MAX && parse_flow(frame, length, &key, &vlan))
		s->client[s->n_clients++] =
			(struct client){.address = key.src, .port = ntohs(key.src_port)};
}

static void deliver(struct story *s, unsigned int port, const uint8_t *frame, uint32_t length)
{
	if (!s->w->config.port[port].fabric)
		note_client(s, frame, length);
	walk_send_frame(s->w, port, 0, frame, length);
}

static struct packet client_packet(struct story *s)
{
	uint8_t who = byte(s), how = byte(s);
	struct packet p = {
		.family = 4,
		.source_port = 2000 + who % 16,
		.tagged = how & 1,
		.tci = how >> 1 & 3,
		.destination_port = 8000 + (how >> 3 & 3),
		.station = 7 + (who >> 4 & 1),
	};

	if (who & 0x20)
		p.source = "192.0.2.8";
	return p;
}

static void plain_request(struct story *s)
{
	struct packet p = client_packet(s);
	uint8_t frame[PACKET_MAX];

	p.payload = word(s) % 1480;
	s->requests++;
	deliver(s, 0, frame, packet_build(&p, frame));
}

static void tagged_request(struct story *s, uint8_t kind)
{
	struct packet p = client_packet(s), tagged;
	struct walk_tagged t = {.kind = kind, .id = byte(s) % 8};
	uint8_t frame[PACKET_MAX], how = byte(s);

	t.priority = how % 6;
	t.deadline_us = (how >> 4) * 1000;
	tagged = walk_tagged(&t);
	p.bytes = tagged.bytes;
	p.n_bytes = tagged.n_bytes;
	s->requests += kind != LB_REQUEST_CANCEL;
	s->odd |= kind == LB_REQUEST_CANCEL; /* to a plain service it is a request */
	deliver(s, 0, frame, packet_build(&p, frame));
}

static void mutated_frame(struct story *s)
{
	struct packet p = client_packet(s);
	uint8_t frame[PACKET_MAX], what = byte(s);
	uint32_t length;

	p.payload = byte(s);
	if (what & 1) {
		p.family = 6;
		p.source = NULL;
	}
	if (what & 2) {
		p.icmp = true;
		p.icmp_type = byte(s);
		p.icmp_code = byte(s) % 8;
	}
	if (what & 4)
		p.options = byte(s) % 11 * 4;
	if (what & 8)
		p.length = word(s) % 1600;
	length = packet_build(&p, frame);
	for (unsigned int n = what >> 4; n > 0; n--)
		frame[14 + word(s) % 128] ^= byte(s);
	s->odd = true;
	deliver(s, byte(s) & 1, frame, length);
}

static void pieces(struct story *s)
{
	struct packet p = client_packet(s);
	uint8_t frame[PACKET_MAX], piece[PACKET_MAX], mask = byte(s);
	uint32_t bytes = 8 + byte(s) * 8, length, head;

	p.payload = word(s) % 1480;
	length = packet_build(&p, frame);
	head = p.tagged ? 38 : 34;
	s->odd = true;
	for (uint32_t at = 0, n = 0; head + at < length && n < 8; at += bytes, n++)
		if (mask >> n & 1)
			deliver(s, 0, piece, packet_cut(frame, length, at, bytes, piece));
	note_client(s, frame, length);
}

/* Sends an ICMP error about a reply to some client. */
static void icmp_error_frame(struct story *s)
{
	struct packet about = client_packet(s), p;
	uint8_t bytes[PACKET_MAX], frame[PACKET_MAX];

	p = (struct packet){.family = 4,
			    .icmp = true,
			    .icmp_type = byte(s) % 16,
			    .icmp_code = byte(s) % 8,
			    .bytes = bytes + 14};
	about.destination = about.source != NULL ? about.source : PACKET_SOURCE4;
	about.source = PACKET_DESTINATION4;
	RTE_SWAP(about.source_port, about.destination_port);
	about.tagged = false;
	about.payload = 8;
	p.n_bytes = packet_build(&about, bytes) - 14;
	deliver(s, 0, frame, packet_build(&p, frame));
}

static void check_client_frames(struct story *s);

static void raw_frame(struct story *s)
{
	uint8_t frame[256] = {0}, port = byte(s) & 1, n = byte(s);

	n = RTE_MIN(n, (uint8_t)RTE_MIN(s->end - s->at, 255));
	memcpy(frame, s->w->lb->port[port].mac, 6);
	memcpy(frame + 6, packet_their_mac, 6);
	if (n > 12)
		memcpy(frame + 12, s->at, n - 12);
	s->at += n > 12 ? n - 12 : 0;
	s->odd = true;
	deliver(s, port, frame, RTE_MAX(n, 1));
}

static void segment(struct story *s)
{
	static const uint8_t flags[] = {TCP_BIT_SYN,
					TCP_BIT_ACK,
					TCP_BIT_ACK,
					TCP_BIT_ACK,
					TCP_BIT_ACK | TCP_BIT_FIN,
					TCP_BIT_RST,
					TCP_BIT_ACK | TCP_BIT_RST,
					TCP_BIT_SYN | TCP_BIT_ACK};
	uint8_t who = byte(s), what = byte(s), n = byte(s), frame[PACKET_MAX];
	struct talk *t = &s->talk[who % 8];
	struct tcp_header h = {
		.flags = flags[what % 8],
		.window = what & 8 ? word(s) : 65535,
		.mss = what & 16 ? byte(s) * 8 : 0,
		.scale = what & 16 ? byte(s) % 16 : TCP_SCALE_NONE,
		.sack_permitted = what & 32,
		.length = RTE_MIN(n, (uint8_t)RTE_MIN(s->end - s->at, 255)),
	};
	uint8_t tcp[PACKET_MAX];
	struct packet p = {
		.family = 4,
		.tcp = true,
		.source_port = 3000 + who % 8,
		.destination_port = 8004 + (who >> 3 & 1),
		.bytes = tcp + 4,
	};
	uint32_t size;

	if (h.flags & TCP_BIT_SYN) {
		*t = (struct talk){.seq = who * 1000};
		h.length = 0;
	}
	h.seq = t->seq + (what & 64 ? (int8_t)byte(s) : 0);
	h.ack = h.flags & TCP_BIT_ACK ? t->ack + (what & 128 ? (int8_t)byte(s) : 0) : 0;
	size = tcp_header_write(&h, htons(p.source_port), htons(p.destination_port), tcp);
	h.length = RTE_MIN(h.length, (uint32_t)(s->end - s->at));
	memcpy(tcp + size, s->at, h.length);
	s->at += h.length;
	/* The rest of a large request. */
	if (who & 16 && h.length > 0 && size + 1400 < sizeof(tcp)) {
		memset(tcp + size + h.length, 0, 1400 - h.length);
		h.length = 1400;
	}
	p.n_bytes = size - 4 + h.length;
	if (!(what & 64))
		t->seq += tcp_header_span(&h);
	s->odd = true;
	walk_send_frame(s->w, 0, 0, frame, packet_build(&p, frame));
}

/* The next segment of a connection to the first service. */
static void talk_on(struct story *s, unsigned int who, uint8_t flags, const uint8_t *bytes,
		    uint32_t n)
{
	struct talk *t = &s->talk[who];
	struct tcp_header h = {
		.seq = t->seq,
		.ack = flags & TCP_BIT_ACK ? t->ack : 0,
		.flags = flags,
		.window = 65535,
		.length = n,
		.scale = TCP_SCALE_NONE,
	};
	uint8_t tcp[PACKET_MAX], frame[PACKET_MAX];
	struct packet p = {
		.family = 4,
		.tcp = true,
		.source_port = 3000 + who,
		.destination_port = 8004,
		.bytes = tcp + 4,
	};
	uint32_t size = tcp_header_write(&h, htons(p.source_port), htons(8004), tcp);

	if (n > 0)
		memcpy(tcp + size, bytes, n);
	p.n_bytes = size - 4 + n;
	t->seq += tcp_header_span(&h);
	walk_send_frame(s->w, 0, 0, frame, packet_build(&p, frame));
}

/* A request larger than a packet, or its beginning, by a connection that is opened for it. */
static void large_request(struct story *s)
{
	uint8_t bytes[20000] = {0}, how = byte(s), who = how % 8;
	uint32_t said = 2000 + byte(s) * 70, n = how & 8 ? 1500 : said + 4;

	memcpy(bytes, &said, 4);
	s->odd = true;
	if (how & 16) {
		s->talk[who] = (struct talk){.seq = (how + s->requests) * 100000};
		talk_on(s, who, TCP_BIT_SYN, NULL, 0);
		walk_turns(s->w, 2); /* another lcore may have the port's queue */
		check_client_frames(s);
		talk_on(s, who, TCP_BIT_ACK, NULL, 0);
	}
	for (uint32_t at = 0; at < n; at += 1400) {
		talk_on(s, who, TCP_BIT_ACK, bytes + at, RTE_MIN(n - at, 1400u));
		walk_turn(s->w);
	}
}

/* Notes how far the load balancer has got in a connection. */
static void note_segment(struct story *s, const struct walk_frame *f)
{
	const uint8_t *ip = f->bytes + 14, *tcp = ip + 20;
	struct tcp_header h;
	uint16_t port;

	if (f->length < 54 || ip[0] != 0x45 || ip[9] != IPPROTO_TCP)
		return;
	walk_expect(f->sums_hold, "a segment with wrong sums");
	port = tcp[2] << 8 | tcp[3];
	if (tcp_header_read(tcp, (ip[2] << 8 | ip[3]) - 20u, &h) != 0) {
		walk_failed(__FILE__, __LINE__, "a TCP header", " it is none");
		return;
	}
	if (port < 3000 || port >= 3008 || h.flags & TCP_BIT_RST)
		return;
	s->talk[port - 3000].ack = h.seq + tcp_header_span(&h);
}

/* --- workers ------------------------------------------------------------------------------------
 */

static struct walk_worker *pick(struct story *s)
{
	unsigned int n = s->w->n_workers, first = byte(s);

	for (unsigned int i = 0; i < n; i++) {
		struct walk_worker *v = s->w->worker[(first + i) % n];

		if (!v->gone)
			return v;
	}
	return NULL;
}

static void join(struct story *s)
{
	static const uint32_t mtus[] = {256, 512, 1024, 4096};
	uint8_t how = byte(s), more = byte(s);
	struct walk_worker_params p = {
		.slots = 2u << (how & 3),
		.max_batch = more & 2 ? 1 : 0,
		.path_mtu = mtus[how >> 2 & 3],
		.model = how & 16 ? "other" : "echo",
		.weight = 1 + (how >> 5),
		.room = more & 128 ? 262144 : 65536,
	};
	struct walk_worker *v;

	if (s->joins++ >= JOINS)
		return;
	v = walk_worker_register(s->w, &p);
	if (v == NULL)
		return;
	v->answers = more & 1;
	v->run_ns = (more >> 2 & 31) * UINT64_C(1000000);
	lb_worker_ready(s->w->lb, walk_worker_of(v));
	v->beat_at = 0;
	for (int i = 0; i < 2; i++) {
		walk_tick(s->w);
		walk_turn(s->w);
		walk_turn(s->w);
	}
	walk_tick(s->w);
}

static void leave(struct story *s)
{
	struct walk_worker *v = pick(s);
	uint8_t how = byte(s);

	if (v == NULL)
		return;
	if (how & 1)
		v->gone = true;
	if (how & 2 && walk_worker_of(v) != NULL)
		lb_worker_remove(s->w->lb, walk_worker_of(v), "it leaves");
	if (how & 4 && walk_worker_of(v) != NULL)
		lb_worker_drain(s->w->lb, walk_worker_of(v));
	if (how & 8)
		lb_settings_weight(s->w->lb, v->name, 1 + (how >> 4), s->w->error,
				   sizeof(s->w->error));
}

static void change_manner(struct story *s)
{
	static const uint8_t naks[] = {0, ROCE_NAK_SEQUENCE, ROCE_NAK_REMOTE_ACCESS,
				       ROCE_AETH_RNR | 3};
	struct walk_worker *v = pick(s);
	uint8_t how = byte(s);

	if (v == NULL)
		return;
	v->answers = how & 1;
	v->acknowledges = !(how & 2);
	v->beats = !(how & 4);
	v->nak = how & 8 ? naks[how >> 6] : 0;
	v->lose = how >> 4 & 3;
	v->status = how & 128 ? byte(s) % 6 : RING_OK;
	v->delay_ms = how & 64 ? byte(s) % 32 : 0;
}

static void answer(struct story *s)
{
	static const uint8_t bytes[1500];
	struct walk_worker *v = pick(s);
	uint8_t which = byte(s), lies = byte(s);
	struct walk_reply r = {0};

	if (v == NULL || v->n_requests == 0)
		return;
	r.more = which & 0x80;
	if (which & 0x40) {
		r.bytes = bytes;
		r.n_bytes = word(s) % sizeof(bytes);
	}
	if (lies & 1)
		r.psn = (int8_t)byte(s);
	if (lies & 2)
		r.imm = (uint32_t)word(s) << (byte(s) & 16);
	if (lies & 4)
		r.va = (int16_t)word(s);
	if (lies & 8)
		r.header_length = byte(s);
	if (lies & 16)
		r.sequence = byte(s);
	if (lies & 32) {
		uint8_t more = byte(s);

		r.rkey = more & 1;
		r.qpn = more >> 1 & 3;
		r.no_imm = more & 8;
		r.bad_icrc = more & 16;
		r.forged_source = more & 32;
	}
	if (lies & 64)
		r.opcode = byte(s);
	if (lies & 128)
		r.cut = word(s) % 1600;
	r.status = which & 0x20 ? byte(s) % 8 : RING_OK;
	walk_answer(v, (which & 0x1f) % v->n_requests, &r);
}

static void acknowledge(struct story *s)
{
	struct walk_worker *v = pick(s);
	uint8_t lcore = byte(s) % LCORES;
	int8_t psn = byte(s);

	if (v != NULL)
		walk_acknowledge(v, lcore, psn, byte(s));
}

static void beat_or_notify(struct story *s)
{
	struct walk_worker *v = pick(s);
	uint8_t how = byte(s);

	if (v == NULL)
		return;
	if (how & 1)
		walk_beat(v);
	else
		walk_notify(v, how % LCORES);
}

/* --- the rest -----------------------------------------------------------------------------------
 */

static void apply(struct walk *w, const struct lb_config *file)
{
	static struct lb_config next;
	char error[512];

	if (lb_config_merge(&w->lb->config, file, &next, error, sizeof(error)) == 0 &&
	    registry_check_config(w->lb, &next, error, sizeof(error)) == 0)
		apply_config(w->lb, &next, error, sizeof(error));
}

static void reload(struct story *s)
{
	uint8_t which = byte(s) % RTE_DIM(configs);

	if (s->reloads++ < 4)
		apply(s->w, &configs[which]);
}

static void pass(struct story *s)
{
	uint8_t how = byte(s);

	if (how < 64)
		walk_jump_us(s->w, how * 10);
	else if (how < 192)
		walk_pass(s->w, how % 16 + 1);
	else
		walk_jump(s->w, (how - 191) * 10);
	walk_turn(s->w);
}

static void check_client_frames(struct story *s)
{
	static struct walk_frame f;

	while (walk_take(s->w, 0, &f)) {
		bool known = f.kind != WALK_UDP;

		for (unsigned int i = 0; i < s->n_clients && !known; i++)
			known = s->client[i].port == f.destination_port &&
				memcmp(&s->client[i].address, &f.destination, 16) == 0;
		note_segment(s, &f);
		walk_expect(known || s->n_clients == CLIENTS_MAX, "a reply to nobody who asked");
		walk_expect(f.kind != WALK_UDP || f.sums_hold, "a frame with wrong sums");
	}
}

static uint32_t listed(const struct link *link, const struct slot_list *list)
{
	uint32_t n = 0;

	for (uint32_t i = list->oldest; i != SLOT_NONE && n <= link->slots; i = link->slot[i].newer)
		n++;
	return n;
}

static void check_link(const struct link *link)
{
	uint32_t busy = 0, due = 0, taken = 0, filling = 0, paged = 0;

	for (uint32_t i = 0; i < link->slots; i++) {
		busy += link->slot[i].state == SLOT_BUSY;
		due += link->slot[i].state == SLOT_ABANDONED && link->slot[i].cancel_due;
		taken += link->slot[i].state != SLOT_FREE;
		filling += link->slot[i].state == SLOT_FILLING;
		paged += link->slot[i].state > SLOT_FILLING && link_slot_has_pages(link, i);
	}
	walk_expect(listed(link, &link->busy) == busy, "%u slots are listed, %u busy",
		    listed(link, &link->busy), busy);
	walk_expect(listed(link, &link->cancel_due) == due,
		    "%u slots are listed, %u have a cancel due", listed(link, &link->cancel_due),
		    due);
	walk_expect(taken == link->slots - link->n_free, "%u slots are taken of %u, %u are free",
		    taken, link->slots, link->n_free);
	walk_expect(link->reserved_slots == 0 && link->reserved_packets == 0, "reserved");
	walk_expect(filling == link->n_filling && paged == link->n_paged,
		    "%u places, not %u; %u requests in pages, not %u", link->n_filling, filling,
		    link->n_paged, paged);
	walk_expect(link->n_ready <= filling && (link->n_ready == 0) == TAILQ_EMPTY(&link->ready),
		    "%u of %u places wait", link->n_ready, filling);
	walk_expect_eq(link->withheld, link->kept_back - RTE_MIN(link->kept_back, link->n_filling));
}

static void check_load(const struct lcore *lc, const struct link *link)
{
	walk_expect_eq(lc->load.placed[link->worker], link->n_filling);
	walk_expect_eq(lc->load.credits[link->worker], link->n_free);
	walk_expect_eq(lc->load.outstanding[link->worker], link->slots - link->n_free);
}

static void check_lcores(const struct walk *w)
{
	for (unsigned int i = 0; i < LCORES; i++) {
		const struct lcore *lc = w->lb->lcore[i];
		uint32_t queued = 0;

		for (unsigned int k = 0; k < LB_SERVICES_MAX; k++)
			queued += lc->service[k].queue.count;
		walk_expect(queued == lc->n_waiting, "%u wait, %u are queued", lc->n_waiting,
			    queued);
		for (unsigned int k = 0; k < lc->n_links; k++) {
			check_link(lc->links[k]);
			check_load(lc, lc->links[k]);
		}
		for (unsigned int k = 0; k < lc->n_active; k++)
			walk_expect(lc->link[lc->active[k]->worker] == lc->active[k],
				    "a detached link is active");
	}
}

/* Returns how many requests have ended with a reply, a notice or a counted drop. */
static uint64_t ended(const struct walk *w)
{
	struct lb_lcore_stats s = walk_stats(w);
	uint64_t n = s.replies + s.notices;

	for (unsigned int i = 0; i < LB_DROPS; i++)
		n += s.drop[i];
	return n;
}

static void operate(struct story *s)
{
	uint8_t what = byte(s);

	if (what >= 244)
		return segment(s);
	if (what >= 238)
		return large_request(s);
	switch (what % 20) {
	case 0:
	case 1:
	case 2:
		return plain_request(s);
	case 3:
		return tagged_request(s, LB_REQUEST_REQUEST);
	case 4:
		return tagged_request(s, LB_REQUEST_CANCEL);
	case 5:
		return mutated_frame(s);
	case 6:
		return pieces(s);
	case 7:
		return icmp_error_frame(s);
	case 8:
		return raw_frame(s);
	case 9:
		return join(s);
	case 10:
		return leave(s);
	case 11:
		return change_manner(s);
	case 12:
	case 13:
		return answer(s);
	case 14:
		return acknowledge(s);
	case 15:
		return beat_or_notify(s);
	case 16:
		return reload(s);
	case 17:
		return pass(s);
	case 18:
		return walk_turn_lcore(s->w, byte(s) % LCORES);
	default:
		return walk_turn(s->w);
	}
}

/* Nothing of an input may be left when the next one begins, not even state that only decides how it
 * goes on: a finding must repeat without the inputs that came before it. */

static void wait_for_services(struct walk *w, unsigned int n)
{
	for (unsigned int i = 0; i < 40 && w->lb->config.n_services > n; i++) {
		walk_jump(w, 250);
		walk_tick(w);
		walk_turn(w);
	}
	walk_expect(w->lb->config.n_services == n, "%u services are left, not %u",
		    w->lb->config.n_services, n);
}

/* The first service is in all files; the others get their numbers anew. */
static void restore_services(struct walk *w)
{
	apply(w, &only_first);
	wait_for_services(w, 1);
	apply(w, &configs[0]);
}

static void forget_settings(struct lb *lb)
{
	char name[WORKER_NAME_MAX], error[256];

	while (workers_settings_count(lb_settings(lb)) > 0) {
		snprintf(name, sizeof(name), "%s", workers_settings_at(lb_settings(lb), 0)->name);
		walk_need(lb_settings_forget(lb, name, error, sizeof(error)) == 0, "%s", error);
	}
}

static void forget_picks(struct lcore *lc)
{
	for (unsigned int i = 0; i < lc->services->n; i++) {
		struct lcore_service *s = &lc->service[i];

		memset(&s->pick, 0, sizeof(s->pick));
		memset(&s->all, 0, sizeof(s->all));
		s->interval = s->window_start = s->measured = s->window_sent = 0;
	}
}

/* Connections end by their own timers. */
static void wait_for_connections(struct walk *w)
{
	for (unsigned int i = 0; i < LCORES; i++) {
		for (unsigned int k = 0; k < 400 && conntrack_count(w->lb->lcore[i]->ct) > 0; k++) {
			walk_jump(w, 25);
			walk_tick(w);
			walk_turn(w);
		}
		walk_expect_eq(conntrack_count(w->lb->lcore[i]->ct), 0);
	}
}

static void finish(struct story *s)
{
	struct walk *w = s->w;
	const struct lb *lb = w->lb;
	uint64_t ms;

	/* Connections hold packets until they end. */
	wait_for_connections(w);
	walk_quiesce(w);
	walk_jump(w, FLOWS_MS + 1000);
	for (unsigned int i = 0; i < LCORES; i++)
		while (conntrack_count(lb->lcore[i]->ct) > 0)
			walk_turn(w);
	forget_settings(w->lb);
	if (s->reloads > 0)
		restore_services(w);
	for (unsigned int i = 0; i < LCORES; i++)
		forget_picks(lb->lcore[i]);
	/* Timers that follow the clock start at the same time as for the other inputs. */
	ms = (w->clock - lb->tsc_start) / lb->tsc_per_ms; /* 64 bits: lb_tsc_to_ms() wraps */
	w->clock = lb->tsc_start + (ms / BEGIN_MS + 2) * BEGIN_MS * lb->tsc_per_ms;
	walk_tick(w);
	walk_turn(w);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct walk_params params = {
		.services = services[0],
		.more = "workers: {replay_mb: 1}\n" TCP_KEYS,
		.lcores = LCORES,
		.queues = 1,
		.flows = 256,
	};
	char text[8192], error[512];

	add_flag(argc, argv);
	workers_maglev_size = 251;
	for (size_t i = 0; i < RTE_DIM(services); i++) {
		walk_yaml(&params, services[i], text, sizeof(text));
		walk_need(lb_config_parse("fuzz", text, strlen(text), &configs[i], error,
					  sizeof(error)) == 0,
			  "%s", error);
	}
	only_first = configs[0];
	only_first.n_services = 1;
	walk = walk_create(&params);
	/* A minute before the clock of ms wraps, after 49.7 days: the first inputs cross it. */
	walk->clock = walk->lb->tsc_start + WRAP_MS * walk->lb->tsc_per_ms;
	/* A worker that returns gets its old number, so each has the same number in all inputs. */
	for (unsigned int i = 0; i < JOINS; i++)
		walk_need(walk_worker_register(walk, &roomy) != NULL, "%s", walk->error);
	finish(&(struct story){.w = walk});
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct story s;
	uint64_t before;

	s = (struct story){.at = data, .end = data + size, .w = walk};
	random_state = 1;
	before = ended(walk);
	walk_jump(walk, 1);
	while (s.at < s.end) {
		operate(&s);
		check_client_frames(&s);
		check_lcores(walk);
	}
	walk_turns(walk, 3);
	check_client_frames(&s);
	check_lcores(walk);
	finish(&s);
	walk_expect(ended(walk) - before >= s.requests, "%lu requests, %lu ends", s.requests,
		    ended(walk) - before);
	if (walk_failures() > 0)
		abort();
	return 0;
}
