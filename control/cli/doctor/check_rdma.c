/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices: the configured ones, or else all. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor/check.h"
#include "rdma/roce_wire.h"
#include "cli/doctor/verbs.h"

#define DEVICES   "/sys/class/infiniband"
#define PORTS_MAX 8
#define GIDS_MAX  256
#define PKEYS_MAX 128
/* Bytes that the kernel subtracts from an interface's MTU, for the longest RoCEv2 headers. */
#define KERNEL_HEADERS 96

struct device {
	const char *name;
	const struct plan_rdma *plan; /* NULL: neither configuration nor options name it */
};

typedef void judge(struct doctor *d, const struct device *device, const char *port);

/* A fault of a device that the plan does not name is only a warning. */
static enum doctor_status bad(const struct device *device)
{
	return device->plan != NULL ? DOCTOR_PROBLEM : DOCTOR_WARNING;
}

static void each_port(struct doctor *d, const struct device *device, judge *judge_port)
{
	struct doctor_names ports;

	doctor_list(d, &ports, DEVICES "/%s/ports", device->name);
	for (unsigned int i = 0; i < ports.n && i < PORTS_MAX; i++)
		judge_port(d, device, ports.name[i]);
}

/* Judge every port of every device that matters. */
static void each(struct doctor *d, judge *judge_port)
{
	struct doctor_names all;

	doctor_list(d, &all, DEVICES);
	for (unsigned int i = 0; i < d->plan.n_rdma; i++) {
		struct device device = {d->plan.rdma[i].name, &d->plan.rdma[i]};

		each_port(d, &device, judge_port);
	}
	for (unsigned int i = 0; d->plan.n_rdma == 0 && i < all.n; i++) {
		struct device device = {all.name[i], NULL};

		each_port(d, &device, judge_port);
	}
	if (d->n == 0)
		doctor_report(d, DOCTOR_NA, "%s",
			      d->plan.n_rdma ? "the device is not there" : "no RDMA device here");
}

void check_rdma_modules(struct doctor *d)
{
	struct doctor_names devices, nodes;
	unsigned int uverbs = 0;

	doctor_list(d, &devices, DEVICES);
	doctor_list(d, &nodes, "/dev/infiniband");
	for (unsigned int i = 0; i < nodes.n; i++)
		uverbs += strncmp(nodes.name[i], "uverbs", 6) == 0;
	if (d->plan.n_rdma == 0 && devices.n == 0) {
		doctor_report(d, DOCTOR_NA, "no RDMA device here, and none is configured");
	} else if (!doctor_exists(d, "/sys/module/ib_uverbs")) {
		doctor_report(d, DOCTOR_PROBLEM, "ib_uverbs is not loaded");
		doctor_fix(d, "modprobe ib_uverbs (package rdma-core loads it at boot)");
	} else if (uverbs < devices.n) {
		doctor_report(d, DOCTOR_PROBLEM, "%u RDMA devices, %u of /dev/infiniband/uverbs*",
			      devices.n, uverbs);
		doctor_fix(d, "start udev; in a container pass --device=/dev/infiniband");
	} else {
		doctor_report(d, DOCTOR_OK, "ib_uverbs%s",
			      doctor_exists(d, "/sys/module/rdma_rxe") ? ", rdma_rxe (software)"
								       : "");
	}
}

void check_rdma_device(struct doctor *d)
{
	struct doctor_names all;
	char text[200];

	doctor_list(d, &all, DEVICES);
	doctor_names_text(&all, text, sizeof(text));
	for (unsigned int i = 0; i < d->plan.n_rdma; i++) {
		const struct plan_rdma *rdma = &d->plan.rdma[i];

		if (rdma->name[0] && doctor_exists(d, DEVICES "/%s", rdma->name)) {
			doctor_report(d, DOCTOR_OK, "%s", rdma->name);
			continue;
		}
		doctor_report(d, DOCTOR_PROBLEM, "no RDMA device '%s'; there are: %s", rdma->name,
			      text);
		doctor_fix(d,
			   all.n ? "%s: one of those; rdma link shows them"
				 : "%s: load the NIC's driver (modprobe mlx5_ib), or a software "
				   "one: rdma link add rxe0 type rxe netdev IFACE",
			   rdma->key);
	}
	if (d->plan.n_rdma == 0)
		doctor_report(d, all.n ? DOCTOR_OK : DOCTOR_NA, "%s",
			      all.n ? text : "none here; the software RNIC needs none");
}

