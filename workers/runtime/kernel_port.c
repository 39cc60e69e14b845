/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/kernel_port.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>

#include "runtime/xdp.h"

#define PREFIX       "kernel"
#define DEVARGS_SIZE (256 + PATH_MAX)

bool kernel_port_is(const char *device)
{
	return strncmp(device, PREFIX, strlen(PREFIX)) == 0;
}

bool kernel_port_devargs(const char *device, bool xdp, unsigned int queues, char *devargs,
			 size_t size)
{
	const char *rest = device + strlen(PREFIX);
	int n;

	/*
	 * busy_budget=0: with any other, each poll that finds nothing is a system call that polls
	 * the driver, which pays for drivers whose interrupts are deferred only.
	 */
	if (xdp)
		n = snprintf(devargs, size, "net_af_xdp%s,queue_count=%u,busy_budget=0", rest,
			     queues);
	else
		n = snprintf(devargs, size, "net_af_packet%s,qpairs=%u", rest, queues);
	return n >= 0 && (size_t)n < size;
}

bool kernel_port_part_devargs(const char *device, unsigned int queue, char *devargs, size_t size)
{
	const char *number = device + strlen(PREFIX);
	int digits = (int)strcspn(number, ",");
	int n = snprintf(devargs, size,
			 "net_af_xdp%.*s_%u%s,start_queue=%u,queue_count=1,busy_budget=0", digits,
			 number, queue, number + digits, queue);

	return n >= 0 && (size_t)n < size;
}

const char *kernel_port_without_xdp(unsigned int rx_queues, const struct port_params *params,
				    char *text, size_t size)
{
	if (!xdp_is_built())
		return "this build has no XDP program (clang and libbpf-dev were missing)";
	if (params->mtu > KERNEL_PORT_XDP_MTU_MAX) {
		snprintf(text, size, "its MTU is %u, AF_XDP takes at most %u", params->mtu,
			 KERNEL_PORT_XDP_MTU_MAX);
		return text;
	}
	if (params->queues > PORT_PARTS_MAX) {
		snprintf(text, size, "AF_XDP takes at most %u queues", PORT_PARTS_MAX);
		return text;
	}
	if (rx_queues == 0 || rx_queues == params->queues)
		return NULL;
	snprintf(text, size,
		 "the interface has %u receive queues, and AF_XDP wants one per lcore, %u (ethtool "
		 "-L ... combined %u; of a veth, and its other end: rx %u tx %u)",
		 rx_queues, params->queues, params->queues, params->queues, params->queues);
	return text;
}

/*
 * Receive queues of the interface in <device>; 0 when its driver does not say. <combined>: those
 * that send, too.
 */
static unsigned int kernel_port_rx_queues(const char *device, unsigned int *combined)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	const char *at = strstr(device, "iface=");
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = -1;

	if (fd >= 0 && at != NULL) {
		snprintf(request.ifr_name, sizeof(request.ifr_name), "%.*s",
			 (int)strcspn(at + 6, ","), at + 6);
		request.ifr_data = (void *)&channels;
		ret = ioctl(fd, SIOCETHTOOL, &request);
	}
	if (fd >= 0)
		close(fd);
	*combined = ret < 0 ? 0 : channels.combined_count;
	return ret < 0 ? 0 : channels.combined_count + channels.rx_count;
}

/* Open a port of AF_XDP with our XDP program. */
static int kernel_port_open_steered(struct port *port, const struct port_params *params,
				    const struct in6_addr *address, unsigned int n, char *error,
				    size_t size)
{
	struct port_params steered = *params;
	char devargs[DEVARGS_SIZE];
	int ret = xdp_prepare(params->device, devargs, sizeof(devargs), error, size);

	steered.device = devargs;
	if (ret == 0)
		ret = port_open(port, &steered, error, size);
	if (ret < 0)
		return ret;
	port->steered = true;
	ret = xdp_keep(params->device, address, n, error, size);
	if (ret < 0)
		port_stop(port);
	return ret;
}

