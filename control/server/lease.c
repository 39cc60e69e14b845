/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ownership of worker names. A registration is a lease that its agent renews; an agent that
 * comes back may take over the worker that it left behind. With a renewal an agent may report of
 * its worker.
 */
#include <stdio.h>
#include <string.h>

#include <rte_log.h>

#include "server/rpc.h"

extern int control_log;

/* --- reports -----------------------------------------------------------------------------------
 */

struct report_query {
	const json_t *batches, *gpu;
};

static const struct control_param report_params[] = {
	{CONTROL_PARAM(report_query, batches), CONTROL_LIST, false, 0, WORKER_SIZES_MAX},
	{CONTROL_PARAM(report_query, gpu), CONTROL_OBJECT, false},
};

struct size_query {
	uint32_t rows;
	uint64_t batches, run_us;
};

static const struct control_param size_params[] = {
	{CONTROL_PARAM(size_query, rows), CONTROL_INTEGER, true, 1, UINT32_MAX},
	{CONTROL_PARAM(size_query, batches), CONTROL_INTEGER, true, .max = INT64_MAX},
	{CONTROL_PARAM(size_query, run_us), CONTROL_INTEGER, true, .max = INT64_MAX},
};

static const struct control_param gpu_params[] = {
	{CONTROL_PARAM(worker_gpu, utilization), CONTROL_INTEGER, false, .max = 100},
	{CONTROL_PARAM(worker_gpu, memory_used), CONTROL_INTEGER, false, .max = INT64_MAX},
	{CONTROL_PARAM(worker_gpu, memory_total), CONTROL_INTEGER, false, .max = INT64_MAX},
	{CONTROL_PARAM(worker_gpu, temperature), CONTROL_INTEGER, false, .max = WORKER_DEGREES_MAX},
	{CONTROL_PARAM(worker_gpu, power_mw), CONTROL_INTEGER, false, .max = INT64_MAX},
	{CONTROL_PARAM(worker_gpu, ecc_corrected), CONTROL_INTEGER, false, .max = INT64_MAX},
	{CONTROL_PARAM(worker_gpu, ecc_uncorrected), CONTROL_INTEGER, false, .max = INT64_MAX},
	{CONTROL_PARAM(worker_gpu, xids), CONTROL_INTEGER, false, .max = INT64_MAX},
	{CONTROL_PARAM(worker_gpu, notice), CONTROL_TEXT, false},
};

/* Read <object> into <report>. False after control_fail(). Nothing in it decides anything here: it
 * is shown, and a GPU's notice is logged. */
static bool lease_read_report(struct control_call *call, const json_t *object,
			      struct worker_report *report)
{
	struct report_query q = {0};

	*report = (struct worker_report){0};
	if (!control_params_read(call, "params.report", object, report_params,
				 CONTROL_COUNT_OF(report_params), &q))
		return false;
	report->n_sizes = q.batches != NULL ? (uint32_t)json_array_size(q.batches) : 0;
	for (uint32_t i = 0; i < report->n_sizes; i++) {
		struct size_query size = {0};
		char where[48];

		snprintf(where, sizeof(where), "params.report.batches[%u]", i);
		if (!control_params_read(call, where, json_array_get(q.batches, i), size_params,
					 CONTROL_COUNT_OF(size_params), &size))
			return false;
		/* They are names in JSON and labels in metrics. */
		if (i > 0 && size.rows <= report->size[i - 1].rows) {
			control_fail(call, CONTROL_ERROR_PARAMS,
				     "%s.rows: cannot use %u after %u; give sizes in ascending "
				     "order",
				     where, size.rows, report->size[i - 1].rows);
			return false;
		}
		report->size[i] = (struct worker_size){size.rows, size.batches, size.run_us};
	}
	if (q.gpu == NULL)
		return true;
	report->has_gpu = true;
	report->gpu = (struct worker_gpu){-1, -1, -1, -1, -1, -1, -1, -1, ""};
	if (!control_params_read(call, "params.report.gpu", q.gpu, gpu_params,
				 CONTROL_COUNT_OF(gpu_params), &report->gpu))
		return false;
	/* It stands in quotes in the log. */
	for (char *at = report->gpu.notice; *at != '\0'; at++)
		if (*at == '"')
			*at = '\'';
	return true;
}

static void lease_keep_report(struct worker *worker, const struct worker_report *report)
{
	const char *was = worker->report.gpu.notice, *is = report->gpu.notice;

	if (strcmp(was, is) != 0 && *is != '\0')
		rte_log(RTE_LOG_WARNING, control_log,
			"control: event=gpu_notice worker=%s notice=\"%.100s\"\n",
			worker->spec.name, is);
	else if (*was != '\0' && *is == '\0')
		rte_log(RTE_LOG_NOTICE, control_log, "control: event=gpu_well worker=%s\n",
			worker->spec.name);
	worker->report = *report;
}

/* --- leases ------------------------------------------------------------------------------------
 */

struct renew_query {
	const json_t *report;
};

static const struct control_param renew_params[] = {
	{CONTROL_PARAM(renew_query, report), CONTROL_OBJECT, false},
};

