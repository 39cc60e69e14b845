/* SPDX-License-Identifier: BSD-3-Clause */
/* Services with framing kserve that have one address: the path of a request names its model. */
#include <string.h>

#include "grpc_text.h"
#include "observe/stats.h"

#define POST "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
#define JSON "{\"inputs\":[{\"name\":\"a\",\"shape\":[3],\"datatype\":\"UINT8\",\"data\":[7,8,9]}]}"

static struct model_description described, described_raw;

static void describe(void)
{
	described = kserve_one_tensor(DATATYPE_UINT8);
	described_raw = kserve_one_tensor(DATATYPE_UINT16);
	described_raw.version[0] = '2';
}

static struct walk_worker *worker_of(struct walk *w, const struct walk_worker_params *p,
				     struct model_description *description)
{
	struct lb_registration r;
	struct walk_worker *v;

	describe();
	walk_worker_registration(w, p, &r);
	r.worker.min_request = 1;
	r.worker.description = description;
	v = walk_worker_register_as(w, &r);
	walk_need(v != NULL, "%s", w->error);
	walk_need(walk_worker_start(v), "not active");
	return v;
}

#define MODELS(second)                                                                             \
	"  - {name: one, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4            \
	", port: 8000, model: echo, max_request: 1KiB, max_reply: 1KiB}\n" second
#define MODEL_RAW                                                                                  \
	"  - {name: two, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4            \
	", port: 8000, model: raw, max_request: 64KiB, max_reply: 64KiB}\n"

static void expect_answer(struct http_client *c, const char *status, const char *part)
{
	http_wait(c);
	walk_expect(strncmp(c->got + 9, status, 3) == 0, "%.300s", c->got);
	walk_expect(strstr(c->got, part) != NULL, "no %s in %.600s", part, c->got);
	c->n = 0;
}

static void ask(struct http_client *c, const char *line)
{
	static char text[512];

	http_say(c, text, sprintf(text, "%s HTTP/1.1\r\nHost: h\r\n\r\n", line));
}

/* The worker's descriptor has it: the request's own deadline, whether shorter or longer, in place
 * of the service's. */
WALK(a_requests_own_deadline_replaces_the_services)
{
	static const struct walk_params late = {
		.services = "  - {name: one, protocol: tcp, framing: kserve, "
			    "address: " PACKET_DESTINATION4
			    ", port: 8000, model: echo, max_request: 1KiB, max_reply: 1KiB, "
			    "deadline_ms: 40}\n",
		.more = "tcp: {connections: 256, buffer_mb: 8}\n"};
	static const struct walk_worker_params of_echo = {.max_request = 1024, .max_reply = 1024};
	static const struct {
		const char *parameters;
		uint32_t us;
	} rows[] = {
		{"", 40000},
		{"\"timeout\":0", 40000},
		{"\"timeout\":7000,\"priority\":4", 7000},
		{"\"timeout\":900000", 900000},
	};
	static char text[1024], body[512];
	struct walk *w = walk_create(&late);
	struct walk_worker *v = worker_of(w, &of_echo, &described);
	struct http_client *c = http_dial(w, 3000);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		v->answers = false;
		sprintf(body, "{\"parameters\":{%s},%s", rows[i].parameters, JSON + 1);
		http_say(c, text,
			 sprintf(text, POST "Content-Length: %zu\r\n\r\n%s", strlen(body), body));
		walk_settle(w);
		walk_need(v->n_requests == 1);
		walk_expect_eq(v->request[0].deadline_us, rows[i].us);
		v->answers = true;
		expect_answer(c, "200", "\"data\":[7,8,9]");
	}
	http_hang_up(c);
	walk_destroy(w);
}

