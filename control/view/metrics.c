/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Metrics in the OpenMetrics text format. One table describes all families. The format wants each
 * family complete before the next one begins; a walk may pause between any two items (lcores,
 * services, workers).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_version.h>

#include "edge/view.h"
#include "runtime/clock.h"
#include "server/rpc.h"
#include "view/view.h"

/*
 * A family has one sample per item of its scope. Each scope has its labels and each source its
 * values.
 */
enum scope { DAEMON, LCORE, STAGE, DROP, NOTICE, TCP_REFUSAL, PORT, SERVICE, POOL, WORKER };

enum source {
	FIELD,    /* a uint64_t of the scope's struct, at <offset> */
	FLOWS,    /* a uint64_t of struct conntrack_stats, at <offset>; scope LCORE */
	TCP,      /* a uint64_t of struct lb_tcp_stats, at <offset>; scope LCORE, if it has one */
	FUNCTION, /* the result of <value> */
	PARTS,  /* a histogram of the part of the latency at <offset>; scopes SERVICE and WORKER */
	STATES, /* one sample per state; scopes POOL (workers in it) and WORKER (0 or 1) */
	SIZES,  /* one sample per size of batch: the uint64_t of struct worker_size at <offset>;
		   WORKER */
	INFO,   /* 1, with labels that carry the information */
};

/* The values that an item's samples are made from, read once per item. */
struct item {
	const struct view *view;
	unsigned int number;
	const struct worker *worker;
	union {
		struct lb_lcore_stats lcore;
		struct lb_service_stats service;
		struct lb_link_stats link;
	} stats;
	struct conntrack_stats flows;
	struct lb_tcp_stats tcp;
};

struct family {
	const char *name; /* without the prefix doorbell_ */
	const char *type, *unit, *help;
	enum scope scope;
	enum source source;
	size_t offset;
	double (*value)(const struct item *item); /* NAN: no value, so no sample */
};

static double start_time(const struct item *item)
{
	uint64_t now_s = clock_wall_ns() / 1000000000;

	return (double)now_s - (double)(clock_now_ms() - item->view->start_ms) / 1000;
}

static double tls_not_after(const struct item *item)
{
	const time_t *end = item->view->tls_not_after;

	return end && *end ? (double)*end : NAN;
}

static double registrations_refused(const struct item *item)
{
	return item->view->refusals ? (double)item->view->refusals->total : 0;
}

static double busy(const struct item *item)
{
	const struct window_lcore *w = window_lcore(item->view->window, item->number);

	return w ? w->busy : 0;
}

static double stands(const struct item *item)
{
	return (double)item->stats.lcore.stands_ms / 1000;
}

static double flow_load(const struct item *item)
{
	const struct conntrack_stats *f = &item->flows;
	uint64_t places = f->places ? f->places : f->capacity;

	return places ? (double)f->live / (double)places : 0;
}

static double expiry_lag(const struct item *item)
{
	return (double)item->flows.lag_ms / 1000;
}

/* The item's counter in the array at <offset>, summed over all lcores. */
static double sum_of_lcores(const struct item *item, size_t offset)
{
	struct lb_lcore_stats stats;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < lb_lcores(item->view->lb); i++) {
		lb_lcore_stats_read(item->view->lb, i, &stats);
		sum += ((const uint64_t *)(const void *)((const char *)&stats +
							 offset))[item->number];
	}
	return (double)sum;
}

static double metrics_dropped(const struct item *item)
{
	return sum_of_lcores(item, offsetof(struct lb_lcore_stats, drop));
}

static double noticed(const struct item *item)
{
	return sum_of_lcores(item, offsetof(struct lb_lcore_stats, notice));
}

/* NAN: no lcore has TCP connections. */
static double tcp_refused(const struct item *item)
{
	struct lb_tcp_stats stats;
	uint64_t sum = 0;
	bool any = false;

	for (unsigned int i = 0; i < lb_lcores(item->view->lb); i++) {
		any |= lb_tcp_stats_read(item->view->lb, i, &stats);
		sum += stats.events.refused[item->number % TCP_REFUSALS];
	}
	return any ? (double)sum : NAN;
}

static double stage_seconds(const struct item *item)
{
	return (double)item->stats.lcore.stage_cycles[item->number % LB_STAGES] /
	       (double)rte_get_tsc_hz();
}

