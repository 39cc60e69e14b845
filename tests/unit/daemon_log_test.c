/* SPDX-License-Identifier: BSD-3-Clause */
/* The log sink writes each message as one line that no reader can misread. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <jansson.h>

#include "runtime/log_line.h"

static char out[LOG_LINE_MAX + 1];

static const char *line_of(enum log_format format, int level, const char *text, size_t length)
{
	const struct log_line line = {
		.time = {.tv_sec = 1795327200, .tv_nsec = 12345678},
		.level = level,
		.text = text,
		.length = length,
	};

	out[log_line_write(format, &line, out)] = '\0';
	return out;
}

#define TIME "2026-11-22T06:00:00.012345Z"
#define HEAD "{\"time\":\"" TIME "\",\"level\":\"notice\",\"module\":\"lb\""

static const struct row {
	const char *text, *expect[LOG_FORMATS];
} rows[] = {
	{"lb: serving control=/run/x agents_port=4790",
	 {" notice lb: serving control=/run/x agents_port=4790\n",
	  " module=lb msg=serving control=/run/x agents_port=4790\n",
	  ",\"msg\":\"serving\",\"control\":\"/run/x\",\"agents_port\":4790}\n"}},
	{"lb: worker=w1 state=gone reason=\"no heartbeat for 500 ms\"",
	 {" lb: worker=w1 state=gone reason=\"no heartbeat for 500 ms\"\n",
	  " module=lb worker=w1 state=gone reason=\"no heartbeat for 500 ms\"\n",
	  HEAD ",\"worker\":\"w1\",\"state\":\"gone\",\"reason\":\"no heartbeat for 500 ms\"}\n"}},
	/* pairs in the middle of words stay there, too */
	{"lb: port=a has queues=1 for lcores=2, so lcores hand over",
	 {" lb: port=a has queues=1 for lcores=2, so lcores hand over\n",
	  " msg=\"has queues=1 for lcores=2, so lcores hand over\" port=a queues=1 lcores=2\n",
	  ",\"msg\":\"has queues=1 for lcores=2, so lcores hand over\",\"port\":\"a\","
	  "\"queues\":1,\"lcores\":2}\n"}},
	/* empty values, and values that only look like numbers */
	{"lb: a=\"\" b= c=007 d=1234567890123456 e=-1 f=0",
	 {" lb: a=\"\" b= c=007",
	  " module=lb msg=\"b=\" a=\"\" c=007 d=1234567890123456 e=-1 f=0\n",
	  HEAD ",\"msg\":\"b=\",\"a\":\"\",\"c\":\"007\",\"d\":\"1234567890123456\","
	       "\"e\":\"-1\",\"f\":0}\n"}},
	/* names that every line has */
	{"lb: level=3 msg=x time=y module=z",
	 {" notice lb: level=3", " module=lb level_=3 msg_=x time_=y module_=z\n",
	  HEAD ",\"level_\":3,\"msg_\":\"x\",\"time_\":\"y\",\"module_\":\"z\"}\n"}},
	/* a name that comes twice, a quote that does not end */
	{"lb: a=1 a=2 b=\"open",
	 {" lb: a=1 a=2 b=\"open\n", " msg=\"a=2 b=\\\"open\" a=1\n",
	  HEAD ",\"msg\":\"a=2 b=\\\"open\",\"a\":1}\n"}},
	/* control characters, a backslash, a line break that begins no second line */
	{"lb: x\x1b[31m\ty\\z\x7f key=a\rb",
	 {" lb: x\\u001b[31m\\ty\\z\\u007f key=a\\u000db\n",
	  " msg=\"x\\u001b[31m\\ty\\\\z\\u007f\" key=\"a\\u000db\"\n",
	  HEAD ",\"msg\":\"x\\u001b[31m\\ty\\\\z\\u007f\",\"key\":\"a\\u000db\"}\n"}},
	/* UTF-8, and bytes that are not: too long, half a pair, cut off */
	{"lb: gr\xc3\xbc\xc3\x9f \xc0\xaf \xed\xa0\x80 \xf5 \xe2\x82",
	 {" lb: gr\xc3\xbc\xc3\x9f \xef\xbf\xbd\xef\xbf\xbd ",
	  " msg=\"gr\xc3\xbc\xc3\x9f \xef\xbf\xbd\xef\xbf\xbd ",
	  ",\"msg\":\"gr\xc3\xbc\xc3\x9f \xef\xbf\xbd\xef\xbf\xbd "
	  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\"}\n"}},
	/* line separators of Unicode, C1 control characters */
	{"lb: a\xe2\x80\xa8"
	 "b\xc2\x85",
	 {" lb: a\\u2028b\\u0085\n", " msg=\"a\\u2028b\\u0085\"\n",
	  ",\"msg\":\"a\\u2028b\\u0085\"}\n"}},
	/* a message that names no module is DPDK's */
	{"af_packet_init(): no such interface",
	 {" notice af_packet_init(): no such interface\n",
	  " module=dpdk msg=\"af_packet_init(): no such interface\"\n",
	  "\"module\":\"dpdk\",\"msg\":\"af_packet_init(): no such interface\"}\n"}},
	{"", {" notice \n", " level=notice module=dpdk\n", "\"module\":\"dpdk\"}\n"}},
};

