/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "settings.h"

/* Rows in no order: lookups walk them, a few times per registration and command. */
struct worker_settings {
	unsigned int n, room, n_pins;
	struct worker_setting *row;
};

struct worker_settings *workers_settings_create(void)
{
	return calloc(1, sizeof(struct worker_settings));
}

void workers_settings_destroy(struct worker_settings *settings)
{
	if (settings == NULL)
		return;
	for (unsigned int i = 0; i < settings->n; i++)
		free(settings->row[i].pin);
	free(settings->row);
	free(settings);
}

static bool clone_rows(const struct worker_settings *from, struct worker_settings *to)
{
	to->row = calloc(from->n + 1, sizeof(*to->row));
	if (to->row == NULL)
		return false;
	to->room = from->n + 1;
	for (; to->n < from->n; to->n++) {
		struct worker_setting *row = &to->row[to->n];

		*row = from->row[to->n];
		row->pin = NULL;
		if (row->n_pins == 0)
			continue;
		row->pin = calloc(row->n_pins, sizeof(*row->pin));
		if (row->pin == NULL)
			return false;
		memcpy(row->pin, from->row[to->n].pin, row->n_pins * sizeof(*row->pin));
	}
	to->n_pins = from->n_pins;
	return true;
}

struct worker_settings *workers_settings_clone(const struct worker_settings *settings)
{
	struct worker_settings *clone = workers_settings_create();

	if (clone != NULL && clone_rows(settings, clone))
		return clone;
	workers_settings_destroy(clone);
	return NULL;
}

static struct worker_setting *settings_find_row(const struct worker_settings *settings,
						const char *name)
{
	for (unsigned int i = 0; i < settings->n; i++)
		if (strcmp(settings->row[i].name, name) == 0)
			return &settings->row[i];
	return NULL;
}

const struct worker_setting *workers_settings_find(const struct worker_settings *settings,
						   const char *name)
{
	return settings_find_row(settings, name);
}

unsigned int workers_settings_count(const struct worker_settings *settings)
{
	return settings->n;
}

const struct worker_setting *workers_settings_at(const struct worker_settings *settings,
						 unsigned int i)
{
	return &settings->row[i];
}

/* The row of <name>, added when there is none and <set> is true. NULL with 0 or -errno in <ret>. */
static struct worker_setting *settings_find_or_add(struct worker_settings *settings,
						   const char *name, bool set, int *ret)
{
	struct worker_setting *row = settings_find_row(settings, name);

	if (row != NULL || !set)
		return row;
	*ret = -ENOSPC;
	if (settings->n == SETTINGS_MAX)
		return NULL;
	*ret = -ENOMEM;
	if (settings->n == settings->room) {
		unsigned int room = settings->room == 0 ? 16 : 2 * settings->room;

		row = reallocarray(settings->row, room, sizeof(*row));
		if (row == NULL)
			return NULL;
		settings->row = row;
		settings->room = room;
	}
	row = &settings->row[settings->n++];
	memset(row, 0, sizeof(*row));
	strncpy(row->name, name, sizeof(row->name) - 1);
	return row;
}

static void remove_row(struct worker_settings *settings, struct worker_setting *row)
{
	settings->n_pins -= row->n_pins;
	free(row->pin);
	*row = settings->row[--settings->n];
}

static void remove_if_empty(struct worker_settings *settings, struct worker_setting *row)
{
	if (!row->drain && row->weight == 0 && row->n_pins == 0)
		remove_row(settings, row);
}

int workers_settings_drain(struct worker_settings *settings, const char *name, bool drain)
{
	int ret = 0;
	struct worker_setting *row = settings_find_or_add(settings, name, drain, &ret);

	if (row == NULL)
		return ret;
	row->drain = drain;
	row->partly = false;
	row->successor[0] = '\0';
	remove_if_empty(settings, row);
	return 0;
}

static void set_successor(struct worker_setting *row, const char *successor, bool partly)
{
	row->partly = partly;
	strncpy(row->successor, successor, sizeof(row->successor) - 1);
	row->successor[sizeof(row->successor) - 1] = '\0';
}

int workers_settings_replace(struct worker_settings *settings, const char *name,
			     const char *successor, bool partly)
{
	int ret = 0;
	struct worker_setting *row = settings_find_or_add(settings, name, true, &ret);

	if (row == NULL)
		return ret;
	if (!row->drain || row->successor[0] != '\0')
		set_successor(row, successor, partly);
	row->drain = true;
	for (unsigned int i = 0; i < settings->n; i++)
		if (strcmp(settings->row[i].successor, name) == 0 &&
		    strcmp(settings->row[i].name, successor) != 0)
			set_successor(&settings->row[i], successor,
				      partly || settings->row[i].partly);
	return 0;
}

int workers_settings_weight(struct worker_settings *settings, const char *name, uint32_t weight)
{
	int ret = 0;
	struct worker_setting *row = settings_find_or_add(settings, name, weight != 0, &ret);

	if (row == NULL)
		return ret;
	row->weight = weight;
	remove_if_empty(settings, row);
	return 0;
}

static struct setting_pin *find_pin(const struct worker_setting *row, const char *service)
{
	for (unsigned int i = 0; row != NULL && i < row->n_pins; i++)
		if (strcmp(row->pin[i].service, service) == 0)
			return &row->pin[i];
	return NULL;
}

static int add_pin(struct worker_settings *settings, struct worker_setting *row,
		   const char *service, enum assign_pin what)
{
	struct setting_pin *pin;

	if (settings->n_pins == SETTINGS_PINS_MAX)
		return -ENOSPC;
	pin = reallocarray(row->pin, row->n_pins + 1, sizeof(*pin));
	if (pin == NULL)
		return -ENOMEM;
	row->pin = pin;
	pin = &row->pin[row->n_pins++];
	settings->n_pins++;
	memset(pin, 0, sizeof(*pin));
	strncpy(pin->service, service, sizeof(pin->service) - 1);
	pin->pin = what;
	return 0;
}

int workers_settings_pin(struct worker_settings *settings, const char *name, const char *service,
			 enum assign_pin what)
{
	int ret = 0;
	struct worker_setting *row =
		settings_find_or_add(settings, name, what != ASSIGN_AUTO, &ret);
	struct setting_pin *pin = find_pin(row, service);

	if (row == NULL)
		return ret;
	if (pin != NULL && what == ASSIGN_AUTO) {
		*pin = row->pin[--row->n_pins];
		settings->n_pins--;
	} else if (pin != NULL) {
		pin->pin = what;
	} else if (what != ASSIGN_AUTO) {
		ret = add_pin(settings, row, service, what);
	}
	remove_if_empty(settings, row);
	return ret;
}

bool workers_settings_forget(struct worker_settings *settings, const char *name)
{
	struct worker_setting *row = settings_find_row(settings, name);

	if (row == NULL)
		return false;
	remove_row(settings, row);
	return true;
}

enum assign_pin workers_settings_pinned(const struct worker_settings *settings, const char *name,
					const char *service)
{
	const struct setting_pin *pin = find_pin(settings_find_row(settings, name), service);

	return pin == NULL ? ASSIGN_AUTO : pin->pin;
}
