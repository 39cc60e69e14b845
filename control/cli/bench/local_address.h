/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells this machine's addresses from others, because load for other machines needs --remote. */
#ifndef BENCH_LOCAL_ADDRESS_H
#define BENCH_LOCAL_ADDRESS_H

#include <stdbool.h>

#include "runtime/endpoint.h"

/*
 * True when the address belongs to this network namespace, or to a named one (ip netns) that this
 * user may enter.
 */
bool local_address_is(const struct endpoint_address *address);

#endif
