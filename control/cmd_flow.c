/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flows.list and flows.count: a bounded walk through the lcores' tables per call, so that a dump of
 * millions of flows leaves room for everything else that the control thread does.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "rpc.h"

#define SCAN_MAX      16384 /* flows that one call looks at */
#define CALLS_MAX     256   /* of conntrack_dump(): each may look at many empty places */
#define LIMIT_DEFAULT 1000
#define CHUNK         128 /* flows copied at a time, on the stack */

/* The parameters as given. */
struct query {
	char service[LB_NAME_MAX], worker[WORKER_NAME_MAX];
	char client[LB_ADDRESS_TEXT + 4];
	uint32_t limit;
	uint64_t cursor;
};

/* The same, resolved. */
struct filter {
	bool by_service, by_worker;
	uint16_t service, worker, worker_generation;
	struct lb_address client; /* family 0: any */
	unsigned int prefix;      /* bits of the mapped form that must agree */
};

/* Where a walk stands. */
struct walk {
	unsigned int lcore;
	uint32_t at; /* conntrack_dump()'s cursor */
	unsigned int matched;
};

/* Flows that match go here; one of the two is used. */
struct sink {
	json_t *rows;
	uint64_t count;
};

static const struct control_param query_params[] = {
	{CONTROL_PARAM(query, service), CONTROL_TEXT},
	{CONTROL_PARAM(query, worker), CONTROL_TEXT},
	{CONTROL_PARAM(query, client), CONTROL_TEXT},
	{CONTROL_PARAM(query, cursor), CONTROL_INTEGER, .max = INT64_MAX},
	{CONTROL_PARAM(query, limit), CONTROL_INTEGER, .min = 1, .max = SCAN_MAX},
};
#define N_LIST_PARAMS  CONTROL_COUNT_OF(query_params)
#define N_COUNT_PARAMS (N_LIST_PARAMS - 1) /* limit is the last */

static const struct control_counter counters[] = {
	CONTROL_COUNTER(flow_info, packets_in), CONTROL_COUNTER(flow_info, bytes_in),
	CONTROL_COUNTER(flow_info, requests),   CONTROL_COUNTER(flow_info, packets_out),
	CONTROL_COUNTER(flow_info, bytes_out),
};

static bool client_read(const char *text, struct filter *filter)
{
	char address[LB_ADDRESS_TEXT + 4];
	char *slash, *end;
	unsigned long bits, most;

	snprintf(address, sizeof(address), "%s", text);
	slash = strchr(address, '/');
	if (slash)
		*slash++ = '\0';
	if (lb_address_parse(address, &filter->client) != 0)
		return false;
	most = filter->client.family == 4 ? 32 : 128;
	bits = most;
	if (slash) {
		if (*slash < '0' || *slash > '9')
			return false;
		bits = strtoul(slash, &end, 10);
		if (*end != '\0' || bits > most)
			return false;
	}
	filter->prefix = (unsigned int)(128 - most + bits);
	return true;
}

static bool filter_read(struct control_call *call, const struct query *q, struct filter *filter)
{
	struct lb *lb = call->c->lb;

	memset(filter, 0, sizeof(*filter));
	if (q->service[0]) {
		int service = control_service_find(lb_config_get(lb), q->service);

		if (service < 0) {
			control_fail(call, CONTROL_ERROR_NOT_FOUND,
				     "no service '%s'; services.list has them all", q->service);
			return false;
		}
		filter->by_service = true;
		filter->service = (uint16_t)service;
	}
	if (q->worker[0]) {
		const struct worker *worker = workers_find(lb_pool(lb), q->worker);

		if (!worker) {
			control_fail(call, CONTROL_ERROR_NOT_FOUND,
				     "no worker '%s'; workers.list has them all", q->worker);
			return false;
		}
		filter->by_worker = true;
		filter->worker = worker->number;
		filter->worker_generation = worker->generation;
	}
	if (q->client[0] && !client_read(q->client, filter)) {
		control_fail(call, CONTROL_ERROR_PARAMS,
			     "params.client: cannot use '%s'; give an address or address/prefix",
			     q->client);
		return false;
	}
	return true;
}

static bool prefix_matches(const uint8_t *a, const uint8_t *b, unsigned int bits)
{
	unsigned int whole = bits / 8;
	uint8_t mask = (uint8_t)(0xff00 >> bits % 8);

	if (memcmp(a, b, whole) != 0)
		return false;
	return bits % 8 == 0 || ((a[whole] ^ b[whole]) & mask) == 0;
}

static bool filter_matches(const struct filter *filter, const struct flow_info *flow)
{
	if (filter->by_service && flow->service != filter->service)
		return false;
	if (filter->by_worker && (flow->worker != filter->worker ||
				  flow->worker_generation != filter->worker_generation))
		return false;
	if (filter->client.family == 0)
		return true;
	return flow->key.family == filter->client.family &&
	       prefix_matches(flow->key.src.s6_addr, filter->client.addr.s6_addr, filter->prefix);
}

