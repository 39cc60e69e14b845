/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of a capture file, as draft-ietf-opsawg-pcapng describes them: one section, one interface
 * (Ethernet, times in ns), packets, statistics. Each call writes one block and returns its length,
 * 0 if it does not fit. Pure.
 */
#ifndef LB_PCAPNG_H
#define LB_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

#include "observe/capture_ring.h"

struct pcapng_interface {
	const char *name, *description;
	const char *filter; /* the expression; NULL: none */
	const uint8_t *mac;
	uint32_t snaplen;
};

struct pcapng_statistics {
	uint64_t start_ns, end_ns;
	uint64_t received; /* all packets seen */
	uint64_t accepted; /* packets that matched the filter */
	uint64_t dropped;  /* packets that matched, and are missing in the file */
};

/* Bytes that a packet's block takes beyond its data, at most. */
#define PCAPNG_PACKET_OVERHEAD 64

size_t pcapng_section(uint8_t *buf, size_t size, const char *program);
size_t pcapng_interface(uint8_t *buf, size_t size, const struct pcapng_interface *interface);
size_t pcapng_packet(uint8_t *buf, size_t size, const struct capture_packet *packet);
size_t pcapng_statistics(uint8_t *buf, size_t size, const struct pcapng_statistics *statistics);

#endif
