/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts the bytes of a stream in their place as they come, in order or not: shows a framing the
 * headers, and names for each byte of payload its request and offset. Bytes that no header explains
 * yet are held where they lie. Pure: copies nothing and allocates nothing.
 *
 * A framing reads headers in order, so at any time one extent at most is incomplete: the one that
 * ends at the framing's position. What comes behind it is held; all else has been placed.
 *
 * Belongs to the thread that owns the connection.
 */
#ifndef LB_PLACEMENT_H
#define LB_PLACEMENT_H

#include "framing/stream.h"

/* Bytes in a row that came and never came before. Lies in the owner's buffer, beside the bytes. */
struct placement_piece {
	struct placement_piece *next;
	uint64_t position; /* of the first byte, in the stream */
	const uint8_t *bytes;
	uint32_t length;
	/* of the first piece of a row without gaps: the last one. New bytes never lie inside a row,
	 * so their place is found row by row, of which a client can have few. */
	struct placement_piece *last;
};

struct placement;

/* The owner's side; <context> is placement_init()'s. */
struct placement_ops {
	/* May another header be read? False: no slot, or no budget. placement_run() goes on. */
	bool (*ready)(void *context);
	/* An action other than STREAM_EXTENT. The bytes of a STREAM_REQUEST are placed behind it.
	 */
	void (*act)(void *context, const struct stream_action *action);
	/* These bytes of <piece> belong at <offset> of the request. Each byte is named once. */
	void (*place)(void *context, uint32_t request, uint64_t offset,
		      const struct placement_piece *piece, const uint8_t *bytes, uint32_t length);
	/* Nothing of <piece> is held any more. The owner may still need its buffer. */
	void (*release)(void *context, struct placement_piece *piece);
};

struct placement {
	const struct stream_framing *framing;
	struct stream stream;
	struct placement_piece *held; /* in order of positions; none overlap */
	uint64_t held_bytes;          /* of all pieces held, placed parts included */
	/* the extent of which bytes may be missing; length 0: none */
	struct {
		uint64_t position, offset, length;
		uint32_t request;
	} open;
	const struct placement_ops *ops;
	void *context;
};

void placement_init(struct placement *p, const struct stream_framing *framing,
		    const struct placement_ops *ops, void *context);

/* Releases all that is held. */
void placement_fini(struct placement *p);

/* <piece> came. placement_run() must follow before the next one that is in order. */
void placement_take(struct placement *p, struct placement_piece *piece);

/* The same for a piece of which the framing has read all that it needs (it ends at its position or
 * before): it is placed, and stays the caller's. */
void placement_fill(struct placement *p, const struct placement_piece *piece);

/* The held piece that ends at <position>, if no header explains what comes there. NULL: none. */
struct placement_piece *placement_before(const struct placement *p, uint64_t position);
/* That piece has <length> more bytes: they came behind its others, in the owner's buffer too. */
void placement_extend(struct placement *p, struct placement_piece *piece, uint32_t length);

/*
 * All bytes before position <in_order> have come: reads headers as far as they go. True: it stopped
 * because the owner was not ready.
 */
bool placement_run(struct placement *p, const struct stream_settings *settings, uint64_t in_order);

#endif
