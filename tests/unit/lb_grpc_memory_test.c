/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of sessions: pieces of many sizes, budgets, and all of it back. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "framing/grpc_memory.h"

#define SESSIONS 4
#define USUAL    16384
#define BUDGET   65536

static struct grpc_memory memory;

static void make(void)
{
	size_t bytes = grpc_memory_bytes(SESSIONS, USUAL);

	grpc_memory_init(&memory, SESSIONS, USUAL, BUDGET,
			 aligned_alloc(64, (bytes + 63) / 64 * 64));
}

static unsigned int free_pages(void)
{
	const struct grpc_pages *pages = &memory.free_pages;
	const void *const *next;
	unsigned int n = 0;

	/* The entry is the first member of a page: its first word points to the next. */
	for (next = (const void *const *)TAILQ_FIRST(pages); next != NULL; next = *next)
		n++;
	return n;
}

Test(lb_grpc_memory, a_session_has_no_more_than_its_budget, .init = make)
{
	struct grpc_account a = {&memory, 0}, b = {&memory, 0};
	void *large[3];

	for (unsigned int i = 0; i < 3; i++)
		cr_assert_not_null(large[i] = grpc_memory_take(GRPC_MEMORY_LARGE, &a));
	cr_expect_null(grpc_memory_take(GRPC_MEMORY_LARGE, &a));
	cr_expect_not_null(grpc_memory_take(GRPC_MEMORY_LARGE, &b), "another has its own");
	cr_expect_null(grpc_memory_take(5000, &b), "none is left");
	cr_expect_null(grpc_memory_take(GRPC_MEMORY_LARGE + 1, &a));
	grpc_memory_give(large[1], &a);
	cr_expect_eq(a.used, 2 * GRPC_MEMORY_LARGE);
	cr_expect_not_null(grpc_memory_take(4097, &b));
}

/* Two sessions of one client have no more together than a quarter of all. */
Test(lb_grpc_memory, a_client_has_no_more_than_a_quarter, .init = make)
{
	uint32_t used = 0;
	struct grpc_account a = {&memory, 0, &used}, b = {&memory, 0, &used}, other = {&memory, 0};
	void *piece = grpc_memory_take(GRPC_MEMORY_LARGE, &a);

	cr_assert_not_null(piece);
	while (grpc_memory_take(1024, &b) != NULL)
		;
	cr_expect_leq(used, grpc_memory_bytes(SESSIONS, USUAL) / 4);
	cr_expect_gt(used, grpc_memory_bytes(SESSIONS, USUAL) / 4 - 1024);
	cr_expect_null(grpc_memory_take(1024, &a));
	cr_expect_not_null(grpc_memory_take(1024, &other), "another client has its own");
	grpc_memory_give(piece, &a);
	cr_expect_not_null(grpc_memory_take(1024, &b));
	cr_expect_eq(used, a.used + b.used);
}

Test(lb_grpc_memory, pieces_do_not_overlap_and_all_come_back, .init = make)
{
	struct grpc_account a = {&memory, 0};
	unsigned int pages = free_pages(), n = 0;
	uint8_t *piece[512];
	size_t size[512];

	for (uint32_t seed = 7; n < 512; n++) {
		seed = seed * 1664525 + 1013904223;
		size[n] = 1 + (seed >> 16) % (n % 8 == 0 ? 4096 : 200);
		piece[n] = grpc_memory_take(size[n], &a);
		if (piece[n] == NULL)
			break;
		cr_assert_eq((uintptr_t)piece[n] % 64, 0);
		memset(piece[n], (int)n, size[n]);
	}
	cr_assert_gt(n, 100);
	for (unsigned int i = 0; i < n; i++) {
		for (size_t k = 0; k < size[i]; k++)
			cr_assert_eq(piece[i][k], (uint8_t)i);
		grpc_memory_give(piece[i], &a);
	}
	cr_expect_eq(a.used, 0);
	cr_expect_eq(free_pages(), pages, "pages are for any size again");
}

Test(lb_grpc_memory, a_piece_grows_with_its_bytes, .init = make)
{
	struct grpc_account a = {&memory, 0};
	char *at = grpc_memory_change(NULL, 5, &a);
	const uint64_t *zeroed = grpc_memory_take_zeroed(4, 8, &a);

	cr_assert_not_null(zeroed);
	cr_expect(zeroed[0] == 0 && zeroed[3] == 0);
	strcpy(at, "kept");
	cr_expect_eq(grpc_memory_change(at, 64, &a), at, "there was room");
	at = grpc_memory_change(at, 5000, &a);
	cr_assert_str_eq(at, "kept");
	cr_expect_eq(a.used, 64 + GRPC_MEMORY_LARGE);
	cr_expect_null(grpc_memory_change(at, BUDGET, &a));
	cr_expect_str_eq(at, "kept");
	cr_expect_null(grpc_memory_take_zeroed(SIZE_MAX / 2, 4, &a));
	grpc_memory_give(NULL, &a);
}
