/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into doorbell-lb-tcp, which serves TCP services before doorbell-lb does. */
#include "config/config_tcp.h"

int __wrap_config_tcp_check_served(struct config_yaml *yaml, const struct lb_config *config);

int __wrap_config_tcp_check_served(struct config_yaml *yaml, const struct lb_config *config)
{
	return 0;
}
