/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts about the machine that several checks use. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/doctor/check.h"

bool doctor_capable(const struct doctor *d, unsigned int capability)
{
	char status[8192];
	const char *mask;

	doctor_read(d, status, sizeof(status), "/proc/self/status");
	mask = doctor_line(status, "CapEff:");
	return mask != NULL && (strtoull(mask, NULL, 16) >> capability & 1);
}

int doctor_port_node(const struct doctor *d, const struct plan_port *port)
{
	long long node = -1;
	int ret = -ENOENT;

	if (port->kind == PLAN_PCI)
		ret = doctor_read_number(d, &node, "/sys/bus/pci/devices/%s/numa_node", port->pci);
	else if (port->interface[0] != '\0')
		ret = doctor_read_number(d, &node, "/sys/class/net/%s/device/numa_node",
					 port->interface);
	return ret == 0 && node >= 0 && node < DOCTOR_CPUS ? (int)node : -1;
}

void doctor_each_port(struct doctor *d,
		      void (*judge)(struct doctor *d, const struct plan_port *port))
{
	if (d->plan.n_ports == 0)
		doctor_report(d, DOCTOR_NA, "%s",
			      d->plan.side == DOCTOR_AGENT ? "no --device given"
							   : "no ports are configured");
	for (unsigned int i = 0; i < d->plan.n_ports; i++)
		judge(d, &d->plan.port[i]);
}

void doctor_port_interface(const struct doctor *d, const struct plan_port *port, char *name,
			   size_t size)
{
	struct doctor_names names;

	snprintf(name, size, "%s", port->interface);
	if (port->kind == PLAN_PCI) {
		doctor_list(d, &names, "/sys/bus/pci/devices/%s/net", port->pci);
		snprintf(name, size, "%s", names.n ? names.name[0] : "");
	}
	if (name[0] != '\0' && !doctor_exists(d, "/sys/class/net/%s", name))
		name[0] = '\0';
}

/* True when a process listens on the socket. Does not wait for a busy daemon. */
static bool socket_answers(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret;

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	strcpy(address.sun_path, path);
	ret = connect(fd, (const struct sockaddr *)&address, sizeof(address));
	/* a full backlog: the daemon is there, but does not accept us now */
	ret = ret < 0 && errno != EAGAIN ? -1 : 0;
	close(fd);
	return ret == 0;
}

/*
 * True when an agent runs with our address on its command line, or any agent if we have no address.
 */
static bool agent_runs(const struct doctor *d)
{
	struct doctor_names processes;
	char name[32], words[4096], address[LB_ADDRESS_TEXT];

	lb_address_format(&d->plan.address, address, sizeof(address));
	doctor_list(d, &processes, "/proc");
	for (unsigned int i = 0; i < processes.n; i++) {
		if (processes.name[i][0] < '0' || processes.name[i][0] > '9' ||
		    doctor_read(d, name, sizeof(name), "/proc/%s/comm", processes.name[i]) < 0 ||
		    strcmp(name, "doorbell-agent") != 0)
			continue;
		doctor_read(d, words, sizeof(words), "/proc/%s/cmdline", processes.name[i]);
		if (d->plan.address.family == 0 || strstr(words, address) != NULL)
			return true;
	}
	return false;
}

bool doctor_is_running(const struct doctor *d)
{
	if (d->plan.side == DOCTOR_AGENT)
		return agent_runs(d);
	return d->plan.control_socket[0] != '\0' && socket_answers(d->plan.control_socket);
}
