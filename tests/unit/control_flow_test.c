/* SPDX-License-Identifier: BSD-3-Clause */
/* flows.list, flows.count and flows.top over real tables. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conntrack_fixture.h"
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

/* Returns the result of a call with <filter> ("" or "\"service\":\"chat\",") and a cursor. */
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

/* Returns all pages as one array, and the number of calls in <calls>. */
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
	expected = json_pack("[{s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i}]",
			     "lcore", 1, "client", "10.0.0.2:1026", "zone", "front", "service", "chat", "worker",
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

Test(control_flow, filters_choose_by_state_bytes_and_silence)
{
	for (uint32_t n = 0; n < 100; n++) {
		struct flow *flow = fake_lb_flow(lb, 0, n, 0, NULL);

		flow->state = n < 20 ? FLOW_UDP_ESTABLISHED : FLOW_UDP_ONE_WAY;
		flow->bytes_in = n;
		conntrack_count_out(fake_lb_conntrack(lb, 0), flow, 10);
		flow->last_seen += n * 100;
	}
	fake_lb_at(lb, 110000);
	expect_rows("\"state\":\"udp-established\",", 20);
	expect_rows("\"state\":\"udp-answered\",", 0);
	expect_rows("\"min_bytes\":100,", 10);
	expect_rows("\"min_bytes\":109,", 1);
	/* flow n has been silent for 10 s less n tenths */
	expect_rows("\"min_idle_s\":10,", 1);
	expect_rows("\"min_idle_s\":9,", 11);
	expect_rows("\"min_idle_s\":9,\"min_bytes\":20,\"state\":\"udp-established\",", 1);
}

/* Two tenants with the same addresses: the fixture's port is the first, so a VLAN id is its zone. */
Test(control_flow, flows_say_and_are_chosen_by_their_zone)
{
	unsigned int calls;
	json_t *rows;

	for (uint16_t vlan = 0; vlan < 3; vlan++)
		for (uint32_t n = 0; n < 10u + vlan; n++) {
			struct flow_key key = fixture_key4(n);
			struct conntrack *ct = fake_lb_conntrack(lb, 0);

			key.zone = vlan;
			cr_assert_not_null(conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key),
								 FLOW_UDP_ONE_WAY, 0, 0));
		}
	expect_rows("\"zone\":\"front\",", 10);
	expect_rows("\"zone\":\"front.1\",", 11);
	expect_rows("\"zone\":\"front.2\",", 12);
	expect_rows("\"zone\":\"front.3\",", 0);
	rows = all_rows("\"zone\":\"front.2\",", &calls);
	cr_assert_str_eq(json_string_value(json_object_get(json_array_get(rows, 5), "zone")),
			 "front.2");
	json_decref(rows);
}

/* The flows of <flow>, an array. */
static json_t *shown(const char *flow)
{
	json_t *page, *rows;
	char params[128];

	snprintf(params, sizeof(params), "\"flow\":\"%s\",", flow);
	page = call("flows.show", params, 0);
	cr_assert(json_is_true(json_object_get(page, "done")), "%s", flow);
	rows = json_incref(json_object_get(page, "flows"));
	json_decref(page);
	return rows;
}

static void expect_shown(const char *flow, size_t n)
{
	json_t *rows = shown(flow);

	cr_assert_eq(json_array_size(rows), n, "%s gave %zu rows, not %zu", flow,
		     json_array_size(rows), n);
	json_decref(rows);
}

Test(control_flow, one_client_is_shown_with_what_its_lcore_knows)
{
	json_t *rows, *tcp;

	for (uint32_t n = 0; n < 10; n++)
		fake_lb_flow(lb, n % 2, n, 0, NULL)->state = n < 6 ? FLOW_TCP_OPEN
								   : FLOW_UDP_ONE_WAY;
	rows = shown("10.0.0.4:1028");
	cr_assert_eq(json_array_size(rows), 1);
	tcp = json_object_get(json_array_get(rows, 0), "tcp");
	cr_assert_str_eq(json_string_value(json_object_get(tcp, "state")), "established");
	cr_assert_str_eq(json_string_value(json_object_get(tcp, "phase")), "recovery");
	cr_assert_eq(json_integer_value(json_object_get(tcp, "cwnd")), 14480);
	cr_assert_eq(json_integer_value(json_object_get(tcp, "open_requests")), 2);
	cr_assert(json_is_true(json_object_get(tcp, "sack")));
	json_decref(rows);
	rows = shown("10.0.0.6:1030");
	cr_assert(json_is_null(json_object_get(json_array_get(rows, 0), "tcp")));
	json_decref(rows);
	expect_shown("10.0.0.4:1029", 0);
	expect_shown("10.0.0.4:1028,198.51.100.1:8000", 1);
	expect_shown("10.0.0.4:1028,198.51.100.1:8001", 0);
	expect_shown("10.0.0.4:1028,198.51.100.2:8000", 0);
	expect_shown("[2001:db8::300:0]:4000", 1);
}

