/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way back to a client: by the port, VLAN and station that the request came by. Kept with each
 * request, never with its flow: no later packet, whoever sent it, can move a reply that is owed.
 */
#ifndef LB_CLIENT_PATH_H
#define LB_CLIENT_PATH_H

#include <stdint.h>

/* A reply's TTL or hop limit, where its request came with more. */
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
 * The TTL or hop limit of what goes back: less than the request's. Should the client be another
 * load balancer that takes a reply for a request, what goes around between them ends, without
 * anybody remembering it.
 */
static inline uint8_t client_path_hops(const struct client_path *path)
{
	return path->hops - 1 > CLIENT_PATH_HOPS ? CLIENT_PATH_HOPS : path->hops - 1;
}

#endif
