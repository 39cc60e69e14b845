/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of a tensor, JSON to bytes; a part of the reader of infer requests (infer.h). */
#ifndef LB_KSERVE_INFER_DATA_H
#define LB_KSERVE_INFER_DATA_H

#include "kserve/infer.h"

/* The input's values begin: its description is complete. */
void kserve_data_begin(struct kserve_infer *r);

/* Reads values from <json>, which is the request's reader or that of values that were kept: up to
 * the end of their array (<ended>), the room of <run>, or <end>. */
enum kserve_step kserve_data_read(struct kserve_infer *r, struct json_reader *json, const char **at,
				  const char *end, struct kserve_run *run, bool *ended);

#endif
