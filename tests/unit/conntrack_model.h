/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flow table against a plain model of it: an array with one place per key, without any search.
 * Five bytes are one operation on both; model_step() returns a sentence when they disagree. Used
 * with random bytes by the unit test and with a fuzzer's bytes by the fuzz target.
 */
#ifndef CONNTRACK_MODEL_H
#define CONNTRACK_MODEL_H

#include <errno.h>

#include "conntrack_fixture.h"

#define MODEL_KEYS       512
#define MODEL_CAPACITY   300
#define MODEL_SERVICES   4
#define MODEL_OP_SIZE    5
#define MODEL_RECLAIM_MS 60000
/* conntrack_expire() promises this. */
#define MODEL_LATE_MS 32

struct model_flow {
	bool live;
	uint8_t state, service;
	uint32_t last_seen, created, requests;
	uint64_t handle; /* of the live flow, or of the last that lived; 0: never */
};

struct model {
	struct conntrack *ct;
	uint32_t now;
	struct conntrack_stats expected;
	struct model_flow flow[MODEL_KEYS];
};

/* No state is shorter than the one before it: then the deadline only moves away. */
static const uint32_t model_timeout[MODEL_SERVICES][FLOW_STATES] = {
	{0, 5000, 5000, 30000},
	{0, 40, 50, 7200000}, /* 2 h: beyond a lap of the wheel */
	{0, 1000, 1000, 1000},
	{0, 300000, 400000, 600000},
};

/* <start>: where the clock begins. */
static inline void model_init(struct model *model, enum conntrack_table table, uint32_t start)
{
	struct conntrack_params params = fixture_params("model", MODEL_CAPACITY);

	for (unsigned int row = 0; row < MODEL_SERVICES; row++)
		memcpy(params.timeout_ms[row], model_timeout[row], sizeof(model_timeout[0]));
	params.table = table;
	params.reclaim_after_ms = MODEL_RECLAIM_MS;
	memset(model, 0, sizeof(*model));
	model->expected.capacity = MODEL_CAPACITY;
	model->now = start;
	model->ct = conntrack_create(&params);
	if (model->ct == NULL)
		abort();
}

static inline void model_fini(struct model *model)
{
	conntrack_destroy(model->ct);
}

/* A flow was inserted into a full table: exactly one other must have gone, and rightly so. */
static inline const char *model_reclaimed(struct model *model)
{
	struct model_flow *gone = NULL;

	for (uint32_t n = 0; n < MODEL_KEYS; n++) {
		struct model_flow *flow = &model->flow[n];

		if (!flow->live || conntrack_flow_get(model->ct, flow->handle) != NULL)
			continue;
		if (gone != NULL)
			return "two flows went for one";
		gone = flow;
	}
	if (gone == NULL)
		return "inserted beyond the capacity";
	if (gone->state == FLOW_UDP_ESTABLISHED)
		return "an established flow was reclaimed";
	if ((int32_t)(model->now - gone->last_seen) < MODEL_RECLAIM_MS)
		return "a flow that just spoke was reclaimed";
	gone->live = false;
	model->expected.reclaimed++;
	model->expected.live--;
	return NULL;
}

static inline const char *model_insert(struct model *model, uint32_t n, uint32_t arg)
{
	struct model_flow *expected = &model->flow[n];
	enum flow_state state = arg & 1 ? FLOW_UDP_ESTABLISHED : FLOW_UDP_ONE_WAY;
	uint16_t service = (arg >> 1) % MODEL_SERVICES;
	struct flow_key key = fixture_key(n);
	struct flow *flow = conntrack_flow_insert(model->ct, &key, conntrack_hash(model->ct, &key),
						  state, service, model->now);
	const char *wrong;

	if (expected->live)
		return flow != NULL && conntrack_handle(model->ct, flow) == expected->handle
			       ? NULL
			       : "inserting a live key gave another flow";
	if (model->expected.live == MODEL_CAPACITY) {
		if (flow == NULL) {
			model->expected.refused++;
			return errno == ENOSPC ? NULL : "refused for another reason";
		}
		wrong = model_reclaimed(model);
		if (wrong != NULL)
			return wrong;
	}
	if (flow == NULL)
		return "refused below the capacity";
	if (conntrack_handle(model->ct, flow) == expected->handle)
		return "a handle came back";
	*expected = (struct model_flow){
		.live = true,
		.state = (uint8_t)state,
		.service = (uint8_t)service,
		.last_seen = model->now,
		.created = model->now,
		.handle = conntrack_handle(model->ct, flow),
	};
	model->expected.inserted++;
	model->expected.live++;
	return NULL;
}

