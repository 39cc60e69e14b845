/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choose the worker of a request: the policy's choice, or the flow's own worker, among those that
 * have a credit and would be done in time. With session affinity a flow has a preferred worker:
 * requests go there while it has room.
 */
#include "walk/choose.h"

#include "edge/edge.h"
#include "lcore/lcore.h"
#include "schedule/groups.h"

bool choose_has_workers(const struct lcore *lc, uint16_t service)
{
	const struct pick_table *table = lcore_pick_table(lc, service);

	return table != NULL && table->n > 0;
}

/* Is the worker that the flow's last request went to still registered? */
static bool choose_knows_worker(const struct lcore *lc, const struct flow *flow)
{
	const struct link *link = flow->worker == WORKER_NONE ? NULL : lc->link[flow->worker];

	return link != NULL && link->worker_generation == flow->worker_generation;
}

static bool choose_keeps_worker(const struct lcore *lc, const struct pick_table *table,
				const struct flow *flow)
{
	return workers_pick_table_has(table, flow->worker) && choose_knows_worker(lc, flow);
}

static void choose_remember(struct flow *flow, const struct link *link)
{
	flow->worker = link->worker;
	flow->worker_generation = link->worker_generation;
}

struct choice {
	uint16_t service;
	uint64_t deadline; /* TSC; 0: none */
	uint16_t anchor;   /* of near and spread, see choose_anchor() */
	bool session;      /* the request's own: nothing is stored of it */
	bool late;         /* out: there are credits, but no worker would be done in time */
};

/* In place of a request's length: lcore->placing says what it needs. */
#define CHOOSE_PLACE UINT32_MAX

/* Places leave this part of a link's slots to requests that are sent whole. */
#define PLACES_LEAVE 4

/* ms of work in requests that are complete and wait: clients far away take as long to fill a place.
 */
#define PLACES_AHEAD_MS 100

/* Would a request with a place only wait? Half of those that have one are complete and do, and for
 * so long that it can be complete before their end: another worker may be free sooner. */
static bool choose_would_wait(const struct lcore *lc, const struct link *link)
{
	float ns = (float)link->n_ready * lc->load.gap_ns[link->worker];
	float cycles = (float)link->ready_pages * link->page_cycles;

	return 2 * link->n_ready > link->n_filling &&
	       (ns > PLACES_AHEAD_MS * 1e6f ||
		cycles > (float)(PLACES_AHEAD_MS * lc->lb->tsc_per_ms));
}

/* Take a slot of <link> with a place. A place in the room is not taken from an older request. */
static __rte_noinline bool choose_take_place(struct lcore *lc, struct link *link)
{
	struct placing *p = &lc->placing;
	uint64_t now = lc->stats.polls + 1;
	enum link_taken taken;

	if ((p->bytes > link->stride && link->room_owed == now) ||
	    (link->n_ready > 0 && (!p->may_wait || choose_would_wait(lc, link))))
		return false;
	taken = link_take(link, p->bytes, link->slots / PLACES_LEAVE, &p->place);
	if (taken == LINK_NO_ROOM)
		link->room_owed = now;
	return taken == LINK_TAKEN;
}

/* Bytes that each request is taken for at least. */
#define PACKET_OWES 256u

/* Set aside a slot for a packet of <length> bytes. While a large request waits for the worker, too,
 * it has its turn after as many bytes, unless it waits for others like it. */
static inline bool choose_take_slot(struct lcore *lc, struct link *link, uint32_t length)
{
	bool waits = link->n_ready > 0, enough = waits && link->owed >= link->ready_bytes;

	if (unlikely(enough) && link_takes_paged(link, lc->lb->tsc_per_ms))
		return false;
	if (!link_reserve(link, requester_packets(&link->requester, length), link->withheld,
			  lc->link_max))
		return false;
	if (unlikely(waits) && !enough)
		link->owed += RTE_MAX(length, PACKET_OWES);
	return true;
}

/* Take a credit of <worker> for a request of <length> bytes. NULL: it has no room for one now. */
static struct link *choose_claim(struct lcore *lc, uint16_t worker, uint32_t length)
{
	struct link *link = lc->link[worker];

