/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "conntrack.h"

struct row {
	const char *story;
	enum flow_state before;
	enum flow_event event;
	enum flow_state after;
};

static const struct row rows[] = {
	{"talking alone proves nothing", FLOW_UDP_ONE_WAY, FLOW_EVENT_FROM_CLIENT,
	 FLOW_UDP_ONE_WAY},
	{"an answer is an answer", FLOW_UDP_ONE_WAY, FLOW_EVENT_TO_CLIENT, FLOW_UDP_ANSWERED},
	{"more answers prove nothing", FLOW_UDP_ANSWERED, FLOW_EVENT_TO_CLIENT, FLOW_UDP_ANSWERED},
	{"speaking again establishes", FLOW_UDP_ANSWERED, FLOW_EVENT_FROM_CLIENT,
	 FLOW_UDP_ESTABLISHED},
	{"talking on changes nothing", FLOW_UDP_ESTABLISHED, FLOW_EVENT_FROM_CLIENT,
	 FLOW_UDP_ESTABLISHED},
	{"more answers neither", FLOW_UDP_ESTABLISHED, FLOW_EVENT_TO_CLIENT, FLOW_UDP_ESTABLISHED},
	{"what is free stays free", FLOW_FREE, FLOW_EVENT_FROM_CLIENT, FLOW_FREE},
	{"nobody was there yet", FLOW_UDP_ONE_WAY, FLOW_EVENT_UNREACHABLE, FLOW_UDP_ONE_WAY},
	{"an answer that found nobody", FLOW_UDP_ANSWERED, FLOW_EVENT_UNREACHABLE,
	 FLOW_UDP_ANSWERED},
	{"gone, says somebody", FLOW_UDP_ESTABLISHED, FLOW_EVENT_UNREACHABLE, FLOW_UDP_ANSWERED},
	{"even if answered", FLOW_FREE, FLOW_EVENT_TO_CLIENT, FLOW_FREE},
};

Test(conntrack_state, each_event_leads_where_the_story_says)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct flow flow = {.state = (uint8_t)rows[i].before};

		conntrack_event(&flow, rows[i].event);
		cr_assert_eq(flow.state, rows[i].after, "%s", rows[i].story);
	}
}

Test(conntrack_state, every_state_has_a_name_of_its_own)
{
	for (unsigned int a = 0; a < FLOW_STATES; a++)
		for (unsigned int b = 0; b < a; b++)
			cr_assert_str_neq(conntrack_state_name(a), conntrack_state_name(b));
	cr_assert_str_eq(conntrack_state_name(FLOW_UDP_ONE_WAY), "udp-one-way");
	cr_assert_str_eq(conntrack_state_name(FLOW_STATES), "unknown");
	cr_assert_str_eq(conntrack_state_name((enum flow_state) - 1), "unknown");
}

Test(conntrack_state, no_event_makes_a_live_flow_free)
{
	for (unsigned int state = FLOW_FREE + 1; state < FLOW_STATES; state++)
		for (unsigned int event = 0; event < FLOW_EVENTS; event++)
			cr_assert_neq(conntrack_transition[state][event], FLOW_FREE);
}
