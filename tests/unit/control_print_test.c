/* SPDX-License-Identifier: BSD-3-Clause */
/* Output for people: units, tables, pages. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

struct row {
	enum cli_format format;
	json_int_t value;
	const char *text;
};

static const struct row rows[] = {
	{CLI_PLAIN, 1234567, "1234567"},
	{CLI_COUNT, 0, "0"},
	{CLI_COUNT, 9999, "9999"},
	{CLI_COUNT, 10000, "10.0k"},
	{CLI_COUNT, 99949, "99.9k"},
	{CLI_COUNT, 99960, "100k"},
	{CLI_COUNT, 999499, "999k"},
	{CLI_COUNT, 999500, "1.0M"},
	{CLI_COUNT, 1234567, "1.2M"},
	{CLI_COUNT, 9223372036854775807, "9.2E"},
	{CLI_BYTES, 0, "0 B"},
	{CLI_BYTES, 1023, "1023 B"},
	{CLI_BYTES, 1024, "1.0 KiB"},
	{CLI_BYTES, 3565158, "3.4 MiB"},
	{CLI_BYTES, 1099511627776, "1.0 TiB"},
	{CLI_SECONDS, 59, "59s"},
	{CLI_SECONDS, 61, "1m01s"},
	{CLI_SECONDS, 18180, "5h03m"},
	{CLI_SECONDS, 266400, "3d02h"},
	{CLI_MS, 12, "12 ms"},
	{CLI_MS, 1500, "1.5 s"},
	{CLI_MS, 3600000, "3600 s"},
	{CLI_US, 12, "12 us"},
	{CLI_US, 1234, "1.2 ms"},
	{CLI_US, 2500000, "2.5 s"},
	{CLI_PERCENT, 75, "75%"},
};

Test(control_print, units_keep_three_digits)
{
	for (size_t i = 0; i < CLI_COUNT_OF(rows); i++) {
		char text[CLI_VALUE_MAX];
		json_t *value = json_integer(rows[i].value);

		cr_expect_str_eq(cli_format_value(rows[i].format, value, text, sizeof(text)),
				 rows[i].text);
		json_decref(value);
	}
}

Test(control_print, text_cannot_move_the_cursor)
{
	json_t *value = json_string("a\033[2Jb");
	char text[CLI_VALUE_MAX];

	cr_assert_str_eq(cli_format_value(CLI_TEXT, value, text, sizeof(text)), "a?[2Jb");
	json_decref(value);
}

static const struct cli_column columns[] = {
	{"NAME", "name", CLI_TEXT},
	{"FLOWS", "table.live", CLI_COUNT},
	{"WHY", "why", CLI_TEXT},
};

static void print(FILE *out, struct cli_table *table, const char *json)
{
	json_t *value = json_loads(json, 0, NULL);

	cr_assert_not_null(value);
	cli_table_print(out, table, value);
	json_decref(value);
}

Test(control_print, columns_line_up_and_titles_come_once)
{
	struct cli_table table = {.column = columns, .n = CLI_COUNT_OF(columns)};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	print(out, &table,
	      "[{\"name\":\"a\",\"table\":{\"live\":7},\"why\":\"\"},"
	      "{\"name\":\"gr\\u00fcn-01\",\"table\":{\"live\":1234567}}]");
	print(out, &table, "[{\"name\":\"later\",\"table\":null,\"why\":\"slow\"}]");
	fclose(out);
	cr_assert_str_eq(text, "NAME     FLOWS  WHY\n"
			       "a            7  -\n"
			       "gr\xc3\xbcn-01   1.2M  -\n"
			       "later        -  slow\n");
	free(text);
}

Test(control_print, rows_that_are_text_look_like_rows_that_are_values)
{
	static const char *const text =
		"[[\"a\\u001b[2J\\\"\",1234567,null],[-5,\"x\",99999999999999999999],"
		"[\"gr\xc3\xbcn\",[1],true],[7],[]]";
	struct cli_table as_values = {.column = columns, .n = CLI_COUNT_OF(columns)};
	struct cli_table as_text = as_values;
	json_t *names = json_pack("[s, s, s]", "why", "table.live", "name"),
	       *parsed = json_loads("[[\"a\\u001b[2J\\\"\",1234567,null],[-5,\"x\",null],"
				    "[\"gr\xc3\xbcn\",[1],true],[7],[]]",
				    0, NULL);
	char *values_text, *text_text;
	size_t size;
	FILE *out = open_memstream(&values_text, &size);

	cr_assert_not_null(parsed);
	cli_table_places(&as_values, names);
	cli_table_places(&as_text, names);
	cli_table_print(out, &as_values, parsed);
	fclose(out);
	out = open_memstream(&text_text, &size);
	cr_assert_eq(cli_table_print_text(out, &as_text, (struct scan){text, text + strlen(text)}),
		     5);
	fclose(out);
	cr_assert_str_eq(values_text, text_text);
	cr_assert_not_null(strstr(text_text, "1.2M  a?[2J\"\n"), "%s", text_text);
	free(values_text);
	free(text_text);
	json_decref(names);
	json_decref(parsed);
}

Test(control_print, a_page_has_one_line_per_member)
{
	json_t *value = json_loads("{\"name\":\"a\",\"table\":{\"live\":7},\"why\":true}", 0, NULL);
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cli_page_print(out, columns, CLI_COUNT_OF(columns), value);
	fclose(out);
	cr_assert_str_eq(text, "NAME   a\nFLOWS  7\nWHY    yes\n");
	free(text);
	json_decref(value);
}
