/* SPDX-License-Identifier: BSD-3-Clause */
/* Tokens of JSON, the same however the text is cut. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/reader.h"

#define LOG_MAX 4096

/* Tokens as text: { } [ ], members' names with a colon, strings in quotes, numbers, words. */
struct log {
	struct json_reader reader;
	char text[LOG_MAX];
	size_t length;
	bool open; /* a string */
};

static void log_bytes(struct log *l, const char *bytes, size_t n)
{
	cr_assert(l->length + n < LOG_MAX);
	memcpy(l->text + l->length, bytes, n);
	l->length += n;
	l->text[l->length] = '\0';
}

static void log_string(struct log *l, const struct json_token *token)
{
	if (!l->open)
		log_bytes(l, "\"", 1);
	log_bytes(l, token->text, token->length);
	if (token->last)
		log_bytes(l, token->kind == JSON_TOKEN_KEY ? "\":" : "\" ", 2);
	l->open = !token->last;
}

static void log_token(struct log *l, const struct json_token *token)
{
	static const char *const words[] = {
		[JSON_TOKEN_OBJECT_BEGIN] = "{ ", [JSON_TOKEN_OBJECT_END] = "} ",
		[JSON_TOKEN_ARRAY_BEGIN] = "[ ",  [JSON_TOKEN_ARRAY_END] = "] ",
		[JSON_TOKEN_TRUE] = "true ",      [JSON_TOKEN_FALSE] = "false ",
		[JSON_TOKEN_NULL] = "null ",
	};

	if (token->kind == JSON_TOKEN_KEY || token->kind == JSON_TOKEN_STRING) {
		log_string(l, token);
	} else if (token->kind == JSON_TOKEN_NUMBER) {
		log_bytes(l, token->number.text, token->number.length);
		log_bytes(l, " ", 1);
	} else {
		log_bytes(l, words[token->kind], strlen(words[token->kind]));
	}
}

/* The bytes have their exact size, for the sanitizers. False: not JSON. */
static bool log_take(struct log *l, const char *bytes, size_t n)
{
	char *copy = malloc(n > 0 ? n : 1);
	const char *at = copy;
	struct json_token token;

	memcpy(copy, bytes, n);
	do {
		json_read(&l->reader, &at, copy + n, &token);
		if (token.kind != JSON_TOKEN_MORE && token.kind != JSON_TOKEN_BAD)
			log_token(l, &token);
	} while (token.kind != JSON_TOKEN_MORE && token.kind != JSON_TOKEN_BAD);
	cr_assert(token.kind == JSON_TOKEN_BAD || at == copy + n);
	free(copy);
	return token.kind != JSON_TOKEN_BAD;
}

/* Log the reader's words when the text is cut at <a> and <b>: tokens, or a fault. A string that is
 * cut short by a fault may have been delivered in part. */
static void read_cut(struct log *l, const char *text, size_t n, size_t a, size_t b)
{
	*l = (struct log){0};
	if (log_take(l, text, a) && log_take(l, text + a, b - a) && log_take(l, text + b, n - b)) {
		if (!json_is_complete(&l->reader))
			log_bytes(l, "...", 3);
		return;
	}
	l->length = 0;
	log_bytes(l, l->reader.error, strlen(l->reader.error));
}

static void expect(const char *text, size_t n, const char *want)
{
	struct log l;

	for (size_t a = 0; a <= n; a++) {
		for (size_t b = a; b <= n; b++) {
			read_cut(&l, text, n, a, b);
			cr_assert_str_eq(l.text, want, "%s cut at %zu and %zu: %s", text, a, b,
					 l.text);
		}
	}
	l = (struct log){0};
	for (size_t i = 0; i < n; i++) {
		if (!log_take(&l, text + i, 1))
			return;
	}
	cr_assert_eq(strncmp(l.text, want, l.length), 0, "%s byte by byte: %s", text, l.text);
}

struct row {
	const char *text, *tokens;
};