	if (lc->load.credits[worker] == 0)
		return NULL;
	if (likely(length <= link->stride)) {
		if (!choose_take_slot(lc, link, length))
			return NULL;
		workers_load_sent(&lc->load, worker, lc->now);
		return link;
	}
	/* A packet: a reload may have given the flow to a model with smaller requests. */
	if (length != CHOOSE_PLACE || !choose_take_place(lc, link))
		return NULL;
	workers_load_placed(&lc->load, worker);
	return link;
}

/* Fallback probes per request; keeps the cost independent of the pool's size. */
#define TRIES 32

/* The policy's choice has no room: try others, from a place that the hash gives. */
static struct link *choose_claim_any(struct lcore *lc, const struct pick_table *table,
				     uint32_t hash, uint32_t length)
{
	uint16_t tries = RTE_MIN(table->n, TRIES);
	struct link *link = NULL;

	for (uint16_t i = 0; i < tries && link == NULL; i++)
		link = choose_claim(lc, table->worker[(hash + i) % table->n], length);
	return link;
}

static uint64_t choose_finish_ns(const struct lcore *lc, uint16_t worker)
{
	return workers_expected_finish_ns(&lc->load, worker, lc->now,
					  lc->link[worker]->batch_share);
}

/* Requests of all lcores that <worker> runs at a time. */
static uint32_t choose_batch(const struct lcore *lc, uint16_t worker)
{
	return lc->link[worker]->batch_share * lc->lb->n_lcores;
}

/*
 * Would <worker> finish one more request by <deadline>, with an eighth of the time to spare? The
 * margin covers requests that run longer than the average. A worker that runs requests by their
 * deadlines, and none that would be late, knows better: it gets all but those that would be late
 * even if it did nothing else.
 */
static bool choose_in_time(const struct lcore *lc, uint16_t worker, uint64_t deadline)
{
	uint64_t ns;

	if (!workers_load_is_measured(&lc->load, worker))
		return true;
	if (lc->load.by_deadline[worker]) {
		ns = workers_soonest_finish_ns(&lc->load, worker, choose_batch(lc, worker));
	} else {
		ns = choose_finish_ns(lc, worker);
		ns += ns / 8;
	}
	return lc->now + ns * lc->lb->tsc_per_ms / 1000000 <= deadline;
}

/* Is <other> a better choice than <worker>, which would be done in <*least> ns? */
static bool choose_is_sooner(const struct lcore *lc, uint16_t other, uint16_t worker,
			     uint64_t *least)
{
	uint64_t ns = choose_finish_ns(lc, other);
	bool sooner = lc->load.by_deadline[other] && lc->load.by_deadline[worker]
			      ? workers_load_gathers_before(&lc->load, other, worker, lc->now,
							    choose_batch(lc, other))
			      : ns < *least;

	if (sooner)
		*least = ns;
	return sooner;
}

/*
 * The worker that would be done first with one more request, as the policy's choice does not know
 * how long each has been running what it has: requests join the batch that begins next. Among
 * workers that run by deadlines it is where a batch gathers. Of a large table only some workers are
 * looked at, and <worker>, the policy's choice; where that is in its place, no others than those
 * that are, too.
 */
static uint16_t choose_soonest(const struct lcore *lc, const struct pick_table *table,
			       uint16_t worker, uint32_t hash, uint16_t anchor)
{
	bool placed = table->groups != NULL && workers_is_placed(table, worker, anchor);
	uint64_t least = choose_finish_ns(lc, worker);
	uint16_t tries = RTE_MIN(table->n, TRIES), other;

	for (uint16_t i = 0; i < tries; i++) {
		other = table->worker[(hash + i) % table->n];
		if (other == worker || lc->load.credits[other] == 0 ||
		    (placed && !workers_is_placed(table, other, anchor)))
			continue;
		if (choose_is_sooner(lc, other, worker, &least))
			worker = other;
	}
	return worker;
}

