/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments that a kernel joins. A veth passes TCP segments of up to 64 KiB on as one frame where
 * its other end has segmentation offload, and GRO joins those that a NIC received. af_packet cuts
 * such frames off. AF_XDP gets whole segments: its program turns this off.
 *
 * Threads: any.
 */
#ifndef RUNTIME_JOINED_H
#define RUNTIME_JOINED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * True when frames of <interface> may be several segments joined; <fix>: the command against it.
 * The other end of a veth may be out of sight: then the answer is that it may.
 */
bool joined_segments(const char *interface, char *fix, size_t size);

#endif
