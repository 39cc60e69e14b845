/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/placement.h"

#include <stddef.h>

#define PLACEMENT_ACTIONS STREAM_ACTIONS_MIN /* the owner is asked before each request */

void placement_init(struct placement *p, const struct stream_framing *framing,
		    const struct placement_ops *ops, void *context)
{
	*p = (struct placement){.framing = framing, .ops = ops, .context = context};
}

static void placement_release_first(struct placement *p)
{
	struct placement_piece *piece = p->held;

	p->held = piece->next;
	if (piece->last != piece)
		p->held->last = piece->last;
	p->held_bytes -= piece->length;
	p->ops->release(p->context, piece);
}

void placement_fini(struct placement *p)
{
	while (p->held != NULL)
		placement_release_first(p);
	if (p->framing->release != NULL)
		p->framing->release(&p->stream);
}

/* Places what of <piece> lies in the open extent. */
static void placement_place(struct placement *p, const struct placement_piece *piece)
{
	uint64_t from = piece->position, to = piece->position + piece->length;
	uint64_t end = p->open.position + p->open.length;

	if (from < p->open.position)
		from = p->open.position;
	if (to > end)
		to = end;
	if (from < to)
		p->ops->place(p->context, p->open.request,
			      p->open.offset + (from - p->open.position), piece,
			      piece->bytes + (from - piece->position), (uint32_t)(to - from));
}

static uint64_t placement_end(const struct placement_piece *piece)
{
	return piece->position + piece->length;
}

/* The first piece of the last row that begins before <position>, or NULL. */
static struct placement_piece *placement_row(const struct placement *p, uint64_t position)
{
	struct placement_piece *row = NULL, *next = p->held;

	while (next != NULL && next->position < position) {
		row = next;
		next = row->last->next;
	}
	return row;
}

/* Makes one row of <row>, to which the last piece was just added, and the next, if they touch. */
static void placement_join(struct placement_piece *row)
{
	struct placement_piece *next = row->last->next;

	if (next != NULL && placement_end(row->last) == next->position)
		row->last = next->last;
}

static void placement_insert(struct placement *p, struct placement_piece *piece)
{
	struct placement_piece *row = placement_row(p, piece->position);
	struct placement_piece **at = row == NULL ? &p->held : &row->last->next;

	piece->next = *at;
	*at = piece;
	piece->last = piece;
	placement_join(piece);
	if (row != NULL)
		placement_join(row);
	p->held_bytes += piece->length;
}

void placement_fill(struct placement *p, const struct placement_piece *piece)
{
	placement_place(p, piece);
}

void placement_take(struct placement *p, struct placement_piece *piece)
{
	placement_place(p, piece);
	if (placement_end(piece) <= p->stream.position)
		p->ops->release(p->context, piece);
	else
		placement_insert(p, piece);
}

struct placement_piece *placement_before(const struct placement *p, uint64_t position)
{
	const struct placement_piece *row;

	if (position < p->stream.position)
		return NULL;
	row = placement_row(p, position);
	return row != NULL && placement_end(row->last) == position ? row->last : NULL;
}

void placement_extend(struct placement *p, struct placement_piece *piece, uint32_t length)
{
	piece->length += length;
	p->held_bytes += length;
	placement_join(placement_row(p, placement_end(piece)));
}

/* <length> bytes of <request> from <offset> on are those of the stream from <position> on. */
static void placement_extent(struct placement *p, uint32_t request, uint64_t position,
			     uint64_t offset, uint64_t length)
{
	p->open.position = position;
	p->open.offset = offset;
	p->open.length = length;
	p->open.request = request;
	for (const struct placement_piece *piece = p->held;
	     piece != NULL && piece->position < p->open.position + p->open.length;
	     piece = piece->next)
		placement_place(p, piece);
}

static inline void placement_act(struct placement *p, const struct stream_action *action)
{
	if (action->kind == STREAM_EXTENT)
		return placement_extent(p, action->request, action->extent.position,
					action->extent.offset, action->extent.length);
	p->ops->act(p->context, action);
	if (action->kind == STREAM_REQUEST)
		placement_extent(p, action->request, action->whole.position, 0,
				 action->whole.begin.size);
}

/* The bytes of the header that is next, in one piece as far as it goes. */
static void placement_read(struct placement *p, const struct stream_settings *settings)
{
	const struct placement_piece *piece = p->held;
	uint64_t skip = p->stream.position - piece->position;
	struct stream_action action[PLACEMENT_ACTIONS];
	unsigned int n;

	if (p->framing->choose != NULL) {
		p->framing = p->framing->choose(&p->stream, piece->bytes + skip,
						piece->length - (uint32_t)skip);
		return;
	}
	n = p->framing->read(&p->stream, settings, piece->bytes + skip,
			     piece->length - (uint32_t)skip, action, PLACEMENT_ACTIONS);

	for (unsigned int i = 0; i < n; i++)
		placement_act(p, &action[i]);
}

/* Releases pieces that end before the framing's position. */
static void placement_trim(struct placement *p)
{
	while (p->held != NULL && p->held->position + p->held->length <= p->stream.position)
		placement_release_first(p);
}

bool placement_run(struct placement *p, const struct stream_settings *settings, uint64_t in_order)
{
	placement_trim(p);
	while (p->stream.position < in_order) {
		if (!p->ops->ready(p->context))
			return true;
		placement_read(p, settings);
		placement_trim(p);
	}
	return false;
}
