/* SPDX-License-Identifier: BSD-3-Clause */
/* Invariants of a connection and of its memory between calls. */
#ifndef TESTS_TCP_CHECK_H
#define TESTS_TCP_CHECK_H

#include "tcp/connection.h"

/* Returns true; or false and the reason in <why>. */
bool check_connection(const struct tcp_connection *c, char *why, size_t size);

/* True when everything that was taken from the pools has been returned. */
bool check_pools(const struct tcp_stack *stack, uint32_t actives, uint32_t chunks, uint32_t helds,
		 char *why, size_t size);

#endif
