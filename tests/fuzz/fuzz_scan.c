/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as a reply with rows. Nothing outside them is read, and where jansson reads an object, the
 * scanner finds the same member and the same elements in it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "../unit/scan_find.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

/* Inputs that both parsers read alike: one line, and no names written with escapes. */
static bool is_simple(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i] == '\\' || (data[i] < ' ' && data[i] != '\t'))
			return false;
	return true;
}

static void compare(struct scan text, const json_t *expected)
{
	json_t *value = json_loadb(text.at, (size_t)(text.end - text.at), JSON_DECODE_ANY, NULL);

	require(json_equal(value, expected), "not the same value");
	json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
	const json_t *member = json_object_get(object, "flows");
	struct scan found, rest, element;
	bool same = object && is_simple(data, size);
	size_t n = 0;

	if (!scan_find((struct scan){text, text + size}, "flows", &found)) {
		require(!same || !member, "a member was not found");
		json_decref(object);
		return 0;
	}
	require(found.at >= text && found.at < found.end && found.end <= text + size, "outside");
	require(!same || member, "a member that is not there");
	if (same)
		compare(found, member);
	for (rest = found; scan_element(&rest, &element); n++) {
		require(element.at > found.at && element.end <= found.end, "outside");
		if (same && json_is_array(member))
			compare(element, json_array_get(member, n));
	}
	require(!same || !json_is_array(member) || n == json_array_size(member), "not as many");
	json_decref(object);
	return 0;
}
