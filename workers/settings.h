/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What operators set for workers, by worker name: drain, weight, assignments to services. A setting
 * outlives its worker's registration. Pure; control thread.
 */
#ifndef WORKERS_SETTINGS_H
#define WORKERS_SETTINGS_H

#include "workers.h"

/* Names that have settings, and assignments of all of them together. */
#define SETTINGS_MAX      4096
#define SETTINGS_PINS_MAX 4096

/* What operators said of a worker and a service: assigned, released, or neither. */
enum assign_pin { ASSIGN_AUTO, ASSIGN_IN, ASSIGN_OUT };

struct setting_pin {
	char service[WORKER_NAME_MAX];
	enum assign_pin pin; /* never ASSIGN_AUTO */
};

struct worker_setting {
	char name[WORKER_NAME_MAX];
	bool drain;      /* it gets no new requests */
	uint32_t weight; /* instead of its agent's; 0: its agent's */
	unsigned int n_pins;
	struct setting_pin *pin; /* in no order */
};

struct worker_settings;

/* NULL when memory is short. */
struct worker_settings *workers_settings_create(void);
struct worker_settings *workers_settings_clone(const struct worker_settings *settings);
void workers_settings_destroy(struct worker_settings *settings);

/* NULL when nothing is set for this name. Valid until the next change. */
const struct worker_setting *workers_settings_find(const struct worker_settings *settings,
						   const char *name);
/* All of them, 0 to count - 1, in no order. */
unsigned int workers_settings_count(const struct worker_settings *settings);
const struct worker_setting *workers_settings_at(const struct worker_settings *settings,
						 unsigned int i);

/*
 * Change one thing. A name for which nothing is set any more is forgotten. 0; or -ENOMEM, or
 * -ENOSPC when SETTINGS_MAX or SETTINGS_PINS_MAX are taken, and then nothing has changed.
 */
int workers_settings_drain(struct worker_settings *settings, const char *name, bool drain);
int workers_settings_weight(struct worker_settings *settings, const char *name, uint32_t weight);
int workers_settings_pin(struct worker_settings *settings, const char *name, const char *service,
			 enum assign_pin pin);
/* False when nothing was set for this name. */
bool workers_settings_forget(struct worker_settings *settings, const char *name);

enum assign_pin workers_settings_pinned(const struct worker_settings *settings, const char *name,
					const char *service);

#endif
