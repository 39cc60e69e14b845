/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in, frames out, and the counters of each outcome. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "packet/checksum.h"
#include "packet/request.h"
#include "cut.h"
#include "walk.h"
#include "lb.h"

/* --- in -----------------------------------------------------------------------------------------
 */

void walk_send_frame(struct walk *w, unsigned int port, uint16_t queue, const uint8_t *frame,
		     uint32_t length)
{
	const struct nic *nic = &w->nic[port];
	/* The queue's lcore, as open_port() assigns them. */
	struct lcore *lc = w->lb->lcore[(w->lb->first_lcore[port] + queue) % w->lb->n_lcores];
	struct rte_mbuf *m = rte_pktmbuf_alloc(lc->packets);
	char *at = m == NULL ? NULL : rte_pktmbuf_append(m, length);

	if (at != NULL)
		memcpy(at, frame, length);
	if (at != NULL && nic_receive(nic, queue, &m, 1))
		return;
	w->unsent++;
	rte_pktmbuf_free(m);
}

void walk_send_on(struct walk *w, unsigned int port, uint16_t queue, const struct packet *packet)
{
	uint8_t frame[PACKET_MAX];
	uint32_t length = packet_build(packet, frame);

	walk_send_frame(w, port, queue, frame, length);
}

void walk_send(struct walk *w, unsigned int port, const struct packet *packet)
{
	walk_send_on(w, port, 0, packet);
}

struct packet walk_tagged(struct walk_tagged *t)
{
	struct packet p = {.family = 4, .bytes = t->bytes, .n_bytes = sizeof(t->bytes)};

	memset(t->bytes, 0, sizeof(t->bytes));
	memcpy(t->bytes, LB_REQUEST_MAGIC, 4);
	t->bytes[4] = 1;
	t->bytes[5] = t->kind != 0 ? t->kind : LB_REQUEST_REQUEST;
	t->bytes[6] = t->priority;
	memcpy(t->bytes + 8, &t->id, sizeof(t->id));
	memcpy(t->bytes + 16, &(uint32_t){htonl(t->deadline_us)}, 4);
	memset(t->bytes + LB_REQUEST_LENGTH, 0x5a, sizeof(t->bytes) - LB_REQUEST_LENGTH);
	if (t->kind == LB_REQUEST_CANCEL)
		p.n_bytes = LB_REQUEST_LENGTH;
	return p;
}

/* --- out ----------------------------------------------------------------------------------------
 */

static uint16_t get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static const uint8_t *parse_ip(const uint8_t *ip, const uint8_t *end, struct walk_frame *f,
			       uint8_t *protocol, uint32_t *length)
{
	if (f->family == 4) {
		f->source.s6_addr16[5] = f->destination.s6_addr16[5] = 0xffff;
		memcpy(f->source.s6_addr + 12, ip + 12, 4);
		memcpy(f->destination.s6_addr + 12, ip + 16, 4);
		f->hops = ip[8];
		*protocol = ip[9];
		*length = get16(ip + 2) - 20;
		f->sums_hold = ip[0] == 0x45 && checksum_fold(checksum_add(ip, 20)) == 0xffff;
		ip += 20;
	} else {
		memcpy(&f->source, ip + 8, 16);
		memcpy(&f->destination, ip + 24, 16);
		f->hops = ip[7];
		*protocol = ip[6];
		*length = get16(ip + 4);
		f->sums_hold = true;
		ip += 40;
	}
	f->sums_hold &= *length == (uint32_t)(end - ip);
	return ip;
}

static void parse_udp(const uint8_t *udp, uint32_t length, struct walk_frame *f)
{
	f->kind = WALK_UDP;
	f->source_port = get16(udp);
	f->destination_port = get16(udp + 2);
	f->payload = udp + 8;
	f->n_payload = length - 8;
	f->sums_hold &= get16(udp + 4) == length && get16(udp + 6) != 0;
	f->notice = f->n_payload == LB_NOTICE_LENGTH && memcmp(f->payload, LB_NOTICE_MAGIC, 4) == 0;
	if (!f->notice)
		return;
	f->code = f->payload[5];
	memcpy(&f->tag, f->payload + 8, sizeof(f->tag));
}

static void parse_rest(const uint8_t *ip, const uint8_t *end, struct walk_frame *f)
{
	uint8_t protocol;
	uint32_t length;
	const uint8_t *l4;
	uint64_t sum;

	if (end - ip < (f->family == 4 ? 28 : 48))
		return;
	l4 = parse_ip(ip, end, f, &protocol, &length);
	if (!f->sums_hold)
		return;
	sum = checksum_add(l4, length);
	if (protocol != IPPROTO_ICMP)
		sum += checksum_pseudo(f->family == 4 ? ip + 12 : ip + 8, f->family, protocol,
				       length);
	f->sums_hold = checksum_fold(sum) == 0xffff;
	f->payload = l4;
	f->n_payload = length;
	if (protocol == IPPROTO_UDP)
		parse_udp(l4, length, f);
	else
		f->kind = l4[0] == 135 || l4[0] == 136 ? WALK_ND : WALK_ICMP;
}

