/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operators' settings for workers. A change is made in a copy, which replaces the settings when
 * every step has succeeded: a change is applied completely or not at all. Control thread.
 */
#include "membership/operator_settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/state_file.h"
#include "lcore/lcore.h"
#include "membership/registry.h"
#include "membership/service_workers.h"
#include "observe/stats.h"
#include "settings.h"

_Static_assert(LB_NAME_MAX <= WORKER_NAME_MAX, "names of services fit settings");

/* Write to <error> why a setting cannot be kept. Returns <ret>. */
static int settings_refuse(int ret, char *error, size_t error_size)
{
	if (ret == -ENOSPC)
		snprintf(error, error_size,
			 "settings of %d workers, or %d assignments, are kept already; doorbell "
			 "workers settings lists them, doorbell workers forget NAME removes one",
			 SETTINGS_MAX, SETTINGS_PINS_MAX);
	else
		snprintf(error, error_size, "no memory for one more setting");
	return ret;
}

static struct worker_settings *settings_begin(const struct lb *lb, char *error, size_t error_size)
{
	struct worker_settings *next;

	/* A change publishes pick tables. */
	if (lcores_check(lb, error, error_size) < 0)
		return NULL;
	next = workers_settings_clone(lb->settings);
	if (next == NULL)
		settings_refuse(-ENOMEM, error, error_size);
	return next;
}

/* End a change whose result so far is <ret>: keep <next>, or discard it on an error. Takes <next>.
 */
static int settings_finish(struct lb *lb, struct worker_settings *next, int ret, char *error,
			   size_t error_size)
{
	if (ret == 0 && lb->state_file.path != NULL)
		ret = state_file_save(&lb->state_file, next, error, error_size);
	if (ret < 0) {
		workers_settings_destroy(next);
		return ret;
	}
	workers_settings_destroy(lb->settings);
	lb->settings = next;
	return 0;
}

int lb_settings_open(struct lb *lb, char *error, size_t error_size)
{
	unsigned int n;
	int ret;

	if (lb->config.state_file[0] == '\0')
		return 0;
	lb->state_file.path = lb->config.state_file;
	ret = state_file_load(&lb->state_file, lb->settings, error, error_size);
	if (ret == 0)
		LB_LOG(INFO, "state_file=%s workers=%u", lb->state_file.path,
		       workers_settings_count(lb->settings));
	/* Warn at the start, before the first drain is refused. */
	if (ret == 0 && state_file_check(lb->state_file.path, &n, error, error_size) < 0)
		LB_LOG(WARNING, "state_file=%s reason=\"%s\"", lb->state_file.path, error);
	return ret;
}

const struct worker_settings *lb_settings(const struct lb *lb)
{
	return lb->settings;
}

/* --- applying settings to a worker -------------------------------------------------------------
 */

#define HELD "drained by an operator; doorbell workers resume undoes it"

static void set_weight(struct lb *lb, struct worker *w, uint32_t weight)
{
	if (w->spec.weight == weight)
		return;
	LB_LOG(NOTICE, "worker=%s weight=%u before=%u", w->spec.name, weight, w->spec.weight);
	w->spec.weight = weight;
	if (w->state == WORKER_ACTIVE)
		registry_publish(lb, w->spec.model);
}

static void settings_drain_now(struct lb *lb, struct worker *w)
{
	/* a joining worker gets no requests yet, and is drained when it becomes ready */
	if (w->state == WORKER_ACTIVE || w->state == WORKER_SUSPECT)
		registry_set_state(lb, w, WORKER_DRAINING, "an operator drains it");
}

static void settings_resume(struct lb *lb, struct worker *w)
{
	if (w->state != WORKER_DRAINING || w->leaving)
		return;
	if (w->active_ms == 0) {
		w->registered_ms = lb_now_ms(lb);
		return registry_set_state(lb, w, WORKER_JOINING, "resumed");
	}
	if (w->doubt.silent || w->doubt.ejected)
		return registry_set_state(lb, w, WORKER_SUSPECT,
					  w->doubt.silent ? "resumed; its loop is silent"
							  : "resumed; still ejected");
	registry_set_state(lb, w, WORKER_ACTIVE, registry_reason(w));
}

