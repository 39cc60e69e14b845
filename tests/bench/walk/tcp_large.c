/* SPDX-License-Identifier: BSD-3-Clause */
#include "walk/tcp_large.h"

#include <string.h>

#define NOT_PLACED UINT32_MAX
#define ANNOUNCED  (RIG_STREAM_MAX + 1)

/* Byte <i> of the request of client <k>. Other offsets and other clients have others. */
static uint8_t large_byte(unsigned int k, uint32_t i)
{
	return (uint8_t)(i * 7 + (i >> 8) * 13 + (i >> 16) * 31 + k * 101);
}

/* --- the clients --------------------------------------------------------------------------------
 */

/* Puts the request's bytes into the stream. */
static void large_fill(struct tcp_large *l, unsigned int k)
{
	struct tcp_script *t = &l->script[k];

	for (uint32_t i = 0; i < t->ranges; i++)
		for (uint32_t b = 0; b < t->range[i].length; b++)
			t->at[t->range[i].position + b] = large_byte(k, t->range[i].offset + b);
}

static uint32_t large_length(const struct tcp_large *l, unsigned int k, unsigned int i)
{
	uint32_t from = i * LARGE_SEGMENT;

	return RTE_MIN(LARGE_SEGMENT, l->script[k].length - from);
}

static void large_write(struct tcp_large *l, unsigned int k, unsigned int i)
{
	struct rte_mbuf *m = l->packet[k][i];
	uint8_t *at = rte_pktmbuf_mtod_offset(m, uint8_t *, TCP_CLIENT_HEADERS);
	uint32_t length = large_length(l, k, i);

	memcpy(at, l->script[k].at + i * LARGE_SEGMENT, length);
	l->at[k][i] = at;
	tcp_clients_write(l->clients, TCP_SEGMENT_REQUEST, l->flow[k], length, m);
}

void tcp_large_prepare(struct tcp_large *l, struct tcp_clients *clients, uint32_t size,
		       const uint32_t flow[LARGE_CLIENTS])
{
	struct clients *f = clients->frames;

	l->clients = clients;
	l->size = size;
	l->late = 0;
	f->first = f->number;
	f->number += RIG_BATCH;
	for (unsigned int k = 0; k < LARGE_CLIENTS; k++) {
		f->flow[k] = l->flow[k] = flow[k];
		l->base[k] = NOT_PLACED;
		l->written[k] = 0;
		tcp_speech_write(clients->speech, size, tcp_clients_call(clients, flow[k]),
				 &l->script[k]);
		l->segments = (l->script[k].length + LARGE_SEGMENT - 1) / LARGE_SEGMENT;
		large_fill(l, k);
		rig_alloc(clients->rig, l->packet[k], l->segments);
		for (unsigned int i = 0; i < l->segments; i++)
			large_write(l, k, i);
	}
}

unsigned int tcp_large_deliver(struct tcp_large *l, unsigned int turn, bool late)
{
	struct rte_mbuf *packet[LARGE_TURN];
	unsigned int n = 0, first = turn * LARGE_ROW;
	unsigned int end = RTE_MIN(first + LARGE_ROW - (unsigned int)late, l->segments);

	l->from = first < LARGE_WAIT * LARGE_ROW ? 0 : first - LARGE_WAIT * LARGE_ROW;
	for (unsigned int k = 0; k < LARGE_CLIENTS; k++) {
		for (unsigned int i = first; i < end; i++)
			packet[n++] = l->packet[k][i];
		if (late && turn > 0 && end > first)
			l->late += end - first;
		if (late && turn > 0 && first <= l->segments)
			packet[n++] = l->packet[k][first - 1];
	}
	nic_deliver(&l->clients->rig->clients, packet, n);
	return n;
}

/* --- the worker ---------------------------------------------------------------------------------
 */

/* Finds the segment of this turn or of those before it in which <bytes> lie. Returns their position
 * in the stream of client <k>. */