static double stage_items(const struct item *item)
{
	return (double)item->stats.lcore.stage_items[item->number % LB_STAGES];
}

static double port_is_up(const struct item *item)
{
	return lb_port_up(item->view->lb, item->number);
}

static double active_workers(const struct item *item)
{
	struct lb *lb = item->view->lb;

	return lb_service_workers(lb, item->number, NULL);
}

static double heartbeat_age(const struct item *item)
{
	int64_t age = control_heartbeat_age(item->view->lb, item->worker);

	return age < 0 ? NAN : (double)age / 1000;
}

static double control_lost(const struct item *item)
{
	return item->worker->uncontrolled;
}

/* A number of the worker's GPU. */
static double of_gpu(const struct item *item, int64_t value, double unit)
{
	return item->worker->report.has_gpu && value >= 0 ? (double)value * unit : NAN;
}

#define GPU_VALUE(name, unit)                                                                      \
	static double gpu_##name(const struct item *item)                                          \
	{                                                                                          \
		return of_gpu(item, item->worker->report.gpu.name, unit);                          \
	}
GPU_VALUE(utilization, 0.01)
GPU_VALUE(memory_used, 1)
GPU_VALUE(memory_total, 1)
GPU_VALUE(temperature, 1)
GPU_VALUE(power_mw, 0.001)
GPU_VALUE(ecc_corrected, 1)
GPU_VALUE(ecc_uncorrected, 1)
GPU_VALUE(xids, 1)
#undef GPU_VALUE

static double gpu_notice(const struct item *item)
{
	return of_gpu(item, item->worker->report.gpu.notice[0] != '\0', 1);
}

/* The scope, the source and the offset of a counter. */
#define OF_LCORE(member)   LCORE, FIELD, offsetof(struct lb_lcore_stats, member)
#define OF_FLOWS(member)   LCORE, FLOWS, offsetof(struct conntrack_stats, member)
#define OF_TCP(member)     LCORE, TCP, offsetof(struct lb_tcp_stats, member)
#define OF_SERVICE(member) SERVICE, FIELD, offsetof(struct lb_service_stats, member)
#define OF_WORKER(member)  WORKER, FIELD, offsetof(struct lb_link_stats, member)

