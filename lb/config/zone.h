/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zones: the networks that clients are in. Each VLAN of a clients port is a zone, unless the
 * configuration joins several. Flows of different zones are different flows, even with equal
 * addresses. Pure; no DPDK.
 *
 * A place is a port's index and a VLAN id; a zone's number is the lowest place in it. So numbers
 * need no table unless zones are configured. They differ between load balancers.
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

/* The place of a port's index and a frame's VLAN TCI, of which only the VLAN id counts. */
static inline uint16_t zone_place(unsigned int port, uint16_t tci)
{
	return (uint16_t)(port * ZONE_VLANS | (tci & (ZONE_VLANS - 1)));
}

/* The zone of a place, by the configuration. Slow: for building a table. */
uint16_t zone_of_place(const struct lb_config *config, uint16_t place);

/* True when a zone has this port (an index) and others: a flow may come by any of them. */
bool zone_joins_ports(const struct lb_config *config, unsigned int port);

/* Write the zone's name: the zone's or the port's, with the VLAN id where the name covers several.
 */
const char *zone_name(const struct lb_config *config, uint16_t zone, char name[ZONE_NAME_MAX]);
/* Find the zone that zone_name() calls <name>. False: there is none. */
bool zone_find(const struct lb_config *config, const char *name, uint16_t *zone);

#endif
