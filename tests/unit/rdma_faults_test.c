/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of a bad link that other tests rely on: its rates, its repeatability, its switch. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"

#define FRAMES 100000
#define LENGTH 100

static struct faults *faults(struct faults_params params)
{
	struct faults *f = faults_create(&params);

	cr_assert(f);
	return f;
}

static void put_number(struct faults *f, uint32_t number, uint64_t now)
{
	uint8_t frame[LENGTH] = {0};

	memcpy(frame + 40, &number, sizeof(number));
	faults_put(f, frame, sizeof(frame), now);
}

/* The number in the next frame, UINT32_MAX when there is none. */
static uint32_t take_number(struct faults *f, uint64_t now)
{
	uint8_t frame[LENGTH];
	uint32_t number;

	if (faults_take(f, now, frame, sizeof(frame)) == 0)
		return UINT32_MAX;
	memcpy(&number, frame + 40, sizeof(number));
	return number;
}

static uint64_t drain(struct faults *f)
{
	uint8_t frame[LENGTH];
	uint64_t n = 0;

	while (faults_take(f, UINT64_MAX, frame, sizeof(frame)) > 0)
		n++;
	return n;
}

Test(rdma_faults, passes_everything_in_order_and_at_once_when_the_link_is_good)
{
	struct faults *f = faults((struct faults_params){.seed = 1});

	for (uint32_t i = 0; i < 1000; i++)
		put_number(f, i, 5);
	for (uint32_t i = 0; i < 1000; i++)
		cr_assert_eq(take_number(f, 5), i);
	cr_expect_eq(faults_deadline(f), UINT64_MAX);
	faults_destroy(f);
}

/* Five standard deviations. */
static void expect_rate(uint64_t count, double p, const char *what)
{
	double mean = FRAMES * p, deviation = 5 * sqrt(FRAMES * p * (1 - p));

	cr_expect(count > mean - deviation && count < mean + deviation, "%s: %lu, expected %.0f",
		  what, (unsigned long)count, mean);
}

Test(rdma_faults, happen_as_often_as_asked_for)
{
	struct faults_params p = {
		.drop = 0.1, .duplicate = 0.02, .reorder = 0.05, .corrupt = 0.001, .seed = 7};
	struct faults *f = faults(p);
	const struct faults_stats *s = faults_stats(f);

	for (uint32_t i = 0; i < FRAMES; i++)
		put_number(f, i, i);
	cr_expect_eq(s->in, FRAMES);
	expect_rate(s->dropped, 0.1, "dropped");
	expect_rate(s->duplicated, 0.9 * 0.02, "duplicated");
	expect_rate(s->reordered, 0.9 * 1.02 * 0.05, "reordered");
	expect_rate(s->corrupted, 0.9 * 1.02 * 0.001, "corrupted");
	cr_expect_eq(drain(f), FRAMES - s->dropped + s->duplicated);
	cr_expect_eq(s->out, FRAMES - s->dropped + s->duplicated);
	faults_destroy(f);
}

/* Returns a sum over which frames come out and when. */
static uint64_t fate(uint64_t seed)
{
	struct faults_params p = {.drop = 0.1,
				  .duplicate = 0.1,
				  .reorder = 0.1,
				  .corrupt = 0.1,
				  .delay_ns = 10,
				  .seed = seed};
	struct faults *f = faults(p);
	uint8_t frame[LENGTH];
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 1000; i++)
		put_number(f, i, i);
	while (faults_deadline(f) != UINT64_MAX) {
		sum = sum * 31 + faults_deadline(f);
		faults_take(f, UINT64_MAX, frame, sizeof(frame));
		for (unsigned int i = 0; i < LENGTH; i++)
			sum = sum * 31 + frame[i];
	}
	faults_destroy(f);
	return sum;
}

Test(rdma_faults, repeat_with_the_same_seed_and_only_then)
{
	cr_expect_eq(fate(1), fate(1));
	cr_expect_neq(fate(1), fate(2));
	cr_expect_neq(fate(0), fate(1));
}

Test(rdma_faults, delay_every_frame)
{
	struct faults *f = faults((struct faults_params){.delay_ns = 1000});

	put_number(f, 1, 50);
	cr_expect_eq(faults_deadline(f), 1050);
	cr_expect_eq(take_number(f, 1049), UINT32_MAX);
	cr_expect_eq(take_number(f, 1050), 1);
	faults_destroy(f);
}

Test(rdma_faults, let_others_overtake_a_reordered_frame)
{
	struct faults *f = faults((struct faults_params){.reorder = 0.2, .seed = 3});
	uint32_t overtaken = 0, previous = 0, number;

	for (uint32_t i = 0; i < 1000; i++)
		put_number(f, i, i * 1000);
	while ((number = take_number(f, UINT64_MAX)) != UINT32_MAX) {
		overtaken += number < previous;
		previous = number;
	}
	cr_expect_gt(overtaken, 50);
	cr_expect_eq(faults_stats(f)->out, 1000);
	faults_destroy(f);
}

