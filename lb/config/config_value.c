/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns the text of one value of the configuration file into its field. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "config/config_schema.h"

static void *value_field(const struct config_key *key, void *base)
{
	return (char *)base + key->offset;
}

static void store_number(const struct config_key *key, void *base, uint32_t value)
{
	if (key->size == sizeof(uint8_t))
		*(uint8_t *)value_field(key, base) = value;
	else if (key->size == sizeof(uint16_t))
		*(uint16_t *)value_field(key, base) = value;
	else if (key->size == sizeof(uint32_t))
		*(uint32_t *)value_field(key, base) = value;
}

/* Decimal digits only: no sign, no space, no base prefix. */
static bool parse_uint(const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
	uint64_t sum = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		if (!isdigit((unsigned char)*text))
			return false;
		sum = sum * 10 + (*text - '0');
		if (sum > max)
			return false;
	}
	*value = sum;
	return sum >= min;
}

static bool parse_number(const struct config_key *key, const char *text, void *base)
{
	uint32_t value;

	if (!parse_uint(text, key->min, key->max, &value))
		return false;
	store_number(key, base, value);
	return true;
}

/* A number, then nothing, KiB, MiB or GiB. */
static bool parse_size(const struct config_key *key, const char *text, void *base)
{
	static const char *const units[] = {"", "KiB", "MiB", "GiB"};
	size_t digits = strspn(text, "0123456789");
	char number[16];
	uint32_t value;

	if (digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	number[digits] = '\0';
	for (unsigned int i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(text + digits, units[i]) == 0 &&
		    parse_uint(number, 0, key->max >> 10 * i, &value) &&
		    value << 10 * i >= key->min) {
			store_number(key, base, value << 10 * i);
			return true;
		}
	return false;
}

static void fix_size(const struct config_key *key, char *buf, size_t size)
{
	char min[CONFIG_SIZE_TEXT], max[CONFIG_SIZE_TEXT];

	snprintf(buf, size, "use %s to %s, as 1472, 16KiB or 1MiB", config_size_text(key->min, min),
		 config_size_text(key->max, max));
}

static void fix_range(const struct config_key *key, char *buf, size_t size)
{
	snprintf(buf, size, "use %u to %u", key->min, key->max);
}

static const struct config_choice *choice_find(const struct config_key *key, const char *text)
{
	for (const struct config_choice *c = key->choices; c->name != NULL; c++)
		if (strcmp(c->name, text) == 0)
			return c;
	return NULL;
}

static bool parse_choice(const struct config_key *key, const char *text, void *base)
{
	const struct config_choice *choice = choice_find(key, text);

	if (choice == NULL)
		return false;
	store_number(key, base, choice->value);
	return true;
}

static bool parse_word(const struct config_key *key, const char *text, void *base)
{
	if (choice_find(key, text) == NULL)
		return false;
	snprintf(value_field(key, base), key->size, "%s", text);
	return true;
}

static bool parse_flag(const struct config_key *key, const char *text, void *base)
{
	const struct config_choice *choice = choice_find(key, text);

	if (choice == NULL)
		return false;
	*(bool *)((char *)base + choice->value) = true;
	return true;
}

static void fix_choices(const struct config_key *key, char *buf, size_t size)
{
	size_t used = snprintf(buf, size, "use %s", key->example != NULL ? key->example : "");

	if (key->example != NULL)
		return;
	for (const struct config_choice *c = key->choices; c->name != NULL && used < size; c++) {
		const char *before = c == key->choices ? "" : c[1].name == NULL ? " or " : ", ";

		used += snprintf(buf + used, size - used, "%s%s", before, c->name);
	}
}

static int is_name_char(int c)
{
	return isalnum(c) || c == '.' || c == '_' || c == '-';
}

static bool copy_text(const struct config_key *key, const char *text, void *base,
		      int (*allowed)(int c))
{
	size_t length = strlen(text);

	if (length == 0 || length >= key->size)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!allowed((unsigned char)text[i]))
			return false;
	memcpy(value_field(key, base), text, length + 1);
	return true;
}

static bool parse_name(const struct config_key *key, const char *text, void *base)
{
	return copy_text(key, text, base, is_name_char);
}

static void fix_name(const struct config_key *key, char *buf, size_t size)
{
	snprintf(buf, size, "use 1 to %zu letters, digits and ._-", key->size - 1);
}

static bool parse_label(const struct config_key *key, const char *text, void *base)
{
	return copy_text(key, text, base, isgraph);
}

static void fix_label(const struct config_key *key, char *buf, size_t size)
{
	snprintf(buf, size, "use 1 to %zu printable characters without spaces", key->size - 1);
}

static bool parse_text(const struct config_key *key, const char *text, void *base)
{
	return copy_text(key, text, base, isprint);
}

