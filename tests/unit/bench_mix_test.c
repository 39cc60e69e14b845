/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/mix.h"

#include <criterion/criterion.h>
#include <string.h>

static struct mix mix;
static char error[256];

#define OK(call)     cr_assert_eq(call, 0, "%s", error)
#define REFUSE(call) cr_assert_neq(call, 0)

Test(mix, sizes_come_as_often_as_their_weights_say)
{
	int small = 0, middle = 0, large = 0;
	struct draw draw;

	OK(mix_to(&mix, "192.0.2.1:1", error, sizeof(error)));
	OK(mix_sizes(&mix, "64:7,512:2,1400", error, sizeof(error)));
	mix_complete(&mix);
	draw_init(&draw, 1, 1);
	for (int i = 0; i < 100000; i++) {
		uint32_t size = mix_draw_size(&mix.target[0], &draw);

		small += size == 64;
		middle += size == 512;
		large += size == 1400;
	}
	cr_assert_eq(small + middle + large, 100000);
	cr_assert_float_eq(small, 70000, 750);
	cr_assert_float_eq(middle, 20000, 650);
	cr_assert_float_eq(large, 10000, 500);
	cr_assert_eq(mix_largest(&mix), 1400);
}

Test(mix, targets_come_as_often_as_their_shares_say)
{
	int n[3] = {0};
	struct draw draw;

	OK(mix_to(&mix, "192.0.2.1:1", error, sizeof(error)));
	OK(mix_to(&mix, "[2001:db8::1]:2", error, sizeof(error)));
	OK(mix_share(&mix, "2.5", error, sizeof(error)));
	OK(mix_to(&mix, "192.0.2.1:3", error, sizeof(error)));
	OK(mix_share(&mix, "0.5", error, sizeof(error)));
	mix_complete(&mix);
	draw_init(&draw, 1, 1);
	for (int i = 0; i < 100000; i++)
		n[mix_draw_target(&mix, &draw)]++;
	cr_assert_float_eq(n[0], 25000, 700);
	cr_assert_float_eq(n[1], 62500, 800);
	cr_assert_float_eq(n[2], 12500, 550);
}

Test(mix, sizes_are_of_the_target_before_them_or_of_those_that_name_none)
{
	OK(mix_sizes(&mix, "100", error, sizeof(error)));
	OK(mix_to(&mix, "192.0.2.1:1", error, sizeof(error)));
	OK(mix_to(&mix, "192.0.2.1:2", error, sizeof(error)));
	OK(mix_sizes(&mix, "200", error, sizeof(error)));
	mix_complete(&mix);
	cr_assert_eq(mix.target[0].size[0], 100);
	cr_assert_eq(mix.target[1].size[0], 200);
}

Test(mix, without_sizes_there_is_a_default)
{
	OK(mix_to(&mix, "192.0.2.1:1", error, sizeof(error)));
	mix_complete(&mix);
	cr_assert_eq(mix_largest(&mix), MIX_SIZE_DEFAULT);
}

Test(mix, deadlines_are_of_the_target_before_them)
{
	OK(mix_to(&mix, "192.0.2.1:1", error, sizeof(error)));
	cr_assert_not(mix_has_deadlines(&mix));
	OK(mix_to(&mix, "192.0.2.1:2", error, sizeof(error)));
	OK(mix_deadline(&mix, "2.5", error, sizeof(error)));
	cr_assert(mix_has_deadlines(&mix));
	cr_assert_eq(mix.target[0].deadline_ns, 0);
	cr_assert_eq(mix.target[1].deadline_ns, 2500000);
	REFUSE(mix_deadline(&mix, "0", error, sizeof(error)));
	REFUSE(mix_deadline(&mix, "5000000", error, sizeof(error)));
	REFUSE(mix_deadline(&mix, "1s", error, sizeof(error)));
}

Test(mix, nonsense_is_refused_with_a_sentence)
{
	static const char *const bad[] = {
		"",       "64:",    ":9", "64:0", "64:-1",  "7",   "67108865", "64,",
		"64:9;3", "64:nan", "x",  " 64",  "64:1:2", "-64", "0x40",  "99999999999999999999",
		"64:1e99"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		error[0] = '\0';
		REFUSE(mix_sizes(&mix, bad[i], error, sizeof(error)));
		cr_assert_neq(error[0], '\0', "%s", bad[i]);
	}
	REFUSE(mix_to(&mix, "192.0.2.1", error, sizeof(error)));
	REFUSE(mix_share(&mix, "1", error, sizeof(error)));
	cr_assert_not_null(strstr(error, "--to"));
	REFUSE(mix_deadline(&mix, "1", error, sizeof(error)));
	cr_assert_not_null(strstr(error, "--to"));
	OK(mix_to(&mix, "192.0.2.1:1", error, sizeof(error)));
	REFUSE(mix_share(&mix, "0", error, sizeof(error)));
	REFUSE(mix_share(&mix, "1x", error, sizeof(error)));
}

Test(mix, there_is_room_for_so_many_sizes_and_targets_and_no_more)
{
	char text[33 * 3 + 1] = "10";

	for (int i = 1; i < 32; i++)
		strcat(text, ",10");
	OK(mix_sizes(&mix, text, error, sizeof(error)));
	strcat(text, ",10");
	REFUSE(mix_sizes(&mix, text, error, sizeof(error)));
	for (int i = 0; i < MIX_TARGETS; i++)
		OK(mix_to(&mix, "192.0.2.1:1", error, sizeof(error)));
	REFUSE(mix_to(&mix, "192.0.2.1:1", error, sizeof(error)));
}
