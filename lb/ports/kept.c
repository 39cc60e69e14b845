/* SPDX-License-Identifier: BSD-3-Clause */
#include "ports/kept.h"

unsigned int kept_addresses(const struct lb_config *config, unsigned int index,
			    struct in6_addr *address)
{
	const struct lb_port_config *port = &config->port[index];
	unsigned int n = 0;

	if (port->fabric)
		address[n++] = port->address.addr;
	for (unsigned int i = 0; port->clients && i < config->n_services; i++)
		if (lb_service_used(&config->service[i]))
			address[n++] = config->service[i].vip.addr;
	return n;
}