void settings_hold(struct lb *lb, struct worker *w)
{
	settings_end_replacement(lb, w);
	registry_set_state(lb, w, WORKER_DRAINING, HELD);
	w->drained = true;
}

void settings_apply(struct lb *lb, struct worker *w)
{
	const struct worker_setting *s = workers_settings_find(lb->settings, w->spec.name);
	/* One whose successor has yet to come serves until then. */
	bool waits = s != NULL && s->successor[0] != '\0' && !w->replaced;
	bool drain = s != NULL && s->drain && !waits, before = w->drain;

	set_weight(lb, w, s != NULL && s->weight != 0 ? s->weight : w->own_weight);
	w->drain = drain;
	w->replacing = s != NULL && s->successor[0] != '\0';
	if (drain && !before)
		settings_drain_now(lb, w);
	else if (!drain && before)
		settings_resume(lb, w);
}

static void apply_to(struct lb *lb, const char *name)
{
	struct worker *w = workers_find(lb->pool, name);

	if (w != NULL)
		settings_apply(lb, w);
}

static int settings_finish_one(struct lb *lb, struct worker_settings *next, const char *name,
			       int ret, char *error, size_t error_size)
{
	if (ret < 0)
		settings_refuse(ret, error, error_size);
	ret = settings_finish(lb, next, ret, error, error_size);
	if (ret == 0)
		apply_to(lb, name);
	return ret;
}

static int settings_set_drain(struct lb *lb, const char *name, bool drain, char *error,
			      size_t error_size)
{
	struct worker_settings *next = settings_begin(lb, error, error_size);
	int ret = next == NULL ? -ENOMEM : workers_settings_drain(next, name, drain);

	return next == NULL ? ret : settings_finish_one(lb, next, name, ret, error, error_size);
}

int lb_settings_drain(struct lb *lb, const char *name, bool drain, char *error, size_t error_size)
{
	/* Drained for its own sake from now on. */
	int ret = settings_set_drain(lb, name, drain, error, error_size);

	if (ret < 0)
		return ret;
	LB_LOG(NOTICE, "worker=%s operator=%s", name, drain ? "drain" : "resume");
	return 0;
}

/* --- a worker that takes another one's place ----------------------------------------------------
 */

int lb_settings_replace(struct lb *lb, struct worker *old, const struct worker *successor,
			bool partly, char *error, size_t error_size)
{
	struct worker_settings *next = settings_begin(lb, error, error_size);
	bool before = old->replaced;
	int ret;

	if (next == NULL)
		return -ENOMEM;
	ret = workers_settings_replace(next, old->spec.name, successor->spec.name, partly);
	old->replaced = true;
	ret = settings_finish_one(lb, next, old->spec.name, ret, error, error_size);
	if (ret < 0) {
		old->replaced = before;
		return ret;
	}
	LB_LOG(NOTICE, "worker=%s operator=replace successor=%s", old->spec.name,
	       successor->spec.name);
	return 0;
}

/*
 * Save a change that was made because of what happened to workers. It holds in any case: a full
 * disk must not keep a worker from serving. What is in the file instead is the replacement, which a
 * restart would finish or take back.
 */
static void save_if_possible(struct lb *lb, const char *name)
{
	char error[512];

	if (lb->state_file.path != NULL &&
	    state_file_save(&lb->state_file, lb->settings, error, sizeof(error)) < 0)
		LB_LOG(WARNING,
		       "worker=%s the end of its replacement is not in the state file until the "
		       "next change: %s",
		       name, error);
}

