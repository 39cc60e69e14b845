/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/capture_tap.h"

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "runtime/clock.h"
#include "runtime/txq.h"

#define MACS_LENGTH (2 * RTE_ETHER_ADDR_LEN)
#define TAG_LENGTH  4

static void count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/* <n> bytes from <offset> on, of all segments. */
static void copy(uint8_t *to, const struct rte_mbuf *m, uint32_t offset, uint32_t n)
{
	for (; m != NULL && n > 0; m = m->next) {
		uint32_t part = m->data_len > offset ? RTE_MIN(m->data_len - offset, n) : 0;

		memcpy(to, rte_pktmbuf_mtod_offset(m, const uint8_t *, offset), part);
		to += part;
		n -= part;
		offset -= RTE_MIN(offset, (uint32_t)m->data_len);
	}
}

/* The NIC took the tag out, and the file shall have what was on the wire. */
static void copy_tagged(uint8_t *to, const struct rte_mbuf *m, uint32_t n)
{
	const uint8_t tag[TAG_LENGTH] = {RTE_ETHER_TYPE_VLAN >> 8, RTE_ETHER_TYPE_VLAN & 0xff,
					 (uint8_t)(m->vlan_tci >> 8), (uint8_t)m->vlan_tci};
	uint32_t part = RTE_MIN(n, (uint32_t)MACS_LENGTH), cut = RTE_MIN(n - part, sizeof(tag));

	copy(to, m, 0, part);
	memcpy(to + part, tag, cut);
	copy(to + part + cut, m, part, n - part - cut);
}

static bool take(struct capture_tap *tap, const struct rte_mbuf *m, uint64_t tsc, uint64_t ns,
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
		copy_tagged(capture_packet_data(packet), m, packet->length);
	else
		copy(capture_packet_data(packet), m, 0, packet->length);
	return true;
}

static bool is_wanted(struct capture_tap *tap, const struct rte_mbuf *m)
{
	uint32_t n = RTE_MIN(m->pkt_len, (uint32_t)sizeof(tap->joined));

	if (tap->filter == NULL)
		return true;
	if (likely(m->next == NULL))
		return capture_filter_takes(tap->filter, rte_pktmbuf_mtod(m, const uint8_t *),
					    m->data_len, m->data_len);
	copy(tap->joined, m, 0, n);
	return capture_filter_takes(tap->filter, tap->joined, n, m->pkt_len);
}

static void take_burst(struct capture_tap *tap, struct rte_mbuf **packet, unsigned int n,
		       enum capture_direction direction)
{
	uint64_t tsc = rte_rdtsc(), ns = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (!is_wanted(tap, packet[i])) {
			count(&tap->filtered);
			continue;
		}
		if (ns == 0)
			ns = clock_wall_ns();
		if (!take(tap, packet[i], tsc, ns, direction))
			count(&tap->dropped);
	}
	capture_ring_publish(&tap->ring);
}

uint16_t capture_tap_in(uint16_t port, uint16_t queue, struct rte_mbuf **packet, uint16_t n,
			uint16_t max, void *tap)
{
	if (n > 0)
		take_burst(tap, packet, n, CAPTURE_IN);
	return n;
}

uint16_t capture_tap_out(uint16_t port, uint16_t queue, struct rte_mbuf **packet, uint16_t n,
			 void *argument)
{
	struct capture_tap *tap = argument;
	/* What a full port did not take is offered again, and is to be seen once: number them. */
	uint64_t first = tap->tx->packets + (uint64_t)(packet - tap->tx->packet);
	uint16_t seen = tap->sent > first ? (uint16_t)RTE_MIN(tap->sent - first, n) : 0;

	if (seen < n)
		take_burst(tap, packet + seen, n - seen, CAPTURE_OUT);
	tap->sent = RTE_MAX(tap->sent, first + n);
	return n;
}
