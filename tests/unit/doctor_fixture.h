/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A healthy machine with two NUMA nodes, two NICs, an RDMA device and a GPU, as files below a
 * temporary folder; and rows that each change one file of it and give the finding that the doctor
 * then reports.
 */
#ifndef DOCTOR_FIXTURE_H
#define DOCTOR_FIXTURE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor/check.h"

static struct doctor d;
static char root[] = "/tmp/doorbell-doctor.XXXXXX";

#define HUGE_2M   "/sys/kernel/mm/hugepages/hugepages-2048kB"
#define NODE(n)   "/sys/devices/system/node/node" #n
#define CPU(n)    "/sys/devices/system/cpu/cpu" #n
#define CPUS      "/sys/devices/system/cpu"
#define CLOCK     "/sys/devices/system/clocksource/clocksource0"
#define MLX       "/sys/bus/pci/devices/0000:3b:00.0"
#define INTEL     "/sys/bus/pci/devices/0000:5e:00.0"
#define GPU       "/sys/bus/pci/devices/0000:17:00.0"
#define ETH(file) "/sys/class/net/eth1/" file
#define ENS(file) "/sys/class/net/ens1/" file
#define IB(file)  "/sys/class/infiniband/mlx5_0/" file
#define NOIOMMU   "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"

#define STATUS(caps, cpus) "Name:\tdoorbell\nCapEff:\t" caps "\nCpus_allowed_list:\t" cpus "\n"
#define FLAGS                                                                                      \
	"processor\t: 0\nflags\t\t: fpu tsc constant_tsc nonstop_tsc pclmulqdq avx2 bmi1 bmi2 "    \
	"fma f16c movbe abm avx512f avx512bw avx512vl"
#define LIMITS(locked) "Limit      Soft Limit  Hard Limit Units\nMax locked memory    " locked "\n"
#define OPEN_DRIVER                                                                                \
	"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build\n"     \
	"GCC version:  gcc 12.2.0\n"
#define CLOSED_DRIVER "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n"
#define SOCKETS       "  sl  local_address rem_address   st tx_queue rx_queue\n"

struct file {
	const char *path, *text; /* text NULL: not there; "->...": a link; "/": a folder */
};

