/* SPDX-License-Identifier: BSD-3-Clause */
#include "report_json.h"

static void report_known(json_t *object, const char *key, int64_t value)
{
	if (value >= 0)
		json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *report_gpu(const struct worker_gpu *gpu)
{
	json_t *object = json_object();

	report_known(object, "utilization", gpu->utilization);
	report_known(object, "memory_used", gpu->memory_used);
	report_known(object, "memory_total", gpu->memory_total);
	report_known(object, "temperature", gpu->temperature);
	report_known(object, "power_mw", gpu->power_mw);
	report_known(object, "ecc_corrected", gpu->ecc_corrected);
	report_known(object, "ecc_uncorrected", gpu->ecc_uncorrected);
	report_known(object, "xids", gpu->xids);
	if (gpu->notice[0] != '\0')
		json_object_set_new(object, "notice", json_string(gpu->notice));
	return object;
}

json_t *report_json(const struct agent_loop_stats *stats, const struct agent_buckets *buckets,
		    const struct worker_gpu *gpu)
{
	json_t *batches = json_array(), *report;

	for (uint32_t i = 0; i < buckets->n; i++)
		json_array_append_new(
			batches, json_pack("{s:I, s:I, s:I}", "rows", (json_int_t)buckets->rows[i],
					   "batches", (json_int_t)stats->bucket_batches[i],
					   "run_us", (json_int_t)(stats->bucket_run_ns[i] / 1000)));
	report = json_pack("{s:o}", "batches", batches);
	if (gpu != NULL)
		json_object_set_new(report, "gpu", report_gpu(gpu));
	return report;
}
