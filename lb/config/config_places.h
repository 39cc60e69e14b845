/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys near, spread and labels: what goes together, and the load balancer's own labels. */
#ifndef LB_CONFIG_PLACES_H
#define LB_CONFIG_PLACES_H

#include "config/config.h"
#include "config/config_yaml.h"

/* Check the labels and each service's near and spread. 0, or -EINVAL with the error written. */
int config_places_check(struct config_yaml *yaml, const struct lb_config *config);

/*
 * The load balancer's own value of the label <key>; the label host is <host> where the file does
 * not give it. NULL: it has no such label.
 */
const char *lb_config_label(const struct lb_config *config, const char *key, const char *host);

#endif