static const struct family families[] = {
	{"build", "info", "", "Versions of the program and of DPDK.", DAEMON, INFO},
	{"start_time_seconds", "gauge", "seconds", "When it started, since the epoch.", DAEMON,
	 FUNCTION, 0, start_time},
	{"tls_not_after_seconds", "gauge", "seconds",
	 "When the certificate for agents ends, since 1970.", DAEMON, FUNCTION, 0, tls_not_after},
	{"registrations_refused", "counter", "",
	 "Tries of agents to register that were refused; doorbell workers refused says why.",
	 DAEMON, FUNCTION, 0, registrations_refused},

	{"lcore_received_packets", "counter", "packets", "Packets received on all ports.",
	 OF_LCORE(packets_in)},
	{"lcore_received_bytes", "counter", "bytes", "Bytes received on all ports.",
	 OF_LCORE(bytes_in)},
	{"lcore_sent_packets", "counter", "packets", "Packets sent on all ports.",
	 OF_LCORE(packets_out)},
	{"lcore_sent_bytes", "counter", "bytes", "Bytes sent on all ports.", OF_LCORE(bytes_out)},
	{"lcore_reassembled_datagrams", "counter", "datagrams", "Datagrams that came in fragments.",
	 OF_LCORE(reassembled)},
	{"lcore_handed_over_packets", "counter", "packets",
	 "Packets received for other lcores, and given to them.", OF_LCORE(handed_over)},
	{"lcore_requests", "counter", "", "Requests sent to workers.", OF_LCORE(requests)},
	{"lcore_replies", "counter", "", "Replies sent to clients.", OF_LCORE(replies)},
	{"lcore_notices", "counter", "", "Busy, timeout and error replies sent to clients.",
	 OF_LCORE(notices)},
	{"lcore_payload_copies", "counter", "", "Payloads that had to be copied.",
	 OF_LCORE(payload_copies)},
	{"lcore_access_log_lines", "counter", "", "Lines given to the access log.",
	 OF_LCORE(access_lines)},
	{"lcore_access_log_dropped", "counter", "", "Lines that the access log had no room for.",
	 OF_LCORE(access_dropped)},
	{"lcore_polls", "counter", "", "Iterations of the loop.", OF_LCORE(polls)},
	{"lcore_idle_polls", "counter", "", "Iterations that found nothing to do.",
	 OF_LCORE(idle_polls)},
	{"lcore_sleeps", "counter", "", "Times that it slept.", OF_LCORE(sleeps)},
	{"lcore_stands_seconds", "gauge", "seconds",
	 "For how long it has stood still; 0 while it goes on.", LCORE, FUNCTION, 0, stands},
	{"lcore_window_held", "gauge", "", "Packets that workers have not acknowledged.",
	 OF_LCORE(window_held)},
	{"lcore_window_limit", "gauge", "", "Unacknowledged packets at most.",
	 OF_LCORE(window_packets)},
	{"lcore_queued", "gauge", "", "Requests that wait for a credit.", OF_LCORE(queued)},
	{"lcore_queued_limit", "gauge", "", "Waiting requests at most, all services together.",
	 OF_LCORE(queue_packets)},
	{"lcore_busy_ratio", "gauge", "ratio", "Share of the last second that it worked.", LCORE,
	 FUNCTION, 0, busy},
	{"stage_seconds", "counter", "seconds", "Time spent in each stage of the walk.", STAGE,
	 FUNCTION, 0, stage_seconds},
	{"stage_items", "counter", "items",
	 "Packets, requests, replies, connections or flows that each stage handled.", STAGE,
	 FUNCTION, 0, stage_items},
	{"port_up", "gauge", "", "1 while the port has a link.", PORT, FUNCTION, 0, port_is_up},
	{"drops", "counter", "", "What went no further, by reason.", DROP, FUNCTION, 0,
	 metrics_dropped},
	{"notices", "counter", "", "Notices sent to clients, by code.", NOTICE, FUNCTION, 0,
	 noticed},

	{"flows", "gauge", "", "Flows tracked now.", OF_FLOWS(live)},
	{"flows_capacity", "gauge", "", "Flows that there is room for.", OF_FLOWS(capacity)},
	{"flow_table_load_ratio", "gauge", "ratio", "Share of the flow table that is taken.", LCORE,
	 FUNCTION, 0, flow_load},
	{"flow_expiry_lag_seconds", "gauge", "seconds",
	 "How late the last look for flows to end was.", LCORE, FUNCTION, 0, expiry_lag},
	{"flows_inserted", "counter", "", "Flows begun.", OF_FLOWS(inserted)},
	{"flows_expired", "counter", "", "Flows ended by timeout.", OF_FLOWS(expired)},
	{"flows_removed", "counter", "", "Flows ended otherwise.", OF_FLOWS(removed)},
	{"flows_reclaimed", "counter", "", "Flows ended early as a new one needed the place.",
	 OF_FLOWS(reclaimed)},
	{"flows_refused", "counter", "", "New flows refused: the table was full.",
	 OF_FLOWS(refused)},
	{"flows_refused_source", "counter", "", "New flows refused: their source opened too many.",
	 OF_FLOWS(refused_source)},

	{"tcp_connections", "gauge", "", "TCP connections now, without those in TIME-WAIT.",
	 OF_TCP(connections)},
	{"tcp_connections_limit", "gauge", "", "TCP connections at most.", OF_TCP(connections_max)},
	{"tcp_half_open_connections", "gauge", "", "TCP connections in their handshake.",
	 OF_TCP(half_open)},
	{"tcp_busy_connections", "gauge", "",
	 "TCP connections with open requests, or bytes that clients have not acknowledged.",
	 OF_TCP(busy)},
	{"tcp_time_wait_connections", "gauge", "", "TCP connections in TIME-WAIT.",
	 OF_TCP(time_wait)},
	{"tcp_held_packets", "gauge", "packets",
	 "Packets received by TCP that belong to no complete request yet.", OF_TCP(held_packets)},
	{"tcp_held_limit_packets", "gauge", "packets", "Held packets at most.",
	 OF_TCP(held_packets_max)},
#define TCP_FAMILY(name, text)                                                                     \
	{"tcp_" #name, "counter", "", "Since the start: " text ".", OF_TCP(events.name)},
	TCP_COUNTER_LIST(TCP_FAMILY)
#undef TCP_FAMILY
		{"tls_handshakes", "gauge", "", "Handshakes of TLS that are not over.",
		 OF_TCP(handshakes)},
#define TLS_FAMILY(name, text)                                                                     \
	{"tls_" #name, "counter", "", "Since the start: " text ".", OF_TCP(tls.name)},
	TLS_COUNTER_LIST(TLS_FAMILY)
#undef TLS_FAMILY
		{"tcp_refused_segments", "counter", "segments",
		 "Segments that their TCP connection did not accept, by reason.", TCP_REFUSAL,
		 FUNCTION, 0, tcp_refused},

	{"service_requests", "counter", "", "Requests sent to workers.", OF_SERVICE(requests)},
	{"service_replies", "counter", "", "Requests answered.", OF_SERVICE(replies)},
	{"service_notices", "counter", "", "Busy, timeout and error replies.", OF_SERVICE(notices)},
	{"service_drops", "counter", "", "Packets or requests that went no further.",
	 OF_SERVICE(drops)},
	{"service_replays", "counter", "", "Requests sent again, to another worker.",
	 OF_SERVICE(replays)},
	{"service_preferred_requests", "counter", "",
	 "Requests that went to the preferred worker of their flow (affinity sticky).",
	 OF_SERVICE(preferred)},
	{"service_spilled_requests", "counter", "",
	 "Requests that went elsewhere, as the preferred worker of their flow was saturated.",
	 OF_SERVICE(spilled)},
	{"service_moved_flows", "counter", "",
	 "Flows that got another preferred worker, as theirs no longer serves.", OF_SERVICE(moved)},
	{"service_received_bytes", "counter", "bytes", "Payload received from clients.",
	 OF_SERVICE(bytes_in)},
	{"service_sent_bytes", "counter", "bytes", "Payload sent to clients.",
	 OF_SERVICE(bytes_out)},
	{"service_queued", "gauge", "", "Requests that wait for a credit now.", OF_SERVICE(queued)},
	{"service_queue_limit", "gauge", "", "Requests that may wait, all lcores together.",
	 OF_SERVICE(queue_places)},
	{"service_active_workers", "gauge", "", "Active workers that serve it.", SERVICE, FUNCTION,
	 0, active_workers},
	{"service_request_seconds", "histogram", "seconds", "Arrival to reply: all parts together.",
	 SERVICE, PARTS, LATENCY_TOTAL},
	{"service_queue_seconds", "histogram", "seconds",
	 "In the load balancer until the request was sent to a worker.", SERVICE, PARTS,
	 LATENCY_QUEUE},
	{"service_wire_seconds", "histogram", "seconds",
	 "On the fabric both ways, and in the agent around the model.", SERVICE, PARTS,
	 LATENCY_WIRE},
	{"service_gpu_wait_seconds", "histogram", "seconds",
	 "In the worker's memory until the model began.", SERVICE, PARTS, LATENCY_WAIT},
	{"service_gpu_run_seconds", "histogram", "seconds", "In the model.", SERVICE, PARTS,
	 LATENCY_RUN},
	{"service_reply_seconds", "histogram", "seconds",
	 "In the load balancer from the last chunk received to the reply sent.", SERVICE, PARTS,
	 LATENCY_REPLY},

	{"workers", "gauge", "", "Workers in each state.", POOL, STATES},
	{"worker", "info", "", "What a worker registered with.", WORKER, INFO},
	{"worker_state", "stateset", "", "The state that a worker is in.", WORKER, STATES},
	{"worker_outstanding", "gauge", "", "Requests sent and not answered.",
	 OF_WORKER(outstanding)},
	{"worker_backlog", "gauge", "", "Requests that it has, as it last reported.",
	 OF_WORKER(backlog)},
	{"worker_credits", "gauge", "", "Free slots.", OF_WORKER(credits)},
	{"worker_unacked_packets", "gauge", "packets", "Packets sent and not acknowledged.",
	 OF_WORKER(unacked)},
	{"worker_heartbeat_age_seconds", "gauge", "seconds",
	 "Since the last heartbeat of its slowest link.", WORKER, FUNCTION, 0, heartbeat_age},
	{"worker_control_lost", "gauge", "", "1 while its agent is not heard.", WORKER, FUNCTION, 0,
	 control_lost},
	{"worker_requests", "counter", "", "Requests sent to it.", OF_WORKER(requests)},
	{"worker_replies", "counter", "", "Replies of it.", OF_WORKER(replies)},
	{"worker_errors", "counter", "", "Replies with a status other than OK.", OF_WORKER(errors)},
	{"worker_faults", "counter", "", "Errors that are its own: the model failed or refused.",
	 OF_WORKER(faults)},
	{"worker_lost", "counter", "", "Requests in flight when a link went down.",
	 OF_WORKER(lost)},
	{"worker_sent_packets", "counter", "packets", "Packets sent to it on the fabric.",
	 OF_WORKER(packets_sent)},
	{"worker_resent_packets", "counter", "packets", "Packets sent again.",
	 OF_WORKER(packets_resent)},
	{"worker_received_packets", "counter", "packets", "Packets received on the fabric.",
	 OF_WORKER(packets_received)},
	{"worker_timeouts", "counter", "", "Acknowledgements that did not come in time.",
	 OF_WORKER(timeouts)},
	{"worker_naks_received", "counter", "", "Negative acknowledgements received.",
	 OF_WORKER(naks_received)},
	{"worker_naks_sent", "counter", "", "Negative acknowledgements sent.",
	 OF_WORKER(naks_sent)},
	{"worker_rnr_naks_received", "counter", "", "Times that it was not ready to receive.",
	 OF_WORKER(rnr_naks_received)},
	{"worker_duplicate_packets", "counter", "packets", "Packets received again.",
	 OF_WORKER(duplicates)},
	{"worker_out_of_order_packets", "counter", "packets", "Packets received behind a gap.",
	 OF_WORKER(out_of_order)},
	{"worker_ecn_marked_packets", "counter", "packets",
	 "Packets received with a switch's mark of congestion.", OF_WORKER(ecn_marked)},
	{"worker_cnps_sent", "counter", "", "Congestion notifications sent.", OF_WORKER(cnps_sent)},
	{"worker_cnps_received", "counter", "", "Congestion notifications received.",
	 OF_WORKER(cnps_received)},
	{"worker_heartbeats", "counter", "", "Heartbeats received.", OF_WORKER(heartbeats)},
	{"worker_request_seconds", "histogram", "seconds",
	 "Request sent to last chunk of its reply received.", WORKER, PARTS, LATENCY_TOTAL},
	{"worker_wire_seconds", "histogram", "seconds",
	 "On the fabric both ways, and in the agent around the model.", WORKER, PARTS,
	 LATENCY_WIRE},
	{"worker_gpu_wait_seconds", "histogram", "seconds",
	 "In the worker's memory until the model began.", WORKER, PARTS, LATENCY_WAIT},
	{"worker_gpu_run_seconds", "histogram", "seconds", "In the model.", WORKER, PARTS,
	 LATENCY_RUN},
	{"worker_batches", "counter", "", "Batches that its model ran, by the rows they have.",
	 WORKER, SIZES, offsetof(struct worker_size, batches)},
	{"worker_batches_run_seconds", "counter", "seconds",
	 "Run time of the model of these batches.", WORKER, SIZES,
	 offsetof(struct worker_size, run_us)},
	{"worker_gpu_busy_ratio", "gauge", "ratio", "Share of the time in which its GPU worked.",
	 WORKER, FUNCTION, 0, gpu_utilization},
	{"worker_gpu_memory_used_bytes", "gauge", "bytes", "Memory of its GPU that is in use.",
	 WORKER, FUNCTION, 0, gpu_memory_used},
	{"worker_gpu_memory_bytes", "gauge", "bytes", "Memory of its GPU.", WORKER, FUNCTION, 0,
	 gpu_memory_total},
	{"worker_gpu_temperature_celsius", "gauge", "celsius", "Temperature of its GPU.", WORKER,
	 FUNCTION, 0, gpu_temperature},
	{"worker_gpu_power_watts", "gauge", "watts", "Power that its GPU draws.", WORKER, FUNCTION,
	 0, gpu_power_mw},
	{"worker_gpu_ecc_corrected", "counter", "",
	 "Memory errors of its GPU that were corrected, since its driver was loaded.", WORKER,
	 FUNCTION, 0, gpu_ecc_corrected},
	{"worker_gpu_ecc_uncorrected", "counter", "",
	 "Memory errors of its GPU that were not corrected, since its driver was loaded.", WORKER,
	 FUNCTION, 0, gpu_ecc_uncorrected},
	{"worker_gpu_xids", "counter", "", "Errors of its GPU that the driver reported (Xid).",
	 WORKER, FUNCTION, 0, gpu_xids},
	{"worker_gpu_notice", "gauge", "", "1 while doorbell workers show has a GPU notice.",
	 WORKER, FUNCTION, 0, gpu_notice},
};

/* Names of notices; a code without a name is written as its number, once it has occurred. */
static const char *const notices[LB_NOTICE_CODES] = {
	[LB_NOTICE_BUSY] = "busy",
	[LB_NOTICE_TIMEOUT] = "timeout",
	[LB_NOTICE_WORKER_LOST] = "worker_lost",
	[LB_NOTICE_MODEL_ERROR] = "model_error",
	[LB_NOTICE_EXPIRED] = "expired",
	[LB_NOTICE_CANCELLED] = "cancelled",
	[LB_NOTICE_DEADLINE] = "deadline",
	[LB_NOTICE_MALFORMED] = "malformed",
	[LB_NOTICE_STOPPING] = "stopping",
	[LB_NOTICE_TOO_LARGE] = "too_large",
};

/* --- text ------------------------------------------------------------------------------------- */

static void metrics_put_number(struct text *t, double value)
{
	char number[32];

	if (value >= 0 && value < 9e15 && value == (double)(uint64_t)value)
		text_integer(t, (uint64_t)value);
	else
		text_add(t, number, (size_t)snprintf(number, sizeof(number), "%.9g", value));
}

/* Write a label's value in quotes. Names were refused on the way in unless they are ASCII. */
static void metrics_put_quoted(struct text *t, const char *value)
{
	text_string(t, "\"");
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			text_add(t, "\\", 1);
		if (*value == '\n')
			text_string(t, "\\n");
		else
			text_add(t, (unsigned char)*value < 0x80 ? value : "?", 1);
	}
	text_string(t, "\"");
}

static void put_label(struct text *t, const char *name, const char *value)
{
	text_string(t, t->data[t->n - 1] == '{' ? "" : ",");
	text_string(t, name);
	text_string(t, "=");
	metrics_put_quoted(t, value);
}

static void put_number_label(struct text *t, const char *name, unsigned int value)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", value);
	put_label(t, name, number);
}

