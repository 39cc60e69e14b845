/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The small messages of inference.GRPCInferenceService and grpc.health.v1.Health: requests that
 * name a model, read at once, and the answers of the load balancer itself; and what comes in front
 * of the bytes of a ModelInferResponse. Pure.
 */
#ifndef LB_GRPC_MESSAGE_H
#define LB_GRPC_MESSAGE_H

#include <stddef.h>

#include "kserve/answer.h"
#include "kserve/model.h"

#define GRPC_SMALL_MAX 512  /* bytes of a request that names a model */
#define GRPC_HEAD_MAX  4096 /* bytes that come in front of an answer's tensors */
#define GRPC_FIELD_MAX 8    /* bytes in front of one tensor */

/* ModelReadyRequest and its like; name is also the service of HealthCheckRequest, and the
 * repository of RepositoryIndexRequest, whose second field is <ready>. */
struct grpc_names {
	char name[KSERVE_NAME_MAX], version[KSERVE_VERSION_MAX];
	bool ready;
};

/* False: the bytes are no such message, or a name in it is too long. */
bool grpc_names_read(struct grpc_names *names, const uint8_t *bytes, uint32_t length);

/* Where messages are written to. */
struct grpc_out {
	uint8_t *at, *end;
	bool full; /* something did not fit, and was left out */
};

/* ServerLiveResponse, ServerReadyResponse, ModelReadyResponse */
void grpc_write_bool(struct grpc_out *out, bool value);
/* HealthCheckResponse */
enum grpc_health {
	GRPC_SERVING = 1,
	GRPC_NOT_SERVING,
	GRPC_SERVICE_UNKNOWN, /* Watch only */
};
void grpc_write_health(struct grpc_out *out, enum grpc_health health);
/* ServerMetadataResponse */
void grpc_write_server(struct grpc_out *out, const char *name, const char *version);
/* ModelMetadataResponse, with the batch's dimension in front of each shape */
void grpc_write_model(struct grpc_out *out, const struct kserve_model *model);
/* ModelConfigResponse, without it, as Triton has it */
void grpc_write_config(struct grpc_out *out, const struct kserve_model *model);

/* ModelStatisticsResponse and RepositoryIndexResponse: a call per model */
void grpc_write_statistics(struct grpc_out *out, const struct kserve_model *model);
void grpc_write_index(struct grpc_out *out, const struct kserve_model *model);

/*
 * The prefix of the message, and the fields of a ModelInferResponse but for the bytes of its
 * outputs; these follow as raw_output_contents, each behind what grpc_write_raw() writes. Returns
 * the bytes, 0 if the whole would be longer than a message can be. <at> has GRPC_HEAD_MAX bytes.
 * <streamed>: it is inside a ModelStreamInferResponse.
 */
uint32_t grpc_write_answer(const struct kserve_answer *answer, bool streamed, uint8_t *at);
/* ModelStreamInferResponse with an error, and its prefix; cut to <room>, which is 64 at least.
 * Returns its length. */
uint32_t grpc_write_stream_error(const char *error, uint8_t *at, uint32_t room);
/* Returns its length, at most GRPC_FIELD_MAX. */
uint32_t grpc_write_raw(uint64_t bytes, uint8_t *at);

#endif
