/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of the access log: the framing says how a request ended, and its times and addresses are
 * added here. */
#include <stddef.h>

#include <arpa/inet.h>

#include "edge/edge_private.h"
#include "observe/access_line.h"
#include "observe/access_log.h"
#include "runtime/clock.h"

static uint64_t access_us(const struct lcore *lc, uint64_t from, uint64_t to)
{
	return to < from ? 0 : lb_tsc_to_ns(lc->lb, to - from) / 1000;
}

/* Its times, if the request was begun, and is not over. */
static void access_fill_times(const struct edge *e, const struct edge_request *r,
			      struct access_record *record)
{
	if (r == NULL)
		return;
	record->total_us = access_us(e->lc, r->arrived, e->lc->now);
	record->had_worker = r->given_at != 0;
	if (!record->had_worker)
		return;
	record->queue_us = access_us(e->lc, r->arrived, r->given_at);
	record->worker_us = access_us(e->lc, r->given_at, r->back_at);
}

static void access_fill_client(const struct edge *e, const struct flow *flow,
			       struct access_record *record)
{
	if (flow == NULL)
		return;
	record->client.family = conntrack_local(e->lc->ct, flow)->family == FLOW_IPV6 ? 6 : 4;
	record->client.addr = flow->client;
	record->port = ntohs(flow->client_port);
}

static void access_tell(struct kserve_room *room, const struct stream *s,
			const struct kserve_told *told)
{
	const struct edge_busy *b =
		(const struct edge_busy *)(const void *)((const uint8_t *)s -
							 offsetof(struct edge_busy,
								  placement.stream));
	struct edge *e = room->edge;
	uint16_t service = told->has_service ? told->service : b->connection->service;
	const struct lb_service_config *config = lcore_service_config(e->lc, service);
	struct access_record record;

	if (!access_log_wants(e->lc->lb->access))
		return;
	record = (struct access_record){.ns = clock_wall_ns(),
					.bytes_in = told->bytes_in,
					.bytes_out = told->bytes_out,
					.status = told->status,
					.is_grpc = told->is_grpc,
					.has_id = told->has_id,
					.id_length = told->id_length,
					.call = told->call};
	access_fill_times(e, edge_request_find(b, told->request), &record);
	access_fill_client(e, edge_flow(e, b->connection), &record);
	memcpy(record.service, config->name, sizeof(record.service));
	if (told->has_service)
		snprintf(record.model, sizeof(record.model), "%s", config->model);
	memcpy(record.id, told->id, told->id_length);
	if (access_log_put(e->lc->lb->access, e->lc->index, &record))
		e->lc->stats.access_lines++;
	else
		e->lc->stats.access_dropped++;
}

void edge_access_begin(struct edge *e)
{
	if (e->lc->lb->access != NULL)
		e->kserve->tell = access_tell;
}

void edge_access_lost(const struct edge *e, const struct edge_connection *c)
{
	if (c->busy != NULL && c->busy->placement.framing->rewrite != NULL)
		kserve_room_lost(&c->busy->placement.stream);
}

void edge_access_worker(const struct lcore *lc, const struct flow *flow, const struct slot *slot)
{
	struct edge_connection *c;
	struct edge_request *r;

	if (!flow_state_is_tcp(flow->state))
		return;
	r = edge_request_of(lc, flow, slot->tag, &c);
	if (r == NULL)
		return;
	/* A batch has the times of the row that is answered last. */
	if (r->parent != NULL)
		r = r->parent;
	r->given_at = slot->sent;
	r->back_at = lc->now;
}