static void put_labels(struct text *t, const struct family *f, const struct item *item)
{
	const struct lb_config *config = lb_config_get(item->view->lb);

	switch (f->scope) {
	case LCORE:
		put_number_label(t, "lcore", item->number);
		break;
	case STAGE:
		put_number_label(t, "lcore", item->number / LB_STAGES);
		put_label(t, "stage", lb_stage_name(item->number % LB_STAGES));
		break;
	case DROP:
		put_label(t, "reason", lb_drop_name(item->number));
		break;
	case NOTICE:
		if (notices[item->number])
			put_label(t, "code", notices[item->number]);
		else
			put_number_label(t, "code", item->number);
		break;
	case TCP_REFUSAL:
		put_label(t, "reason", tcp_refusal_name(item->number));
		break;
	case PORT:
		put_label(t, "port", config->port[item->number].name);
		break;
	case SERVICE:
		put_label(t, "service", config->service[item->number].name);
		break;
	case WORKER:
		put_label(t, "worker", item->worker->spec.name);
		break;
	default:
		break;
	}
}

/* Write "doorbell_name{labels"; a further label or end_labels() must follow. */
static void begin_sample(struct text *t, const struct family *f, const struct item *item,
			 const char *suffix)
{
	text_string(t, "doorbell_");
	text_string(t, f->name);
	text_string(t, suffix);
	text_string(t, "{");
	if (t->failed)
		return;
	put_labels(t, f, item);
}

