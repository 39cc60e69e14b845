/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/wire_tcp.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include "packet/checksum.h"
#include "tcp/header.h"

#define FIRST_PORT   20000
#define CLIENT_MSS   1460
#define CLIENT_SCALE 7
/* In units of 1 << CLIENT_SCALE; replies are short. */
#define CLIENT_WINDOW 500
#define REPLY_HEAD    8 /* length and status */
/* Requests of a connection without a reply. */
#define PIPELINE 2
/* ms without progress until all is sent again, and between two looks. */
#define RESEND_MS 200
#define CHECK_MS  5
/* Acknowledgements with SACK blocks in a row that mean a loss. */
#define SACKS_MAX      3
#define STREAM_REQUEST ((uint64_t)WIRE_TCP_LENGTH + WIRE_TCP_BYTES)

static const struct rte_ether_addr client_mac = {{0x02, 0, 0, 0, 0, 0xc1}};

struct segment {
	struct rte_ether_hdr ether;
	struct rte_ipv4_hdr ip;
	struct rte_tcp_hdr tcp;
	uint16_t nops;
	uint8_t kind, length; /* of the timestamps */
	uint32_t ts_value, ts_echo;
	uint32_t request_length;
	uint64_t mark;
} __attribute__((packed, aligned(2)));
_Static_assert(sizeof(struct segment) == WIRE_TCP_HEADERS + WIRE_MARK, "no padding");

static uint64_t tcp_position(const struct gen_cursor *at)
{
	return at->request * STREAM_REQUEST + (uint64_t)at->segment * WIRE_MSS;
}

static bool tcp_is_last(const struct gen_cursor *at)
{
	return at->segment == WIRE_SEGMENTS - 1;
}

static uint32_t tcp_length(const struct gen_cursor *at)
{
	return tcp_is_last(at) ? WIRE_SEGMENT_LAST : WIRE_MSS;
}

static void tcp_advance(struct gen_cursor *at)
{
	if (++at->segment < WIRE_SEGMENTS)
		return;
	at->segment = 0;
	at->request++;
}

static uint64_t tcp_number(const struct gen_tcp *t, const struct gen_connection *c,
			   uint64_t request)
{
	return (uint64_t)(t->clients->queue * WIRE_CONNECTIONS_MAX + c->index) << 32 | request;
}

/* --- a request's bytes --------------------------------------------------------------------------
 */

static void tcp_fill_segment(uint8_t *at, uint32_t length)
{
	uint32_t request = WIRE_TCP_BYTES; /* the framing is little-endian, as x86 is */

	memcpy(at, &request, sizeof(request));
	payload_write(at + sizeof(request), length - sizeof(request), 0);
}

/* Byte <i> of a request is byte <i> + WIRE_TCP_LENGTH of its segments. */
void gen_tcp_fill(uint8_t *bytes)
{
	uint8_t segment[WIRE_MSS];

	tcp_fill_segment(segment, sizeof(segment));
	memcpy(bytes, segment + WIRE_TCP_LENGTH, sizeof(segment) - WIRE_TCP_LENGTH);
	for (uint32_t i = 1; i < WIRE_SEGMENTS; i++)
		memcpy(bytes + i * WIRE_MSS - WIRE_TCP_LENGTH, segment,
		       i == WIRE_SEGMENTS - 1 ? WIRE_SEGMENT_LAST : WIRE_MSS);
}

void gen_tcp_mark(uint8_t *bytes, uint64_t number)
{
	for (uint32_t i = 0; i < WIRE_SEGMENTS; i++) {
		uint64_t mark = number << 16 | i;

		memcpy(bytes + i * WIRE_MSS, &mark, sizeof(mark));
	}
}

static void tcp_write_template(struct rte_mempool *pool, void *unused, void *mbuf,
			       unsigned int index)
{
	struct rte_mbuf *m = mbuf;

	rte_pktmbuf_reset(m);
	tcp_fill_segment(rte_pktmbuf_mtod_offset(m, uint8_t *, WIRE_TCP_HEADERS), WIRE_MSS);
}

/* --- headers ------------------------------------------------------------------------------------
 */

