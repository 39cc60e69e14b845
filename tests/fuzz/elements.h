/* SPDX-License-Identifier: BSD-3-Clause */
/* Models of the stream fuzzers whose rows differ in length: of BYTES, alone and beside numbers. */
#ifndef FUZZ_ELEMENTS_H
#define FUZZ_ELEMENTS_H

#include "description.h"

static const struct model_description described_elements = {
	.version = "1",
	.batch = true,
	.n_inputs = 1,
	.n_outputs = 1,
	.input = {{.name = "a", .datatype = DATATYPE_BYTES, .rank = 2, .shape = {-1, 2}}},
	.output = {{.name = "c", .datatype = DATATYPE_BYTES, .rank = 2, .shape = {-1, 2}}},
};

static const struct model_description described_both = {
	.version = "1",
	.batch = true,
	.n_inputs = 2,
	.n_outputs = 1,
	.input = {{.name = "a", .datatype = DATATYPE_BYTES, .rank = 2, .shape = {-1, 1}},
		  {.name = "b", .datatype = DATATYPE_UINT16, .rank = 1, .shape = {-1}}},
	.output = {{.name = "c", .datatype = DATATYPE_UINT8, .rank = 2, .shape = {-1, -1}}},
};

#endif
