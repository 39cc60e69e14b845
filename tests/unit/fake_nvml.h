/* SPDX-License-Identifier: BSD-3-Clause */
/* The description of a machine for the stand-in of libnvidia-ml; see fake_nvml.c. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu/nvml.h"

static char fake_nvml_path[64];

/* Let the stand-in describe a machine with these <lines>. */
static inline void fake_nvml_write(const char *lines)
{
	FILE *file;

	snprintf(fake_nvml_path, sizeof(fake_nvml_path), "/tmp/doorbell-nvml.%d", (int)getpid());
	file = fopen(fake_nvml_path, "w");
	cr_assert_not_null(file);
	fputs(lines, file);
	cr_assert_eq(fclose(file), 0);
	setenv("FAKE_NVML", fake_nvml_path, 1);
}

static inline void fake_nvml_remove(void)
{
	if (fake_nvml_path[0] != '\0')
		unlink(fake_nvml_path);
}

static inline struct nvml fake_nvml_open(const char *lines)
{
	struct nvml nvml;
	char error[128] = "";

	fake_nvml_write(lines);
	cr_assert_eq(nvml_open(&nvml, FAKE_NVML_LIBRARY, error, sizeof(error)), 0, "%s", error);
	return nvml;
}

#endif
