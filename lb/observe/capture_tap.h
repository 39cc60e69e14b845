/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies the packets that one lcore receives and sends through its queue of a port, for a capture
 * (private to lb/). It uses DPDK's callbacks, so a queue that is not captured pays nothing.
 */
#ifndef CAPTURE_TAP_H
#define CAPTURE_TAP_H

#include "observe/capture_filter.h"
#include "observe/capture_ring.h"

struct rte_eth_rxtx_callback;
struct rte_mbuf;
struct txq;

/* The lcore writes the members above the line, once it has the callbacks. */
struct capture_tap {
	struct capture_ring ring;
	uint64_t sent;              /* packets of <tx>, ever, that were seen here */
	uint64_t filtered, dropped; /* atomic */
	/* --- */
	const struct capture_filter *filter; /* NULL: all packets match */
	uint32_t snaplen;
	uint16_t queue;
	const struct txq *tx;
	const struct rte_eth_rxtx_callback *in, *out; /* the control thread's */
	uint8_t joined[UINT16_MAX]; /* the lcore's: a packet of several segments, for the filter */
};

/* rte_rx_callback_fn, rte_tx_callback_fn; the argument is the tap. */
uint16_t capture_tap_in(uint16_t port, uint16_t queue, struct rte_mbuf **packet, uint16_t n,
			uint16_t max, void *tap);
uint16_t capture_tap_out(uint16_t port, uint16_t queue, struct rte_mbuf **packet, uint16_t n,
			 void *tap);

#endif