static void end_sample(struct text *t, double value)
{
	if (t->failed)
		return;
	if (t->data[t->n - 1] == '{')
		t->n--;
	else
		text_string(t, "}");
	text_string(t, " ");
	metrics_put_number(t, value);
	text_string(t, "\n");
}

/* The text format 0.0.4 has neither info nor stateset, and names a family as its samples. */
static void put_plain_family(struct text *t, const struct family *f)
{
	bool counter = *f->type == 'c', info = strcmp(f->type, "info") == 0;
	const char *type = info || strcmp(f->type, "stateset") == 0 ? "gauge" : f->type;
	const char *values[] = {"# HELP doorbell_", "# TYPE doorbell_"};

	for (unsigned int i = 0; i < CONTROL_COUNT_OF(values); i++) {
		text_string(t, values[i]);
		text_string(t, f->name);
		text_string(t, counter ? "_total " : info ? "_info " : " ");
		text_string(t, i == 0 ? f->help : type);
		text_string(t, "\n");
	}
}

static void put_family(struct text *t, const struct family *f)
{
	static const char *const words[] = {"# TYPE doorbell_", "# UNIT doorbell_",
					    "# HELP doorbell_"};
	const char *values[] = {f->type, f->unit, f->help};

	for (unsigned int i = 0; i < CONTROL_COUNT_OF(words); i++) {
		if (!*values[i])
			continue;
		text_string(t, words[i]);
		text_string(t, f->name);
		text_string(t, " ");
		text_string(t, values[i]);
		text_string(t, "\n");
	}
}

