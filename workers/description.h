/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The description of a model: the tensors that lie in its requests and replies, in the order of
 * their bytes, without gaps. An agent makes it of what its model says and registers it with the
 * worker. Names of datatypes, and -1 for a free dimension, are those of KServe's protocol. Pure.
 */
#ifndef WORKERS_DESCRIPTION_H
#define WORKERS_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DESCRIPTION_TENSORS_MAX  16 /* of the inputs, and of the outputs */
#define DESCRIPTION_RANK_MAX     8
#define DESCRIPTION_NAME_MAX     64 /* with its NUL; so are the next two */
#define DESCRIPTION_VERSION_MAX  32
#define DESCRIPTION_PLATFORM_MAX 64
#define DESCRIPTION_FREE         (-1) /* a dimension that each request or reply chooses */

enum datatype {
	DATATYPE_BOOL,
	DATATYPE_UINT8,
	DATATYPE_UINT16,
	DATATYPE_UINT32,
	DATATYPE_UINT64,
	DATATYPE_INT8,
	DATATYPE_INT16,
	DATATYPE_INT32,
	DATATYPE_INT64,
	DATATYPE_FP16,
	DATATYPE_FP32,
	DATATYPE_FP64,
	DATATYPE_BF16,
	DATATYPE_BYTES, /* each element: its length as 32 bits, then its bytes */
	DATATYPES,
};

struct model_tensor {
	char name[DESCRIPTION_NAME_MAX]; /* printable ASCII without spaces */
	enum datatype datatype;
	unsigned int rank;
	int32_t shape[DESCRIPTION_RANK_MAX]; /* DESCRIPTION_FREE, or 1 and more */
};

struct model_description {
	char version[DESCRIPTION_VERSION_MAX];   /* letters, digits and ._- */
	char platform[DESCRIPTION_PLATFORM_MAX]; /* printable ASCII without spaces, or empty */
	/*
	 * The first dimension of every tensor is a batch. It is free in the shape, and 1 in a
	 * request of the ring: each row of a client's batch is a request of its own.
	 */
	bool batch;
	unsigned int n_inputs, n_outputs; /* 1..DESCRIPTION_TENSORS_MAX */
	struct model_tensor input[DESCRIPTION_TENSORS_MAX], output[DESCRIPTION_TENSORS_MAX];
};

/* KServe's name of a datatype, such as "FP32". */
const char *workers_datatype_name(enum datatype datatype);
/* The datatype of this name, or DATATYPES. */
enum datatype workers_datatype_find(const char *name);
/* Bytes of one element; of DATATYPE_BYTES the least. */
unsigned int workers_datatype_bytes(enum datatype datatype);

/*
 * True when every field is in range, no name comes twice on a side, and the shapes of the outputs
 * follow from the length of a reply. Else false, with a sentence in <error> that begins with the
 * field: "inputs[0].shape[1]: ...".
 */
bool workers_description_is_valid(const struct model_description *d, char *error,
				  size_t error_size);

/* Bytes of one request or one reply. */
struct description_bytes {
	uint64_t least; /* with every free dimension 0, and every element of BYTES empty */
	bool fixed;     /* it has these bytes always */
};

/* The bytes of the inputs, and of the outputs, of a valid description; of one row of a batch. */
struct description_bytes workers_description_request(const struct model_description *d);
struct description_bytes workers_description_reply(const struct model_description *d);
/* The same of one tensor; <batch> as in its description. */
struct description_bytes workers_tensor_bytes(const struct model_tensor *t, bool batch);

/*
 * Check a valid description against the sizes that come with it. False with a sentence in <error>
 * that begins with the size that disagrees. <reply_cut>: max_reply may be less than the model's.
 */
bool workers_description_fits(const struct model_description *d, uint32_t min_request,
			      uint32_t max_request, uint32_t max_reply, bool reply_cut, char *error,
			      size_t error_size);

/*
 * True when both have the same tensors. Version and platform may differ, as they do while a model
 * is replaced by its next version. Else false with a sentence in <error> that names the first
 * tensor and field that differ; <whose> says where <other> is from.
 */
bool workers_description_agrees(const struct model_description *d,
				const struct model_description *other, const char *whose,
				char *error, size_t error_size);

#define DESCRIPTION_SHAPE_TEXT (DESCRIPTION_RANK_MAX * 11 + 3)

/* Write "[-1,3,224,224]" into <text>, of DESCRIPTION_SHAPE_TEXT bytes, and return it. */
const char *workers_tensor_shape(const struct model_tensor *t, char *text);

#endif
