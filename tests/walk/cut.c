/* SPDX-License-Identifier: BSD-3-Clause */
#include "cut.h"

#include <string.h>

#include "packet/checksum.h"
#include "tcp/header.h"

#define CUT_IP4 (RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_IPV4)
#define CUT_IP6 (RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_IPV6)

static void cut_put16(uint8_t *at, uint32_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static uint32_t cut_get(const uint8_t *at, unsigned int bytes)
{
	uint32_t value = 0;

	for (unsigned int i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

/* The mbufs in which bytes <from> to <to> of the packet lie. */
static unsigned int cut_mbufs(const struct rte_mbuf *m, uint32_t from, uint32_t to)
{
	unsigned int n = 0;

	for (uint32_t at = 0; m != NULL; at += m->data_len, m = m->next)
		n += at < to && at + m->data_len > from;
	return n;
}

/* Are the headers where the mbuf says, in its first part, and ready for the port? */
static void cut_check(const struct port *port, const struct rte_mbuf *m, const uint8_t *bytes)
{
	bool six = m->ol_flags & RTE_MBUF_F_TX_IPV6, ip_sum = m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM;
	uint64_t flags = m->ol_flags & (CUT_IP4 | CUT_IP6);
	const uint8_t *ip = bytes + m->l2_len, *tcp = ip + m->l3_len;
	uint32_t head = m->l2_len + m->l3_len + m->l4_len;
	uint64_t pseudo =
		checksum_pseudo(ip + (six ? 8 : 12), six ? FLOW_IPV6 : FLOW_IPV4, IPPROTO_TCP, 0);
	uint16_t field;

	memcpy(&field, tcp + 16, sizeof(field));
	walk_need(flags == (six ? CUT_IP6 : CUT_IP4), "flags %lx", m->ol_flags);
	walk_need(m->l2_len == 14 && m->l3_len == (six ? 40 : 20) &&
		  m->l4_len == tcp[12] >> 4 << 2 && m->data_len >= head);
	walk_need(ip[0] >> 4 == (six ? 6 : 4) && (six ? ip[6] : ip[9]) == IPPROTO_TCP);
	walk_need(six ? cut_get(ip + 4, 2) + 40 == m->pkt_len - m->l2_len
		      : cut_get(ip + 2, 2) == m->pkt_len - m->l2_len);
	walk_need(m->tso_segsz >= 256 && m->pkt_len > head + m->tso_segsz &&
			  m->pkt_len <= UINT16_MAX,
		  "%u bytes in segments of %u", m->pkt_len, m->tso_segsz);
	walk_need(six || (ip_sum ? cut_get(ip + 10, 2) == 0
				 : checksum_fold(checksum_add(ip, 20)) == 0xffff));
	walk_need(field == checksum_fold(pseudo), "the length is the port's to add");
	walk_need((tcp[13] & ~(TCP_BIT_ACK | TCP_BIT_PSH | TCP_BIT_FIN | TCP_BIT_ECE)) == 0);
	walk_need(m->nb_segs <= port->tso_mbufs, "%u mbufs", m->nb_segs);
}

/* Completes the headers of a segment with <length> bytes from byte <at> of the payload on. */
static void cut_headers(const struct rte_mbuf *m, unsigned int number, uint8_t *frame, uint32_t at,
			uint32_t length, bool last)
{
	uint8_t *ip = frame + m->l2_len, *tcp = ip + m->l3_len;
	bool six = m->l3_len == 40;
	uint32_t seq = cut_get(tcp + 4, 4) + at, l4 = m->l4_len + length;
	uint16_t sum;

	if (six) {
		cut_put16(ip + 4, l4);
	} else {
		cut_put16(ip + 2, m->l3_len + l4);
		cut_put16(ip + 4, cut_get(ip + 4, 2) + number);
		cut_put16(ip + 10, 0);
		sum = ~checksum_fold(checksum_add(ip, 20));
		memcpy(ip + 10, &sum, sizeof(sum));
	}
	cut_put16(tcp + 4, seq >> 16);
	cut_put16(tcp + 6, seq);
	if (!last)
		tcp[13] &= ~(TCP_BIT_FIN | TCP_BIT_PSH);
	sum = checksum_fold(
		checksum_pseudo(ip + (six ? 8 : 12), six ? FLOW_IPV6 : FLOW_IPV4, IPPROTO_TCP, l4));
	memcpy(tcp + 16, &sum, sizeof(sum));
}

uint32_t cut_segment(const struct port *port, const struct rte_mbuf *m, unsigned int number,
		     uint8_t *frame, bool *last)
{
	static uint8_t whole[UINT16_MAX];
	uint32_t head = m->l2_len + m->l3_len + m->l4_len, at = number * m->tso_segsz, length;
	const uint8_t *bytes;

	walk_need(m->pkt_len <= sizeof(whole));
	bytes = rte_pktmbuf_read(m, 0, m->pkt_len, whole);
	cut_check(port, m, bytes);
	length = RTE_MIN(m->pkt_len - head - at, (uint32_t)m->tso_segsz);
	*last = head + at + length == m->pkt_len;
	walk_need(1 + cut_mbufs(m, head + at, head + at + length) <= port->segments_max,
		  "segment %u of %u bytes lies in too many mbufs", number, length);
	walk_need(head + length <= WALK_FRAME_MAX);
	memcpy(frame, bytes, head);
	memcpy(frame + head, bytes + head + at, length);
	cut_headers(m, number, frame, at, length, *last);
	return head + length;
}
