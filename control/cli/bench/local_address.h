/* SPDX-License-Identifier: BSD-3-Clause */
/* Is an address one of this machine's? Load for others must be asked for by name. */
#ifndef BENCH_LOCAL_ADDRESS_H
#define BENCH_LOCAL_ADDRESS_H

#include <stdbool.h>

#include "cli/bench/option_table.h"

/* One of this network namespace's, or of a named one's (ip netns), as far as we may enter those. */
bool local_address_is(const struct address *address);

#endif
