/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and ports that the kernel must not use, and addresses that it must have. */
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cli/doctor/check.h"

#define ROCE_PORT  4791
#define TABLE_MAX  (512 * 1024) /* bytes of /proc/net/tcp, which lists listening sockets first */
#define TCP_LISTEN 0x0a

/* Find the interface that has the address; an empty text when there is none. */
static void owner_of(const struct lb_address *address, char name[IF_NAMESIZE])
{
	struct ifaddrs *list = NULL;

	name[0] = '\0';
	if (getifaddrs(&list) != 0)
		return;
	for (struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
		struct in6_addr have = {0};

		if (i->ifa_addr == NULL)
			continue;
		if (i->ifa_addr->sa_family == AF_INET) {
			have.s6_addr[10] = have.s6_addr[11] = 0xff;
			memcpy(have.s6_addr + 12,
			       &((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr, 4);
		} else if (i->ifa_addr->sa_family == AF_INET6) {
			have = ((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr;
		} else {
			continue;
		}
		if (memcmp(&have, &address->addr, sizeof(have)) == 0)
			snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
	}
	freeifaddrs(list);
}

/* A DPDK port and the kernel must not have the same address: both would answer. */
static void judge_address(struct doctor *d, const char *what, const struct lb_address *address)
{
	char text[LB_ADDRESS_TEXT], name[IF_NAMESIZE];

	if (address->family == 0)
		return;
	owner_of(address, name);
	if (name[0] == '\0')
		return;
	lb_address_format(address, text, sizeof(text));
	doctor_report(d, DOCTOR_PROBLEM, "%s: %s is the kernel's on %s, so two would answer", what,
		      text, name);
	doctor_fix(d, "ip addr del %s/%d dev %s; or choose another", text,
		   address->family == 4 ? 32 : 128, name);
}

void check_addresses(struct doctor *d)
{
	unsigned int n = d->plan.n_vips;

	if (d->root[0] != '\0' || (d->plan.n_ports == 0 && n == 0)) {
		doctor_report(d, DOCTOR_NA, "%s",
			      d->root[0] ? "addresses are not in files"
					 : "no ports are configured");
		return;
	}
	for (unsigned int i = 0; i < d->plan.n_vips; i++)
		judge_address(d, "service", &d->plan.vip[i]);
	for (unsigned int i = 0; i < d->plan.n_ports; i++) {
		n += d->plan.port[i].address.family != 0;
		judge_address(d, d->plan.port[i].name, &d->plan.port[i].address);
	}
	if (d->n == 0)
		doctor_report(d, DOCTOR_OK, "none of %u is the kernel's", n);
}

static char table_text[TABLE_MAX]; /* in_table()'s buffer, too large for a stack */

/*
 * True when the table has a socket with this local port. <state> 0: in any state. A line is "sl:
 * address:port address:port state ...", in hexadecimal.
 */
static bool in_table(const struct doctor *d, const char *path, unsigned int port,
		     unsigned int state)
{
	char *rest, *line;

	doctor_read(d, table_text, sizeof(table_text), "%s", path);
	for (line = strtok_r(table_text, "\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\n", &rest)) {
		unsigned int local, now;

		if (sscanf(line, " %*[0-9]: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &now) ==
			    2 &&
		    local == port && (state == 0 || now == state))
			return true;
	}
	return false;
}

/* Find a software RNIC of the kernel on this interface; <name> gets its name. */
static bool find_rxe(const struct doctor *d, const char *interface, char *name, size_t size)
{
	struct doctor_names devices;
	char parent[DOCTOR_NAME_MAX];

	doctor_list(d, &devices, "/sys/class/infiniband");
	for (unsigned int i = 0; i < devices.n; i++)
		if (doctor_read(d, parent, sizeof(parent), "/sys/class/infiniband/%s/parent",
				devices.name[i]) > 0 &&
		    strcmp(parent, interface) == 0) {
			snprintf(name, size, "%s", devices.name[i]);
			return true;
		}
	return false;
}

void check_roce_port(struct doctor *d)
{
	bool kernel = false, taken;
	char name[DOCTOR_NAME_MAX];

	for (unsigned int i = 0; i < d->plan.n_ports; i++) {
		const struct plan_port *port = &d->plan.port[i];

		if (!port->fabric || port->interface[0] == '\0')
			continue;
		kernel = true;
		if (!find_rxe(d, port->interface, name, sizeof(name)))
			continue;
		doctor_report(d, DOCTOR_WARNING,
			      "%s: the kernel's software RNIC %s takes UDP 4791 on %s, too",
			      port->name, name, port->interface);
		doctor_fix(d, "rdma link delete %s", name);
	}
	if (d->n > 0)
		return;
	taken = in_table(d, "/proc/net/udp", ROCE_PORT, 0) ||
		in_table(d, "/proc/net/udp6", ROCE_PORT, 0);
	if (!kernel) {
		doctor_report(d, DOCTOR_NA, "no fabric port shares an interface with the kernel");
	} else if (taken && d->plan.n_rdma == 0) {
		doctor_report(d, DOCTOR_WARNING, "UDP port 4791 is bound on this host");
		doctor_fix(d, "see which process: ss -lunp sport = :4791; rdma link");
	} else {
		doctor_report(d, DOCTOR_OK, "UDP port 4791 is free");
	}
}

void check_agents_port(struct doctor *d)
{
	char text[LB_ADDRESS_TEXT], name[IF_NAMESIZE];
	static const struct in6_addr none4 = {{{[10] = 0xff, [11] = 0xff}}};
	const struct lb_address *address = &d->plan.agents_address;
	unsigned int port = d->plan.agents_port;
	bool any = address->family == 0 || IN6_IS_ADDR_UNSPECIFIED(&address->addr) ||
		   memcmp(&address->addr, &none4, sizeof(none4)) == 0;

	if (port == 0) {
		doctor_report(d, DOCTOR_NA, "nothing listens for agents here");
		return;
	}
	lb_address_format(address, text, sizeof(text));
	owner_of(address, name);
	if (!any && d->root[0] == '\0' && name[0] == '\0') {
		doctor_report(d, DOCTOR_PROBLEM, "%s is no address of this host", text);
		doctor_fix(d, "control.agents: an address that ip addr shows, or 0.0.0.0:%u", port);
	} else if (!in_table(d, "/proc/net/tcp", port, TCP_LISTEN) &&
		   !in_table(d, "/proc/net/tcp6", port, TCP_LISTEN)) {
		doctor_report(d, DOCTOR_OK, "TCP port %u is free", port);
	} else if (doctor_is_running(d)) {
		doctor_report(d, DOCTOR_OK, "TCP port %u: doorbell-lb listens", port);
	} else {
		doctor_report(d, d->plan.known ? DOCTOR_PROBLEM : DOCTOR_WARNING,
			      "TCP port %u is taken", port);
		doctor_fix(d,
			   "end what ss -ltnp sport = :%u shows, or control.agents: another port",
			   port);
	}
}
