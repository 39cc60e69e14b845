/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <infiniband/verbs.h>

#include "cli/doctor/verbs.h"

static unsigned int query(struct ibv_device *device, unsigned int port)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_port_attr attributes = {0};
	unsigned int mtu = 0;

	if (context == NULL)
		return 0;
	/* IBV_MTU_256 is 1; each further one is twice as large */
	if (ibv_query_port(context, port, &attributes) == 0 &&
	    attributes.active_mtu >= IBV_MTU_256 && attributes.active_mtu <= IBV_MTU_4096)
		mtu = 128u << attributes.active_mtu;
	ibv_close_device(context);
	return mtu;
}

unsigned int verbs_active_mtu(const char *device, unsigned int port)
{
	struct ibv_device **list;
	unsigned int mtu = 0;
	int n = 0;

	if (port == 0 || port > UINT8_MAX)
		return 0;
	list = ibv_get_device_list(&n);
	for (int i = 0; list != NULL && i < n; i++)
		if (strcmp(ibv_get_device_name(list[i]), device) == 0)
			mtu = query(list[i], port);
	if (list != NULL)
		ibv_free_device_list(list);
	return mtu;
}
