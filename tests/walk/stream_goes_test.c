/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP services whose load balancer stops, whose service or worker goes, or whose configuration
 * changes. */
#include "edge/edge.h"
#include "lb.h"
#include "membership/operator_settings.h"
#include "packet/notice.h"
#include "raw.h"
#include "stop.h"
#include "worker.h"

/* Expects <n> bytes in order, in any number of segments, and acknowledges them. */
static void raw_expect_bytes(struct raw *r, uint32_t n)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_pass(r->w, 20);
	for (uint32_t got = 0; got < n; got += h.length) {
		walk_need(raw_take(r, &h, payload), "%u of %u bytes", got, n);
		r->ack = h.seq + tcp_header_span(&h);
	}
	raw_send(r, TCP_BIT_ACK, NULL, 0);
}

WALK(a_service_that_a_reload_takes_away)
{
	struct walk *w = walk_create(&raw_small);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw r;

	raw_open(&r, w, 3000);
	v->answers = false;
	raw_ask(&r, 5, 5);
	raw_take_service_away(w, &raw_small);
	walk_pass(w, 20);
	v->answers = true;
	walk_answer_all(v);
	raw_expect_answer(&r, 0, 5); /* what was asked is answered, then the connection closes */
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	walk_pass(w, 70000 / 10);
	raw_expect_none_left(w, 70000);
	walk_destroy(w);
}

/* A SYN of a new client gets a reset. */
static void expect_refused(struct walk *w, uint16_t port)
{
	struct raw r = {.w = w, .port = port, .seq = port};
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	raw_send(&r, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&r, &h, payload), "no reset");
	walk_expect_eq(h.flags, TCP_BIT_RST | TCP_BIT_ACK);
	walk_expect_eq(h.ack, r.seq);
}

/* Expects a reset at the number that the client waits for. */
static void raw_expect_end(struct raw *r)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	do
		walk_need(raw_take(r, &h, payload), "no reset");
	while (!(h.flags & TCP_BIT_RST));
	walk_expect_eq(h.seq, r->ack);
}

WALK(it_stops_after_the_replies_and_the_closes)
{
	struct walk *w = walk_create(&raw_small);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw idle, asking;

	v->answers = false;
	raw_open(&idle, w, 3000);
	raw_open(&asking, w, 3001);
	raw_ask(&asking, 5, 5);
	lb_stop_begin(w->lb);
	walk_turn(w);
	raw_expect_fin(&idle);
	walk_expect(!asking.fin);
	expect_refused(w, 3002);
	walk_expect_drops(w, {LB_DROP_STOPPING, 1});
	raw_send(&idle, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	/* As long as a request is open: a client that has its FIN is not hurried. */
	walk_pass(w, 3000);
	walk_expect(!lb_stop_over(w->lb));
	v->answers = true;
	walk_answer_all(v);
	raw_expect_answer(&asking, 0, 5);
	raw_expect_fin(&asking);
	raw_send(&asking, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	walk_tick(w);
	walk_expect(lb_stop_over(w->lb));
	walk_expect_no_drops(w);
	walk_destroy(w);
}

/* As if it were lost on the way it would be found out about by the client's next segment only, and
 * a client that waits for a reply sends none. */
WALK(a_reset_that_finds_no_packet_memory_is_sent_when_there_is_some)
{
	struct walk *w = walk_create(&raw_small);
	struct walk_worker *v = walk_worker(w, NULL);
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;
	struct raw r;

	v->answers = false;
	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5);
	walk_pass(w, 20);
	while (raw_take(&r, &h, payload))
		;
	walk_take_memory(w);
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_turns(w, 5);
	walk_expect(!raw_take(&r, &h, payload), "there is no memory for it");
	walk_expect(walk_stats(w).drop[LB_DROP_NO_MBUF] >= 5);
	walk_give_memory(w);
	walk_turns(w, 2);
	walk_need(raw_take(&r, &h, payload), "no reset");
	walk_expect(h.flags & TCP_BIT_RST);
	walk_expect(!raw_take(&r, &h, payload), "two resets");
	walk_answer_all(v);
	raw_expect_none_left(w, 1000);
	walk_destroy(w);
}

WALK(it_resets_clients_that_do_not_close_when_it_stops)
{
	struct walk *w = walk_create(&raw_small);
	struct raw r, half = {.w = w, .port = 3001, .seq = 7};

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	raw_send(&half, TCP_BIT_SYN, NULL, 0);
	raw_send(&r, TCP_BIT_ACK, "\x08\0\0\0half", 8); /* of a request */
	lb_stop_begin(w->lb);
	walk_turn(w);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	walk_pass(w, 900);
	walk_expect(!lb_stop_over(w->lb));
	walk_pass(w, 200);
	raw_expect_end(&r);
	walk_expect(lb_stop_over(w->lb));
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 0);
	walk_destroy(w);
}

WALK(what_is_left_at_the_end_of_a_stop_is_told_and_reset)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4}\nstop_timeout_ms: 50\n",
	};
	struct walk *w = walk_create(&params);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw asking, large_silent_worker;

	v->answers = false;
	raw_open(&asking, w, 3000);
	raw_open(&large_silent_worker, w, 3001); /* it acknowledges nothing any more */
	raw_ask(&asking, 5, 5);
	raw_ask(&large_silent_worker, 6, 6);
	lb_stop_begin(w->lb);
	walk_pass(w, 40);
	walk_expect(!asking.fin);
	walk_pass(w, 20);
	raw_expect_answer(&asking, LB_NOTICE_TIMEOUT, 0);
	raw_expect_fin(&asking);
	raw_send(&asking, TCP_BIT_ACK, NULL, 0);
	walk_expect_drops(w, {LB_DROP_STOP_TIMEOUT, 2});
	walk_pass(w, 900);
	walk_expect(!lb_stop_over(w->lb), "the second client has its notice not acknowledged");
	walk_pass(w, 200);
	raw_expect_end(&asking);
	walk_expect(lb_stop_over(w->lb));
	walk_destroy(w);
}