/* The path's model says which of the services with one address a request is for. */
WALK(models_of_one_address)
{
	static const struct walk_params two = {.services = MODELS(MODEL_RAW),
					       .more = "tcp: {connections: 256, buffer_mb: 8}\n"};
	static const struct walk_worker_params of_echo = {.max_request = 1024, .max_reply = 1024};
	static const struct walk_worker_params of_raw = {
		.model = "raw", .max_request = 65536, .max_reply = 65536, .room = 262144};
	static const char raw_head[] = "POST /v2/models/raw/infer HTTP/1.1\r\nHost: h\r\n"
				       "Inference-Header-Content-Length: 0\r\n"
				       "Content-Length: 6000\r\n\r\n";
	static char bytes[8000], text[8192];
	struct lb_service_stats stats;
	struct walk_worker *one, *other;
	struct http_client *c;
	struct walk *w;

	w = walk_create(&two);
	one = worker_of(w, &of_echo, &described);
	c = http_dial(w, 3000);
	ask(c, "GET /v2/health/ready");
	expect_answer(c, "503", "false");
	ask(c, "GET /v2/models/echo/ready");
	expect_answer(c, "200", "true");
	ask(c, "POST /v2/repository/index");
	expect_answer(c, "200",
		      "[{\"name\":\"echo\",\"version\":\"1\",\"state\":\"READY\",\"reason\":\"\"},"
		      "{\"name\":\"raw\",\"version\":\"\",\"state\":\"UNAVAILABLE\"");
	ask(c, "GET /v2/models/raw");
	expect_answer(c, "503", "no workers");
	other = worker_of(w, &of_raw, &described_raw);
	ask(c, "GET /v2/health/ready");
	expect_answer(c, "200", "true");
	ask(c, "GET /v2/models/raw");
	expect_answer(c, "200", "\"UINT16\"");
	/* One after the other on one connection, answers in order. */
	for (unsigned int i = 0; i < 3; i++) {
		http_say(c, raw_head, sizeof(raw_head) - 1);
		http_say(c, bytes, 6000);
		http_say(c, text,
			 sprintf(text, POST "Content-Length: %zu\r\n\r\n" JSON, strlen(JSON)));
		http_wait(c);
		walk_expect(strstr(c->got, "\"shape\":[3000]") != NULL, "%.400s", c->got);
		walk_expect(strcmp(c->got + c->n - 17, "\"data\":[7,8,9]}]}") == 0);
		c->n = 0;
	}
	walk_expect_eq(one->answered, 3);
	walk_expect_eq(other->answered, 3);
	lb_service_stats_read(w->lb, 1, &stats);
	walk_expect_eq(stats.requests, 3);
	walk_expect_eq(stats.bytes_in, 18000);
	ask(c, "GET /v2/models/raw/stats");
	expect_answer(c, "200", "\"inference_count\":3,");
	ask(c, "GET /v2/models/stats");
	expect_answer(c, "200", "\"name\":\"raw\"");
	/* Behind a request for the second model, in one segment: the index has both. */
	http_say(c, text,
		 sprintf(text, "POST /v2/models/raw/infer HTTP/1.1\r\nHost: h\r\n"
			       "Inference-Header-Content-Length: 0\r\n"
			       "Content-Length: 4\r\n\r\nabcd"
			       "POST /v2/repository/index HTTP/1.1\r\nHost: h\r\n\r\n"));
	http_wait(c);
	walk_expect(strstr(c->got, "\r\n\r\n[{\"name\":\"echo\",") != NULL, "%s", c->got);
	walk_expect(strstr(c->got, ",{\"name\":\"raw\",") != NULL, "%s", c->got);
	c->n = 0;
	/* Its own limit, not its neighbour's. */
	http_say(c, text,
		 sprintf(text, POST "Inference-Header-Content-Length: 60\r\n"
				    "Content-Length: 100000\r\n\r\n"));
	http_wait(c);
	walk_expect(strncmp(c->got + 9, "413", 3) == 0, "%.300s", c->got);
	http_hang_up(c);
	/* Half of a request for a service that is removed, and comes back. */
	c = http_dial(w, 3001);
	http_say(c, raw_head, sizeof(raw_head) - 1);
	http_say(c, bytes, 3000);
	walk_yaml(&two, MODELS(""), text, sizeof(text));
	walk_need(walk_reload(w, text) == 0, "%s", w->error);
	walk_pass(w, 1000);
	http_say(c, bytes, 3000);
	expect_answer(c, "200", "");
	ask(c, "GET /v2/models/raw");
	expect_answer(c, "404", "raw");
	walk_yaml(&two, NULL, text, sizeof(text));
	walk_need(walk_reload(w, text) == 0, "%s", w->error);
	ask(c, "GET /v2/models/raw/ready");
	expect_answer(c, "200", "true");
	http_hang_up(c);
	walk_destroy(w);
}

/* A worker that is suspect for a moment describes its model as before: a request waits for it. */
WALK(a_model_whose_worker_is_suspect)
{
	static const struct walk_worker_params p = {.max_request = 1024, .max_reply = 1024};
	static const struct walk_params params = {.services = MODELS("")};
	struct walk *w = walk_create(&params);
	struct walk_worker *v = worker_of(w, &p, &described);
	struct http_client *c = http_dial(w, 3000);

	v->beats = false;
	walk_pass(w, 80);
	walk_expect_eq(walk_worker_of(v)->state, WORKER_SUSPECT);
	ask(c, "GET /v2/models/echo");
	expect_answer(c, "200", "\"inputs\":[{\"name\":\"a\"");
	http_say(c, POST "Content-Length: 71\r\n\r\n" JSON,
		 strlen(POST "Content-Length: 71\r\n\r\n" JSON));
	walk_pass(w, 5);
	v->beats = true;
	expect_answer(c, "200", "[7,8,9]");
	http_hang_up(c);
	walk_destroy(w);
}
