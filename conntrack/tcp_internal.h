/* SPDX-License-Identifier: BSD-3-Clause */
/* What tcp.c shares with tcp_state.c, and with nobody else but their unit tests. */
#ifndef CONNTRACK_TCP_INTERNAL_H
#define CONNTRACK_TCP_INTERNAL_H

#include "tcp.h"

/* What a segment does to a connection, in the order in which one segment can do it. */
enum tcp_event {
	TCP_EVENT_SYN,       /* first SYN of an end, */
	TCP_EVENT_SYN_ACKED, /* and the first segment of the other end that acknowledges it */
	TCP_EVENT_FIN_ACKED, /* likewise */
	TCP_EVENT_FIN,
	TCP_EVENT_RST,
	TCP_EVENT_PICKUP, /* no SYN, nothing known */
	TCP_EVENTS,
};

/* Next state by state, event and whose segment it is. NONE: the state stays. */
extern const uint8_t tcp_transition[TCP_STATES][TCP_EVENTS][2];

#endif
