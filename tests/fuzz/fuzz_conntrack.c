/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as operations: the first four say which table and where its clock starts, every five after
 * that are one operation on the flow table and on a plain model of it, which must agree.
 */
#include <stdio.h>

#include "../unit/conntrack_model.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	fixture_eal();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model model;
	uint32_t start;

	if (size < sizeof(start))
		return 0;
	memcpy(&start, data, sizeof(start));
	model_init(&model, start % CONNTRACK_TABLES, start);
	for (size_t at = sizeof(start); at + MODEL_OP_SIZE <= size; at += MODEL_OP_SIZE) {
		const char *wrong = model_step(&model, data + at);

		if (wrong != NULL) {
			fprintf(stderr, "operation at byte %zu: %s\n", at, wrong);
			abort();
		}
	}
	model_fini(&model);
	return 0;
}
