/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON into a buffer of limited size. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "json/write.h"

static const char *escaped(const char *text, size_t n)
{
	static char buffer[256];
	struct json_out out = {buffer, buffer + sizeof(buffer) - 1, false};

	json_put_string(&out, text, (uint32_t)n);
	cr_assert_not(out.full);
	*out.at = '\0';
	return buffer;
}

Test(lb_json_write, strings_are_escaped)
{
	cr_assert_str_eq(escaped("", 0), "\"\"");
	cr_assert_str_eq(escaped("a/b", 3), "\"a/b\"");
	cr_assert_str_eq(escaped("\"\\\b\f\n\r\t", 7), "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
	cr_assert_str_eq(escaped("\0\x01\x1f\x7f", 4), "\"\\u0000\\u0001\\u001f\\u007f\"");
	cr_assert_str_eq(escaped("\xc3\xa9\xf0\x9f\x98\x80", 6), "\"\xc3\xa9\xf0\x9f\x98\x80\"");
}

#define R "\xef\xbf\xbd"

Test(lb_json_write, what_is_not_utf8_is_replaced)
{
	cr_assert_str_eq(escaped("a\xff"
				 "b",
				 3),
			 "\"a" R "b\"");
	cr_assert_str_eq(escaped("\xc3", 1), "\"" R "\"");
	cr_assert_str_eq(escaped("\xe2\x82", 2), "\"" R "\"");
	cr_assert_str_eq(escaped("\xe2\x82\"", 3), "\"" R "\\\"\"");
	cr_assert_str_eq(escaped("\xed\xa0\x80", 3), "\"" R R R "\"");
	cr_assert_str_eq(escaped("\xc3\xc3\xa9", 3), "\"" R "\xc3\xa9\"");
}

Test(lb_json_write, a_byte_never_causes_more_characters_than_said)
{
	for (unsigned int first = 0; first < 256; first++) {
		for (unsigned int second = 0; second < 256; second++) {
			struct json_escape e = {0};
			char buffer[2 * JSON_ESCAPED_MAX];
			struct json_out out = {buffer, buffer + sizeof(buffer), false};
			char *before;

			json_escape_put(&e, &out, (uint8_t)first);
			before = out.at;
			json_escape_put(&e, &out, (uint8_t)second);
			cr_assert(before - buffer <= JSON_ESCAPED_MAX);
			cr_assert(out.at - before <= JSON_ESCAPED_MAX);
		}
	}
}

Test(lb_json_write, a_full_buffer_keeps_what_fits_and_says_so)
{
	char *buffer = malloc(8);
	struct json_out out = {buffer, buffer + 8, false};

	json_put(&out, "[1234,");
	json_put_u64(&out, 567);
	cr_assert(out.full);
	json_put(&out, "8");
	cr_assert_eq(out.at - buffer, 6, "nothing follows what was left out");
	free(buffer);
}

Test(lb_json_write, integers)
{
	char buffer[64];
	struct json_out out = {buffer, buffer + sizeof(buffer), false};

	json_put_u64(&out, UINT64_MAX);
	json_put(&out, ",");
	json_put_i64(&out, INT64_MIN);
	*out.at = '\0';
	cr_assert_str_eq(buffer, "18446744073709551615,-9223372036854775808");
}
