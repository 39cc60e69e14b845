/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service that a new flow belongs to: a read-only hash of every VIP, port and
 * protocol. Pure.
 */
#ifndef LB_SERVICE_H
#define LB_SERVICE_H

#include <stdint.h>

#include "config/config.h"
#include "conntrack.h"
#include "lcore/tcp_settings.h"

#define SERVICE_NONE     UINT16_MAX /* one of our addresses, but no service has the port */
#define SERVICE_NOT_OURS (UINT16_MAX - 1)

/* At least twice the entries of LB_SERVICES_MAX services: one per VIP, one per VIP and port. */
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
 * The services of one configuration, as lcores use them. Never changed: a reload makes another and
 * replaces the pointer between two iterations of the lcore.
 */
struct service_snapshot {
	unsigned int n; /* service numbers are below this */
	struct service_table table;
	struct lb_service_config config[LB_SERVICES_MAX]; /* by number; see struct lb_config */
	/* Lcores take these from here: struct lb_config changes after they have changed over. */
	struct lb_tcp_config tcp;
	struct tcp_settings tcp_settings[LB_SERVICES_MAX]; /* of services with protocol tcp */
	/* The next service with the same address, port and protocol, in a ring; itself if there is
	 * none. New flows belong to the first. Those being retired are in no ring. */
	uint16_t beside[LB_SERVICES_MAX];
	uint32_t max_request[LB_SERVICES_MAX]; /* the largest of the ring */
};

/*
 * For services being retired only the address is entered: new flows to them belong to no service.
 */
void service_table_init(struct service_table *table, const struct lb_config *config, uint64_t seed);
void service_snapshot_init(struct service_snapshot *snapshot, const struct lb_config *config,
			   uint64_t seed);

/* The number of the flow's service, SERVICE_NONE or SERVICE_NOT_OURS. */
uint16_t service_lookup(const struct service_table *table, const struct flow_key *key);

/* Is this address one of the VIPs? */
bool service_has_address(const struct service_table *table, const struct in6_addr *address);

#endif
