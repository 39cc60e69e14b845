/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers of the load balancer itself: metadata, configuration and statistics of models, as KServe
 * and Triton have them. Each call appends to a buffer; whether all fitted is in out->full.
 */
#ifndef LB_KSERVE_DOCUMENTS_H
#define LB_KSERVE_DOCUMENTS_H

#include "json/write.h"
#include "kserve/model.h"

/* Bytes of any of a model's documents, at most. */
#define KSERVE_DOCUMENT_MAX 32768

/* GET /v2 */
void kserve_write_server(struct json_out *out, const char *name, const char *version);

/* GET /v2/health/live and ready: {"live":true} */
void kserve_write_health(struct json_out *out, const char *what, bool value);

/* GET /v2/models/M/ready */
void kserve_write_model_ready(struct json_out *out, const char *name, bool ready);

/* GET /v2/models/M, with the batch's dimension in front of each shape */
void kserve_write_model(struct json_out *out, const struct kserve_model *model);

/* GET /v2/models/M/config, without it, as Triton has it */
void kserve_write_config(struct json_out *out, const struct kserve_model *model);

/* GET /v2/models/M/stats, or of all models: begin, one call per model, end */
void kserve_write_stats_begin(struct json_out *out);
void kserve_write_stats(struct json_out *out, const struct kserve_model *model, bool first);
void kserve_write_stats_end(struct json_out *out);

/* POST /v2/repository/index: likewise */
void kserve_write_index_begin(struct json_out *out);
void kserve_write_index(struct json_out *out, const struct kserve_model *model, bool first);
void kserve_write_index_end(struct json_out *out);

#endif
