/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * JSON text that grows at its end, for results that are too large to build as values first. Private
 * to this folder and its tests.
 */
#ifndef CONTROL_TEXT_H
#define CONTROL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <jansson.h>

/* Start with all zeroes. Not terminated by a zero. The owner calls text_free(), or keeps <data>. */
struct text {
	char *data;
	size_t n, size;
	bool failed; /* out of memory: all text added since is missing */
};

/* Make room for <n> bytes more. False when memory is short, now or before. */
bool text_reserve(struct text *text, size_t n);

void text_free(struct text *text);

/* Add <value>, which is not NULL, as compact JSON. */
void text_json(struct text *text, const json_t *value);

void text_integer(struct text *text, uint64_t value);

/* Replace every byte that is not printable ASCII by '?'. */
void text_make_ascii(char *s);

/* A string for people; bytes that are not UTF-8 become '?'. The caller owns it; NULL when memory is
 * short. */
json_t *control_text(const char *text);

static inline void text_add(struct text *text, const char *data, size_t n)
{
	if (!text_reserve(text, n))
		return;
	memcpy(text->data + text->n, data, n);
	text->n += n;
}

static inline void text_string(struct text *text, const char *string)
{
	text_add(text, string, strlen(string));
}

#endif
