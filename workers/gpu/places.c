/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/places.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODES_MAX  64
#define GPUS_MAX   64
#define BUS_MAX    16
#define ROOT_MATCH "/pci"

static const char *const place_names[PLACES] = {
	[PLACE_HOST] = "host",
	[PLACE_NUMA] = "numa",
	[PLACE_PCIE] = "pcie",
	[PLACE_NVLINK] = "nvlink",
};

const char *place_name(enum place place)
{
	return place_names[place];
}

static void place_set(struct places *p, enum place place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A text that is cut might be that of another place: leave it empty. */
static void place_set(struct places *p, enum place place, const char *format, ...)
{
	char *text = p->text[place];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text, PLACE_TEXT, format, ap);
	va_end(ap);
	if (n < 0 || n >= PLACE_TEXT)
		text[0] = '\0';
}

/* --- the kernel's files ----------------------------------------------------------------------- */

/* NVML writes "00000000:17:00.0" and CUDA "0000:17:00.0"; the kernel's files have the latter. */
static bool bus_of(char bus[BUS_MAX], const char *bus_id)
{
	unsigned int domain, number, device, function = 0;

	if (sscanf(bus_id, "%x:%x:%x.%x", &domain, &number, &device, &function) < 3 ||
	    domain > 0xffff || number > 0xff || device > 0x1f || function > 7)
		return false;
	snprintf(bus, BUS_MAX, "%04x:%02x:%02x.%u", domain, number, device, function);
	return true;
}

int places_gpu_node(const char *root, const char *bus_id)
{
	char path[PATH_MAX], bus[BUS_MAX];
	FILE *file;
	int node = -1;

	if (!bus_of(bus, bus_id))
		return -1;
	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/numa_node", root, bus);
	file = fopen(path, "re");
	if (file == NULL)
		return -1;
	if (fscanf(file, "%d", &node) != 1 || node < 0 || node >= NODES_MAX)
		node = -1;
	fclose(file);
	return node;
}

/* "/sys/devices/pci0000:3a/0000:3a:00.0/..." has the root behind "/pci". */
static void find_pcie(struct places *p, const char *root, const char *bus)
{
	char path[PATH_MAX], real[PATH_MAX];
	const char *at;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s", root, bus);
	if (realpath(path, real) == NULL)
		return;
	at = strstr(real, ROOT_MATCH);
	if (at != NULL && isxdigit((unsigned char)at[4]))
		place_set(p, PLACE_PCIE, "%s/%.*s", p->text[PLACE_HOST], (int)strcspn(at + 1, "/"),
			  at + 1);
}

/* Has the node each CPU of the set? */
static bool node_has(const char *root, int node, const cpu_set_t *cpus)
{
	char path[PATH_MAX];

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, cpus))
			continue;
		snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%d/node%d", root, cpu,
			 node);
		if (access(path, F_OK) != 0)
			return false;
	}
	return true;
}

