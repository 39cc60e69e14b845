/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP services: the view of operators, traces, and ICMP errors. */
#include <string.h>

#include <arpa/inet.h>

#include "edge/edge.h"
#include "edge/view.h"
#include "lb.h"
#include "observe/flow_trace.h"
#include "raw.h"
#include "stop.h"
#include "worker.h"

static uint64_t raw_handle(const struct raw *r)
{
	struct flow_info flow[16];
	uint32_t cursor = 0;
	unsigned int n = conntrack_dump(r->w->lb->lcore[0]->ct, &cursor, flow, RTE_DIM(flow));

	while (n > 0 && flow[n - 1].key.src_port != htons(r->port))
		n--;
	walk_need(n > 0, "no flow");
	return flow[n - 1].handle;
}

static struct lb_connection raw_view(const struct raw *r)
{
	struct lb_connection c;

	walk_need(lb_connection_read(r->w->lb, 0, raw_handle(r), &c), "no connection");
	return c;
}

WALK(a_connection_says_what_it_holds)
{
	struct walk *w = walk_create(&raw_small);
	struct walk_worker *v = walk_worker(w, NULL);
	uint8_t rest[300] = {0};
	struct lb_connection c;
	struct raw r;

	v->answers = false;
	raw_open(&r, w, 3000);
	c = raw_view(&r);
	walk_expect_eq(c.state, TCP_ESTABLISHED);
	walk_expect_eq(c.mss, 536);
	walk_expect_eq(c.cwnd, 10 * 536);
	walk_expect_eq(c.requests, 0);
	raw_ask(&r, 5, 5);
	raw_ask(&r, 400, 100); /* of which 300 bytes are missing */
	c = raw_view(&r);
	walk_expect_eq(c.requests, 2);
	walk_expect_eq(c.held_bytes, 100);
	walk_expect_eq(c.send_bytes, 0);
	walk_expect_eq(c.client_window, 65535);
	v->answers = true;
	walk_answer_all(v);
	walk_turns(w, 3);
	c = raw_view(&r);
	walk_expect_eq(c.requests, 1);
	walk_expect_eq(c.send_bytes, 13);
	walk_expect_eq(c.in_flight, 13);
	walk_expect_eq(c.retransmits, 0);
	walk_forget(w, 0);
	walk_pass(w, 2000);
	c = raw_view(&r);
	walk_expect(c.retransmits > 0, "%u", c.retransmits);
	walk_expect_eq(c.phase, TCP_PHASE_TIMEOUT);
	raw_expect_answer(&r, 0, 5);
	v->answers = false;
	raw_send(&r, TCP_BIT_ACK, rest, sizeof(rest)); /* the rest of the second request */
	v->answers = true;
	walk_answer_all(v);
	walk_turns(w, 3);
	walk_pass(w, 7); /* that long is the reply on its way */
	raw_expect_answer(&r, 0, 400);
	c = raw_view(&r);
	walk_expect(c.srtt_us >= 7000 && c.rtt_min_us <= 30000, "%u %u", c.srtt_us, c.rtt_min_us);
	walk_destroy(w);
}

WALK(a_connection_in_TIME_WAIT_says_so)
{
	struct walk *w = walk_create(&raw_small);
	struct lb_tcp_stats s;
	struct raw r;

	raw_open(&r, w, 3000);
	walk_expect(lb_tcp_stats_read(w->lb, 0, &s));
	walk_expect_eq(s.connections, 1);
	walk_expect_eq(s.connections_max, 256);
	raw_take_service_away(w, &raw_small);
	raw_into_time_wait(&r);
	walk_expect_eq(raw_view(&r).state, TCP_TIME_WAIT);
	lb_tcp_stats_read(w->lb, 0, &s);
	walk_expect_eq(s.connections, 0);
	walk_expect_eq(s.time_wait, 1);
	walk_destroy(w);
}

/* The names of the steps that the trace has had since the last call, with a blank behind each. */
static const char *steps_of(struct walk *w, uint32_t id)
{
	static char text[4096];
	struct trace_event event[256];
	uint64_t lost;
	int n = lb_trace_read(w->lb, id, event, RTE_DIM(event), &lost);
	size_t at = 0;

	text[0] = '\0';
	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s ",
				       lb_trace_step_name(event[i].step));
	return text;
}

static void expect_steps(struct walk *w, uint32_t id, const char *expected)
{
	const char *steps = steps_of(w, id);

	walk_expect(strcmp(steps, expected) == 0, "%s", steps);
}

static uint32_t trace_client(struct walk *w, uint16_t port, uint8_t protocol)
{
	struct trace_flow flow = {.client_port = port, .protocol = protocol};
	uint32_t id;

	walk_need(lb_address_parse(PACKET_SOURCE4, &flow.client) == 0);
	walk_need(lb_trace_start(w->lb, &flow, &id, w->error, sizeof(w->error)) == 0);
	return id;
}

WALK(a_trace_of_a_connection)
{
	struct walk *w = walk_create(&raw_small);
	struct raw r, other;
	uint32_t id;

	walk_worker(w, NULL);
	id = trace_client(w, 3000, IPPROTO_TCP);
	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	expect_steps(w, id, "segment segment opened ");
	raw_ask(&other, 5, 5);
	raw_expect_answer(&other, 0, 5);
	expect_steps(w, id, "");
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	expect_steps(w, id,
		     "segment read request chosen sent acked reply times answered segment "
		     "received ");
	/* A segment that comes again is not taken. */
	r.seq -= 9;
	raw_send(&r, TCP_BIT_ACK, "again", 5);
	r.seq += 4;
	expect_steps(w, id, "segment ignored ");
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	walk_turn(w);
	expect_steps(w, id, "segment segment closed ");
	raw_open(&r, w, 3000);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_turn(w);
	expect_steps(w, id, "segment segment opened segment reset closed ");
	lb_trace_stop(w->lb, id);
	walk_destroy(w);
}

