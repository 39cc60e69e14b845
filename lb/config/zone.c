/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/zone.h"

/* The index of the port of this name, or LB_PORTS_MAX. */
static unsigned int port_named(const struct lb_config *config, const char *name)
{
	for (unsigned int i = 0; i < config->n_ports; i++)
		if (strcmp(config->port[i].name, name) == 0)
			return i;
	return LB_PORTS_MAX;
}

static bool has_port(const struct lb_zone_config *zone, const char *port)
{
	for (unsigned int i = 0; i < zone->n_ports; i++)
		if (strcmp(zone->port[i], port) == 0)
			return true;
	return false;
}

static bool has_vlan(const struct lb_zone_config *zone, uint16_t vlan)
{
	for (unsigned int i = 0; i < zone->n_vlans; i++)
		if (zone->vlan[i] == vlan)
			return true;
	return zone->n_vlans == 0;
}

bool zone_joins_ports(const struct lb_config *config, unsigned int port)
{
	for (unsigned int i = 0; i < config->n_zones; i++)
		if (config->zone[i].n_ports > 1 &&
		    has_port(&config->zone[i], config->port[port].name))
			return true;
	return false;
}

static uint16_t lowest_vlan(const struct lb_zone_config *zone)
{
	uint16_t lowest = ZONE_VLANS - 1;

	for (unsigned int i = 0; i < zone->n_vlans; i++)
		if (zone->vlan[i] < lowest)
			lowest = zone->vlan[i];
	return lowest;
}

static unsigned int lowest_port(const struct lb_config *config, const struct lb_zone_config *zone)
{
	unsigned int lowest = LB_PORTS_MAX - 1;

	for (unsigned int i = 0; i < zone->n_ports; i++) {
		unsigned int port = port_named(config, zone->port[i]);

		if (port < lowest)
			lowest = port;
	}
	return lowest;
}

/* The zone's number. A zone that lists no VLANs has one for each VLAN id. */
static uint16_t zone_number(const struct lb_config *config, const struct lb_zone_config *zone,
			    uint16_t vlan)
{
	return zone_place(lowest_port(config, zone), zone->n_vlans == 0 ? vlan : lowest_vlan(zone));
}

static const struct lb_zone_config *zone_configured(const struct lb_config *config, uint16_t place)
{
	const char *port = config->port[place / ZONE_VLANS].name;

	for (unsigned int i = 0; i < config->n_zones; i++)
		if (has_port(&config->zone[i], port) &&
		    has_vlan(&config->zone[i], place % ZONE_VLANS))
			return &config->zone[i];
	return NULL;
}

uint16_t zone_of_place(const struct lb_config *config, uint16_t place)
{
	const struct lb_zone_config *zone = zone_configured(config, place);

	return zone == NULL ? place : zone_number(config, zone, place % ZONE_VLANS);
}

const char *zone_name(const struct lb_config *config, uint16_t zone, char name[ZONE_NAME_MAX])
{
	const struct lb_zone_config *own = zone_configured(config, zone);
	const char *base = own != NULL ? own->name : config->port[zone / ZONE_VLANS].name;

	if (zone % ZONE_VLANS == 0 || (own != NULL && own->n_vlans > 0))
		snprintf(name, ZONE_NAME_MAX, "%s", base);
	else
		snprintf(name, ZONE_NAME_MAX, "%s.%u", base, zone % ZONE_VLANS);
	return name;
}

/* The zone of this name and VLAN id. The id is 0 except for zones that have one per VLAN id. */
static bool zone_find_base(const struct lb_config *config, const char *base, uint16_t vlan,
			   uint16_t *zone)
{
	unsigned int port = port_named(config, base);

	for (unsigned int i = 0; i < config->n_zones; i++) {
		const struct lb_zone_config *own = &config->zone[i];

		if (strcmp(own->name, base) != 0 || (own->n_vlans > 0 && vlan != 0))
			continue;
		*zone = zone_number(config, own, vlan);
		return true;
	}
	/* A port and VLAN of a configured zone go by the zone's name only. */
	if (port == LB_PORTS_MAX || zone_configured(config, zone_place(port, vlan)) != NULL)
		return false;
	*zone = zone_place(port, vlan);
	return true;
}

bool zone_find(const struct lb_config *config, const char *name, uint16_t *zone)
{
	const char *dot = strrchr(name, '.');
	char base[LB_NAME_MAX];
	unsigned long vlan;
	char *end;

	if (zone_find_base(config, name, 0, zone))
		return true;
	if (dot == NULL || !isdigit((unsigned char)dot[1]) || (size_t)(dot - name) >= sizeof(base))
		return false;
	vlan = strtoul(dot + 1, &end, 10);
	if (*end != '\0' || vlan == 0 || vlan >= ZONE_VLANS)
		return false;
	memcpy(base, name, dot - name);
	base[dot - name] = '\0';
	return zone_find_base(config, base, (uint16_t)vlan, zone);
}
