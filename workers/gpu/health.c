/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml.h"

/* Events of one reading; more wait for the next one. */
#define GPU_EVENTS_MAX 64

struct gpu_health {
	struct nvml nvml;
	nvml_device device;
	void *events; /* NULL: the driver does not report any */
	int64_t xids, ecc_before;
	char error[WORKER_NOTICE_MAX]; /* the last Xid, or "" */
	bool lost;
};

/* Errors after which a GPU's results or its driver cannot be relied on (NVIDIA, "XID Errors"). */
static const struct {
	unsigned long long xid;
	const char *text;
} gpu_fatal[] = {
	{48, "memory error that ECC could not correct"},
	{62, "halt of a microcontroller"},
	{64, "memory rows could not be remapped"},
	{74, "NVLink error"},
	{79, "the GPU has fallen off the bus"},
	{95, "memory error that was not contained"},
	{119, "the GPU's system processor does not answer"},
	{120, "error of the GPU's system processor"},
	{140, "memory error that ECC could not correct"},
};

struct gpu_health *gpu_health_open(const char *library, const char *bus_id, char *error,
				   size_t size)
{
	struct gpu_health *h = calloc(1, sizeof(*h));
	struct worker_gpu now;
	int ret;

	if (h == NULL) {
		snprintf(error, size, "no memory");
		return NULL;
	}
	snprintf(error, size, "there is no %s", library);
	if (nvml_open(&h->nvml, library, error, size) < 0) {
		free(h);
		return NULL;
	}
	ret = h->nvml.by_bus(bus_id, &h->device);
	if (ret != NVML_OK) {
		snprintf(error, size, "%s: %s", bus_id, nvml_text(&h->nvml, ret));
		free(h);
		return NULL;
	}
	if (h->nvml.event_create == NULL || h->nvml.event_wait == NULL ||
	    h->nvml.event_register == NULL || h->nvml.event_create(&h->events) != NVML_OK)
		h->events = NULL;
	else if (h->nvml.event_register(h->device, NVML_EVENT_XID, h->events) != NVML_OK)
		h->events = NULL;
	gpu_health_read(h, &now);
	h->ecc_before = now.ecc_uncorrected;
	return h;
}

void gpu_health_close(struct gpu_health *h)
{
	if (h == NULL)
		return;
	if (h->events != NULL && h->nvml.event_free != NULL)
		h->nvml.event_free(h->events);
	free(h);
}

static void gpu_health_note_xid(struct gpu_health *h, unsigned long long xid)
{
	const char *text = NULL;

	h->xids++;
	for (size_t i = 0; i < sizeof(gpu_fatal) / sizeof(gpu_fatal[0]); i++)
		if (gpu_fatal[i].xid == xid)
			text = gpu_fatal[i].text;
	/* One that ends the GPU's service is not covered by one that comes after it. */
	if (h->lost)
		return;
	h->lost = text != NULL;
	snprintf(h->error, sizeof(h->error), "Xid %llu%s%s", xid, text != NULL ? ": " : "",
		 text != NULL ? text : "");
}

static int64_t gpu_health_ecc(const struct gpu_health *h, int kind)
{
	unsigned long long n;

	if (h->nvml.ecc == NULL || h->nvml.ecc(h->device, kind, NVML_ECC_VOLATILE, &n) != NVML_OK)
		return -1;
	return (int64_t)n;
}

static void gpu_health_read_figures(const struct gpu_health *h, struct worker_gpu *out)
{
	struct nvml_utilization used;
	struct nvml_memory memory;
	unsigned int number;

	if (h->nvml.utilization != NULL && h->nvml.utilization(h->device, &used) == NVML_OK &&
	    used.gpu <= 100)
		out->utilization = used.gpu;
	if (h->nvml.memory != NULL && h->nvml.memory(h->device, &memory) == NVML_OK) {
		out->memory_used = (int64_t)memory.used;
		out->memory_total = (int64_t)memory.total;
	}
	if (h->nvml.temperature != NULL &&
	    h->nvml.temperature(h->device, NVML_TEMPERATURE_GPU, &number) == NVML_OK &&
	    number <= WORKER_DEGREES_MAX)
		out->temperature = number;
	if (h->nvml.power != NULL && h->nvml.power(h->device, &number) == NVML_OK &&
	    number != NVML_NOT_KNOWN)
		out->power_mw = number;
	out->ecc_corrected = gpu_health_ecc(h, NVML_ECC_CORRECTED);
	out->ecc_uncorrected = gpu_health_ecc(h, NVML_ECC_UNCORRECTED);
}

static bool gpu_health_is_hot(const struct gpu_health *h)
{
	unsigned long long reasons;

	return h->nvml.throttle != NULL && h->nvml.throttle(h->device, &reasons) == NVML_OK &&
	       (reasons & NVML_THROTTLE_THERMAL) != 0;
}

bool gpu_health_read(struct gpu_health *h, struct worker_gpu *out)
{
	struct nvml_event event;

	*out = (struct worker_gpu){-1, -1, -1, -1, -1, -1, -1, -1, ""};
	gpu_health_read_figures(h, out);
	for (int i = 0; i < GPU_EVENTS_MAX && h->events != NULL &&
			h->nvml.event_wait(h->events, &event, 0) == NVML_OK;
	     i++)
		if (event.type == NVML_EVENT_XID)
			gpu_health_note_xid(h, event.data);
	if (h->events != NULL)
		out->xids = h->xids;
	if (h->lost)
		snprintf(out->notice, sizeof(out->notice), "%s", h->error);
	else if (out->ecc_uncorrected > h->ecc_before && h->ecc_before >= 0)
		snprintf(out->notice, sizeof(out->notice),
			 "memory errors that ECC could not correct: %lld since the agent began",
			 (long long)(out->ecc_uncorrected - h->ecc_before));
	else if (gpu_health_is_hot(h))
		/* Without the degrees: each change of a notice is logged. */
		snprintf(out->notice, sizeof(out->notice), "slowed down by heat");
	else
		snprintf(out->notice, sizeof(out->notice), "%s", h->error);
	return !h->lost;
}
