/* SPDX-License-Identifier: BSD-3-Clause */
/* Assignment of workers to services. Workers are named by letters, services by their model and
 * rules. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "assign.h"
#include "pool.h"

#define SERVICES 3

static struct worker_pool *pool;
static struct worker_settings *settings;
static struct assign_want want[SERVICES];
static struct assign_result result[SERVICES];
static unsigned int n_services;

static void setup(void)
{
	pool = workers_pool_create();
	settings = workers_settings_create();
}

static void teardown(void)
{
	workers_pool_destroy(pool);
	workers_settings_destroy(settings);
}

TestSuite(workers_assign, .init = setup, .fini = teardown);

static struct worker *add_worker(const char *name, const char *model, const char *host)
{
	struct worker_spec spec = {
		.instance = 1,
		.slots = 64,
		.max_request = 1472,
		.max_reply = 1472,
		.max_batch = 1,
		.weight = 1,
		.heartbeat_ms = 100,
	};
	char error[160] = "";
	struct worker *worker;

	snprintf(spec.name, sizeof(spec.name), "%s", name);
	snprintf(spec.model, sizeof(spec.model), "%s", model);
	if (host != NULL) {
		snprintf(spec.label[0].key, sizeof(spec.label[0].key), "host");
		snprintf(spec.label[0].value, sizeof(spec.label[0].value), "%s", host);
		spec.n_labels = 1;
	}
	worker = workers_register(pool, &spec, error, sizeof(error));
	cr_assert_not_null(worker, "%s", error);
	worker->state = WORKER_ACTIVE;
	return worker;
}

/* One letter each, all of the model m. */
static void add_workers(const char *names)
{
	for (; *names != '\0'; names++)
		add_worker((char[]){*names, '\0'}, "m", NULL);
}

static void set_state(const char *name, enum worker_state state)
{
	workers_find(pool, name)->state = state;
}

static struct assign_want *add_service(const char *name, bool assigned_only)
{
	struct assign_want *service = &want[n_services++];

	*service =
		(struct assign_want){.service = name, .model = "m", .assigned_only = assigned_only};
	return service;
}

/* The names of a set in alphabetical order, e.g. "abd". */
static const char *names(const struct worker_set *set)
{
	static char text[WORKERS_MAX + 1];
	unsigned int n = 0;

	for (char c = 'a'; c <= 'z'; c++) {
		const struct worker *worker = workers_find(pool, (char[]){c, '\0'});

		if (worker != NULL && worker_set_has(set, worker->number))
			text[n++] = c;
	}
	text[n] = '\0';
	return text;
}

static void work_out(void)
{
	workers_assign(pool, settings, want, n_services, result);
}

Test(workers_assign, a_service_has_all_active_workers_of_its_model)
{
	add_workers("abc");
	add_worker("d", "other", NULL);
	set_state("b", WORKER_DRAINING);
	add_service("s", false);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "ac");
}

Test(workers_assign, who_was_released_from_one_service_still_serves_the_others)
{
	add_workers("abc");
	add_service("s", false);
	add_service("t", false);
	workers_settings_pin(settings, "b", "s", ASSIGN_OUT);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "ac");
	cr_assert_str_eq(names(&result[1].in), "abc");
	workers_settings_pin(settings, "b", "s", ASSIGN_AUTO);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "abc");
}

Test(workers_assign, a_service_of_assigned_workers_has_no_others)
{
	add_workers("abc");
	add_worker("d", "other", NULL);
	add_service("s", true);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "");
	workers_settings_pin(settings, "c", "s", ASSIGN_IN);
	workers_settings_pin(settings, "d", "s", ASSIGN_IN); /* of another model */
	work_out();
	cr_assert_str_eq(names(&result[0].in), "c");
}

Test(workers_assign, one_worker_may_be_assigned_to_several_services)
{
	add_workers("ab");
	add_service("s", true);
	add_service("t", true);
	workers_settings_pin(settings, "a", "s", ASSIGN_IN);
	workers_settings_pin(settings, "a", "t", ASSIGN_IN);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "a");
	cr_assert_str_eq(names(&result[1].in), "a");
}

Test(workers_assign, an_assignment_outlives_the_worker)
{
	add_workers("ab");
	add_service("s", true);
	workers_settings_pin(settings, "b", "s", ASSIGN_IN);
	workers_remove(pool, workers_find(pool, "a"));
	workers_remove(pool, workers_find(pool, "b"));
	work_out();
	cr_assert_eq(worker_set_count(&result[0].in), 0);
	add_worker("b", "m", NULL);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "b");
}