/* The policy's choice would be late: find a worker that would not be. */
static uint16_t choose_pick_in_time(const struct lcore *lc, const struct pick_table *table,
				    uint32_t hash, uint64_t deadline)
{
	uint16_t tries = RTE_MIN(table->n, TRIES);

	for (uint16_t i = 0; i < tries; i++) {
		uint16_t worker = table->worker[(hash + i) % table->n];

		if (lc->load.credits[worker] != 0 && choose_in_time(lc, worker, deadline))
			return worker;
	}
	return WORKER_NONE;
}

/* Take a credit for a request of <length>: of <worker>, the policy's choice, or of another. */
static __rte_always_inline struct link *choose_from(struct lcore *lc,
						    const struct pick_table *table, uint16_t worker,
						    uint32_t hash, uint32_t length,
						    struct choice *choice)
{
	struct link *link;

	if (unlikely(choice->deadline != 0) && worker != WORKER_NONE &&
	    table->policy == PICK_EARLIEST_FINISH)
		worker = choose_soonest(lc, table, worker, hash, choice->anchor);
	if (unlikely(choice->deadline != 0) && worker != WORKER_NONE &&
	    !choose_in_time(lc, worker, choice->deadline)) {
		worker = choose_pick_in_time(lc, table, hash, choice->deadline);
		choice->late = worker == WORKER_NONE;
		return choice->late ? NULL : choose_claim(lc, worker, length);
	}
	link = worker == WORKER_NONE ? NULL : choose_claim(lc, worker, length);
	if (likely(link != NULL))
		return link;
	/* All policies but maglev have compared all workers: none has a credit. With a deadline,
	 * waiting is better than a worker that was not checked for it. */
	if ((worker == WORKER_NONE && table->policy != PICK_MAGLEV) || choice->deadline != 0)
		return NULL;
	return choose_claim_any(lc, table, hash, length);
}

/* --- near and spread ---------------------------------------------------------------------------
 */

static bool choose_has_room(struct lcore *lc, const struct pick_table *table, uint16_t service,
			    uint16_t worker)
{
	return workers_preferred_has_room(table, &lc->load, worker, lc->link[worker]->batch_share,
					  lcore_service_config(lc, service)->sticky_load_percent,
					  lc->now, &lc->service[service].all);
}

/* The group that a request's worker should be in (near) or should not be in (spread). */
static uint16_t choose_anchor(const struct lcore *lc, const struct pick_table *table,
			      uint16_t service, uint16_t preferred)
{
	if (table->groups->place == PICK_NEAR)
		return preferred != WORKER_NONE ? workers_group_of(table, preferred)
						: table->groups->own;
	if (unlikely(lc->lost != 0))
		return workers_group_of(table, (uint16_t)(lc->lost - 1));
	return workers_group_of(table, lc->service[service].last_worker);
}

/*
 * <worker> is the policy's choice. Choose another one if that is where it should be and has room; a
 * replay leaves the place of the worker that was lost for any worker with a credit.
 */
static __rte_noinline uint16_t choose_placed(struct lcore *lc, const struct pick_table *table,
					     struct choice *choice, uint16_t worker,
					     uint16_t preferred)
{
	uint16_t anchor = choose_anchor(lc, table, choice->service, preferred), other;
	uint16_t service = choice->service;

	choice->anchor = anchor;
	if (worker == WORKER_NONE || workers_is_placed(table, worker, anchor))
		return worker;
	other = workers_pick_placed(table, &lc->load, anchor, &lc->service[service].place_turn);
	if (other == WORKER_NONE || (lc->lost == 0 && !choose_has_room(lc, table, service, other)))
		return worker;
	return other;
}

/* Note where the request went. */
static __rte_noinline void choose_note_place(struct lcore *lc, uint16_t service,
					     const struct link *link)
{
	lc->service[service].last_worker = link->worker;
	lc->service[service].all.outstanding++;
}

/* --- sticky flows ---------------------------------------------------------------------------- */

static bool choose_could_take(const struct lcore *lc, const struct pick_table *table,
			      uint16_t worker, uint64_t deadline)
{
	return workers_pick_table_has(table, worker) && lc->load.credits[worker] != 0 &&
	       (likely(deadline == 0) || choose_in_time(lc, worker, deadline));
}