static const struct file healthy[] = {
	{HUGE_2M "/nr_hugepages", "2048\n"},
	{HUGE_2M "/free_hugepages", "2000\n"},
	{HUGE_2M "/resv_hugepages", "0\n"},
	{NODE(0) "/hugepages/hugepages-2048kB/nr_hugepages", "1024\n"},
	{NODE(0) "/hugepages/hugepages-2048kB/free_hugepages", "1000\n"},
	{NODE(1) "/hugepages/hugepages-2048kB/nr_hugepages", "1024\n"},
	{NODE(1) "/hugepages/hugepages-2048kB/free_hugepages", "1000\n"},
	{NODE(0) "/cpu1", "/"},
	{NODE(0) "/cpu2", "/"},
	{NODE(0) "/cpulist", "0-3\n"},
	{NODE(1) "/cpulist", "4-7\n"},
	{CPU(1) "/node0", "/"},
	{CPU(2) "/node0", "/"},
	{CPU(1) "/topology/thread_siblings_list", "1\n"},
	{CPU(2) "/topology/thread_siblings_list", "2\n"},
	{CPUS "/online", "0-7\n"},
	{CPUS "/isolated", "1-3\n"},
	{CPUS "/nohz_full", "1-3\n"},
	{CLOCK "/current_clocksource", "tsc\n"},
	{CLOCK "/available_clocksource", "tsc hpet acpi_pm\n"},
	{"/proc/cpuinfo", FLAGS " vpclmulqdq\n"},
	{"/proc/meminfo", "MemTotal: 65536000 kB\nMemAvailable:   32768000 kB\n"},
	{"/proc/self/status", STATUS("000001ffffffffff", "0-7")},
	{"/proc/self/limits", LIMITS("unlimited  unlimited  bytes")},
	{"/proc/sys/kernel/osrelease", "6.1.0-56-amd64\n"},
	{"/proc/net/tcp", SOCKETS "   0: 0100007F:0016 00000000:0000 0A 0:0\n"},
	{"/proc/net/tcp6", SOCKETS},
	{"/proc/net/udp", SOCKETS "  12: 00000000:0044 00000000:0000 07 0:0\n"},
	{"/proc/net/udp6", SOCKETS},
	{MLX "/vendor", "0x15b3\n"},
	{MLX "/class", "0x020000\n"},
	{MLX "/numa_node", "0\n"},
	{MLX "/driver", "->../../../bus/pci/drivers/mlx5_core"},
	{MLX "/net/ens1", "/"},
	{INTEL "/vendor", "0x8086\n"},
	{INTEL "/numa_node", "0\n"},
	{INTEL "/driver", "->../../../bus/pci/drivers/vfio-pci"},
	{"/sys/bus/pci/drivers/vfio-pci", "/"},
	{"/sys/class/iommu/dmar0", "/"},
	{ENS("mtu"), "4200\n"},
	{ENS("flags"), "0x1003\n"},
	{ENS("carrier"), "1\n"},
	{ENS("queues/rx-0"), "/"},
	{ENS("queues/rx-1"), "/"},
	{ETH("mtu"), "1500\n"},
	{ETH("flags"), "0x1003\n"},
	{ETH("carrier"), "1\n"},
	{ETH("queues/rx-0"), "/"},
	{ETH("queues/tx-0"), "/"},
	{"/sys/module/ib_uverbs", "/"},
	{"/dev/infiniband/uverbs0", ""},
	{IB("ports/1/state"), "4: ACTIVE\n"},
	{IB("ports/1/link_layer"), "Ethernet\n"},
	{IB("ports/1/gids/0"), "0000:0000:0000:0000:0000:ffff:0a09:000b\n"},
	{IB("ports/1/gids/1"), "0000:0000:0000:0000:0000:ffff:0a09:000b\n"},
	{IB("ports/1/gids/2"), "0000:0000:0000:0000:0000:0000:0000:0000\n"},
	{IB("ports/1/gid_attrs/types/0"), "IB/RoCE v1\n"},
	{IB("ports/1/gid_attrs/types/1"), "RoCE v2\n"},
	{IB("ports/1/gid_attrs/ndevs/0"), "ens1\n"},
	{IB("ports/1/pkeys/0"), "0xffff\n"},
	{GPU "/vendor", "0x10de\n"},
	{GPU "/class", "0x030200\n"},
	{"/proc/driver/nvidia/version", OPEN_DRIVER},
	{"/proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\n"
				       "RegistryDwords: \"PeerMappingOverride=1;\"\n"},
};
#define HEALTHY (sizeof(healthy) / sizeof(healthy[0]))

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void clear(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Make the file and its folders; what was there is gone. */
static void put(const struct file *file)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, file->path);
	clear(path);
	if (file->text == NULL)
		return;
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	if (strcmp(file->text, "/") == 0) {
		cr_assert_eq(mkdir(path, 0700), 0, "%s", path);
	} else if (strncmp(file->text, "->", 2) == 0) {
		cr_assert_eq(symlink(file->text + 2, path), 0, "%s", path);
	} else {
		f = fopen(path, "w");
		cr_assert_not_null(f, "%s", path);
		fputs(file->text, f);
		fclose(f);
	}
}

static void heal(void)
{
	for (size_t i = 0; i < HEALTHY; i++)
		put(&healthy[i]);
}

/* A load balancer with two PCI ports and lcores 1 and 2, all on node 0. */
__attribute__((unused)) static void plan_lb(void)
{
	struct plan_port *port = d.plan.port;

	memset(&d.plan, 0, sizeof(d.plan));
	d.plan.side = DOCTOR_LB;
	d.plan.known = true;
	d.plan.hugepages = true;
	d.plan.memory_mb = 512;
	d.plan.n_cpus = 2;
	d.plan.cpu[0] = 1;
	d.plan.cpu[1] = 2;
	d.plan.agents_port = 4790;
	d.plan.n_ports = 2;
	plan_device(&port[0], "0000:3b:00.0");
	plan_device(&port[1], "5e:00.0,opt=1");
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(port[i].name, sizeof(port[i].name), "port%u", i);
		snprintf(port[i].key, sizeof(port[i].key), "ports[%u].device", i);
		snprintf(port[i].mtu_key, sizeof(port[i].mtu_key), "ports[%u].mtu", i);
		port[i].mtu = 4200;
		port[i].fabric = true;
	}
}