Test(control_flow, compact_rows_say_the_same_as_objects)
{
	struct worker *worker = fake_lb_worker(lb, "gpu0");
	json_t *page, *names, *rows, *objects;
	unsigned int calls;

	for (uint32_t n = 0; n < 10; n++)
		fake_lb_flow(lb, n % 2, n, n % 3, n % 4 ? worker : NULL)->bytes_in = n << 30;
	objects = all_rows("", &calls);
	rows = all_rows("\"compact\":true,", &calls);
	page = call("flows.list", "\"compact\":true,", 0);
	names = json_object_get(page, "columns");
	cr_assert_eq(json_array_size(rows), 10);
	for (size_t i = 0; i < 10; i++) {
		json_t *row = json_array_get(rows, i), *object = json_object();

		cr_assert_eq(json_array_size(row), json_array_size(names));
		for (size_t c = 0; c < json_array_size(row); c++)
			json_object_set(object, json_string_value(json_array_get(names, c)),
					json_array_get(row, c));
		cr_assert(json_equal(object, json_array_get(objects, i)), "%s", json_dumps(row, 0));
		json_decref(object);
	}
	json_decref(page);
	json_decref(rows);
	json_decref(objects);
}

Test(control_flow, names_with_quotes_stay_valid_json)
{
	unsigned int calls;
	json_t *rows;

	snprintf(fake_lb_config(lb)->service[0].name, LB_NAME_MAX, "a\"\\b\xc3");
	fake_lb_flow(lb, 0, 1, 0, NULL);
	rows = all_rows("", &calls);
	cr_assert_str_eq(json_string_value(json_object_get(json_array_get(rows, 0), "service")),
			 "a\"\\b?");
	json_decref(rows);
}

/* Returns the count over all pages, and <groups> by name if the filter groups. */
static json_int_t count(struct lb *of, const char *filter, json_t *groups, unsigned int *calls)
{
	json_int_t sum = 0, cursor = 0;
	bool done = false;

	connection.lb = of;
	for (*calls = 0; !done; ++*calls) {
		json_t *page = call("flows.count", filter, cursor), *group;
		size_t i;

		cr_assert_not_null(page, "%s is not understood", filter);
		sum += json_integer_value(json_object_get(page, "count"));
		json_array_foreach (json_object_get(page, "groups"), i, group) {
			const char *name = json_string_value(json_object_get(group, "name"));
			json_int_t n = json_integer_value(json_object_get(group, "count"));

			n += json_integer_value(json_object_get(groups, name));
			json_object_set_new(groups, name, json_integer(n));
		}
		cursor = json_integer_value(json_object_get(page, "cursor"));
		done = json_is_true(json_object_get(page, "done"));
		json_decref(page);
	}
	connection.lb = lb;
	return sum;
}

static void expect_groups(const char *filter, json_t *expected)
{
	json_t *groups = json_object();
	unsigned int calls;

	count(lb, filter, groups, &calls);
	cr_assert(json_equal(groups, expected), "%s gave %s", filter, json_dumps(groups, 0));
	json_decref(groups);
	json_decref(expected);
}

Test(control_flow, counts_by_service_worker_and_state)
{
	struct worker *a = fake_lb_worker(lb, "a"), *b = fake_lb_worker(lb, "b");

	for (uint32_t n = 0; n < 1000; n++)
		fake_lb_flow(lb, n % 2, n, n % 4 == 0,
			     n < 100   ? NULL
			     : n < 400 ? a
				       : b)
			->state = n < 700 ? FLOW_UDP_ONE_WAY : FLOW_UDP_ESTABLISHED;
	expect_groups("\"by\":\"service\",", json_pack("{s:i, s:i}", "chat", 750, "vision", 250));
	expect_groups("\"by\":\"worker\",",
		      json_pack("{s:i, s:i, s:i}", "-", 100, "a", 300, "b", 600));
	expect_groups("\"by\":\"state\",\"worker\":\"b\",",
		      json_pack("{s:i, s:i}", "udp-one-way", 300, "udp-established", 300));
	fake_lb_kill(lb, a);
	expect_groups("\"by\":\"worker\",", json_pack("{s:i, s:i}", "-", 400, "b", 600));
}

