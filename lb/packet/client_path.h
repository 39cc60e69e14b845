/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way back to a client: the port, VLAN and MAC address that its request came by. Kept with each
 * request, never with its flow, so that no later packet, forged or not, can divert its reply.
 */
#ifndef LB_CLIENT_PATH_H
#define LB_CLIENT_PATH_H

#include <stdint.h>

/* The largest TTL or hop limit of a reply. */
#define CLIENT_PATH_HOPS 64

struct client_path {
	uint8_t mac[6];
	uint16_t zero;
	uint8_t hops;  /* TTL or hop limit of the request, at least 2 */
	uint8_t port;  /* index of the port */
	uint16_t vlan; /* TCI in host order, 0 = untagged */
	uint32_t zeros;
};
_Static_assert(sizeof(struct client_path) == 16, "copied as one register");

/*
 * The TTL or hop limit of a reply: less than its request's. Should the client be another load
 * balancer that takes replies for requests, the loop between the two ends without any state.
 */
static inline uint8_t client_path_hops(const struct client_path *path)
{
	return path->hops - 1 > CLIENT_PATH_HOPS ? CLIENT_PATH_HOPS : path->hops - 1;
}

#endif
