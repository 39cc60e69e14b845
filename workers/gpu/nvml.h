/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NVIDIA's management library, loaded at run time: programs build and start without it. Its calls
 * are members of struct nvml; what to call them with is in NVIDIA's NVML API reference, and types
 * and numbers below are from there. A member whose name the library lacks is NULL.
 *
 * A new call is a member here and a row in nvml.c's table. Thread-safe, as the library is; a call
 * may take milliseconds, so not for lcores.
 */
#ifndef GPU_NVML_H
#define GPU_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVML_LIBRARY "libnvidia-ml.so.1"

/* nvmlReturn_t */
#define NVML_OK            0
#define NVML_NOT_SUPPORTED 3

#define NVML_NOT_KNOWN UINT32_MAX /* NVML_VALUE_NOT_AVAILABLE, of 32 bits */

#define NVML_LINKS_MAX 18 /* NVML_NVLINK_MAX_LINKS */

typedef struct nvml_device_opaque *nvml_device;

/* nvmlPciInfo_t, version 3 */
struct nvml_pci {
	char legacy_bus[16];
	unsigned int domain, bus, device, ids, subsystem_ids;
	char bus_id[32]; /* "00000000:17:00.0" */
};

/* nvmlMemory_t: bytes */
struct nvml_memory {
	unsigned long long total, free, used;
};

/* nvmlGpuFabricInfo_t */
struct nvml_fabric {
	unsigned char cluster[16]; /* a UUID; zeros: none */
	int status;
	unsigned int clique;
	unsigned char state;
};
#define NVML_FABRIC_COMPLETED 3

/* nvmlIntNvLinkDeviceType_t */
enum { NVML_REMOTE_GPU = 0, NVML_REMOTE_SWITCH = 2 };

/* nvmlUtilization_t: percent of the time */
struct nvml_utilization {
	unsigned int gpu, memory;
};

/* nvmlEventData_t */
struct nvml_event {
	nvml_device device;
	unsigned long long type, data;
	unsigned int gpu_instance, compute_instance;
};
#define NVML_EVENT_XID 0x8ull

enum { NVML_ECC_CORRECTED = 0, NVML_ECC_UNCORRECTED = 1 }; /* nvmlMemoryErrorType_t */
#define NVML_ECC_VOLATILE     0 /* nvmlEccCounterType_t: since the driver was loaded */
#define NVML_TEMPERATURE_GPU  0 /* nvmlTemperatureSensors_t */
#define NVML_THROTTLE_THERMAL 0x60ull /* software's and hardware's thermal slowdown */

struct nvml {
	/* needed: nvml_open() fails without them */
	int (*init)(void);
	int (*count)(unsigned int *n);
	int (*by_index)(unsigned int index, nvml_device *device);
	int (*by_bus)(const char *bus_id, nvml_device *device);
	int (*pci)(nvml_device device, struct nvml_pci *pci);
	/* may be NULL */
	const char *(*error)(int result);
	int (*memory)(nvml_device device, struct nvml_memory *memory);
	int (*mig_mode)(nvml_device device, unsigned int *current, unsigned int *pending);
	int (*link_state)(nvml_device device, unsigned int link, int *active);
	int (*link_pci)(nvml_device device, unsigned int link, struct nvml_pci *remote);
	int (*link_type)(nvml_device device, unsigned int link, int *type);
	int (*fabric)(nvml_device device, struct nvml_fabric *fabric);
	int (*utilization)(nvml_device device, struct nvml_utilization *used);
	int (*temperature)(nvml_device device, int sensor, unsigned int *degrees);
	int (*power)(nvml_device device, unsigned int *milliwatts);
	int (*ecc)(nvml_device device, int kind, int counter, unsigned long long *n);
	int (*throttle)(nvml_device device, unsigned long long *reasons);
	int (*event_create)(void **set);
	int (*event_register)(nvml_device device, unsigned long long types, void *set);
	int (*event_wait)(void *set, struct nvml_event *event, unsigned int timeout_ms);
	int (*event_free)(void *set);
	/* millijoules since the driver was loaded */
	int (*energy)(nvml_device device, unsigned long long *millijoules);
};

/*
 * Load <library> (NVML_LIBRARY; tests bring another) and initialise it; it stays loaded until the
 * process ends, as the driver's threads outlive dlclose(). Returns 0; -ENOENT: there is no such
 * library; -EIO: it does not work, with a sentence in <error>.
 */
int nvml_open(struct nvml *nvml, const char *library, char *error, size_t size);

/* The library's words for a result. */
const char *nvml_text(const struct nvml *nvml, int result);

#endif
