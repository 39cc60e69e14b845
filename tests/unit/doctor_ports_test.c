/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of a machine that is files, and what the kernel's network has. */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "doctor_fixture.h"

#include "cli/doctor/probe.h"

TestSuite(doctor_ports, .init = set_up, .fini = tear_down, .timeout = 60);

static void plan_memif(void)
{
	plan_device_of("net_memif0,role=server", 1500);
}

static void plan_no_interface(void)
{
	plan_device_of("net_af_packet0", 1500);
}

static void plan_mlx(void)
{
	plan_lb();
	d.plan.n_ports = 1;
}

static void plan_jumbo(void)
{
	plan_device_of("net_af_packet0,iface=eth1", 4200);
}

static void plan_small_frames(void)
{
	plan_device_of("net_af_packet0,iface=eth1,framesz=1024", 1500);
}

static void plan_xdp(void)
{
	plan_device_of("net_af_xdp0,iface=eth1", 1500);
	d.plan.n_cpus = 1;
}

static void plan_xdp_jumbo(void)
{
	plan_device_of("net_af_xdp0,iface=eth1", 4200);
}

static void plan_xdp_two(void)
{
	plan_device_of("net_af_xdp0,iface=eth1,queue_count=2", 1500);
}

static void plan_kernel(void)
{
	plan_device_of("kernel0,iface=eth1", 1500);
	d.plan.n_cpus = 1;
}

static void plan_kernel_jumbo(void)
{
	plan_device_of("kernel0,iface=eth1", 4200);
}

static void plan_pairs(void)
{
	plan_device_of("net_af_packet0,iface=eth1,qpairs=3", 1500);
}

static void plan_agent_device(void)
{
	plan_agent();
	d.plan.n_rdma = 0;
	d.plan.n_ports = 1;
	plan_device(&d.plan.port[0], "net_af_packet0,iface=eth1");
	d.plan.port[0].fabric = true;
}

static const struct row device_rows[] = {
	{"devices there", check_port_device, plan_lb, {}, DOCTOR_OK, "0000:3b:00.0 is there"},
	{"no such PCI device",
	 check_port_device,
	 plan_lb,
	 {{INTEL, NULL}},
	 DOCTOR_PROBLEM,
	 "no PCI device 0000:5e:00.0",
	 "ports[1].device"},
	{"no such interface",
	 check_port_device,
	 plan_packet,
	 {{"/sys/class/net/eth1", NULL}},
	 DOCTOR_PROBLEM,
	 "no interface eth1",
	 "iface= one of ens1"},
	{"no interface named",
	 check_port_device,
	 plan_no_interface,
	 {},
	 DOCTOR_PROBLEM,
	 "names no"},
	{"no hardware", check_port_device, plan_memif, {}, DOCTOR_NA, "no hardware"},
	{"no ports", check_port_device, plan_none, {}, DOCTOR_NA},
	{"drivers as they should be", check_port_driver, plan_lb, {}, DOCTOR_OK, "mlx5_core"},
	{"a ConnectX taken from its driver",
	 check_port_driver,
	 plan_lb,
	 {{MLX "/driver", "->../vfio-pci"}},
	 DOCTOR_PROBLEM,
	 "bound to 'vfio-pci'",
	 "dpdk-devbind.py -b mlx5_core 0000:3b:00.0"},
	{"another NIC with the kernel's driver",
	 check_port_driver,
	 plan_lb,
	 {{INTEL "/driver", "->../ice"}},
	 DOCTOR_PROBLEM,
	 "bound to 'ice'",
	 "dpdk-devbind.py -b vfio-pci 0000:5e:00.0"},
	{"no driver",
	 check_port_driver,
	 plan_lb,
	 {{INTEL "/driver", NULL}},
	 DOCTOR_PROBLEM,
	 "bound to 'nothing'"},
	{"an unsafe driver",
	 check_port_driver,
	 plan_lb,
	 {{INTEL "/driver", "->../uio_pci_generic"}},
	 DOCTOR_WARNING,
	 "protects no memory"},
	{"a driver that is no link",
	 check_port_driver,
	 plan_lb,
	 {{INTEL "/driver", "vfio-pci"}},
	 DOCTOR_PROBLEM},
	{"the kernel's driver stays", check_port_driver, plan_packet, {}, DOCTOR_NA},
	{"IOMMU and vfio-pci", check_iommu, plan_lb, {}, DOCTOR_OK},
	{"no IOMMU",
	 check_iommu,
	 plan_lb,
	 {{"/sys/class/iommu/dmar0", NULL}},
	 DOCTOR_PROBLEM,
	 "no IOMMU",
	 "intel_iommu=on"},
	{"no IOMMU, and vfio goes without",
	 check_iommu,
	 plan_lb,
	 {{"/sys/class/iommu/dmar0", NULL}, {NOIOMMU, "Y\n"}},
	 DOCTOR_WARNING,
	 "without an IOMMU"},
	{"vfio-pci is not loaded",
	 check_iommu,
	 plan_lb,
	 {{"/sys/bus/pci/drivers/vfio-pci", NULL}},
	 DOCTOR_PROBLEM,
	 "not loaded",
	 "modprobe vfio-pci"},
	{"mlx5 needs none", check_iommu, plan_mlx, {{"/sys/class/iommu", NULL}}, DOCTOR_NA},
	{"link up", check_port_link, plan_packet, {}, DOCTOR_OK, "eth1 is up"},
	{"interface down",
	 check_port_link,
	 plan_packet,
	 {{ETH("flags"), "0x1002\n"}},
	 DOCTOR_PROBLEM,
	 "eth1 is down",
	 "ip link set dev eth1 up"},
	{"no cable",
	 check_port_link,
	 plan_mlx,
	 {{ENS("carrier"), "0\n"}},
	 DOCTOR_PROBLEM,
	 "ens1 has no link",
	 "ethtool ens1"},
	{"flags of nonsense", check_port_link, plan_packet, {{ETH("flags"), "up"}}, DOCTOR_PROBLEM},
	{"no carrier file", check_port_link, plan_packet, {{ETH("carrier"), NULL}}, DOCTOR_PROBLEM},
	{"nothing would tell",
	 check_port_link,
	 plan_mlx,
	 {{"/sys/class/net/ens1", NULL}},
	 DOCTOR_NA},
};