/* --- items ------------------------------------------------------------------------------------ */

static unsigned int items_of(const struct view *view, enum scope scope)
{
	switch (scope) {
	case LCORE:
		return lb_lcores(view->lb);
	case STAGE:
		return lb_lcores(view->lb) * LB_STAGES;
	case DROP:
		return LB_DROPS;
	case NOTICE:
		return LB_NOTICE_CODES;
	case TCP_REFUSAL:
		return TCP_REFUSALS;
	case PORT:
		return lb_config_get(view->lb)->n_ports;
	case SERVICE:
		return lb_config_get(view->lb)->n_services;
	case WORKER:
		return WORKERS_MAX;
	default:
		return 1;
	}
}

/* Read the item's values. False when no item has this number. */
static bool read_item(struct item *item, const struct family *f)
{
	struct lb *lb = item->view->lb;

	switch (f->scope) {
	case LCORE:
		lb_lcore_stats_read(lb, item->number, &item->stats.lcore);
		conntrack_stats_read(lb_conntrack(lb, item->number), &item->flows);
		return f->source != TCP || lb_tcp_stats_read(lb, item->number, &item->tcp);
	case STAGE:
		lb_lcore_stats_read(lb, item->number / LB_STAGES, &item->stats.lcore);
		return true;
	case TCP_REFUSAL:
		return item->number != TCP_REFUSAL_NONE;
	case NOTICE:
		return notices[item->number] != NULL || noticed(item) > 0;
	case SERVICE:
		lb_service_stats_read(lb, item->number, &item->stats.service);
		/* A service that leaves may share its name with one that serves. */
		return lb_service_serves(&lb_config_get(lb)->service[item->number]);
	case WORKER:
		item->worker = workers_get(lb_pool(lb), item->number);
		if (item->worker && f->source == FIELD)
			lb_worker_stats_read(lb, item->worker, &item->stats.link);
		return item->worker != NULL;
	default:
		return true;
	}
}