static void tcp_write_headers(const struct gen_tcp *t, const struct gen_connection *c,
			      const struct tcp_header *h, uint32_t bytes, uint8_t *frame)
{
	struct segment *s = (struct segment *)frame;
	uint32_t size;

	memcpy(&s->ether.dst_addr, t->clients->lb_mac, 6);
	s->ether.src_addr = client_mac;
	s->ether.ether_type = htons(RTE_ETHER_TYPE_IPV4);
	size = tcp_header_write(h, htons(FIRST_PORT + c->index), htons(WIRE_SERVICE_TCP),
				(uint8_t *)&s->tcp);
	s->ip = (struct rte_ipv4_hdr){
		.version_ihl = 0x45,
		.total_length = htons(sizeof(s->ip) + size + bytes),
		.time_to_live = 60,
		.next_proto_id = IPPROTO_TCP,
		.src_addr = htonl(0x0a010001 + t->clients->queue * 256u + c->index),
		.dst_addr = inet_addr(WIRE_VIP),
	};
	s->ip.hdr_checksum = rte_ipv4_cksum(&s->ip);
}

/* A full segment's headers and sum, and those of a request's last. */
static void tcp_prepare(const struct gen_tcp *t, struct gen_connection *c)
{
	const struct tcp_header plain = {
		.flags = TCP_BIT_ACK,
		.window = CLIENT_WINDOW,
		.scale = TCP_SCALE_NONE,
		.has_timestamp = true,
	};
	uint8_t frame[WIRE_TCP_HEADERS + WIRE_MSS];
	struct segment *s = (struct segment *)frame;

	for (unsigned int last = 0; last < 2; last++) {
		uint32_t bytes = last ? WIRE_SEGMENT_LAST : WIRE_MSS;
		uint16_t length = WIRE_TCP_HEADERS - 34 + bytes;
		struct tcp_header h = plain;

		h.flags |= last ? TCP_BIT_PSH : 0;
		tcp_write_headers(t, c, &h, bytes, frame);
		tcp_fill_segment(frame + WIRE_TCP_HEADERS, bytes);
		memcpy(c->header[last], frame, WIRE_TCP_HEADERS);
		c->sum[last] = checksum_add(&s->tcp, length) +
			       checksum_pseudo(&s->ip.src_addr, FLOW_IPV4, IPPROTO_TCP, length);
	}
}

/* Writes the segment at <at> into a template. */
static void tcp_write_segment(const struct gen_tcp *t, const struct gen_connection *c,
			      const struct gen_cursor *at, struct rte_mbuf *m)
{
	struct segment *s = rte_pktmbuf_mtod(m, struct segment *);
	bool last = tcp_is_last(at);
	uint32_t seq = htonl(c->first + (uint32_t)tcp_position(at));
	uint32_t ack = htonl(c->expected), value = htonl(t->now_ms), echo = htonl(c->echo);
	uint64_t mark = tcp_number(t, c, at->request) << 16 | at->segment;

	memcpy(s, c->header[last], WIRE_TCP_HEADERS);
	s->tcp.sent_seq = seq;
	s->tcp.recv_ack = ack;
	s->ts_value = value;
	s->ts_echo = echo;
	s->mark = mark;
	s->tcp.cksum = ~checksum_fold(c->sum[last] + seq + ack + value + echo + (uint32_t)mark +
				      (mark >> 32));
	m->data_len = m->pkt_len = WIRE_TCP_HEADERS + tcp_length(at);
}

/* Sends a segment without bytes. */
static void tcp_send_bare(struct gen_tcp *t, struct gen_connection *c, const struct tcp_header *h)
{
	struct gen_out *out = &t->clients->out;
	struct rte_mbuf *m = rte_pktmbuf_alloc(t->control);
	struct segment *s;
	uint32_t size = tcp_header_size(h);

	if (m == NULL || gen_out_room(out) == 0)
		wire_die("queue %u: the clients have no room for what they send",
			 t->clients->queue);
	s = rte_pktmbuf_mtod(m, struct segment *);
	tcp_write_headers(t, c, h, 0, (uint8_t *)s);
	s->tcp.cksum = rte_ipv4_udptcp_cksum(&s->ip, &s->tcp);
	m->data_len = m->pkt_len = 34 + size;
	out->packet[out->n++] = m;
}

static void tcp_connect(struct gen_tcp *t, struct gen_connection *c)
{
	const struct tcp_header h = {
		.seq = c->first - 1,
		.flags = TCP_BIT_SYN,
		.window = CLIENT_WINDOW,
		.mss = CLIENT_MSS,
		.scale = CLIENT_SCALE,
		.sack_permitted = true,
		.has_timestamp = true,
		.ts_value = t->now_ms,
	};

	c->state = GEN_CONNECTING;
	c->progress = t->now;
	tcp_send_bare(t, c, &h);
}

