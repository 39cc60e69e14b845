/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text in front of a reply all of whose bytes pass as they are: the head of the response and the
 * JSON that describes outputs which are all binary. Replies of a model that have the same
 * length have the same, but for the date, so it is kept. A bounded number per lcore. Private to the
 * framing; pure.
 */
#ifndef LB_KSERVE_TOLD_H
#define LB_KSERVE_TOLD_H

#include "framing/kserve_room.h"

/* Finds or makes it for a reply of <length> bytes, in which <outputs> are; it may be given up by
 * the next call. NULL: it is too long for the head of a reply. */
const struct kserve_told *kserve_told_of(const struct kserve_asked *a, uint32_t length,
					 const struct kserve_answer *answer);
/* The one that is kept, if it is. */
const struct kserve_told *kserve_told_find(const struct kserve_asked *a, uint32_t length);

/* Writes it to <at>. Returns its length. */
uint32_t kserve_told_write(const struct kserve_told *told, const char *date, uint8_t *at);

#endif
