/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP connections as the control plane shows them. Counters are read straight from their owners'
 * memory, as those of observe/stats.h; the state of a connection by a call to its lcore.
 */
#ifndef EDGE_VIEW_H
#define EDGE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "tcp/connection.h"
#include "tls/counters.h"

struct lb;

/* The connections of one lcore now, and events since its start. Any thread. */
struct lb_tcp_stats {
	uint64_t connections; /* those in TIME-WAIT are not counted */
	uint64_t connections_max;
	uint64_t half_open; /* of these, those whose handshake is not complete */
	uint64_t busy;      /* of these, those with requests, or bytes to be acknowledged */
	uint64_t time_wait;
	uint64_t held_packets; /* received, and not part of a complete request */
	uint64_t held_packets_max;
	uint64_t requests, large_requests; /* begun and not answered; of these, larger than a packet */
	uint64_t pieces;  /* parts of segments that are held for requests */
	uint64_t clients; /* with busy connections */
	uint64_t timers;  /* connections with a timer */
	uint64_t handshakes; /* of TLS, that are not over */
	struct tcp_counters events;
	struct tls_counters tls; /* events of TLS */
};
/* False, and zeroes: the lcore has no memory for connections, as no service has protocol tcp. */
bool lb_tcp_stats_read(const struct lb *lb, unsigned int lcore, struct lb_tcp_stats *out);

/* One connection. Sizes in bytes of payload; 0 where nothing was measured. */
struct lb_connection {
	enum tcp_state state;
	enum tcp_phase phase;
	uint32_t cwnd, ssthresh, in_flight;
	uint32_t client_window;    /* that may be unacknowledged at most */
	uint32_t offered_window;   /* that the client may send now */
	uint32_t srtt_us, rttvar_us, rtt_min_us;
	uint32_t rto_ms; /* with back-off */
	uint32_t retransmits;
	uint32_t send_bytes; /* of replies, that are not acknowledged or wait for earlier replies */
	uint64_t held_bytes; /* of requests, not written to a worker yet */
	uint32_t requests;   /* begun and not answered */
	uint16_t mss;
	bool sack, timestamps, scaling, ecn;
	bool closing; /* no more requests are read */
	bool secured; /* it has TLS; */
	uint16_t tls_version; /* 0x0303: 1.2, 0x0304: 1.3; 0: its handshake is not over */
};
/* The state of flow <handle> of <lcore>. False: it is no TCP connection, or has ended. Control
 * thread. */
bool lb_connection_read(struct lb *lb, unsigned int lcore, uint64_t handle,
			struct lb_connection *out);

#endif
