/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that must answer: the daemon, the load balancer's port for agents, the fabric. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/doctor/check.h"
#include "protocol/client.h"
#include "cli/doctor/probe.h"
#include "rdma/roce_wire.h"

#define CONNECT_MS 1200

/* --- the daemon ------------------------------------------------------------------------------ */

static int reach_open_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	err = errno;
	if (fd >= 0)
		close(fd);
	return -err;
}

static void compare_versions(struct doctor *d, int fd)
{
	char error[256];
	struct control_client *client = control_client_wrap(fd, error, sizeof(error));
	const char *theirs;
	json_t *result;
	int code;

	result = client != NULL
			 ? control_client_call(client, "version", NULL, &code, error, sizeof(error))
			 : NULL;
	theirs = json_string_value(json_object_get(result, "version"));
	if (theirs == NULL) {
		doctor_report(d, DOCTOR_PROBLEM, "%s: %s", d->plan.control_socket,
			      result != NULL ? "no version in its answer" : error);
		doctor_fix(d, "restart doorbell-lb");
	} else if (strcmp(theirs, DOORBELL_VERSION) != 0) {
		doctor_report(d, DOCTOR_WARNING, "doorbell-lb %.40s runs, this is doorbell %s",
			      theirs, DOORBELL_VERSION);
		doctor_fix(d, "install both from one release, then restart doorbell-lb");
	} else {
		doctor_report(d, DOCTOR_OK, "doorbell-lb %s answers at %s", theirs,
			      d->plan.control_socket);
	}
	json_decref(result);
	control_client_close(client);
}

void check_control(struct doctor *d)
{
	const char *path = d->plan.control_socket;
	int fd;

	if (path[0] == '\0') {
		doctor_report(d, DOCTOR_NA, "no control socket here");
		return;
	}
	fd = reach_open_socket(path);
	if (fd >= 0) {
		compare_versions(d, fd);
	} else if (fd == -ENOENT || fd == -ECONNREFUSED) {
		doctor_report(d, DOCTOR_NA, "doorbell-lb does not run (%s)", path);
	} else {
		doctor_report(d, DOCTOR_PROBLEM, "%s: %s", path, strerror(-fd));
		doctor_fix(d, fd == -EACCES ? "use sudo, or join the group that owns it"
					    : "control.socket: a path that can be used");
	}
}

/* --- the load balancer's port for agents ----------------------------------------------------- */

/* Returns 0 or -errno. */
static int try_connect(const struct addrinfo *to, int wait_ms)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(err);

	if (fd < 0)
		return -errno;
	err = connect(fd, to->ai_addr, to->ai_addrlen) == 0 ? 0 : errno;
	if (err == EINPROGRESS) {
		if (poll(&p, 1, wait_ms) != 1)
			err = ETIMEDOUT;
		else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) != 0)
			err = errno;
	}
	close(fd);
	return -err;
}

static void say_why_not(struct doctor *d, int err)
{
	const char *host = d->plan.lb.host, *port = d->plan.lb.port_text;

	doctor_report(d, DOCTOR_PROBLEM, "%s port %s: %s", host, port, strerror(err));
	if (err == ECONNREFUSED)
		doctor_fix(d,
			   "start doorbell-lb there; its control.agents must name this address "
			   "or 0.0.0.0, and port %s",
			   port);
	else if (err == ENETUNREACH || err == EHOSTUNREACH)
		doctor_fix(d, "give this host a route: ip route get %s", host);
	else
		doctor_fix(d,
			   "let TCP port %s through the firewalls between (nft list ruleset), "
			   "and ping %s",
			   port, host);
}

void check_lb_reachable(struct doctor *d)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	int ret, n = 0;

	if (d->plan.lb.host[0] == '\0') {
		doctor_report(d, DOCTOR_NA, "no --lb HOST:PORT given");
		return;
	}
	ret = getaddrinfo(d->plan.lb.host, d->plan.lb.port_text, &hints, &list);
	if (ret != 0) {
		doctor_report(d, DOCTOR_PROBLEM, "%s: %s", d->plan.lb.host, gai_strerror(ret));
		doctor_fix(d, "--lb: a name that getent hosts finds, or an address");
		return;
	}
	for (struct addrinfo *i = list; i != NULL; i = i->ai_next)
		n++;
	ret = -ETIMEDOUT;
	for (struct addrinfo *i = list; i != NULL && ret != 0; i = i->ai_next)
		ret = try_connect(i, CONNECT_MS / n);
	freeaddrinfo(list);
	if (ret < 0)
		say_why_not(d, -ret);
	else
		doctor_report(d, DOCTOR_OK, "%s port %s takes connections", d->plan.lb.host,
			      d->plan.lb.port_text);
}

