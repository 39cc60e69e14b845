/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resolves workers' addresses (private to lb/): fabric port, next hop, MAC address. Asks by ARP or
 * neighbour discovery until answered, and again when links time out. Control thread only.
 */
#ifndef LB_RESOLVE_H
#define LB_RESOLVE_H

#include "lcore/lcore.h"

/* The fabric port whose subnet holds <address>, or -1. */
int resolve_port(const struct lb_config *config, const struct lb_address *address);
/* The fabric port with a gateway of the address's family, or -1. */
int resolve_gateway_port(const struct lb_config *config, const struct lb_address *address);

/* Begin to resolve the <address> of worker number <worker> on fabric port <port>. */
void resolve_start(struct lb *lb, uint16_t worker, uint16_t port, const struct lb_address *address);
void resolve_stop(struct lb *lb, uint16_t worker);

/*
 * Report the number of timeouts and packets from unknown MAC addresses on the links to <worker>,
 * ever. If it grew, the worker may have moved and is asked for again.
 */
void resolve_doubt(struct lb *lb, uint16_t worker, uint64_t doubts);

/* Use answers, ask where one is missing or in doubt, watch the ports' link state. */
void resolve_tick(struct lb *lb, uint32_t now_ms);

/*
 * Announce a new VIP to the neighbours by gratuitous ARP or an unsolicited advertisement. VIPs that
 * are there from the start are announced by resolve_tick(), on each port when its link comes up.
 */
void resolve_announce_vip(struct lb *lb, const struct lb_address *vip);

#endif
