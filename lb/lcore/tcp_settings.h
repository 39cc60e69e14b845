/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of TCP as connections take it. Pure. */
#ifndef LB_TCP_SETTINGS_H
#define LB_TCP_SETTINGS_H

#include "config/config.h"
#include "tcp/connection.h"

/*
 * The settings of connections to <service>, which has protocol tcp. mss is that of the smallest MTU
 * of the clients ports, unless tcp.mss is less; scale lets the window grow to 8 MiB at least, as it
 * is fixed for a connection's life, and tcp.window is not.
 */
struct tcp_settings lb_tcp_settings(const struct lb_config *config,
				    const struct lb_service_config *service);

#endif
