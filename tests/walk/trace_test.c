/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace of a client's requests: what its events say. */
#include "lb.h"
#include "observe/flow_trace.h"
#include "worker.h"

/* Two services of one client in one burst: each choice says whose request it was for. */
WALK(a_traced_choice_names_its_service)
{
	struct walk *w =
		walk_create(&(struct walk_params){.services = WALK_SERVICE("a", 8000, "echo", "")
							  WALK_SERVICE("b", 8001, "echo", "")});
	struct packet first = {.family = 4, .payload = 100}, second = first;
	struct trace_flow flow = {.client_port = PACKET_SOURCE_PORT};
	struct trace_event event[64];
	unsigned int chosen = 0;
	uint32_t id;
	uint64_t lost;
	int n;

	walk_worker(w, NULL);
	second.destination_port = 8001;
	walk_need(lb_address_parse(PACKET_SOURCE4, &flow.client) == 0);
	walk_need(lb_trace_start(w->lb, &flow, &id) == 0);
	walk_turn(w);
	walk_send(w, 0, &first);
	walk_send(w, 0, &second);
	walk_settle(w);
	n = lb_trace_read(w->lb, id, event, RTE_DIM(event), &lost);
	walk_expect_eq(lost, 0);
	for (int i = 0; i < n; i++)
		if (event[i].step == TRACE_CHOSEN)
			walk_expect_eq(event[i].service, chosen++);
	walk_expect_eq(chosen, 2);
	lb_trace_stop(w->lb, id);
	walk_expect_echo(w, 0, &first);
	walk_expect_echo(w, 0, &second);
	walk_destroy(w);
}
