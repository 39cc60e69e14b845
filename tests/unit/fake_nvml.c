/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for libnvidia-ml.so.1. $FAKE_NVML names a file that describes the machine, a line per
 * GPU:
 *
 *   BUS-ID TOTAL-MIB FREE-MIB MIG LINKS FABRIC
 *
 * MIG is 0, 1 or - (not supported); LINKS are "switch", bus ids of GPUs or "off", by commas, or -;
 * FABRIC is a number for the cluster's UUID and that of the clique, as 7/1, or -. A file with the
 * line "broken" makes nvmlInit fail.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml.h"

#define GPUS        8
#define INVALID     2
#define NOT_FOUND   6
#define DRIVER_GONE 9
#define EXPORTED    __attribute__((visibility("default")))

struct nvml_device_opaque {
	char bus[32], links[256], fabric[16], mig[4];
	unsigned long long total, free;
};

static struct nvml_device_opaque fake_gpu[GPUS];
static unsigned int n_fake;

EXPORTED int nvmlInit_v2(void);
EXPORTED int nvmlInit_v2(void)
{
	const char *path = getenv("FAKE_NVML");
	FILE *file = path != NULL ? fopen(path, "r") : NULL;
	char line[512];

	n_fake = 0;
	if (file == NULL)
		return DRIVER_GONE;
	while (n_fake < GPUS && fgets(line, sizeof(line), file) != NULL) {
		struct nvml_device_opaque *g = &fake_gpu[n_fake];

		if (strncmp(line, "broken", 6) == 0) {
			fclose(file);
			return DRIVER_GONE;
		}
		if (sscanf(line, "%31s %llu %llu %3s %255s %15s", g->bus, &g->total, &g->free,
			   g->mig, g->links, g->fabric) == 6)
			n_fake++;
	}
	fclose(file);
	return NVML_OK;
}

EXPORTED const char *nvmlErrorString(int result);
EXPORTED const char *nvmlErrorString(int result)
{
	return result == DRIVER_GONE ? "Driver Not Loaded" : "some error";
}

EXPORTED int nvmlDeviceGetCount_v2(unsigned int *n);
EXPORTED int nvmlDeviceGetCount_v2(unsigned int *n)
{
	*n = n_fake;
	return NVML_OK;
}

EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvml_device *device);
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvml_device *device)
{
	if (index >= n_fake)
		return INVALID;
	*device = &fake_gpu[index];
	return NVML_OK;
}

EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvml_device *device);
EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvml_device *device)
{
	for (unsigned int i = 0; i < n_fake; i++) {
		if (strcasecmp(fake_gpu[i].bus, bus_id) != 0)
			continue;
		*device = &fake_gpu[i];
		return NVML_OK;
	}
	return NOT_FOUND;
}

/* NVML writes domains with eight digits, and upper-case. */
static void fake_pci(const char *bus, struct nvml_pci *pci)
{
	memset(pci, 0, sizeof(*pci));
	sscanf(bus, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
	snprintf(pci->bus_id, sizeof(pci->bus_id), "%08X:%02X:%02X.0", pci->domain, pci->bus,
		 pci->device);
}

EXPORTED int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *pci);
EXPORTED int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *pci)
{
	fake_pci(device->bus, pci);
	return NVML_OK;
}

EXPORTED int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory);
EXPORTED int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
	memory->total = device->total << 20;
	memory->free = device->free << 20;
	memory->used = memory->total - memory->free;
	return NVML_OK;
}

EXPORTED int nvmlDeviceGetMigMode(nvml_device device, unsigned int *current, unsigned int *pending);
EXPORTED int nvmlDeviceGetMigMode(nvml_device device, unsigned int *current, unsigned int *pending)
{
	if (device->mig[0] == '-')
		return NVML_NOT_SUPPORTED;
	*current = *pending = device->mig[0] == '1';
	return NVML_OK;
}

/* Copy the text of a link; false: the GPU has no such link. */
static int fake_link(nvml_device device, unsigned int link, char text[32])
{
	const char *at = device->links;

	if (*at == '-')
		return 0;
	for (; link > 0 && at != NULL; link--) {
		at = strchr(at, ',');
		at = at != NULL ? at + 1 : NULL;
	}
	if (at == NULL)
		return 0;
	snprintf(text, 32, "%.*s", (int)strcspn(at, ","), at);
	return 1;
}

EXPORTED int nvmlDeviceGetNvLinkState(nvml_device device, unsigned int link, int *active);
EXPORTED int nvmlDeviceGetNvLinkState(nvml_device device, unsigned int link, int *active)
{
	char text[32];

	if (!fake_link(device, link, text))
		return NVML_NOT_SUPPORTED;
	*active = strcmp(text, "off") != 0;
	return NVML_OK;
}

EXPORTED int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned int link,
						 struct nvml_pci *remote);
EXPORTED int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned int link,
						 struct nvml_pci *remote)
{
	char text[32];

	if (!fake_link(device, link, text))
		return NVML_NOT_SUPPORTED;
	fake_pci(strcmp(text, "switch") == 0 ? "0000:05:00.0" : text, remote);
	return NVML_OK;
}

EXPORTED int nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device device, unsigned int link, int *type);
EXPORTED int nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device device, unsigned int link, int *type)
{
	char text[32];

	if (!fake_link(device, link, text))
		return NVML_NOT_SUPPORTED;
	*type = strcmp(text, "switch") == 0 ? NVML_REMOTE_SWITCH : NVML_REMOTE_GPU;
	return NVML_OK;
}

EXPORTED int nvmlDeviceGetGpuFabricInfo(nvml_device device, struct nvml_fabric *fabric);
EXPORTED int nvmlDeviceGetGpuFabricInfo(nvml_device device, struct nvml_fabric *fabric)
{
	unsigned int cluster, clique;

	memset(fabric, 0, sizeof(*fabric));
	if (sscanf(device->fabric, "%u/%u", &cluster, &clique) != 2)
		return NVML_NOT_SUPPORTED;
	fabric->cluster[0] = (unsigned char)cluster;
	fabric->clique = clique;
	fabric->state = NVML_FABRIC_COMPLETED;
	return NVML_OK;
}
