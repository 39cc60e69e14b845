/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Check a method's parameters against its table. Every error names the field and says what to give.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "server/rpc.h"

static void param_store(void *member, size_t size, uint64_t value)
{
	switch (size) {
	case 2:
		*(uint16_t *)member = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)member = (uint32_t)value;
		break;
	default:
		*(uint64_t *)member = value;
	}
}

static bool read_integer(const struct control_param *p, const json_t *value, void *member)
{
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < 0)
		return false;
	if ((uint64_t)number < p->min || (uint64_t)number > p->max)
		return false;
	param_store(member, p->size, (uint64_t)number);
	return true;
}

static void want_integer(const struct control_param *p, char *buf, size_t size)
{
	snprintf(buf, size, "an integer from %" PRIu64 " to %" PRIu64, p->min, p->max);
}

static bool is_text(const char *s)
{
	for (; *s; s++)
		if (iscntrl((unsigned char)*s))
			return false;
	return true;
}

static bool read_text(const struct control_param *p, const json_t *value, void *member)
{
	const char *s = json_string_value(value);

	if (s == NULL || *s == '\0' || strlen(s) >= p->size || !is_text(s))
		return false;
	memcpy(member, s, strlen(s) + 1);
	return true;
}

static void want_text(const struct control_param *p, char *buf, size_t size)
{
	snprintf(buf, size, "a string of 1 to %zu bytes without control characters", p->size - 1);
}

static bool read_hex64(const struct control_param *p, const json_t *value, void *member)
{
	const char *s = json_string_value(value);

	if (s == NULL || strlen(s) != 16 || strspn(s, "0123456789abcdefABCDEF") != 16)
		return false;
	*(uint64_t *)member = strtoull(s, NULL, 16);
	return true;
}

static void want_hex64(const struct control_param *p, char *buf, size_t size)
{
	snprintf(buf, size, "a string of 16 hexadecimal digits");
}

static bool read_address(const struct control_param *p, const json_t *value, void *member)
{
	const char *s = json_string_value(value);

	return s != NULL && lb_address_parse(s, member) == 0;
}

static void want_address(const struct control_param *p, char *buf, size_t size)
{
	snprintf(buf, size, "an IPv4 or IPv6 address as a string, without port");
}

static bool read_boolean(const struct control_param *p, const json_t *value, void *member)
{
	if (!json_is_boolean(value))
		return false;
	*(bool *)member = json_is_true(value);
	return true;
}

static void want_boolean(const struct control_param *p, char *buf, size_t size)
{
	snprintf(buf, size, "true or false");
}

static bool param_read_list(const struct control_param *p, const json_t *value, void *member)
{
	size_t n = json_array_size(value);

	if (!json_is_array(value) || n < p->min || n > p->max)
		return false;
	*(const json_t **)member = value;
	return true;
}

static void want_list(const struct control_param *p, char *buf, size_t size)
{
	snprintf(buf, size, "an array of %" PRIu64 " to %" PRIu64 " objects", p->min, p->max);
}

static bool read_names(const struct control_param *p, const json_t *value, void *member)
{
	size_t i;
	json_t *name;

	json_array_foreach ((json_t *)value, i, name)
		if (!json_is_string(name))
			return false;
	return param_read_list(p, value, member);
}

static void want_names(const struct control_param *p, char *buf, size_t size)
{
	snprintf(buf, size, "an array of %" PRIu64 " to %" PRIu64 " strings", p->min, p->max);
}

static bool read_map(const struct control_param *p, const json_t *value, void *member)
{
	size_t n = json_object_size(value);
	const char *key;
	json_t *text;

	if (!json_is_object(value) || n < p->min || n > p->max)
		return false;
	json_object_foreach ((json_t *)value, key, text)
		if (!json_is_string(text))
			return false;
	*(const json_t **)member = value;
	return true;
}

static void want_map(const struct control_param *p, char *buf, size_t size)
{
	snprintf(buf, size, "an object with %" PRIu64 " to %" PRIu64 " members, each with a string",
		 p->min, p->max);
}

