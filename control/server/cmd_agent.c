/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The methods that agents call. The ranges here are those of the wire; workers/ and lb/ check what
 * a pool or a port can serve and write those error texts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_log.h>

#include "config/address.h"
#include "observe/capture.h"
#include "server/log_limit.h"
#include "server/rpc.h"
#include "secure/secure.h"
#include "ring.h"

extern int control_log;

#define BITS_24 0xffffff /* queue pair numbers and PSNs */

struct hello_query {
	uint32_t version;
	char model[WORKER_NAME_MAX];
	uint32_t min_request;
	struct lb_address address;
};

static const struct control_param hello_params[] = {
	{CONTROL_PARAM(hello_query, version), CONTROL_INTEGER, true, .max = UINT32_MAX},
	{CONTROL_PARAM(hello_query, model), CONTROL_TEXT, true},
	{CONTROL_PARAM(hello_query, address), CONTROL_ADDRESS, true},
	{CONTROL_PARAM(hello_query, min_request), CONTROL_INTEGER, false, .max = UINT32_MAX},
};

/* Flat form of struct lb_registration, for the parameter table. */
struct register_query {
	uint32_t version;
	char name[WORKER_NAME_MAX], model[WORKER_NAME_MAX];
	uint64_t instance;
	uint32_t slots, min_request, max_request, max_reply, max_chunks, max_batch, weight,
		heartbeat_ms, max_run_ms, path_mtu;
	struct lb_address address;
	const json_t *links, *labels, *description;
};

static const struct control_param register_params[] = {
	{CONTROL_PARAM(register_query, version), CONTROL_INTEGER, true, .max = UINT32_MAX},
	{CONTROL_PARAM(register_query, name), CONTROL_TEXT, true},
	{CONTROL_PARAM(register_query, model), CONTROL_TEXT, true},
	{CONTROL_PARAM(register_query, instance), CONTROL_HEX64, true},
	{CONTROL_PARAM(register_query, slots), CONTROL_INTEGER, true, .max = UINT32_MAX},
	{CONTROL_PARAM(register_query, max_request), CONTROL_INTEGER, true, .max = UINT32_MAX},
	{CONTROL_PARAM(register_query, min_request), CONTROL_INTEGER, false, .max = UINT32_MAX},
	{CONTROL_PARAM(register_query, max_reply), CONTROL_INTEGER, true, .max = UINT32_MAX},
	{CONTROL_PARAM(register_query, max_chunks), CONTROL_INTEGER, false, .max = UINT32_MAX},
	{CONTROL_PARAM(register_query, max_batch), CONTROL_INTEGER, true, .max = UINT32_MAX},
	{CONTROL_PARAM(register_query, weight), CONTROL_INTEGER, true, .max = UINT32_MAX},
	{CONTROL_PARAM(register_query, heartbeat_ms), CONTROL_INTEGER, true, .max = UINT32_MAX},
	{CONTROL_PARAM(register_query, max_run_ms), CONTROL_INTEGER, false, .max = UINT32_MAX},
	{CONTROL_PARAM(register_query, address), CONTROL_ADDRESS, true},
	{CONTROL_PARAM(register_query, path_mtu), CONTROL_INTEGER, true, 256, 4096},
	{CONTROL_PARAM(register_query, labels), CONTROL_MAP, false, 0, WORKER_LABELS_MAX},
	{CONTROL_PARAM(register_query, links), CONTROL_LIST, true, 1, LB_LCORES_MAX},
	{CONTROL_PARAM(register_query, description), CONTROL_OBJECT, false},
};

