/* SPDX-License-Identifier: BSD-3-Clause */
/* Built without rdma-core: no port has engine verbs, so there are no completions. */
#include "lcore/lcore.h"
#include "walk/fabric_verbs.h"

unsigned int fabric_verbs_poll(struct lcore *lc, unsigned int port)
{
	return 0;
}