static inline const char *model_remove(struct model *model, uint32_t n)
{
	struct flow *flow = conntrack_flow_get(model->ct, model->flow[n].handle);

	if ((flow != NULL) != model->flow[n].live)
		return "the handle lies";
	if (flow == NULL)
		return NULL;
	conntrack_flow_remove(model->ct, flow);
	model->flow[n].live = false;
	model->expected.removed++;
	model->expected.live--;
	return NULL;
}

/* A packet of the client, or a reply: what the load balancer does to a flow. */
static inline const char *model_packet(struct model *model, uint32_t n, enum flow_event event)
{
	struct model_flow *expected = &model->flow[n];
	struct flow *flow = fixture_find(model->ct, n);

	if ((flow != NULL) != expected->live)
		return "the lookup lies";
	if (flow == NULL)
		return NULL;
	conntrack_event(flow, event);
	conntrack_touch(flow, model->now);
	conntrack_count_request(flow);
	if (event == FLOW_EVENT_TO_CLIENT && expected->state == FLOW_UDP_ONE_WAY)
		expected->state = FLOW_UDP_ANSWERED;
	else if (event == FLOW_EVENT_FROM_CLIENT && expected->state == FLOW_UDP_ANSWERED)
		expected->state = FLOW_UDP_ESTABLISHED;
	expected->last_seen = model->now;
	expected->requests++;
	return NULL;
}

static inline bool model_same(const struct model *model, uint32_t n, const struct flow *flow)
{
	const struct model_flow *expected = &model->flow[n];
	struct flow_info info = fixture_info(model->ct, flow);
	struct flow_key key = fixture_key(n);

	return memcmp(&info.key, &key, sizeof(key)) == 0 && info.state == expected->state &&
	       info.service == expected->service && info.last_seen == expected->last_seen &&
	       info.created == expected->created && info.requests == expected->requests &&
	       info.handle == expected->handle;
}

/* A burst of <count> keys <stride> apart, as they come. */
static inline const char *model_burst(struct model *model, uint32_t n, uint32_t arg)
{
	unsigned int count = arg % (CONNTRACK_BURST_MAX + 1), stride = arg >> 8;
	struct flow_key key[CONNTRACK_BURST_MAX];
	uint32_t hashes[CONNTRACK_BURST_MAX];
	struct flow *flows[CONNTRACK_BURST_MAX];

	for (unsigned int i = 0; i < count; i++) {
		key[i] = fixture_key((n + i * stride) % MODEL_KEYS);
		hashes[i] = conntrack_hash(model->ct, &key[i]);
	}
	conntrack_lookup_burst(model->ct, key, hashes, count, flows);
	for (unsigned int i = 0; i < count; i++) {
		uint32_t who = (n + i * stride) % MODEL_KEYS;

		if ((flows[i] != NULL) != model->flow[who].live)
			return "the burst lookup lies";
		if (flows[i] != NULL && !model_same(model, who, flows[i]))
			return "the burst lookup found another flow";
	}
	return NULL;
}

