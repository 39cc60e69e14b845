/* SPDX-License-Identifier: BSD-3-Clause */
/* A network that loses, delays, reorders, copies and corrupts packets, by a seed; TUN devices. */
#ifndef TESTS_TCP_LOSSY_H
#define TESTS_TCP_LOSSY_H

#include <stdbool.h>
#include <stdint.h>

#define LOSSY_PACKET_MAX 9216

struct lossy_params {
	double lose, reorder, copy, corrupt; /* per cent */
	uint32_t delay_us;                   /* one way */
	uint32_t jitter_us;                  /* of what is reordered */
	uint64_t seed;
	uint32_t front; /* bytes at the front of each packet that are never corrupted */
};

/* A packet on its way to device <to>. */
struct lossy_packet {
	uint64_t at_us, order;
	int to;
	uint32_t length;
	uint8_t bytes[LOSSY_PACKET_MAX];
};

/* The n-th packet of a direction has the same fate in all runs with the same seed. */
struct lossy {
	struct lossy_params params;
	uint64_t sent[2]; /* packets, by direction */
	uint64_t random;  /* of the packet at hand */
	uint64_t order;
	struct lossy_fates {
		uint64_t packets, lost, late, copied, corrupt;
	} fates;
	struct lossy_packet **heap; /* the next one first */
	uint32_t n, room;
};

uint64_t lossy_now_us(void);

void lossy_init(struct lossy *l, const struct lossy_params *params);

/* Puts a packet on its way in <direction>, 0 or 1: it comes out once, twice, changed or never. */
void lossy_send(struct lossy *l, uint64_t now_us, unsigned int direction, int to,
		const uint8_t *bytes, uint32_t length);

/* The same for a packet that is only delayed. */
void lossy_pass(struct lossy *l, uint64_t now_us, int to, const uint8_t *bytes, uint32_t length);

/* The packet that arrives next if it is there by <now_us>, or NULL. The caller frees it. */
struct lossy_packet *lossy_arrived(struct lossy *l, uint64_t now_us);

/* When the next one arrives; UINT64_MAX: none is on its way. */
uint64_t lossy_due_us(const struct lossy *l);

/* The TUN device <name> of network namespace <ns> ("" for this one): its descriptor, or exits. */
int lossy_open_tun(const char *ns, const char *name);

#endif