Test(workers_assign, spares_step_in_below_the_minimum_and_back_when_not_needed)
{
	struct assign_want *s;

	add_workers("abcdef");
	s = add_service("s", true);
	s->min_workers = 2;
	s->spares = 2;
	workers_settings_pin(settings, "a", "s", ASSIGN_IN);
	workers_settings_pin(settings, "b", "s", ASSIGN_IN);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "ab");
	set_state("a", WORKER_SUSPECT);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "bc");
	cr_assert_str_eq(names(&result[0].spares), "c");
	cr_assert_eq(result[0].soon, 1);
	set_state("a", WORKER_ACTIVE);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "ab");
	cr_assert_eq(worker_set_count(&result[0].spares), 0);
}

Test(workers_assign, no_more_spares_step_in_than_allowed)
{
	struct assign_want *s;

	add_workers("abcdef");
	s = add_service("s", true);
	s->min_workers = 5;
	s->spares = 2;
	work_out();
	cr_assert_str_eq(names(&result[0].in), "ab");
	s->spares = 100;
	work_out();
	cr_assert_str_eq(names(&result[0].in), "abcde");
	s->min_workers = 50;
	work_out();
	cr_assert_str_eq(names(&result[0].in), "abcdef");
}

Test(workers_assign, a_spare_serves_one_service_and_stays_with_it)
{
	struct assign_want *s, *t;

	add_workers("bcd");
	s = add_service("s", true);
	s->min_workers = s->spares = 1;
	t = add_service("t", true);
	t->min_workers = t->spares = 1;
	work_out();
	cr_assert_str_eq(names(&result[0].in), "b");
	cr_assert_str_eq(names(&result[1].in), "c");
	/* a better name changes nothing, and s does not take what t has */
	add_workers("a");
	set_state("b", WORKER_SUSPECT);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "a");
	cr_assert_str_eq(names(&result[1].in), "c");
	set_state("b", WORKER_ACTIVE);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "a");
}

Test(workers_assign, a_spare_that_was_released_stays_out)
{
	struct assign_want *s;

	add_workers("ab");
	s = add_service("s", true);
	s->min_workers = s->spares = 1;
	workers_settings_pin(settings, "a", "s", ASSIGN_OUT);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "b");
}

Test(workers_assign, workers_assigned_elsewhere_are_nobodys_spares)
{
	struct assign_want *s;

	add_workers("ab");
	s = add_service("s", true);
	s->min_workers = s->spares = 2;
	add_service("t", true);
	workers_settings_pin(settings, "a", "t", ASSIGN_IN);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "b");
	cr_assert_str_eq(names(&result[1].in), "a");
}

static void add_hosts(void)
{
	add_worker("a", "m", "h1");
	add_worker("b", "m", "h1");
	add_worker("c", "m", "h1");
	add_worker("d", "m", "h2");
	add_worker("e", "m", "h2");
	add_worker("f", "m", "h3");
}

Test(workers_assign, spread_takes_spares_from_as_many_hosts_as_there_are)
{
	struct assign_want *s;

	add_hosts();
	s = add_service("s", true);
	s->min_workers = s->spares = 3;
	s->placement = ASSIGN_SPREAD;
	work_out();
	cr_assert_str_eq(names(&result[0].in), "adf");
	s->min_workers = s->spares = 4;
	work_out();
	cr_assert_str_eq(names(&result[0].in), "abdf");
}

Test(workers_assign, pack_takes_spares_beside_those_that_serve)
{
	struct assign_want *s;

	add_hosts();
	s = add_service("s", true);
	s->min_workers = 3;
	s->spares = 2;
	s->placement = ASSIGN_PACK;
	workers_settings_pin(settings, "e", "s", ASSIGN_IN);
	work_out();
	cr_assert_str_eq(names(&result[0].in), "ade");
	s->min_workers = 4;
	s->spares = 3;
	work_out();
	/* assigned workers stay; the next one is added */
	cr_assert_str_eq(names(&result[0].in), "abde");
}

Test(workers_assign, requests_may_wait_for_those_that_will_be_in)
{
	add_workers("abcd");
	set_state("a", WORKER_PROBING);
	set_state("b", WORKER_SUSPECT);
	set_state("c", WORKER_JOINING);
	add_service("s", false);
	add_service("t", true);
	workers_settings_pin(settings, "b", "t", ASSIGN_IN);
	work_out();
	cr_assert_eq(result[0].soon, 2);
	cr_assert_eq(result[1].soon, 1);
	cr_assert_str_eq(names(&result[0].in), "d");
}

Test(workers_assign, flows_wait_for_who_is_silent_and_not_for_who_rests)
{
	add_workers("abcd");
	set_state("a", WORKER_SUSPECT);
	set_state("b", WORKER_SUSPECT);
	workers_find(pool, "b")->doubt.ejected = true;
	set_state("c", WORKER_DRAINING);
	add_service("s", false);
	add_service("t", true);
	work_out();
	cr_assert_str_eq(names(&result[0].away), "a");
	cr_assert_str_empty(names(&result[1].away));
	set_state("a", WORKER_ACTIVE);
	work_out();
	cr_assert_str_empty(names(&result[0].away));
}

