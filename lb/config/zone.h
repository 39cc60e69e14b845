/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zones: the networks that clients are in. A clients port's VLAN is a zone, unless the
 * configuration says that several are one. Flows of different zones are different flows, whatever
 * their addresses. Pure; no DPDK.
 *
 * A zone's number is the lowest place in it, where a place is a port's index and a VLAN id. So
 * numbers need no table unless zones are configured. They differ between load balancers.
 */
#ifndef LB_ZONE_H
#define LB_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

#define ZONE_VLANS  4096
#define ZONE_PLACES (LB_PORTS_MAX * ZONE_VLANS)
_Static_assert(ZONE_PLACES <= UINT16_MAX + 1, "places are numbered in 16 bits");

/* "name" or "name.4094" */
#define ZONE_NAME_MAX (LB_NAME_MAX + 5)

/* <port> is an index, <tci> what a frame's VLAN tag says; of that its priority is left out. */
static inline uint16_t zone_place(unsigned int port, uint16_t tci)
{
	return (uint16_t)(port * ZONE_VLANS | (tci & (ZONE_VLANS - 1)));
}

/* The zone of a place, by the configuration. Slow: for building a table. */
uint16_t zone_of_place(const struct lb_config *config, uint16_t place);

/* How people call it: the zone's or the port's name, and the VLAN id if that does not say all. */
const char *zone_name(const struct lb_config *config, uint16_t zone, char name[ZONE_NAME_MAX]);
/* The zone that people call <name>. False: there is none. */
bool zone_find(const struct lb_config *config, const char *name, uint16_t *zone);

#endif
