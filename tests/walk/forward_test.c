/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to workers: the descriptor, the worker that is chosen, and the case without room. */
#include "worker.h"
#include "lb.h"

static const struct packet ask = {.family = 4, .payload = 100};

static struct walk *walk_with(const char *services)
{
	return walk_create(&(struct walk_params){.services = services});
}

WALK(a_worker_is_told_service_length_and_time)
{
	struct walk *w = walk_with(WALK_SERVICE("a", 8000, "echo", "") WALK_SERVICE(
		"b", 8001, "echo", ", request_timeout_ms: 700"));
	struct walk_worker *v = walk_worker(w, NULL);
	struct packet p = {.family = 4, .payload = 33, .destination_port = 8001};

	v->answers = false;
	walk_send(w, 0, &p);
	walk_settle(w);
	walk_need(v->n_requests == 1);
	walk_expect_eq(v->request[0].service, 1);
	walk_expect_eq(v->request[0].length, 33);
	walk_expect_eq(v->request[0].deadline_us, 700000);
	walk_expect_eq(v->request[0].flags, 0);
	walk_expect(memcmp(v->request[0].bytes, "@ABC", 4) == 0);
	walk_destroy(w);
}

WALK(payloads_get_a_crc_where_the_service_says_so)
{
	struct walk *w = walk_with(WALK_SERVICE("a", 8000, "echo", ", payload_crc: true"));
	struct walk_worker *v = walk_worker(w, NULL);

	v->answers = false;
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_need(v->n_requests == 1); /* which checks the CRC */
	walk_expect_eq(v->request[0].flags, RING_HAS_CRC);
	walk_destroy(w);
}

WALK(every_length_arrives_whole)
{
	for (uint32_t mtu = 256; mtu <= 1024; mtu *= 2) {
		struct walk *w = walk_create(NULL);
		struct packet p = {.family = 4};

		walk_worker(w, &(struct walk_worker_params){.path_mtu = mtu});
		for (unsigned int n = 1; n <= 1472; n += n < 8 ? 1 : 61) {
			p.payload = n;
			walk_send(w, 0, &p);
			walk_settle(w);
			walk_context("%u bytes at %u", n, mtu);
			walk_expect_echo(w, 0, &p);
		}
		walk_context("%s", "");
		walk_expect_no_drops(w);
		walk_destroy(w);
	}
}

WALK(a_whole_burst_shares_a_descriptor_write)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 32});
	uint64_t before = walk_worker_stats(v).packets_sent;

	for (int i = 0; i < 16; i++)
		walk_send(w, 0, &ask);
	walk_turn(w);
	walk_expect_eq(walk_worker_stats(v).packets_sent - before, 17);
	walk_turn(w);
	walk_expect_eq(walk_count(w, 0), 16);
	walk_destroy(w);
}

WALK(a_ring_goes_round_and_round)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 4});

	for (int i = 0; i < 100; i++) {
		for (int k = 0; k < 3; k++)
			walk_send(w, 0, &ask);
		walk_settle(w);
		walk_expect_eq(walk_count(w, 0), 3);
		walk_forget(w, 0);
	}
	walk_expect_eq(v->answered, 300);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(each_policy_serves_and_spreads)
{
	static const char *const policies[] = {"round-robin",  "weighted",
					       "maglev",       "least-outstanding",
					       "power-of-two", "earliest-finish"};

	for (size_t i = 0; i < RTE_DIM(policies); i++) {
		char services[256];
		struct walk *w;
		struct walk_worker *v[3];
		struct packet p = ask;

		snprintf(services, sizeof(services),
			 "  - {name: a, address: " PACKET_DESTINATION4
			 ", port: 8000, model: echo, policy: %s}\n",
			 policies[i]);
		w = walk_with(services);
		walk_context("%s", policies[i]);
		for (int k = 0; k < 3; k++) {
			v[k] = walk_worker(w, &(struct walk_worker_params){.slots = 64});
			v[k]->answers = false;
		}
		for (int k = 0; k < 60; k++) {
			p.source_port = 2000 + k;
			walk_send(w, 0, &p);
			walk_turn(w);
		}
		for (int k = 0; k < 3; k++) {
			walk_expect(v[k]->n_requests >= 5, "worker %d has %u of 60", k,
				    v[k]->n_requests);
			walk_answer_all(v[k]);
		}
		walk_settle(w);
		walk_expect_eq(walk_count(w, 0), 60);
		walk_expect_no_drops(w);
		walk_destroy(w);
	}
}

WALK(a_flow_keeps_its_worker_where_affinity_says_so)
{
	static const char *const affinities[] = {"flow", "sticky"};

	for (size_t i = 0; i < RTE_DIM(affinities); i++) {
		char services[256];
		struct walk *w;
		struct walk_worker *a, *b;

		snprintf(services, sizeof(services),
			 "  - {name: a, address: " PACKET_DESTINATION4
			 ", port: 8000, model: echo, affinity: %s}\n",
			 affinities[i]);
		w = walk_with(services);
		walk_context("%s", affinities[i]);
		a = walk_worker(w, NULL);
		b = walk_worker(w, NULL);
		for (int k = 0; k < 20; k++) {
			walk_send(w, 0, &ask);
			walk_settle(w);
		}
		walk_expect_eq(a->answered + b->answered, 20);
		walk_expect(a->answered == 20 || b->answered == 20);
		walk_destroy(w);
	}
}