/*
 * Count where the request went, and store the flow's preferred worker. A preferred worker that is
 * only saturated or silent stays preferred: the state that it caches for the flow is worth
 * returning to. <flow> NULL: nothing is stored.
 */
static void choose_settle(struct lcore *lc, struct flow *flow, uint16_t service, uint16_t preferred,
			  const struct link *link)
{
	struct lb_service_stats *stats = &lc->service[service].stats;

	lc->service[service].all.outstanding++;
	lc->service[service].last_worker = link->worker;
	if (likely(link->worker == preferred))
		stats->preferred++;
	else if (preferred != WORKER_NONE)
		stats->spilled++;
	if (unlikely(flow == NULL))
		return;
	if (preferred != WORKER_NONE)
		link = lc->link[preferred];
	if (likely(link == NULL || (link->worker == flow->worker &&
				    link->worker_generation == flow->worker_generation)))
		return;
	stats->moved += flow->worker != WORKER_NONE;
	choose_remember(flow, link);
}

/* Choose the preferred worker while it has room, else another one, else the preferred one if it has
 * a credit. */
static struct link *choose_sticky(struct lcore *lc, const struct pick_table *table,
				  struct flow *flow, uint32_t hash, uint32_t length,
				  struct choice *choice)
{
	uint16_t last = choose_knows_worker(lc, flow) ? flow->worker : WORKER_NONE;
	uint16_t preferred = choice->session ? workers_preferred_of_session(table, hash)
					     : workers_preferred(table, hash, last);
	bool could = choose_could_take(lc, table, preferred, choice->deadline);
	struct pick_state *state = &lc->service[choice->service].pick;
	struct link *link = NULL;
	uint16_t other = preferred;

	if (likely(could && choose_has_room(lc, table, choice->service, preferred))) {
		link = choose_claim(lc, preferred, length);
		/* The worker has a credit, but its link has no room: compare no other with it. */
		if (unlikely(link == NULL))
			other = WORKER_NONE;
	}
	if (unlikely(link == NULL)) {
		other = workers_pick_elsewhere(table, &lc->load, hash, other, state);
		if (unlikely(table->groups != NULL))
			other = choose_placed(lc, table, choice, other, preferred);
		link = choose_from(lc, table, other, hash, length, choice);
	}
	if (unlikely(link == NULL && could)) {
		link = choose_claim(lc, preferred, length);
		choice->late = false;
	}
	if (likely(link != NULL))
		choose_settle(lc, choice->session ? NULL : flow, choice->service, preferred, link);
	return link;
}

struct link *choose_worker(struct lcore *lc, struct flow *flow, uint16_t service, uint32_t hash,
			   uint32_t length, uint64_t deadline, bool *late)
{
	struct choice choice = {.service = service, .deadline = deadline};
	const struct pick_table *table = lcore_pick_table(lc, service);
	enum lb_affinity affinity = lcore_service_config(lc, service)->affinity;
	struct link *link;
	uint16_t worker;

	choice.session = affinity == LB_AFFINITY_STICKY && flow_state_is_tcp(flow->state) &&
			 edge_is_session(lc, flow, hash);
	/* All load balancers of the cluster choose the same worker, and do for sessions anyway. */
	if (unlikely(lc->lb->has_cluster_secret) && !choice.session &&
	    (affinity == LB_AFFINITY_STICKY || table->policy == PICK_MAGLEV))
		hash = conntrack_flow_hash(lc->ct, flow, &lc->lb->cluster_secret);
	if (affinity == LB_AFFINITY_STICKY) {
		link = choose_sticky(lc, table, flow, hash, length, &choice);
		*late = choice.late;
		return link;
	}
	*late = false;
	if (affinity == LB_AFFINITY_FLOW && choose_keeps_worker(lc, table, flow)) {
		*late = deadline != 0 && !choose_in_time(lc, flow->worker, deadline);
		return *late ? NULL : choose_claim(lc, flow->worker, length);
	}
	worker = workers_pick(table, &lc->load, hash, &lc->service[service].pick);
	if (unlikely(table->groups != NULL))
		worker = choose_placed(lc, table, &choice, worker, WORKER_NONE);
	link = choose_from(lc, table, worker, hash, length, &choice);
	*late = choice.late;
	if (link != NULL)
		choose_remember(flow, link);
	if (unlikely(table->groups != NULL) && link != NULL)
		choose_note_place(lc, service, link);
	return link;
}

