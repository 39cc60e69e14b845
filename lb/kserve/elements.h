/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The elements of a binary tensor of BYTES (u32 little-endian length, bytes), in the order in which
 * they come: do they have the lengths that they say, and are they as many as the tensor's shape
 * says? Only lengths are looked at, so the bytes of an element may be placed before they have come.
 */
#ifndef LB_KSERVE_ELEMENTS_H
#define LB_KSERVE_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed memory follows no tensor. */
struct kserve_elements {
	uint64_t left;  /* elements whose length is not known */
	uint64_t bytes; /* of the tensor that were not followed */
	uint32_t open;  /* of them, those of the element whose length is known */
	uint8_t got;    /* bytes of the next length, */
	uint8_t word[4];
	bool broken; /* in the end: there is a fault */
	bool behind; /* which is that bytes follow the last element */
};

/* Could a tensor of so many bytes have so many elements? */
static inline bool kserve_elements_fit(uint64_t elements, uint64_t bytes)
{
	return elements <= bytes / sizeof(uint32_t);
}

/* A tensor of <bytes> bytes begins. */
void kserve_elements_begin(struct kserve_elements *e, uint64_t elements, uint64_t bytes);

/*
 * The tensor's next bytes, of which <length> are at <bytes>. Returns how many of them are known to
 * be of its elements, <most> at most, also some that were not shown; at least one if <length> is
 * not 0. Stops after <budget> lengths, which is at least 1, and takes those that it read from it.
 * False in <broken>: so far there is no fault; a tensor that was followed to its end has none.
 */
uint64_t kserve_elements_follow(struct kserve_elements *e, const uint8_t *bytes, uint32_t length,
				uint64_t most, uint32_t *budget);

/* The fault, for an error's text; of one that is <broken>, or does not fit. */
const char *kserve_elements_fault(const struct kserve_elements *e);

#endif