/* --- the fabric ------------------------------------------------------------------------------ */

/* True when the kernel's sockets use the path of our packets. Otherwise reports why not. */
static bool may_probe(struct doctor *d, const char *target, const char *route)
{
	const struct plan_port *port = d->plan.n_ports ? &d->plan.port[0] : NULL;

	if (port != NULL && port->interface[0] == '\0')
		doctor_report(d, DOCTOR_NA,
			      "the fabric is behind the DPDK device %.60s, which no socket of the "
			      "kernel can use; once the agent runs, see resent in doorbell workers "
			      "show",
			      port->device);
	else if (route[0] == '\0')
		doctor_report(d, DOCTOR_NA,
			      "the kernel has no route to %s, which only DPDK "
			      "devices reach",
			      target);
	else if (port != NULL && strcmp(route, port->interface) != 0)
		doctor_report(d, DOCTOR_NA, "the kernel reaches %s by %s, not by %s", target, route,
			      port->interface);
	else
		return true;
	return false;
}

/* Size of the ring's IP packets with all headers, bytes; an IPv4 header is 20 bytes shorter. */
static unsigned int packet_bytes(unsigned int path_mtu, const struct lb_address *to)
{
	return path_mtu + 80 - (to->family == 4 ? 20 : 0);
}

static void judge_probe(struct doctor *d, const struct probe *probe, const char *target,
			const char *route)
{
	unsigned int n = probe->n - 1, passed = 0, want = probe->size[n].tag, i;

	for (i = 1; i < probe->n; i++)
		if (probe->size[i].answered && probe->size[i].tag > passed)
			passed = probe->size[i].tag;
	if (passed == want) {
		doctor_report(d, DOCTOR_OK, "RoCE packets of %u bytes reach %s by %s", want, target,
			      route);
	} else if (passed == 0 && !probe->size[0].answered) {
		doctor_report(d, DOCTOR_PROBLEM, "%s does not answer a ping by %s", target, route);
		doctor_fix(d, "is doorbell-lb running there? ip neigh show %s; tcpdump -ni %s",
			   target, route);
	} else {
		doctor_report(d, DOCTOR_PROBLEM,
			      "RoCE packets of %u bytes do not reach %s by %s%s; %u do", want,
			      target, route,
			      probe->size[n].too_long ? " (the interface's MTU)" : "", passed);
		if (probe->size[n].too_long)
			doctor_fix(d, "ip link set dev %s mtu %u; or --mtu 1500", route,
				   probe->size[n].bytes);
		else
			doctor_fix(d,
				   "raise the MTU of the switches between to %u; or lower mtu "
				   "on both ends",
				   probe->size[n].bytes);
	}
}

void check_fabric_mtu(struct doctor *d)
{
	const struct lb_address *to = &d->plan.lb_fabric_address;
	unsigned int mtu = d->plan.n_ports  ? d->plan.port[0].mtu
			   : d->plan.n_rdma ? d->plan.rdma[0].mtu
					    : 0;
	unsigned int largest = roce_path_mtu(mtu ? mtu : 1500);
	char target[LB_ADDRESS_TEXT], route[IF_NAMESIZE];
	struct probe probe = {0};
	int ret;

	if (to->family == 0) {
		doctor_report(d, DOCTOR_NA, "no --lb-fabric-address given");
		return;
	}
	lb_address_format(to, target, sizeof(target));
	probe_route(to, route);
	if (!may_probe(d, target, route))
		return;
	probe_add(&probe, 64, 0);
	for (unsigned int size = ROCE_MTU_MIN; size <= largest; size *= 2)
		probe_add(&probe, packet_bytes(size, to), size);
	ret = probe_run(&probe, to);
	if (ret < 0) {
		doctor_report(d, DOCTOR_WARNING, "cannot send a ping to %s: %s", target,
			      strerror(-ret));
		doctor_fix(d, "run this with sudo, or sysctl -w net.ipv4.ping_group_range='0 "
			      "2147483647'");
		return;
	}
	judge_probe(d, &probe, target, route);
}
