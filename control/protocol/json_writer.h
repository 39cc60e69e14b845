/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes JSON as text, value by value, with the commas: building values first takes ten times as
 * long for the rows of a large pool. <key> is the member's name in an object; it is NULL in an
 * array and for the outermost value. Private to control/ and its tests.
 */
#ifndef CONTROL_JSON_WRITER_H
#define CONTROL_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "protocol/text.h"

/* Start with zeroes and set <out>. */
struct json_writer {
	struct text *out;
	bool comma; /* what is open has a value already: the next one needs a comma */
};

void writer_open_object(struct json_writer *w, const char *key);
void writer_close_object(struct json_writer *w);
void writer_open_array(struct json_writer *w, const char *key);
void writer_close_array(struct json_writer *w);

void writer_null(struct json_writer *w, const char *key);
void writer_boolean(struct json_writer *w, const char *key, bool value);
void writer_integer(struct json_writer *w, const char *key, uint64_t value);
/* Write <value> with <digits> decimal places. */
void writer_real(struct json_writer *w, const char *key, double value, int digits);
/* Bytes that are not UTF-8 become '?'. */
void writer_string(struct json_writer *w, const char *key, const char *value);
void writer_value(struct json_writer *w, const char *key, const json_t *value);
/* Write <n> bytes that are a JSON value already. */
void writer_written(struct json_writer *w, const char *key, const char *json, size_t n);

/* Write <sum> / <n>, or null when <n> is 0. */
void writer_mean(struct json_writer *w, const char *key, uint64_t sum, uint64_t n);

/* One uint64_t counter of a struct, by its JSON name. */
struct writer_counter {
	const char *name;
	size_t offset;
};

#define WRITER_COUNTER(object, member)                                                             \
	{                                                                                          \
#member, offsetof(struct object, member)                                           \
	}

/* Write <n> counters of <base>, each as a member. */
void writer_counters(struct json_writer *w, const struct writer_counter *table, size_t n,
		     const void *base);

#endif
