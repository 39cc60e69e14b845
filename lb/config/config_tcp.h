/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services with protocol tcp and the section tcp: the keys that go together. Private to config*.c.
 * Every call returns 0, or -EINVAL with the error written.
 */
#ifndef LB_CONFIG_TCP_H
#define LB_CONFIG_TCP_H

#include "config/config.h"
#include "config/config_yaml.h"

/* Check the keys of the section against each other and against the ports. */
int config_tcp_check(struct config_yaml *yaml, const struct lb_config *config);

/* Give each service the framing of its protocol, and refuse keys of the other protocol. */
int config_tcp_fit_keys(struct config_yaml *yaml, struct lb_config *config);

/* Give service <i>, of protocol tcp, the sizes that were left out. */
int config_tcp_fit_sizes(struct config_yaml *yaml, struct lb_config *config, unsigned int i);

/*
 * Services <i> and <earlier> have one address, port and protocol: refuse that, unless both have
 * framing kserve and models of their own. The second call refuses more of them than may be.
 */
int config_tcp_check_beside(struct config_yaml *yaml, const struct lb_config *config,
			    unsigned int i, unsigned int earlier);
int config_tcp_check_beside_many(struct config_yaml *yaml, const struct lb_config *config,
				 unsigned int i);

#endif
