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

/* Offset in the request of the first byte of segment <i>, and how many there are. */
static uint32_t large_offset(unsigned int i)
{
	return i == 0 ? 0 : i * LARGE_SEGMENT - TCP_CLIENT_LENGTH;
}

static uint32_t large_length(unsigned int i)
{
	return RTE_MIN(large_offset(i + 1), RIG_STREAM_MAX) - large_offset(i);
}

/* --- the clients --------------------------------------------------------------------------------
 */

static void large_write(struct tcp_large *l, unsigned int k, unsigned int i)
{
	struct rte_mbuf *m = l->packet[k][i];
	uint8_t *at = rte_pktmbuf_mtod_offset(m, uint8_t *, TCP_CLIENT_HEADERS);
	uint32_t offset = large_offset(i), length = large_length(i), head = 0;
	uint32_t le_length = RIG_STREAM_MAX; /* the framing is little-endian, as x86 is */

	if (i == 0) {
		memcpy(at, &le_length, sizeof(le_length));
		head = sizeof(le_length);
	}
	at += head;
	for (uint32_t b = 0; b < length; b++)
		at[b] = large_byte(k, offset + b);
	l->at[k][i] = at;
	tcp_clients_write(l->clients, TCP_SEGMENT_REQUEST, l->flow[k], head + length, m);
}

void tcp_large_prepare(struct tcp_large *l, const uint32_t flow[LARGE_CLIENTS])
{
	struct clients *f = l->clients->frames;

	f->first = f->number;
	f->number += RIG_BATCH;
	for (unsigned int k = 0; k < LARGE_CLIENTS; k++) {
		f->flow[k] = l->flow[k] = flow[k];
		l->base[k] = NOT_PLACED;
		l->written[k] = 0;
		rig_alloc(l->clients->rig, l->packet[k], LARGE_SEGMENTS);
		for (unsigned int i = 0; i < LARGE_SEGMENTS; i++)
			large_write(l, k, i);
	}
}

unsigned int tcp_large_deliver(struct tcp_large *l, unsigned int turn, bool late)
{
	struct rte_mbuf *packet[LARGE_TURN];
	unsigned int n = 0, first = turn * LARGE_ROW;

	l->from = first < LARGE_ROW ? 0 : first - LARGE_ROW;
	for (unsigned int k = 0; k < LARGE_CLIENTS; k++) {
		for (unsigned int i = 0; turn < LARGE_TURNS && i < LARGE_ROW - (unsigned int)late;
		     i++)
			packet[n++] = l->packet[k][first + i];
		if (late && turn > 0)
			packet[n++] = l->packet[k][first - 1];
	}
	nic_deliver(&l->clients->rig->clients, packet, n);
	return n;
}

/* --- the worker ---------------------------------------------------------------------------------
 */

/* Finds the segment of this turn or the one before whose payload lies at <bytes>. */
static void large_find(const struct tcp_large *l, const uint8_t *bytes, unsigned int *k,
		       unsigned int *i)
{
	unsigned int end = RTE_MIN(l->from + 2 * LARGE_ROW, LARGE_SEGMENTS);

	for (*k = 0; *k < LARGE_CLIENTS; (*k)++)
		for (*i = l->from; *i < end; (*i)++)
			if (l->at[*k][*i] == bytes)
				return;
	rig_die("a payload was moved or cut on its way to the worker");
}

static void large_take(void *context, uint32_t offset, const uint8_t *bytes, uint32_t length,
		       const struct rte_mbuf *m)
{
	struct tcp_large *l = context;
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned int k, i;

	large_find(l, bytes, &k, &i);
	if (l->base[k] == NOT_PLACED)
		l->base[k] = offset - large_offset(i);
	if (offset != l->base[k] + large_offset(i) || length != large_length(i) ||
	    offset + length > PEER_ROOM)
		rig_die("segment %u of flow %u was written to a wrong place", i, l->flow[k]);
	l->written[k] += length;
	if (!l->peer->verify)
		return;
	if (m->nb_segs != 1 || !roce_icrc_ok(frame + ROCE_ETHER_LENGTH, 20,
					     m->data_len - ROCE_ETHER_LENGTH - ROCE_ICRC_LENGTH))
		rig_die("segment %u of flow %u: in pieces, or its ICRC is wrong", i, l->flow[k]);
	memcpy(l->memory + offset, bytes, length);
}

static uint32_t large_announce(void *context, uint32_t offset, uint32_t length)
{
	struct tcp_large *l = context;
	unsigned int k = 0;

	while (k < LARGE_CLIENTS && l->base[k] != offset)
		k++;
	if (k == LARGE_CLIENTS || length != RIG_STREAM_MAX || l->written[k] != RIG_STREAM_MAX)
		rig_die("a large request was announced with another length, or before it was "
			"there");
	for (uint32_t i = 0; l->peer->verify && i < RIG_STREAM_MAX; i++)
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
				l->flow[k], l->written[k], RIG_STREAM_MAX);
}

void tcp_large_init(struct tcp_large *l, struct tcp_clients *clients, struct peer *peer)
{
	l->clients = clients;
	l->peer = peer;
	peer->large = (struct peer_large){l, large_take, large_announce};
}