/*
 * The histogram being written. Static, as it is large for a stack; only the control thread uses it.
 */
static struct latency metrics_latency;

/*
 * Bounds are powers of two of the histogram's unit. Services, which are few, have four per
 * doubling.
 */
static void put_histogram(struct text *t, const struct family *f, const struct item *item)
{
	struct latency *l = &metrics_latency;
	bool service = f->scope == SERVICE;
	unsigned int step = (1u << LATENCY_SUB_BITS) / (service ? 4 : 1), at;
	unsigned int first = service ? 4 : 32, last = LATENCY_BUCKETS - 32;
	uint64_t below = 0;
	char bound[32];

	if (service)
		lb_service_latency_read(item->view->lb, item->number, l);
	else
		lb_worker_latency_read(item->view->lb, item->worker, l);
	for (at = 0; at < LATENCY_BUCKETS; at++) {
		if (at >= first && at <= last && (at - first) % step == 0) {
			begin_sample(t, f, item, "_bucket");
			snprintf(bound, sizeof(bound), "%.9g", (double)latency_lower_ns(at) / 1e9);
			if (!t->failed)
				put_label(t, "le", bound);
			end_sample(t, (double)below);
		}
		below += l->bucket[f->offset][at];
	}
	begin_sample(t, f, item, "_bucket");
	if (!t->failed)
		put_label(t, "le", "+Inf");
	end_sample(t, (double)below);
	begin_sample(t, f, item, "_sum");
	end_sample(t, (double)l->sum_ns[f->offset] / 1e9);
	begin_sample(t, f, item, "_count");
	end_sample(t, (double)below);
}

