/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs between two configurations, key by key, and what it takes to have it so: the rows of
 * config_schema.c say which keys a running load balancer can change. Pure.
 */
#ifndef LB_CONFIG_DIFF_H
#define LB_CONFIG_DIFF_H

#include <stddef.h>
#include <stdint.h>

struct lb_config;
struct lb_service_config;

/* Of a changed value. A key whose row says nothing needs a restart. */
enum lb_config_effect {
	LB_CONFIG_RESTART, /* fixed when the load balancer starts */
	LB_CONFIG_REPLACE, /* of services: the old one leaves, another takes its name */
	LB_CONFIG_LIVE,    /* changed under way */
	LB_CONFIG_EFFECTS,
};

#define LB_CONFIG_KEY_MAX   192
#define LB_CONFIG_VALUE_MAX 512

struct lb_config_change {
	char key[LB_CONFIG_KEY_MAX]; /* "ports[0].mtu", "services[chat].queue", "services[chat]" */
	/* As they stand in the file; empty: there is no such service, or no such value is set. */
	char from[LB_CONFIG_VALUE_MAX], to[LB_CONFIG_VALUE_MAX];
	enum lb_config_effect effect;
};

/* "live", "replace", "restart" */
const char *lb_config_effect_name(enum lb_config_effect effect);

typedef void lb_config_visit(void *context, const struct lb_config_change *change);

/*
 * Visit every change from <from>, which runs, to <to>, a file: services are matched by name, and
 * those that leave are none.
 */
void lb_config_diff(const struct lb_config *from, const struct lb_config *to,
		    lb_config_visit *visit, void *context);

/* The same for two services, as if they had the same name. */
void lb_config_diff_service(const struct lb_service_config *from,
			    const struct lb_service_config *to, lb_config_visit *visit,
			    void *context);

/*
 * What runs when <file> is applied to <now>: services keep their numbers, those that <file> does
 * not have are marked as leaving, new ones take free numbers. 0, or -errno with one line in <error>
 * that says what cannot change without a restart.
 */
int lb_config_merge(const struct lb_config *now, const struct lb_config *file,
		    struct lb_config *next, char *error, size_t error_size);

/* Copy what can change under way from <from> to <to>, but for the services. */
void lb_config_copy_live(const struct lb_config *from, struct lb_config *to);

#endif
