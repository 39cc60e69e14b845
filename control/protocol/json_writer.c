/* SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "protocol/json_writer.h"

static void writer_begin(struct json_writer *w, const char *key)
{
	if (w->comma)
		text_add(w->out, ",", 1);
	w->comma = true;
	if (key == NULL)
		return;
	text_add(w->out, "\"", 1);
	text_string(w->out, key);
	text_add(w->out, "\":", 2);
}

static void writer_open(struct json_writer *w, const char *key, const char *bracket)
{
	writer_begin(w, key);
	text_add(w->out, bracket, 1);
	w->comma = false;
}

static void writer_close(struct json_writer *w, const char *bracket)
{
	text_add(w->out, bracket, 1);
	w->comma = true;
}

void writer_open_object(struct json_writer *w, const char *key)
{
	writer_open(w, key, "{");
}

void writer_close_object(struct json_writer *w)
{
	writer_close(w, "}");
}

void writer_open_array(struct json_writer *w, const char *key)
{
	writer_open(w, key, "[");
}

void writer_close_array(struct json_writer *w)
{
	writer_close(w, "]");
}

void writer_null(struct json_writer *w, const char *key)
{
	writer_begin(w, key);
	text_string(w->out, "null");
}

void writer_boolean(struct json_writer *w, const char *key, bool value)
{
	writer_begin(w, key);
	text_string(w->out, value ? "true" : "false");
}

void writer_integer(struct json_writer *w, const char *key, uint64_t value)
{
	writer_begin(w, key);
	text_integer(w->out, value);
}

void writer_real(struct json_writer *w, const char *key, double value, int digits)
{
	char number[DBL_MAX_10_EXP + 32];
	int n = snprintf(number, sizeof(number), "%.*f", digits, value);

	writer_written(w, key, number, (size_t)n);
}

void writer_string(struct json_writer *w, const char *key, const char *value)
{
	json_t *string = control_text(value);

	writer_value(w, key, string);
	json_decref(string);
}

void writer_value(struct json_writer *w, const char *key, const json_t *value)
{
	writer_begin(w, key);
	if (value != NULL)
		text_json(w->out, value);
	else
		w->out->failed = true;
}

void writer_written(struct json_writer *w, const char *key, const char *json, size_t n)
{
	writer_begin(w, key);
	text_add(w->out, json, n);
}

void writer_mean(struct json_writer *w, const char *key, uint64_t sum, uint64_t n)
{
	if (n)
		writer_integer(w, key, sum / n);
	else
		writer_null(w, key);
}

void writer_counters(struct json_writer *w, const struct writer_counter *table, size_t n,
		     const void *base)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t *value = (const void *)((const char *)base + table[i].offset);

		writer_integer(w, table[i].name, *value);
	}
}
