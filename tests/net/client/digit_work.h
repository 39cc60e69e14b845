/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Digits as work for load.h or another sender of requests: pictures in turn, and the answers that a
 * model must give, known from running the served plug-in here.
 */
#ifndef CLIENT_DIGIT_WORK_H
#define CLIENT_DIGIT_WORK_H

#include "digit_file.h"
#include "load.h"

#define DIGITS_REQUEST_SIZE (8 + DIGIT_PIXELS)
#define DIGITS_NO_ANSWER    255

struct digits {
	struct digit_file file;
	struct digit_reply *expected; /* NULL: not known */
	uint8_t *answers; /* per image: the class of the last right reply, or DIGITS_NO_ANSWER */
};

/* -errno, said on stderr. */
int digits_open(struct digits *digits, const char *data);
/* Learns the answers of <model>, a plug-in with <weights>; without it, only the form of replies is
 * checked. -errno, said on stderr. */
int digits_expect(struct digits *digits, const char *model, const char *weights);
void digits_close(struct digits *digits);

/* Request i has image i modulo their number. */
struct load_work digits_work(struct digits *digits);

/* Returns the share of the answered held-out images whose class is <right>. */
double digits_accuracy(const struct digits *digits, uint32_t *right, uint32_t *answered);

#endif
