/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/flows.h"
#include "tcp/header.h"

/* Events per call, some 100 bytes each, so that a reply is no longer than other lines. */
#define EVENTS_MAX 256

struct trace_query {
	char flow[160];
	char zone[ZONE_NAME_MAX]; /* empty: all */
	char protocol[8];         /* the same */
};

static const struct control_param start_params[] = {
	{CONTROL_PARAM(trace_query, flow), CONTROL_TEXT, .required = true},
	{CONTROL_PARAM(trace_query, zone), CONTROL_TEXT},
	{CONTROL_PARAM(trace_query, protocol), CONTROL_TEXT},
};

struct trace_name {
	uint32_t trace;
};

static const struct control_param name_params[] = {
	{CONTROL_PARAM(trace_name, trace), CONTROL_INTEGER, .required = true, .max = UINT32_MAX},
};

/* False after control_fail(). */
static bool trace_read_protocol(struct control_call *call, const char *name, uint8_t *protocol)
{
	*protocol = strcmp(name, "udp") == 0   ? IPPROTO_UDP
		    : strcmp(name, "tcp") == 0 ? IPPROTO_TCP
					       : 0;
	if (*protocol == 0 && name[0] != '\0')
		control_fail(call, CONTROL_ERROR_PARAMS,
			     "params.protocol: cannot use '%s'; give udp or tcp", name);
	return *protocol != 0 || name[0] == '\0';
}

json_t *control_trace_start(struct control_call *call)
{
	struct trace_query q = {.zone = ""};
	struct trace_flow flow;
	char error[256];
	uint32_t id;

	if (!control_params_read(call, "params", call->params, start_params,
				 CONTROL_COUNT_OF(start_params), &q))
		return NULL;
	if (!flow_ends_read(call, q.flow, &flow) ||
	    !trace_read_protocol(call, q.protocol, &flow.protocol))
		return NULL;
	flow.in_zone = q.zone[0] != '\0';
	if (flow.in_zone && !zone_find(lb_config_get(call->c->lb), q.zone, &flow.zone))
		return control_fail(call, CONTROL_ERROR_NOT_FOUND,
				    "no zone '%s'; give one of the configuration's zones, or a "
				    "port, with a dot and a VLAN id behind it for a VLAN",
				    q.zone);
	if (lb_trace_start(call->c->lb, &flow, &id, error, sizeof(error)) < 0)
		return control_fail(call, CONTROL_ERROR_STATE, "%s", error);
	call->c->trace_service = 0;
	return json_pack("{s:I}", "trace", (json_int_t)id);
}

static const char *worker_name(struct lb *lb, uint32_t number)
{
	const struct worker *worker = workers_get(lb_pool(lb), number);

	return worker != NULL ? worker->spec.name : "one that has gone";
}

static const char *trace_service_name(const struct lb *lb, uint32_t number)
{
	return number < LB_SERVICES_MAX ? lb_config_get(lb)->service[number].name : "-";
}

static const char *policy_of(const struct lb *lb, uint16_t service)
{
	return pick_policy_name(lb_config_get(lb)->service[service].policy);
}

static void describe_segment(const struct trace_event *e, char *buf, size_t size)
{
	static const char *const flags[] = {"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"};
	size_t at = (size_t)snprintf(buf, size, "%u bytes at %u", e->a, e->c);

	for (unsigned int i = 0; i < CONTROL_COUNT_OF(flags) && at < size; i++)
		if (e->b >> i & 1)
			at += (size_t)snprintf(buf + at, size - at, " %s", flags[i]);
	if (e->b & TCP_BIT_ACK && at < size)
		snprintf(buf + at, size - at, ", acknowledges up to %u", e->d);
}

/* A step of a TCP connection. */
static void describe_connection(struct lb *lb, const struct trace_event *e, uint16_t *service,
				char *buf, size_t size)
{
	switch (e->step) {
	case TRACE_SEGMENT:
		return describe_segment(e, buf, size);
	case TRACE_IGNORED:
		snprintf(buf, size, "the segment: %s", e->a < LB_DROPS ? lb_drop_name(e->a) : "?");
		break;
	case TRACE_OPENED:
		*service = (uint16_t)(e->c % LB_SERVICES_MAX);
		snprintf(buf, size, "a connection of service %s, %u bytes in a segment",
			 trace_service_name(lb, e->c), e->a);
		break;
	case TRACE_READ:
		snprintf(buf, size, "%u bytes, complete %u us after its header", e->a, e->d);
		break;
	case TRACE_RECEIVED:
		snprintf(buf, size, "the client has %u bytes more; %u under way", e->a, e->b);
		break;
	case TRACE_RESET:
		snprintf(buf, size, "by the %s", e->a ? "client" : "load balancer");
		break;
	case TRACE_CLOSED:
		snprintf(buf, size, "%s", e->a ? "in TIME-WAIT" : "nothing is left of the connection");
		break;
	default:
		buf[0] = '\0';
	}
}

