/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "assign.h"
#include "pool.h"

/* --- operators' assignments ----------------------------------------------------------------- */

/* Registered workers that operators assigned to one service (in) or released from it (out). */
struct pinned {
	struct worker_set in, out;
};

struct plan {
	struct worker_pool *pool;
	const struct assign_want *want;
	unsigned int n;
	struct pinned *pinned;
	struct worker_set taken;  /* assigned to a service, or a service's spare */
	struct worker_set before; /* spares of any service before this call */
	bool hosts_known;
	uint16_t host[WORKERS_MAX];
};

static void resolve_pin(struct plan *plan, const struct setting_pin *pin, uint16_t worker)
{
	for (unsigned int s = 0; s < plan->n; s++) {
		if (strcmp(plan->want[s].service, pin->service) != 0)
			continue;
		worker_set_add(pin->pin == ASSIGN_IN ? &plan->pinned[s].in : &plan->pinned[s].out,
			       worker);
		if (pin->pin == ASSIGN_IN && plan->want[s].assigned_only)
			worker_set_add(&plan->taken, worker);
	}
}

static void resolve_pins(struct plan *plan, const struct worker_settings *settings)
{
	for (unsigned int i = 0; i < workers_settings_count(settings); i++) {
		const struct worker_setting *setting = workers_settings_at(settings, i);
		const struct worker *worker =
			setting->n_pins == 0 ? NULL : workers_find(plan->pool, setting->name);

		for (unsigned int k = 0; worker != NULL && k < setting->n_pins; k++)
			resolve_pin(plan, &setting->pin[k], worker->number);
	}
}

static bool may_serve(const struct assign_want *want, const struct worker *worker)
{
	return strcmp(worker->spec.model, want->model) == 0;
}

/* Add the workers that serve without being spares. */
static void take_own(struct plan *plan, unsigned int service, const struct worker_set *spares,
		     struct assign_result *result)
{
	const struct assign_want *want = &plan->want[service];
	const struct pinned *pinned = &plan->pinned[service];

	for (const struct worker *w = workers_next(plan->pool, NULL); w != NULL;
	     w = workers_next(plan->pool, w)) {
		bool own;

		if (!may_serve(want, w))
			continue;
		own = want->assigned_only ? worker_set_has(&pinned->in, w->number)
					  : !worker_set_has(&pinned->out, w->number);
		if (own && w->state == WORKER_ACTIVE)
			worker_set_add(&result->in, w->number);
		if (!own && !worker_set_has(spares, w->number))
			continue;
		result->soon += w->state == WORKER_SUSPECT || w->state == WORKER_PROBING;
		if (w->state == WORKER_SUSPECT && !w->doubt.ejected)
			worker_set_add(&result->away, w->number);
	}
}

struct at_host {
	const char *host;
	uint16_t worker;
};

static int by_host(const void *a, const void *b)
{
	const struct at_host *x = a, *y = b;

	return strcmp(x->host, y->host);
}

/* Fill plan->host: all workers of one host get the number of one of them. */
static void find_hosts(struct plan *plan)
{
	struct at_host at[WORKERS_MAX];
	unsigned int n = 0;

	for (const struct worker *w = workers_next(plan->pool, NULL); w != NULL;
	     w = workers_next(plan->pool, w)) {
		const char *host = workers_label(w, ASSIGN_HOST_LABEL);

		plan->host[w->number] = w->number;
		if (host != NULL)
			at[n++] = (struct at_host){.host = host, .worker = w->number};
	}
	qsort(at, n, sizeof(at[0]), by_host);
	for (unsigned int i = 1; i < n; i++)
		if (by_host(&at[i - 1], &at[i]) == 0)
			plan->host[at[i].worker] = plan->host[at[i - 1].worker];
	plan->hosts_known = true;
}

/* Members of one service per host, by the numbers of plan->host. */
struct crowd {
	uint16_t members[WORKERS_MAX];
};

static void count_members(struct plan *plan, const struct worker_set *in, struct crowd *crowd)
{
	if (!plan->hosts_known)
		find_hosts(plan);
	memset(crowd, 0, sizeof(*crowd));
	for (const struct worker *w = workers_next(plan->pool, NULL); w != NULL;
	     w = workers_next(plan->pool, w))
		crowd->members[plan->host[w->number]] += worker_set_has(in, w->number);
}

