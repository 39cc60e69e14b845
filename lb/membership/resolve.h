/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How workers are reached (private to lb/): which fabric port, through which next hop, at which MAC
 * address. Asks by ARP or neighbour discovery until answered, and again when links time out.
 * Control thread only.
 */
#ifndef LB_RESOLVE_H
#define LB_RESOLVE_H

#include "lcore/lcore.h"

/* The fabric port whose subnet holds <address>, or -1. */
int resolve_port(const struct lb_config *config, const struct lb_address *address);
/* The fabric port with a gateway of the address's family, or -1. */
int resolve_gateway_port(const struct lb_config *config, const struct lb_address *address);

void resolve_start(struct lb *lb, uint16_t worker, uint16_t port, const struct lb_address *address);
void resolve_stop(struct lb *lb, uint16_t worker);

/*
 * Links to <worker> had so many timeouts and packets from strange MAC addresses in all: more than
 * before means that it may have moved.
 */
void resolve_doubt(struct lb *lb, uint16_t worker, uint64_t doubts);

/* Take in answers, ask where one is missing or in doubt, look after the ports' cables. */
void resolve_tick(struct lb *lb, uint32_t now_ms);

/*
 * Tell the neighbours where a VIP is now, by gratuitous ARP or an unsolicited advertisement. What
 * begins with the load balancer is announced by resolve_tick(), on each port when it gets a link.
 */
void resolve_announce_vip(struct lb *lb, const struct lb_address *vip);

#endif
