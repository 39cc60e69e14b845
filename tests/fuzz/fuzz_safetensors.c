/* SPDX-License-Identifier: BSD-3-Clause */
/* Any file that parses has its tensors inside it, each of the size that it claims. */
#include "models/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct safetensors_tensor *tensor;
	struct safetensors *file;
	uint64_t total = 0;
	char error[256];

	if (safetensors_parse(bytes, size, &file, error, sizeof(error)) != 0)
		return 0;
	for (size_t i = 0; (tensor = safetensors_at(file, i)) != NULL; i++) {
		if (tensor->data < bytes || tensor->size > size ||
		    tensor->data + tensor->size > bytes + size ||
		    safetensors_find(file, tensor->name) != tensor)
			abort();
		total += tensor->size;
	}
	if (total > size)
		abort();
	safetensors_metadata(file, "input_scale");
	safetensors_destroy(file);
	return 0;
}
