/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which service does a new flow belong to? A read-only hash of every VIP and port. Pure.
 */
#ifndef LB_SERVICE_H
#define LB_SERVICE_H

#include <stdint.h>

#include "config/config.h"
#include "conntrack.h"

#define SERVICE_NONE     UINT16_MAX /* one of our addresses, but nothing listens there */
#define SERVICE_NOT_OURS (UINT16_MAX - 1)

/* Twice the entries that the most services make (one per VIP, one per VIP and port), or more. */
#define SERVICE_TABLE_SIZE 2048

struct service_entry {
	struct in6_addr address; /* IPv4 mapped */
	uint16_t port;           /* network order; 0 = the address itself */
	uint8_t protocol;        /* 0 for the address itself */
	uint8_t used;
	uint16_t service;
};

struct service_table {
	uint64_t seed;
	struct service_entry entry[SERVICE_TABLE_SIZE];
};

/*
 * The services as an lcore sees them: all of one configuration. Never changed; another takes its
 * place between two turns of the lcore.
 */
struct service_view {
	unsigned int n; /* numbers are below this */
	struct service_table table;
	struct lb_service_config config[LB_SERVICES_MAX]; /* by number; see struct lb_config */
};

/* Of services that leave only the address is ours still: new flows to them belong to no service. */
void service_table_init(struct service_table *table, const struct lb_config *config, uint64_t seed);
void service_view_init(struct service_view *view, const struct lb_config *config, uint64_t seed);

/* The service's number, SERVICE_NONE or SERVICE_NOT_OURS. */
uint16_t service_lookup(const struct service_table *table, const struct flow_key *key);

/* Is this one of the VIPs? */
bool service_has_address(const struct service_table *table, const struct in6_addr *address);

#endif
