/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns one field of the configuration into the text that a file would have. */
#include <stdio.h>
#include <string.h>

#include "config/address.h"
#include "config/config_schema.h"

static const void *format_field(const struct config_key *key, const void *base)
{
	return (const char *)base + key->offset;
}

static uint64_t format_load(const struct config_key *key, const void *base)
{
	uint64_t value = 0;

	/* little-endian, as the wire code assumes */
	memcpy(&value, format_field(key, base),
	       key->size < sizeof(value) ? key->size : sizeof(value));
	return value;
}

static void format_number(const struct config_key *key, const void *base, char *buf, size_t size)
{
	snprintf(buf, size, "%lu", (unsigned long)format_load(key, base));
}

const char *config_size_text(uint64_t bytes, char buf[CONFIG_SIZE_TEXT])
{
	static const char *const units[] = {"", "KiB", "MiB", "GiB"};
	unsigned int unit = 0;

	while (unit < 3 && bytes != 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(buf, CONFIG_SIZE_TEXT, "%lu%s", (unsigned long)bytes, units[unit]);
	return buf;
}

static void format_size(const struct config_key *key, const void *base, char *buf, size_t size)
{
	char text[CONFIG_SIZE_TEXT];

	snprintf(buf, size, "%s", config_size_text(format_load(key, base), text));
}

static void format_choice(const struct config_key *key, const void *base, char *buf, size_t size)
{
	for (const struct config_choice *c = key->choices; c->name != NULL; c++)
		if (c->value == format_load(key, base)) {
			snprintf(buf, size, "%s", c->name);
			return;
		}
	format_number(key, base, buf, size);
}

static void format_string(const struct config_key *key, const void *base, char *buf, size_t size)
{
	snprintf(buf, size, "%.*s", (int)key->size, (const char *)format_field(key, base));
}

static void format_ip(const struct config_key *key, const void *base, char *buf, size_t size)
{
	struct lb_address address;

	memcpy(&address, format_field(key, base), sizeof(address));
	if (address.family != 0)
		lb_address_format(&address, buf, size);
}

static void format_network(const struct config_key *key, const void *base, char *buf, size_t size)
{
	size_t n;

	format_ip(key, base, buf, size);
	n = strlen(buf);
	if (n > 0)
		snprintf(buf + n, size - n, "/%u", *((const uint8_t *)base + key->second));
}

static void format_endpoint(const struct config_key *key, const void *base, char *buf, size_t size)
{
	const uint16_t *port = (const void *)((const char *)base + key->second);
	char address[LB_ADDRESS_TEXT] = "";

	format_ip(key, base, address, sizeof(address));
	snprintf(buf, size, strchr(address, ':') != NULL ? "[%s]:%u" : "%s:%u", address, *port);
}

static void format_path_or_off(const struct config_key *key, const void *base, char *buf,
			       size_t size)
{
	const char *path = format_field(key, base);

	snprintf(buf, size, "%s", path[0] == '\0' ? "off" : path);
}

static void format_endpoint_or_off(const struct config_key *key, const void *base, char *buf,
				   size_t size)
{
	const uint16_t *port = (const void *)((const char *)base + key->second);

	if (*port == 0)
		snprintf(buf, size, "off");
	else
		format_endpoint(key, base, buf, size);
}

/* The names of the flags that are set. */
static void format_flags(const struct config_key *key, const void *base, char *buf, size_t size)
{
	size_t n = 0;

	for (const struct config_choice *c = key->item->choices; c->name != NULL && n < size; c++)
		if (*(const bool *)((const char *)base + c->value))
			n += snprintf(buf + n, size - n, "%s%s", n > 0 ? ", " : "", c->name);
}

static const struct {
	const struct config_kind *kind;
	void (*format)(const struct config_key *key, const void *base, char *buf, size_t size);
} formats[] = {
	{&config_number, format_number},
	{&config_choice, format_choice},
	{&config_size, format_size},
	{&config_word, format_string},
	{&config_name, format_string},
	{&config_label, format_string},
	{&config_text, format_string},
	{&config_path, format_string},
	{&config_path_or_off, format_path_or_off},
	{&config_address, format_ip},
	{&config_network, format_network},
	{&config_endpoint, format_endpoint},
	{&config_endpoint_or_off, format_endpoint_or_off},
};

/* For kinds without a format: the bytes in hexadecimal, so that different values look different. */
static void format_hex(const struct config_key *key, const void *base, char *buf, size_t size)
{
	const uint8_t *byte = format_field(key, base);

	for (size_t i = 0; i < key->size && 2 * i + 2 < size; i++)
		snprintf(buf + 2 * i, 3, "%02x", byte[i]);
}

void config_format(const struct config_key *key, const void *base, char *buf, size_t size)
{
	buf[0] = '\0';
	if (key->kind == &config_list) {
		if (key->item->kind == &config_flag)
			format_flags(key, base, buf, size);
		return;
	}
	if (key->size == 0)
		return;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (formats[i].kind == key->kind)
			return formats[i].format(key, base, buf, size);
	format_hex(key, base, buf, size);
}
