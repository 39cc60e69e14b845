/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a worker is, as values of labels: two workers with the same value of one are in the same
 * place. All but the host's begin with it, so that places of different hosts differ.
 */
#ifndef GPU_PLACES_H
#define GPU_PLACES_H

#include <stdbool.h>

#include "gpu/nvml.h"

enum place {
	PLACE_HOST,   /* the host's name */
	PLACE_NUMA,   /* HOST/1: the node that the GPU, or that all CPUs of the process, are on */
	PLACE_PCIE,   /* HOST/pci0000:3a: the root that the GPU is below */
	PLACE_NVLINK, /* GPUs that reach each other by NVLink: HOST/switch; HOST/17:00.0, after
		       * the one with the lowest address; or UUID/clique, of several hosts */
	PLACES,
};

#define PLACE_TEXT 64 /* with its zero, as a label's value has */

struct places {
	char text[PLACES][PLACE_TEXT]; /* empty: not known, or too long */
};

/* "host", "numa", "pcie", "nvlink" */
const char *place_name(enum place place);

/*
 * The host by its name, and, from the kernel's files below <root> (normally ""), the NUMA node that
 * has all of this process's CPUs, if there are several nodes and one has.
 */
void places_of_process(struct places *places, const char *root, const char *host);
/*
 * Then the GPU at this PCI address ("0000:17:00.0", in any case): its node in place of the CPUs',
 * its PCIe root, and, unless <nvml> is NULL, its NVLink island.
 */
void places_of_gpu(struct places *places, const char *root, const struct nvml *nvml,
		   const char *bus_id);

/* The GPU's NUMA node from the kernel's files, or -1. */
int places_gpu_node(const char *root, const char *bus_id);

#endif
