/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One lcore with a service and links whose other ends this file plays: requests come one at a time,
 * and workers answer when a test calls for it.
 */
#ifndef LB_WORKERS_FIXTURE_H
#define LB_WORKERS_FIXTURE_H

#include "lcore/lcore.h"
#include "rdma_fixture.h"
#include "membership/registry.h"
#include "workers_fixture.h"
#include "lb.h"
#include "walk/forward.h"
#include "walk/waiting.h"

#define WORKERS 3
#define SLOTS   4
#define NOBODY  WORKER_NONE /* it waits */

struct rig {
	struct fixture *f;
	struct lb *lb;
	struct lcore *lc;
	struct service_snapshot *view;
	struct lb_service_config *service;
	struct burst burst;
};

static inline struct link *add_link(struct rig *r, const struct worker *w)
{
	struct lb_link_spec remote = {.qpn = 0x11, .rkey = FIXTURE_RKEY, .stride = 4096};
	struct link_params params = {
		.qpn = LINK_QPN(0, 0x1c00 | w->number),
		.worker = w->number,
		.worker_generation = w->generation,
		.remote = &remote,
		.slots = w->spec.slots,
		.batch_share = w->spec.max_batch,
		.reply_stride = 2048,
		.chunk = 2048,
		.path = vector_spec(4, false, 1024),
		.tx = &r->f->tx,
		.indirect_pool = r->f->small,
		.held = &r->lc->held,
		.multi_segment = true,
		.descriptor_room = rte_pktmbuf_data_room_size(r->f->packets) - RTE_PKTMBUF_HEADROOM,
		.ack_timeout = 14,
		.retry_limit = 7,
		.rnr_retry = 2,
	};
	struct link *link = link_create(&params);

	cr_assert(link);
	r->lc->link[w->number] = link;
	r->lc->links[r->lc->n_links++] = link;
	workers_load_open(&r->lc->load, w->number, w->spec.slots);
	return link;
}

static inline void remove_link(struct rig *r, uint16_t worker)
{
	for (unsigned int i = 0; i < r->lc->n_links; i++)
		if (r->lc->links[i]->worker == worker)
			r->lc->links[i] = r->lc->links[--r->lc->n_links];
	for (unsigned int i = 0; i < r->lc->n_active; i++)
		if (r->lc->active[i]->worker == worker)
			r->lc->active[i] = r->lc->active[--r->lc->n_active];
	link_destroy(r->lc->link[worker]);
	r->lc->link[worker] = NULL;
	workers_load_close(&r->lc->load, worker);
}

/* Adds an active worker as if it had registered. */
static inline struct worker *add_worker(struct rig *r, const char *name, uint32_t slots,
					uint32_t batch)
{
	struct worker *w = fixture_register(r->lb->pool, name, slots, batch, 1);

	add_link(r, w);
	return w;
}

static inline void publish(struct rig *r)
{
	workers_pick_table_destroy(r->lb->pick[0]);
	r->lb->config.service[0] = *r->service;
	service_workers_update(r->lb, &r->lb->config);
	r->lb->pick[0] = service_workers_table(r->lb, r->service, 0);
	cr_assert(r->lb->pick[0]);
}

static inline void set_state(struct rig *r, uint16_t worker, enum worker_state state)
{
	workers_get(r->lb->pool, worker)->state = state;
	publish(r);
}

static inline struct rig *rig_create(enum pick_policy policy, enum lb_affinity affinity)
{
	struct conntrack_params params = {
		.name = "sticky",
		.capacity = 1024,
		.socket = SOCKET_ID_ANY,
		.seed = {1, 2},
		.timeout_ms[0] = {[FLOW_UDP_ONE_WAY] = 5000,
				  [FLOW_UDP_ANSWERED] = 5000,
				  [FLOW_UDP_ESTABLISHED] = 5000},
	};
	struct rig *r = calloc(1, sizeof(*r));

	r->f = fixture_create(4, 1024, 0, true);
	r->lb = calloc(1, sizeof(*r->lb));
	r->lc = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*r->lc));
	memset(r->lc, 0, sizeof(*r->lc));
	r->view = calloc(1, sizeof(*r->view));
	r->service = &r->view->config[0];
	*r->service = (struct lb_service_config){
		.name = "echo",
		.vip = {.family = 4},
		.model = "echo",
		.policy = policy,
		.affinity = affinity,
		.max_request = 1472,
		.queue_timeout_ms = 1000,
		.request_timeout_ms = 1000,
		.priority = 2,
	};
	r->view->n = r->lb->config.n_services = 1;
	r->lb->tsc_per_ms = 1000000;
	r->lb->n_lcores = 1;
	r->lb->pool = workers_pool_create();
	r->lb->settings = workers_settings_create();
	r->lc->lb = r->lb;
	r->lc->services = r->view;
	r->lc->packets = r->f->packets;
	r->lc->control = r->lc->cancels = r->f->small;
	r->lc->sharers = 1;
	r->lc->waiting_max = r->lc->window_max = 8192;
	lcore_share_windows(r->lc);
	r->lc->ct = conntrack_create(&params);
	cr_assert(r->lc->ct);
	cr_assert_eq(queue_init(&r->lc->service[0].queue, 64, 0), 0);
	workers_load_init(&r->lc->load, 1000000000);
	return r;
}

