/* SPDX-License-Identifier: BSD-3-Clause */
#include "digit_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX (1u << 24)

struct digit_header {
	char magic[8];
	uint32_t version;
	uint32_t count;
	uint32_t pixels;
	uint32_t classes;
};

static const char *header_problem(const struct digit_header *header)
{
	if (memcmp(header->magic, "DBDIGITS", sizeof(header->magic)) != 0)
		return "is not a file of digits";
	if (header->version != 1)
		return "has a version that is not 1";
	if (header->pixels != DIGIT_PIXELS || header->count == 0 || header->count > DIGITS_MAX)
		return "has no images of 64 pixels";
	return NULL;
}

int digit_file_read(struct digit_file *file, const char *path)
{
	struct digit_header header;
	const char *problem = NULL;
	FILE *stream = fopen(path, "rbe");

	memset(file, 0, sizeof(*file));
	if (stream == NULL) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -errno;
	}
	if (fread(&header, sizeof(header), 1, stream) != 1)
		problem = "is too short";
	else
		problem = header_problem(&header);
	if (problem == NULL) {
		file->n = header.count;
		file->digits = calloc(header.count, sizeof(*file->digits));
		if (file->digits == NULL ||
		    fread(file->digits, sizeof(*file->digits), file->n, stream) != file->n)
			problem = "ends before its last image";
	}
	fclose(stream);
	if (problem == NULL)
		return 0;
	fprintf(stderr, "%s %s\n", path, problem);
	digit_file_fini(file);
	return -EINVAL;
}

void digit_file_fini(struct digit_file *file)
{
	free(file->digits);
}

void digit_line_draw(const struct digit *digit, uint32_t line)
{
	static const char shades[] = " .:-=+*#%@";

	for (uint32_t x = 0; x < DIGIT_SIDE; x++) {
		uint8_t pixel = digit->pixels[line * DIGIT_SIDE + x];
		char shade = shades[(pixel < 16 ? pixel : 16) * (sizeof(shades) - 2) / 16];

		putchar(shade);
		putchar(shade);
	}
}