static const struct row size_rows[] = {
	{"MTU", check_port_mtu, plan_packet, {}, DOCTOR_OK, "1500, 1500 needed"},
	{"MTU of a PCI device", check_port_mtu, plan_mlx, {}, DOCTOR_OK, "ens1 is 4200"},
	{"a small MTU",
	 check_port_mtu,
	 plan_mlx,
	 {{ENS("mtu"), "1500\n"}},
	 DOCTOR_PROBLEM,
	 "MTU of ens1 is 1500, ports[0].mtu is 4200",
	 "ip link set dev ens1 mtu 4200"},
	{"MTU of nonsense", check_port_mtu, plan_packet, {{ETH("mtu"), "-7"}}, DOCTOR_WARNING},
	{"no MTU", check_port_mtu, plan_packet, {{ETH("mtu"), NULL}}, DOCTOR_WARNING},
	{"DPDK sets it", check_port_mtu, plan_memif, {}, DOCTOR_NA},
	{"frames", check_port_frames, plan_packet, {}, DOCTOR_OK},
	{"jumbo frames",
	 check_port_frames,
	 plan_jumbo,
	 {},
	 DOCTOR_PROBLEM,
	 "ports[0].mtu is 4200, DPDK's af_packet takes at most 1500",
	 "ports[0].mtu: 1500; or ports[0].device: net_af_xdp0,iface=eth1"},
	{"small frames",
	 check_port_frames,
	 plan_small_frames,
	 {},
	 DOCTOR_PROBLEM,
	 "frames of 1024 bytes",
	 "framesz=2048"},
	{"an interface with an MTU too large for XDP",
	 check_port_frames,
	 plan_xdp,
	 {{ETH("mtu"), "9000\n"}},
	 DOCTOR_WARNING,
	 "refuse XDP",
	 "ip link set dev eth1 mtu 3378"},
	{"AF_XDP", check_port_frames, plan_xdp, {}, DOCTOR_OK},
	{"AF_XDP with jumbo frames",
	 check_port_frames,
	 plan_xdp_jumbo,
	 {},
	 DOCTOR_PROBLEM,
	 "AF_XDP takes at most 3378",
	 "ports[0].mtu: 3378"},
	{"a kernel's interface", check_port_frames, plan_kernel, {}, DOCTOR_OK},
	{"a kernel's interface with jumbo frames",
	 check_port_frames,
	 plan_kernel_jumbo,
	 {},
	 DOCTOR_PROBLEM,
	 "AF_XDP takes at most 3378",
	 "ports[0].mtu: 3378"},
	{"no frames", check_port_frames, plan_memif, {}, DOCTOR_NA},
	{"queues enough", check_port_queues, plan_mlx, {}, DOCTOR_OK, "2 receive queues"},
	{"one socket for two lcores",
	 check_port_queues,
	 plan_packet,
	 {},
	 DOCTOR_WARNING,
	 "1 queue for 2 lcores",
	 "add ,qpairs=2"},
	{"more sockets than lcores",
	 check_port_queues,
	 plan_pairs,
	 {},
	 DOCTOR_PROBLEM,
	 "qpairs=3, but only 2",
	 "qpairs=2"},
	{"AF_XDP on one queue", check_port_queues, plan_xdp, {}, DOCTOR_OK},
	{"AF_XDP misses queues",
	 check_port_queues,
	 plan_xdp,
	 {{ETH("queues/rx-1"), "/"}, {ETH("queues/rx-2"), "/"}},
	 DOCTOR_WARNING,
	 "eth1 has 3 receive queues, AF_XDP reads 1",
	 "ethtool -L eth1 combined 1"},
	{"a queue per lcore",
	 check_port_queues,
	 plan_kernel,
	 {{ETH("queues/rx-1"), NULL}, {ETH("queues/rx-2"), NULL}},
	 DOCTOR_OK},
	{"more queues than lcores",
	 check_port_queues,
	 plan_kernel,
	 {{ETH("queues/rx-1"), "/"}, {ETH("queues/rx-2"), "/"}},
	 DOCTOR_WARNING,
	 "eth1 has 3 receive queues for 1 lcores: af_packet is used",
	 "ethtool -L eth1 combined 1"},
	{"AF_XDP wants more queues than there are",
	 check_port_queues,
	 plan_xdp_two,
	 {{ETH("queues/rx-1"), NULL}, {ETH("queues/rx-2"), NULL}},
	 DOCTOR_PROBLEM,
	 "queue_count=2, but eth1 has 1",
	 "queue_count=1"},
	{"an agent has one", check_port_queues, plan_agent_device, {}, DOCTOR_NA},
};

