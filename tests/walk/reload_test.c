/* SPDX-License-Identifier: BSD-3-Clause */
/* A running load balancer takes another configuration, with requests on their way. */
#include "grpc_text.h"
#include "lb.h"

static const struct packet ask = {.family = 4, .payload = 100};

#define ECHO(more) WALK_SERVICE("echo", 8000, "echo", more)

static const struct walk_params params = {.services = ECHO("")};

static int reload(struct walk *w, const char *services)
{
	char text[8192];

	walk_yaml(&params, services, text, sizeof(text));
	return walk_reload(w, text);
}

WALK(a_service_that_is_added_serves)
{
	struct walk *w = walk_create(&params);
	struct packet p = {.family = 4, .payload = 9, .destination_port = 8001};

	walk_worker(w, NULL);
	walk_send(w, 0, &p);
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_UNKNOWN_SERVICE, 1});
	walk_need(reload(w, ECHO("") WALK_SERVICE("new", 8001, "echo", "")) == 0, "%s", w->error);
	walk_send(w, 0, &p);
	walk_settle(w);
	walk_expect_echo(w, 0, &p);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(a_service_that_is_taken_out_finishes_what_it_has)
{
	struct walk *w = walk_create(
		&(struct walk_params){.services = ECHO("") WALK_SERVICE("old", 8001, "echo", "")});
	struct walk_worker *v = walk_worker(w, NULL);
	struct packet p = {.family = 4, .payload = 9, .destination_port = 8001}, other = p;

	v->answers = false;
	walk_send(w, 0, &p);
	walk_settle(w);
	walk_need(reload(w, ECHO("")) == 0, "%s", w->error);
	other.source_port = 1234;
	walk_send(w, 0, &other);
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_UNKNOWN_SERVICE, 1});
	walk_answer_all(v);
	walk_settle(w);
	walk_expect_echo(w, 0, &p);
	walk_pass(w, 600);
	walk_expect(walk_flow(w, &p) == NULL);
	walk_expect(!lb_service_used(&lb_config_get(w->lb)->service[1]));
	walk_destroy(w);
}

WALK(a_smaller_queue_keeps_as_many_as_fit)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 2});

	v->answers = false;
	for (int i = 0; i < 8; i++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_eq(walk_service_stats(w, 0).queued, 6);
	walk_need(reload(w, ECHO(", queue: 64")) == 0, "%s", w->error);
	walk_expect_eq(walk_service_stats(w, 0).queued, 6);
	walk_expect_no_drops(w);
	v->answers = true;
	walk_settle(w);
	walk_expect_eq(walk_count(w, 0), 8);
	walk_destroy(w);
}

WALK(what_is_refused_changes_nothing)
{
	static const struct {
		const char *name, *services;
	} rows[] = {
		{"max_request above what a worker takes", ECHO(", max_request: 1472")},
		{"replay where no memory was set aside", ECHO(", replay: 1")},
	};
	struct walk *w = walk_create(&(struct walk_params){.services = ECHO(", max_request: 500")});

	walk_worker(w, &(struct walk_worker_params){.max_request = 500});
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		walk_context("%s", rows[i].name);
		walk_expect(reload(w, rows[i].services) != 0);
		walk_expect(w->error[0] != '\0');
		walk_send(w, 0, &ask);
		walk_settle(w);
		walk_expect_echo(w, 0, &ask);
	}
	walk_destroy(w);
}

WALK(a_bad_file_is_refused_with_its_line)
{
	struct walk *w = walk_create(&params);

	walk_expect(walk_reload(w, "ports: {}\n") != 0);
	walk_expect(strstr(w->error, ":1:") != NULL, "%s", w->error);
	walk_destroy(w);
}

WALK(the_same_file_changes_nothing)
{
	struct walk *w = walk_create(&params);

	walk_worker(w, NULL);
	for (int i = 0; i < 3; i++) {
		walk_need(reload(w, NULL) == 0, "%s", w->error);
		walk_send(w, 0, &ask);
		walk_settle(w);
		walk_expect_echo(w, 0, &ask);
	}
	walk_expect_eq(walk_service_stats(w, 0).requests, 3);
	walk_destroy(w);
}

WALK(another_policy_under_way)
{
	static const char *const more[] = {", policy: maglev",          ", policy: weighted",
					   ", affinity: flow",          ", affinity: sticky",
					   ", policy: earliest-finish", ", framing: datagram"};
	struct walk *w = walk_create(&params);
	struct walk_worker *v = walk_worker(w, NULL);
	char services[256];

	v->answers = false;
	for (size_t i = 0; i < RTE_DIM(more); i++) {
		walk_context("%s", more[i]);
		walk_send(w, 0, &ask);
		walk_settle(w);
		snprintf(services, sizeof(services),
			 "  - {name: echo, address: " PACKET_DESTINATION4
			 ", port: 8000, model: echo%s}\n",
			 more[i]);
		walk_need(reload(w, services) == 0, "%s", w->error);
		walk_answer_all(v);
		walk_settle(w);
		walk_expect_echo(w, 0, &ask);
		walk_expect_no_drops(w);
	}
	walk_destroy(w);
}

WALK(models_come_and_go_with_the_services_that_ask_them)
{
	static struct model_description d;
	struct walk *w = walk_create(
		&(struct walk_params){.services = ECHO("") WALK_SERVICE("old", 8001, "old", "")});
	struct lcore *lc = w->lb->lcore[0];
	struct lb_registration r;
	struct walk_worker *v;

	walk_worker_registration(w, &(struct walk_worker_params){.model = "old"}, &r);
	d = kserve_one_tensor(DATATYPE_UINT8);
	r.worker.description = &d;
	v = walk_worker_register_as(w, &r);
	walk_need(v != NULL && walk_worker_start(v), "%s", w->error);
	walk_expect(lcore_model(lc, "old", 3) != NULL);
	walk_need(reload(w, ECHO("")) == 0, "%s", w->error);
	walk_expect(lcore_model(lc, "old", 3) == NULL);
	walk_need(reload(w, ECHO("") WALK_SERVICE("again", 8002, "old", "")) == 0, "%s", w->error);
	walk_expect(lcore_model(lc, "old", 3) != NULL);
	walk_destroy(w);
}
