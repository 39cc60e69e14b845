/* SPDX-License-Identifier: BSD-3-Clause */
/* The transition table of tcp_state.c. Private to conntrack/tcp*.c and the unit tests. */
#ifndef CONNTRACK_TCP_STATE_H
#define CONNTRACK_TCP_STATE_H

#include "tcp.h"

/* Events of a connection, in the order in which one segment can cause them. */
enum tcp_event {
	TCP_EVENT_SYN,       /* the first SYN of an end */
	TCP_EVENT_SYN_ACKED, /* the other end's first segment that acknowledges the SYN */
	TCP_EVENT_FIN_ACKED, /* the other end's first segment that acknowledges the FIN */
	TCP_EVENT_FIN,
	TCP_EVENT_RST,
	TCP_EVENT_PICKUP, /* a segment without SYN of an unknown connection */
	TCP_EVENTS,
};

/* Next state by state, event and the segment's direction. NONE: the state does not change. */
extern const uint8_t tcp_transition[TCP_STATES][TCP_EVENTS][2];

#endif
