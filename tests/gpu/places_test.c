/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPUs here, as CUDA, the real libnvidia-ml and the kernel describe them: the labels that an
 * agent would have, MIG, memory; and a budget of a GPU's memory, kept and exceeded. Prints what it
 * found. Exits with 77 where there is no GPU.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/places.h"
#include "gpu_budget.h"
#include "loop/cuda/gpu_list.h"
#include "loop/cuda/gpu_memory.h"
#include "loop/loop.h"
#include "require.h"

#define BUDGET_MB 256

static void look_by_nvml(const struct nvml *nvml, const char *bus, uint64_t total_mb)
{
	struct nvml_memory memory = {0};
	unsigned int mig = 0, later = 0;
	nvml_device device;
	int ret = nvml->by_bus(bus, &device);

	REQUIRE(ret == NVML_OK, "NVML does not know %s: %s", bus, nvml_text(nvml, ret));
	if (ret != NVML_OK)
		return;
	ret = nvml->memory(device, &memory);
	REQUIRE(ret == NVML_OK, "memory: %s", nvml_text(nvml, ret));
	/* NVML counts what the driver keeps for itself. */
	REQUIRE(memory.total >> 20 >= total_mb && memory.total >> 20 < total_mb + total_mb / 8,
		"NVML says %llu MB, CUDA %" PRIu64, memory.total >> 20, total_mb);
	ret = nvml->mig_mode(device, &mig, &later);
	printf("       mig=%s memory=%llu of %llu MB free\n",
	       ret != NVML_OK ? nvml_text(nvml, ret)
	       : mig != 0     ? "on"
			      : "off",
	       memory.free >> 20, memory.total >> 20);
}

static void look(int gpu, const struct nvml *nvml)
{
	uint64_t free_mb = 0, total_mb = 0;
	struct places places;
	char bus[32] = "";

	REQUIRE(agent_gpu_bus(gpu, bus, sizeof(bus)), "GPU %d has no address", gpu);
	REQUIRE(agent_gpu_memory(gpu, &free_mb, &total_mb), "GPU %d has no memory", gpu);
	places_of_process(&places, "", "here");
	places_of_gpu(&places, "", nvml, bus);
	printf("       gpu=%d bus=%s", gpu, bus);
	for (unsigned int p = 0; p < PLACES; p++)
		printf(" %s=%s", place_name((enum place)p), places.text[p]);
	putchar('\n');
	/* A GPU that the kernel shows is below a root. */
	REQUIRE(strncmp(places.text[PLACE_PCIE], "here/pci", 8) == 0, "no PCIe root: '%s'",
		places.text[PLACE_PCIE]);
	if (nvml != NULL)
		look_by_nvml(nvml, bus, total_mb);
}

static void try_budget(int gpu)
{
	uint64_t free_mb = 0, total_mb = 0;
	struct gpu_budget budget;
	struct gpu_memory memory;
	char why[256] = "";

	agent_gpu_memory(gpu, &free_mb, &total_mb);
	REQUIRE(!gpu_budget_begin(&budget, (uint32_t)free_mb + 1, gpu, why, sizeof(why)),
		"more than is free was taken for free");
	printf("       %s\n", why);
	REQUIRE(gpu_budget_begin(&budget, BUDGET_MB, gpu, why, sizeof(why)), "%s", why);
	REQUIRE(gpu_memory_create(&memory, gpu, (BUDGET_MB / 2) << 20, why, sizeof(why)) == 0, "%s",
		why);
	REQUIRE(gpu_budget_keeps(&budget, why, sizeof(why)), "%s", why);
	gpu_memory_destroy(&memory);
	REQUIRE(gpu_memory_create(&memory, gpu, (BUDGET_MB + 8) << 20, why, sizeof(why)) == 0, "%s",
		why);
	REQUIRE(!gpu_budget_keeps(&budget, why, sizeof(why)), "too much was taken for little");
	printf("       %s\n", why);
	gpu_memory_destroy(&memory);
	REQUIRE(gpu_budget_keeps(&budget, why, sizeof(why)), "given back: %s", why);
}

int main(void)
{
	char why[256] = "";
	struct nvml nvml;
	int n = agent_gpus(why, sizeof(why)), ret;

	if (n == 0) {
		printf("skipped: %s\n", why);
		return 77;
	}
	ret = nvml_open(&nvml, NVML_LIBRARY, why, sizeof(why));
	if (ret != 0)
		printf("       no NVML: %s\n", why);
	for (int gpu = 0; gpu < n; gpu++) {
		look(gpu, ret == 0 ? &nvml : NULL);
		try_budget(gpu);
	}
	printf("%s: %d GPUs\n", failures == 0 ? "ok" : "FAILED", n);
	return failures != 0;
}