static const struct row socket_rows[] = {
	{"4791 is free", check_roce_port, plan_packet, {}, DOCTOR_OK},
	{"4791 is bound",
	 check_roce_port,
	 plan_packet,
	 {{"/proc/net/udp6", SOCKETS " 7: 00000000000000000000000000000000:12B7 "
				     "00000000000000000000000000000000:0000 07 0:0\n"}},
	 DOCTOR_WARNING,
	 "4791 is bound",
	 "ss -lunp"},
	{"rdma_rxe on the same interface",
	 check_roce_port,
	 plan_packet,
	 {{"/sys/class/infiniband/rxe0/parent", "eth1\n"}},
	 DOCTOR_WARNING,
	 "software RNIC rxe0",
	 "rdma link delete rxe0"},
	{"rdma_rxe on another",
	 check_roce_port,
	 plan_packet,
	 {{"/sys/class/infiniband/rxe0/parent", "eth9\n"}},
	 DOCTOR_OK},
	{"the kernel has nothing to do with it", check_roce_port, plan_mlx, {}, DOCTOR_NA},
	{"4790 is free", check_agents_port, plan_lb, {}, DOCTOR_OK, "4790 is free"},
	{"4790 is taken",
	 check_agents_port,
	 plan_lb,
	 {{"/proc/net/tcp6", SOCKETS " 0: 00000000000000000000000000000000:12B6 "
				     "00000000000000000000000000000000:0000 0A 0:0\n"}},
	 DOCTOR_PROBLEM,
	 "4790 is taken",
	 "sport = :4790"},
	{"a connection to 4790 is no listener",
	 check_agents_port,
	 plan_lb,
	 {{"/proc/net/tcp", SOCKETS " 0: 0100007F:12B6 0100007F:9999 01 0:0\n"}},
	 DOCTOR_OK},
	{"a table of nonsense",
	 check_agents_port,
	 plan_lb,
	 {{"/proc/net/tcp", "::::\n0: 12B6 0A\n:12B6\n"}, {"/proc/net/tcp6", NULL}},
	 DOCTOR_OK},
	{"nobody listens", check_agents_port, plan_agent, {}, DOCTOR_NA},
	{"addresses of other machines", check_addresses, plan_lb, {}, DOCTOR_NA},
};

Test(doctor_ports, says_whether_devices_are_there_with_the_right_driver_and_a_link)
{
	CHECK_ROWS(device_rows);
}

Test(doctor_ports, says_which_mtu_frames_and_queues_do_not_fit)
{
	CHECK_ROWS(size_rows);
}

Test(doctor_ports, says_who_has_the_ports_that_it_wants)
{
	CHECK_ROWS(socket_rows);
}

Test(doctor_ports, finds_the_kernels_own_addresses_among_ours)
{
	const struct doctor_finding *w;

	plan_packet();
	d.root = "";
	d.n = 0;
	d.plan.n_vips = 1;
	lb_address_parse("192.0.2.1", &d.plan.vip[0]);
	check_addresses(&d);
	cr_expect_eq(d.n, 1);
	cr_expect_eq(worst()->status, DOCTOR_OK, "%s", worst()->found);
	lb_address_parse("127.0.0.1", &d.plan.port[0].address);
	d.n = 0;
	check_addresses(&d);
	w = worst();
	cr_expect_eq(w->status, DOCTOR_PROBLEM, "%s", w->found);
	cr_expect_str_eq(w->fix, "ip addr del 127.0.0.1/32 dev lo; or choose another");
}

