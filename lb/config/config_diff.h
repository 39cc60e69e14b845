/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The differences between two configurations, key by key, and how each can be applied: the rows of
 * config_schema.c say which keys a running load balancer can change. Facade of config_diff.c and
 * config_merge.c. Pure.
 */
#ifndef LB_CONFIG_DIFF_H
#define LB_CONFIG_DIFF_H

#include <stddef.h>
#include <stdint.h>

struct lb_config;
struct lb_service_config;

/* How a changed value takes effect. A key whose row names no effect needs a restart. */
enum lb_config_effect {
	LB_CONFIG_RESTART, /* fixed when the load balancer starts */
	LB_CONFIG_REPLACE, /* of services: the old one is retired, a new one takes its name */
	LB_CONFIG_LIVE,    /* changed while it runs */
	LB_CONFIG_EFFECTS,
};

#define LB_CONFIG_KEY_MAX   192
#define LB_CONFIG_VALUE_MAX 512

struct lb_config_change {
	char key[LB_CONFIG_KEY_MAX]; /* "ports[0].mtu", "services[chat].queue", "services[chat]" */
	/* The values as a file would have them; empty: no such service, or the value is not set. */
	char from[LB_CONFIG_VALUE_MAX], to[LB_CONFIG_VALUE_MAX];
	enum lb_config_effect effect;
};

/* "live", "replace", "restart" */
const char *lb_config_effect_name(enum lb_config_effect effect);

typedef void lb_config_visit(void *context, const struct lb_config_change *change);

/*
 * Visit every change from <from>, the running configuration, to <to>, a file. Services are matched
 * by name; those that are leaving do not count.
 */
void lb_config_diff(const struct lb_config *from, const struct lb_config *to,
		    lb_config_visit *visit, void *context);

/* The same for two services, as if they had the same name. */
void lb_config_diff_service(const struct lb_service_config *from,
			    const struct lb_service_config *to, lb_config_visit *visit,
			    void *context);

/*
 * Merge <file> into the running configuration <now>: services keep their numbers, those that <file>
 * lacks are marked as leaving, new ones take free numbers. 0 with the result in <next>, or -errno
 * with one line in <error> that names the keys that cannot change without a restart.
 */
int lb_config_merge(const struct lb_config *now, const struct lb_config *file,
		    struct lb_config *next, char *error, size_t error_size);

/* Copy all values that can change at run time from <from> to <to>, except the services. */
void lb_config_copy_live(const struct lb_config *from, struct lb_config *to);

#endif
