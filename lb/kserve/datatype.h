/* SPDX-License-Identifier: BSD-3-Clause */
/* The datatypes of KServe's tensors. */
#ifndef LB_KSERVE_DATATYPE_H
#define LB_KSERVE_DATATYPE_H

#include <stdbool.h>
#include <stdint.h>

#define KSERVE_NAME_MAX    64 /* of models and tensors, with the 0 at its end */
#define KSERVE_VERSION_MAX 16 /* likewise */
#define KSERVE_ID_MAX      128
#define KSERVE_DIMS_MAX    8
#define KSERVE_TENSORS_MAX 16 /* inputs, or outputs */

enum kserve_datatype {
	KSERVE_NO_TYPE,
	KSERVE_BOOL,
	KSERVE_UINT8,
	KSERVE_UINT16,
	KSERVE_UINT32,
	KSERVE_UINT64,
	KSERVE_INT8,
	KSERVE_INT16,
	KSERVE_INT32,
	KSERVE_INT64,
	KSERVE_FP16,
	KSERVE_FP32,
	KSERVE_FP64,
	KSERVE_BF16,
	KSERVE_BYTES,
};

/* KSERVE_NO_TYPE: there is none of this name. */
enum kserve_datatype kserve_datatype_of(const char *name, uint32_t length);

const char *kserve_datatype_name(enum kserve_datatype type);

/* Bytes of an element; 0: it says so itself (BYTES). */
uint32_t kserve_datatype_size(enum kserve_datatype type);

/* False: its values are written in binary only. */
bool kserve_datatype_has_json(enum kserve_datatype type);

#endif
