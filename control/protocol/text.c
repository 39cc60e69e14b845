/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "protocol/text.h"

#define SIZE_FIRST  4096
#define DIGITS_MOST 20

bool text_reserve(struct text *text, size_t n)
{
	size_t size = text->size ? text->size : SIZE_FIRST;
	char *data;

	if (text->size - text->n >= n)
		return !text->failed;
	while (size - text->n < n)
		size *= 2;
	data = text->failed ? NULL : realloc(text->data, size);
	if (data == NULL) {
		text->failed = true;
		return false;
	}
	text->data = data;
	text->size = size;
	return true;
}

void text_free(struct text *text)
{
	free(text->data);
	*text = (struct text){0};
}

static int text_append(const char *data, size_t n, void *text)
{
	text_add(text, data, n);
	return 0;
}

void text_json(struct text *text, const json_t *value)
{
	if (json_dump_callback(value, text_append, text, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
		text->failed = true;
}

void text_integer(struct text *text, uint64_t value)
{
	char digits[DIGITS_MOST];
	unsigned int at = DIGITS_MOST;

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	text_add(text, digits + at, DIGITS_MOST - at);
}

void text_make_ascii(char *s)
{
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
}

json_t *control_text(const char *text)
{
	json_t *string = json_string(text);
	char *copy;

	if (string != NULL)
		return string;
	copy = strdup(text);
	if (copy == NULL)
		return NULL;
	text_make_ascii(copy);
	string = json_string(copy);
	free(copy);
	return string;
}