struct link *choose_place(struct lcore *lc, struct flow *flow, uint16_t service, uint32_t hash,
			  const struct placing *placing, uint64_t deadline,
			  struct link_place *place, bool *late)
{
	struct link *link;

	lc->placing = *placing;
	link = choose_worker(lc, flow, service, hash, CHOOSE_PLACE, deadline, late);
	*place = lc->placing.place;
	return link;
}

/* --- how many requests a worker's ring holds -------------------------------------------------- */

/* ns; work that a worker's ring should hold, so that the worker does not run dry while this lcore
 * is descheduled. */
#define AHEAD_NS 20e6f

/* Requests of this lcore that the worker should have at a time, by how fast it answers. */
static uint32_t choose_depth(const struct lcore *lc, const struct link *link)
{
	float run = lc->load.run_ns[link->worker], gap = lc->load.gap_ns[link->worker];
	float depth = RTE_MAX(AHEAD_NS, 2 * run) / RTE_MAX(gap, 1.0f);

	if (!lc->load.meter[link->worker].measured || depth >= (float)link->slots)
		return link->slots;
	return RTE_MIN(RTE_MAX((uint32_t)depth + 1, 2 * link->batch_share), link->slots);
}

bool choose_waits_here(const struct lcore *lc, uint16_t service)
{
	const struct lb_service_config *config = lcore_service_config(lc, service);

	return config->affinity == LB_AFFINITY_REQUEST &&
	       (config->policy == PICK_LEAST_OUTSTANDING || config->policy == PICK_POWER_OF_TWO);
}

/* Do the requests of all services of the link's worker wait here? */
static bool choose_all_wait_here(const struct lcore *lc, const struct link *link)
{
	for (unsigned int i = 0; i < lc->services->n; i++) {
		const struct pick_table *table = lcore_pick_table(lc, i);

		if (table != NULL && workers_pick_table_has(table, link->worker) &&
		    !choose_waits_here(lc, i))
			return false;
	}
	return true;
}

void choose_set_depth(const struct lcore *lc, struct link *link)
{
	link_keep_back(link,
		       choose_all_wait_here(lc, link) ? link->slots - choose_depth(lc, link) : 0);
}

/* Like choose_claim(), but also takes the slots that are kept back. */
static struct link *choose_claim_deep(struct lcore *lc, uint16_t worker, uint32_t length,
				      uint64_t deadline)
{
	struct link *link = lc->link[worker];

	if (lc->load.credits[worker] == 0 || length > link->stride ||
	    (deadline != 0 && !choose_in_time(lc, worker, deadline)) ||
	    !link_reserve(link, requester_packets(&link->requester, length), 0, lc->link_max))
		return NULL;
	workers_load_sent(&lc->load, worker, lc->now);
	return link;
}

struct link *choose_deep(struct lcore *lc, struct flow *flow, uint16_t service, uint32_t hash,
			 const struct rte_mbuf *m, uint64_t deadline)
{
	const struct pick_table *table = lcore_pick_table(lc, service);
	struct choice choice = {.service = service};
	uint16_t worker, tries = RTE_MIN(table->n, TRIES);
	struct link *link;

	worker = workers_pick(table, &lc->load, hash, &lc->service[service].pick);
	if (unlikely(table->groups != NULL))
		worker = choose_placed(lc, table, &choice, worker, WORKER_NONE);
	if (worker == WORKER_NONE)
		return NULL;
	link = choose_claim_deep(lc, worker, m->data_len, deadline);
	for (uint16_t i = 0; i < tries && link == NULL; i++)
		link = choose_claim_deep(lc, table->worker[(hash + i) % table->n], m->data_len,
					 deadline);
	if (link != NULL)
		choose_remember(flow, link);
	if (unlikely(table->groups != NULL) && link != NULL)
		choose_note_place(lc, service, link);
	return link;
}