static void tcp_acknowledge(struct gen_tcp *t, struct gen_connection *c)
{
	const struct tcp_header h = {
		.seq = c->first + (uint32_t)c->next,
		.ack = c->expected,
		.flags = TCP_BIT_ACK,
		.window = CLIENT_WINDOW,
		.scale = TCP_SCALE_NONE,
		.has_timestamp = true,
		.ts_value = t->now_ms,
		.ts_echo = c->echo,
	};

	c->ack_due = false;
	tcp_send_bare(t, c, &h);
}

/* --- what comes ---------------------------------------------------------------------------------
 */

/* Goes back to the first byte that is not acknowledged. */
static void tcp_go_back(struct gen_tcp *t, struct gen_connection *c)
{
	t->flying -= (int64_t)(c->next - c->acked);
	c->at = (struct gen_cursor){
		.request = c->acked / STREAM_REQUEST,
		.segment = c->acked % STREAM_REQUEST / WIRE_MSS,
	};
	c->next = tcp_position(&c->at);
	t->flying += (int64_t)(c->next - c->acked);
	c->recover = c->top;
	c->progress = t->now;
	c->sacks = 0;
}

static void tcp_take_ack(struct gen_tcp *t, struct gen_connection *c, const struct tcp_header *h)
{
	int32_t more = (int32_t)(h->ack - (c->first + (uint32_t)c->acked));

	if (more < 0)
		return;
	if (c->acked + more > c->top)
		wire_die("queue %u: bytes are acknowledged that were not sent", t->clients->queue);
	c->edge = c->acked + more + ((uint64_t)h->window << c->scale);
	if (more > 0) {
		t->flying -= (int64_t)(c->next - c->acked);
		c->acked += more;
		if (c->next < c->acked) {
			c->next = c->acked;
			c->at = (struct gen_cursor){
				.request = c->acked / STREAM_REQUEST,
				.segment = c->acked % STREAM_REQUEST / WIRE_MSS,
			};
			c->next = tcp_position(&c->at);
		}
		t->flying += (int64_t)(c->next - c->acked);
		c->progress = t->now;
		c->sacks = 0;
	} else if (h->n_sacks > 0 && c->acked >= c->recover && ++c->sacks == SACKS_MAX) {
		tcp_go_back(t, c);
	}
}

/* A reply is whole: it must be that of the oldest request. */
static void tcp_take_reply(struct gen_tcp *t, struct gen_connection *c)
{
	const struct wire_options *o = t->clients->o;
	uint64_t number = tcp_number(t, c, c->replied), got;
	uint32_t head[2];

	memcpy(head, c->reply, sizeof(head));
	memcpy(&got, c->reply + REPLY_HEAD, sizeof(got));
	if (head[0] != o->reply || head[1] != 0 || got != number)
		wire_die("queue %u: a reply of %u bytes with status %u and number %lx came, "
			 "number %lx was due",
			 t->clients->queue, head[0], head[1], got, number);
	if ((o->verify || t->clients->load.verify) &&
	    !payload_is(c->reply + REPLY_HEAD, o->reply, number))
		wire_die("queue %u: the reply to request %lx is wrong", t->clients->queue, number);
	c->n_reply = 0;
	c->replied++;
	__atomic_store_n(&t->clients->settled, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&t->clients->answered, t->clients->answered + 1, __ATOMIC_RELEASE);
}

static void tcp_take_bytes(struct gen_tcp *t, struct gen_connection *c, const struct tcp_header *h,
			   const uint8_t *bytes)
{
	uint32_t known = c->expected - h->seq, length = h->length;

	c->ack_due = true;
	/* Nothing comes out of order here, but a reply may come twice. */
	if (known >= length)
		return;
	bytes += known;
	length -= known;
	c->expected += length;
	while (length > 0) {
		uint32_t whole = REPLY_HEAD + t->clients->o->reply;
		uint32_t part = RTE_MIN(length, whole - c->n_reply);

		memcpy(c->reply + c->n_reply, bytes, part);
		c->n_reply += part;
		bytes += part;
		length -= part;
		if (c->n_reply == whole)
			tcp_take_reply(t, c);
	}
}

static void tcp_established(struct gen_connection *c, const struct tcp_header *h)
{
	c->state = GEN_OPEN;
	c->expected = h->seq + 1;
	c->scale = h->scale;
	c->edge = h->window;
	c->ack_due = true;
}

static void tcp_check_sums(const struct gen_tcp *t, const struct segment *s)
{
	if (rte_raw_cksum(&s->ip, sizeof(s->ip)) != 0xffff ||
	    rte_ipv4_udptcp_cksum_verify(&s->ip, &s->tcp) != 0 ||
	    s->ip.src_addr != inet_addr(WIRE_VIP))
		wire_die("queue %u: a segment has a wrong address or checksum", t->clients->queue);
}

