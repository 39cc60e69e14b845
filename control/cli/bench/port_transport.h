/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams through a DPDK port that no other program uses: IPv4, one thread. The EAL runs already.
 */
#ifndef BENCH_PORT_TRANSPORT_H
#define BENCH_PORT_TRANSPORT_H

#include "cli/bench/transport.h"

extern const struct transport_ops transport_port;

#endif