static const struct control_param link_params[] = {
	{CONTROL_PARAM(lb_link_spec, lcore), CONTROL_INTEGER, true, .max = LB_LCORES_MAX - 1},
	{CONTROL_PARAM(lb_link_spec, qpn), CONTROL_INTEGER, true, .max = BITS_24},
	{CONTROL_PARAM(lb_link_spec, psn), CONTROL_INTEGER, true, .max = BITS_24},
	{CONTROL_PARAM(lb_link_spec, rkey), CONTROL_INTEGER, true, .max = UINT32_MAX},
	{CONTROL_PARAM(lb_link_spec, descriptors), CONTROL_INTEGER, true, .max = INT64_MAX},
	{CONTROL_PARAM(lb_link_spec, payloads), CONTROL_INTEGER, true, .max = INT64_MAX},
	{CONTROL_PARAM(lb_link_spec, cancels), CONTROL_INTEGER, true, .max = INT64_MAX},
	{CONTROL_PARAM(lb_link_spec, stride), CONTROL_INTEGER, true, .max = UINT32_MAX},
	{CONTROL_PARAM(lb_link_spec, room), CONTROL_INTEGER, true, .max = INT64_MAX},
	{CONTROL_PARAM(lb_link_spec, entry), CONTROL_INTEGER, true, .max = UINT32_MAX},
};

bool control_version_fits(struct control_call *call, uint32_t version)
{
	if (version == CONTROL_PROTOCOL)
		return true;
	control_fail(call, CONTROL_ERROR_REFUSED,
		     "version: the agent speaks protocol %u, this load balancer %d, with ring "
		     "contract %d; %s the agent %s doorbell " DOORBELL_VERSION,
		     version, CONTROL_PROTOCOL, RING_VERSION,
		     version < CONTROL_PROTOCOL ? "upgrade" : "install",
		     version < CONTROL_PROTOCOL ? "to" : "of");
	return false;
}

json_t *control_agent_hello(struct control_call *call)
{
	struct hello_query q = {0};
	struct lb_hello hello;
	char error[400] = "", address[LB_ADDRESS_TEXT];

	if (!control_params_read(call, "params", call->params, hello_params,
				 CONTROL_COUNT_OF(hello_params), &q) ||
	    !control_version_fits(call, q.version))
		return NULL;
	memset(&hello, 0, sizeof(hello));
	if (lb_hello(call->c->lb, q.model, &q.address, &hello, error, sizeof(error)) != 0 ||
	    lb_request_check(call->c->lb, q.model, q.min_request, error, sizeof(error)) != 0)
		return control_fail(call, CONTROL_ERROR_REFUSED, "%s", error);
	call->c->greeted = true;
	return json_pack("{s:I, s:I, s:s, s:I, s:I, s:I, s:i, s:i, s:b, s:b}", "n_lcores",
			 (json_int_t)hello.n_lcores, "path_mtu", (json_int_t)hello.path_mtu,
			 "address", lb_address_format(&hello.address, address, sizeof(address)),
			 "max_request", (json_int_t)hello.max_request, "max_reply",
			 (json_int_t)hello.max_reply, "worker_timeout_ms",
			 (json_int_t)hello.worker_timeout_ms, "ack_timeout", hello.ack_timeout,
			 "retry_count", hello.retry_count, "describe", 1, "report", 1);
}

static void fill_worker(const struct register_query *q, struct worker_spec *spec)
{
	memcpy(spec->name, q->name, sizeof(spec->name));
	memcpy(spec->model, q->model, sizeof(spec->model));
	spec->instance = q->instance;
	spec->slots = q->slots;
	spec->max_request = q->max_request;
	spec->min_request = q->min_request;
	spec->max_reply = q->max_reply;
	spec->max_batch = q->max_batch;
	spec->weight = q->weight;
	spec->heartbeat_ms = q->heartbeat_ms;
	spec->max_run_ms = q->max_run_ms;
}

/* A text that does not fit is stored without its NUL, which workers_register() refuses. */
static void fill_labels(const json_t *labels, struct worker_spec *spec)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)labels, key, value) {
		struct worker_label *label = &spec->label[spec->n_labels++];

		strncpy(label->key, key, sizeof(label->key));
		strncpy(label->value, json_string_value(value), sizeof(label->value));
	}
}