void places_of_process(struct places *p, const char *root, const char *host)
{
	int found = -1, nodes = 0;
	char path[PATH_MAX];
	cpu_set_t cpus;

	memset(p, 0, sizeof(*p));
	place_set(p, PLACE_HOST, "%s", host);
	if (p->text[PLACE_HOST][0] == '\0' || sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return;
	for (int node = 0; node < NODES_MAX; node++) {
		snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%d", root, node);
		if (access(path, F_OK) != 0)
			continue;
		nodes++;
		if (found < 0 && node_has(root, node, &cpus))
			found = node;
	}
	if (nodes > 1 && found >= 0)
		place_set(p, PLACE_NUMA, "%s/%d", host, found);
}

/* --- NVLink ----------------------------------------------------------------------------------- */

/* The GPUs of this host that NVML shows, and which of them have been reached by links. */
struct island {
	const struct nvml *nvml;
	unsigned int n;
	nvml_device device[GPUS_MAX];
	char bus[GPUS_MAX][BUS_MAX];
	bool reached[GPUS_MAX];
	bool on_switch;
	char lowest[BUS_MAX];
};

/* A GPU that other programs hide from this one counts by its address. */
static void island_reach(struct island *s, const char *bus)
{
	if (s->lowest[0] == '\0' || strcmp(bus, s->lowest) < 0)
		memcpy(s->lowest, bus, BUS_MAX);
	for (unsigned int i = 0; i < s->n; i++)
		if (strcmp(s->bus[i], bus) == 0)
			s->reached[i] = true;
}

/* Follow the links of one GPU. Returns whether it has any. */
static bool island_follow(struct island *s, nvml_device device)
{
	const struct nvml *nvml = s->nvml;
	bool linked = false;

	for (unsigned int link = 0; link < NVML_LINKS_MAX; link++) {
		int active = 0, type = NVML_REMOTE_GPU;
		struct nvml_pci remote;
		char bus[BUS_MAX];

		if (nvml->link_state(device, link, &active) != NVML_OK || active == 0)
			continue;
		if (nvml->link_type != NULL)
			nvml->link_type(device, link, &type);
		if (type == NVML_REMOTE_SWITCH)
			s->on_switch = linked = true;
		if (type != NVML_REMOTE_GPU || nvml->link_pci(device, link, &remote) != NVML_OK ||
		    !bus_of(bus, remote.bus_id))
			continue;
		island_reach(s, bus);
		linked = true;
	}
	return linked;
}

/* Reach all GPUs that links lead to from <bus>. Returns whether it has any link. */
static bool island_grow(struct island *s, const char *bus)
{
	bool followed[GPUS_MAX] = {false}, linked = false, more = true;

	island_reach(s, bus);
	while (more) {
		more = false;
		for (unsigned int i = 0; i < s->n; i++) {
			if (!s->reached[i] || followed[i])
				continue;
			followed[i] = more = true;
			linked = island_follow(s, s->device[i]) || linked;
		}
	}
	return linked;
}

static void island_list(struct island *s)
{
	unsigned int n = 0;

	if (s->nvml->count(&n) != NVML_OK)
		return;
	for (unsigned int i = 0; i < n && s->n < GPUS_MAX; i++) {
		struct nvml_pci pci;

		if (s->nvml->by_index(i, &s->device[s->n]) == NVML_OK &&
		    s->nvml->pci(s->device[s->n], &pci) == NVML_OK &&
		    bus_of(s->bus[s->n], pci.bus_id))
			s->n++;
	}
}

/* An island of several hosts has a UUID, and is divided into cliques. */
static bool find_fabric(struct places *p, const struct nvml *nvml, nvml_device device)
{
	static const unsigned char none[16];
	struct nvml_fabric fabric = {.status = 0};
	char uuid[33];

	if (nvml->fabric == NULL || nvml->fabric(device, &fabric) != NVML_OK ||
	    fabric.state != NVML_FABRIC_COMPLETED || fabric.status != NVML_OK ||
	    memcmp(fabric.cluster, none, sizeof(none)) == 0)
		return false;
	for (int i = 0; i < 16; i++)
		snprintf(uuid + 2 * i, 3, "%02x", fabric.cluster[i]);
	place_set(p, PLACE_NVLINK, "%s/%u", uuid, fabric.clique);
	return true;
}

static void find_nvlink(struct places *p, const struct nvml *nvml, const char *bus)
{
	struct island island = {.nvml = nvml};
	nvml_device device;

	if (nvml->by_bus(bus, &device) != NVML_OK || find_fabric(p, nvml, device) ||
	    nvml->link_state == NULL || nvml->link_pci == NULL)
		return;
	island_list(&island);
	if (!island_grow(&island, bus))
		return;
	if (island.on_switch)
		place_set(p, PLACE_NVLINK, "%s/switch", p->text[PLACE_HOST]);
	else
		place_set(p, PLACE_NVLINK, "%s/%s", p->text[PLACE_HOST], island.lowest);
}

void places_of_gpu(struct places *p, const char *root, const struct nvml *nvml, const char *bus_id)
{
	int node = places_gpu_node(root, bus_id);
	char bus[BUS_MAX];

	p->text[PLACE_NUMA][0] = '\0';
	if (p->text[PLACE_HOST][0] == '\0' || !bus_of(bus, bus_id))
		return;
	if (node >= 0)
		place_set(p, PLACE_NUMA, "%s/%d", p->text[PLACE_HOST], node);
	find_pcie(p, root, bus);
	if (nvml != NULL)
		find_nvlink(p, nvml, bus);
}