static int candidate_by_name(const void *a, const void *b)
{
	const struct worker *const *x = a, *const *y = b;

	return strcmp((*x)->spec.name, (*y)->spec.name);
}

/* Collect the workers that may become spares of a service, sorted by name. Returns their number. */
static unsigned int find_candidates(const struct plan *plan, unsigned int service,
				    const struct worker *candidate[WORKERS_MAX])
{
	unsigned int n = 0;

	for (const struct worker *w = workers_next(plan->pool, NULL); w != NULL;
	     w = workers_next(plan->pool, w))
		if (may_serve(&plan->want[service], w) && w->state == WORKER_ACTIVE &&
		    !worker_set_has(&plan->taken, w->number) &&
		    !worker_set_has(&plan->pinned[service].out, w->number))
			candidate[n++] = w;
	qsort(candidate, n, sizeof(*candidate), candidate_by_name);
	return n;
}

/*
 * True when <worker> is a better spare than <best>. <mine>: this service's spares before the call.
 */
static bool is_better(const struct plan *plan, const struct assign_want *want,
		      const struct crowd *crowd, const struct worker_set *mine,
		      const struct worker *worker, const struct worker *best)
{
	int stays = worker_set_has(mine, worker->number) - worker_set_has(mine, best->number);
	int takes = worker_set_has(&plan->before, worker->number) -
		    worker_set_has(&plan->before, best->number);
	int beside = crowd->members[plan->host[worker->number]] -
		     crowd->members[plan->host[best->number]];

	if (stays != 0)
		return stays > 0;
	if (takes != 0)
		return takes < 0;
	return want->placement == ASSIGN_SPREAD ? beside < 0 : beside > 0;
}

static void take_spares(struct plan *plan, unsigned int service, const struct worker_set *mine,
			struct assign_result *result)
{
	const struct assign_want *want = &plan->want[service];
	uint32_t have = worker_set_count(&result->in), missing = 0;
	const struct worker *candidate[WORKERS_MAX];
	unsigned int n;
	struct crowd crowd;

	if (want->assigned_only && have < want->min_workers)
		missing = want->min_workers - have;
	missing = missing < want->spares ? missing : want->spares;
	if (missing == 0)
		return;
	n = find_candidates(plan, service, candidate);
	count_members(plan, &result->in, &crowd);
	for (; missing > 0 && n > 0; missing--) {
		const struct worker *spare;
		unsigned int best = 0;

		/* The first by name wins among equals. */
		for (unsigned int i = 1; i < n; i++)
			if (is_better(plan, want, &crowd, mine, candidate[i], candidate[best]))
				best = i;
		spare = candidate[best];
		memmove(&candidate[best], &candidate[best + 1],
			(--n - best) * sizeof(candidate[0]));
		crowd.members[plan->host[spare->number]]++;
		worker_set_add(&plan->taken, spare->number);
		worker_set_add(&result->in, spare->number);
		worker_set_add(&result->spares, spare->number);
	}
}

void workers_assign(struct worker_pool *pool, const struct worker_settings *settings,
		    const struct assign_want *want, unsigned int n, struct assign_result *result)
{
	struct plan plan = {.pool = pool, .want = want, .n = n};
	struct worker_set *mine = calloc(n, sizeof(*mine));

	plan.pinned = calloc(n, sizeof(*plan.pinned));
	/* Out of memory: all assignments stay as they were, and the next change tries again. */
	if (mine != NULL && plan.pinned != NULL) {
		resolve_pins(&plan, settings);
		for (unsigned int s = 0; s < n; s++) {
			mine[s] = result[s].spares;
			worker_set_join(&plan.before, &mine[s]);
			memset(&result[s], 0, sizeof(result[s]));
			take_own(&plan, s, &mine[s], &result[s]);
		}
		for (unsigned int s = 0; s < n; s++)
			take_spares(&plan, s, &mine[s], &result[s]);
	}
	free(mine);
	free(plan.pinned);
}
