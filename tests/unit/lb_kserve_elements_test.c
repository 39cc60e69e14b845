/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of BYTES, followed however their bytes are cut. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "kserve/elements.h"

/*
 * Follows <n> bytes, of which <shown> are shown at a time and <most> may be named. The result: "",
 * or the fault. Each call makes progress, and names no byte behind the tensor.
 */
static const char *followed(const char *bytes, uint32_t n, uint64_t elements, uint32_t shown,
			    uint32_t most)
{
	struct kserve_elements e;
	uint64_t at = 0;

	kserve_elements_begin(&e, elements, n);
	while (at < n) {
		uint32_t length = shown < n - at ? shown : (uint32_t)(n - at), budget = 3;
		uint8_t *copy = malloc(length);
		uint64_t named;

		memcpy(copy, bytes + at, length);
		named = kserve_elements_follow(&e, copy, length, most, &budget);
		free(copy);
		if (e.broken)
			return kserve_elements_fault(&e);
		cr_assert(named > 0 && named <= most);
		at += named;
	}
	cr_assert(at == n);
	return kserve_elements_fit(elements, n) ? "" : kserve_elements_fault(&e);
}

#define THREE "\2\0\0\0ab\0\0\0\0\5\0\0\0abcde"

static const struct {
	const char *bytes;
	uint32_t n;
	uint64_t elements;
	const char *fault;
} rows[] = {
	{THREE, 19, 3, ""},
	{"", 0, 0, ""},
	{"\0\0\0\0", 4, 1, ""},
	{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20, 5, ""},
	{THREE, 18, 3, "an element ends behind the tensor"},
	{THREE, 13, 3, "an element ends behind the tensor"},
	{THREE, 12, 3, "an element ends behind the tensor"},
	{THREE, 10, 3, "an element ends behind the tensor"},
	{THREE, 19, 4, "an element ends behind the tensor"},
	{THREE, 19, 2, "bytes follow its last element"},
	{THREE "x", 20, 3, "bytes follow its last element"},
	{THREE, 19, 0, "bytes follow its last element"},
	{"", 0, 1, "an element ends behind the tensor"},
	{"\xff\xff\xff\xff", 4, 1, "an element ends behind the tensor"},
	{"\0\0\0\x80xyz", 7, 1, "an element ends behind the tensor"},
	{"\4\0\0\0xyz", 7, 1, "an element ends behind the tensor"},
	{"\0\0\0\0", 4, UINT64_MAX, "an element ends behind the tensor"},
};

Test(kserve_elements, lengths_are_followed_however_they_are_cut)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t shown = 1; shown < 21; shown++)
			for (uint32_t most = 1; most < 21; most++)
				cr_assert_str_eq(followed(rows[i].bytes, rows[i].n,
							  rows[i].elements, shown, most),
						 rows[i].fault, "row %u, cut in %u and %u", i,
						 shown, most);
}

/* An element's bytes are named when its length is known, before they come. */
Test(kserve_elements, bytes_of_an_element_need_not_be_shown)
{
	struct kserve_elements e;
	uint32_t budget = 10;

	kserve_elements_begin(&e, 2, 4 + 1000000 + 4);
	cr_assert(kserve_elements_follow(&e, (const uint8_t *)"\x40\x42\x0f\0", 4, 2000000,
					 &budget) == 1000004);
	cr_assert(kserve_elements_follow(&e, (const uint8_t *)"", 0, 2000000, &budget) == 0);
	cr_assert(!e.broken);
	cr_assert(kserve_elements_follow(&e, (const uint8_t *)"\0\0\0\0", 4, 4, &budget) == 4);
	cr_assert(!e.broken && budget == 8);
}

/* A call reads as many lengths as its budget says, whatever it is shown. */
Test(kserve_elements, the_budget_ends_a_call)
{
	static const uint8_t zeros[4096];
	struct kserve_elements e;
	uint32_t budget = 64;

	kserve_elements_begin(&e, 1024, sizeof(zeros));
	cr_assert(kserve_elements_follow(&e, zeros, sizeof(zeros), sizeof(zeros), &budget) == 256);
	cr_assert(budget == 0 && !e.broken);
}
