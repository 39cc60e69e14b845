/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operators' settings of workers, by worker name: drain, weight, assignments to services. A setting
 * outlives its worker's registration. Pure; control thread.
 */
#ifndef WORKERS_SETTINGS_H
#define WORKERS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "worker_limits.h"

/* Most names with settings, and most assignments of all names together. */
#define SETTINGS_MAX      4096
#define SETTINGS_PINS_MAX 4096

/* An operator's setting for a worker and a service: neither, assigned (IN) or released (OUT). */
enum assign_pin { ASSIGN_AUTO, ASSIGN_IN, ASSIGN_OUT };

struct setting_pin {
	char service[WORKER_NAME_MAX];
	enum assign_pin pin; /* never ASSIGN_AUTO */
};

struct worker_setting {
	char name[WORKER_NAME_MAX];
	bool drain;      /* it gets no new requests */
	/* The worker for which it is drained, until it is drained; "": none. */
	char successor[WORKER_NAME_MAX];
	bool partly;     /* the successor need not serve all services that it serves */
	uint32_t weight; /* replaces the agent's weight; 0: the agent's weight */
	unsigned int n_pins;
	struct setting_pin *pin; /* in no order */
};

struct worker_settings;

/* NULL when out of memory. */
struct worker_settings *workers_settings_create(void);
struct worker_settings *workers_settings_clone(const struct worker_settings *settings);
void workers_settings_destroy(struct worker_settings *settings);

/* The settings of a name, valid until the next change. NULL when it has none. */
const struct worker_setting *workers_settings_find(const struct worker_settings *settings,
						   const char *name);
/* All settings, by index from 0 to count - 1, in no order. */
unsigned int workers_settings_count(const struct worker_settings *settings);
const struct worker_setting *workers_settings_at(const struct worker_settings *settings,
						 unsigned int i);

/*
 * Change one setting. A name without settings is removed. 0, or -errno with nothing changed:
 * -ENOMEM, or -ENOSPC above SETTINGS_MAX or SETTINGS_PINS_MAX.
 */
/* Also ends a replacement that is under way. Needs no memory where the name has settings. */
int workers_settings_drain(struct worker_settings *settings, const char *name, bool drain);
/*
 * Drain <name> for <successor>. One that is drained for its own sake stays so. Those that are
 * drained for <name> are drained for <successor> from now on.
 */
int workers_settings_replace(struct worker_settings *settings, const char *name,
			     const char *successor, bool partly);
int workers_settings_weight(struct worker_settings *settings, const char *name, uint32_t weight);
int workers_settings_pin(struct worker_settings *settings, const char *name, const char *service,
			 enum assign_pin pin);
/* Remove all settings of a name. False when it has none. */
bool workers_settings_forget(struct worker_settings *settings, const char *name);

enum assign_pin workers_settings_pinned(const struct worker_settings *settings, const char *name,
					const char *service);

#endif
