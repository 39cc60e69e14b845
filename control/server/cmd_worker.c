/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/row.h"
#include "server/rpc.h"

struct worker_query {
	char name[WORKER_NAME_MAX];
};

static const struct control_param query_params[] = {
	{CONTROL_PARAM(worker_query, name), CONTROL_TEXT, .required = true},
};

struct replace_query {
	char name[WORKER_NAME_MAX], successor[WORKER_NAME_MAX];
	bool partly, again;
};

static const struct control_param replace_params[] = {
	{CONTROL_PARAM(replace_query, name), CONTROL_TEXT, .required = true},
	{CONTROL_PARAM(replace_query, successor), CONTROL_TEXT, .required = true},
	{CONTROL_PARAM(replace_query, partly), CONTROL_BOOLEAN},
	{CONTROL_PARAM(replace_query, again), CONTROL_BOOLEAN},
};

/* An operator's setting for a name; a worker of that name need not be registered yet. */
struct setting_query {
	char name[WORKER_NAME_MAX];
	bool absent;
	uint32_t weight;
};

static const struct control_param setting_params[] = {
	{CONTROL_PARAM(setting_query, name), CONTROL_TEXT, .required = true},
	{CONTROL_PARAM(setting_query, absent), CONTROL_BOOLEAN},
};

static const struct control_param weight_params[] = {
	{CONTROL_PARAM(setting_query, name), CONTROL_TEXT, .required = true},
	{CONTROL_PARAM(setting_query, weight), CONTROL_INTEGER, .required = true, .min = 0,
	 .max = WORKER_WEIGHT_MAX},
	{CONTROL_PARAM(setting_query, absent), CONTROL_BOOLEAN},
};

enum control_state control_worker_state(const struct lb *lb, const struct worker *worker)
{
	static const enum control_state states[WORKER_STATES] = {
		[WORKER_GONE] = CONTROL_STATE_GONE,
		[WORKER_JOINING] = CONTROL_STATE_JOINING,
		[WORKER_PROBING] = CONTROL_STATE_PROBING,
		[WORKER_ACTIVE] = CONTROL_STATE_ACTIVE,
		[WORKER_SUSPECT] = CONTROL_STATE_SUSPECT,
		[WORKER_DRAINING] = CONTROL_STATE_DRAINING,
	};

	if (worker->state == WORKER_DRAINING && lb_worker_drained((struct lb *)lb, worker))
		return CONTROL_STATE_DRAINED;
	return states[worker->state];
}

const char *control_worker_state_name(const struct lb *lb, const struct worker *worker)
{
	return control_state_name(control_worker_state(lb, worker));
}

json_t *control_worker_page(struct control_call *call, const struct worker *worker)
{
	struct json_writer w = {.out = &call->written};

	call->written_name = "worker";
	worker_row_write(&w, NULL, call->c->lb, worker, ROW_PAGE);
	return json_object();
}

json_t *control_workers_write(struct control_call *call, control_worker_writer *write)
{
	struct json_writer w = {.out = &call->written};
	struct lb *lb = call->c->lb;

	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	call->written_name = "workers";
	writer_open_array(&w, NULL);
	for (const struct worker *worker = workers_next(lb_pool(lb), NULL); worker != NULL;
	     worker = workers_next(lb_pool(lb), worker))
		write(&w, lb, worker);
	writer_close_array(&w);
	return json_object();
}

static void write_list_row(struct json_writer *w, struct lb *lb, const struct worker *worker)
{
	worker_row_write(w, NULL, lb, worker, ROW_LIST);
}

json_t *control_workers_list(struct control_call *call)
{
	return control_workers_write(call, write_list_row);
}

/* The worker <name>; NULL after control_fail(). */
static struct worker *registered_worker(struct control_call *call, const char *name)
{
	struct worker *worker = workers_find(lb_pool(call->c->lb), name);

	if (worker == NULL)
		control_fail(call, CONTROL_ERROR_NOT_FOUND,
			     "no worker '%s'; workers.list has them all", name);
	return worker;
}

json_t *control_workers_show(struct control_call *call)
{
	const struct worker *worker;
	struct worker_query q;

	if (!control_params_read(call, "params", call->params, query_params,
				 CONTROL_COUNT_OF(query_params), &q))
		return NULL;
	worker = registered_worker(call, q.name);
	return worker != NULL ? control_worker_page(call, worker) : NULL;
}

/* --- what operators set ----------------------------------------------------------------------- */

static json_t *pins(const struct worker_setting *setting, enum assign_pin pin)
{
	json_t *names = json_array();

	for (unsigned int i = 0; setting != NULL && i < setting->n_pins; i++)
		if (setting->pin[i].pin == pin)
			json_array_append_new(names, control_text(setting->pin[i].service));
	return names;
}

/*
 * <setting> is NULL when nothing is set for <name>. Without a worker, the row says what became of
 * the last one.
 */
