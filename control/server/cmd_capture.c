/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "observe/capture.h"
#include "server/rpc.h"

#define COUNT_MAX   1000000000000ull
#define SECONDS_MAX 604800 /* a week */

struct capture_query {
	struct capture_params lb;
	char direction[8];
};

#define LB_PARAM(name, member)                                                                     \
	name, offsetof(struct capture_query, lb.member),                                           \
		sizeof(((struct capture_query *)0)->lb.member)

static const struct control_param start_params[] = {
	{LB_PARAM("port", port), CONTROL_TEXT, .required = true},
	{LB_PARAM("filter", filter), CONTROL_TEXT},
	{LB_PARAM("program", program), CONTROL_TEXT},
	{CONTROL_PARAM(capture_query, direction), CONTROL_TEXT},
	{LB_PARAM("snaplen", snaplen), CONTROL_INTEGER, .min = CAPTURE_SNAPLEN_MIN,
	 .max = CAPTURE_SNAPLEN_MAX},
	{LB_PARAM("count", count), CONTROL_INTEGER, .min = 1, .max = COUNT_MAX},
	{LB_PARAM("seconds", seconds), CONTROL_INTEGER, .min = 1, .max = SECONDS_MAX},
	{LB_PARAM("file", file), CONTROL_TEXT},
};

struct capture_name {
	uint32_t capture;
};

static const struct control_param name_params[] = {
	{CONTROL_PARAM(capture_name, capture), CONTROL_INTEGER, .required = true, .min = 1,
	 .max = UINT32_MAX},
};

static bool read_direction(struct control_call *call, struct capture_query *q)
{
	static const struct {
		const char *name;
		unsigned int directions;
	} known[] = {
		{"", CAPTURE_IN | CAPTURE_OUT},
		{"both", CAPTURE_IN | CAPTURE_OUT},
		{"in", CAPTURE_IN},
		{"out", CAPTURE_OUT},
	};

	for (size_t i = 0; i < CONTROL_COUNT_OF(known); i++)
		if (strcmp(q->direction, known[i].name) == 0)
			q->lb.directions = known[i].directions;
	if (q->lb.directions == 0)
		control_fail(call, CONTROL_ERROR_PARAMS,
			     "params.direction: no '%s'; give in, out or both", q->direction);
	return q->lb.directions != 0;
}

static bool read_query(struct control_call *call, struct capture_query *q)
{
	q->lb.snaplen = CAPTURE_SNAPLEN_MAX;
	strcpy(q->lb.file, "a socket");
	if (!control_params_read(call, "params", call->params, start_params,
				 CONTROL_COUNT_OF(start_params), q))
		return false;
	if (q->lb.filter[0] != '\0' && q->lb.program[0] == '\0') {
		control_fail(call, CONTROL_ERROR_PARAMS,
			     "params.program: missing; give what libpcap makes of the filter");
		return false;
	}
	return read_direction(call, q);
}

static int capture_error_code(int error)
{
	switch (error) {
	case -ENOENT:
		return CONTROL_ERROR_NOT_FOUND;
	case -EBUSY:
		return CONTROL_ERROR_STATE;
	case -ENOMEM:
		return CONTROL_ERROR_INTERNAL;
	default:
		return CONTROL_ERROR_PARAMS;
	}
}

json_t *control_capture_start(struct control_call *call)
{
	struct capture_query *q = calloc(1, sizeof(*q));
	json_t *result = NULL;
	char error[512];
	uint32_t id;
	int ret;

	if (q != NULL && read_query(call, q)) {
		ret = lb_capture_start(call->c->lb, &q->lb, &id, error, sizeof(error));
		if (ret < 0) {
			control_fail(call, capture_error_code(ret), "%s", error);
		} else {
			call->c->capture = id;
			result = json_pack("{s:I}", "capture", (json_int_t)id);
		}
	}
	free(q);
	return result;
}

static bool read_name(struct control_call *call, uint32_t *id, struct capture_status *status)
{
	struct capture_name name;

	if (!control_params_read(call, "params", call->params, name_params,
				 CONTROL_COUNT_OF(name_params), &name))
		return false;
	*id = name.capture;
	if (lb_capture_read(call->c->lb, name.capture, status) == 0)
		return true;
	control_fail(call, CONTROL_ERROR_NOT_FOUND, "no capture %u: another was started since",
		     name.capture);
	return false;
}

/* The socket's owner sends the file instead of a reply, or closes the connection. */
json_t *control_capture_data(struct control_call *call)
{
	struct capture_status status;
	uint32_t id;

	call->c->raw = true;
	if (!read_name(call, &id, &status) || status.state != CAPTURE_WAITING)
		return NULL;
	call->c->capture = call->c->carried = id;
	return json_object();
}

json_t *control_capture_read(struct control_call *call)
{
	struct capture_status s;
	uint32_t id;

	if (!read_name(call, &id, &s))
		return NULL;
	return json_pack("{s:s, s:b, s:I, s:I, s:I, s:I}", "state", lb_capture_state_name(s.state),
			 "done", s.done, "captured", (json_int_t)s.captured, "filtered",
			 (json_int_t)s.filtered, "dropped", (json_int_t)s.dropped, "bytes",
			 (json_int_t)s.bytes);
}

json_t *control_capture_stop(struct control_call *call)
{
	struct capture_status status;
	uint32_t id;

	if (!read_name(call, &id, &status))
		return NULL;
	lb_capture_stop(call->c->lb, id);
	return json_object();
}
