/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses that a port's XDP program keeps from the kernel. Control thread. */
#ifndef LB_KEPT_H
#define LB_KEPT_H

#include "config/config.h"

#define KEPT_MAX (LB_SERVICES_MAX + 1)

/* The VIPs and the fabric address of port <index>: at most KEPT_MAX; returns their number. */
unsigned int kept_addresses(const struct lb_config *config, unsigned int index,
			    struct in6_addr *address);

#endif