static json_t *setting_row(struct lb *lb, const char *name, const struct worker_setting *setting)
{
	const struct worker *worker = workers_find(lb_pool(lb), name);
	const struct worker *gone = worker != NULL ? NULL : workers_find_gone(lb_pool(lb), name);

	return json_pack(
		"{s:o, s:s, s:o, s:I, s:b, s:o, s:o, s:o, s:o}", "name", control_text(name),
		"state",
		worker != NULL ? control_worker_state_name(lb, worker)
			       : control_state_name(CONTROL_STATE_GONE),
		"reason",
		control_text(worker != NULL ? worker->reason
			     : gone != NULL ? gone->reason
					    : "it has not registered"),
		"lost", (json_int_t)(gone != NULL ? lb_worker_lost(lb, gone) : 0), "drain",
		setting != NULL && setting->drain, "successor",
		setting != NULL && setting->successor[0] != '\0' ? control_text(setting->successor)
								 : json_null(),
		"weight",
		setting != NULL && setting->weight ? json_integer(setting->weight) : json_null(),
		"assigned", pins(setting, ASSIGN_IN), "released", pins(setting, ASSIGN_OUT));
}

json_t *control_workers_settings(struct control_call *call)
{
	const struct worker_settings *settings = lb_settings(call->c->lb);
	json_t *rows;

	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	rows = json_array();
	for (unsigned int i = 0; i < workers_settings_count(settings); i++) {
		const struct worker_setting *setting = workers_settings_at(settings, i);

		json_array_append_new(rows, setting_row(call->c->lb, setting->name, setting));
	}
	return json_pack("{s:o}", "settings", rows);
}

/* Refuse unknown names: a typing error would be kept for a worker that never comes. */
static bool is_known(struct control_call *call, const struct setting_query *q)
{
	struct lb *lb = call->c->lb;

	if (!workers_name_is_valid(q->name)) {
		control_fail(call, CONTROL_ERROR_PARAMS,
			     "params.name: no worker can have this name; use letters, digits and "
			     "._-");
		return false;
	}
	if (q->absent || workers_find(lb_pool(lb), q->name) != NULL ||
	    workers_settings_find(lb_settings(lb), q->name) != NULL)
		return true;
	control_fail(call, CONTROL_ERROR_NOT_FOUND,
		     "no worker '%s'; workers.list has them all (absent: true, or --absent, is for "
		     "one that has yet to register)",
		     q->name);
	return false;
}

/* Make the reply to a change that returned <ret>. */
static json_t *changed(struct control_call *call, const char *name, int ret, const char *error)
{
	struct lb *lb = call->c->lb;
	const struct worker *worker = workers_find(lb_pool(lb), name);
	json_t *result;

	if (ret < 0)
		return control_fail(call, CONTROL_ERROR_STATE, "%s", error);
	result = worker != NULL ? control_worker_page(call, worker) : json_pack("{s:n}", "worker");
	json_object_set_new(result, "setting",
			    setting_row(lb, name, workers_settings_find(lb_settings(lb), name)));
	return result;
}

static json_t *set_drain(struct control_call *call, bool drain)
{
	struct setting_query q = {0};
	char error[512] = "";
	int ret;

	if (!control_params_read(call, "params", call->params, setting_params,
				 CONTROL_COUNT_OF(setting_params), &q) ||
	    !is_known(call, &q))
		return NULL;
	ret = lb_settings_drain(call->c->lb, q.name, drain, error, sizeof(error));
	return changed(call, q.name, ret, error);
}

json_t *control_workers_drain(struct control_call *call)
{
	return set_drain(call, true);
}

json_t *control_workers_resume(struct control_call *call)
{
	return set_drain(call, false);
}

/* False after control_fail() if a service of <old> would have no worker in its place. */
static bool serves_as_much(struct control_call *call, struct worker *old, struct worker *successor)
{
	struct lb *lb = call->c->lb;
	const struct worker_setting *setting =
		workers_settings_find(lb_settings(lb), old->spec.name);
	/* One that an operator drained serves nothing that could be lost. */
	bool idle = setting != NULL && setting->drain && setting->successor[0] == '\0';
	int gap = idle || successor == NULL ? -1 : lb_replace_gap(lb, old, successor);
	const char *service;

	if (gap < 0)
		return true;
	service = lb_config_get(lb)->service[gap].name;
	control_fail(
		call, CONTROL_ERROR_STATE,
		"worker '%s' would not serve service '%s', which '%s' serves, so '%s' goes on; "
		"doorbell workers assign %s %s lets it, and partly: true, or --partly, does "
		"without",
		successor->spec.name, service, old->spec.name, old->spec.name, successor->spec.name,
		service);
	return false;
}