/* Returns the best <limit> by merging all pages, as the CLI does. */
static json_t *top(const char *by, unsigned int limit)
{
	json_int_t cursor = 0, above = -1;
	json_t *best = json_array();
	bool done = false;

	while (!done) {
		char filter[128];
		json_t *page, *rows;

		snprintf(filter, sizeof(filter), "\"by\":\"%s\",\"limit\":%u,", by, limit);
		if (above >= 0)
			snprintf(filter + strlen(filter), 40, "\"above\":%lld,", (long long)above);
		page = call("flows.top", filter, cursor);
		rows = json_object_get(page, "flows");
		cr_assert_leq(json_array_size(rows), limit);
		for (size_t i = 0, at = 0; i < json_array_size(rows); i++, at++) {
			json_t *row = json_array_get(rows, i);
			json_int_t value = json_integer_value(json_object_get(row, "value"));

			cr_assert_gt(value, above);
			while (at < json_array_size(best) &&
			       json_integer_value(
				       json_object_get(json_array_get(best, at), "value")) >= value)
				at++;
			json_array_insert(best, at, row);
		}
		while (json_array_size(best) > limit)
			json_array_remove(best, json_array_size(best) - 1);
		if (json_array_size(best) == limit)
			above = json_integer_value(
				json_object_get(json_array_get(best, limit - 1), "value"));
		cursor = json_integer_value(json_object_get(page, "cursor"));
		done = json_is_true(json_object_get(page, "done"));
		json_decref(page);
	}
	return best;
}

static void expect_top(const char *by, unsigned int limit, json_int_t first, json_int_t step)
{
	json_t *rows = top(by, limit);

	cr_assert_eq(json_array_size(rows), limit);
	for (unsigned int i = 0; i < limit; i++)
		cr_assert_eq(json_integer_value(json_object_get(json_array_get(rows, i), "value")),
			     first - (json_int_t)i * step, "%s, place %u", by, i);
	json_decref(rows);
}

Test(control_flow, top_finds_the_largest_of_all_tables_in_order)
{
	for (uint32_t n = 0; n < 4000; n++) {
		/* a permutation, so that they do not come in order */
		uint32_t rank = (uint32_t)(n * 2711ull % 4000);
		struct flow *flow = fake_lb_flow(lb, n % 2, n, 0, NULL);

		flow->bytes_in = rank;
		conntrack_count_out(fake_lb_conntrack(lb, n % 2), flow, rank);
		flow->packets_in_low = 5000 - rank;
		flow->requests_low = 3 * rank;
	}
	expect_top("bytes", 1, 7998, 2);
	expect_top("bytes", 20, 7998, 2);
	expect_top("packets", 1000, 5001, 1);
	expect_top("requests", 999, 11997, 3);
}

Test(control_flow, top_of_few_or_equal_flows_shows_no_more_than_there_are)
{
	json_t *rows, *page;

	for (uint32_t n = 0; n < 10; n++)
		fake_lb_flow(lb, n % 2, n, 0, NULL)->bytes_in = 7;
	rows = top("bytes", 20);
	cr_assert_eq(json_array_size(rows), 10);
	json_decref(rows);
	rows = top("bytes", 3);
	cr_assert_eq(json_array_size(rows), 3);
	json_decref(rows);
	page = call("flows.top", "\"above\":7,", 0);
	cr_assert_eq(json_array_size(json_object_get(page, "flows")), 0);
	json_decref(page);
}

Test(control_flow, a_step_through_a_large_table_ends_long_before_the_table_does)
{
	struct lb *large = fake_lb_create_sized(100000);
	json_t *groups = json_object();
	unsigned int calls;

	for (uint32_t n = 0; n < 200000; n++)
		fake_lb_flow(large, n % 2, n, 0, NULL);
	cr_assert_eq(count(large, "\"min_bytes\":0,\"by\":\"state\",", groups, &calls), 200000);
	cr_assert_gt(calls, 2);
	/* without a filter the tables know the count */
	cr_assert_eq(count(large, "", NULL, &calls), 200000);
	cr_assert_eq(calls, 1);
	json_decref(groups);
	fake_lb_destroy(large);
}

Test(control_flow, counts_agree_with_lists)
{
	unsigned int calls;

	for (uint32_t n = 0; n < 3000; n++)
		fake_lb_flow(lb, n % 2, n, n % 3 == 0, NULL);
	cr_assert_eq(count(lb, "", NULL, &calls), 3000);
	cr_assert_eq(calls, 1);
	cr_assert_eq(count(lb, "\"service\":\"vision\",", NULL, &calls), 1000);
	expect_rows("\"service\":\"vision\",\"limit\":100,", 1000);
}