static bool parse_path(const struct config_key *key, const char *text, void *base)
{
	return text[0] == '/' && copy_text(key, text, base, isprint);
}

static bool parse_path_or_off(const struct config_key *key, const char *text, void *base)
{
	if (strcmp(text, "off") != 0)
		return parse_path(key, text, base);
	*(char *)value_field(key, base) = '\0';
	return true;
}

static void fix_text(const struct config_key *key, char *buf, size_t size)
{
	snprintf(buf, size, "use 1 to %zu characters, e.g. %s", key->size - 1, key->example);
}

/* True for an address that a host on a network can have. */
static bool is_unicast(const struct lb_address *address)
{
	const uint8_t *b = address->addr.s6_addr;

	if (address->family == 4)
		return b[12] != 0 && b[12] != 127 && b[12] < 224;
	return !IN6_IS_ADDR_UNSPECIFIED(&address->addr) && !IN6_IS_ADDR_LOOPBACK(&address->addr) &&
	       !IN6_IS_ADDR_MULTICAST(&address->addr);
}

static bool parse_unicast(const struct config_key *key, const char *text, void *base)
{
	struct lb_address address;

	if (lb_address_parse(text, &address) < 0 || !is_unicast(&address))
		return false;
	memcpy(value_field(key, base), &address, sizeof(address));
	return true;
}

/* Cut "left<mark>right" at the last mark; false when a half does not fit or is missing. */
static bool split_last(const char *text, char mark, char left[LB_ADDRESS_TEXT + 2],
		       const char **right)
{
	const char *cut = strrchr(text, mark);
	size_t length = cut != NULL ? (size_t)(cut - text) : 0;

	if (length == 0 || length >= LB_ADDRESS_TEXT + 2)
		return false;
	memcpy(left, text, length);
	left[length] = '\0';
	*right = cut + 1;
	return true;
}

static bool parse_network(const struct config_key *key, const char *text, void *base)
{
	char left[LB_ADDRESS_TEXT + 2];
	struct lb_address address;
	const char *right;
	uint32_t prefix;

	if (!split_last(text, '/', left, &right) || lb_address_parse(left, &address) < 0 ||
	    !is_unicast(&address) || !parse_uint(right, 1, address.family == 4 ? 32 : 128, &prefix))
		return false;
	memcpy(value_field(key, base), &address, sizeof(address));
	*((uint8_t *)base + key->second) = prefix;
	return true;
}

/* "0.0.0.0:4790" or "[::]:4790" */
static bool parse_endpoint(const struct config_key *key, const char *text, void *base)
{
	char left[LB_ADDRESS_TEXT + 2], *host = left;
	struct lb_address address;
	const char *right;
	uint32_t port;
	size_t length;

	if (!split_last(text, ':', left, &right) || !parse_uint(right, 1, UINT16_MAX, &port))
		return false;
	length = strlen(left);
	if (left[0] == '[' && left[length - 1] == ']') {
		left[length - 1] = '\0';
		host++;
	}
	if (lb_address_parse(host, &address) < 0 || (address.family == 6) != (host != left))
		return false;
	memcpy(value_field(key, base), &address, sizeof(address));
	*(uint16_t *)((char *)base + key->second) = port;
	return true;
}

static bool parse_endpoint_or_off(const struct config_key *key, const char *text, void *base)
{
	if (strcmp(text, "off") != 0)
		return parse_endpoint(key, text, base);
	memset(value_field(key, base), 0, sizeof(struct lb_address));
	*(uint16_t *)((char *)base + key->second) = 0;
	return true;
}

static void fix_example(const struct config_key *key, char *buf, size_t size)
{
	snprintf(buf, size, "use e.g. %s", key->example);
}

const struct config_kind config_number = {.parse = parse_number, .fix = fix_range};
const struct config_kind config_size = {.parse = parse_size, .fix = fix_size};
const struct config_kind config_choice = {.parse = parse_choice, .fix = fix_choices};
const struct config_kind config_word = {.parse = parse_word, .fix = fix_choices};
const struct config_kind config_flag = {.parse = parse_flag, .fix = fix_choices};
const struct config_kind config_name = {.parse = parse_name, .fix = fix_name};
const struct config_kind config_label = {.parse = parse_label, .fix = fix_label};
const struct config_kind config_text = {.parse = parse_text, .fix = fix_text};
const struct config_kind config_path = {.parse = parse_path, .fix = fix_text};
const struct config_kind config_path_or_off = {.parse = parse_path_or_off, .fix = fix_text};
const struct config_kind config_address = {.parse = parse_unicast, .fix = fix_example};
const struct config_kind config_network = {.parse = parse_network, .fix = fix_example};
const struct config_kind config_endpoint = {.parse = parse_endpoint, .fix = fix_example};
const struct config_kind config_endpoint_or_off = {.parse = parse_endpoint_or_off,
						   .fix = fix_example};
