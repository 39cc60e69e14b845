/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of requests that are larger than a packet, from their connection until they are
 * written: a part for each range, which holds the packet that it came in, or a copy of a few bytes.
 */
#include <zlib.h>

#include <isa-l/crc.h>

#include "edge/edge_private.h"

/* Extents of fewer bytes that follow each other are copied into one part. */
#define LARGE_SMALL 256

/* Its packet is held already. */
static struct edge_part *large_add_part(struct edge *e, struct edge_large *l, struct rte_mbuf *m,
					const uint8_t *bytes, uint32_t length, uint32_t offset)
{
	struct edge_part *part = e->free_part;

	if (part == NULL)
		return NULL;
	e->free_part = STAILQ_NEXT(part, next);
	e->n_parts++;
	*part = (struct edge_part){.m = m, .bytes = bytes, .length = length, .offset = offset};
	STAILQ_INSERT_TAIL(&l->parts, part, next);
	l->copied = NULL;
	l->busy->unwritten += length;
	return part;
}

/* CRC-32 of the part as if the request had only zeros in front of it and nothing but zeros behind:
 * the request's CRC is all of them, combined by exclusive or. */
static uint32_t large_crc(const struct edge_request *r, const struct edge_part *part)
{
	uint32_t crc = crc32_gzip_refl(0, part->bytes, part->length);

	return crc32_combine(crc, 0, r->size - part->offset - part->length);
}

static struct edge_part *large_take(struct edge_busy *b, struct edge_request *r, struct rte_mbuf *m,
				    uint64_t offset, const uint8_t *bytes, uint32_t length)
{
	struct edge_part *part =
		large_add_part(b->edge, r->large, m, bytes, length, (uint32_t)offset);

	if (part == NULL)
		return NULL;
	if (r->large->has_crc)
		r->large->crc ^= large_crc(r, part);
	r->placed += length;
	edge_large_touch(b->edge, r->large);
	return part;
}

/* Copies the range behind the one before it. False: that one is not there, or has no room. */
static bool large_add(struct edge_busy *b, struct edge_request *r, uint64_t offset,
		      const uint8_t *bytes, uint32_t length)
{
	struct edge_large *l = r->large;
	struct edge_part *last = l->copied;
	struct edge_part added = {.bytes = bytes, .length = length, .offset = (uint32_t)offset};

	if (last == NULL || last->offset + last->length != offset ||
	    last->length + length > b->edge->gather_max)
		return false;
	memcpy(rte_pktmbuf_append(last->m, length), bytes, length);
	last->length += length;
	l->busy->unwritten += length;
	r->placed += length;
	if (l->has_crc)
		l->crc ^= large_crc(r, &added);
	b->edge->lc->stats.payload_copies++;
	edge_large_touch(b->edge, l);
	return true;
}

/*
 * Of extents of a few bytes, such as small chunks, a packet has many, which become one part; but
 * the end of a DATA frame stands alone, also where two packets have some of it.
 */
static bool large_joins(const struct placement *p, struct edge_large *l)
{
	if (l->extent != (uint32_t)p->open.position) {
		bool small = p->open.length < LARGE_SMALL;

		l->joins = small && l->small;
		l->small = small;
		l->extent = (uint32_t)p->open.position;
	}
	return l->joins;
}

bool edge_large_place(struct edge_busy *b, struct edge_request *r, uint64_t offset,
		      struct edge_piece *p, const uint8_t *bytes, uint32_t length)
{
	/* Nothing behind the piece's last bytes needs its reference to the packet. */
	bool ends = bytes + length == p->piece.bytes + p->piece.length;

	if (large_joins(&b->placement, r->large))
		return edge_large_produce(b, r, offset, bytes, length);
	if (large_take(b, r, p->m, offset, bytes, length) == NULL)
		return false;
	if (ends) {
		p->m = NULL;
		return true;
	}
	rte_mbuf_refcnt_update(p->m, 1);
	edge_hold(b, 1);
	return true;
}

bool edge_large_produce(struct edge_busy *b, struct edge_request *r, uint64_t offset,
			const uint8_t *bytes, uint32_t length)
{
	struct lcore *lc = b->edge->lc;

	if (large_add(b, r, offset, bytes, length))
		return true;
	while (length > 0) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(lc->packets);
		uint32_t n = RTE_MIN(length, b->edge->gather_max);
		struct edge_part *part;

		if (m == NULL)
			return false;
		memcpy(rte_pktmbuf_append(m, n), bytes, n);
		part = large_take(b, r, m, offset, rte_pktmbuf_mtod(m, uint8_t *), n);
		if (part == NULL) {
			rte_pktmbuf_free(m);
			return false;
		}
		edge_hold(b, 1);
		r->large->copied = part;
		lc->stats.payload_copies++;
		offset += n;
		bytes += n;
		length -= n;
	}
	return true;
}

void edge_large_named(struct edge_busy *b, struct edge_request *r, uint64_t size)
{
	/* The CRC has zeros up to the size that the request might have had. As many zeros as the
	 * polynomial's period are none, so more of them make fewer. */
	if (r->large->has_crc && size < r->size)
		r->large->crc =
			crc32_combine(r->large->crc, 0, (z_off_t)(UINT32_MAX - (r->size - size)));
	r->size = size;
	edge_large_touch(b->edge, r->large);
}