Test(workers_assign, pins_are_found_changed_and_forgotten)
{
	char worker[16];

	cr_assert_eq(workers_settings_pinned(settings, "a", "s"), ASSIGN_AUTO);
	for (unsigned int i = 0; i < SETTINGS_PINS_MAX; i++) {
		snprintf(worker, sizeof(worker), "w%u", i);
		cr_assert_eq(workers_settings_pin(settings, worker, "s", ASSIGN_IN), 0);
	}
	cr_assert_eq(workers_settings_pin(settings, "x", "s", ASSIGN_IN), -ENOSPC);
	cr_assert_eq(workers_settings_pin(settings, "w7", "s", ASSIGN_OUT), 0);
	cr_assert_eq(workers_settings_pinned(settings, "w7", "s"), ASSIGN_OUT);
	cr_assert_eq(workers_settings_pin(settings, "w7", "s", ASSIGN_AUTO), 0);
	cr_assert_eq(workers_settings_pinned(settings, "w7", "s"), ASSIGN_AUTO);
	cr_assert_eq(workers_settings_pinned(settings, "w4095", "s"), ASSIGN_IN);
	cr_assert_eq(workers_settings_pin(settings, "x", "s", ASSIGN_IN), 0);
	cr_assert_eq(workers_settings_pin(settings, "nobody", "s", ASSIGN_AUTO), 0);
}

/* After any events, each service has only active workers of its model, and no spare too many. */
Test(workers_assign, chance_breaks_no_rule)
{
	static const enum worker_state states[] = {WORKER_ACTIVE, WORKER_ACTIVE, WORKER_SUSPECT,
						   WORKER_DRAINING};
	struct worker_set spares;
	char name[8], host[8];

	srandom(5);
	for (unsigned int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "w%u", i);
		snprintf(host, sizeof(host), "h%u", i / 8);
		add_worker(name, i % 5 == 0 ? "other" : "m", host);
	}
	for (unsigned int i = 0; i < SERVICES; i++) {
		struct assign_want *s = add_service((const char *[]){"s", "t", "u"}[i], i != 1);

		s->min_workers = 10 + 5 * i;
		s->spares = 8;
		s->placement = i == 0 ? ASSIGN_PACK : ASSIGN_SPREAD;
	}
	for (unsigned int round = 0; round < 2000; round++) {
		snprintf(name, sizeof(name), "w%ld", random() % 60);
		if (random() % 4 == 0)
			workers_settings_pin(settings, name, want[random() % SERVICES].service,
					     random() % 3);
		else
			set_state(name, states[random() % 4]);
		work_out();
		memset(&spares, 0, sizeof(spares));
		for (unsigned int s = 0; s < SERVICES; s++) {
			unsigned int n = worker_set_count(&result[s].spares);

			cr_assert_leq(n, want[s].assigned_only ? want[s].spares : 0);
			cr_assert(n == 0 || worker_set_count(&result[s].in) <= want[s].min_workers);
			for (unsigned int i = 0; i < 60; i++) {
				const struct worker *w = workers_get(pool, i);

				if (worker_set_has(&result[s].spares, i)) {
					cr_assert_not(worker_set_has(&spares, i));
					cr_assert(worker_set_has(&result[s].in, i));
					worker_set_add(&spares, i);
				}
				if (!worker_set_has(&result[s].in, i))
					continue;
				cr_assert_eq(w->state, WORKER_ACTIVE);
				cr_assert_str_eq(w->spec.model, "m");
				cr_assert_neq(workers_settings_pinned(settings, w->spec.name,
								      want[s].service),
					      ASSIGN_OUT);
			}
		}
	}
}

Test(workers_assign, a_thousand_workers_and_hundreds_of_spares_take_no_time, .timeout = 10)
{
	struct assign_want *s;
	char name[8], host[8];

	for (unsigned int i = 0; i < WORKERS_MAX; i++) {
		snprintf(name, sizeof(name), "w%u", i);
		snprintf(host, sizeof(host), "h%u", i);
		add_worker(name, "m", host);
	}
	s = add_service("s", true);
	s->min_workers = s->spares = 600;
	for (unsigned int i = 0; i < 50; i++) {
		set_state((char[]){'w', (char)('0' + i % 10), '\0'}, WORKER_SUSPECT);
		work_out();
		cr_assert_eq(worker_set_count(&result[0].in), 600);
		set_state((char[]){'w', (char)('0' + i % 10), '\0'}, WORKER_ACTIVE);
	}
}