static bool read_links(struct control_call *call, const json_t *links, struct lb_registration *r)
{
	r->n_links = (unsigned int)json_array_size(links);
	for (unsigned int i = 0; i < r->n_links; i++) {
		char where[32];

		snprintf(where, sizeof(where), "params.links[%u]", i);
		if (!control_params_read(call, where, json_array_get(links, i), link_params,
					 CONTROL_COUNT_OF(link_params), &r->link[i]))
			return false;
	}
	return true;
}

/* Fill <r>, whose worker's description is <description> then, or none. */
static bool read_registration(struct control_call *call, struct lb_registration *r,
			      struct model_description *description)
{
	struct register_query q = {0};

	if (!control_params_read(call, "params", call->params, register_params,
				 CONTROL_COUNT_OF(register_params), &q) ||
	    !control_version_fits(call, q.version) || !read_links(call, q.links, r))
		return false;
	if (q.description != NULL && !tensors_read(call, q.description, description))
		return false;
	fill_worker(&q, &r->worker);
	fill_labels(q.labels, &r->worker);
	r->worker.description = q.description != NULL ? description : NULL;
	r->address = q.address;
	r->path_mtu = q.path_mtu;
	r->max_chunks = q.max_chunks;
	return true;
}

static json_t *registered(const struct worker *worker, uint32_t path_mtu,
			  const struct lb_link_info *info, unsigned int n)
{
	json_t *links = json_array(), *link;

	for (unsigned int i = 0; i < n; i++) {
		link = json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I}", "lcore", info[i].lcore,
				 "qpn", (json_int_t)info[i].qpn, "psn", (json_int_t)info[i].psn,
				 "reply_rkey", (json_int_t)info[i].reply_rkey, "reply_address",
				 (json_int_t)info[i].reply_address, "reply_stride",
				 (json_int_t)info[i].reply_stride, "chunk",
				 (json_int_t)info[i].chunk);
		if (info[i].udp_source != 0)
			json_object_set_new(link, "udp_source", json_integer(info[i].udp_source));
		json_array_append_new(links, link);
	}
	return json_pack("{s:i, s:i, s:I, s:o}", "worker", worker->number, "generation",
			 worker->generation, "path_mtu", (json_int_t)path_mtu, "links", links);
}

/* Tell a peer what its certificate does not allow; the peer has to connect again. */
static bool refuse_by(struct control_call *call, const char *event, const char *what,
		      const char *worker)
{
	struct refusals *refusals = call->c->refusals;
	unsigned long unlogged = 0;

	if (refusals == NULL || log_limit_passes(&refusals->logged, clock_now_ms(), &unlogged))
		rte_log(RTE_LOG_WARNING, control_log,
			"control: event=%s peer=%s worker=%s asked=%s unlogged=%lu "
			"certificate=\"%.200s\"\n",
			event, call->c->peer, worker, what, unlogged, call->c->names);
	call->c->over = true;
	return false;
}

/* A peer that may not have the name is told so, and has to connect again. */
bool control_name_allowed(struct control_call *call, const char *name)
{
	const char *names = call->c->names;

	if (names == NULL || secure_names_allow(names, name))
		return true;
	control_fail(call, CONTROL_ERROR_REFUSED,
		     "name: the agent's certificate is for %.200s, not for '%s'; give --name, or a "
		     "certificate with that DNS name",
		     *names ? names : "no name", name);
	return refuse_by(call, "name_refused", name, name);
}