static uint32_t large_find(const struct tcp_large *l, const uint8_t *bytes, unsigned int *k)
{
	unsigned int end = RTE_MIN(l->from + (LARGE_WAIT + 1) * LARGE_ROW, l->segments);

	for (*k = 0; *k < LARGE_CLIENTS; (*k)++)
		for (unsigned int i = l->from; i < end; i++)
			if (bytes >= l->at[*k][i] && bytes < l->at[*k][i] + LARGE_SEGMENT)
				return i * LARGE_SEGMENT + (uint32_t)(bytes - l->at[*k][i]);
	rig_die("a payload was moved on its way to the worker");
}

/* Where the bytes at <position> go in the request; all of them that are in a segment and in a range
 * must come at once. */
static uint32_t large_offset(const struct tcp_large *l, unsigned int k, uint32_t position,
			     uint32_t length)
{
	const struct tcp_script *t = &l->script[k];
	uint32_t segment = position / LARGE_SEGMENT * LARGE_SEGMENT;

	for (uint32_t i = 0; i < t->ranges; i++) {
		const struct tcp_part *r = &t->range[i];

		if (position < r->position || position >= r->position + r->length)
			continue;
		if (position != RTE_MAX(segment, r->position) ||
		    position + length != RTE_MIN(segment + LARGE_SEGMENT, r->position + r->length))
			rig_die("flow %u: bytes from %u on were cut", l->flow[k], position);
		return r->offset + position - r->position;
	}
	rig_die("flow %u: bytes from %u on belong to no request", l->flow[k], position);
}

static void large_take(void *context, uint32_t at, const uint8_t *bytes, uint32_t length,
		       const struct rte_mbuf *m)
{
	struct tcp_large *l = context;
	static uint8_t copy[2048];
	const uint8_t *frame;
	unsigned int k;
	uint32_t position = large_find(l, bytes, &k);
	uint32_t offset = large_offset(l, k, position, length);

	if (l->base[k] == NOT_PLACED)
		l->base[k] = at - offset;
	if (at != l->base[k] + offset || at + length > PEER_ROOM)
		rig_die("flow %u: bytes from %u on were written to a wrong place", l->flow[k],
			position);
	l->written[k] += length;
	if (!l->peer->verify)
		return;
	frame = rte_pktmbuf_read(m, 0, m->pkt_len, copy);
	if (!roce_icrc_ok(frame + ROCE_ETHER_LENGTH, 20,
			  m->pkt_len - ROCE_ETHER_LENGTH - ROCE_ICRC_LENGTH))
		rig_die("flow %u: the ICRC of bytes from %u on is wrong", l->flow[k], position);
	memcpy(l->memory + at, bytes, length);
}

static uint32_t large_announce(void *context, uint32_t offset, uint32_t length)
{
	struct tcp_large *l = context;
	unsigned int k = 0;

	while (k < LARGE_CLIENTS && l->base[k] != offset)
		k++;
	if (k == LARGE_CLIENTS || length != l->size || l->written[k] != l->size)
		rig_die("a large request was announced with another length, or before it was "
			"there");
	for (uint32_t i = 0; l->peer->verify && i < l->size; i++)
		if (l->memory[offset + i] != large_byte(k, i))
			rig_die("flow %u: byte %u is wrong in the worker's memory", l->flow[k], i);
	l->written[k] = ANNOUNCED;
	return k;
}

void tcp_large_check(const struct tcp_large *l)
{
	for (unsigned int k = 0; k < LARGE_CLIENTS; k++)
		if (l->written[k] != ANNOUNCED)
			rig_die("flow %u: %u of %u bytes were written, and nothing announced",
				l->flow[k], l->written[k], l->size);
}

void tcp_large_init(struct tcp_large *l, struct peer *peer)
{
	l->peer = peer;
	peer->large = (struct peer_large){l, large_take, large_announce};
}