static bool take_back(struct lb *lb, struct worker *w, const struct worker_setting *s,
		      const char *why)
{
	LB_LOG(WARNING, "worker=%s successor=%s %s: the worker serves again", w->spec.name,
	       s->successor, why);
	/* Takes no memory, as there is a row. */
	workers_settings_drain(lb->settings, w->spec.name, false);
	w->replaced = false;
	settings_apply(lb, w);
	save_if_possible(lb, w->spec.name);
	return true;
}

/* The successor has come: go on where the load balancer had ended. */
static bool take_up(struct lb *lb, struct worker *w, const struct worker_setting *s)
{
	LB_LOG(NOTICE, "worker=%s successor=%s serves: the replacement goes on", w->spec.name,
	       s->successor);
	w->replaced = true;
	settings_apply(lb, w);
	return true;
}

/*
 * The successor is waited for: until it serves what <w> serves. Other workers may have yet to come,
 * too, so what <w> serves in their place is no reason to take it back at once.
 */
static bool await_successor(struct lb *lb, struct worker *w, const struct worker_setting *s,
			    struct worker *successor)
{
	bool serves = successor != NULL && successor->state == WORKER_ACTIVE;
	int gap = serves && !s->partly ? lb_replace_gap(lb, w, successor) : -1;
	char why[LB_NAME_MAX + 64] = "has not come back";

	if (serves && gap < 0)
		return take_up(lb, w, s);
	if (w->active_ms == 0 || lb_now_ms(lb) - w->active_ms <= SUCCESSOR_MS)
		return false;
	if (gap >= 0)
		snprintf(why, sizeof(why), "does not serve service '%s' any more",
			 lb->config.service[gap].name);
	return take_back(lb, w, s, why);
}

bool settings_check_successor(struct lb *lb, struct worker *w)
{
	const struct worker_setting *s;
	struct worker *successor;

	/* Called all the time, and there may be thousands of settings. */
	if (!w->replacing)
		return false;
	s = workers_settings_find(lb->settings, w->spec.name);
	if (s == NULL || s->successor[0] == '\0')
		return false;
	successor = workers_find(lb->pool, s->successor);
	if (!w->replaced)
		return await_successor(lb, w, s, successor);
	/* One that registers again is not back before it serves. */
	if (successor != NULL &&
	    (successor->state == WORKER_ACTIVE || successor->state == WORKER_SUSPECT))
		return false;
	return take_back(lb, w, s, successor == NULL ? "is gone" : "does not serve");
}

void settings_end_replacement(struct lb *lb, struct worker *w)
{
	const struct worker_setting *s = workers_settings_find(lb->settings, w->spec.name);

	w->replacing = false;
	if (s == NULL || s->successor[0] == '\0')
		return;
	LB_LOG(NOTICE, "worker=%s successor=%s replaced", w->spec.name, s->successor);
	workers_settings_drain(lb->settings, w->spec.name, true);
	save_if_possible(lb, w->spec.name);
}

/* -------------------------------------------------------------------------------------------- */

int lb_settings_weight(struct lb *lb, const char *name, uint32_t weight, char *error,
		       size_t error_size)
{
	struct worker_settings *next = settings_begin(lb, error, error_size);
	int ret = next == NULL ? -ENOMEM : workers_settings_weight(next, name, weight);

	return next == NULL ? ret : settings_finish_one(lb, next, name, ret, error, error_size);
}

int lb_settings_forget(struct lb *lb, const char *name, char *error, size_t error_size)
{
	struct worker_settings *next = settings_begin(lb, error, error_size);
	const struct worker *w = workers_find(lb->pool, name);
	int ret;

	if (next == NULL)
		return -ENOMEM;
	if (!workers_settings_forget(next, name)) {
		workers_settings_destroy(next);
		snprintf(error, error_size, "nothing is set for a worker '%s'", name);
		return -ENOENT;
	}
	ret = settings_finish_one(lb, next, name, 0, error, error_size);
	if (ret == 0 && w != NULL)
		registry_publish(lb, w->spec.model);
	if (ret == 0)
		LB_LOG(NOTICE, "worker=%s operator=forget", name);
	return ret;
}