WALK(a_service_leaves_when_its_replies_have_arrived)
{
	struct walk *w = walk_create(&raw_small);
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5);
	raw_take_service_away(w, &raw_small);
	expect_refused(w, 3001);
	walk_turns(w, 5);
	walk_expect_eq(walk_stats(w).replies, 1);
	walk_forget(w, 0); /* the reply is lost on its way */
	walk_pass(w, 1000);
	raw_expect_answer(&r, 0, 5);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	walk_pass(w, 1000);
	/* It does not wait for those in TIME-WAIT. */
	walk_expect(!lb_service_used(&w->lb->config.service[0]), "it has not left");
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 0);
	walk_destroy(w);
}

WALK(clients_that_do_not_close_do_not_keep_a_service)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4}\nstop_timeout_ms: 5000\n",
	};
	struct walk *w = walk_create(&params);
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	raw_take_service_away(w, &params);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	walk_pass(w, 4900);
	walk_expect_silence(w, 0);
	walk_pass(w, 1000);
	raw_expect_end(&r);
	walk_expect(!lb_service_used(&w->lb->config.service[0]), "it has not left");
	walk_destroy(w);
}

WALK(a_drained_worker_answers_and_the_connection_stays)
{
	struct walk *w = walk_create(&raw_small);
	struct walk_worker *a = walk_worker(w, &(struct walk_worker_params){.name = "a"});
	struct walk_worker *b;
	struct raw r;

	a->answers = false;
	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5);
	walk_turn(w);
	walk_expect_eq(a->n_requests, 1);
	b = walk_worker(w, &(struct walk_worker_params){.name = "b"});
	walk_need(lb_settings_drain(w->lb, "a", true, w->error, sizeof(w->error)) == 0, "%s",
		  w->error);
	walk_pass(w, 20);
	raw_ask(&r, 6, 6);
	walk_pass(w, 20);
	walk_expect_eq(b->answered, 1);
	a->answers = true;
	walk_answer_all(a);
	raw_expect_bytes(&r, 8 + 5 + 8 + 6); /* the second reply has waited for the first */
	walk_pass(w, 1000);
	walk_expect(!r.fin);
	raw_ask(&r, 7, 7);
	raw_expect_answer(&r, 0, 7);
	walk_destroy(w);
}

WALK(replies_that_are_not_acknowledged_keep_no_packets_of_the_control_pool)
{
	struct walk *w = walk_create(&raw_small);
	struct rte_mempool *control = w->lb->lcore[0]->control;
	unsigned int left[8];
	struct raw r[8];

	walk_worker(w, NULL);
	for (unsigned int i = 0; i < 8; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_ask(&r[i], 500, 500);
		walk_pass(w, 20);
		walk_forget(w, 0);
		left[i] = rte_mempool_avail_count(control);
	}
	walk_expect_eq(left[7], left[0]);
	for (unsigned int i = 0; i < 8; i++) {
		r[i].ack += 8 + 500;
		raw_send(&r[i], TCP_BIT_ACK, NULL, 0);
	}
	walk_destroy(w);
}

/* <more>: of the service of IPv4; <other>: of that of IPv6. */
static void reload_large(struct walk *w, const char *more, const char *other, const char *buffer)
{
	char services[1024], tcp[256], text[4096];
	const struct walk_params params = {.services = services, .more = tcp};

	snprintf(services, sizeof(services), LARGE_SERVICE, more, other);
	snprintf(tcp, sizeof(tcp), "tcp: {connections: 256, %s}\n", buffer);
	walk_yaml(&params, NULL, text, sizeof(text));
	walk_need(walk_reload(w, text) == 0, "%s", w->error);
}

WALK(a_replay_that_is_allowed_half_way_does_not_send_half_a_request)
{
	struct walk *w = large_create(", replay: 1", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	/* Packets for replays are set aside only if a service replays at the start. */
	reload_large(w, "", ", replay: 1", "buffer_mb: 8");
	large_two_and_a_part(&r, w, &has, &other);
	reload_large(w, ", replay: 1", ", replay: 1", "buffer_mb: 8");
	raw_part(&r, 30000, 20000, 30000);
	large_expect_request(has, 0, 30000);
	large_take_worker(w, has);
	walk_pass(w, 5);
	walk_expect_eq(other->n_requests, 0);
	raw_expect_answer(&r, LB_NOTICE_WORKER_LOST, 0);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	raw_end(&r);
}

WALK(a_checksum_that_is_asked_for_half_way_begins_with_the_next_request)
{
	static const char *const more[] = {"", ", payload_crc: true"};

	for (unsigned int i = 0; i < 2; i++) {
		struct walk *w = large_create(more[i], "buffer_mb: 8");
		struct walk_worker *has, *other;
		struct raw r;

		large_two_and_a_part(&r, w, &has, &other);
		reload_large(w, more[1 - i], "", "buffer_mb: 8");
		raw_part(&r, 30000, 20000, 30000); /* the worker compares the sum */
		large_expect_request(has, 0, 30000);
		large_answer(has);
		raw_expect_answer(&r, 0, 2);
		raw_end(&r);
	}
}