/* False after control_fail() if <successor> can never take the place of <old> as things are. */
static bool may_succeed(struct control_call *call, struct worker *old, const char *successor,
			bool partly)
{
	struct worker *worker = workers_find(lb_pool(call->c->lb), successor);
	const struct worker_setting *setting =
		workers_settings_find(lb_settings(call->c->lb), successor);
	const char *name = old->spec.name;

	if (strcmp(name, successor) == 0)
		control_fail(call, CONTROL_ERROR_PARAMS,
			     "params.successor: '%s' is the worker to be replaced; give another",
			     name);
	else if (worker != NULL && strcmp(worker->spec.model, old->spec.model) != 0)
		control_fail(call, CONTROL_ERROR_STATE,
			     "worker '%s' has model '%s', and '%s' has '%s'", successor,
			     worker->spec.model, name, old->spec.model);
	else if (setting != NULL && setting->drain)
		control_fail(call, CONTROL_ERROR_STATE,
			     "worker '%s' is drained by an operator or was replaced, so '%s' goes "
			     "on; doorbell workers resume %s lets it serve",
			     successor, name, successor);
	else
		return partly || serves_as_much(call, old, worker);
	return false;
}

/* Nothing changes: why the next call may find something else. */
static json_t *replace_waits(const char *name, const struct worker *worker, struct lb *lb)
{
	char why[WORKER_NAME_MAX + 64];

	snprintf(why, sizeof(why), "worker '%s' is %s", name,
		 worker != NULL ? control_worker_state_name(lb, worker) : "not registered");
	return json_pack("{s:o}", "waits", control_text(why));
}

/*
 * The worker is not registered. If it is being replaced, or was, it will be drained when it is, and
 * there is nothing to do but to wait for its successor.
 */
static json_t *replace_absent(struct control_call *call, const struct replace_query *q)
{
	struct lb *lb = call->c->lb;
	const struct worker_setting *setting = workers_settings_find(lb_settings(lb), q->name);
	const struct worker *successor = workers_find(lb_pool(lb), q->successor);

	if (setting == NULL || !setting->drain ||
	    (setting->successor[0] != '\0' && strcmp(setting->successor, q->successor) != 0)) {
		registered_worker(call, q->name);
		return NULL;
	}
	if (successor == NULL || successor->state != WORKER_ACTIVE)
		return replace_waits(q->successor, successor, lb);
	return changed(call, q->name, 0, NULL);
}

/*
 * A replacement that was asked for before this load balancer started was taken back since, or
 * another one took its place. Without a state file it knows of none.
 */
static bool is_taken_back(struct lb *lb, const struct replace_query *q)
{
	const struct worker_setting *setting = workers_settings_find(lb_settings(lb), q->name);

	if (lb_config_get(lb)->state_file[0] == '\0')
		return false;
	return setting == NULL || !setting->drain ||
	       (setting->successor[0] != '\0' && strcmp(setting->successor, q->successor) != 0);
}

/*
 * Look whether the successor is active, and drain the other: one step, as only this thread changes
 * either. Of two replacements that are each other's, the second finds its successor drained.
 */
json_t *control_workers_replace(struct control_call *call)
{
	struct lb *lb = call->c->lb;
	const struct worker *successor;
	struct replace_query q = {0};
	char error[512] = "";
	struct worker *old;
	int ret;

	if (!control_params_read(call, "params", call->params, replace_params,
				 CONTROL_COUNT_OF(replace_params), &q))
		return NULL;
	if (q.again && is_taken_back(lb, &q))
		return changed(call, q.name, 0, NULL);
	old = workers_find(lb_pool(lb), q.name);
	if (old == NULL)
		return replace_absent(call, &q);
	if (!may_succeed(call, old, q.successor, q.partly))
		return NULL;
	successor = workers_find(lb_pool(lb), q.successor);
	if (successor == NULL || successor->state != WORKER_ACTIVE)
		return replace_waits(q.successor, successor, lb);
	ret = lb_settings_replace(lb, old, successor, q.partly, error, sizeof(error));
	return changed(call, q.name, ret, error);
}

json_t *control_workers_set(struct control_call *call)
{
	struct setting_query q = {0};
	char error[512] = "";
	int ret;

	if (!control_params_read(call, "params", call->params, weight_params,
				 CONTROL_COUNT_OF(weight_params), &q) ||
	    !is_known(call, &q))
		return NULL;
	ret = lb_settings_weight(call->c->lb, q.name, q.weight, error, sizeof(error));
	return changed(call, q.name, ret, error);
}

json_t *control_workers_forget(struct control_call *call)
{
	struct worker_query q;
	char error[512] = "";
	int ret;

	if (!control_params_read(call, "params", call->params, query_params,
				 CONTROL_COUNT_OF(query_params), &q))
		return NULL;
	ret = lb_settings_forget(call->c->lb, q.name, error, sizeof(error));
	if (ret == -ENOENT)
		return control_fail(call, CONTROL_ERROR_NOT_FOUND,
				    "%s; workers.settings has all that is", error);
	return changed(call, q.name, ret, error);
}
