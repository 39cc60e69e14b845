/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads digits.bin, whose layout gpu-agent/models/digits/README.md gives, and draws from it. */
#ifndef CLIENT_DIGIT_FILE_H
#define CLIENT_DIGIT_FILE_H

#include <stdint.h>

#define DIGIT_SIDE   8
#define DIGIT_PIXELS (DIGIT_SIDE * DIGIT_SIDE)

struct digit {
	uint8_t pixels[DIGIT_PIXELS]; /* 0..16 */
	uint8_t label;
	uint8_t held_out; /* 1: the model was not trained with it */
};
_Static_assert(sizeof(struct digit) == 66, "one record of the file");

struct digit_file {
	uint32_t n;
	struct digit *digits;
};

/* -errno, said on stderr. */
int digit_file_read(struct digit_file *file, const char *path);
void digit_file_fini(struct digit_file *file);

/* One line of a picture: two characters per pixel. */
void digit_line_draw(const struct digit *digit, uint32_t line);

#endif