static void tcp_take_segment(struct gen_tcp *t, const struct rte_mbuf *m)
{
	const struct segment *s = rte_pktmbuf_mtod(m, const struct segment *);
	uint32_t index = ntohs(s->tcp.dst_port) - FIRST_PORT, length;
	struct gen_connection *c = &t->connection[index];
	struct tcp_header h;

	length = ntohs(s->ip.total_length) - sizeof(s->ip);
	if (index >= t->n || m->nb_segs != 1 || length + 34 > m->data_len ||
	    tcp_header_read((const uint8_t *)&s->tcp, length, &h) != 0)
		wire_die("queue %u: a malformed segment came for the clients", t->clients->queue);
	if (h.flags & (TCP_BIT_RST | TCP_BIT_FIN))
		wire_die("queue %u: connection %u was reset or closed", t->clients->queue, index);
	tcp_check_sums(t, s);
	c->echo = h.ts_value;
	if (c->state == GEN_CONNECTING && h.flags & TCP_BIT_SYN)
		return tcp_established(c, &h);
	if (c->state != GEN_OPEN)
		return;
	tcp_take_ack(t, c, &h);
	if (h.length > 0)
		tcp_take_bytes(t, c, &h, rte_pktmbuf_mtod_offset(m, const uint8_t *, 34 + h.size));
	else if (h.seq != c->expected) /* asks whether the client lives */
		c->ack_due = true;
}

/* A frame that the load balancer only turned around. */
static void tcp_take_forwarded(struct gen_tcp *t, const struct rte_mbuf *m)
{
	const struct segment *s = rte_pktmbuf_mtod(m, const struct segment *);
	struct gen_clients *c = t->clients;
	uint64_t due = t->mark[c->answered & c->mask], mark = s->mark;

	if (m->nb_segs != 1 || mark != due || s->tcp.src_port != htons(WIRE_SERVICE_TCP))
		wire_die("queue %u: a frame with mark %lx came back, mark %lx was due", c->queue,
			 mark, due);
	t->forwarded_bytes += m->data_len;
	c->answered++;
}

void gen_tcp_take(struct gen_tcp *t, const struct rte_mbuf *m)
{
	if (t->clients->load.tcp && t->clients->load.forward)
		tcp_take_forwarded(t, m);
	else
		tcp_take_segment(t, m);
}

/* --- what goes ----------------------------------------------------------------------------------
 */

static bool tcp_may_begin(const struct gen_tcp *t, const struct gen_connection *c)
{
	const struct gen_clients *k = t->clients;

	return !t->stop && c->begun - c->replied < PIPELINE &&
	       (k->load.limit == 0 || k->sent - k->first < k->load.limit);
}

/* Segments that may be sent in one burst: as many as there are, if something is on its way. */
static uint32_t tcp_sendable(const struct gen_tcp *t, const struct gen_connection *c)
{
	int64_t left = (int64_t)t->clients->o->outstanding * WIRE_MSS - t->flying;
	uint64_t window = c->edge - RTE_MIN(c->edge, c->next);
	uint32_t most = RTE_MIN((uint32_t)GEN_BURST, WIRE_SEGMENTS - c->at.segment), n;

	if (c->state != GEN_OPEN || left < WIRE_MSS || window < WIRE_MSS)
		return 0;
	if (c->at.segment == 0 && c->next == c->top && !tcp_may_begin(t, c))
		return 0;
	n = RTE_MIN((uint64_t)most, RTE_MIN((uint64_t)left, window) / WIRE_MSS);
	return n < most && c->next != c->acked ? 0 : n;
}

static uint32_t tcp_forwardable(const struct gen_tcp *t, const struct gen_connection *c)
{
	const struct gen_clients *k = t->clients;
	uint64_t left = k->o->outstanding - (k->sent - k->answered);
	uint32_t most = RTE_MIN((uint32_t)GEN_BURST, WIRE_SEGMENTS - c->forward_at.segment);

	return t->stop || left < most ? 0 : most;
}

static bool tcp_loses(struct gen_tcp *t)
{
	if (likely(t->clients->load.lose == 0) || --t->until_loss > 0)
		return false;
	t->until_loss = t->clients->load.lose;
	t->unsent++;
	return true;
}

static void tcp_send_one(struct gen_tcp *t, struct gen_connection *c, struct rte_mbuf *m)
{
	struct gen_out *out = &t->clients->out;
	uint32_t length = tcp_length(&c->at);

	tcp_write_segment(t, c, &c->at, m);
	if (c->next < c->top) {
		t->resent++;
	} else {
		c->top += length;
		if (c->at.segment == 0) {
			c->begun++;
			t->clients->sent++;
		}
	}
	c->next += length;
	t->flying += length;
	tcp_advance(&c->at);
	if (unlikely(tcp_loses(t)))
		rte_mempool_put(t->segments, m);
	else
		out->packet[out->n++] = m;
}

