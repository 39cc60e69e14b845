/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for the verbs engine where the agent is built without rdma-core. */
#include <stdio.h>

#include "rnic/verbs_rnic.h"

struct rnic *verbs_rnic_create(const struct verbs_rnic_params *params, char *description,
			       size_t description_size, char *error, size_t size)
{
	snprintf(error, size,
		 "--engine verbs: this program was built without rdma-core; install "
		 "libibverbs-dev and build again with -Dverbs=enabled");
	return NULL;
}
