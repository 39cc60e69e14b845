/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "kserve/datatype.h"

static const struct {
	const char *name;
	uint8_t size;
} datatypes[] = {
	[KSERVE_NO_TYPE] = {"", 0},      [KSERVE_BOOL] = {"BOOL", 1},
	[KSERVE_UINT8] = {"UINT8", 1},   [KSERVE_UINT16] = {"UINT16", 2},
	[KSERVE_UINT32] = {"UINT32", 4}, [KSERVE_UINT64] = {"UINT64", 8},
	[KSERVE_INT8] = {"INT8", 1},     [KSERVE_INT16] = {"INT16", 2},
	[KSERVE_INT32] = {"INT32", 4},   [KSERVE_INT64] = {"INT64", 8},
	[KSERVE_FP16] = {"FP16", 2},     [KSERVE_FP32] = {"FP32", 4},
	[KSERVE_FP64] = {"FP64", 8},     [KSERVE_BF16] = {"BF16", 2},
	[KSERVE_BYTES] = {"BYTES", 0},
};

enum kserve_datatype kserve_datatype_of(const char *name, uint32_t length)
{
	for (int type = KSERVE_BOOL; type <= KSERVE_BYTES; type++) {
		if (strlen(datatypes[type].name) == length &&
		    memcmp(datatypes[type].name, name, length) == 0)
			return (enum kserve_datatype)type;
	}
	return KSERVE_NO_TYPE;
}

const char *kserve_datatype_name(enum kserve_datatype type)
{
	return datatypes[type].name;
}

uint32_t kserve_datatype_size(enum kserve_datatype type)
{
	return datatypes[type].size;
}

bool kserve_datatype_has_json(enum kserve_datatype type)
{
	return type != KSERVE_FP16 && type != KSERVE_BF16;
}
