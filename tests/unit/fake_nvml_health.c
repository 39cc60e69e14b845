/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of fake_nvml.c that tells how well GPUs are. $FAKE_NVML is read at each call, and may
 * change:
 *
 *   health UTILIZATION TEMPERATURE POWER-MW ECC-CORRECTED ECC-UNCORRECTED THROTTLE-HEX
 *   xid NUMBER
 *   endless NUMBER
 *
 * for all GPUs. Each xid line is an event, which comes once; that of an endless line comes again
 * and again. Without a health line nothing is supported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml.h"

#define TIMEOUT  10
#define EXPORTED __attribute__((visibility("default")))

struct fake_health {
	unsigned int utilization, temperature, power;
	unsigned long long ecc[2], throttle, endless, xid[16];
	unsigned int n_xids;
};

static unsigned int n_taken; /* events that have been delivered */

static int fake_health(struct fake_health *h)
{
	const char *path = getenv("FAKE_NVML");
	FILE *file = path != NULL ? fopen(path, "r") : NULL;
	int ret = NVML_NOT_SUPPORTED;
	char line[256];

	memset(h, 0, sizeof(*h));
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "health %u %u %u %llu %llu %llx", &h->utilization, &h->temperature,
			   &h->power, &h->ecc[0], &h->ecc[1], &h->throttle) == 6)
			ret = NVML_OK;
		sscanf(line, "endless %llu", &h->endless);
		if (h->n_xids < 16 && sscanf(line, "xid %llu", &h->xid[h->n_xids]) == 1)
			h->n_xids++;
	}
	if (file != NULL)
		fclose(file);
	return ret;
}

EXPORTED int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilization *used);
EXPORTED int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilization *used)
{
	struct fake_health h;
	int ret = fake_health(&h);

	used->gpu = h.utilization;
	return ret;
}

EXPORTED int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned int *degrees);
EXPORTED int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned int *degrees)
{
	struct fake_health h;
	int ret = fake_health(&h);

	*degrees = h.temperature;
	return ret;
}

EXPORTED int nvmlDeviceGetPowerUsage(nvml_device device, unsigned int *milliwatts);
EXPORTED int nvmlDeviceGetPowerUsage(nvml_device device, unsigned int *milliwatts)
{
	struct fake_health h;
	int ret = fake_health(&h);

	*milliwatts = h.power;
	return ret;
}

EXPORTED int nvmlDeviceGetTotalEccErrors(nvml_device device, int kind, int counter,
					 unsigned long long *n);
EXPORTED int nvmlDeviceGetTotalEccErrors(nvml_device device, int kind, int counter,
					 unsigned long long *n)
{
	struct fake_health h;
	int ret = fake_health(&h);

	*n = h.ecc[kind == NVML_ECC_UNCORRECTED];
	return counter == NVML_ECC_VOLATILE ? ret : NVML_NOT_SUPPORTED;
}

EXPORTED int nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device device,
						       unsigned long long *reasons);
EXPORTED int nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device device,
						       unsigned long long *reasons)
{
	struct fake_health h;
	int ret = fake_health(&h);

	*reasons = h.throttle;
	return ret;
}

EXPORTED int nvmlEventSetCreate(void **set);
EXPORTED int nvmlEventSetCreate(void **set)
{
	struct fake_health h;

	n_taken = 0;
	*set = &n_taken;
	return fake_health(&h);
}

EXPORTED int nvmlDeviceRegisterEvents(nvml_device device, unsigned long long types, void *set);
EXPORTED int nvmlDeviceRegisterEvents(nvml_device device, unsigned long long types, void *set)
{
	return types == NVML_EVENT_XID ? NVML_OK : NVML_NOT_SUPPORTED;
}

EXPORTED int nvmlEventSetWait_v2(void *set, struct nvml_event *event, unsigned int timeout_ms);
EXPORTED int nvmlEventSetWait_v2(void *set, struct nvml_event *event, unsigned int timeout_ms)
{
	struct fake_health h;

	fake_health(&h);
	*event = (struct nvml_event){.type = NVML_EVENT_XID, .data = h.endless};
	if (n_taken >= h.n_xids)
		return h.endless != 0 ? NVML_OK : TIMEOUT;
	*event = (struct nvml_event){.type = NVML_EVENT_XID, .data = h.xid[n_taken++]};
	return NVML_OK;
}

EXPORTED int nvmlEventSetFree(void *set);
EXPORTED int nvmlEventSetFree(void *set)
{
	return NVML_OK;
}