static inline struct rig *rig_of(enum pick_policy policy, enum lb_affinity affinity)
{
	struct rig *r = rig_create(policy, affinity);

	for (unsigned int i = 0; i < WORKERS; i++)
		add_worker(r, (char[]){'a' + i, '\0'}, SLOTS, SLOTS);
	publish(r);
	return r;
}

static inline void rig_destroy(struct rig *r)
{
	struct queue *queue = &r->lc->service[0].queue;

	while (queue->count > 0)
		rte_pktmbuf_free(queue_remove(queue, queue_oldest(queue)).packet);
	queue_fini(queue);
	while (r->lc->n_links > 0)
		remove_link(r, r->lc->links[0]->worker);
	workers_pick_table_destroy(r->lb->pick[0]);
	workers_settings_destroy(r->lb->settings);
	workers_pool_destroy(r->lb->pool);
	conntrack_destroy(r->lc->ct);
	fixture_destroy(r->f);
	free(r->view);
	free(r->lc);
	free(r->lb);
	free(r);
}

/* Returns the n-th client's flow, begun as track.c does it. */
static inline struct flow *flow_of(struct rig *r, unsigned int n)
{
	struct flow_key key = {.src_port = n, .protocol = IPPROTO_UDP, .family = FLOW_IPV6};
	struct flow *flow;

	key.src.s6_addr[15] = n;
	flow = conntrack_flow_insert(r->lc->ct, &key, conntrack_hash(r->lc->ct, &key),
				     FLOW_UDP_ONE_WAY, 0, 0);
	cr_assert(flow);
	flow->worker = WORKER_NONE;
	return flow;
}

static inline uint32_t hash_of(const struct flow *flow)
{
	return flow->client_port * 2654435761u;
}

/* Takes everything sent as acknowledged, so that only credits limit the next requests. */
static inline void next_turn(struct rig *r)
{
	forward_flush(r->lc);
	fixture_sent(r->f);
	for (unsigned int i = 0; i < r->lc->n_links; i++) {
		struct requester *rq = &r->lc->links[i]->requester;

		requester_ack(rq, roce_psn_add(rq->next_psn, ROCE_PSN_MASK), 0x1f, rq->timer);
	}
	r->lc->now++;
}

/* Sends one request of the flow. Returns the worker that got it. */
static inline uint16_t ask_by(struct rig *r, struct flow *flow, uint64_t deadline)
{
	struct burst *b = &r->burst;

	next_turn(r);
	*b = (struct burst){
		.n = 1,
		.packet[0] = fixture_message(r->f, 100),
		.flow[0] = flow,
		.service[0] = flow->service,
		.handle[0] = conntrack_handle(r->lc->ct, flow),
		.hash[0] = hash_of(flow),
		.deadline[0] = deadline,
		.priority[0].level = 2,
	};
	forward_assign(r->lc, b);
	forward_send(r->lc, b);
	return b->link[0] != NULL ? b->link[0]->worker : NOBODY;
}

static inline uint16_t ask(struct rig *r, struct flow *flow)
{
	return ask_by(r, flow, 0);
}

static inline void answer(struct rig *r, uint16_t worker)
{
	struct link *link = r->lc->link[worker];

	cr_assert_neq(link->busy.oldest, SLOT_NONE, "worker %u owes nothing", worker);
	link_slot_free(link, link->busy.oldest);
	workers_load_answered(&r->lc->load, worker, r->lc->now, 0);
}

static inline void answer_all(struct rig *r)
{
	for (unsigned int i = 0; i < r->lc->n_links; i++)
		while (r->lc->links[i]->busy.oldest != SLOT_NONE)
			answer(r, r->lc->links[i]->worker);
}

/* Looks at the waiting requests. Returns the worker of the one that was sent. */
static inline uint16_t look_at_queue(struct rig *r)
{
	unsigned int sent;

	next_turn(r);
	sent = waiting_send(r->lc);
	cr_assert_leq(sent, 1);
	return sent == 1 ? r->lc->burst.link[0]->worker : NOBODY;
}

#endif
