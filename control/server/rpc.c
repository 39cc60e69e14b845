/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * JSON-RPC: a line becomes a call, its handler's result becomes a reply.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/rpc.h"
#include "runtime/clock.h"

#define OPERATORS (1u << CONTROL_OPERATOR)
/* Roles of methods that change nothing, cost little, open no file and show no payload. */
#define READERS (OPERATORS | 1u << CONTROL_READER)
#define AGENTS  (1u << CONTROL_AGENT)

static const struct method {
	const char *name;
	unsigned int roles; /* who may call */
	control_handler *handler;
} methods[] = {
	{"version", READERS | AGENTS, control_version},
	{"flows.list", READERS, control_flows_list},
	{"flows.show", READERS, control_flows_show},
	{"flows.count", READERS, control_flows_count},
	{"flows.top", READERS, control_flows_top},
	{"workers.list", READERS, control_workers_list},
	{"workers.show", READERS, control_workers_show},
	{"workers.drain", OPERATORS, control_workers_drain},
	{"workers.replace", OPERATORS, control_workers_replace},
	{"workers.assign", OPERATORS, control_workers_assign},
	{"workers.release", OPERATORS, control_workers_release},
	{"workers.table", READERS, control_workers_table},
	{"workers.refused", READERS, control_workers_refused},
	{"workers.set", OPERATORS, control_workers_set},
	{"workers.resume", OPERATORS, control_workers_resume},
	{"workers.settings", READERS, control_workers_settings},
	{"workers.forget", OPERATORS, control_workers_forget},
	{"models.list", READERS, control_models_list},
	{"models.show", READERS, control_models_show},
	{"services.list", READERS, control_services_list},
	{"services.show", READERS, control_services_show},
	{"trace.start", OPERATORS, control_trace_start},
	{"trace.read", OPERATORS, control_trace_read},
	{"trace.stop", OPERATORS, control_trace_stop},
	{"capture.start", OPERATORS, control_capture_start},
	{"capture.data", OPERATORS, control_capture_data},
	{"capture.read", OPERATORS, control_capture_read},
	{"capture.stop", OPERATORS, control_capture_stop},
	{"log.show", READERS, control_log_show},
	{"log.level", OPERATORS, control_log_level},
	{"config.check", OPERATORS, control_config_check},
	{"config.diff", OPERATORS, control_config_diff},
	{"config.apply", OPERATORS, control_config_apply},
	{"stats.show", READERS, control_stats_show},
	{"status.show", READERS, control_status_show},
	{"agent.hello", AGENTS, control_agent_hello},
	{"agent.register", AGENTS, control_agent_register},
	{"agent.ready", AGENTS, control_agent_ready},
	{"agent.drain", AGENTS, control_agent_drain},
	{"agent.renew", AGENTS, control_agent_renew},
	{"agent.attach", AGENTS, control_agent_attach},
};

/* Only an error about a configuration has several lines, one per fault. */
static void make_lines_ascii(char *text)
{
	char *end;

	while ((end = strchr(text, '\n')) != NULL) {
		*end = '\0';
		text_make_ascii(text);
		*end = '\n';
		text = end + 1;
	}
	text_make_ascii(text);
}

json_t *control_fail(struct control_call *call, int code, const char *format, ...)
{
	va_list ap;

	call->code = code;
	va_start(ap, format);
	vsnprintf(call->message, sizeof(call->message), format, ap);
	va_end(ap);
	/* the message repeats what the peer sent, perhaps cut inside a character */
	if (code == CONTROL_ERROR_CONFIG)
		make_lines_ascii(call->message);
	else
		text_make_ascii(call->message);
	return NULL;
}

static json_t *error_value(int code, const char *message)
{
	return json_pack("{s:i, s:s}", "code", code, "message", message);
}

json_t *control_error_reply(int code, const char *message)
{
	return json_pack("{s:s, s:n, s:o}", "jsonrpc", "2.0", "id", "error",
			 error_value(code, message));
}

/* Begin the envelope; the result or the error comes next, then reply_end(). */
static void reply_begin(struct json_writer *w, const json_t *id)
{
	writer_open_object(w, NULL);
	writer_string(w, "jsonrpc", "2.0");
	if (id != NULL)
		writer_value(w, "id", id);
	else
		writer_null(w, "id");
}

static void reply_end(struct json_writer *w)
{
	writer_close_object(w);
}

/* Consumes <result>. The text that the handler wrote becomes the last member. */
static void reply_result(struct text *reply, const json_t *id, json_t *result,
			 const struct control_call *call)
{
	struct json_writer w = {.out = reply};
	const char *name;
	json_t *value;

	reply_begin(&w, id);
	writer_open_object(&w, "result");
	json_object_foreach (result, name, value)
		writer_value(&w, name, value);
	if (call->written.n > 0)
		writer_written(&w, call->written_name, call->written.data, call->written.n);
	writer_close_object(&w);
	reply_end(&w);
	json_decref(result);
	reply->failed |= call->written.failed;
}

