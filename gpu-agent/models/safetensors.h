/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parses the safetensors format: a little-endian u64 length, a JSON header of that length that
 * names each tensor's type, shape and bytes, then the bytes. Works on memory, and trusts nothing in
 * it.
 */
#ifndef MODELS_SAFETENSORS_H
#define MODELS_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#define SAFETENSORS_RANK_MAX 8
/* Bytes; the format's own limit. */
#define SAFETENSORS_HEADER_MAX 100000000

struct safetensors_tensor {
	const char *name;
	const char *dtype; /* as in the file: "F32", "U8" ... */
	uint32_t rank;
	uint64_t shape[SAFETENSORS_RANK_MAX];
	uint64_t elements;   /* product of the shape; 1 for rank 0 */
	const uint8_t *data; /* in the caller's memory, of any alignment */
	uint64_t size;       /* bytes */
};

struct safetensors;

/*
 * Parse <size> bytes, which must outlive the result. Every tensor of the result lies inside them,
 * none overlaps another, and each has exactly the bytes that its type and shape need. On failure
 * returns -EINVAL or -ENOMEM, with a sentence in <error> that names the tensor and the problem.
 */
int safetensors_parse(const void *bytes, size_t size, struct safetensors **result, char *error,
		      size_t error_size);
void safetensors_destroy(struct safetensors *file);

/* The tensor at <index>, in the order of their bytes; NULL past the last. */
const struct safetensors_tensor *safetensors_at(const struct safetensors *file, size_t index);
/* The tensor <name>; NULL if there is none. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name);
/* The value of <key> in __metadata__, or NULL. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);

#endif