void walk_parse(const uint8_t *bytes, uint32_t length, struct walk_frame *f)
{
	const uint8_t *at = f->bytes + 12, *end = f->bytes + length;
	uint16_t type;

	memset(f, 0, sizeof(*f));
	f->kind = WALK_OTHER;
	f->length = length;
	if (length < 14 || length > sizeof(f->bytes))
		return;
	memcpy(f->bytes, bytes, length);
	memcpy(f->destination_mac, f->bytes, 6);
	memcpy(f->source_mac, f->bytes + 6, 6);
	f->tagged = get16(at) == 0x8100;
	if (f->tagged) {
		f->tci = get16(at + 2);
		at += 4;
	}
	type = get16(at);
	f->payload = at + 2;
	f->n_payload = end - f->payload;
	if (type == 0x0806) {
		f->kind = WALK_ARP;
	} else if (type == 0x0800 || type == 0x86dd) {
		f->family = type == 0x0800 ? 4 : 6;
		parse_rest(at + 2, end, f);
	}
}

bool walk_take(struct walk *w, unsigned int port, struct walk_frame *frame)
{
	struct rte_mbuf *m;
	uint8_t copy[WALK_FRAME_MAX];
	bool last = true;
	uint32_t length;

	memset(frame, 0, offsetof(struct walk_frame, bytes));
	if (w->n_pending[port] == 0)
		return false;
	m = w->pending[port][0];
	if (m->ol_flags & RTE_MBUF_F_TX_TCP_SEG) {
		length = cut_segment(&w->lb->port[port], m, w->n_cut[port]++, copy, &last);
		walk_parse(copy, length, frame);
	} else {
		walk_need(m->pkt_len <= sizeof(copy), "a frame of %u bytes", m->pkt_len);
		walk_parse(rte_pktmbuf_read(m, 0, m->pkt_len, copy), m->pkt_len, frame);
	}
	if (!last)
		return true;
	w->n_cut[port] = 0;
	rte_pktmbuf_free(m);
	w->n_pending[port]--;
	memmove(w->pending[port], w->pending[port] + 1, w->n_pending[port] * sizeof(m));
	return true;
}

unsigned int walk_count(struct walk *w, unsigned int port)
{
	return w->n_pending[port];
}

void walk_forget(struct walk *w, unsigned int port)
{
	rte_pktmbuf_free_bulk(w->pending[port], w->n_pending[port]);
	w->n_pending[port] = w->n_cut[port] = 0;
}

/* --- what is expected ---------------------------------------------------------------------------
 */

/* Builds a packet's frame as if the load balancer had sent it: its answer must mirror this. */
static void question_of(const struct packet *packet, struct walk_frame *frame)
{
	struct packet p = *packet;
	uint8_t bytes[PACKET_MAX];
	uint32_t length;

	/* A row may send what the parser here would not take. */
	p.l4_sum = SUM_RIGHT;
	p.ip_sum = SUM_RIGHT;
	p.options = p.padding = 0;
	length = packet_build(&p, bytes);
	walk_parse(bytes, length, frame);
}

static const char *way_back(const struct walk *w, unsigned int port, const struct walk_frame *ask,
			    const struct walk_frame *f)
{
	if (f->kind != WALK_UDP)
		return "it is no UDP datagram";
	if (!f->sums_hold)
		return "a checksum or length is wrong";
	if (memcmp(f->destination_mac, ask->source_mac, 6) != 0 ||
	    memcmp(f->source_mac, w->lb->port[port].mac, 6) != 0)
		return "wrong MAC address";
	if (f->tagged != ask->tagged || f->tci != ask->tci)
		return "wrong VLAN";
	if (memcmp(&f->source, &ask->destination, 16) != 0 ||
	    memcmp(&f->destination, &ask->source, 16) != 0 || f->family != ask->family)
		return "wrong address";
	if (f->source_port != ask->destination_port || f->destination_port != ask->source_port)
		return "wrong port";
	return NULL;
}

static bool fail(const char *file, int line, const char *what, const struct walk_frame *f)
{
	if (f->notice)
		walk_failed(file, line, what, " there is a notice of code %u", f->code);
	else
		walk_failed(file, line, what, " there is a frame of %u bytes", f->length);
	return false;
}