WALK(a_trace_that_begins_later_and_one_of_another_protocol)
{
	struct walk *w = walk_create(&raw_small);
	struct raw r;
	uint32_t id;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	id = trace_client(w, 3000, IPPROTO_UDP);
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	expect_steps(w, id, "");
	id = trace_client(w, 3000, 0);
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	expect_steps(w, id,
		     "segment read request chosen sent acked reply times answered segment "
		     "received ");
	/* The load balancer resets the connection. */
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_turn(w);
	expect_steps(w, id, "reset closed ");
	lb_trace_stop(w->lb, id);
	walk_destroy(w);
}

/* A wrong bit makes a checksum the pseudo header's sum once in 65,536 times: that counts only where
 * the SYN had such a one. */
WALK(checksums_are_left_to_hardware_always_or_never)
{
	struct walk *w = large_create("", "buffer_mb: 8");
	struct raw whole, left = {.w = w, .port = 3001, .sum = SUM_PARTIAL};

	w->lb->port[0].local_senders = true;
	walk_worker(w, &large_roomy);
	raw_open(&whole, w, 3000);
	raw_connect(&left);
	raw_ask(&left, 10, 10);
	raw_expect_answer(&left, 0, 10);
	whole.sum = SUM_PARTIAL;
	raw_ask(&whole, 10, 10);
	walk_expect_drops(w, {LB_DROP_TCP_CHECKSUM, 1});
	whole.sum = SUM_RIGHT;
	whole.seq -= 14;
	raw_ask(&whole, 10, 10);
	raw_expect_answer(&whole, 0, 10);
	raw_send(&left, TCP_BIT_RST, NULL, 0);
	raw_send(&whole, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	walk_destroy(w);
}

WALK(a_trace_of_a_large_request)
{
	struct walk *w = large_create("", "buffer_mb: 8");
	struct walk_worker *v = walk_worker(w, &large_roomy);
	struct raw r;
	uint32_t id;

	v->answers = false;
	raw_open(&r, w, 3000);
	id = trace_client(w, 3000, IPPROTO_TCP);
	raw_part(&r, 3000, 0, 1000);
	expect_steps(w, id, "segment chosen ");
	raw_part(&r, 3000, 1000, 3000);
	expect_steps(w, id, "segment segment read sent ");
	large_answer(v);
	raw_expect_answer(&r, 0, 2);
	expect_steps(w, id, "acked reply times answered segment received ");
	lb_trace_stop(w->lb, id);
	raw_end(&r);
}

/* A router says that the segment with number <seq> to port <port> was too big. */
static void too_big(struct walk *w, uint16_t port, uint32_t seq, uint16_t mtu)
{
	uint8_t quoted[28] = {0x45, 0,   5,  0xb0, 0, 0,   0x40, 0, 64, IPPROTO_TCP, 0,
			      0,    198, 51, 100,  1, 192, 0,    2, 7,  8000 >> 8,   8000 & 0xff};
	struct packet p = {
		.family = 4,
		.source = "192.0.2.99",
		.icmp = true,
		.icmp_type = 3,
		.icmp_code = 4,
		.icmp_mtu = mtu,
		.bytes = quoted,
		.n_bytes = sizeof(quoted),
	};
	uint32_t number = htonl(seq);

	quoted[22] = port >> 8;
	quoted[23] = port & 0xff;
	memcpy(quoted + 24, &number, sizeof(number));
	walk_send(w, 0, &p);
	walk_turn(w);
}

/* The largest payload of what comes within <ms>; acknowledges nothing. */
static uint32_t raw_longest(struct raw *r, uint32_t ms)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;
	uint32_t longest = 0;

	walk_pass(r->w, ms);
	while (raw_take(r, &h, payload))
		longest = RTE_MAX(longest, h.length);
	return longest;
}

WALK(a_segment_that_was_too_big_for_the_path)
{
	struct walk *w = walk_create(&raw_small);
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	raw_ask(&r, 1000, 1000);
	walk_expect_eq(raw_longest(&r, 20), 536); /* the client named no MSS */
	/* Forged ones name numbers that are not under way. */
	too_big(w, 3000, r.ack - 1, 552);
	too_big(w, 3000, r.ack + 1008, 552);
	too_big(w, 3000, r.ack + 0x80000000, 552);
	too_big(w, 3001, r.ack, 552);
	walk_expect_drops(w, {LB_DROP_ICMP_NO_FLOW, 4});
	walk_expect_eq(raw_longest(&r, 1000), 536);
	/* No path of IPv4 is narrower than is believed. */
	too_big(w, 3000, r.ack + 536, 100);
	walk_expect_drops(w, {LB_DROP_ICMP_TOO_BIG, 1});
	walk_expect_eq(raw_longest(&r, 5000), 512);
	too_big(w, 3000, r.ack, 1400);
	walk_expect_drops(w, {LB_DROP_ICMP_TOO_BIG, 1});
	walk_expect_eq(raw_longest(&r, 10000), 512);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	raw_expect_none_left(w, 1);
	walk_destroy(w);
}