/* Advance the clock by <ms> and expire. */
static inline const char *model_expire(struct model *model, uint32_t ms, unsigned int budget)
{
	unsigned int expired, gone = 0;

	model->now += ms;
	expired = conntrack_expire(model->ct, model->now, budget);
	if (expired > budget)
		return "the budget was exceeded";
	for (uint32_t n = 0; n < MODEL_KEYS; n++) {
		struct model_flow *expected = &model->flow[n];
		uint32_t timeout = model_timeout[expected->service][expected->state];
		int32_t late = (int32_t)(model->now - expected->last_seen - timeout);

		if (!expected->live)
			continue;
		if (conntrack_flow_get(model->ct, expected->handle) != NULL) {
			if (budget == NO_BUDGET && late >= MODEL_LATE_MS)
				return "a flow outlived its timeout";
			continue;
		}
		if (late < 0)
			return "a flow ended before its time";
		expected->live = false;
		gone++;
	}
	model->expected.expired += gone;
	model->expected.live -= gone;
	return gone == expired ? NULL : "the number expired is wrong";
}

static inline const char *model_dump(struct model *model, uint32_t page)
{
	struct flow_info info[64];
	uint32_t cursor = 0;
	uint64_t seen = 0;

	while (cursor != CONNTRACK_DUMP_END) {
		unsigned int n = conntrack_dump(model->ct, &cursor, info, page % 64 + 1);

		for (unsigned int i = 0; i < n; i++) {
			struct flow *flow = conntrack_flow_get(model->ct, info[i].handle);

			if (flow == NULL || flow->client_port != info[i].key.src_port ||
			    memcmp(&flow->client, &info[i].key.src, sizeof(flow->client)) != 0)
				return "the dump shows what is not there";
		}
		seen += n;
	}
	return seen == model->expected.live ? NULL : "the dump is not complete";
}

static inline const char *model_handle(struct model *model, uint32_t n, uint32_t arg)
{
	struct model_flow *expected = &model->flow[n];
	uint64_t guess = expected->handle ^ (uint64_t)arg << (arg % 48);
	struct flow *flow = conntrack_flow_get(model->ct, guess);

	conntrack_flow_prefetch(model->ct, guess);
	if (flow != NULL && conntrack_handle(model->ct, flow) != guess)
		return "a wrong handle was taken";
	flow = conntrack_flow_get(model->ct, expected->handle);
	if ((flow != NULL) != expected->live)
		return "the handle lies";
	return flow == NULL || model_same(model, n, flow) ? NULL : "the handle's flow is another";
}

static inline const char *model_stats(const struct model *model)
{
	struct conntrack_stats stats;

	conntrack_stats_read(model->ct, &stats);
	/* these depend on the table */
	stats.places = stats.detours = stats.lag_ms = 0;
	if (memcmp(&stats, &model->expected, sizeof(stats)) != 0)
		return "the counters are wrong";
	return conntrack_count(model->ct) == stats.live ? NULL : "the count is wrong";
}

static inline const char *model_apply(struct model *model, const uint8_t op[MODEL_OP_SIZE])
{
	uint32_t n = (op[1] | op[2] << 8) % MODEL_KEYS, arg = op[3] | op[4] << 8;

	switch (op[0] % 16) {
	case 0 ... 4:
		return model_insert(model, n, arg);
	case 5:
		return model_remove(model, n);
	case 6 ... 7:
		return model_packet(model, n, FLOW_EVENT_FROM_CLIENT);
	case 8:
		return model_packet(model, n, FLOW_EVENT_TO_CLIENT);
	case 9 ... 10:
		return model_burst(model, n, arg);
	case 11:
		return model_expire(model, arg % 64, NO_BUDGET);
	case 12:
		return model_expire(model, arg % 256, op[1] % 8);
	case 13:
		/* rarely a long pause: up to 18 hours */
		return model_expire(model, op[1] == 0 ? arg * 1000 : arg % 512, NO_BUDGET);
	case 14:
		return model_handle(model, n, arg);
	default:
		return op[2] % 16 == 0 ? model_dump(model, arg) : model_stats(model);
	}
}

/* One operation, then the counters. NULL, or how table and model differ. */
static inline const char *model_step(struct model *model, const uint8_t op[MODEL_OP_SIZE])
{
	const char *wrong = model_apply(model, op);

	return wrong != NULL ? wrong : model_stats(model);
}

#endif
