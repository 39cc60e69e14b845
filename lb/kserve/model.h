/* SPDX-License-Identifier: BSD-3-Clause */
/* A model: its description, and counters of its work. */
#ifndef LB_KSERVE_MODEL_H
#define LB_KSERVE_MODEL_H

#include "kserve/datatype.h"

#define KSERVE_VERSIONS_MAX 8
#define KSERVE_ANY_SIZE     (-1) /* of a dimension: any */

/* An input or output. Of a model that takes batches, without the batch's dimension. */
struct kserve_tensor {
	char name[KSERVE_NAME_MAX];
	enum kserve_datatype type;
	uint8_t dims; /* one less than KSERVE_DIMS_MAX, if the model takes batches */
	int64_t shape[KSERVE_DIMS_MAX];
};

struct kserve_count {
	uint64_t count, ns;
};

/* Since the load balancer started. */
struct kserve_counters {
	struct kserve_count success, fail;
	struct kserve_count queue; /* waiting for a worker */
	struct kserve_count input; /* moving it to the worker, and waiting there */
	struct kserve_count infer;
	struct kserve_count output;
	uint64_t inferences;     /* rows */
	uint64_t executions;     /* batches that the model ran */
	uint64_t last_inference; /* ms since 1970; 0: none */
};

struct kserve_model {
	char name[KSERVE_NAME_MAX];
	char version[KSERVE_VERSIONS_MAX][KSERVE_VERSION_MAX];
	char platform[KSERVE_NAME_MAX];
	uint8_t versions, inputs, outputs;
	bool ready;         /* some worker serves it */
	bool rows_differ;   /* it takes batches, and has inputs of BYTES: rows differ in length */
	bool rows_alone; /* it takes batches, but replies in which outputs lie behind BYTES can be
			    told apart one by one only */
	uint32_t max_batch; /* 0: it takes no batches */
	struct kserve_tensor input[KSERVE_TENSORS_MAX];
	struct kserve_tensor output[KSERVE_TENSORS_MAX];
	struct kserve_counters counters;
};

static inline const char *kserve_last_version(const struct kserve_model *model)
{
	return model->versions > 0 ? model->version[model->versions - 1] : "";
}

/* Its state in the repository's index, and why. */
static inline const char *kserve_state(const struct kserve_model *model)
{
	return model->ready ? "READY" : "UNAVAILABLE";
}

static inline const char *kserve_state_reason(const struct kserve_model *model)
{
	return model->ready ? "" : "no worker serves it";
}

#endif