/* A worker's number means nothing once its place was given to another. */
static const char *flow_worker_name(struct lb *lb, const struct flow_info *flow)
{
	const struct worker *worker =
		flow->worker < WORKERS_MAX ? workers_get(lb_pool(lb), flow->worker) : NULL;

	if (!worker || worker->generation != flow->worker_generation)
		return "-";
	return worker->spec.name;
}

/* The owner's clock may have moved on since the control thread read it. */
static json_int_t seconds_since(uint32_t then_ms, uint32_t now_ms)
{
	int32_t ms = (int32_t)(now_ms - then_ms);

	return ms > 0 ? ms / 1000 : 0;
}

static json_t *flow_row(struct lb *lb, unsigned int lcore, const struct flow_info *flow)
{
	const struct lb_config *config = lb_config_get(lb);
	uint32_t now = lb_now_ms(lb);
	char address[LB_ADDRESS_TEXT], client[LB_ADDRESS_TEXT + 8];
	struct lb_address from = {.family = flow->key.family, .addr = flow->key.src};
	json_t *row;

	lb_address_format(&from, address, sizeof(address));
	snprintf(client, sizeof(client), from.family == 4 ? "%s:%u" : "[%s]:%u", address,
		 ntohs(flow->key.src_port));
	row = json_pack("{s:i, s:s, s:o, s:o, s:s, s:I, s:I}", "lcore", (int)lcore, "client",
			client, "service",
			control_text(flow->service < config->n_services
					     ? config->service[flow->service].name
					     : "-"),
			"worker", control_text(flow_worker_name(lb, flow)), "state",
			conntrack_state_name(flow->state), "age_s",
			seconds_since(flow->created, now), "idle_s",
			seconds_since(flow->last_seen, now));
	control_counters(row, counters, CONTROL_COUNT_OF(counters), flow);
	return row;
}

static void walk_tables(struct lb *lb, const struct filter *filter, uint32_t limit,
			struct walk *walk, struct sink *sink)
{
	struct flow_info flow[CHUNK];
	unsigned int seen = 0, calls = 0;

	while (walk->lcore < lb_lcores(lb) && seen < SCAN_MAX && calls++ < CALLS_MAX &&
	       walk->matched < limit) {
		unsigned int want = CHUNK, n;

		/* never copy a flow that could not be returned: the cursor would be past it */
		if (want > limit - walk->matched)
			want = limit - walk->matched;
		if (want > SCAN_MAX - seen)
			want = SCAN_MAX - seen;
		n = conntrack_dump(lb_conntrack(lb, walk->lcore), &walk->at, flow, want);
		for (unsigned int i = 0; i < n; i++) {
			if (!filter_matches(filter, &flow[i]))
				continue;
			walk->matched++;
			if (sink->rows)
				json_array_append_new(sink->rows,
						      flow_row(lb, walk->lcore, &flow[i]));
		}
		seen += n;
		if (walk->at == CONNTRACK_DUMP_END) {
			walk->lcore++;
			walk->at = 0;
		}
	}
	sink->count = walk->matched;
}

/* Every flow there is: the tables know without a walk. */
static bool count_all(struct lb *lb, const struct query *q, const struct filter *filter,
		      struct walk *walk, struct sink *sink)
{
	if (sink->rows || q->cursor || filter->by_service || filter->by_worker ||
	    filter->client.family)
		return false;
	for (; walk->lcore < lb_lcores(lb); walk->lcore++)
		sink->count += conntrack_count(lb_conntrack(lb, walk->lcore));
	return true;
}

/* The walk from <cursor> on; its end goes into <result>. */
static bool scan(struct control_call *call, size_t n_params, struct sink *sink, json_t *result)
{
	struct query q = {.limit = sink->rows ? LIMIT_DEFAULT : UINT32_MAX};
	struct filter filter;
	struct walk walk = {0};
	bool done;

	if (!control_params_read(call, "params", call->params, query_params, n_params, &q) ||
	    !filter_read(call, &q, &filter))
		return false;
	walk.lcore = (unsigned int)(q.cursor >> 32);
	walk.at = (uint32_t)q.cursor;
	if (!count_all(call->c->lb, &q, &filter, &walk, sink))
		walk_tables(call->c->lb, &filter, q.limit, &walk, sink);
	done = walk.lcore >= lb_lcores(call->c->lb);
	json_object_set_new(result, "cursor",
			    json_integer((json_int_t)((uint64_t)walk.lcore << 32 | walk.at)));
	json_object_set_new(result, "done", json_boolean(done));
	return true;
}

json_t *control_flows_list(struct control_call *call)
{
	struct sink sink = {.rows = json_array()};
	json_t *result = json_object();

	json_object_set_new(result, "flows", sink.rows);
	if (scan(call, N_LIST_PARAMS, &sink, result))
		return result;
	json_decref(result);
	return NULL;
}

json_t *control_flows_count(struct control_call *call)
{
	struct sink sink = {0};
	json_t *result = json_object();

	if (scan(call, N_COUNT_PARAMS, &sink, result)) {
		json_object_set_new(result, "count", json_integer((json_int_t)sink.count));
		return result;
	}
	json_decref(result);
	return NULL;
}