static void put_states(struct text *t, const struct family *f, const struct item *item)
{
	for (unsigned int s = WORKER_GONE + 1; s < WORKER_STATES; s++) {
		begin_sample(t, f, item, "");
		if (t->failed)
			return;
		put_label(t, f->scope == WORKER ? "doorbell_worker_state" : "state",
			  worker_state_name(s));
		end_sample(t, f->scope == WORKER ? item->worker->state == s
						 : workers_count(lb_pool(item->view->lb), s));
	}
}

static void put_sizes(struct text *t, const struct family *f, const struct item *item)
{
	const struct worker_report *report = &item->worker->report;

	for (uint32_t i = 0; i < report->n_sizes; i++) {
		const char *size = (const char *)&report->size[i];

		begin_sample(t, f, item, "_total");
		if (t->failed)
			return;
		put_number_label(t, "rows", report->size[i].rows);
		/* Times are in us. */
		end_sample(t, (double)*(const uint64_t *)(const void *)(size + f->offset) /
				      (*f->unit != '\0' ? 1e6 : 1));
	}
}

/* Labels by which services are near or spread; those of the operator's own have no bound. */
static void put_places(struct text *t, const struct worker *worker)
{
	static const char *const keys[] = {"host", "numa", "pcie", "nvlink"};

	for (size_t i = 0; i < RTE_DIM(keys); i++) {
		const char *value = workers_label(worker, keys[i]);

		if (value != NULL)
			put_label(t, keys[i], value);
	}
}

static void put_info(struct text *t, const struct family *f, const struct item *item)
{
	char text[32];

	begin_sample(t, f, item, "_info");
	if (t->failed)
		return;
	if (f->scope == WORKER) {
		put_label(t, "model", item->worker->spec.model);
		put_number_label(t, "slots", item->worker->spec.slots);
		put_number_label(t, "max_batch", item->worker->spec.max_batch);
		put_places(t, item->worker);
	} else {
		snprintf(text, sizeof(text), "%u.%02u.%u", rte_version_year(), rte_version_month(),
			 rte_version_minor());
		put_label(t, "version", DOORBELL_VERSION);
		put_label(t, "dpdk", text);
	}
	end_sample(t, 1);
}

static void put_item(struct text *t, const struct family *f, struct item *item)
{
	const char *base = f->source == FLOWS ? (const char *)&item->flows
			   : f->source == TCP ? (const char *)&item->tcp
					      : (const char *)&item->stats;
	double value;

	switch (f->source) {
	case PARTS:
		put_histogram(t, f, item);
		return;
	case STATES:
		put_states(t, f, item);
		return;
	case SIZES:
		put_sizes(t, f, item);
		return;
	case INFO:
		put_info(t, f, item);
		return;
	default:
		value = f->source == FUNCTION
				? f->value(item)
				: (double)*(const uint64_t *)(const void *)(base + f->offset);
		if (isnan(value))
			return;
		begin_sample(t, f, item, *f->type == 'c' ? "_total" : "");
		end_sample(t, value);
	}
}

void view_metrics(const struct view *view, struct metrics_walk *walk, uint64_t budget_us,
		  struct text *out)
{
	uint64_t end = clock_now_us() + budget_us;

	for (; walk->family < CONTROL_COUNT_OF(families); walk->family++) {
		const struct family *f = &families[walk->family];
		unsigned int n = items_of(view, f->scope);

		if (!walk->begun && walk->plain)
			put_plain_family(out, f);
		else if (!walk->begun)
			put_family(out, f);
		walk->begun = true;
		for (; walk->item < n; walk->item++) {
			struct item item = {.view = view, .number = walk->item};

			if (!read_item(&item, f))
				continue;
			put_item(out, f, &item);
			/* A piece of nothing would be the end: workers may have no such sample. */
			if (out->n > 0 && clock_now_us() > end) {
				walk->item++;
				return;
			}
		}
		walk->item = 0;
		walk->begun = false;
	}
	if (!walk->plain)
		text_string(out, "# EOF\n");
	walk->done = true;
}
