/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "runtime/xdp.h"

#define PROGRAM_NAME "doorbell_steer" /* the kernel cuts names to 15 characters */
#define KEEP_NAME    "doorbell_keep"
#define SOCKETS_NAME "xsks_map"
#define MAPS_MAX     8

bool xdp_is_built(void)
{
	return true;
}

bool xdp_wants(const char *device)
{
	return strncmp(device, "net_af_xdp", 10) == 0 && strstr(device, "xdp_prog=") == NULL;
}

static unsigned int xdp_interface(const char *device)
{
	char name[IF_NAMESIZE] = "";
	const char *at = strstr(device, "iface=");

	if (at != NULL)
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 6, ","), at + 6);
	return if_nametoindex(name);
}

/* A descriptor of the program on the interface, or -1; fills <info> and its map ids. */
static int xdp_attached(unsigned int interface, struct bpf_prog_info *info, __u32 *maps)
{
	__u32 id = 0, size = sizeof(*info);
	int fd;

	if (bpf_xdp_query_id(interface, 0, &id) != 0 || id == 0)
		return -1;
	fd = bpf_prog_get_fd_by_id(id);
	if (fd < 0)
		return -1;
	memset(info, 0, sizeof(*info));
	info->nr_map_ids = MAPS_MAX;
	info->map_ids = (__u64)(unsigned long)maps;
	if (bpf_obj_get_info_by_fd(fd, info, &size) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void detach_stale(unsigned int interface)
{
	struct bpf_prog_info info;
	__u32 maps[MAPS_MAX];
	int fd = xdp_attached(interface, &info, maps);

	if (fd < 0)
		return;
	if (strncmp(info.name, PROGRAM_NAME, sizeof(info.name) - 1) == 0)
		bpf_xdp_detach(interface, 0, NULL);
	close(fd);
}

/*
 * The object file is in a build folder, which the program is in, two levels below its top at most;
 * in DOORBELL_LIBDIR once installed.
 */
static void program_path(char *path, size_t size)
{
	static const char *const places[] = {"", "/..", "/../.."};
	char self[PATH_MAX / 2], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = '\0';
	slash = strrchr(self, '/');
	if (slash != NULL)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, size, "%s%s/workers/runtime/steer.bpf.o", self, places[i]);
		if (access(path, R_OK) == 0)
			return;
	}
	snprintf(path, size, DOORBELL_LIBDIR "/steer.bpf.o");
}

int xdp_prepare(const char *device, char *devargs, size_t devargs_size, char *error, size_t size)
{
	unsigned int interface = xdp_interface(device);
	char path[PATH_MAX];

	if (interface == 0) {
		snprintf(error, size, "device '%s': no such network interface; write iface=NAME",
			 device);
		return -ENODEV;
	}
	detach_stale(interface);
	program_path(path, sizeof(path));
	snprintf(devargs, devargs_size, "%s,xdp_prog=%s", device, path);
	return 0;
}

static int xdp_fill_map(int map, const struct in6_addr *address, unsigned int n)
{
	__u8 one = 1;
	int ret = 0;

	for (unsigned int i = 0; ret == 0 && i < n; i++)
		ret = bpf_map_update_elem(map, &address[i], &one, BPF_ANY);
	return ret;
}

/* A descriptor of the program's map <name>, or -ENOENT. */
static int xdp_map(const struct bpf_prog_info *info, const __u32 *maps, const char *name)
{
	struct bpf_map_info map_info;
	__u32 length;

	for (__u32 i = 0; i < info->nr_map_ids && i < MAPS_MAX; i++) {
		int map = bpf_map_get_fd_by_id(maps[i]);

		length = sizeof(map_info);
		memset(&map_info, 0, sizeof(map_info));
		if (map < 0)
			continue;
		if (bpf_obj_get_info_by_fd(map, &map_info, &length) == 0 &&
		    strcmp(map_info.name, name) == 0)
			return map;
		close(map);
	}
	return -ENOENT;
}

int xdp_keep(const char *device, const struct in6_addr *address, unsigned int n, char *error,
	     size_t size)
{
	struct bpf_prog_info info;
	__u32 maps[MAPS_MAX];
	int program = xdp_attached(xdp_interface(device), &info, maps);
	int map = program < 0 ? -ENOENT : xdp_map(&info, maps, KEEP_NAME);
	int ret = map < 0 ? map : xdp_fill_map(map, address, n);

	if (map >= 0)
		close(map);
	if (program >= 0)
		close(program);
	if (ret < 0)
		snprintf(error, size, "device '%s': cannot give the XDP program our addresses: %s",
			 device, strerror(-ret));
	return ret;
}

int xdp_program(const char *device, char *error, size_t size)
{
	struct bpf_prog_info info;
	__u32 maps[MAPS_MAX];
	int program = xdp_attached(xdp_interface(device), &info, maps);

	if (program >= 0)
		return program;
	snprintf(error, size, "device '%s': its XDP program is gone", device);
	return -ENOENT;
}

int xdp_join(const char *device, int program, unsigned int queue, int socket, char *error,
	     size_t size)
{
	unsigned int interface = xdp_interface(device);
	int other, map = -ENOENT, ret = bpf_xdp_attach(interface, program, 0, NULL);
	struct bpf_prog_info info;
	__u32 maps[MAPS_MAX];

	other = ret < 0 ? ret : xdp_attached(interface, &info, maps);
	if (other >= 0) {
		map = xdp_map(&info, maps, SOCKETS_NAME);
		close(other);
	}
	if (ret == 0)
		ret = map < 0 ? map : bpf_map_update_elem(map, &queue, &socket, BPF_ANY);
	if (map >= 0)
		close(map);
	if (ret < 0)
		snprintf(error, size, "device '%s': cannot give queue %u to its socket: %s", device,
			 queue, strerror(-ret));
	return ret;
}
