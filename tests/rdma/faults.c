/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "faults.h"

#define NS_PER_S 1000000000ull
#define ETHER    14

struct frame {
	uint64_t due;
	uint32_t length;
	uint8_t *bytes;
};

struct faults {
	struct faults_params params;
	struct faults_stats stats;
	uint64_t random;
	uint64_t busy_until; /* the switch sends until then */
	bool cut;
	/* by due time; first in, first out among equals */
	uint32_t first, n, size;
	struct frame *frame;
};

/* xorshift64* (Vigna 2016) */
static uint64_t dice(struct faults *f)
{
	f->random ^= f->random >> 12;
	f->random ^= f->random << 25;
	f->random ^= f->random >> 27;
	return f->random * 0x2545f4914f6cdd1dull;
}

static bool chance(struct faults *f, double probability)
{
	return (double)(dice(f) >> 11) / (double)(1ull << 53) < probability;
}

struct faults *faults_create(const struct faults_params *params)
{
	struct faults *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->params = *params;
	if (f->params.reorder_ns == 0)
		f->params.reorder_ns = FAULTS_REORDER_NS;
	/* Any seed will do that does not stay zero; neighbouring seeds must not resemble each
	 * other. */
	f->random = (params->seed + 1) * 0x9e3779b97f4a7c15ull | 1;
	for (unsigned int i = 0; i < 8; i++)
		dice(f);
	return f;
}

static void empty(struct faults *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		free(f->frame[f->first + i].bytes);
	f->first = f->n = 0;
}

void faults_destroy(struct faults *f)
{
	if (f == NULL)
		return;
	empty(f);
	free(f->frame);
	free(f);
}

/* Makes room for one more frame behind the last. */
static void make_room(struct faults *f)
{
	if (f->first + f->n < f->size)
		return;
	if (f->first > f->size / 2) {
		memmove(f->frame, f->frame + f->first, f->n * sizeof(*f->frame));
		f->first = 0;
		return;
	}
	f->size = f->size == 0 ? 64 : 2 * f->size;
	f->frame = realloc(f->frame, f->size * sizeof(*f->frame));
	if (f->frame == NULL)
		abort(); /* tests only: none could continue */
}

static struct frame *insert(struct faults *f, uint64_t due)
{
	struct frame *at;

	make_room(f);
	at = f->frame + f->first + f->n++;
	while (at > f->frame + f->first && at[-1].due > due) {
		at[0] = at[-1];
		at--;
	}
	at->due = due;
	return at;
}

/* Sets CE if the sender has set ECT (RFC 3168, 5). */
static bool mark(uint8_t *frame, uint32_t length)
{
	uint8_t *ip = frame + ETHER;
	uint32_t sum;

	if (length < ETHER + 20)
		return false;
	if (frame[12] == 0x08 && frame[13] == 0x00) {
		if ((ip[1] & 3) == 0)
			return false;
		/* The checksum follows the change (RFC 1624). */
		sum = (uint16_t) ~(ip[10] << 8 | ip[11]) + (3 - (ip[1] & 3));
		sum = ~((sum & 0xffff) + (sum >> 16));
		ip[10] = sum >> 8;
		ip[11] = sum;
		ip[1] |= 3;
		return true;
	}
	if (frame[12] == 0x86 && frame[13] == 0xdd && (ip[1] & 0x30) != 0) {
		ip[1] |= 0x30;
		return true;
	}
	return false;
}

/* Returns the bytes that wait in the switch. */
static uint64_t backlog(const struct faults *f, uint64_t now)
{
	if (f->busy_until <= now)
		return 0;
	return (uint64_t)((double)(f->busy_until - now) * (double)f->params.bytes_per_s / NS_PER_S);
}

/* Carries one copy of a frame through the switch and down the cable. */
static void carry(struct faults *f, const uint8_t *bytes, uint32_t length, uint64_t now)
{
	const struct faults_params *p = &f->params;
	uint64_t waiting = 0, due = now;
	struct frame *frame;

	if (p->bytes_per_s != 0) {
		waiting = backlog(f, now);
		if (p->queue_bytes != 0 && waiting >= p->queue_bytes) {
			f->stats.overflowed++;
			return;
		}
		if (waiting > f->stats.queue_max)
			f->stats.queue_max = waiting;
		f->busy_until = (f->busy_until > now ? f->busy_until : now) +
				length * NS_PER_S / p->bytes_per_s;
		due = f->busy_until;
	}
	due += p->delay_ns;
	if (chance(f, p->reorder)) {
		f->stats.reordered++;
		due += p->reorder_ns;
	}
	frame = insert(f, due);
	frame->length = length;
	frame->bytes = malloc(length);
	if (frame->bytes == NULL)
		abort();
	memcpy(frame->bytes, bytes, length);
	if (p->mark_bytes != 0 && waiting >= p->mark_bytes)
		f->stats.marked += mark(frame->bytes, length);
	if (chance(f, p->corrupt)) {
		f->stats.corrupted++;
		frame->bytes[dice(f) % length] ^= 1 << dice(f) % 8;
	}
}

void faults_put(struct faults *f, const uint8_t *frame, uint32_t length, uint64_t now)
{
	f->stats.in++;
	if (f->cut || length == 0 || chance(f, f->params.drop)) {
		f->stats.dropped++;
		return;
	}
	carry(f, frame, length, now);
	if (chance(f, f->params.duplicate)) {
		f->stats.duplicated++;
		carry(f, frame, length, now);
	}
}

uint32_t faults_take(struct faults *f, uint64_t now, uint8_t *frame, uint32_t size)
{
	struct frame *at = f->frame + f->first;
	uint32_t length;

	if (f->n == 0 || at->due > now)
		return 0;
	length = at->length < size ? at->length : size;
	memcpy(frame, at->bytes, length);
	free(at->bytes);
	f->first++;
	f->n--;
	f->stats.out++;
	return length;
}

uint64_t faults_deadline(const struct faults *f)
{
	return f->n == 0 ? UINT64_MAX : f->frame[f->first].due;
}

void faults_cut(struct faults *f, bool cut)
{
	f->cut = cut;
	if (!cut)
		return;
	f->stats.dropped += f->n;
	empty(f);
}

const struct faults_stats *faults_stats(const struct faults *f)
{
	return &f->stats;
}