bool walk_answered(const char *file, int line, struct walk *w, unsigned int port,
		   const struct packet *packet, const void *bytes, int n)
{
	static struct walk_frame f, ask;
	const char *wrong;

	question_of(packet, &ask);
	if (!walk_take(w, port, &f)) {
		walk_failed(file, line, "an answer", " nothing came out of port %u", port);
		return false;
	}
	wrong = way_back(w, port, &ask, &f);
	if (wrong != NULL)
		return fail(file, line, wrong, &f);
	if (n < 0) {
		bytes = ask.payload;
		n = ask.n_payload;
	}
	if (f.n_payload != (uint32_t)n || memcmp(f.payload, bytes, n) != 0)
		return fail(file, line, "wrong payload", &f);
	return true;
}

bool walk_noticed(const char *file, int line, struct walk *w, unsigned int port,
		  const struct packet *packet, uint8_t code)
{
	static struct walk_frame f, ask;
	const char *wrong;
	uint64_t tag = 0;

	question_of(packet, &ask);
	if (!walk_take(w, port, &f)) {
		walk_failed(file, line, "a notice", " nothing came out of port %u", port);
		return false;
	}
	wrong = way_back(w, port, &ask, &f);
	if (wrong != NULL)
		return fail(file, line, wrong, &f);
	if (!f.notice || f.code != code || f.payload[4] != 1 || f.payload[6] != 0 ||
	    f.payload[7] != 0)
		return fail(file, line, "not the expected notice", &f);
	/* A tagged request has its id 8 bytes behind its magic. */
	if (ask.n_payload >= 16 && memcmp(ask.payload, "\xdb\x44\x42\x51", 4) == 0)
		memcpy(&tag, ask.payload + 8, 8);
	else
		memcpy(&tag, ask.payload, ask.n_payload < 8 ? ask.n_payload : 8);
	if (f.tag != tag)
		return fail(file, line, "the notice is about another request", &f);
	return true;
}

/* --- counters -----------------------------------------------------------------------------------
 */

struct lb_lcore_stats walk_stats(const struct walk *w)
{
	struct lb_lcore_stats all = {0}, one;
	uint64_t *to = (uint64_t *)&all;
	const uint64_t *from = (const uint64_t *)&one;

	_Static_assert(sizeof(all) % sizeof(uint64_t) == 0, "all counters have 64 bits");
	for (unsigned int i = 0; i < w->lb->n_lcores; i++) {
		lb_lcore_stats_read(w->lb, i, &one);
		for (size_t k = 0; k < sizeof(all) / sizeof(*to); k++)
			to[k] += from[k];
	}
	return all;
}

struct lb_service_stats walk_service_stats(const struct walk *w, unsigned int service)
{
	struct lb_service_stats stats;

	lb_service_stats_read(w->lb, service, &stats);
	return stats;
}

bool walk_dropped(const char *file, int line, struct walk *w, const struct walk_drops *drops,
		  size_t n)
{
	struct lb_lcore_stats stats = walk_stats(w);
	uint64_t expected[LB_DROPS] = {0};
	bool right = true;

	for (size_t i = 0; i < n; i++)
		expected[drops[i].reason] += drops[i].n;
	for (unsigned int i = 0; i < LB_DROPS; i++) {
		uint64_t got = stats.drop[i] - w->drop_seen[i];

		w->drop_seen[i] = stats.drop[i];
		if (got == expected[i])
			continue;
		walk_failed(file, line, "drops", " %s is %lu, not %lu", lb_drop_name(i), got,
			    expected[i]);
		right = false;
	}
	return right;
}

struct flow *walk_flow(struct walk *w, const struct packet *packet)
{
	uint8_t bytes[PACKET_MAX];
	uint32_t length = packet_build(packet, bytes), hash;
	struct flow_key key;
	struct flow *flow = NULL;
	uint16_t vlan;

	if (!parse_flow(bytes, length, &key, &vlan))
		return NULL;
	key.zone = lcore_zone(w->lb, 0, vlan);
	for (unsigned int i = 0; flow == NULL && i < w->lb->n_lcores; i++) {
		struct conntrack *ct = w->lb->lcore[i]->ct;

		hash = conntrack_hash(ct, &key);
		conntrack_lookup_burst(ct, &key, &hash, 1, &flow);
	}
	return flow;
}

/* --- tables -------------------------------------------------------------------------------------
 */

static void one_row(struct walk *w, const struct walk_row *row)
{
	walk_context("%s", row->name);
	walk_send(w, row->port, &row->in);
	walk_settle(w);
	if (row->out == WALK_ECHO)
		walk_expect_echo(w, row->port, &row->in);
	else if (row->out == WALK_NOTICE)
		walk_expect_notice(w, row->port, &row->in, row->code);
	walk_expect_silence(w, row->port);
	if (row->dropped)
		walk_expect_drops(w, {row->drop, 1});
	else
		walk_expect_no_drops(w);
	walk_forget(w, row->port);
	walk_context("%s", "");
}

void walk_rows(struct walk *w, const struct walk_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		one_row(w, &rows[i]);
}
