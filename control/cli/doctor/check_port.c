/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports' sizes: MTU, frames, queues. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "cli/doctor/check.h"
#include "runtime/joined.h"

#define NET "/sys/class/net"

/* DPDK 22.11's af_packet: its largest MTU, its frame size, and the header before each frame. */
#define AF_PACKET_MTU_MAX 1500
#define AF_PACKET_FRAME   2048
#define AF_PACKET_HEADER  52
/*
 * AF_XDP's 4-KiB buffers take no frames above 3400 bytes: XDP's headroom fills the rest of the
 * page.
 */
#define AF_XDP_MTU_MAX   (3400 - ETHERNET_HEADERS)
#define XDP_MTU_MAX      3500
#define ETHERNET_HEADERS (14 + 8) /* two VLAN tags */

static void judge_mtu(struct doctor *d, const struct plan_port *port)
{
	char name[DOCTOR_NAME_MAX];
	long long mtu;

	doctor_port_interface(d, port, name, sizeof(name));
	if (name[0] == '\0') {
		doctor_report(d, DOCTOR_NA, "%s: no kernel interface; DPDK sets it", port->name);
	} else if (doctor_read_number(d, &mtu, NET "/%s/mtu", name) < 0 || mtu <= 0) {
		doctor_report(d, DOCTOR_WARNING, "%s: the MTU of %s cannot be read", port->name,
			      name);
		doctor_fix(d, "look yourself: ip link show dev %s; %u is wanted", name, port->mtu);
	} else if (mtu < port->mtu) {
		doctor_report(d, DOCTOR_PROBLEM, "%s: MTU of %s is %lld, %s is %u", port->name,
			      name, mtu, port->mtu_key, port->mtu);
		doctor_fix(d,
			   "ip link set dev %s mtu %u, and on the other end and the "
			   "switch too; or lower %s",
			   name, port->mtu, port->mtu_key);
	} else {
		doctor_report(d, DOCTOR_OK, "%s: MTU of %s is %lld, %u needed", port->name, name,
			      mtu, port->mtu);
	}
}

void check_port_mtu(struct doctor *d)
{
	doctor_each_port(d, judge_mtu);
}

/* A frame of several TCP segments does not fit. */
static void judge_joined(struct doctor *d, const struct plan_port *port)
{
	char fix[128];

	/* The files are another machine's; the fabric's packets are no segments. */
	if (d->root[0] != '\0' || port->fabric || !d->plan.tcp.used ||
	    !joined_segments(port->interface, fix, sizeof(fix)))
		return;
	doctor_report(d, DOCTOR_WARNING,
		      "%s: %s may join TCP segments, which af_packet cuts off: clients stall",
		      port->name, port->interface);
	doctor_fix(d, "%s", fix);
}

static void judge_af_packet(struct doctor *d, const struct plan_port *port)
{
	unsigned long room = plan_devarg(port->device, "framesz", AF_PACKET_FRAME);
	unsigned long want = port->mtu + ETHERNET_HEADERS + AF_PACKET_HEADER;

	if (port->mtu > AF_PACKET_MTU_MAX) {
		doctor_report(d, DOCTOR_PROBLEM, "%s: %s is %u, DPDK's af_packet takes at most %u",
			      port->name, port->mtu_key, port->mtu, AF_PACKET_MTU_MAX);
		doctor_fix(d, "%s: %u; or %s: net_af_xdp0,iface=%s (at most %u), or a PCI address",
			   port->mtu_key, AF_PACKET_MTU_MAX, port->key, port->interface,
			   AF_XDP_MTU_MAX);
	} else if (want > room) {
		doctor_report(d, DOCTOR_PROBLEM, "%s: frames of %lu bytes do not hold an MTU of %u",
			      port->name, room, port->mtu);
		doctor_fix(d, "%s: framesz=%u, or leave it out", port->key, AF_PACKET_FRAME);
	} else {
		doctor_report(d, DOCTOR_OK, "%s: frames hold an MTU of %u", port->name, port->mtu);
	}
	judge_joined(d, port);
}

static void judge_af_xdp(struct doctor *d, const struct plan_port *port)
{
	long long mtu = 0;

	doctor_read_number(d, &mtu, NET "/%s/mtu", port->interface);
	if (port->mtu > AF_XDP_MTU_MAX) {
		doctor_report(d, DOCTOR_PROBLEM, "%s: %s is %u, AF_XDP takes at most %u",
			      port->name, port->mtu_key, port->mtu, AF_XDP_MTU_MAX);
		doctor_fix(d, "%s: %u; or %s: a PCI address", port->mtu_key, AF_XDP_MTU_MAX,
			   port->key);
	} else if (mtu > XDP_MTU_MAX) {
		doctor_report(d, DOCTOR_WARNING,
			      "%s: MTU of %s is %lld, with which drivers refuse XDP programs",
			      port->name, port->interface, mtu);
		doctor_fix(d, "ip link set dev %s mtu %u, and at the other end of a veth",
			   port->interface, AF_XDP_MTU_MAX);
	} else {
		doctor_report(d, DOCTOR_OK, "%s: buffers hold an MTU of %u", port->name, port->mtu);
	}
}

