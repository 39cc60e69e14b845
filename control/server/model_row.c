/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_common.h>

#include "server/row.h"
#include "server/rpc.h"

/* The narrowest of the workers: what all of them take. */
struct model_limits {
	unsigned int workers, active, undescribed;
	uint32_t min_request, max_request, max_reply, max_batch;
	const struct model_description *description; /* of the first that has one */
};

static void model_row_count(struct model_limits *l, const struct worker *worker)
{
	const struct worker_spec *spec = &worker->spec;

	l->active += worker->state == WORKER_ACTIVE;
	l->undescribed += spec->description == NULL;
	if (l->description == NULL)
		l->description = spec->description;
	if (l->workers++ == 0) {
		l->min_request = spec->min_request;
		l->max_request = spec->max_request;
		l->max_reply = spec->max_reply;
		l->max_batch = spec->max_batch;
		return;
	}
	l->min_request = RTE_MAX(l->min_request, spec->min_request);
	l->max_request = RTE_MIN(l->max_request, spec->max_request);
	l->max_reply = RTE_MAX(l->max_reply, spec->max_reply);
	l->max_batch = RTE_MIN(l->max_batch, spec->max_batch);
}

static void model_row_write_services(struct json_writer *w, const struct model_member *member,
				     size_t n)
{
	writer_open_array(w, "services");
	for (size_t i = 0; i < n; i++)
		if (member[i].service != NULL)
			writer_string(w, NULL, member[i].service->name);
	writer_close_array(w);
}

/* True when a member before the <i>-th has its version. */
static bool model_row_version_seen(const struct model_member *member, size_t i)
{
	const char *version = member[i].worker->spec.description->version;

	for (size_t k = 0; k < i; k++)
		if (member[k].worker != NULL && member[k].worker->spec.description != NULL &&
		    strcmp(member[k].worker->spec.description->version, version) == 0)
			return true;
	return false;
}

static void model_row_write_versions(struct json_writer *w, const struct model_member *member,
				     size_t n)
{
	writer_open_array(w, "versions");
	for (size_t i = 0; i < n; i++)
		if (member[i].worker != NULL && member[i].worker->spec.description != NULL &&
		    !model_row_version_seen(member, i))
			writer_string(w, NULL, member[i].worker->spec.description->version);
	writer_close_array(w);
}

static void model_row_write_number(struct json_writer *w, const char *key, bool known, uint64_t n)
{
	if (known)
		writer_integer(w, key, n);
	else
		writer_null(w, key);
}

static void model_row_write_limits(struct json_writer *w, const struct model_limits *l)
{
	const struct model_description *d = l->description;
	struct description_bytes none = {0, false};
	struct description_bytes request = d != NULL ? workers_description_request(d) : none;
	struct description_bytes reply = d != NULL ? workers_description_reply(d) : none;

	model_row_write_number(w, "request_bytes", request.fixed, request.least);
	model_row_write_number(w, "reply_bytes", reply.fixed, reply.least);
	model_row_write_number(w, "min_request", l->workers > 0, l->min_request);
	model_row_write_number(w, "max_request", l->workers > 0, l->max_request);
	model_row_write_number(w, "max_reply", l->workers > 0, l->max_reply);
	model_row_write_number(w, "max_batch", l->workers > 0, l->max_batch);
}

static void model_row_write_members(struct json_writer *w, struct lb *lb,
				    const struct model_member *member, size_t n)
{
	writer_open_array(w, "members");
	for (size_t i = 0; i < n; i++) {
		const struct worker *worker = member[i].worker;

		if (worker == NULL)
			continue;
		writer_open_object(w, NULL);
		writer_string(w, "name", worker->spec.name);
		writer_string(w, "state", control_worker_state_name(lb, worker));
		if (worker->spec.description != NULL)
			writer_string(w, "version", worker->spec.description->version);
		else
			writer_null(w, "version");
		writer_integer(w, "max_batch", worker->spec.max_batch);
		writer_close_object(w);
	}
	writer_close_array(w);
}

void model_row_write(struct json_writer *w, const char *key, struct lb *lb,
		     const struct model_member *member, size_t n, enum row_detail detail)
{
	struct model_limits l = {0};

	for (size_t i = 0; i < n; i++)
		if (member[i].worker != NULL)
			model_row_count(&l, member[i].worker);
	writer_open_object(w, key);
	writer_string(w, "name", member[0].model);
	writer_integer(w, "workers", l.workers);
	writer_integer(w, "active", l.active);
	writer_integer(w, "undescribed", l.undescribed);
	model_row_write_services(w, member, n);
	model_row_write_versions(w, member, n);
	if (l.description != NULL && l.description->platform[0] != '\0')
		writer_string(w, "platform", l.description->platform);
	else
		writer_null(w, "platform");
	if (l.description != NULL)
		writer_boolean(w, "batch", l.description->batch);
	else
		writer_null(w, "batch");
	tensors_write(w, l.description);
	if (detail == ROW_PAGE) {
		model_row_write_limits(w, &l);
		model_row_write_members(w, lb, member, n);
	}
	writer_close_object(w);
}
