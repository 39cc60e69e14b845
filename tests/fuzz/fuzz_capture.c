/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as a capture's filter and a packet: up to the first zero a program, as it comes over the
 * control socket; the rest is a packet on a heap block of its exact size. Every program that is
 * accepted must come to an end and read nothing else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/capture_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\0', size);
	size_t n = end ? (size_t)(end - data) : size, rest = end ? size - n - 1 : 0;
	char *program = strndup((const char *)data, n), error[160] = "";
	struct capture_filter *filter = capture_filter_create(program, error, sizeof(error));
	uint8_t *packet = malloc(rest + !rest);

	if (!filter && error[0] == '\0')
		abort();
	if (end && rest > 0)
		memcpy(packet, end + 1, rest);
	for (size_t here = rest; filter && here > 0; here /= 2)
		capture_filter_takes(filter, packet + rest - here, (uint32_t)here, (uint32_t)rest);
	capture_filter_destroy(filter);
	free(packet);
	free(program);
	return 0;
}
