/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>

#include "config/address.h"
#include "server/row.h"
#include "server/rpc.h"

static const struct writer_counter summary_counters[] = {
	WRITER_COUNTER(lb_service_stats, requests), WRITER_COUNTER(lb_service_stats, replies),
	WRITER_COUNTER(lb_service_stats, notices),  WRITER_COUNTER(lb_service_stats, drops),
	WRITER_COUNTER(lb_service_stats, queued),
};

static const struct writer_counter more_counters[] = {
	WRITER_COUNTER(lb_service_stats, replays),      WRITER_COUNTER(lb_service_stats, bytes_in),
	WRITER_COUNTER(lb_service_stats, bytes_out),    WRITER_COUNTER(lb_service_stats, preferred),
	WRITER_COUNTER(lb_service_stats, spilled),      WRITER_COUNTER(lb_service_stats, moved),
	WRITER_COUNTER(lb_service_stats, queue_places),
};

static const char *const affinities[] = {
	[LB_AFFINITY_FLOW] = "flow",
	[LB_AFFINITY_REQUEST] = "request",
	[LB_AFFINITY_STICKY] = "sticky",
};

static const char *const framings[] = {
	[LB_FRAMING_DATAGRAM] = "datagram",
	[LB_FRAMING_TAGGED] = "tagged",
	[LB_FRAMING_LENGTH] = "length",
	[LB_FRAMING_KSERVE] = "kserve",
};

static const char *const congestions[] = {
	[LB_CONGESTION_CUBIC] = "cubic",
	[LB_CONGESTION_RENO] = "reno",
	[LB_CONGESTION_DCTCP] = "dctcp",
};

void service_row_write_summary(struct json_writer *w, struct lb *lb, unsigned int number,
			       const struct lb_service_stats *stats)
{
	const struct lb_service_config *s = &lb_config_get(lb)->service[number];
	char vip[LB_ADDRESS_TEXT];

	writer_string(w, "name", s->name);
	writer_string(w, "vip", lb_address_format(&s->vip, vip, sizeof(vip)));
	writer_integer(w, "port", s->port);
	writer_string(w, "protocol", s->protocol == IPPROTO_UDP ? "udp" : "tcp");
	writer_string(w, "model", s->model);
	writer_string(w, "policy", pick_policy_name(s->policy));
	writer_integer(w, "workers", lb_service_workers(lb, number, NULL));
	writer_counters(w, summary_counters, CONTROL_COUNT_OF(summary_counters), stats);
}

static void service_row_write_limits(struct json_writer *w, const struct lb_service_config *s)
{
	writer_integer(w, "max_request", s->max_request);
	writer_integer(w, "max_reply", s->max_reply);
	writer_integer(w, "queue", s->queue);
	writer_integer(w, "queue_timeout_ms", s->queue_timeout_ms);
	writer_integer(w, "request_timeout_ms", s->request_timeout_ms);
	if (s->protocol == IPPROTO_TCP) {
		writer_null(w, "flow_timeout_ms");
		writer_null(w, "one_way_timeout_ms");
	} else {
		writer_integer(w, "flow_timeout_ms", s->flow_timeout_ms);
		writer_integer(w, "one_way_timeout_ms", s->one_way_timeout_ms);
	}
	writer_boolean(w, "payload_crc", s->payload_crc);
	writer_integer(w, "sticky_load_percent", s->sticky_load_percent);
}

static void service_row_write_transport(struct json_writer *w, const struct lb_service_config *s)
{
	writer_string(w, "framing", framings[s->framing]);
	if (s->protocol == IPPROTO_TCP) {
		writer_string(w, "congestion", congestions[s->congestion]);
		writer_boolean(w, "ecn", s->ecn);
		writer_boolean(w, "tls", lb_service_has_tls(s));
	} else {
		writer_null(w, "congestion");
		writer_null(w, "ecn");
		writer_null(w, "tls");
	}
}

static void service_row_write_members(struct json_writer *w, struct lb *lb, unsigned int number)
{
	const struct lb_service_config *s = &lb_config_get(lb)->service[number];
	unsigned int spares;

	lb_service_workers(lb, number, &spares);
	writer_string(w, "members", s->assigned_only ? "assigned" : "all");
	writer_integer(w, "min_workers", s->min_workers);
	writer_integer(w, "spares_in", spares);
	writer_integer(w, "spares", s->spares);
	writer_string(w, "placement", s->placement == ASSIGN_PACK ? "pack" : "spread");
}

void service_row_write(struct json_writer *w, const char *key, struct lb *lb, unsigned int number,
		       const struct refusals *refusals)
{
	const struct lb_service_config *s = &lb_config_get(lb)->service[number];
	struct lb_service_stats stats;
	char reason[768];

	lb_service_stats_read(lb, number, &stats);
	writer_open_object(w, key);
	service_row_write_summary(w, lb, number, &stats);
	writer_string(w, "affinity", affinities[s->affinity]);
	writer_string(w, "state", service_state(lb, number, refusals, reason, sizeof(reason)));
	if (reason[0] != '\0')
		writer_string(w, "reason", reason);
	else
		writer_null(w, "reason");
	writer_counters(w, more_counters, CONTROL_COUNT_OF(more_counters), &stats);
	service_row_write_transport(w, s);
	service_row_write_limits(w, s);
	service_row_write_members(w, lb, number);
	writer_close_object(w);
}
