/* SPDX-License-Identifier: BSD-3-Clause */
/* flows.list and flows.count over real tables. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control_fake_lb.h"
#include "control_say.h"

static struct lb *lb;
static struct control_connection connection;

static void set_up(void)
{
	fake_eal();
	lb = fake_lb_create();
	connection = (struct control_connection){.lb = lb, .role = CONTROL_OPERATOR};
}

static void tear_down(void)
{
	fake_lb_destroy(lb);
}

TestSuite(control_flow, .init = set_up, .fini = tear_down);

/* Call with <filter> ("" or "\"service\":\"chat\",") and a cursor; the result. */
static json_t *call(const char *method, const char *filter, json_int_t cursor)
{
	char line[512];
	json_t *reply, *result;

	snprintf(line, sizeof(line),
		 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s\"cursor\":%lld}}",
		 method, filter, (long long)cursor);
	reply = control_say(&connection, line, strlen(line));
	result = json_incref(json_object_get(reply, "result"));
	json_decref(reply);
	return result;
}

/* All pages as one array; <calls> counts them. */
static json_t *all_rows(const char *filter, unsigned int *calls)
{
	json_t *rows = json_array();
	json_int_t cursor = 0;
	bool done = false;

	for (*calls = 0; !done; ++*calls) {
		json_t *page = call("flows.list", filter, cursor);

		cr_assert_not_null(page, "%s is not understood", filter);
		json_array_extend(rows, json_object_get(page, "flows"));
		cursor = json_integer_value(json_object_get(page, "cursor"));
		done = json_is_true(json_object_get(page, "done"));
		json_decref(page);
	}
	return rows;
}

static void expect_rows(const char *filter, size_t n)
{
	unsigned int calls;
	json_t *rows = all_rows(filter, &calls);

	cr_assert_eq(json_array_size(rows), n, "%s gave %zu rows, not %zu", filter,
		     json_array_size(rows), n);
	json_decref(rows);
}

Test(control_flow, pages_show_each_flow_once)
{
	json_t *rows, *seen = json_object();
	unsigned int calls;

	for (uint32_t n = 0; n < 1000; n++)
		fake_lb_flow(lb, n % 2, n, 0, NULL);
	rows = all_rows("\"limit\":7,", &calls);
	cr_assert_eq(json_array_size(rows), 1000);
	cr_assert_geq(calls, 1000 / 7);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		json_t *client = json_object_get(json_array_get(rows, i), "client");
		char key[128];

		/* client ports of IPv6 flows are alike, but not with the address */
		snprintf(key, sizeof(key), "%s", json_string_value(client));
		cr_assert_null(json_object_get(seen, key), "%s is there twice", key);
		json_object_set(seen, key, client);
	}
	json_decref(seen);
	json_decref(rows);
}

Test(control_flow, filters_choose_by_service_worker_and_client)
{
	struct worker *a = fake_lb_worker(lb, "a"), *b = fake_lb_worker(lb, "b");

	/* even numbers are IPv4, 10.0.0.n; odd ones IPv6 */
	for (uint32_t n = 0; n < 100; n++)
		fake_lb_flow(lb, 0, n, n < 30 ? 0 : 1, n < 60 ? a : b);
	expect_rows("", 100);
	expect_rows("\"service\":\"chat\",", 30);
	expect_rows("\"service\":\"vision\",\"worker\":\"a\",", 30);
	expect_rows("\"worker\":\"b\",", 40);
	expect_rows("\"client\":\"10.0.0.4\",", 1);
	expect_rows("\"client\":\"10.0.0.4/32\",", 1);
	expect_rows("\"client\":\"10.0.0.0/28\",", 8);
	expect_rows("\"client\":\"10.0.0.0/29\",\"limit\":1,", 4);
	expect_rows("\"client\":\"10.0.0.0/0\",", 50);
	expect_rows("\"client\":\"::/0\",", 50);
	expect_rows("\"client\":\"2001:db8::/32\",", 50);
	expect_rows("\"client\":\"2001:db9::/32\",", 0);
	expect_rows("\"client\":\"192.0.2.1\",", 0);
}

Test(control_flow, a_row_says_who_where_and_how_much)
{
	struct worker *worker = fake_lb_worker(lb, "gpu0");
	struct flow *flow = fake_lb_flow(lb, 1, 2, 0, worker);
	unsigned int calls;
	json_t *rows, *expected;

	for (int i = 0; i < 10; i++)
		conntrack_count_in(flow, 1472);
	for (int i = 0; i < 9; i++)
		conntrack_count_request(flow);
	for (int i = 0; i < 8; i++)
		conntrack_count_out(fake_lb_conntrack(lb, 1), flow, 512);
	flow->last_seen += 4000;
	fake_lb_at(lb, 107500);
	expected = json_pack("[{s:i, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i}]",
			     "lcore", 1, "client", "10.0.0.2:1026", "service", "chat", "worker",
			     "gpu0", "state", conntrack_state_name(FLOW_UDP_ONE_WAY), "age_s", 7,
			     "idle_s", 3, "packets_in", 10, "bytes_in", 14720, "requests", 9,
			     "packets_out", 8, "bytes_out", 4096);
	rows = all_rows("", &calls);
	cr_assert(json_equal(rows, expected), "%s", json_dumps(rows, 0));
	json_decref(rows);
	json_decref(expected);
}

Test(control_flow, a_worker_that_left_is_not_shown_as_the_one_that_took_its_number)
{
	struct worker *old = fake_lb_worker(lb, "old");
	unsigned int calls;
	json_t *rows;

	fake_lb_flow(lb, 0, 2, 0, old);
	fake_lb_kill(lb, old);
	cr_assert_eq(fake_lb_worker(lb, "new")->number, old->number);
	rows = all_rows("", &calls);
	cr_assert_str_eq(json_string_value(json_object_get(json_array_get(rows, 0), "worker")),
			 "-");
	json_decref(rows);
	expect_rows("\"worker\":\"new\",", 0);
}

Test(control_flow, a_clock_behind_the_owners_makes_no_ages_of_weeks)
{
	unsigned int calls;
	json_t *rows;

	fake_lb_flow(lb, 0, 1, 0, NULL);
	fake_lb_at(lb, 99990);
	rows = all_rows("", &calls);
	cr_assert_eq(json_integer_value(json_object_get(json_array_get(rows, 0), "age_s")), 0);
	cr_assert_eq(json_integer_value(json_object_get(json_array_get(rows, 0), "idle_s")), 0);
	json_decref(rows);
}

Test(control_flow, counts_agree_with_lists)
{
	json_t *page;

	for (uint32_t n = 0; n < 3000; n++)
		fake_lb_flow(lb, n % 2, n, n % 3 == 0, NULL);
	page = call("flows.count", "", 0);
	cr_assert_eq(json_integer_value(json_object_get(page, "count")), 3000);
	cr_assert(json_is_true(json_object_get(page, "done")));
	json_decref(page);
	page = call("flows.count", "\"service\":\"vision\",", 0);
	cr_assert_eq(json_integer_value(json_object_get(page, "count")), 1000);
	json_decref(page);
	expect_rows("\"service\":\"vision\",\"limit\":100,", 1000);
}
