/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The filter of a capture: a classic BPF program, which libpcap made of an expression. It ends for
 * every packet, as it only jumps forward.
 */
#ifndef CAPTURE_FILTER_H
#define CAPTURE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capture_filter;

/*
 * Read <program>: the number of instructions, then each behind a comma as "code jt jf k", in
 * decimal. NULL with a sentence in <error>.
 */
struct capture_filter *capture_filter_create(const char *program, char *error, size_t size);
void capture_filter_destroy(struct capture_filter *filter);

/* True if a packet of <length> bytes, of which <n> are in memory, matches. On any thread. */
bool capture_filter_takes(const struct capture_filter *filter, const uint8_t *packet, uint32_t n,
			  uint32_t length);

#endif
