/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/xdp.h"

bool xdp_is_built(void)
{
	return false;
}

bool xdp_wants(const char *device)
{
	return strncmp(device, "net_af_xdp", 10) == 0 && strstr(device, "xdp_prog=") == NULL;
}

int xdp_prepare(const char *device, char *devargs, size_t devargs_size, char *error, size_t size)
{
	snprintf(error, size,
		 "device '%s': this build has no XDP program; install clang and libbpf-dev and "
		 "build with -Dxdp=enabled, use net_af_packet, or name a program with xdp_prog=",
		 device);
	return -ENOTSUP;
}

int xdp_keep(const char *device, const struct in6_addr *address, unsigned int n, char *error,
	     size_t size)
{
	return 0;
}

int xdp_program(const char *device, char *error, size_t size)
{
	snprintf(error, size, "device '%s': this build has no XDP program", device);
	return -ENOTSUP;
}

int xdp_join(const char *device, int program, unsigned int queue, int socket, char *error,
	     size_t size)
{
	return xdp_program(device, error, size);
}
