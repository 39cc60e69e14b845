/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/payload.h"

static uint8_t pattern[PAYLOAD_MAX];

void payload_init(void)
{
	for (uint32_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = i * 7 + 3;
}

void payload_write(uint8_t *to, uint32_t length, uint64_t number)
{
	memcpy(to, &number, sizeof(number));
	memcpy(to + sizeof(number), pattern, length - sizeof(number));
}

bool payload_is(const uint8_t *at, uint32_t length, uint64_t number)
{
	return memcmp(at, &number, sizeof(number)) == 0 &&
	       memcmp(at + sizeof(number), pattern, length - sizeof(number)) == 0;
}
