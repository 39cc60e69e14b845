/* SPDX-License-Identifier: BSD-3-Clause */
/* A request beside the description of its model: is it one that the model takes? */
#ifndef LB_KSERVE_MATCH_H
#define LB_KSERVE_MATCH_H

#include "kserve/infer.h"
#include "kserve/model.h"

/*
 * After KSERVE_INPUT: name, datatype and shape of input <i> are the model's. Returns the input's
 * place in the model, or -1: the request was refused. <rows> is the batch's size, 0 at first; all
 * inputs must have the same. A model that takes no batches has one row.
 */
int kserve_match_input(const struct kserve_model *model, struct kserve_infer *r, uint8_t i,
		       uint64_t *rows);

/* After kserve_infer_end(): all inputs of the model are there, and the outputs asked for are its.
 */
enum kserve_step kserve_match_end(const struct kserve_model *model, struct kserve_infer *r);

/*
 * The raw form, Inference-Header-Content-Length: 0: the body is <bytes> of the model's only input,
 * one row, and all outputs come back binary. Fills <r>, which was initialised, as if that had been
 * written in JSON. The input may have one free dimension; BYTES is refused.
 */
enum kserve_step kserve_match_raw(const struct kserve_model *model, struct kserve_infer *r,
				  uint64_t bytes);

/* The place of an output in the model; -1: it has none of this name. */
int kserve_match_output(const struct kserve_model *model, const char *name);

#endif