/* Describe an event in words. <service> is the flow's service as far as it is known. */
static void trace_describe(struct lb *lb, const struct trace_event *e, uint16_t *service, char *buf,
			   size_t size)
{
	char zone[ZONE_NAME_MAX];

	switch (e->step) {
	case TRACE_ARRIVED:
		snprintf(buf, size, "%u bytes on port %s, zone %s", e->a,
			 lb_config_get(lb)->port[e->b % LB_PORTS_MAX].name,
			 zone_name(lb_config_get(lb), (uint16_t)e->c, zone));
		break;
	case TRACE_FLOW:
		*service = (uint16_t)(e->c % LB_SERVICES_MAX);
		snprintf(buf, size, "%s flow of service %s, %s", e->a ? "a new" : "a known",
			 trace_service_name(lb, e->c), conntrack_state_name(e->b));
		break;
	case TRACE_REQUEST:
		snprintf(buf, size,
			 e->c ? "%u bytes, level %u, to be answered in %u us"
			      : "%u bytes, level %u, no deadline",
			 e->a, e->b, e->c);
		break;
	case TRACE_CHOSEN:
		snprintf(buf, size, "worker %s by %s of %u; it has %u credits and %u outstanding",
			 worker_name(lb, e->a), policy_of(lb, *service), e->d, e->b, e->c);
		break;
	case TRACE_WAITING:
		snprintf(buf, size, "none of %u workers has a credit for it; %u in the queue", e->b,
			 e->a);
		break;
	case TRACE_SENT:
		snprintf(buf, size, "to worker %s, slot %u, up to PSN %u, %u us after it came",
			 worker_name(lb, e->a), e->b, (e->c - 1) & 0xffffff, e->d);
		break;
	case TRACE_ACKED:
		snprintf(buf, size, "by worker %s, up to PSN %u", worker_name(lb, e->a),
			 (e->c - 1) & 0xffffff);
		break;
	case TRACE_REPLY:
		snprintf(buf, size, "from worker %s, slot %u, status %u, %u bytes",
			 worker_name(lb, e->a), e->b, e->c, e->d);
		break;
	case TRACE_TIMES:
		snprintf(buf, size, "it waited there for %u us and ran for %u us", e->a, e->b);
		break;
	case TRACE_ANSWERED:
		snprintf(buf, size, "%s%s", e->c ? "in the connection's queue" : "to the client",
			 e->b ? "; more follows" : "");
		break;
	case TRACE_NOTICE:
		snprintf(buf, size, "code %u to the client", e->a);
		break;
	case TRACE_DROPPED:
		snprintf(buf, size, "%s", e->a < LB_DROPS ? lb_drop_name(e->a) : "?");
		break;
	default:
		describe_connection(lb, e, service, buf, size);
	}
}

static json_t *event_row(struct lb *lb, const struct trace_event *e, uint16_t *service)
{
	char what[160], tag[17];

	trace_describe(lb, e, service, what, sizeof(what));
	snprintf(tag, sizeof(tag), "%016" PRIx64, e->tag);
	return json_pack("{s:I, s:i, s:o, s:s, s:o}", "at_ns", (json_int_t)e->at_ns, "lcore",
			 e->lcore, "request", e->tag ? json_string(tag) : json_null(), "step",
			 lb_trace_step_name(e->step), "what", control_text(what));
}

json_t *control_trace_read(struct control_call *call)
{
	struct trace_event event[EVENTS_MAX];
	struct trace_name name;
	uint64_t lost = 0;
	json_t *rows;
	int n;

	if (!control_params_read(call, "params", call->params, name_params,
				 CONTROL_COUNT_OF(name_params), &name))
		return NULL;
	n = lb_trace_read(call->c->lb, name.trace, event, EVENTS_MAX, &lost);
	if (n < 0)
		return control_fail(call, CONTROL_ERROR_NOT_FOUND,
				    "trace %u has ended: another was started, or it was not "
				    "read for %u s",
				    name.trace, LB_TRACE_IDLE_MS / 1000);
	rows = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(rows, event_row(call->c->lb, &event[i], &call->c->trace_service));
	return json_pack("{s:o, s:I}", "events", rows, "lost", (json_int_t)lost);
}

json_t *control_trace_stop(struct control_call *call)
{
	struct trace_name name;

	if (!control_params_read(call, "params", call->params, name_params,
				 CONTROL_COUNT_OF(name_params), &name))
		return NULL;
	lb_trace_stop(call->c->lb, name.trace);
	return json_object();
}
