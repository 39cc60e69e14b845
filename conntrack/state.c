/* SPDX-License-Identifier: BSD-3-Clause */
/* States of a flow: transitions and names. Pure data. */
#include "conntrack.h"

/* A free flow stays free: an event for one is a mistake of the caller. */
const uint8_t conntrack_transition[FLOW_STATES][FLOW_EVENTS] = {
	[FLOW_UDP_ONE_WAY] =
		{
			[FLOW_EVENT_FROM_CLIENT] = FLOW_UDP_ONE_WAY,
			[FLOW_EVENT_TO_CLIENT] = FLOW_UDP_ANSWERED,
			[FLOW_EVENT_UNREACHABLE] = FLOW_UDP_ONE_WAY,
		},
	/* A reply alone proves nothing, as a spoofed source gets one too; a second packet does. */
	[FLOW_UDP_ANSWERED] =
		{
			[FLOW_EVENT_FROM_CLIENT] = FLOW_UDP_ESTABLISHED,
			[FLOW_EVENT_TO_CLIENT] = FLOW_UDP_ANSWERED,
			[FLOW_EVENT_UNREACHABLE] = FLOW_UDP_ANSWERED,
		},
	/* An ICMP error may be forged: it only undoes the second packet, until the next one. */
	[FLOW_UDP_ESTABLISHED] =
		{
			[FLOW_EVENT_FROM_CLIENT] = FLOW_UDP_ESTABLISHED,
			[FLOW_EVENT_TO_CLIENT] = FLOW_UDP_ESTABLISHED,
			[FLOW_EVENT_UNREACHABLE] = FLOW_UDP_ANSWERED,
		},
	[FLOW_TCP_OPENING] = {FLOW_TCP_OPENING, FLOW_TCP_OPENING, FLOW_TCP_OPENING},
	[FLOW_TCP_OPEN] = {FLOW_TCP_OPEN, FLOW_TCP_OPEN, FLOW_TCP_OPEN},
	[FLOW_TCP_WAIT] = {FLOW_TCP_WAIT, FLOW_TCP_WAIT, FLOW_TCP_WAIT},
};

static const char *const state_name[FLOW_STATES] = {
	[FLOW_FREE] = "free",
	[FLOW_UDP_ONE_WAY] = "udp-one-way",
	[FLOW_UDP_ANSWERED] = "udp-answered",
	[FLOW_UDP_ESTABLISHED] = "udp-established",
	[FLOW_TCP_OPENING] = "tcp-opening",
	[FLOW_TCP_OPEN] = "tcp-open",
	[FLOW_TCP_WAIT] = "tcp-wait",
};

const char *conntrack_state_name(enum flow_state state)
{
	return (unsigned int)state < FLOW_STATES ? state_name[state] : "unknown";
}