Test(lb_json_reader, values_become_tokens)
{
	static const struct row rows[] = {
		{"", "..."},
		{"{}", "{ } "},
		{" [ ] ", "[ ] "},
		{"[1, -2.5e3 ,0]\r\n", "[ 1 -2.5e3 0 ] "},
		{"[true,false,null]", "[ true false null ] "},
		{"{\"a\":1,\"b\":{\"c\":[]}}", "{ \"a\":1 \"b\":{ \"c\":[ ] } } "},
		{"[\"\",\"x\"]", "[ \"\" \"x\" ] "},
		{"[[],[[]],{}]", "[ [ ] [ [ ] ] { } ] "},
		{"{\"a\":", "{ \"a\":..."},
		{"[12", "[ ..."},
		{"[1,\t\"b\"", "[ 1 \"b\" ..."},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect(rows[i].text, strlen(rows[i].text), rows[i].tokens);
}

Test(lb_json_reader, escapes_become_characters)
{
	static const struct row rows[] = {
		{"[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]", "[ \"\"\\/\b\f\n\r\t\" ] "},
		{"[\"\\u0041\\u00e9\\u20AC\"]", "[ \"A\u00e9\u20ac\" ] "},
		{"[\"\\ud83d\\uDE00!\"]", "[ \"\U0001f600!\" ] "},
		{"{\"\\u0069d\":0}", "{ \"id\":0 } "},
		{"[\"\\u000g\"]", "expected four hexadecimal digits"},
		{"[\"\\x\"]", "an unknown escape"},
		{"[\"\\ud83d\"]", "half of a surrogate pair"},
		{"[\"\\ud83dx\"]", "half of a surrogate pair"},
		{"[\"\\ud83d\\n\"]", "half of a surrogate pair"},
		{"[\"\\ud83d\\u0041\"]", "half of a surrogate pair"},
		{"[\"\\ude00\"]", "half of a surrogate pair"},
		{"[\"\\ud83d\\ud83d\"]", "half of a surrogate pair"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect(rows[i].text, strlen(rows[i].text), rows[i].tokens);
}

Test(lb_json_reader, strings_are_utf8)
{
	static const struct row good[] = {
		{"[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"]",
		 "[ \"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\" ] "},
		{"[\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"]",
		 "[ \"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\" ] "},
	};
	static const char *const bad[] = {
		"\x80",
		"\xc0\x80",
		"\xc1\xbf",
		"\xe0\x9f\xbf",
		"\xed\xa0\x80",
		"\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xff",
		"\xc3",
		"\xe2\x82",
		"\xc3\xc3",
		"\xf0\x9f\x98x",
		"\xc3\\n",
	};
	char text[16];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		expect(good[i].text, strlen(good[i].text), good[i].tokens);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int n = snprintf(text, sizeof(text), "[\"%s\"]", bad[i]);

		expect(text, (size_t)n, "a string is not UTF-8");
	}
}

Test(lb_json_reader, what_is_not_json_is_refused)
{
	static const struct row rows[] = {
		{"1", "expected an object"},
		{"\"a\"", "expected an object"},
		{"\xef\xbb\xbf{}", "expected an object"},
		{"[1,]", "expected a value"},
		{"[,1]", "expected a value"},
		{"[1 2]", "expected ',' or ']'"},
		{"[1}", "expected ',' or ']'"},
		{"{\"a\":1]", "expected ',' or '}'"},
		{"{\"a\" 1}", "expected ':'"},
		{"{a:1}", "expected a member's name"},
		{"{\"a\":1,}", "expected a member's name"},
		{"{\"a\":}", "expected a value"},
		{"{]", "expected a member's name"},
		{"[}", "expected a value"},
		{"[tru]", "expected a value"},
		{"[truex]", "expected ',' or ']'"},
		{"[NaN]", "expected a value"},
		{"[Infinity]", "expected a value"},
		{"['a']", "expected a value"},
		{"[01]", "expected a number of at most 128 characters"},
		{"[1.]", "expected a number of at most 128 characters"},
		{"[-]", "expected a number of at most 128 characters"},
		{"[1e+,2]", "expected a number of at most 128 characters"},
		{"[1,2.5.5]", "expected a number of at most 128 characters"},
		{"[1,-,2]", "expected a number of at most 128 characters"},
		{"[+1]", "expected a value"},
		{"[\"a\nb\"]", "a control character in a string"},
		{"[]]", "bytes behind the JSON value"},
		{"{} x", "bytes behind the JSON value"},
		{"[1]//", "bytes behind the JSON value"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect(rows[i].text, strlen(rows[i].text), rows[i].tokens);
	expect("[\"\0\"]", 5, "a control character in a string");
	expect("[\0]", 3, "expected a value");
}

Test(lb_json_reader, depth_is_bounded)
{
	char text[2 * JSON_DEPTH_MAX + 2];
	struct log l = {0};

	memset(text, '[', JSON_DEPTH_MAX);
	memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	cr_assert(log_take(&l, text, 2 * JSON_DEPTH_MAX));
	cr_assert(json_is_complete(&l.reader));
	l = (struct log){0};
	memset(text, '[', JSON_DEPTH_MAX + 1);
	cr_assert_not(log_take(&l, text, JSON_DEPTH_MAX + 1));
	cr_assert_str_eq(l.reader.error, "arrays and objects are nested too deeply");
}

Test(lb_json_reader, a_long_number_is_refused_however_it_is_cut)
{
	char text[JSON_NUMBER_MAX + 4];
	struct log l;

	for (size_t digits = JSON_NUMBER_MAX; digits <= JSON_NUMBER_MAX + 1; digits++) {
		memset(text, '7', sizeof(text));
		text[0] = '[';
		text[digits + 1] = ']';
		for (size_t cut = 0; cut <= digits + 2; cut++) {
			read_cut(&l, text, digits + 2, cut, cut);
			if (digits == JSON_NUMBER_MAX)
				cr_assert(json_is_complete(&l.reader), "%zu", cut);
			else
				cr_assert_str_eq(l.text,
						 "expected a number of at most 128 characters");
		}
	}
}
