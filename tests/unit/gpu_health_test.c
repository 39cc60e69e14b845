/* SPDX-License-Identifier: BSD-3-Clause */
/* A GPU's figures and errors, as the stand-in of NVIDIA's library tells them. */
#include "fake_nvml.h"

#include <criterion/criterion.h>
#include <string.h>

#include "gpu/health.h"

#define GPU "0000:17:00.0 1000 400 - - -\n"

TestSuite(gpu_health, .fini = fake_nvml_remove);

static char error[256];
static struct worker_gpu gpu;

static struct gpu_health *watch(const char *lines)
{
	struct gpu_health *h;

	fake_nvml_write(lines);
	h = gpu_health_open(FAKE_NVML_LIBRARY, "0000:17:00.0", error, sizeof(error));
	cr_assert_not_null(h, "%s", error);
	return h;
}

Test(gpu_health, a_missing_library_and_a_missing_gpu_are_said)
{
	cr_assert_null(gpu_health_open("libno-such-thing.so.1", "0000:17:00.0", error,
				       sizeof(error)));
	cr_expect_str_eq(error, "there is no libno-such-thing.so.1");
	fake_nvml_write(GPU);
	cr_assert_null(gpu_health_open(FAKE_NVML_LIBRARY, "0000:99:00.0", error, sizeof(error)));
	cr_expect_str_eq(error, "0000:99:00.0: some error");
}

Test(gpu_health, figures_are_those_of_the_driver)
{
	struct gpu_health *h = watch(GPU "health 93 71 700500 3 0 0\n");

	cr_expect(gpu_health_read(h, &gpu));
	cr_expect_eq(gpu.utilization, 93);
	cr_expect_eq(gpu.memory_used, 600ll << 20);
	cr_expect_eq(gpu.memory_total, 1000ll << 20);
	cr_expect_eq(gpu.temperature, 71);
	cr_expect_eq(gpu.power_mw, 700500);
	cr_expect_eq(gpu.ecc_corrected, 3);
	cr_expect_eq(gpu.ecc_uncorrected, 0);
	cr_expect_eq(gpu.xids, 0);
	cr_expect_str_empty(gpu.notice);
	gpu_health_close(h);
}

Test(gpu_health, figures_that_a_driver_does_not_tell_are_unknown)
{
	struct gpu_health *h = watch(GPU);

	cr_expect(gpu_health_read(h, &gpu));
	cr_expect_eq(gpu.utilization, -1);
	cr_expect_eq(gpu.temperature, -1);
	cr_expect_eq(gpu.ecc_uncorrected, -1);
	cr_expect_eq(gpu.xids, -1);
	cr_expect_str_empty(gpu.notice);
	gpu_health_close(h);
}

/* The load balancer would refuse it, and the renewal with it. */
Test(gpu_health, a_temperature_that_cannot_be_is_not_told)
{
	struct gpu_health *h = watch(GPU "health 93 4294967295 700500 3 0 0\n");

	cr_expect(gpu_health_read(h, &gpu));
	cr_expect_eq(gpu.temperature, -1);
	cr_expect_eq(gpu.power_mw, 700500);
	gpu_health_close(h);
}

Test(gpu_health, heat_is_said_while_it_slows_the_gpu_down)
{
	struct gpu_health *h = watch(GPU "health 93 71 1 0 0 4\n");

	cr_expect(gpu_health_read(h, &gpu));
	cr_expect_str_empty(gpu.notice, "a limit of power is no heat");
	fake_nvml_write(GPU "health 93 95 1 0 0 40\n");
	cr_expect(gpu_health_read(h, &gpu));
	cr_expect_str_eq(gpu.notice, "slowed down by heat");
	fake_nvml_write(GPU "health 93 96 1 0 0 40\n");
	cr_expect(gpu_health_read(h, &gpu));
	cr_expect_str_eq(gpu.notice, "slowed down by heat", "no new one for each degree");
	fake_nvml_write(GPU "health 93 60 1 0 0 0\n");
	cr_expect(gpu_health_read(h, &gpu));
	cr_expect_str_empty(gpu.notice);
	gpu_health_close(h);
}

Test(gpu_health, memory_errors_count_from_the_beginning_of_the_agent)
{
	struct gpu_health *h = watch(GPU "health 0 30 1 0 2 0\n");

	cr_expect(gpu_health_read(h, &gpu));
	cr_expect_str_empty(gpu.notice, "they were there before");
	fake_nvml_write(GPU "health 0 30 1 9 3 0\n");
	cr_expect(gpu_health_read(h, &gpu));
	cr_expect_str_eq(gpu.notice,
			 "memory errors that ECC could not correct: 1 since the agent began");
	gpu_health_close(h);
}

Test(gpu_health, an_xid_is_kept_and_one_that_ends_the_gpu_s_service_is_told)
{
	struct gpu_health *h = watch(GPU "health 0 30 1 0 0 0\n");

	fake_nvml_write(GPU "health 0 30 1 0 0 0\nxid 31\n");
	cr_expect(gpu_health_read(h, &gpu), "an error of an application");
	cr_expect_str_eq(gpu.notice, "Xid 31");
	cr_expect_eq(gpu.xids, 1);
	cr_expect(gpu_health_read(h, &gpu));
	cr_expect_str_eq(gpu.notice, "Xid 31", "it is not forgotten");
	fake_nvml_write(GPU "health 0 30 1 0 0 0\nxid 31\nxid 79\nxid 45\n");
	cr_expect_not(gpu_health_read(h, &gpu));
	cr_expect_str_eq(gpu.notice, "Xid 79: the GPU has fallen off the bus");
	cr_expect_eq(gpu.xids, 3);
	gpu_health_close(h);
}

/* The load balancer refuses a renewal with such figures, and the worker would be lost for them. */
Test(gpu_health, figures_that_cannot_be_are_unknown)
{
	struct gpu_health *h =
		watch(GPU "health 4294967295 4294967295 4294967295 18446744073709551615 0 0\n");

	cr_expect(gpu_health_read(h, &gpu));
	cr_expect_eq(gpu.utilization, -1);
	cr_expect_eq(gpu.temperature, -1);
	cr_expect_eq(gpu.power_mw, -1);
	cr_expect_eq(gpu.ecc_corrected, -1);
	gpu_health_close(h);
}

Test(gpu_health, a_driver_with_ever_more_events_does_not_keep_the_thread, .timeout = 20)
{
	struct gpu_health *h = watch(GPU "health 0 30 1 0 0 0\nendless 43\n");

	cr_expect(gpu_health_read(h, &gpu));
	cr_expect_str_eq(gpu.notice, "Xid 43");
	cr_expect_gt(gpu.xids, 0);
	gpu_health_close(h);
}
