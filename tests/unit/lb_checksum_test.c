/* SPDX-License-Identifier: BSD-3-Clause */
/* The Internet checksum against RFC 1071 read literally: one 16-bit word after the other. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "packet/checksum.h"

#define BYTES 65535

static uint8_t bytes[BYTES + 64];

static uint16_t literal(const uint8_t *at, uint32_t length)
{
	uint32_t sum = 0;
	uint16_t word;

	for (; length > 0; at += 2, length -= length > 1 ? 2 : 1) {
		word = 0;
		memcpy(&word, at, length > 1 ? 2 : 1);
		sum += word;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static void expect_same(uint32_t offset, uint32_t length)
{
	uint16_t expected = literal(bytes + offset, length);

	cr_assert_eq(checksum_fold(checksum_add(bytes + offset, length)), expected,
		     "%u bytes at %u", length, offset);
	cr_assert_eq(checksum_fold(checksum_add_few(bytes + offset, length)), expected,
		     "%u bytes at %u", length, offset);
}

static void fill(unsigned int seed)
{
	srand(seed);
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = rand() >> 8;
}

Test(lb_checksum, sums_every_short_length_at_every_alignment)
{
	fill(1);
	for (uint32_t offset = 0; offset < 64; offset++)
		for (uint32_t length = 0; length < 300; length++)
			expect_same(offset, length);
}

Test(lb_checksum, sums_a_frame_of_every_length)
{
	fill(2);
	for (uint32_t length = 300; length < 9600; length++)
		expect_same(length % 64, length);
}

Test(lb_checksum, asks_for_one_line_with_each_that_it_sums_up_and_for_none_too_many)
{
	struct fetch wide = {bytes + 4096, bytes + 8192}, narrow = {bytes + 4096, bytes + 4097};

	fill(4);
	cr_expect_eq(checksum_fold(checksum_add_fetching(bytes + 3, 1032, &wide)),
		     literal(bytes + 3, 1032));
	cr_expect_eq(wide.at - bytes, 4096 + 1024);
	checksum_add_fetching(bytes, 1024, &narrow);
	cr_expect_eq(narrow.at - bytes, 4096 + FETCH_LINE);
	fetch_rest(&wide);
	cr_expect_eq(wide.at, wide.end);
}

Test(lb_checksum, loses_no_carry_in_the_longest_packet)
{
	memset(bytes, 0xff, sizeof(bytes));
	for (uint32_t length = BYTES - 70; length <= BYTES; length++)
		expect_same(1, length);
}

/* In ones' complement: 0 stays 0, and every other multiple of 65535 is 65535. */
Test(lb_checksum, folds_every_carry_into_sixteen_bits)
{
	static const uint64_t parts[] = {0, 1, 2, 0x7fff, 0x8000, 0xfffe, 0xffff};
	const unsigned int n = sizeof(parts) / sizeof(parts[0]);

	for (unsigned int i = 0; i < n * n * n * n; i++) {
		uint64_t sum = parts[i % n] | parts[i / n % n] << 16 | parts[i / n / n % n] << 32 |
			       parts[i / n / n / n] << 48;
		uint16_t expected = sum == 0 ? 0 : (sum - 1) % 0xffff + 1;

		cr_assert_eq(checksum_fold(sum), expected, "%#lx", sum);
	}
}

Test(lb_checksum, adds_parts_in_any_order)
{
	uint64_t sum;

	fill(3);
	sum = checksum_add(bytes + 1000, 1032) + checksum_add_few(bytes, 20) +
	      checksum_add(bytes + 20, 980);
	cr_expect_eq(checksum_fold(sum), literal(bytes, 2032));
}

Test(lb_checksum, sums_the_pseudo_header_of_both_families)
{
	/* 192.0.2.1 to 192.0.2.2, UDP, 12 bytes */
	static const uint8_t v4[] = {192, 0, 2, 1, 192, 0, 2, 2, 0, 17, 0, 12};
	uint8_t v6[40] = {[0] = 0x20, [15] = 1, [16] = 0xfe, [31] = 2, [35] = 12, [39] = 17};

	cr_expect_eq(checksum_fold(checksum_pseudo(v4, FLOW_IPV4, 17, 12)), literal(v4, 12));
	cr_expect_eq(checksum_fold(checksum_pseudo(v6, FLOW_IPV6, 17, 12)), literal(v6, 40));
}