static void judge_frames(struct doctor *d, const struct plan_port *port)
{
	if (port->kind == PLAN_AF_PACKET)
		judge_af_packet(d, port);
	else if (port->kind == PLAN_AF_XDP || port->kind == PLAN_KERNEL)
		judge_af_xdp(d, port);
	else
		doctor_report(d, DOCTOR_NA, "%s: buffers are sized by the MTU", port->name);
}

void check_port_frames(struct doctor *d)
{
	doctor_each_port(d, judge_frames);
}

/* The number of queues that the hardware could have; 0 when unknown. Changes nothing. */
static unsigned int queues_possible(const struct doctor *d, const char *interface)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq request = {0};
	int fd, ret;

	if (d->root[0] != '\0') /* the files are another machine's */
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.*s", IF_NAMESIZE - 1, interface);
	request.ifr_data = (void *)&channels;
	ret = ioctl(fd, SIOCETHTOOL, &request);
	close(fd);
	return ret < 0                                   ? 0
	       : channels.max_combined > channels.max_rx ? channels.max_combined
							 : channels.max_rx;
}

static unsigned int queues_now(const struct doctor *d, const char *interface)
{
	struct doctor_names names;
	unsigned int n = 0;

	doctor_list(d, &names, NET "/%s/queues", interface);
	for (unsigned int i = 0; i < names.n; i++)
		n += strncmp(names.name[i], "rx-", 3) == 0;
	return n;
}

/* AF_XDP wants as many queues as there are lcores; without, the port uses af_packet. */
static void judge_kernel_queues(struct doctor *d, const struct plan_port *port, const char *name,
				unsigned int now)
{
	if (now == 0 || now == d->plan.n_cpus) {
		doctor_report(d, DOCTOR_OK, "%s: %u receive queues, %u lcores", port->name, now,
			      d->plan.n_cpus);
		return;
	}
	doctor_report(d, DOCTOR_WARNING,
		      "%s: %s has %u receive queues for %u lcores: af_packet is used, which costs "
		      "more per packet than AF_XDP",
		      port->name, name, now, d->plan.n_cpus);
	doctor_fix(d, "ethtool -L %s combined %u (or rx %u tx %u)", name, d->plan.n_cpus,
		   d->plan.n_cpus, d->plan.n_cpus);
}

static void judge_queues(struct doctor *d, const struct plan_port *port, const char *name)
{
	const char *key = port->kind == PLAN_AF_XDP ? "queue_count" : "qpairs";
	unsigned long used = plan_devarg(port->device, key, 1), want = d->plan.n_cpus;
	unsigned int now = queues_now(d, name), possible = queues_possible(d, name);

	if (port->kind == PLAN_KERNEL) {
		judge_kernel_queues(d, port, name, now);
		return;
	}
	if (port->kind == PLAN_AF_PACKET && used > want) {
		doctor_report(d, DOCTOR_PROBLEM, "%s: qpairs=%lu, but only %lu lcores", port->name,
			      used, want);
		doctor_fix(d, "%s: qpairs=%lu", port->key, want);
	} else if (port->kind == PLAN_AF_XDP && used < now) {
		doctor_report(d, DOCTOR_WARNING,
			      "%s: %s has %u receive queues, AF_XDP reads %lu; what comes on the "
			      "others is missed",
			      port->name, name, now, used);
		doctor_fix(d, "ethtool -L %s combined %lu (or rx %lu tx %lu)", name, used, used,
			   used);
	} else if (port->kind == PLAN_AF_XDP && used > now && now > 0) {
		doctor_report(d, DOCTOR_PROBLEM, "%s: queue_count=%lu, but %s has %u", port->name,
			      used, name, now);
		doctor_fix(d, "%s: queue_count=%u; or ethtool -L %s combined %lu", port->key, now,
			   name, used);
	} else if (port->kind == PLAN_PCI && possible != 0 && possible < want) {
		doctor_report(d, DOCTOR_WARNING, "%s: at most %u queues for %lu lcores", port->name,
			      possible, want);
		doctor_fix(d, "works: lcores hand packets over; for full speed %u lcores",
			   possible);
	} else if (port->kind != PLAN_PCI && used < want) {
		doctor_report(d, DOCTOR_WARNING,
			      "%s: one socket per queue: %lu queue for %lu lcores, which hand "
			      "packets over",
			      port->name, used, want);
		if (port->kind == PLAN_AF_PACKET)
			doctor_fix(d, "%s: add ,qpairs=%lu", port->key, want);
		else
			doctor_fix(d, "%s: add ,queue_count=%lu, and ethtool -L %s combined %lu",
				   port->key, want, name, want);
	} else {
		doctor_report(d, DOCTOR_OK, "%s: %u receive queues, %u possible, %lu lcores",
			      port->name, now, possible > now ? possible : now, want);
	}
}

static void judge_port_queues(struct doctor *d, const struct plan_port *port)
{
	char name[DOCTOR_NAME_MAX];

	doctor_port_interface(d, port, name, sizeof(name));
	if (d->plan.n_cpus == 0)
		doctor_report(d, DOCTOR_NA, "%s: the agent uses one", port->name);
	else if (name[0] == '\0')
		doctor_report(d, DOCTOR_NA, "%s: no kernel interface that would tell", port->name);
	else
		judge_queues(d, port, name);
}

void check_port_queues(struct doctor *d)
{
	doctor_each_port(d, judge_port_queues);
}
