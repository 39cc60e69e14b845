/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_nvml.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

TestSuite(gpu_nvml, .fini = fake_nvml_remove);

static char error[128];

Test(gpu_nvml, a_library_that_is_not_there_is_no_error_to_report)
{
	struct nvml nvml;

	cr_assert_eq(nvml_open(&nvml, "libno-such-thing.so.1", error, sizeof(error)), -ENOENT);
	cr_assert_str_empty(error);
}

Test(gpu_nvml, a_library_without_its_calls_is_named)
{
	struct nvml nvml;

	cr_assert_eq(nvml_open(&nvml, "libm.so.6", error, sizeof(error)), -EIO);
	cr_assert_str_eq(error, "libm.so.6 has no nvmlInit_v2");
}

Test(gpu_nvml, a_driver_that_is_not_loaded_is_said_in_the_library_s_words)
{
	struct nvml nvml;

	fake_nvml_write("broken\n");
	cr_assert_eq(nvml_open(&nvml, FAKE_NVML_LIBRARY, error, sizeof(error)), -EIO);
	cr_assert_str_eq(error, "nvmlInit: Driver Not Loaded (9)");
}

Test(gpu_nvml, gpus_are_found_by_bus_and_by_number)
{
	struct nvml nvml = fake_nvml_open("0000:17:00.0 1000 400 - - -\n"
					  "0000:2a:00.0 2000 500 1 - -\n");
	struct nvml_memory memory;
	nvml_device device, other;
	struct nvml_pci pci;
	unsigned int n, now, later;

	cr_assert_eq(nvml.count(&n), NVML_OK);
	cr_assert_eq(n, 2);
	cr_assert_eq(nvml.by_index(1, &device), NVML_OK);
	cr_assert_eq(nvml.by_bus("0000:2A:00.0", &other), NVML_OK);
	cr_assert_eq(device, other);
	cr_assert_eq(nvml.pci(device, &pci), NVML_OK);
	cr_assert_str_eq(pci.bus_id, "00000000:2A:00.0");
	cr_assert_eq(nvml.memory(device, &memory), NVML_OK);
	cr_assert_eq(memory.free, 500ull << 20);
	cr_assert_eq(nvml.mig_mode(device, &now, &later), NVML_OK);
	cr_assert_eq(now, 1);
	cr_assert_neq(nvml.by_bus("0000:99:00.0", &other), NVML_OK);
}