Test(doctor_ports, agents_can_only_be_awaited_at_an_address_of_this_host)
{
	plan_lb();
	d.root = "";
	d.n = 0;
	d.plan.agents_port = 1; /* no process listens there */
	lb_address_parse("192.0.2.1", &d.plan.agents_address);
	check_agents_port(&d);
	cr_expect_eq(worst()->status, DOCTOR_PROBLEM);
	cr_expect(strstr(worst()->fix, "or 0.0.0.0:1"), "%s", worst()->fix);
	lb_address_parse("127.0.0.1", &d.plan.agents_address);
	d.n = 0;
	check_agents_port(&d);
	cr_expect_eq(worst()->status, DOCTOR_OK, "%s", worst()->found);
}

/* Returns the port of a socket of our own on the loopback interface. */
static unsigned int listener(int *fd)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);

	*fd = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(bind(*fd, (struct sockaddr *)&address, size), 0);
	cr_assert_eq(listen(*fd, 1), 0);
	cr_assert_eq(getsockname(*fd, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.sin_port);
}

Test(doctor_ports, connects_to_the_load_balancer_as_an_agent_would)
{
	int fd;
	unsigned int port = listener(&fd);

	plan_agent();
	strcpy(d.plan.lb.host, "127.0.0.1");
	snprintf(d.plan.lb.port_text, sizeof(d.plan.lb.port_text), "%u", port);
	d.n = 0;
	check_lb_reachable(&d);
	cr_expect_eq(worst()->status, DOCTOR_OK, "%s", worst()->found);
	close(fd);
	d.n = 0;
	check_lb_reachable(&d);
	cr_expect_eq(worst()->status, DOCTOR_PROBLEM, "%s", worst()->found);
	cr_expect(strstr(worst()->fix, "start doorbell-lb there"), "%s", worst()->fix);
	strcpy(d.plan.lb.host, "no such host");
	d.n = 0;
	check_lb_reachable(&d);
	cr_expect_eq(worst()->status, DOCTOR_PROBLEM, "%s", worst()->found);
	cr_expect(strstr(worst()->fix, "getent hosts"), "%s", worst()->fix);
	plan_agent();
	d.n = 0;
	check_lb_reachable(&d);
	cr_expect_eq(worst()->status, DOCTOR_NA);
}

Test(doctor_ports, says_why_the_fabric_cannot_be_probed)
{
	plan_agent();
	d.n = 0;
	check_fabric_mtu(&d);
	cr_expect_eq(worst()->status, DOCTOR_NA);
	lb_address_parse("127.0.0.1", &d.plan.lb_fabric_address);
	d.plan.n_ports = 1;
	plan_device(&d.plan.port[0], "0000:3b:00.0");
	d.n = 0;
	check_fabric_mtu(&d);
	cr_expect_eq(worst()->status, DOCTOR_NA);
	cr_expect(strstr(worst()->found, "behind the DPDK device 0000:3b:00.0"), "%s",
		  worst()->found);
	plan_device(&d.plan.port[0], "net_af_packet0,iface=eth1");
	d.n = 0;
	check_fabric_mtu(&d);
	cr_expect_eq(worst()->status, DOCTOR_NA);
	cr_expect(strstr(worst()->found, "by lo, not by eth1"), "%s", worst()->found);
}

Test(doctor_ports, pings_of_all_sizes_come_back_from_this_host)
{
	static const char *const here[] = {"127.0.0.1", "::1"};

	for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++) {
		struct probe probe = {0};
		struct lb_address to;
		char name[IF_NAMESIZE];
		int ret;

		lb_address_parse(here[i], &to);
		probe_route(&to, name);
		if (name[0] == '\0')
			cr_skip_test("this host has no %s", here[i]);
		cr_expect_str_eq(name, "lo");
		probe_add(&probe, 84, 1);
		probe_add(&probe, 1501, 2); /* odd: the checksum must be right, too */
		probe_add(&probe, 4176, 3);
		probe_add(&probe, 9217, 4); /* more than is ever asked */
		cr_assert_eq(probe.n, 3);
		ret = probe_run(&probe, &to);
		if (ret == -EPERM || ret == -EACCES)
			cr_skip_test("pings are not allowed here");
		cr_assert_eq(ret, 0, "%s: %s", here[i], strerror(-ret));
		for (unsigned int k = 0; k < probe.n; k++)
			cr_expect(probe.size[k].answered, "%s: %u bytes", here[i],
				  probe.size[k].bytes);
	}
}
