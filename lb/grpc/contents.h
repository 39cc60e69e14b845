/* SPDX-License-Identifier: BSD-3-Clause */
/* inference.InferTensorContents: numbers, and bytes, as the bytes of a tensor. For infer.c. */
#ifndef LB_GRPC_CONTENTS_H
#define LB_GRPC_CONTENTS_H

#include "grpc/infer.h"

/* Reads contents of input <i> of <to>, which is described. GRPC_INFER_MORE: all bytes were read and
 * nothing was written; GRPC_INFER_RUN; GRPC_INFER_REFUSED. */
enum grpc_infer_step grpc_contents_read(struct grpc_contents *c, struct kserve_infer *to, uint8_t i,
					const uint8_t **at, const uint8_t *end,
					struct kserve_run *run);

/* They ended: has the tensor its elements? */
enum grpc_infer_step grpc_contents_end(struct grpc_contents *c, struct kserve_infer *to, uint8_t i);

#endif
