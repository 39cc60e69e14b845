/* SPDX-License-Identifier: BSD-3-Clause */
/* The report that an agent sends with each renewal: batches by size, and its GPU. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "report_json.h"

static void expect(const struct worker_gpu *gpu, const char *text)
{
	static const struct agent_loop_stats stats = {.bucket_batches = {40, 5},
						      .bucket_run_ns = {32000999, 8000000}};
	static const struct agent_buckets buckets = {.n = 2, .rows = {1, 8}};
	json_t *report = report_json(&stats, &buckets, gpu);
	char *got = json_dumps(report, JSON_COMPACT);

	cr_expect_str_eq(got, text);
	free(got);
	json_decref(report);
}

#define BATCHES                                                                                    \
	"{\"batches\":[{\"rows\":1,\"batches\":40,\"run_us\":32000},"                              \
	"{\"rows\":8,\"batches\":5,\"run_us\":8000}]"

Test(agent_report, batches_have_their_size_and_time)
{
	expect(NULL, BATCHES "}");
}

Test(agent_report, a_gpu_tells_what_its_driver_tells)
{
	struct worker_gpu gpu = {.utilization = 93,
				 .memory_used = -1,
				 .memory_total = 80,
				 .temperature = 71,
				 .power_mw = -1,
				 .ecc_corrected = 0,
				 .ecc_uncorrected = -1,
				 .xids = 2};

	expect(&gpu, BATCHES ",\"gpu\":{\"utilization\":93,\"memory_total\":80,\"temperature\":71,"
			     "\"ecc_corrected\":0,\"xids\":2}}");
	snprintf(gpu.notice, sizeof(gpu.notice), "Xid 31");
	gpu.utilization = gpu.memory_total = gpu.temperature = gpu.ecc_corrected = -1;
	expect(&gpu, BATCHES ",\"gpu\":{\"xids\":2,\"notice\":\"Xid 31\"}}");
}
