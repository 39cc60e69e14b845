/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads counters for the control plane straight from their owners' memory, without locks. Each is a
 * 64-bit word that only its lcore writes, so a reader may see a value that is a moment old.
 */
#include "observe/stats.h"

#include "lcore/lcore.h"

/* The lcore writes these words while they are read here, by design. */
#define RACING __attribute__((no_sanitize("thread")))

static const char *const stage_names[LB_STAGES] = {
#define ROW(symbol, name) [LB_STAGE_##symbol] = name,
	LB_STAGE_LIST(ROW)
#undef ROW
};

const char *lb_stage_name(enum lb_stage stage)
{
	return stage_names[stage];
}

bool lb_port_up(const struct lb *lb, unsigned int port)
{
	return port < lb->config.n_ports && lb->cable[port];
}

unsigned int lb_lcores(const struct lb *lb)
{
	return lb->n_lcores;
}

RACING void lb_lcore_stats_read(const struct lb *lb, unsigned int lcore, struct lb_lcore_stats *out)
{
	const struct lcore *lc = lb->lcore[lcore];

	*out = lc->stats;
	out->window_held = lc->held;
	out->window_packets = lc->window_max;
	out->queued = lc->n_waiting;
	out->queue_packets = lc->waiting_max;
	out->stands_ms = lb_lcore_stands_ms(lb, lcore);
}

/* A pool counts the objects that the caches of all threads have, too. */
RACING void lb_memory_read(const struct lb *lb, unsigned int lcore, struct lb_memory *out)
{
	const struct lcore *lc = lb->lcore[lcore];

	out->packets = rte_mempool_in_use_count(lc->packets);
	out->packets_max = lc->packets->size;
	out->control = rte_mempool_in_use_count(lc->control);
	out->cancels = rte_mempool_in_use_count(lc->cancels);
	out->indirect = rte_mempool_in_use_count(lc->indirect_pool);
	out->reassembled = rte_mempool_in_use_count(lc->reassembled_pool);
}

RACING void lb_service_stats_read(const struct lb *lb, unsigned int service,
				  struct lb_service_stats *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct lcore_service *s = &lb->lcore[i]->service[service];

		out->requests += s->stats.requests;
		out->replies += s->stats.replies;
		out->notices += s->stats.notices;
		out->drops += s->stats.drops;
		out->bytes_in += s->stats.bytes_in;
		out->bytes_out += s->stats.bytes_out;
		out->queued += s->queue.count;
		out->queue_places += s->queue.size;
		out->replays += s->stats.replays;
		out->preferred += s->stats.preferred;
		out->spilled += s->stats.spilled;
		out->moved += s->stats.moved;
	}
}

RACING static void stats_add_link(struct lb_link_stats *out, const struct link *link)
{
	const struct requester_stats *rq = &link->requester.stats;
	uint64_t rate = dcqcn_rate(&link->requester.rate);

	out->requests += link->stats.requests;
	out->replies += link->stats.replies;
	out->errors += link->stats.errors;
	out->faults += link->stats.faults;
	out->lost += link->stats.lost;
	out->outstanding += link->slots - link->n_free;
	out->credits += link->n_free;
	out->unacked += requester_unacked(&link->requester);
	out->room += (uint64_t)link->room.pages * PAYLOAD_ROOM_PAGE;
	out->room_used += (uint64_t)(link->room.pages - link->room.free) * PAYLOAD_ROOM_PAGE;
	/* Every link is told the same number, at another time. */
	out->backlog = RTE_MAX(out->backlog, __atomic_load_n(&link->backlog, __ATOMIC_RELAXED));
	out->packets_sent += rq->packets;
	out->packets_resent += rq->resent;
	out->acks_received += rq->acks;
	out->naks_received += rq->naks;
	out->timeouts += rq->timeouts;
	out->packets_received += link->responder.stats.packets;
	out->naks_sent += link->responder.stats.naks;
	out->rnr_naks_received += rq->rnr_naks;
	out->duplicates += link->responder.stats.duplicates;
	out->out_of_order += link->responder.stats.ahead;
	out->ecn_marked += link->responder.stats.marked;
	out->cnps_sent += link->responder.stats.notifications;
	out->cnps_received += rq->notifications;
	if (rate != 0 && (out->rate == 0 || rate < out->rate))
		out->rate = rate;
	out->wait_ns += link->latency->sum_ns[LATENCY_WAIT];
	out->run_ns += link->latency->sum_ns[LATENCY_RUN];
	out->total_ns += link->latency->sum_ns[LATENCY_TOTAL];
	out->heartbeats += link->stats.heartbeats;
}

void lb_worker_stats_read(const struct lb *lb, const struct worker *worker,
			  struct lb_link_stats *out)
{
	memset(out, 0, sizeof(*out));
	/* The control thread makes and destroys links, so none goes away meanwhile. */
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct link *link = lb->link[i][worker->number];

		if (link != NULL)
			stats_add_link(out, link);
	}
}

void lb_service_latency_read(const struct lb *lb, unsigned int service, struct latency *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		latency_merge_service(out, &lb->lcore[i]->latency[service]);
}

void lb_worker_latency_read(const struct lb *lb, const struct worker *worker, struct latency *out)
{
	memset(out, 0, LATENCY_LINK_SIZE);
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct link *link = lb->link[i][worker->number];

		if (link != NULL)
			latency_merge_link(out, link->latency);
	}
}

const struct conntrack *lb_conntrack(const struct lb *lb, unsigned int lcore)
{
	return lb->lcore[lcore]->ct;
}

uint32_t lb_now_ms(const struct lb *lb)
{
	return lb_tsc_to_ms(lb, lb_tsc(lb));
}