Test(daemon_log, writes_messages_in_all_formats)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned int f = 0; f < LOG_FORMATS; f++)
			cr_expect(strstr(line_of(f, 6, rows[i].text, strlen(rows[i].text)),
					 rows[i].expect[f]) != NULL,
				  "'%s' in %s is %s", rows[i].text, log_format_names[f], out);
}

Test(daemon_log, begins_with_time_and_level)
{
	cr_expect_str_eq(line_of(LOG_FORMAT_TEXT, 4, "lb: x", 5), TIME " error lb: x\n");
	cr_expect_str_eq(line_of(LOG_FORMAT_LOGFMT, 8, "lb: x", 5),
			 "time=" TIME " level=debug module=lb msg=x\n");
}

Test(daemon_log, knows_levels_by_name)
{
	for (int level = 1; level <= 8; level++)
		cr_expect_eq(log_level_number(log_level_name(level)), level);
	cr_expect_eq(log_level_number("loud"), -1);
	cr_expect_str_eq(log_level_name(99), "debug");
}

/* Makes a text of bytes that matter here and of any others. */
static size_t make_text(char *text, size_t max)
{
	static const char liked[] = " =\"\\:,ab_.\n\t\x1b\x80\xc3\xbc\xe2\xed\xf0\xff{}";
	size_t n = (size_t)rand() % max;

	for (size_t i = 0; i < n; i++)
		text[i] = rand() % 8 ? liked[(size_t)rand() % (sizeof(liked) - 1)] : (char)rand();
	return n;
}

static void expect_one_clean_line(size_t n, const char *what)
{
	json_t *as_utf8;

	cr_assert_leq(n, LOG_LINE_MAX);
	cr_assert_eq(out[n - 1], '\n', "%s", what);
	for (size_t i = 0; i + 1 < n; i++)
		cr_assert((unsigned char)out[i] >= ' ' && out[i] != 0x7f, "%s: byte %02x", what,
			  (unsigned char)out[i]);
	as_utf8 = json_stringn(out, n - 1);
	cr_assert_not_null(as_utf8, "%s: not UTF-8", what);
	json_decref(as_utf8);
}

/* time=x level=x ... : pairs of a key and a value that may be quoted, one space between them */
static void expect_logfmt(const char *at)
{
	while (*at != '\n') {
		cr_assert(isalpha((unsigned char)*at) || *at == '_', "at %s", at);
		at += strcspn(at, "= \"\n");
		cr_assert_eq(*at++, '=');
		if (*at == '"') {
			for (at++; *at != '"'; at++) {
				cr_assert_neq(*at, '\n');
				at += *at == '\\';
			}
			at++;
		} else {
			cr_assert_geq(strcspn(at, "=\""), strcspn(at, " \n"));
			at += strcspn(at, " \n");
		}
		cr_assert(*at == ' ' || *at == '\n', "at %s", at);
		at += *at == ' ';
	}
}

Test(daemon_log, whatever_the_bytes_a_line_is_one_line_that_parses)
{
	static char text[3 * LOG_TEXT_MAX];
	json_error_t error;

	srand(20261122);
	for (unsigned int turn = 0; turn < 20000; turn++) {
		size_t n = make_text(text, turn % 100 == 0 ? sizeof(text) : 80);
		json_t *json;

		for (unsigned int f = 0; f < LOG_FORMATS; f++) {
			line_of(f, 6, text, n);
			expect_one_clean_line(strlen(out), log_format_names[f]);
			if (f == LOG_FORMAT_LOGFMT)
				expect_logfmt(out);
		}
		json = json_loads(out, JSON_REJECT_DUPLICATES, &error);
		cr_assert_not_null(json, "%s: %s", error.text, out);
		json_decref(json);
	}
}

Test(daemon_log, the_longest_message_of_the_worst_bytes_fits)
{
	static char text[LOG_TEXT_MAX + 1];

	memset(text, 0x1b, sizeof(text));
	for (unsigned int f = 0; f < LOG_FORMATS; f++) {
		line_of(f, 6, text, sizeof(text));
		cr_expect_leq(strlen(out), LOG_LINE_MAX);
	}
	/* and of fields that stay in the words, too */
	for (size_t i = 0; i + 4 < LOG_TEXT_MAX; i += 4)
		memcpy(text + i, i == 0 ? "w a=" : "\x1b\x1b\x1b\x1b", 4);
	memcpy(text + LOG_TEXT_MAX - 2, " w", 2);
	line_of(LOG_FORMAT_JSON, 6, text, LOG_TEXT_MAX);
	cr_expect_gt(strlen(out), 11 * LOG_TEXT_MAX);
	cr_expect_leq(strlen(out), LOG_LINE_MAX);
}
