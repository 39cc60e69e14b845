/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the programs that are one test each: all that fails is told, and counted. */
#ifndef GPU_REQUIRE_H
#define GPU_REQUIRE_H

#include <stdio.h>

static unsigned int failures;

#define REQUIRE(condition, ...)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("FAILED line %d: ", __LINE__);                                      \
			printf(__VA_ARGS__);                                                       \
			putchar('\n');                                                             \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

#endif
