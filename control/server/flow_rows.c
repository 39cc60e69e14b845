/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows as text. A million rows are formatted directly and not built as values first. Names belong
 * to a few services and workers, so their JSON is made once; all other columns are numbers.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/address.h"
#include "edge/view.h"
#include "server/flows.h"

#define ROW_ROOM 1024 /* bytes; more than any row takes, without its two names */

enum column {
	COLUMN_lcore,
	COLUMN_client,
	COLUMN_zone,
	COLUMN_service,
	COLUMN_worker,
	COLUMN_state,
	COLUMN_age_s,
	COLUMN_idle_s,
	COLUMN_packets_in,
	COLUMN_bytes_in,
	COLUMN_requests,
	COLUMN_packets_out,
	COLUMN_bytes_out,
	COLUMNS
};

/* The text before a column's value in a row that is an object. */
#define COLUMN(name) [COLUMN_##name] = {#name, ",\"" #name "\":", sizeof(#name) + 3}

static const struct {
	const char *name, *key;
	size_t key_size;
} columns[COLUMNS] = {
	COLUMN(lcore),      COLUMN(client),   COLUMN(zone),     COLUMN(service),
	COLUMN(worker),     COLUMN(state),    COLUMN(age_s),    COLUMN(idle_s),
	COLUMN(packets_in), COLUMN(bytes_in), COLUMN(requests), COLUMN(packets_out),
	COLUMN(bytes_out),
};

json_t *flow_rows_columns(void)
{
	json_t *names = json_array();

	for (unsigned int i = 0; i < COLUMNS; i++)
		json_array_append_new(names, json_string(columns[i].name));
	return names;
}

/* --- names ------------------------------------------------------------------------------------ */

unsigned int flow_service(const struct lb *lb, const struct flow_info *flow)
{
	return flow->service < lb_config_get(lb)->n_services ? flow->service : LB_SERVICES_MAX;
}

const char *flow_service_name(const struct lb *lb, unsigned int service)
{
	return service < LB_SERVICES_MAX ? lb_config_get(lb)->service[service].name : "-";
}

/* The last index when the worker's place was given to another: its number then means nothing. */
unsigned int flow_worker(struct lb *lb, const struct flow_info *flow)
{
	const struct worker *worker =
		flow->worker < WORKERS_MAX ? workers_get(lb_pool(lb), flow->worker) : NULL;

	if (worker == NULL || worker->generation != flow->worker_generation)
		return WORKERS_MAX;
	return flow->worker;
}

const char *flow_worker_name(struct lb *lb, unsigned int worker)
{
	return worker < WORKERS_MAX ? workers_get(lb_pool(lb), worker)->spec.name : "-";
}

/* Add <name> as JSON; <*made> keeps the JSON for the next time. */
static void add_name(struct text *text, char **made, const char *name)
{
	if (*made == NULL) {
		json_t *value = control_text(name);

		*made = json_dumps(value, JSON_ENCODE_ANY);
		json_decref(value);
	}
	if (*made != NULL)
		text_string(text, *made);
	else
		text->failed = true;
}

/* --- rows ------------------------------------------------------------------------------------- */

static void add_ipv4(struct text *text, const uint8_t *address, uint16_t port)
{
	for (unsigned int i = 0; i < 4; i++) {
		text_integer(text, address[i]);
		text_add(text, i < 3 ? "." : ":", 1);
	}
	text_integer(text, port);
}

static void add_client(struct text *text, const struct flow_key *key)
{
	struct lb_address from = {.family = key->family, .addr = key->src};
	char address[LB_ADDRESS_TEXT];
	uint16_t port = ntohs(key->src_port);

	text_add(text, "\"", 1);
	if (key->family == FLOW_IPV4) {
		add_ipv4(text, &key->src.s6_addr[12], port);
	} else {
		text_add(text, "[", 1);
		text_string(text, lb_address_format(&from, address, sizeof(address)));
		text_add(text, "]:", 2);
		text_integer(text, port);
	}
	text_add(text, "\"", 1);
}

/* The owner's clock may have moved on since the control thread read it. */
static uint64_t seconds_since(uint32_t then_ms, uint32_t now_ms)
{
	int32_t ms = (int32_t)(now_ms - then_ms);

	return ms > 0 ? (uint64_t)ms / 1000 : 0;
}

/* The first column has no comma before it. */
static void begin_value(const struct flow_rows *rows, enum column column)
{
	size_t skip = column == 0;

	if (rows->compact)
		text_add(rows->text, ",", 1 - skip);
	else
		text_add(rows->text, columns[column].key + skip, columns[column].key_size - skip);
}

static void row_add_number(const struct flow_rows *rows, enum column column, uint64_t value)
{
	begin_value(rows, column);
	text_integer(rows->text, value);
}

static void add_zone(struct flow_rows *rows, uint16_t zone)
{
	char name[ZONE_NAME_MAX];

	if (rows->zone != zone) {
		free(rows->zone_name);
		rows->zone_name = NULL;
		rows->zone = zone;
	}
	add_name(rows->text, &rows->zone_name, zone_name(lb_config_get(rows->lb), zone, name));
}

