/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include <cuda_runtime_api.h>

#include "mediated_pin.h"

/* Find the mapping that <at> is in. */
static struct mediated_range mediated_mapping(uintptr_t at)
{
	struct mediated_range r = {at, at + 1}, seen;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &seen.from, &seen.to) == 2 &&
		    seen.from <= at && at < seen.to)
			r = seen;
	if (maps != NULL)
		fclose(maps);
	return r;
}

void mediated_pin(struct mediated_pins *pins, const void *address)
{
	uintptr_t at = (uintptr_t)address;
	struct mediated_range r;
	cudaError_t ret;

	for (uint32_t i = 0; i < pins->n; i++)
		if (pins->range[i].from <= at && at < pins->range[i].to)
			return;
	r = mediated_mapping(at);
	ret = cudaHostRegister((void *)r.from, r.to - r.from, cudaHostRegisterPortable);
	fprintf(stderr, "mediated: %zu KiB of the agent's memory %s%s\n", (r.to - r.from) / 1024,
		ret == cudaSuccess ? "pinned" : "NOT PINNED: ",
		ret == cudaSuccess ? "" : cudaGetErrorString(ret));
	if (ret != cudaSuccess)
		cudaGetLastError();
	if (pins->n < MEDIATED_RANGES_MAX)
		pins->range[pins->n++] = r;
}