static void reply_error(struct text *reply, const json_t *id, int code, const char *message)
{
	struct json_writer w = {.out = reply};
	json_t *error = error_value(code, message);

	reply_begin(&w, id);
	writer_value(&w, "error", error);
	reply_end(&w);
	json_decref(error);
}

static json_t *call_method(struct control_call *call, const char *name)
{
	static const char *const whose[CONTROL_ROLES] = {
		[CONTROL_OPERATOR] = "operators, on the UNIX socket",
		[CONTROL_AGENT] = "agents, on the TCP port",
	};

	for (size_t i = 0; i < CONTROL_COUNT_OF(methods); i++) {
		const struct method *m = &methods[i];

		if (strcmp(m->name, name) != 0)
			continue;
		if (m->roles & 1u << call->c->role)
			return m->handler(call);
		if (call->c->role == CONTROL_READER)
			return control_fail(
				call, CONTROL_ERROR_STATE,
				"%s is not for the read-only socket; an operator may, on "
				"control.socket",
				name);
		return control_fail(call, CONTROL_ERROR_STATE, "%s is for %s", name,
				    whose[m->roles & AGENTS ? CONTROL_AGENT : CONTROL_OPERATOR]);
	}
	return control_fail(call, CONTROL_ERROR_METHOD,
			    "no method '%.60s'; control.h lists those of protocol %d", name,
			    CONTROL_PROTOCOL);
}

static bool id_is_usable(const json_t *id)
{
	return id == NULL || json_is_string(id) || json_is_number(id) || json_is_null(id);
}

/* Check the JSON-RPC envelope of a message. Returns the error text, or NULL when it is valid. */
static const char *envelope_fault(const json_t *message)
{
	const char *version = json_string_value(json_object_get(message, "jsonrpc"));
	const json_t *id = json_object_get(message, "id");

	if (json_is_array(message))
		return "batches are not supported; send one message per line";
	if (!json_is_object(message))
		return "not a request; send {\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": ...}";
	if (version == NULL || strcmp(version, "2.0") != 0)
		return "jsonrpc: missing or not \"2.0\"; send \"jsonrpc\": \"2.0\"";
	if (!id_is_usable(id))
		return "id: give a string, a number or null";
	if (!json_is_string(json_object_get(message, "method")))
		return "method: missing or not a string; give a method's name";
	return NULL;
}

/* Note that an agent could not register, for the status of its service. */
static void note_refusal(const struct control_call *call, const char *method)
{
	const char *name = json_string_value(json_object_get(call->params, "name"));
	const char *model = json_string_value(json_object_get(call->params, "model"));

	if (call->c->role == CONTROL_AGENT &&
	    (strcmp(method, "agent.hello") == 0 || strcmp(method, "agent.register") == 0))
		refusals_note(call->c->refusals, call->c->peer, name, model, call->message,
			      clock_now_ms());
}

static void dispatch_message(struct control_connection *c, json_t *message, struct text *reply)
{
	struct control_call call = {.c = c};
	const char *fault = envelope_fault(message);
	json_t *id = json_object_get(message, "id"), *empty = NULL, *result;

	if (fault != NULL) {
		reply_error(reply, id_is_usable(id) ? id : NULL, CONTROL_ERROR_REQUEST, fault);
		return;
	}
	call.params = json_object_get(message, "params");
	if (call.params == NULL)
		call.params = empty = json_object();
	result = call_method(&call, json_string_value(json_object_get(message, "method")));
	if (result == NULL && call.code == 0)
		control_fail(&call, CONTROL_ERROR_INTERNAL, "out of memory");
	if (result == NULL)
		note_refusal(&call, json_string_value(json_object_get(message, "method")));
	if (id == NULL)
		json_decref(result);
	else if (result != NULL)
		reply_result(reply, id, result, &call);
	else
		reply_error(reply, id, call.code, call.message);
	json_decref(empty);
	text_free(&call.written);
}

void control_dispatch(struct control_connection *c, const char *line, size_t n, struct text *reply)
{
	struct control_call call = {.c = c};
	json_error_t error;
	json_t *message;

	message = json_loadb(line, n, JSON_REJECT_DUPLICATES, &error);
	if (message == NULL) {
		control_fail(&call, CONTROL_ERROR_PARSE,
			     "not JSON, column %d: %s; send one object per line", error.column,
			     error.text);
		reply_error(reply, NULL, call.code, call.message);
		return;
	}
	dispatch_message(c, message, reply);
	json_decref(message);
}
