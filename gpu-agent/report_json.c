/* SPDX-License-Identifier: BSD-3-Clause */
#include "report_json.h"

json_t *report_json(const struct agent_loop_stats *stats, const struct agent_buckets *buckets)
{
	json_t *batches = json_array();

	for (uint32_t i = 0; i < buckets->n; i++)
		json_array_append_new(
			batches, json_pack("{s:I, s:I, s:I}", "rows", (json_int_t)buckets->rows[i],
					   "batches", (json_int_t)stats->bucket_batches[i],
					   "run_us", (json_int_t)(stats->bucket_run_ns[i] / 1000)));
	return json_pack("{s:o}", "batches", batches);
}