static void tcp_forward_one(struct gen_tcp *t, struct gen_connection *c, struct rte_mbuf *m)
{
	struct gen_clients *k = t->clients;

	tcp_write_segment(t, c, &c->forward_at, m);
	t->mark[k->sent & k->mask] = rte_pktmbuf_mtod(m, struct segment *)->mark;
	k->sent++;
	k->out.packet[k->out.n++] = m;
	tcp_advance(&c->forward_at);
}

static bool tcp_send_burst(struct gen_tcp *t, struct gen_connection *c)
{
	bool forward = t->clients->load.forward;
	uint32_t n = forward ? tcp_forwardable(t, c) : tcp_sendable(t, c);
	struct rte_mbuf *m[GEN_BURST];

	/* Not rte_pktmbuf_alloc_bulk(): the mbufs are as they were when they were sent last. */
	if (n == 0 || rte_mempool_get_bulk(t->segments, (void **)m, n) != 0)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (forward)
			tcp_forward_one(t, c, m[i]);
		else
			tcp_send_one(t, c, m[i]);
	c->ack_due = false;
	return true;
}

/* Sends again what was lost without an acknowledgement that says so. */
static void tcp_check_timers(struct gen_tcp *t)
{
	t->next_check = t->now + CHECK_MS * t->tsc_per_ms;
	for (unsigned int i = 0; i < t->n; i++) {
		struct gen_connection *c = &t->connection[i];

		if (t->now - c->progress < RESEND_MS * t->tsc_per_ms)
			continue;
		if (c->state == GEN_CONNECTING)
			tcp_connect(t, c);
		else if (c->acked < c->next)
			tcp_go_back(t, c);
	}
}

bool gen_tcp_send(struct gen_tcp *t)
{
	const struct gen_clients *k = t->clients;
	bool sent = false;

	t->now = rte_rdtsc();
	t->now_ms = t->now / t->tsc_per_ms;
	t->stop = __atomic_load_n(&k->gen->stop, __ATOMIC_RELAXED) == k->epoch;
	if (k->out.n > 0)
		return false;
	if (!k->load.forward && t->now >= t->next_check)
		tcp_check_timers(t);
	if (k->load.tcp && !(k->load.one_queue && k->queue > 0)) {
		for (unsigned int i = 0; i < t->n && !sent; i++) {
			t->turn = t->turn + 1 == t->n ? 0 : t->turn + 1;
			sent = tcp_send_burst(t, &t->connection[t->turn]);
		}
	}
	for (unsigned int i = 0; i < t->n && !k->load.forward; i++)
		if (t->connection[i].ack_due)
			tcp_acknowledge(t, &t->connection[i]);
	return sent;
}

bool gen_tcp_settled(const struct gen_tcp *t)
{
	for (unsigned int i = 0; i < t->n; i++)
		if (t->connection[i].ack_due)
			return false;
	return true;
}

void gen_tcp_begin(struct gen_tcp *t)
{
	const struct wire_load *load = &t->clients->load;

	t->now = rte_rdtsc();
	t->now_ms = t->now / t->tsc_per_ms;
	t->until_loss = load->lose;
	if (!load->tcp)
		return;
	rte_mempool_obj_iter(t->segments, tcp_write_template, NULL);
	for (unsigned int i = 0; i < t->n; i++)
		if (!load->forward && t->connection[i].state == GEN_CLOSED)
			tcp_connect(t, &t->connection[i]);
		else
			t->connection[i].progress = t->now;
}

void gen_tcp_init(struct gen_tcp *t, struct gen_clients *c, struct rte_mempool *segments,
		  struct rte_mempool *control)
{
	*t = (struct gen_tcp){
		.clients = c,
		.n = c->o->connections,
		.segments = segments,
		.control = control,
		.tsc_per_ms = rte_get_tsc_hz() / 1000,
	};
	t->connection = calloc(t->n, sizeof(*t->connection));
	t->mark = calloc(c->mask + 1, sizeof(*t->mark));
	if (t->connection == NULL || t->mark == NULL)
		wire_die("no memory");
	for (unsigned int i = 0; i < t->n; i++) {
		t->connection[i].index = i;
		t->connection[i].first = 0xfff00001u + i; /* numbers wrap soon */
		tcp_prepare(t, &t->connection[i]);
	}
}
