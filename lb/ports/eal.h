/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts the EAL with arguments made from the configuration, so that operators never write them.
 */
#ifndef LB_EAL_H
#define LB_EAL_H

#include "config/config.h"

/* Start the EAL. 0, or -errno with a sentence in <error>. Call once, before lb_create(). */
int lb_eal_init(const struct lb_config *config, const char *program, char *error, size_t size);

#endif
