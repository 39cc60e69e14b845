/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "framing/placement.h"
#include "packet/notice.h"
#include "packet/request.h"

#define STREAM_MAX   4096
#define REQUESTS_MAX 64
#define PIECES_MAX   64

struct got {
	uint8_t bytes[STREAM_MAX], placed[STREAM_MAX];
	uint64_t size, n;
	bool begun, ended, refused;
};

static const struct stream_settings settings = {.max_request = 300};
static struct placement placement;
static struct got got[REQUESTS_MAX];
static unsigned int n_requests, released, credits;
static bool closed;
static uint8_t stream[STREAM_MAX];
static uint32_t stream_length_of;

static bool test_ready(void *context)
{
	return credits > 0;
}

static void test_act(void *context, const struct stream_action *a)
{
	struct got *g = &got[a->request];

	switch (a->kind) {
	case STREAM_REQUEST:
	case STREAM_BEGIN:
		cr_assert_not(g->begun);
		g->begun = true;
		g->ended = a->kind == STREAM_REQUEST;
		g->size = g->ended ? a->whole.begin.size : a->begin.size;
		n_requests++;
		credits--;
		break;
	case STREAM_END:
		cr_assert_eq(a->size, g->size);
		g->ended = true;
		break;
	case STREAM_REFUSE:
		g->refused = true;
		n_requests++;
		break;
	case STREAM_CLOSE:
		closed = true;
		break;
	}
}

static void test_place(void *context, uint32_t request, uint64_t offset,
		       const struct placement_piece *piece, const uint8_t *bytes, uint32_t length)
{
	struct got *g = &got[request];

	cr_assert(g->begun);
	cr_assert_leq(offset + length, g->size);
	cr_assert(bytes >= piece->bytes && bytes + length <= piece->bytes + piece->length);
	for (uint32_t i = 0; i < length; i++) {
		cr_assert_eq(g->placed[offset + i], 0, "a byte is placed twice");
		g->placed[offset + i] = 1;
	}
	memcpy(g->bytes + offset, bytes, length);
	g->n += length;
}

static void test_release(void *context, struct placement_piece *piece)
{
	released++;
}

static const struct placement_ops ops = {test_ready, test_act, test_place, test_release};

static void test_begin(const struct stream_framing *framing)
{
	memset(got, 0, sizeof(got));
	n_requests = released = 0;
	credits = REQUESTS_MAX;
	closed = false;
	placement_init(&placement, framing, &ops, NULL);
}

/* Adds a request of <size> bytes in framing `length`. */
static void test_add(uint32_t size)
{
	uint8_t head[4] = {size & 0xff, size >> 8};

	memcpy(stream + stream_length_of, head, 4);
	stream_length_of += 4;
	for (uint32_t i = 0; i < size; i++)
		stream[stream_length_of++] = (uint8_t)(rand() >> 8);
}

/* Segments [cut[i], cut[i + 1]) come in this order; the TCP core says what is in order. */
static void test_come(const uint32_t *cut, const unsigned int *order, unsigned int n,
		      struct placement_piece *piece)
{
	bool came[PIECES_MAX] = {false};
	unsigned int in_order = 0;

	for (unsigned int k = 0; k < n; k++) {
		unsigned int i = order[k];

		piece[i] = (struct placement_piece){.position = cut[i],
						    .bytes = stream + cut[i],
						    .length = cut[i + 1] - cut[i]};
		placement_take(&placement, &piece[i]);
		came[i] = true;
		while (in_order < n && came[in_order])
			in_order++;
		placement_run(&placement, &settings, cut[in_order]);
	}
}

static void test_check(unsigned int n, const uint32_t *size)
{
	uint32_t at = 0;

	cr_assert_eq(n_requests, n);
	for (unsigned int i = 0; i < n; i++) {
		at += 4;
		if (size[i] <= settings.max_request && size[i] > 0) {
			cr_assert(got[i].ended);
			cr_assert_eq(got[i].n, size[i]);
			cr_assert_eq(memcmp(got[i].bytes, stream + at, size[i]), 0);
		} else {
			cr_assert(got[i].refused);
			cr_assert_eq(got[i].n, 0);
		}
		at += size[i];
	}
	cr_assert_null(placement.held);
	cr_assert_eq(placement.held_bytes, 0);
}

Test(placement, every_order_of_six_segments_with_every_kind_of_border)
{
	/* Borders in headers, at the end of one request, in the middle of others; 0 and too much.
	 */
	static const uint32_t size[] = {10, 1, 200, 0, 301, 50};
	static const uint32_t cuts[][7] = {
		{0, 2, 14, 15, 100, 224, 586},   {0, 14, 19, 223, 227, 300, 586},
		{0, 1, 3, 17, 18, 20, 586},      {0, 100, 222, 226, 530, 535, 586},
		{0, 19, 23, 223, 532, 536, 586},
	};

	stream_length_of = 0;
	for (unsigned int i = 0; i < 6; i++)
		test_add(size[i]);
	cr_assert_eq(stream_length_of, 586);
	for (unsigned int c = 0; c < 5; c++) {
		for (unsigned int number = 0; number < 720; number++) {
			struct placement_piece piece[6];
			unsigned int order[6], place[6] = {0, 1, 2, 3, 4, 5}, rest = number;

			for (unsigned int i = 6, k; i > 0; i--, rest /= i + 1) {
				k = rest % i;
				order[6 - i] = place[k];
				memmove(place + k, place + k + 1, (i - k - 1) * sizeof(place[0]));
			}
			test_begin(&stream_length);
			test_come(cuts[c], order, 6, piece);
			test_check(6, size);
			cr_assert_eq(released, 6);
		}
	}
}

