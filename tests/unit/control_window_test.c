/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates and percentiles of the last second, and the status that shows them. */
#include <criterion/criterion.h>
#include <string.h>

#include "control_fake_lb.h"
#include "server/rpc.h"
#include "view/view.h"

static struct lb *lb;
static struct window *w;

static void set_up(void)
{
	fake_eal();
	lb = fake_lb_create();
	w = window_create();
}

static void tear_down(void)
{
	window_destroy(w);
	fake_lb_destroy(lb);
}

TestSuite(control_window, .init = set_up, .fini = tear_down, .timeout = 60);

/* <n> replies that ran for <ns>. */
static void replies(uint64_t n, uint64_t ns)
{
	struct latency *l = fake_lb_latency(lb);

	l->bucket[LATENCY_RUN][latency_bucket(ns)] += n;
	l->sum_ns[LATENCY_RUN] += n * ns;
}

Test(control_window, one_sample_tells_nothing)
{
	struct worker *worker = fake_lb_worker(lb, "gpu0");

	window_sample(w, lb, 5000);
	cr_expect_eq(window_ms(w), 0);
	cr_expect_null(window_service(w, 0));
	cr_expect_null(window_lcore(w, 0));
	cr_expect_null(window_worker(w, worker));
}

Test(control_window, percentiles_are_those_of_the_last_second_only)
{
	const struct window_service *s;

	replies(1000, 9000000);
	window_sample(w, lb, 5000);
	replies(98, 100000);
	replies(2, 4000000);
	window_sample(w, lb, 6000);
	s = window_service(w, 0);
	cr_assert_not_null(s);
	cr_expect_eq(s->part[LATENCY_RUN].count, 100);
	cr_expect_float_eq(s->part[LATENCY_RUN].p50, 100, 3.5);
	cr_expect_float_eq(s->part[LATENCY_RUN].p99, 4000, 130);
	cr_expect_float_eq(s->part[LATENCY_RUN].mean, 178, 0.01);
	window_sample(w, lb, 7000);
	cr_expect_eq(window_service(w, 0)->part[LATENCY_RUN].count, 0);
}

Test(control_window, rates_are_per_second_however_late_the_sample_is)
{
	fake_lb_count(lb, 100);
	window_sample(w, lb, 5000);
	fake_lb_count(lb, 400);
	window_sample(w, lb, 5500);
	cr_expect_eq(window_service(w, 1)->requests, 600);
	cr_expect_eq(window_lcore(w, 0)->requests, 600);
	window_sample(w, lb, 5500);
	cr_expect_eq(window_ms(w), 500, "a sample in no time counted");
}

Test(control_window, new_flows_per_second_are_of_each_lcore)
{
	for (uint32_t n = 0; n < 10; n++)
		fake_lb_flow(lb, 0, n, 0, NULL);
	window_sample(w, lb, 5000);
	cr_expect_null(window_lcore(w, 0), "one sample is no rate");
	for (uint32_t n = 10; n < 1010; n++)
		fake_lb_flow(lb, n % 4 == 0, n, 0, NULL);
	window_sample(w, lb, 5000); /* too soon: nothing to divide by */
	window_sample(w, lb, 7000);
	cr_expect_eq(window_lcore(w, 0)->new_flows, 375);
	cr_expect_eq(window_lcore(w, 1)->new_flows, 125);
	window_sample(w, lb, 8000);
	cr_expect_eq(window_lcore(w, 0)->new_flows, 0);
}

Test(control_window, a_service_that_takes_anothers_number_starts_anew)
{
	uint8_t family = fake_lb_config(lb)->service[0].vip.family;

	window_sample(w, lb, 1000);
	window_sample(w, lb, 2000);
	cr_assert_not_null(window_service(w, 0));
	fake_lb_config(lb)->service[0].vip.family = 0; /* a free place */
	window_sample(w, lb, 3000);
	cr_expect_null(window_service(w, 0));
	fake_lb_config(lb)->service[0].vip.family = family;
	window_sample(w, lb, 4000);
	cr_expect_null(window_service(w, 0));
	window_sample(w, lb, 5000);
	cr_expect_not_null(window_service(w, 0));
}

Test(control_window, a_worker_that_takes_anothers_place_starts_anew)
{
	struct worker *worker = fake_lb_worker(lb, "gpu0");

	window_sample(w, lb, 1000);
	window_sample(w, lb, 2000);
	cr_assert_not_null(window_worker(w, worker));
	fake_lb_kill(lb, worker);
	worker = fake_lb_worker(lb, "gpu1");
	cr_expect_null(window_worker(w, worker));
	window_sample(w, lb, 3000);
	cr_expect_null(window_worker(w, worker));
	window_sample(w, lb, 4000);
	cr_expect_not_null(window_worker(w, worker));
}

static json_t *status(void)
{
	const struct view view = {.lb = lb, .window = w, .start_ms = clock_now_ms()};
	struct text text = {0};
	json_t *value;

	view_status(&view, &text);
	value = json_loadb(text.data, text.n, JSON_REJECT_DUPLICATES, NULL);
	cr_assert_not_null(value, "no JSON: %.*s", (int)text.n, text.data);
	text_free(&text);
	return value;
}

Test(control_window, status_without_workers_or_samples_is_complete)
{
	json_t *s = status();

	cr_expect_eq(json_array_size(json_object_get(s, "services")), 3);
	cr_expect_eq(json_array_size(json_object_get(s, "workers")), 0);
	cr_expect_eq(json_array_size(json_object_get(s, "lcores")), 2);
	json_decref(s);
}

Test(control_window, status_tells_of_workers_and_escapes_what_they_are_called)
{
	struct worker *worker = fake_lb_worker(lb, "gpu0");
	json_t *s, *row;

	snprintf(worker->spec.model, sizeof(worker->spec.model), "<b>\"\\\x01\xff");
	snprintf(worker->reason, sizeof(worker->reason), "line\nline");
	fake_lb_outstanding(lb, worker, 7);
	s = status();
	row = json_array_get(json_object_get(s, "workers"), 0);
	cr_expect_str_eq(json_string_value(json_object_get(row, "model")), "<b>\"\\??");
	cr_expect_str_eq(json_string_value(json_object_get(row, "state")), "active");
	cr_expect_eq(json_integer_value(json_object_get(row, "outstanding")), 7);
	json_decref(s);
}