/* One port of the kernel's, with this device string. */
__attribute__((unused)) static void plan_device_of(const char *device, uint16_t mtu)
{
	plan_lb();
	d.plan.n_ports = 1;
	memset(d.plan.port[0].pci, 0, sizeof(d.plan.port[0].pci));
	plan_device(&d.plan.port[0], device);
	d.plan.port[0].mtu = mtu;
}

__attribute__((unused)) static void plan_packet(void)
{
	plan_device_of("net_af_packet0,iface=eth1", 1500);
}

__attribute__((unused)) static void plan_none(void)
{
	memset(&d.plan, 0, sizeof(d.plan));
	d.plan.side = DOCTOR_MACHINE;
	d.plan.hugepages = true;
}

/* An agent with an RDMA device. */
__attribute__((unused)) static void plan_agent(void)
{
	memset(&d.plan, 0, sizeof(d.plan));
	d.plan.side = DOCTOR_AGENT;
	d.plan.known = true;
	d.plan.hugepages = true;
	d.plan.memory_mb = 128;
	lb_address_parse("10.9.0.11", &d.plan.address);
	d.plan.n_rdma = 1;
	snprintf(d.plan.rdma[0].key, sizeof(d.plan.rdma[0].key), "--device");
	snprintf(d.plan.rdma[0].name, sizeof(d.plan.rdma[0].name), "mlx5_0");
	d.plan.rdma[0].address = d.plan.address;
	d.plan.rdma[0].mtu = 4200;
}

static void set_up(void)
{
	cr_assert_not_null(mkdtemp(root));
	d.root = root;
	heal();
}

static void tear_down(void)
{
	clear(root);
}

#define CHANGES 4

struct row {
	const char *what;
	doctor_check *check;
	void (*plan)(void);
	struct file change[CHANGES];
	enum doctor_status status; /* of the worst finding */
	const char *found, *fix;   /* parts of its texts; NULL: any text will do */
};

/* The first of the worst findings. */
static const struct doctor_finding *worst(void)
{
	const struct doctor_finding *w = &d.finding[0];

	for (unsigned int i = 1; i < d.n; i++)
		if (d.finding[i].status > w->status)
			w = &d.finding[i];
	return w;
}

/* Checks that each problem has a fix and that all is plain text. */
static void assert_whole(const char *what)
{
	cr_expect_gt(d.n, 0, "%s: nothing was said", what);
	for (unsigned int i = 0; i < d.n; i++) {
		const struct doctor_finding *f = &d.finding[i];

		cr_expect(f->status < DOCTOR_WARNING || f->fix[0], "%s: no fix: %s", what,
			  f->found);
		for (const char *c = f->found; *c; c++)
			cr_expect(*c >= ' ' && *c <= '~', "%s: character %d", what, *c);
	}
}

__attribute__((unused)) static void check_row(const struct row *row)
{
	const struct doctor_finding *w;

	for (unsigned int i = 0; i < CHANGES && row->change[i].path; i++)
		put(&row->change[i]);
	row->plan();
	d.n = 0;
	row->check(&d);
	assert_whole(row->what);
	w = worst();
	cr_expect_eq(w->status, row->status, "%s: status %d: %s", row->what, w->status, w->found);
	if (row->found)
		cr_expect(strstr(w->found, row->found), "%s: found '%s', not '%s'", row->what,
			  w->found, row->found);
	if (row->fix)
		cr_expect(strstr(w->fix, row->fix), "%s: fix '%s', not '%s'", row->what, w->fix,
			  row->fix);
	if (row->change[0].path)
		heal();
}

#define CHECK_ROWS(rows)                                                                           \
	for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++)                              \
	check_row(&(rows)[i])

#endif