Test(rdma_faults, corrupt_exactly_one_bit)
{
	struct faults *f = faults((struct faults_params){.corrupt = 1, .seed = 4});
	uint8_t in[LENGTH] = {0}, out[LENGTH];

	for (unsigned int i = 0; i < 1000; i++) {
		unsigned int bits = 0;

		faults_put(f, in, LENGTH, 0);
		cr_assert_eq(faults_take(f, 0, out, sizeof(out)), LENGTH);
		for (unsigned int k = 0; k < LENGTH; k++)
			bits += __builtin_popcount(out[k]);
		cr_assert_eq(bits, 1);
	}
	faults_destroy(f);
}

Test(rdma_faults, lose_everything_while_the_cable_is_cut)
{
	struct faults *f = faults((struct faults_params){.delay_ns = 10});

	put_number(f, 1, 0);
	faults_cut(f, true);
	put_number(f, 2, 1);
	cr_expect_eq(faults_deadline(f), UINT64_MAX, "what was under way is lost too");
	faults_cut(f, false);
	put_number(f, 3, 2);
	faults_cut(f, false);
	cr_expect_eq(take_number(f, 12), 3);
	cr_expect_eq(faults_stats(f)->dropped, 2);
	faults_destroy(f);
}

/* 1000 frames of 100 bytes at once into a switch of 1 MB/s: 100 us each. */
Test(rdma_faults, queue_in_a_switch_that_is_slower_than_what_comes)
{
	struct faults *f = faults((struct faults_params){
		.bytes_per_s = 1000000, .delay_ns = 7, .queue_bytes = 5000, .seed = 1});

	for (uint32_t i = 0; i < 1000; i++)
		put_number(f, i, 0);
	cr_expect_eq(faults_stats(f)->overflowed, 950);
	cr_expect_eq(faults_stats(f)->queue_max, 4900);
	for (uint32_t i = 0; i < 50; i++) {
		cr_expect_eq(faults_deadline(f), (i + 1) * 100000 + 7);
		cr_expect_eq(take_number(f, UINT64_MAX), i);
	}
	faults_destroy(f);
}

static uint16_t sum16(const uint8_t *bytes, unsigned int n)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < n; i += 2)
		sum += bytes[i] << 8 | bytes[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* An IPv4 header with this TOS and a right checksum, as the second frame of a busy switch. */
static uint8_t tos_after(uint8_t tos, uint64_t mark_bytes)
{
	struct faults *f = faults(
		(struct faults_params){.bytes_per_s = 1000, .mark_bytes = mark_bytes, .seed = 1});
	uint8_t frame[LENGTH] = {[12] = 0x08, [14] = 0x45, [15] = tos, [23] = 17, [26] = 10};
	uint16_t sum = ~sum16(frame + 14, 20);

	frame[24] = sum >> 8;
	frame[25] = sum;
	faults_put(f, frame, LENGTH, 0);
	faults_put(f, frame, LENGTH, 0);
	faults_take(f, UINT64_MAX, frame, sizeof(frame));
	cr_expect_eq(frame[15], tos, "nothing waited for the first");
	faults_take(f, UINT64_MAX, frame, sizeof(frame));
	cr_expect_eq(sum16(frame + 14, 20), 0xffff, "TOS %02x: checksum", tos);
	faults_destroy(f);
	return frame[15];
}

Test(rdma_faults, mark_who_waits_behind_enough_bytes_and_knows_ecn)
{
	cr_expect_eq(tos_after(0x02, 100), 0x03);
	cr_expect_eq(tos_after(0x69, 100), 0x6b);
	cr_expect_eq(tos_after(0x03, 100), 0x03);
	cr_expect_eq(tos_after(0x68, 100), 0x68, "not ECN-capable");
	cr_expect_eq(tos_after(0x02, 101), 0x02, "too little waits");
}

Test(rdma_faults, mark_ipv6_too)
{
	struct faults *f =
		faults((struct faults_params){.bytes_per_s = 1000, .mark_bytes = 1, .seed = 1});
	uint8_t frame[LENGTH] = {[12] = 0x86, [13] = 0xdd, [14] = 0x60, [15] = 0x20};

	faults_put(f, frame, LENGTH, 0);
	faults_put(f, frame, LENGTH, 0);
	faults_take(f, UINT64_MAX, frame, sizeof(frame));
	faults_take(f, UINT64_MAX, frame, sizeof(frame));
	cr_expect_eq(frame[15], 0x30);
	cr_expect_eq(faults_stats(f)->marked, 1);
	faults_destroy(f);
}