/* Find the kernel interface behind a port; an empty text when there is none. */
static void interface_of(const struct doctor *d, const struct device *device, const char *port,
			 char *name, size_t size)
{
	if (doctor_read(d, name, size, DEVICES "/%s/ports/%s/gid_attrs/ndevs/0", device->name,
			port) <= 0)
		doctor_read(d, name, size, DEVICES "/%s/parent", device->name);
}

static void judge_port(struct doctor *d, const struct device *device, const char *port)
{
	char state[48], layer[32], name[IF_NAMESIZE];

	doctor_read(d, state, sizeof(state), DEVICES "/%s/ports/%s/state", device->name, port);
	doctor_read(d, layer, sizeof(layer), DEVICES "/%s/ports/%s/link_layer", device->name, port);
	interface_of(d, device, port, name, sizeof(name));
	if (strcmp(layer, "Ethernet") != 0) {
		doctor_report(d, bad(device), "%s port %s: link layer '%s', RoCE needs Ethernet",
			      device->name, port, layer);
		doctor_fix(d, "mlxconfig -d %s set LINK_TYPE_P%s=2, then reboot", device->name,
			   port);
	} else if (strstr(state, "ACTIVE") == NULL) {
		doctor_report(d, bad(device), "%s port %s: %s", device->name, port,
			      state[0] ? state : "no state");
		doctor_fix(d, "ip link set dev %s up, and plug in the cable",
			   name[0] ? name : "IFACE");
	} else {
		doctor_report(d, DOCTOR_OK, "%s port %s: active, Ethernet%s%s", device->name, port,
			      name[0] ? ", " : "", name);
	}
}

void check_rdma_port(struct doctor *d)
{
	each(d, judge_port);
}

/* True when the GID at <index> has the type "RoCE v2". */
static bool is_v2(const struct doctor *d, const struct device *device, const char *port,
		  unsigned int index)
{
	char type[32];

	doctor_read(d, type, sizeof(type), DEVICES "/%s/ports/%s/gid_attrs/types/%u", device->name,
		    port, index);
	return strcmp(type, "RoCE v2") == 0;
}

static void judge_gid(struct doctor *d, const struct device *device, const char *port)
{
	const struct lb_address *wanted = device->plan != NULL ? &device->plan->address : NULL;
	int found = -1, old = -1;
	char text[64], name[IF_NAMESIZE], address[LB_ADDRESS_TEXT] = "";
	unsigned int v2 = 0;
	struct in6_addr gid;

	if (wanted != NULL && wanted->family != 0)
		lb_address_format(wanted, address, sizeof(address));
	for (unsigned int i = 0; i < GIDS_MAX; i++) {
		bool same;

		if (doctor_read(d, text, sizeof(text), DEVICES "/%s/ports/%s/gids/%u", device->name,
				port, i) < 0)
			break;
		if (inet_pton(AF_INET6, text, &gid) != 1 || IN6_IS_ADDR_UNSPECIFIED(&gid))
			continue;
		same = address[0] && memcmp(&gid, &wanted->addr, sizeof(gid)) == 0;
		if (!is_v2(d, device, port, i)) {
			old = same ? (int)i : old;
			continue;
		}
		v2++;
		found = same && found < 0 ? (int)i : found;
	}
	interface_of(d, device, port, name, sizeof(name));
	if (found >= 0) {
		doctor_report(d, DOCTOR_OK, "%s port %s: %s is GID %d, RoCE v2", device->name, port,
			      address, found);
	} else if (old >= 0) {
		doctor_report(d, DOCTOR_PROBLEM, "%s port %s: GID %d of %s is RoCE v1 only",
			      device->name, port, old, address);
		doctor_fix(d, "cma_roce_mode -d %s -p %s -m 2, or a driver with RoCE v2",
			   device->name, port);
	} else if (address[0]) {
		doctor_report(d, DOCTOR_PROBLEM, "%s port %s: no RoCE v2 GID for %s", device->name,
			      port, address);
		doctor_fix(d, "ip addr add %s/24 dev %s; or %s with the address that it has",
			   address, name[0] ? name : "IFACE", "--address");
	} else if (v2 == 0) {
		doctor_report(d, bad(device), "%s port %s: no RoCE v2 GID", device->name, port);
		doctor_fix(d, "give %s an IP address: ip addr add ADDRESS/24 dev %s",
			   name[0] ? name : "its interface", name[0] ? name : "IFACE");
	} else {
		doctor_report(d, DOCTOR_OK, "%s port %s: %u RoCE v2 GIDs", device->name, port, v2);
	}
}

