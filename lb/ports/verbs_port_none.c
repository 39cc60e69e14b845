/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of engine verbs in builds without rdma-core: opening one fails. */
#include <errno.h>

#include "lcore/lcore.h"
#include "ports/verbs_port.h"

int verbs_port_open(struct lb *lb, unsigned int port)
{
	LB_LOG(ERR,
	       "port=%s engine verbs: this program was built without rdma-core; install "
	       "libibverbs-dev and build again with -Dverbs=enabled",
	       lb->config.port[port].name);
	return -ENOTSUP;
}

void verbs_port_close(struct lb *lb, unsigned int port)
{
}

uint32_t verbs_port_path_mtu(const struct lb *lb, unsigned int port)
{
	return 0;
}

void verbs_ports_tick(struct lb *lb)
{
}

int verbs_link_create(struct lb *lb, const struct verbs_link_params *params, struct verbs_link *out)
{
	return -ENOTSUP;
}

int verbs_link_connect(struct lb *lb, struct link *link, const struct verbs_link *made,
		       const struct lb_registration *peer, const struct lb_link_spec *remote,
		       uint32_t psn, uint32_t path_mtu)
{
	return -ENOTSUP;
}

void verbs_link_stop(struct link *link)
{
}

void verbs_link_discard(struct verbs_link *made)
{
}

bool verbs_port_arm(const struct lcore *lc, unsigned int port)
{
	return false;
}

void verbs_ports_awake(struct lcore *lc)
{
}
