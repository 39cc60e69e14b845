/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facade of the flow_*.c files, for the flows.* methods: filters, the walk through the lcores'
 * tables in bounded steps, and rows as text. Private to cmd_flow*.c and flow_*.c.
 */
#ifndef CONTROL_FLOWS_H
#define CONTROL_FLOWS_H

#include "config/zone.h"
#include "observe/flow_trace.h"
#include "server/rpc.h"

/* --- flow_filter.c: which flows ------------------------------------------------------------- */

/*
 * The filters and the cursor as the caller gave them. The first member of each flows.* method's own
 * struct.
 */
struct flow_query {
	char service[LB_NAME_MAX], worker[WORKER_NAME_MAX];
	char client[LB_ADDRESS_TEXT + 4];
	char state[32];
	char zone[ZONE_NAME_MAX];
	uint64_t min_bytes;
	uint32_t min_idle_s;
	uint64_t cursor;
};

/* Rows of a parameter table, for a struct with a member <query> of type struct flow_query. */
#define FLOW_QUERY_PARAM(object, member)                                                           \
#member, offsetof(struct object, query.member), sizeof(((struct object *)0)->query.member)
#define FLOW_QUERY_PARAMS(object)                                                                  \
	{FLOW_QUERY_PARAM(object, service), CONTROL_TEXT},                                         \
		{FLOW_QUERY_PARAM(object, worker), CONTROL_TEXT},                                  \
		{FLOW_QUERY_PARAM(object, client), CONTROL_TEXT},                                  \
		{FLOW_QUERY_PARAM(object, state), CONTROL_TEXT},                                   \
		{FLOW_QUERY_PARAM(object, zone), CONTROL_TEXT},                                    \
		{FLOW_QUERY_PARAM(object, min_bytes), CONTROL_INTEGER, .max = INT64_MAX},          \
		{FLOW_QUERY_PARAM(object, min_idle_s), CONTROL_INTEGER, .max = INT32_MAX / 1000},  \
	{                                                                                          \
		FLOW_QUERY_PARAM(object, cursor), CONTROL_INTEGER, .max = INT64_MAX                \
	}

/* The filters with their names and addresses resolved to numbers. */
struct flow_filter {
	bool any; /* no filter at all */
	bool by_service, by_worker, by_zone;
	uint16_t service, worker, worker_generation, zone;
	enum flow_state state;    /* FLOW_FREE: any */
	struct lb_address client; /* family 0: any */
	unsigned int prefix;      /* bits of the mapped form that must agree */
	uint64_t min_bytes;
	uint32_t min_idle_ms, now_ms;
};

/* Resolve <query> into <filter>. False after control_fail(). */
bool flow_filter_read(struct control_call *call, const struct flow_query *query,
		      struct flow_filter *filter);
bool flow_filter_matches(const struct flow_filter *filter, const struct flow_info *flow);

/* Read "CLIENT:PORT[,VIP:PORT]", brackets around IPv6 addresses. False after control_fail(). */
bool flow_ends_read(struct control_call *call, char *text, struct trace_flow *flow);

/* --- flow_walk.c: every flow, a step at a time ---------------------------------------------- */

/* The position of a walk, and the bound of this step. */
struct flow_walk {
	struct lb *lb;
	unsigned int lcore;
	uint32_t at;    /* conntrack_dump()'s cursor */
	uint64_t limit; /* flows that may match in this step */
	uint64_t matched;
	/* Called for each flow that matches. */
	void (*visit)(void *context, unsigned int lcore, const struct flow_info *flow);
	void *context;
};

/* Walk one step: until the limit, the end, or the time that one call may take. */
void flow_walk_step(struct flow_walk *walk, const struct flow_filter *filter);

/* Start at the position that the client's <cursor> names. */
void flow_walk_from(struct flow_walk *walk, uint64_t cursor);
/* Add the members cursor and done to <result>. */
void flow_walk_say(const struct flow_walk *walk, json_t *result);

/* --- flow_rows.c: flows as text ------------------------------------------------------------- */

/* An array of rows being written. The caller sets the first three members and zeroes the rest. */
struct flow_rows {
	struct lb *lb;
	struct text *text;
	bool compact; /* rows are arrays; flow_rows_columns() names their columns */
	uint32_t now_ms;
	uint64_t n;
	/* Names as JSON, made when first used. */
	char *service[LB_SERVICES_MAX + 1], *worker[WORKERS_MAX + 1];
	/* Name of the last row's zone, kept because the next row is mostly in the same zone. */
	char *zone_name;
	uint16_t zone;
};

void flow_rows_begin(struct flow_rows *rows);
void flow_rows_add(struct flow_rows *rows, unsigned int lcore, const struct flow_info *flow);
/* As flow_rows_add(), with a last column "value"; not for compact rows. */
void flow_rows_add_ranked(struct flow_rows *rows, unsigned int lcore, const struct flow_info *flow,
			  uint64_t value);
/* As flow_rows_add(), with a last column "tcp"; not for compact rows. */
void flow_rows_add_tcp(struct flow_rows *rows, unsigned int lcore, const struct flow_info *flow);
/* Free what begin and add allocated, except the text. */
void flow_rows_end(struct flow_rows *rows);

/* Names of a compact row's columns; the caller owns the array. */
json_t *flow_rows_columns(void);

/* Index of the flow's service or worker in an array of names; the last index means none. */
unsigned int flow_service(const struct lb *lb, const struct flow_info *flow);
unsigned int flow_worker(struct lb *lb, const struct flow_info *flow);
/* The name at such an index; "-" at the last one. */
const char *flow_service_name(const struct lb *lb, unsigned int service);
const char *flow_worker_name(struct lb *lb, unsigned int worker);

#endif