bool control_binding_allowed(struct control_call *call, const char *name,
			     const struct lb_address *at, const char *model)
{
	const char *names = call->c->names;
	char address[LB_ADDRESS_TEXT];

	if (names == NULL)
		return true;
	lb_address_format(at, address, sizeof(address));
	if (!secure_names_allow_address(names, address)) {
		control_fail(
			call, CONTROL_ERROR_REFUSED,
			"address: the agent's certificate has IP addresses, and %s is none of them "
			"(%.200s); give --address, or a certificate with that address or with none",
			address, names);
		return refuse_by(call, "address_refused", address, name);
	}
	if (!secure_names_allow_model(names, model)) {
		control_fail(call, CONTROL_ERROR_REFUSED,
			     "model: the agent's certificate is for other models than '%s' "
			     "(%.200s); give a "
			     "certificate with the URI doorbell:model:%s, or with none",
			     model, names, model);
		return refuse_by(call, "model_refused", model, name);
	}
	return true;
}

json_t *control_agent_register(struct control_call *call)
{
	struct control_connection *c = call->c;
	struct lb_link_info info[LB_LCORES_MAX];
	struct lb_registration registration = {0};
	struct model_description description;
	char error[400] = "";
	uint32_t path_mtu = 0;
	struct worker *worker;
	json_t *result;

	if (!read_registration(call, &registration, &description))
		return NULL;
	if (c->worker != NULL)
		return control_fail(
			call, CONTROL_ERROR_STATE,
			"this connection has worker '%s' already; open another connection",
			c->worker->spec.name);
	/* check everything before claiming the name: claiming may end the worker that has it */
	if (lb_registration_check(c->lb, &registration, error, sizeof(error)) != 0)
		return control_fail(call, CONTROL_ERROR_REFUSED, "%s", error);
	if (!control_name_allowed(call, registration.worker.name) ||
	    !control_binding_allowed(call, registration.worker.name, &registration.address,
				     registration.worker.model) ||
	    !control_claim_name(call, &registration.worker))
		return NULL;
	memset(info, 0, sizeof(info));
	worker = lb_worker_register(c->lb, &registration, info, &path_mtu, error, sizeof(error));
	if (worker == NULL)
		return control_fail(call, CONTROL_ERROR_REFUSED, "%s", error);
	worker->owner = c;
	c->worker = worker;
	c->renewed = false;
	c->lease_ms = lb_config_get(c->lb)->lease_ms;
	result = registered(worker, path_mtu, info, lb_lcores(c->lb));
	json_object_set_new(result, "lease_ms", json_integer(c->lease_ms));
	return result;
}

static json_t *with_worker(struct control_call *call,
			   void (*act)(struct lb *lb, struct worker *worker))
{
	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	if (call->c->worker == NULL)
		return control_fail(call, CONTROL_ERROR_STATE,
				    "this connection has no worker; call agent.register first");
	act(call->c->lb, call->c->worker);
	return json_object();
}

json_t *control_agent_ready(struct control_call *call)
{
	/*
	 * Registering has a time limit of its own, which ends here; from now on the lease counts.
	 */
	call->c->renewed = true;
	return with_worker(call, lb_worker_ready);
}

json_t *control_agent_drain(struct control_call *call)
{
	return with_worker(call, lb_worker_drain);
}

json_t *control_worker_event(struct control_connection *c)
{
	struct worker *worker = c->worker;
	json_t *params = json_pack("{s:s, s:o}", "state", control_worker_state_name(c->lb, worker),
				   "reason", control_text(worker->reason));

	if (worker->state == WORKER_GONE) {
		worker->owner = NULL;
		c->worker = NULL;
	}
	return json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", "worker.state", "params",
			 params);
}

void control_connection_closed(struct control_connection *c)
{
	struct worker *worker = c->worker;

	if (c->capture)
		lb_capture_stop(c->lb, c->capture);
	if (worker == NULL)
		return;
	/* first, as the removal is an event, which this connection must not hear */
	worker->owner = NULL;
	c->worker = NULL;
	if (c->ended)
		lb_worker_remove(c->lb, worker, "connection closed");
	else
		lb_worker_control_lost(c->lb, worker, c->hung_up);
}
