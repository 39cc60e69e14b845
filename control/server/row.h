/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers, models and services as JSON objects: each has one writer, and its caller chooses the
 * detail. Private to this folder and its tests.
 *
 * Facade of worker_row.c, model_row.c, service_row.c and service_state.c, and of tensors.c's
 * writer.
 */
#ifndef CONTROL_ROW_H
#define CONTROL_ROW_H

#include "protocol/json_writer.h"
#include "lb.h"

struct refusals;

enum row_detail {
	ROW_LIST, /* what a list shows */
	ROW_PAGE, /* in addition, members that only one object's page has room for */
};

/* Write one worker as an object; <key> is NULL for an element of an array. */
void worker_row_write(struct json_writer *w, const char *key, struct lb *lb,
		      const struct worker *worker, enum row_detail detail);
/*
 * Write the members that begin every row of a worker: name, model, state, reason, weight, counters
 * and the heartbeat's age.
 */
void worker_row_write_summary(struct json_writer *w, struct lb *lb, const struct worker *worker,
			      const struct lb_link_stats *stats);
void worker_row_write_labels(struct json_writer *w, const struct worker *worker);
/* Write the names of the services that the worker serves. */
void worker_row_write_services(struct json_writer *w, const struct lb *lb,
			       const struct worker *worker);

/* A service that asks a model, or a worker that has it. */
struct model_member {
	const char *model;
	unsigned int number; /* of the service or the worker */
	/* one of both is NULL */
	const struct lb_service_config *service;
	const struct worker *worker;
};

#define MODEL_MEMBERS_MAX (LB_SERVICES_MAX + WORKERS_MAX)

/* Write one model as an object: what its <n> members say, put together. */
void model_row_write(struct json_writer *w, const char *key, struct lb *lb,
		     const struct model_member *member, size_t n, enum row_detail detail);
/* Write inputs and outputs as members; both are null without a description. */
void tensors_write(struct json_writer *w, const struct model_description *d);

void service_row_write(struct json_writer *w, const char *key, struct lb *lb, unsigned int number,
		       const struct refusals *refusals);
/* Returns "serving"; or "leaving" or "down", with the cause in <reason>. <refusals> may be NULL. */
const char *service_state(struct lb *lb, unsigned int number, const struct refusals *refusals,
			  char *reason, size_t size);
/*
 * Write the members that begin every row of a service: name, address, model, policy, workers and
 * counters.
 */
void service_row_write_summary(struct json_writer *w, struct lb *lb, unsigned int number,
			       const struct lb_service_stats *stats);

#endif