/* Open the port of one queue with our XDP program, which knows that queue's socket only. */
static int kernel_port_open_part(struct port *part, const struct port_params *params,
				 unsigned int queue, char *error, size_t size)
{
	struct port_params one = *params;
	char devargs[DEVARGS_SIZE], plain[256];
	int ret = -EINVAL;

	one.queues = 1;
	one.pool = &params->pool[queue];
	one.device = devargs;
	if (kernel_port_part_devargs(params->device, queue, plain, sizeof(plain)))
		ret = xdp_prepare(plain, devargs, sizeof(devargs), error, size);
	else
		snprintf(error, size, "device '%s' is too long", params->device);
	if (ret == 0)
		ret = port_open(part, &one, error, size);
	return ret;
}

/* Add queue <queue> to a port whose first queue is open, with its XDP <program>. */
static int kernel_port_add_part(struct port *port, const struct port_params *params, int program,
				unsigned int queue, char *error, size_t size)
{
	struct port part = {0};
	int ret = kernel_port_open_part(&part, params, queue, error, size);

	if (ret < 0)
		return ret;
	port->part[port->parts++] = part.id;
	if (part.n_fds != 1) {
		snprintf(error, size, "device '%s': the socket of queue %u was not found",
			 params->device, queue);
		return -ENOENT;
	}
	port->fds[port->n_fds++] = part.fds[0];
	return xdp_join(params->device, program, queue, part.fds[0], error, size);
}

/* Open a port of AF_XDP with our XDP program, of a DPDK port for each queue. */
static int kernel_port_open_parts(struct port *port, const struct port_params *params,
				  const struct in6_addr *address, unsigned int n, char *error,
				  size_t size)
{
	int program, ret = kernel_port_open_part(port, params, 0, error, size);

	if (ret < 0)
		return ret;
	port->part[0] = port->id;
	port->parts = 1;
	program = ret = xdp_program(params->device, error, size);
	for (unsigned int q = 1; ret >= 0 && q < params->queues; q++)
		ret = kernel_port_add_part(port, params, program, q, error, size);
	if (ret >= 0)
		ret = xdp_keep(params->device, address, n, error, size);
	if (program >= 0)
		close(program);
	if (ret < 0) {
		port_stop(port);
		return ret;
	}
	port->queues = port->parts;
	port->steered = true;
	return 0;
}

static int kernel_port_open_either(struct port *port, const struct port_params *params,
				   const struct in6_addr *address, unsigned int n, char *reason,
				   char *error, size_t size)
{
	struct port_params real = *params;
	char devargs[256], text[KERNEL_PORT_REASON_MAX];
	unsigned int combined, rx_queues = kernel_port_rx_queues(params->device, &combined);
	const char *why = kernel_port_without_xdp(rx_queues, params, text, sizeof(text));

	real.device = devargs;
	if (!kernel_port_devargs(params->device, true, params->queues, devargs, sizeof(devargs))) {
		snprintf(error, size, "device '%s' is too long", params->device);
		return -EINVAL;
	}
	if (why == NULL && rx_queues > 1 && combined == 0) {
		if (kernel_port_open_parts(port, params, address, n, text, sizeof(text)) == 0)
			return 0;
		why = text;
	} else if (why == NULL) {
		if (kernel_port_open_steered(port, &real, address, n, text, sizeof(text)) == 0)
			return 0;
		why = text;
	}
	snprintf(reason, KERNEL_PORT_REASON_MAX, "%s", why);
	kernel_port_devargs(params->device, false, params->queues, devargs, sizeof(devargs));
	return port_open(port, &real, error, size);
}

int kernel_port_open(struct port *port, const struct port_params *params,
		     const struct in6_addr *address, unsigned int n, bool steer, char *reason,
		     char *error, size_t size)
{
	reason[0] = '\0';
	if (kernel_port_is(params->device))
		return kernel_port_open_either(port, params, address, n, reason, error, size);
	if (steer && xdp_wants(params->device))
		return kernel_port_open_steered(port, params, address, n, error, size);
	return port_open(port, params, error, size);
}
