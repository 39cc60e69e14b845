/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which packets a capture takes: a program of the classic BPF, as libpcap makes of an expression.
 * It ends for every packet, as it only jumps forward.
 */
#ifndef CAPTURE_FILTER_H
#define CAPTURE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capture_filter;

/*
 * <program>: how many instructions, and each with a comma before it as "code jt jf k", in decimal.
 * NULL with a sentence in <error>.
 */
struct capture_filter *capture_filter_create(const char *program, char *error, size_t size);
void capture_filter_destroy(struct capture_filter *filter);

/* Is a packet of <length> bytes, of which <n> are here, to be taken? On any thread. */
bool capture_filter_takes(const struct capture_filter *filter, const uint8_t *packet, uint32_t n,
			  uint32_t length);

#endif