void check_rdma_gid(struct doctor *d)
{
	each(d, judge_gid);
}

static void judge_pkey(struct doctor *d, const struct device *device, const char *port)
{
	for (unsigned int i = 0; i < PKEYS_MAX; i++) {
		long long pkey;

		if (doctor_read_number(d, &pkey, DEVICES "/%s/ports/%s/pkeys/%u", device->name,
				       port, i) < 0)
			break;
		if (pkey == 0xffff) {
			doctor_report(d, DOCTOR_OK, "%s port %s: 0xffff at index %u", device->name,
				      port, i);
			return;
		}
	}
	doctor_report(d, bad(device), "%s port %s: the default P_Key 0xffff is not in its table",
		      device->name, port);
	doctor_fix(d, "reload the NIC's driver (modprobe -r mlx5_ib && modprobe mlx5_ib); a "
		      "virtual function gets its table from the host");
}

void check_rdma_pkey(struct doctor *d)
{
	each(d, judge_pkey);
}

/*
 * The largest RDMA MTU of a port, bytes, or 0. From the device where libibverbs is, else from the
 * interface.
 */
static unsigned int active_mtu(const struct doctor *d, const struct device *device,
			       const char *port, const char *interface)
{
	long long number = 0, mtu = 0;
	unsigned int active = 0;

	if (d->root[0] == '\0' && sscanf(port, "%lld", &number) == 1)
		active = verbs_active_mtu(device->name, (unsigned int)number);
	if (active != 0 || interface[0] == '\0')
		return active;
	doctor_read_number(d, &mtu, "/sys/class/net/%s/mtu", interface);
	for (active = ROCE_MTU_MAX; active >= ROCE_MTU_MIN; active /= 2)
		if (active + KERNEL_HEADERS <= mtu)
			return active;
	return 0;
}

static void judge_mtu(struct doctor *d, const struct device *device, const char *port)
{
	unsigned int wanted =
		device->plan != NULL && device->plan->mtu ? roce_path_mtu(device->plan->mtu) : 0;
	char name[IF_NAMESIZE];
	unsigned int active;

	interface_of(d, device, port, name, sizeof(name));
	active = active_mtu(d, device, port, name);
	if (active == 0) {
		doctor_report(d, bad(device), "%s port %s: its MTU cannot be told", device->name,
			      port);
		doctor_fix(d, "look yourself: ibv_devinfo -d %s | grep mtu", device->name);
	} else if (active < wanted) {
		doctor_report(d, DOCTOR_PROBLEM, "%s port %s: RDMA MTU %u, --mtu %u gives %u",
			      device->name, port, active, device->plan->mtu, wanted);
		doctor_fix(d, "ip link set dev %s mtu %u, and on the switch",
			   name[0] ? name : "IFACE", wanted + KERNEL_HEADERS);
	} else if (active < ROCE_MTU_MAX && wanted == 0) {
		doctor_report(d, DOCTOR_OK,
			      "%s port %s: RDMA MTU %u (%u from an interface MTU of "
			      "%u)",
			      device->name, port, active, ROCE_MTU_MAX,
			      ROCE_MTU_MAX + KERNEL_HEADERS);
	} else {
		doctor_report(d, DOCTOR_OK, "%s port %s: RDMA MTU %u", device->name, port, active);
	}
}

void check_rdma_mtu(struct doctor *d)
{
	each(d, judge_mtu);
}
