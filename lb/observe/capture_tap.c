/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/capture_tap.h"

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "runtime/clock.h"
#include "runtime/txq.h"

#define MACS_LENGTH (2 * RTE_ETHER_ADDR_LEN)
#define TAG_LENGTH  4

static void tap_count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/* Copy <n> bytes from <offset> on, across segments. */
static void tap_copy(uint8_t *to, const struct rte_mbuf *m, uint32_t offset, uint32_t n)
{
	for (; m != NULL && n > 0; m = m->next) {
		uint32_t part = m->data_len > offset ? RTE_MIN(m->data_len - offset, n) : 0;

		memcpy(to, rte_pktmbuf_mtod_offset(m, const uint8_t *, offset), part);
		to += part;
		n -= part;
		offset -= RTE_MIN(offset, (uint32_t)m->data_len);
	}
}

/* Put the VLAN tag back that the NIC stripped: the file shows the frame as it was on the wire. */
static void tap_copy_tagged(uint8_t *to, const struct rte_mbuf *m, uint32_t n)
{
	const uint8_t tag[TAG_LENGTH] = {RTE_ETHER_TYPE_VLAN >> 8, RTE_ETHER_TYPE_VLAN & 0xff,
					 (uint8_t)(m->vlan_tci >> 8), (uint8_t)m->vlan_tci};
	uint32_t part = RTE_MIN(n, (uint32_t)MACS_LENGTH), cut = RTE_MIN(n - part, sizeof(tag));

	tap_copy(to, m, 0, part);
	memcpy(to + part, tag, cut);
	tap_copy(to + part + cut, m, part, n - part - cut);
}

static bool tap_take(struct capture_tap *tap, const struct rte_mbuf *m, uint64_t tsc, uint64_t ns,
		     enum capture_direction direction)
{
	bool tagged = direction == CAPTURE_IN && m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED;
	uint32_t original = m->pkt_len + (tagged ? TAG_LENGTH : 0);
	struct capture_packet *packet =
		capture_ring_take(&tap->ring, RTE_MIN(original, tap->snaplen));

	if (packet == NULL)
		return false;
	packet->tsc = tsc;
	packet->ns = ns;
	packet->original = original;
	packet->queue = tap->queue;
	packet->direction = direction;
	if (unlikely(tagged))
		tap_copy_tagged(capture_packet_data(packet), m, packet->length);
	else
		tap_copy(capture_packet_data(packet), m, 0, packet->length);
	return true;
}

static bool tap_wants(struct capture_tap *tap, const struct rte_mbuf *m)
{
	uint32_t n = RTE_MIN(m->pkt_len, (uint32_t)sizeof(tap->joined));

	if (tap->filter == NULL)
		return true;
	if (likely(m->next == NULL))
		return capture_filter_takes(tap->filter, rte_pktmbuf_mtod(m, const uint8_t *),
					    m->data_len, m->data_len);
	tap_copy(tap->joined, m, 0, n);
	return capture_filter_takes(tap->filter, tap->joined, n, m->pkt_len);
}

static void tap_take_burst(struct capture_tap *tap, struct rte_mbuf **packet, unsigned int n,
			   enum capture_direction direction)
{
	uint64_t tsc = rte_rdtsc(), ns = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (!tap_wants(tap, packet[i])) {
			tap_count(&tap->filtered);
			continue;
		}
		if (ns == 0)
			ns = clock_wall_ns(); /* not the TSC: DPDK knows its rate only to a few per
						 mille */
		if (!tap_take(tap, packet[i], tsc, ns, direction))
			tap_count(&tap->dropped);
	}
	capture_ring_publish(&tap->ring);
}

uint16_t capture_tap_in(uint16_t port, uint16_t queue, struct rte_mbuf **packet, uint16_t n,
			uint16_t max, void *tap)
{
	if (n > 0)
		tap_take_burst(tap, packet, n, CAPTURE_IN);
	return n;
}

uint16_t capture_tap_out(uint16_t port, uint16_t queue, struct rte_mbuf **packet, uint16_t n,
			 void *argument)
{
	struct capture_tap *tap = argument;
	/* Packets that a full port did not take are offered again. Their numbers show which were
	 * captured already. */
	uint64_t first = tap->tx->packets + (uint64_t)(packet - tap->tx->packet);
	uint16_t seen = tap->sent > first ? (uint16_t)RTE_MIN(tap->sent - first, n) : 0;

	if (seen < n)
		tap_take_burst(tap, packet + seen, n - seen, CAPTURE_OUT);
	tap->sent = RTE_MAX(tap->sent, first + n);
	return n;
}