WALK(a_heavier_worker_gets_more)
{
	struct walk *w = walk_with(WALK_SERVICE("a", 8000, "echo", ", policy: weighted"));
	struct walk_worker *a = walk_worker(w, &(struct walk_worker_params){.weight = 3});
	struct walk_worker *b = walk_worker(w, NULL);

	for (int k = 0; k < 80; k++) {
		walk_send(w, 0, &ask);
		walk_settle(w);
	}
	walk_expect_eq(a->answered, 60);
	walk_expect_eq(b->answered, 20);
	walk_destroy(w);
}

WALK(services_do_not_get_each_others_workers)
{
	struct walk *w =
		walk_with(WALK_SERVICE("a", 8000, "one", "") WALK_SERVICE("b", 8001, "two", ""));
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.model = "two"});
	struct packet p = {.family = 4, .payload = 8, .destination_port = 8001};

	walk_send(w, 0, &ask);
	walk_send(w, 0, &p);
	walk_settle(w);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_BUSY);
	walk_expect_echo(w, 0, &p);
	walk_expect_eq(v->answered, 1);
	walk_expect_drops(w, {LB_DROP_NO_WORKER, 1});
	walk_destroy(w);
}

WALK(an_assigned_service_is_served_by_those_assigned_to_it)
{
	struct walk *w = walk_with(WALK_SERVICE("a", 8000, "echo", ", workers: assigned"));
	struct walk_worker *a = walk_worker(w, NULL), *b = walk_worker(w, NULL);

	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_BUSY);
	walk_expect_drops(w, {LB_DROP_NO_WORKER, 1});
	walk_need(lb_worker_assign(w->lb, walk_worker_of(b), &(unsigned int){0}, 1, w->error,
				   sizeof(w->error)) == 0);
	for (int i = 0; i < 4; i++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_eq(walk_count(w, 0), 4);
	walk_expect_eq(a->answered, 0);
	walk_expect_eq(b->answered, 4);
	walk_destroy(w);
}

WALK(packet_memory_that_is_out_is_told_and_counted)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.path_mtu = 256});
	struct rte_mempool *pieces = w->lb->lcore[0]->indirect_pool;
	unsigned int n = rte_mempool_avail_count(pieces);
	struct rte_mbuf **taken = calloc(n, sizeof(*taken));
	struct packet large = {.family = 4, .payload = 1400};

	/* Some packets of a pool are in a cache and cannot be taken in one call. */
	while (n > 0 && rte_pktmbuf_alloc_bulk(pieces, taken, n) != 0)
		n--;
	walk_send(w, 0, &large);
	walk_settle(w);
	walk_expect_notice(w, 0, &large, LB_NOTICE_BUSY);
	walk_expect_drops(w, {LB_DROP_NO_MBUF, 1});
	walk_expect_eq(walk_worker_stats(v).outstanding, 0);
	rte_pktmbuf_free_bulk(taken, n);
	free(taken);
	walk_send(w, 0, &large);
	walk_settle(w);
	walk_expect_echo(w, 0, &large);
	walk_destroy(w);
}

WALK(a_full_transmit_queue_loses_nothing)
{
	struct walk *w = walk_create(&(struct walk_params){.packets = 8192});
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 1024});
	struct packet p = ask;

	/* Nothing leaves the port's ring, so the lcore's own queue fills. */
	v->answers = false;
	for (int i = 0; i < 700; i++) {
		p.source_port = 2000 + i;
		walk_send(w, 0, &p);
	}
	for (int i = 0; i < 40; i++)
		walk_turn_lcore(w, 0);
	walk_settle(w);
	walk_expect_eq(v->n_requests, 700);
	walk_expect_no_drops(w);
	v->answers = true;
	walk_settle(w);
	walk_expect_eq(walk_count(w, 0), 700);
	walk_destroy(w);
}

/* No worker is active, and a suspect one may be soon: under every policy requests wait. */
WALK(requests_wait_for_the_only_worker_whatever_the_policy)
{
	static const char *const policies[] = {"round-robin",  "weighted",
					       "maglev",       "least-outstanding",
					       "power-of-two", "earliest-finish"};
	static const char *const affinities[] = {"request", "flow", "sticky"};
	char services[512];

	for (unsigned int i = 0; i < RTE_DIM(policies) * RTE_DIM(affinities) * 2; i++) {
		const char *policy = policies[i % 6], *affinity = affinities[i / 6 % 3];
		struct walk_worker *v;
		struct walk *w;

		snprintf(services, sizeof(services),
			 "  - {name: echo, address: " PACKET_DESTINATION4
			 ", port: 8000, model: echo, queue: 2, queue_timeout_ms: 200, policy: %s, "
			 "affinity: %s%s}\n",
			 policy, affinity, i / 18 ? ", deadline_ms: 5000" : "");
		walk_context("%s", services);
		w = walk_create(&(struct walk_params){
			.services = services,
			.more = "workers: {timeout_ms: 5000, suspect_ms: 30}\n"});
		v = walk_worker(w, NULL);
		v->beats = false;
		walk_pass(w, 100);
		walk_need(walk_worker_of(v) != NULL && walk_worker_of(v)->state == WORKER_SUSPECT);
		for (int k = 0; k < 4; k++) {
			struct packet p = ask;

			p.source_port = 3000 + k;
			walk_send(w, 0, &p);
		}
		walk_settle(w);
		walk_expect_eq(walk_service_stats(w, 0).queued, 2);
		walk_expect_drops(w, {LB_DROP_QUEUE_FULL, 2});
		v->beats = true;
		walk_pass(w, 100);
		walk_expect_eq(v->answered, 2);
		walk_expect_no_drops(w);
		walk_destroy(w);
	}
	walk_context("%s", "");
}
