/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NEEDED true
#define ROW(member, name, ...)                                                                     \
	{                                                                                          \
		offsetof(struct nvml, member), name, ##__VA_ARGS__                                 \
	}

static const struct nvml_row {
	size_t offset;
	const char *name;
	bool needed;
} nvml_rows[] = {
	ROW(init, "nvmlInit_v2", NEEDED),
	ROW(count, "nvmlDeviceGetCount_v2", NEEDED),
	ROW(by_index, "nvmlDeviceGetHandleByIndex_v2", NEEDED),
	ROW(by_bus, "nvmlDeviceGetHandleByPciBusId_v2", NEEDED),
	ROW(pci, "nvmlDeviceGetPciInfo_v3", NEEDED),
	ROW(error, "nvmlErrorString"),
	ROW(memory, "nvmlDeviceGetMemoryInfo"),
	ROW(mig_mode, "nvmlDeviceGetMigMode"),
	ROW(link_state, "nvmlDeviceGetNvLinkState"),
	ROW(link_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2"),
	ROW(link_type, "nvmlDeviceGetNvLinkRemoteDeviceType"),
	ROW(fabric, "nvmlDeviceGetGpuFabricInfo"),
	ROW(utilization, "nvmlDeviceGetUtilizationRates"),
	ROW(temperature, "nvmlDeviceGetTemperature"),
	ROW(power, "nvmlDeviceGetPowerUsage"),
	ROW(ecc, "nvmlDeviceGetTotalEccErrors"),
	ROW(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons"),
	ROW(event_create, "nvmlEventSetCreate"),
	ROW(event_register, "nvmlDeviceRegisterEvents"),
	ROW(event_wait, "nvmlEventSetWait_v2"),
	ROW(event_free, "nvmlEventSetFree"),
	ROW(energy, "nvmlDeviceGetTotalEnergyConsumption"),
};

const char *nvml_text(const struct nvml *nvml, int result)
{
	const char *text = nvml->error != NULL ? nvml->error(result) : NULL;

	return text != NULL ? text : "unknown error";
}

int nvml_open(struct nvml *nvml, const char *library, char *error, size_t size)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int ret;

	memset(nvml, 0, sizeof(*nvml));
	if (handle == NULL)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(nvml_rows) / sizeof(nvml_rows[0]); i++) {
		void *call = dlsym(handle, nvml_rows[i].name);

		memcpy((char *)nvml + nvml_rows[i].offset, &call, sizeof(call));
		if (call == NULL && nvml_rows[i].needed) {
			snprintf(error, size, "%s has no %s", library, nvml_rows[i].name);
			return -EIO;
		}
	}
	ret = nvml->init();
	if (ret != NVML_OK) {
		snprintf(error, size, "nvmlInit: %s (%d)", nvml_text(nvml, ret), ret);
		return -EIO;
	}
	return 0;
}