json_t *control_agent_renew(struct control_call *call)
{
	struct control_connection *c = call->c;
	struct worker_report report;
	struct renew_query q = {0};
	json_t *result;
	bool refused;

	if (!control_params_read(call, "params", call->params, renew_params,
				 CONTROL_COUNT_OF(renew_params), &q))
		return NULL;
	if (c->worker == NULL)
		return control_fail(call, CONTROL_ERROR_STATE,
				    "this connection has no worker; call agent.register first");
	/* The lease does not depend on what is only shown. */
	refused = q.report != NULL && !lease_read_report(call, q.report, &report);
	if (q.report != NULL && !refused)
		lease_keep_report(c->worker, &report);
	c->renewed = true;
	lb_worker_control_back(c->lb, c->worker);
	result = json_pack("{s:I}", "lease_ms", (json_int_t)c->lease_ms);
	if (refused)
		json_object_set_new(result, "refused", control_text(call->message));
	return result;
}

void control_lease_end(struct control_connection *c)
{
	lb_worker_control_lost(c->lb, c->worker, false);
}

struct attach_query {
	uint32_t version;
	char name[WORKER_NAME_MAX];
	uint64_t instance;
	uint32_t worker, generation;
};

static const struct control_param attach_params[] = {
	{CONTROL_PARAM(attach_query, version), CONTROL_INTEGER, true, .max = UINT32_MAX},
	{CONTROL_PARAM(attach_query, name), CONTROL_TEXT, true},
	{CONTROL_PARAM(attach_query, instance), CONTROL_HEX64, true},
	{CONTROL_PARAM(attach_query, worker), CONTROL_INTEGER, true, .max = WORKERS_MAX - 1},
	{CONTROL_PARAM(attach_query, generation), CONTROL_INTEGER, true, .max = UINT16_MAX},
};

/* The registration that the agent made over another connection, if it still exists. */
static struct worker *find_registration(const struct control_call *call,
					const struct attach_query *q)
{
	struct worker *w = workers_find(lb_pool(call->c->lb), q->name);

	return w != NULL && w->spec.instance == q->instance && w->number == q->worker &&
			       w->generation == q->generation && w->ready
		       ? w
		       : NULL;
}

json_t *control_agent_attach(struct control_call *call)
{
	struct control_connection *c = call->c, *former;
	struct attach_query q = {0};
	struct worker *w;

	if (!control_params_read(call, "params", call->params, attach_params,
				 CONTROL_COUNT_OF(attach_params), &q) ||
	    !control_version_fits(call, q.version))
		return NULL;
	if (c->worker != NULL)
		return control_fail(call, CONTROL_ERROR_STATE,
				    "this connection has worker '%s' already; open another "
				    "connection",
				    c->worker->spec.name);
	/*
	 * check the certificate again, for the name and below for the rest: it may be another one
	 * than at the registration
	 */
	if (!control_name_allowed(call, q.name))
		return NULL;
	w = find_registration(call, &q);
	if (w == NULL)
		return control_fail(call, CONTROL_ERROR_NOT_FOUND,
				    "this load balancer does not have that registration any more; "
				    "register again");
	if (!control_binding_allowed(call, w->spec.name, lb_worker_address(c->lb, w),
				     w->spec.model))
		return NULL;
	former = w->owner;
	if (former != NULL) {
		former->over = true;
		former->worker = NULL;
	}
	w->owner = c;
	c->worker = w;
	c->attached = c->renewed = true;
	c->lease_ms = lb_config_get(c->lb)->lease_ms;
	lb_worker_control_back(c->lb, w);
	return json_pack("{s:I, s:s}", "lease_ms", (json_int_t)c->lease_ms, "state",
			 control_worker_state_name(c->lb, w));
}

/* End <w> to make room for its successor, and its connection, which is of no more use. */
static void supersede(struct lb *lb, struct worker *w, const char *reason)
{
	struct control_connection *former = w->owner;

	if (former != NULL)
		former->over = true;
	lb_worker_remove(lb, w, reason);
	/* unit tests have no listener for worker events */
	if (former != NULL)
		former->worker = NULL;
}

bool control_claim_name(struct control_call *call, const struct worker_spec *spec)
{
	struct lb *lb = call->c->lb;
	struct worker *w = workers_find(lb_pool(lb), spec->name);
	const struct control_connection *former;

	if (w == NULL)
		return true;
	if (w->spec.instance == spec->instance) {
		supersede(lb, w, "its agent registers again");
		return true;
	}
	/* Health must tell a missing heartbeat from one that only waits in a queue. */
	if (w->doubt.silent) {
		supersede(lb, w, "another agent takes its name, as its loop is silent");
		return true;
	}
	former = w->owner;
	/* use the same words each time: agents log a reason once */
	control_fail(call, CONTROL_ERROR_REFUSED,
		     "name '%s' is in use by another live agent; use another name or stop that "
		     "agent (%s)",
		     spec->name, former != NULL ? former->peer : "at an unknown address");
	return false;
}
