/* SPDX-License-Identifier: BSD-3-Clause */
/* Sequences by framing kserve: where the service is sticky, one has its worker by any connection.
 */
#include <string.h>

#include "grpc_text.h"

#define WORKERS 4

/* Which worker has answered since <before>. */
static unsigned int answered_by(struct walk_worker *const v[WORKERS], uint64_t before[WORKERS])
{
	unsigned int by = WORKERS;

	for (unsigned int i = 0; i < WORKERS; i++) {
		if (v[i]->answered > before[i])
			by = by == WORKERS ? i : WORKERS + 1;
		before[i] = v[i]->answered;
	}
	return by;
}

/* The same with a binary tensor: text that was seen before is not read again. */
static unsigned int ask_binary(struct walk *w, struct walk_worker *const v[WORKERS],
			       uint64_t before[WORKERS], uint16_t port, const char *id)
{
	struct http_client *c = http_dial(w, port);
	char json[256], text[512];

	sprintf(json,
		"{\"parameters\":{\"sequence_id\":%s,\"binary_data_output\":true},\"inputs\":["
		"{\"name\":\"a\",\"shape\":[3],\"datatype\":\"UINT8\","
		"\"parameters\":{\"binary_data_size\":3}}]}",
		id);
	http_say(c, text,
		 sprintf(text,
			 "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
			 "Inference-Header-Content-Length: %zu\r\nContent-Length: %zu\r\n"
			 "\r\n%sabc",
			 strlen(json), strlen(json) + 3, json));
	http_wait(c);
	walk_expect(strstr(c->got, "}abc") != NULL, "%s", c->got);
	http_hang_up(c);
	return answered_by(v, before);
}

/* The worker that answers a request of sequence <id>, by a connection from <port>. */
static unsigned int ask(struct walk *w, struct walk_worker *const v[WORKERS],
			uint64_t before[WORKERS], uint16_t port, const char *id)
{
	struct http_client *c = http_dial(w, port);
	char body[256], text[512];

	sprintf(body,
		"{\"parameters\":{\"sequence_id\":%s},\"inputs\":[{\"name\":\"a\",\"shape\":[3],"
		"\"datatype\":\"UINT8\",\"data\":[1,2,3]}]}",
		id);
	http_say(c, text,
		 sprintf(text,
			 "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n"
			 "\r\n%s",
			 strlen(body), body));
	http_wait(c);
	walk_expect(strstr(c->got, "\"data\":[1,2,3]") != NULL, "%s", c->got);
	http_hang_up(c);
	return answered_by(v, before);
}

static void run(const char *policy)
{
	static struct model_description described;
	char services[512];
	const struct walk_params params = {.services = services,
					   .more = "tcp: {connections: 256, buffer_mb: 8}\n"};
	uint64_t before[WORKERS] = {0};
	struct walk_worker *v[WORKERS];
	unsigned int used = 0;
	struct walk *w;

	sprintf(services,
		"  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		", port: 8000, model: echo, max_request: 1KiB, max_reply: 1KiB, policy: %s,\n"
		"     affinity: sticky}\n",
		policy);
	w = walk_create(&params);
	for (unsigned int i = 0; i < WORKERS; i++) {
		const struct walk_worker_params small = {.max_request = 1024, .max_reply = 1024};
		struct lb_registration r;

		walk_worker_registration(w, &small, &r);
		described = kserve_one_tensor(DATATYPE_UINT8);
		r.worker.description = &described;
		v[i] = walk_worker_register_as(w, &r);
		walk_need(v[i] != NULL && walk_worker_start(v[i]), "%s", w->error);
	}
	for (unsigned int id = 1; id <= 24; id++) {
		char number[16], name[16];
		unsigned int first, named;

		sprintf(number, "%u", id * 1000);
		sprintf(name, "\"user%u\"", id);
		first = ask(w, v, before, 3000 + id, number);
		walk_need(first < WORKERS, "%u workers", first);
		named = ask(w, v, before, 3100 + id, name);
		used |= 1u << first | 1u << named;
		for (unsigned int i = 0; i < 3; i++) {
			walk_context("%s, sequence %u", policy, id);
			walk_expect_eq(ask(w, v, before, 3200 + 10 * id + i, number), first);
			walk_expect_eq(ask(w, v, before, 4200 + 10 * id + i, name), named);
			walk_expect_eq(ask_binary(w, v, before, 5200 + 10 * id + i, number), first);
		}
	}
	walk_expect_eq(used, (1u << WORKERS) - 1);
	walk_context("%s", "");
	walk_destroy(w);
}

WALK(a_sequence_has_its_worker)
{
	run("round-robin");
	run("least-outstanding");
	run("maglev");
}
