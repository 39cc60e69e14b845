/* SPDX-License-Identifier: BSD-3-Clause */
/* States of a flow: what follows what, and what people call them. Pure data. */
#include "conntrack.h"

/* A free flow stays free whatever happens: nobody holds one but by mistake. */
const uint8_t conntrack_transition[FLOW_STATES][FLOW_EVENTS] = {
	[FLOW_UDP_ONE_WAY] =
		{
			[FLOW_EVENT_FROM_CLIENT] = FLOW_UDP_ONE_WAY,
			[FLOW_EVENT_TO_CLIENT] = FLOW_UDP_ANSWERED,
			[FLOW_EVENT_UNREACHABLE] = FLOW_UDP_ONE_WAY,
		},
	/* A reply proves nothing, a spoofed source gets one, too. Who speaks again is there. */
	[FLOW_UDP_ANSWERED] =
		{
			[FLOW_EVENT_FROM_CLIENT] = FLOW_UDP_ESTABLISHED,
			[FLOW_EVENT_TO_CLIENT] = FLOW_UDP_ANSWERED,
			[FLOW_EVENT_UNREACHABLE] = FLOW_UDP_ANSWERED,
		},
	/* Who says that it has gone may lie: it loses what it had by speaking, until it speaks. */
	[FLOW_UDP_ESTABLISHED] =
		{
			[FLOW_EVENT_FROM_CLIENT] = FLOW_UDP_ESTABLISHED,
			[FLOW_EVENT_TO_CLIENT] = FLOW_UDP_ESTABLISHED,
			[FLOW_EVENT_UNREACHABLE] = FLOW_UDP_ANSWERED,
		},
};

static const char *const state_name[FLOW_STATES] = {
	[FLOW_FREE] = "free",
	[FLOW_UDP_ONE_WAY] = "udp-one-way",
	[FLOW_UDP_ANSWERED] = "udp-answered",
	[FLOW_UDP_ESTABLISHED] = "udp-established",
};

const char *conntrack_state_name(enum flow_state state)
{
	return (unsigned int)state < FLOW_STATES ? state_name[state] : "unknown";
}
