/* SPDX-License-Identifier: BSD-3-Clause */
/* The devargs that stand for a kernel's interface, and when AF_XDP is out of the question. */
#include <criterion/criterion.h>
#include <string.h>

#include "runtime/kernel_port.h"
#include "runtime/xdp.h"

Test(kernel_port, is_known_by_its_name)
{
	cr_expect(kernel_port_is("kernel0,iface=eth1"));
	cr_expect_not(kernel_port_is("net_af_packet0,iface=kernel0"));
	cr_expect_not(kernel_port_is("0000:3b:00.0"));
}

Test(kernel_port, becomes_devargs_of_either_driver)
{
	char devargs[128];

	cr_assert(kernel_port_devargs("kernel1,iface=eth1", true, 2, devargs, sizeof(devargs)));
	cr_expect_str_eq(devargs, "net_af_xdp1,iface=eth1,queue_count=2,busy_budget=0");
	cr_assert(kernel_port_devargs("kernel1,iface=eth1", false, 2, devargs, sizeof(devargs)));
	cr_expect_str_eq(devargs, "net_af_packet1,iface=eth1,qpairs=2");
	cr_expect_not(kernel_port_devargs("kernel1,iface=eth1", true, 2, devargs, 20));
}

Test(kernel_port, has_devargs_for_a_queue_alone)
{
	char devargs[128];

	cr_assert(kernel_port_part_devargs("kernel1,iface=eth1", 3, devargs, sizeof(devargs)));
	cr_expect_str_eq(devargs,
			 "net_af_xdp1_3,iface=eth1,start_queue=3,queue_count=1,busy_budget=0");
	cr_expect_not(kernel_port_part_devargs("kernel1,iface=eth1", 3, devargs, 20));
}

Test(kernel_port, uses_xdp_where_frames_fit_and_each_lcore_has_a_queue)
{
	static const struct {
		unsigned int rx_queues;
		uint16_t queues, mtu;
		const char *reason; /* a part of it; NULL: AF_XDP */
	} rows[] = {
		{1, 1, 1500, NULL},
		{1, 1, 3378, NULL},
		{2, 2, 1500, NULL},
		{0, 1, 1500, NULL},
		{1, 1, 3379, "its MTU is 3379"},
		{1, 2, 1500, "1 receive queues"},
		{PORT_PARTS_MAX + 1, PORT_PARTS_MAX + 1, 1500, "at most"},
		{2, 1, 1500, "2 receive queues"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct port_params params = {.queues = rows[i].queues, .mtu = rows[i].mtu};
		char text[KERNEL_PORT_REASON_MAX];
		const char *reason =
			kernel_port_without_xdp(rows[i].rx_queues, &params, text, sizeof(text));

		if (!xdp_is_built())
			cr_expect(strstr(reason, "no XDP program") != NULL);
		else if (rows[i].reason == NULL)
			cr_expect_null(reason, "row %zu: %s", i, reason);
		else
			cr_expect(reason != NULL && strstr(reason, rows[i].reason) != NULL,
				  "row %zu: %s", i, reason);
	}
}