static bool read_object(const struct control_param *p, const json_t *value, void *member)
{
	*(const json_t **)member = value;
	return json_is_object(value);
}

static void want_object(const struct control_param *p, char *buf, size_t size)
{
	snprintf(buf, size, "an object");
}

static bool read_shape(const struct control_param *p, const json_t *value, void *member)
{
	size_t i;
	json_t *n;

	json_array_foreach ((json_t *)value, i, n)
		if (!json_is_integer(n) || json_integer_value(n) < INT32_MIN ||
		    json_integer_value(n) > INT32_MAX)
			return false;
	return param_read_list(p, value, member);
}

static void want_shape(const struct control_param *p, char *buf, size_t size)
{
	snprintf(buf, size,
		 "an array of %" PRIu64 " to %" PRIu64 " dimensions, -1 where it is free", p->min,
		 p->max);
}

static const struct {
	bool (*read)(const struct control_param *p, const json_t *value, void *member);
	void (*want)(const struct control_param *p, char *buf, size_t size);
} types[CONTROL_TYPES] = {
	[CONTROL_INTEGER] = {read_integer, want_integer},
	[CONTROL_TEXT] = {read_text, want_text},
	[CONTROL_HEX64] = {read_hex64, want_hex64},
	[CONTROL_ADDRESS] = {read_address, want_address},
	[CONTROL_BOOLEAN] = {read_boolean, want_boolean},
	[CONTROL_LIST] = {param_read_list, want_list},
	[CONTROL_NAMES] = {read_names, want_names},
	[CONTROL_MAP] = {read_map, want_map},
	[CONTROL_OBJECT] = {read_object, want_object},
	[CONTROL_SHAPE] = {read_shape, want_shape},
};

static bool fail_value(struct control_call *call, const char *where, const struct control_param *p,
		       const json_t *value)
{
	char want[128], *given;

	types[p->type].want(p, want, sizeof(want));
	if (value == NULL) {
		control_fail(call, CONTROL_ERROR_PARAMS, "%s.%s: missing; give %s", where, p->name,
			     want);
		return false;
	}
	given = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
	control_fail(call, CONTROL_ERROR_PARAMS, "%s.%s: cannot use %.60s; give %s", where, p->name,
		     given != NULL ? given : "it", want);
	free(given);
	return false;
}

static bool fail_unknown(struct control_call *call, const char *where, const char *name,
			 const struct control_param *table, size_t n)
{
	char known[256];
	size_t at = 0;

	known[0] = '\0';
	for (size_t i = 0; i < n && at < sizeof(known); i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", i ? ", " : "",
				       table[i].name);
	control_fail(call, CONTROL_ERROR_PARAMS, "%s.%.60s: unknown; %s%s", where, name,
		     n ? "known are " : "leave it out, there are no parameters", known);
	return false;
}

static bool check_unknown(struct control_call *call, const char *where, const json_t *object,
			  const struct control_param *table, size_t n)
{
	const char *name;
	json_t *value;

	/* jansson's iterator takes no const, but only reads */
	json_object_foreach ((json_t *)object, name, value) {
		size_t i = 0;

		while (i < n && strcmp(table[i].name, name) != 0)
			i++;
		if (i == n)
			return fail_unknown(call, where, name, table, n);
	}
	return true;
}

bool control_params_read(struct control_call *call, const char *where, const json_t *object,
			 const struct control_param *table, size_t n, void *out)
{
	if (!json_is_object(object)) {
		control_fail(call, CONTROL_ERROR_PARAMS, "%s: give an object with named members",
			     where);
		return false;
	}
	if (!check_unknown(call, where, object, table, n))
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct control_param *p = &table[i];
		const json_t *value = json_object_get(object, p->name);

		if (value == NULL && !p->required)
			continue;
		if (value == NULL || !types[p->type].read(p, value, (char *)out + p->offset))
			return fail_value(call, where, p, value);
	}
	return true;
}