uint64_t lb_worker_lost(const struct lb *lb, const struct worker *w)
{
	return lb->lost[w->number];
}

/* --- assignments --------------------------------------------------------------------------- */

/* A rule for a worker's assignment to a service: enum assign_pin, or -errno and <error>. */
typedef int pin_rule(const struct lb *lb, const struct worker *w, unsigned int service, char *error,
		     size_t error_size);

static int assigned_pin(const struct lb *lb, const struct worker *w, unsigned int service,
			char *error, size_t error_size)
{
	const struct lb_service_config *s = &lb->config.service[service];

	if (strcmp(w->spec.model, s->model) != 0) {
		snprintf(error, error_size,
			 "worker '%s' runs the model '%s', and service '%s' needs '%s'; assign a "
			 "worker of that model",
			 w->spec.name, w->spec.model, s->name, s->model);
		return -EINVAL;
	}
	/* Where all workers of the model serve, undoing the release is enough. */
	return s->assigned_only ? ASSIGN_IN : ASSIGN_AUTO;
}

/* True when the worker serves, or would if active: a silent or drained one can be released, too. */
static bool would_serve(const struct lb *lb, const struct worker *w, unsigned int service,
			enum assign_pin pin)
{
	const struct lb_service_config *s = &lb->config.service[service];

	if (strcmp(w->spec.model, s->model) != 0)
		return false;
	return (s->assigned_only ? pin == ASSIGN_IN : pin != ASSIGN_OUT) ||
	       lb_worker_serves(lb, w, service);
}

static int released_pin(const struct lb *lb, const struct worker *w, unsigned int service,
			char *error, size_t error_size)
{
	const struct lb_service_config *s = &lb->config.service[service];
	enum assign_pin pin = workers_settings_pinned(lb->settings, w->spec.name, s->name);

	if (pin != ASSIGN_IN && !would_serve(lb, w, service, pin)) {
		snprintf(error, error_size, "worker '%s' does not serve '%s'", w->spec.name,
			 s->name);
		return -EINVAL;
	}
	/*
	 * A worker that was assigned may step in as a spare again. A spare, or a worker of a
	 * service that all workers serve, stays out.
	 */
	return pin == ASSIGN_IN && s->assigned_only ? ASSIGN_AUTO : ASSIGN_OUT;
}

static int pin_all(struct lb *lb, const struct worker *w, const unsigned int *service,
		   unsigned int n, pin_rule *rule, char *error, size_t error_size)
{
	struct worker_settings *next = settings_begin(lb, error, error_size);
	int ret = 0;

	if (next == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; ret == 0 && i < n; i++) {
		int pin = rule(lb, w, service[i], error, error_size);

		if (pin >= 0) {
			ret = workers_settings_pin(next, w->spec.name,
						   lb->config.service[service[i]].name, pin);
			if (ret < 0)
				settings_refuse(ret, error, error_size);
		} else {
			ret = pin;
		}
	}
	ret = settings_finish(lb, next, ret, error, error_size);
	if (ret < 0)
		return ret;
	for (unsigned int i = 0; i < n; i++)
		LB_LOG(NOTICE, "worker=%s service=%s assignment=%s", w->spec.name,
		       lb->config.service[service[i]].name,
		       rule == assigned_pin ? "assigned" : "released");
	registry_publish(lb, w->spec.model);
	return 0;
}

int lb_worker_assign(struct lb *lb, const struct worker *w, const unsigned int *service,
		     unsigned int n, char *error, size_t error_size)
{
	return pin_all(lb, w, service, n, assigned_pin, error, error_size);
}

int lb_worker_release(struct lb *lb, const struct worker *w, const unsigned int *service,
		      unsigned int n, char *error, size_t error_size)
{
	return pin_all(lb, w, service, n, released_pin, error, error_size);
}
