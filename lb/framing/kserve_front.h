/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text in front of a reply all of whose bytes pass as they are: by HTTP the head of the
 * response and the JSON that describes outputs which are all binary; by gRPC the message up to its
 * tensor. Replies of a model that have the same length have the same, but for the date, so it is
 * kept. A bounded number per lcore. Private to the framing; pure.
 */
#ifndef LB_KSERVE_FRONT_H
#define LB_KSERVE_FRONT_H

#include "framing/kserve_room.h"

/* The one of <table>, which has KSERVE_FRONT, for a reply of <length> bytes. NULL: there is none. */
const struct kserve_front *kserve_front_find(const struct kserve_front *table,
					   const struct kserve_asked *a, uint32_t length);
/* Makes it of two texts, one behind the other; the next call may give it up. <date>: where in them
 * the date is. NULL: they are too long for the head of a reply. */
const struct kserve_front *kserve_front_make(struct kserve_front *table, const struct kserve_asked *a,
					   uint32_t length, const void *first, uint32_t n_first,
					   const void *second, uint32_t n_second, uint32_t date);
/* The text of HTTP for a reply that <answer> describes. NULL: as above. */
const struct kserve_front *kserve_front_http(const struct kserve_asked *a, uint32_t length,
					   const struct kserve_answer *answer);

/* Writes a text of HTTP to <at>. Returns its length. */
uint32_t kserve_front_write(const struct kserve_front *front, const char *date, uint8_t *at);

#endif
