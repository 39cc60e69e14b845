/* SPDX-License-Identifier: BSD-3-Clause */
/* Values found in JSON text, and text that is cut off or not JSON. */
#include <criterion/criterion.h>
#include <string.h>

#include "scan_find.h"

struct row {
	const char *object;
	const char *value; /* of member "a"; NULL: not found */
};

static const struct row rows[] = {
	{"{\"a\":1}", "1"},
	{"{ \"a\" : -1.5e3 }", "-1.5e3 "},
	{"{\"b\":[{\"a\":2}],\"a\":[1,[2,3],{\"x\":4}]}", "[1,[2,3],{\"x\":4}]"},
	{"{\"a\":\"]},\\\"\"}", "\"]},\\\"\""},
	{"{\"b\":\"\\\\\",\"a\":null}", "null"},
	{"{\"b\":{\"a\":1},\"c\":\"a\"}", NULL},
	{"{\"aa\":1}", NULL},
	{"{}", NULL},
	{"[]", NULL},
	{"", NULL},
	{"{\"a\"", NULL},
	{"{\"a\":", NULL},
	{"{\"a\":[1,2", NULL},
	{"{\"a\":\"x", NULL},
	{"{\"a\":\"x\\", NULL},
	{"{\"a\":\"\033\"}", NULL},
	{"{\"a\":[\n]}", NULL},
};

Test(control_scan, members_are_found_whole_or_not_at_all)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* a block of the exact size, so that a sanitizer sees a read past the end */
		size_t n = strlen(rows[i].object);
		char *text = memcpy(malloc(n + 1), rows[i].object, n + 1);
		char *exact = memcpy(malloc(n ? n : 1), text, n);
		struct scan value;
		bool found = scan_find((struct scan){exact, exact + n}, "a", &value);

		cr_expect_eq(found, rows[i].value != NULL, "%s", text);
		if (found && rows[i].value)
			cr_expect(strlen(rows[i].value) == (size_t)(value.end - value.at) &&
					  memcmp(value.at, rows[i].value, strlen(rows[i].value)) ==
						  0,
				  "%s gave %.*s", text, (int)(value.end - value.at), value.at);
		free(exact);
		free(text);
	}
}

/* Returns the number of members, or -1 if the object is incomplete or malformed. */
static int members(const char *object)
{
	struct scan rest = {object, object + strlen(object)}, name, value;
	int n = 0;

	while (scan_next_member(&rest, &name, &value))
		n++;
	return scan_object_ended(rest) ? n : -1;
}

Test(control_scan, an_object_ends_with_its_brace)
{
	cr_expect_eq(members("{\"a\":1,\"b\":[2,3]}\n"), 2);
	cr_expect_eq(members("{\"a\":1} \n"), 1);
	cr_expect_eq(members("{}"), 0);
	cr_expect_eq(members("{,}"), -1);
	cr_expect_eq(members("{\"a\":1"), -1);
	cr_expect_eq(members("{\"a\":1}x"), -1);
	cr_expect_eq(members("{\"a\":1,}"), -1);
	cr_expect_eq(members("{\"a\":1,\"b\"}"), -1);
	cr_expect_eq(members("[1]"), -1);
}

static size_t elements(const char *array)
{
	struct scan rest = {array, array + strlen(array)}, value;
	size_t n = 0;

	while (scan_element(&rest, &value))
		n++;
	return n;
}

Test(control_scan, elements_come_one_by_one)
{
	struct scan rest, value;
	const char *array = "[{\"a\":[1,2]}, \"x,]\",3]";

	cr_assert_eq(elements("[]"), 0);
	cr_assert_eq(elements("[ ]"), 0);
	cr_assert_eq(elements("[1]"), 1);
	cr_assert_eq(elements("[[],[],{}]"), 3);
	cr_assert_eq(elements("[1,2"), 2);
	cr_assert_eq(elements("{}"), 0);
	rest = (struct scan){array, array + strlen(array)};
	cr_assert(scan_element(&rest, &value));
	cr_assert_eq(strncmp(value.at, "{\"a\":[1,2]}", (size_t)(value.end - value.at)), 0);
	cr_assert(scan_element(&rest, &value));
	cr_assert_eq(strncmp(value.at, "\"x,]\"", (size_t)(value.end - value.at)), 0);
	cr_assert(scan_element(&rest, &value));
	cr_assert_eq(*value.at, '3');
	cr_assert_not(scan_element(&rest, &value));
}
