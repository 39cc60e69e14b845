/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of requests, as framings of `kserve` tell them: of each request, once. */
#ifndef FUZZ_TOLD_H
#define FUZZ_TOLD_H

#include <stdlib.h>

#include "framing/kserve_room.h"

/* A request is told of; <told>: which were, by number. */
static inline void told_note(bool *told, const struct kserve_told *how)
{
	if (told[how->request] || how->status > 505 || how->id_length > KSERVE_ID_MAX)
		abort();
	told[how->request] = true;
}

/* The connection ends: then each request was told of. */
static inline void told_expect_all(const bool *told, const struct stream *s)
{
	kserve_room_lost(s);
	for (uint32_t i = 0; i < s->requests; i++)
		if (!told[i])
			abort();
}

#endif