Test(placement, any_cuts_in_any_order)
{
	srand(1);
	for (unsigned int round = 0; round < 20000; round++) {
		uint32_t size[8], cut[PIECES_MAX + 1] = {0};
		struct placement_piece piece[PIECES_MAX];
		unsigned int order[PIECES_MAX], n, requests = 1 + rand() % 8;

		stream_length_of = 0;
		for (unsigned int i = 0; i < requests; i++) {
			size[i] = rand() % 4 == 0 ? rand() % 320 : rand() % 12;
			test_add(size[i]);
		}
		for (n = 0; cut[n] < stream_length_of && n < PIECES_MAX - 1; n++)
			cut[n + 1] = cut[n] + 1 + rand() % (round % 2 == 0 ? 8 : 200);
		if (n == PIECES_MAX - 1 && cut[n] < stream_length_of)
			n++;
		cut[n] = stream_length_of;
		for (unsigned int i = 0; i < n; i++) {
			unsigned int k = rand() % (i + 1);

			order[i] = order[k];
			order[k] = i;
		}
		test_begin(&stream_length);
		test_come(cut, order, n, piece);
		test_check(requests, size);
		cr_assert_eq(released, n);
	}
}

Test(placement, payload_is_placed_before_what_is_in_front_of_it_came)
{
	struct placement_piece piece[3];
	static const uint32_t cut[] = {0, 4, 104, 204};

	stream_length_of = 0;
	test_add(200);
	test_begin(&stream_length);
	test_come(cut, (unsigned int[]){0}, 1, piece);
	piece[2] = (struct placement_piece){.position = 104, .bytes = stream + 104, .length = 100};
	placement_take(&placement, &piece[2]);
	cr_expect_eq(got[0].n, 100);
	cr_expect_eq(released, 2, "nothing of it is held");
	placement_fini(&placement);
}

Test(placement, it_stops_for_want_of_a_credit_and_goes_on)
{
	struct placement_piece piece[1];
	static const uint32_t cut[] = {0, 28}, size[] = {3, 3, 3, 3};

	stream_length_of = 0;
	for (unsigned int i = 0; i < 4; i++)
		test_add(3);
	test_begin(&stream_length);
	credits = 2;
	test_come(cut, (unsigned int[]){0}, 1, piece);
	cr_expect_eq(n_requests, 2);
	cr_expect_eq(released, 0);
	cr_expect(placement_run(&placement, &settings, 28));
	credits = 10;
	cr_expect_not(placement_run(&placement, &settings, 28));
	test_check(4, size);
	cr_expect_eq(released, 1);
}

/* A client may send byte by byte in any order: the place of the next one is found row by row. */
Test(placement, pieces_without_gaps_are_one_row)
{
	static const uint32_t cut[] = {2, 5, 6, 9, 10, 24};
	struct placement_piece piece[5];
	unsigned int rows = 0, order[5], place[5], rest;

	stream_length_of = 0;
	test_add(20);
	for (unsigned int number = 0; number < 120; number++) {
		rest = number;
		for (unsigned int i = 0; i < 5; i++)
			place[i] = i;
		for (unsigned int i = 5, k; i > 0; i--) {
			k = rest % i;
			rest /= i;
			order[5 - i] = place[k];
			memmove(place + k, place + k + 1, (i - k - 1) * sizeof(place[0]));
		}
		test_begin(&stream_length);
		for (unsigned int i = 0; i < 5; i++) {
			unsigned int k = order[i];

			piece[k] = (struct placement_piece){.position = cut[k],
							    .bytes = stream + cut[k],
							    .length = cut[k + 1] - cut[k]};
			placement_take(&placement, &piece[k]);
		}
		cr_assert_eq(placement.held, &piece[0]);
		cr_assert_eq(piece[0].last, &piece[4]);
		cr_assert_null(piece[4].next);
		placement_fini(&placement);
	}
	/* One that grows closes a gap. */
	test_begin(&stream_length);
	for (unsigned int k = 0; k < 5; k += 2) {
		piece[k] = (struct placement_piece){.position = cut[k],
						    .bytes = stream + cut[k],
						    .length = cut[k + 1] - cut[k]};
		placement_take(&placement, &piece[k]);
	}
	cr_expect_eq(placement_before(&placement, 9), &piece[2]);
	placement_extend(&placement, &piece[2], 1);
	for (const struct placement_piece *row = placement.held; row != NULL; row = row->last->next)
		rows++;
	cr_expect_eq(rows, 2);
	cr_expect_eq(piece[2].last, &piece[4]);
	cr_expect_eq(placement_before(&placement, 24), &piece[4]);
	cr_expect_null(placement_before(&placement, 10));
	placement_fini(&placement);
}

Test(placement, what_is_held_is_released_at_the_end)
{
	struct placement_piece piece[3];
	static const uint32_t cut[] = {0, 2, 5, 24};

	stream_length_of = 0;
	test_add(20);
	test_begin(&stream_length);
	test_come(cut, (unsigned int[]){2, 1}, 2, piece);
	cr_expect_eq(placement.held_bytes, 22);
	cr_expect_eq(n_requests, 0);
	placement_fini(&placement);
	cr_expect_eq(released, 2);
}

Test(placement, nothing_is_held_after_a_close)
{
	struct placement_piece piece[2];
	uint8_t bad[] = "\xdb\x44\x42\x52 and what follows";

	memcpy(stream, bad, sizeof(bad));
	test_begin(&stream_tagged);
	test_come((uint32_t[]){0, 10, sizeof(bad)}, (unsigned int[]){1, 0}, 2, piece);
	cr_expect(closed);
	cr_expect_eq(released, 2);
	cr_expect_null(placement.held);
}