static void add_texts(struct flow_rows *rows, const struct flow_info *flow)
{
	unsigned int service = flow_service(rows->lb, flow), worker = flow_worker(rows->lb, flow);
	struct text *text = rows->text;

	begin_value(rows, COLUMN_client);
	add_client(text, &flow->key);
	begin_value(rows, COLUMN_zone);
	add_zone(rows, flow->key.zone);
	begin_value(rows, COLUMN_service);
	add_name(text, &rows->service[service], flow_service_name(rows->lb, service));
	begin_value(rows, COLUMN_worker);
	add_name(text, &rows->worker[worker], flow_worker_name(rows->lb, worker));
	begin_value(rows, COLUMN_state);
	text_add(text, "\"", 1);
	text_string(text, conntrack_state_name(flow->state));
	text_add(text, "\"", 1);
}

static void add_values(struct flow_rows *rows, unsigned int lcore, const struct flow_info *flow)
{
	text_reserve(rows->text, ROW_ROOM);
	text_string(rows->text, rows->n++ ? "," : "");
	text_add(rows->text, rows->compact ? "[" : "{", 1);
	row_add_number(rows, COLUMN_lcore, lcore);
	add_texts(rows, flow);
	row_add_number(rows, COLUMN_age_s, seconds_since(flow->created, rows->now_ms));
	row_add_number(rows, COLUMN_idle_s, seconds_since(flow->last_seen, rows->now_ms));
	row_add_number(rows, COLUMN_packets_in, flow->packets_in);
	row_add_number(rows, COLUMN_bytes_in, flow->bytes_in);
	row_add_number(rows, COLUMN_requests, flow->requests);
	row_add_number(rows, COLUMN_packets_out, flow->packets_out);
	row_add_number(rows, COLUMN_bytes_out, flow->bytes_out);
}

void flow_rows_begin(struct flow_rows *rows)
{
	rows->now_ms = lb_now_ms(rows->lb);
	text_add(rows->text, "[", 1);
}

void flow_rows_add(struct flow_rows *rows, unsigned int lcore, const struct flow_info *flow)
{
	add_values(rows, lcore, flow);
	text_add(rows->text, rows->compact ? "]" : "}", 1);
}

void flow_rows_add_ranked(struct flow_rows *rows, unsigned int lcore, const struct flow_info *flow,
			  uint64_t value)
{
	add_values(rows, lcore, flow);
	text_string(rows->text, ",\"value\":");
	text_integer(rows->text, value);
	text_add(rows->text, "}", 1);
}

static const char *flow_rows_tls(uint16_t version)
{
	return version == 0x0304 ? "1.3" : version == 0x0303 ? "1.2" : "handshake";
}

static void flow_rows_write_tcp(struct json_writer *w, const struct lb_connection *c)
{
	writer_open_object(w, NULL);
	writer_string(w, "state", tcp_state_name(c->state));
	writer_string(w, "phase", tcp_phase_name(c->phase));
	writer_boolean(w, "closing", c->closing);
	writer_integer(w, "cwnd", c->cwnd);
	writer_integer(w, "ssthresh", c->ssthresh);
	writer_integer(w, "in_flight", c->in_flight);
	writer_integer(w, "client_window", c->client_window);
	writer_integer(w, "offered_window", c->offered_window);
	writer_integer(w, "mss", c->mss);
	writer_integer(w, "srtt_us", c->srtt_us);
	writer_integer(w, "rttvar_us", c->rttvar_us);
	writer_integer(w, "rtt_min_us", c->rtt_min_us);
	writer_integer(w, "rto_ms", c->rto_ms);
	writer_integer(w, "retransmits", c->retransmits);
	writer_integer(w, "send_bytes", c->send_bytes);
	writer_integer(w, "held_bytes", c->held_bytes);
	writer_integer(w, "open_requests", c->requests);
	writer_boolean(w, "sack", c->sack);
	writer_boolean(w, "timestamps", c->timestamps);
	writer_boolean(w, "scaling", c->scaling);
	writer_boolean(w, "ecn", c->ecn);
	if (c->secured)
		writer_string(w, "tls", flow_rows_tls(c->tls_version));
	else
		writer_null(w, "tls");
	writer_close_object(w);
}

void flow_rows_add_tcp(struct flow_rows *rows, unsigned int lcore, const struct flow_info *flow)
{
	struct json_writer w = {.out = rows->text};
	struct lb_connection connection;

	add_values(rows, lcore, flow);
	text_string(rows->text, ",\"tcp\":");
	if (flow_state_is_tcp(flow->state) &&
	    lb_connection_read(rows->lb, lcore, flow->handle, &connection))
		flow_rows_write_tcp(&w, &connection);
	else
		text_string(rows->text, "null");
	text_string(rows->text, "}");
}

void flow_rows_end(struct flow_rows *rows)
{
	text_add(rows->text, "]", 1);
	free(rows->zone_name);
	for (size_t i = 0; i < CONTROL_COUNT_OF(rows->service); i++)
		free(rows->service[i]);
	for (size_t i = 0; i < CONTROL_COUNT_OF(rows->worker); i++)
		free(rows->worker[i]);
}
