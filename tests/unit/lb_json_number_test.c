/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers from and to text, compared with the C library, which calculates with any precision. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/number_read.h"
#include "json/number_write.h"
#include "json/powers.h"

static struct json_number number_of(const char *text)
{
	struct json_number n;

	cr_assert_eq(json_number_read(text, text + strlen(text), &n), strlen(text), "%s", text);
	return n;
}

Test(lb_json_number, the_grammar_is_rfc_8259s)
{
	static const char *const good[] = {"0",     "-0",   "1",    "10",     "0.0",
					   "1.5e3", "1E+9", "1e-9", "123.456"};
	static const struct {
		const char *text;
		uint32_t length;
	} part[] = {{"1 ", 1}, {"0x1", 1}, {"12]", 2}, {"1.5,", 3}, {"-2}", 2}};
	static const char *const bad[] = {"",     "-",  "+1",  ".5",  "1.", "01", "-01",
					  "1.e3", "1e", "1e+", "- 1", "e5", "--1"};
	struct json_number n;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		number_of(good[i]);
	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
		cr_assert_eq(
			json_number_read(part[i].text, part[i].text + strlen(part[i].text), &n),
			part[i].length, "%s", part[i].text);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(json_number_read(bad[i], bad[i] + strlen(bad[i]), &n), 0, "%s",
			     bad[i]);
}

Test(lb_json_number, a_number_has_128_characters_at_most)
{
	char text[JSON_NUMBER_MAX + 2];
	struct json_number n;

	memset(text, '7', sizeof(text));
	cr_assert_eq(json_number_read(text, text + JSON_NUMBER_MAX, &n), JSON_NUMBER_MAX);
	cr_assert_eq(json_number_read(text, text + JSON_NUMBER_MAX + 1, &n), 0);
	text[1] = '.';
	cr_assert_eq(json_number_read(text, text + JSON_NUMBER_MAX, &n), JSON_NUMBER_MAX);
	cr_assert_eq(json_number_read(text, text + JSON_NUMBER_MAX + 1, &n), 0);
}

Test(lb_json_number, integers_are_exact_to_their_ends)
{
	static const struct {
		const char *text;
		bool is_u64, is_i64;
		uint64_t value;
	} rows[] = {
		{"0", true, true, 0},
		{"-0", true, true, 0},
		{"-1", false, true, UINT64_MAX},
		{"9223372036854775807", true, true, INT64_MAX},
		{"9223372036854775808", true, false, (uint64_t)INT64_MAX + 1},
		{"-9223372036854775808", false, true, (uint64_t)INT64_MAX + 1},
		{"-9223372036854775809", false, false, 0},
		{"9007199254740993", true, true, 9007199254740993},
		{"18446744073709551615", true, false, UINT64_MAX},
		{"18446744073709551616", false, false, 0},
		{"18446744073709551620", false, false, 0},
		{"184467440737095516150", false, false, 0},
		{"99999999999999999999", false, false, 0},
		{"1.0", false, false, 0},
		{"1e2", false, false, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct json_number n = number_of(rows[i].text);
		uint64_t u;
		int64_t s;

		cr_assert_eq(json_number_u64(&n, &u), rows[i].is_u64, "%s", rows[i].text);
		cr_assert(!rows[i].is_u64 || u == rows[i].value, "%s", rows[i].text);
		cr_assert_eq(json_number_i64(&n, &s), rows[i].is_i64, "%s", rows[i].text);
		cr_assert(!rows[i].is_i64 || (uint64_t)s == rows[i].value, "%s", rows[i].text);
	}
}

static bool same_f64(double a, double b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

static bool same_f32(float a, float b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

/* As the C library reads it; refused where that says infinity. */
static void expect_as_libc(const char *text)
{
	struct json_number n = number_of(text);
	double f64 = 0, want64 = strtod(text, NULL);
	float f32 = 0, want32 = strtof(text, NULL);

	cr_assert_eq(json_number_f64(&n, &f64), isfinite(want64), "%s", text);
	cr_assert(isinf(want64) || same_f64(f64, want64), "%s: %a, not %a", text, f64, want64);
	cr_assert_eq(json_number_f32(&n, &f32), isfinite(want32), "%s", text);
	cr_assert(isinf(want32) || same_f32(f32, want32), "%s: %a, not %a", text, f32, want32);
}

/* Ties, ends of ranges, subnormal numbers, more digits than a word holds. */
static const char *const hard_numbers[] = {
	"0",
	"-0",
	"0.1",
	"1e22",
	"1e23",
	"9007199254740993",
	"9007199254740992.9999999999999999",
	"9007199254740993.000000000000000000000000000000000000000000001",
	"9007199254740993.0000000000000000000000000000000000000000000000",
	"8388608.5",
	"8388609.5",
	"16777217",
	"16777219",
	"16777217.0000000000000000000000001",
	"1.7976931348623157e308",
	"1.7976931348623158e308",
	"1.7976931348623159e308",
	"17976931348623157e292",
	"1e309",
	"1e308",
	"-1e309",
	"2e308",
	"0e999999",
	"1e-999999",
	"1e999999",
	"1e99999999999999999999",
	"1e-99999999999999999999",
	"3.4028234663852886e38",
	"3.4028235677973366e38",
	"3.4028235677973365e38",
	"3.4028236e38",
	"1e38",
	"1e39",
	"2.2250738585072014e-308",
	"2.2250738585072011e-308",
	"2.2250738585072009e-308",
	"4.9406564584124654e-324",
	"2.4703282292062327e-324",
	"2.4703282292062328e-324",
	"2.5e-324",
	"2.4e-324",
	"1e-342",
	"1e-343",
	"18446744073709551615e-343",
	"1.1754943508222875e-38",
	"1.1754942106924411e-38",
	"1.401298464324817e-45",
	"7.006492321624085e-46",
	"7.006492321624086e-46",
	"7.0064923216240853e-46",
	"7.0064923216240854e-46",
	"7.0064923216240862e-46",
	"0.000000000000000000000000000000000000000000000001",
	"1000000000000000000000000000000000000000000000000000000000000000",
	"123456789012345678901234567890",
	"18446744073709551615",
	"18446744073709551616",
	"18446744073709551617e-5",
	"0.30000000000000004",
	"0.1000000000000000055511151231257827021181583404541015625",
	"6.631236846766476e-316"};

Test(lb_json_number, hard_numbers_are_rounded_as_the_library_rounds_them)
{
	for (size_t i = 0; i < sizeof(hard_numbers) / sizeof(hard_numbers[0]); i++)
		expect_as_libc(hard_numbers[i]);
}

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

Test(lb_json_number, any_number_is_rounded_as_the_library_rounds_it)
{
	uint64_t state = 88172645463325252;
	char text[80];

	for (int i = 0; i < 200000; i++) {
		uint64_t whole = draw(&state) >> (draw(&state) & 63);
		uint64_t fraction = draw(&state) >> (draw(&state) & 63);

		snprintf(text, sizeof(text), "%s%" PRIu64 ".%" PRIu64 "e%d", i & 1 ? "-" : "",
			 whole, fraction, (int)(draw(&state) % 720) - 360);
		expect_as_libc(text);
		snprintf(text, sizeof(text), "%" PRIu64 ".%0*" PRIu64, whole >> 40,
			 (int)(draw(&state) % 30), fraction);
		expect_as_libc(text);
	}
}

/* Half-way between two neighbours, and a hair beside it. */
Test(lb_json_number, ties_go_to_even)
{
	uint64_t state = 1;
	char text[JSON_NUMBER_MAX + 1];

	for (int i = 0; i < 20000; i++) {
		uint64_t odd = (draw(&state) >> 11) | 1;
		int exponent = (int)(draw(&state) % 60);
		unsigned __int128 tie = (unsigned __int128)odd << exponent;
		uint64_t high = (uint64_t)(tie / 10000000000000000000u);
		uint64_t low = (uint64_t)(tie % 10000000000000000000u);

		for (int hair = -1; hair <= 1; hair++) {
			if (high == 0)
				snprintf(text, sizeof(text), "%" PRIu64 "%s", low + (uint64_t)hair,
					 ".0");
			else
				snprintf(text, sizeof(text), "%" PRIu64 "%019" PRIu64 "%s", high,
					 low + (uint64_t)hair,
					 hair == 0 ? "" : ".0000000000000000000001");
			expect_as_libc(text);
		}
	}
}

Test(lb_json_number, a_comma_as_the_locales_point_changes_nothing)
{
	struct json_number n = number_of("16777217.0000000000000000000000001");
	float value;

	/* The library decides such a number. Without such a locale there is nothing to change. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	cr_assert(json_number_f32(&n, &value));
	cr_assert_eq(value, 16777218.0f);
}

/* A number of up to 1,024 bits. */
#define LIMBS 32
struct big {
	uint32_t limb[LIMBS];
};

/* a += b * factor * 2^(32 * shift) */
static void big_add(struct big *a, const struct big *b, uint32_t factor, int shift)
{
	uint64_t carry = 0;

	for (int i = shift; i < LIMBS; i++) {
		carry += a->limb[i] + (uint64_t)b->limb[i - shift] * factor;
		a->limb[i] = (uint32_t)carry;
		carry >>= 32;
	}
	cr_assert_eq(carry, 0);
}

static int big_bits(const struct big *a)
{
	for (int i = LIMBS - 1; i >= 0; i--) {
		if (a->limb[i] != 0)
			return 32 * i + 32 - __builtin_clz(a->limb[i]);
	}
	return 0;
}

static int big_bit(const struct big *a, int bit)
{
	return bit < 0 ? 0 : a->limb[bit / 32] >> bit % 32 & 1;
}

/* The first 128 bits of 5^e. */
static void expect_power(int e, const struct big *five)
{
	const uint64_t *power = json_powers[e - JSON_POWER_FIRST];
	int bits = big_bits(five);

	for (int i = 0; i < 128; i++)
		cr_assert_eq(power[i / 64] >> (63 - i % 64) & 1, big_bit(five, bits - 1 - i),
			     "5^%d", e);
}

/* The first 128 bits of 1 / 5^e: times 5^e they are at most a power of two, and one more is not. */
static void expect_inverse(int e, const struct big *five)
{
	const uint64_t *power = json_powers[-e - JSON_POWER_FIRST];
	struct big product = {{0}};

	for (int i = 0; i < 4; i++)
		big_add(&product, five, (uint32_t)(power[1 - i / 2] >> 32 * (i % 2)), i);
	cr_assert_eq(big_bits(&product), big_bits(five) + 127, "5^-%d", e);
	big_add(&product, five, 1, 0);
	cr_assert_eq(big_bits(&product), big_bits(five) + 128, "5^-%d", e);
}

Test(lb_json_number, the_table_of_powers_is_right)
{
	struct big five = {{1}};

	for (int e = 0; e <= -JSON_POWER_FIRST; e++) {
		struct big one = five;

		if (e <= JSON_POWER_LAST)
			expect_power(e, &five);
		if (e > 0)
			expect_inverse(e, &five);
		big_add(&five, &one, 4, 0);
	}
}

/* --- writing --- */

static const char *text_f32(float value)
{
	static char text[JSON_NUMBER_ROOM];
	uint32_t n = json_number_write_f32(text, value);

	cr_assert(n <= JSON_NUMBER_TEXT_MAX);
	text[n] = '\0';
	return text;
}

static const char *text_f64(double value)
{
	static char text[JSON_NUMBER_ROOM];
	uint32_t n = json_number_write_f64(text, value);

	cr_assert(n <= JSON_NUMBER_TEXT_MAX);
	text[n] = '\0';
	return text;
}

Test(lb_json_number, numbers_look_as_people_write_them)
{
	cr_assert_str_eq(text_f32(0.1f), "0.1");
	cr_assert_str_eq(text_f32(1.0f), "1.0");
	cr_assert_str_eq(text_f32(-0.0f), "-0.0");
	cr_assert_str_eq(text_f32(100.0f), "100.0");
	cr_assert_str_eq(text_f32(16777216.0f), "16777216.0");
	cr_assert_str_eq(text_f32(3.4028235e38f), "3.4028235e+38");
	cr_assert_str_eq(text_f32(1e-45f), "1e-45");
	cr_assert_str_eq(text_f32(0.0001f), "0.0001");
	cr_assert_str_eq(text_f32(0.00001f), "1e-05");
	cr_assert_str_eq(text_f32(1e16f), "1e+16");
	cr_assert_str_eq(text_f64(0.1), "0.1");
	cr_assert_str_eq(text_f64(0.1 + 0.2), "0.30000000000000004");
	cr_assert_str_eq(text_f64(123456789.125), "123456789.125");
	cr_assert_str_eq(text_f64(1e15), "1000000000000000.0");
	cr_assert_str_eq(text_f64(1e16), "1e+16");
	cr_assert_str_eq(text_f64(-2.2250738585072014e-308), "-2.2250738585072014e-308");
	cr_assert_str_eq(text_f64(5e-324), "5e-324");
	cr_assert_str_eq(text_f64(1.7976931348623157e308), "1.7976931348623157e+308");
	cr_assert_str_eq(text_f64(9007199254740993.0), "9007199254740992.0");
}

Test(lb_json_number, what_json_has_no_number_for_is_null)
{
	cr_assert_str_eq(text_f32(NAN), "null");
	cr_assert_str_eq(text_f32(-INFINITY), "null");
	cr_assert_str_eq(text_f64(-NAN), "null");
	cr_assert_str_eq(text_f64(INFINITY), "null");
}

/* Digits without zeros at either end. */
static int significant(const char *text)
{
	char digits[JSON_NUMBER_TEXT_MAX];
	int n = 0;

	for (; *text != '\0' && *text != 'e'; text++) {
		if (*text >= '0' && *text <= '9' && (n > 0 || *text != '0'))
			digits[n++] = *text;
	}
	while (n > 1 && digits[n - 1] == '0')
		n--;
	return n;
}

static void expect_shortest_f64(double value)
{
	const char *text = text_f64(value);
	struct json_number n = number_of(text);
	double back;
	char want[40];
	int digits = 0;

	cr_assert(json_number_f64(&n, &back) && same_f64(back, value), "%s", text);
	cr_assert(same_f64(strtod(text, NULL), value), "%s", text);
	do {
		snprintf(want, sizeof(want), "%.*e", digits++, value);
	} while (strtod(want, NULL) != value);
	cr_assert(value == 0 || significant(text) <= digits, "%s, but %s is enough", text, want);
}

static void expect_shortest_f32(float value)
{
	const char *text = text_f32(value);
	struct json_number n = number_of(text);
	float back;
	char want[40];
	int digits = 0;

	cr_assert(json_number_f32(&n, &back) && same_f32(back, value), "%s", text);
	cr_assert(same_f32(strtof(text, NULL), value), "%s", text);
	do {
		snprintf(want, sizeof(want), "%.*e", digits++, (double)value);
	} while (strtof(want, NULL) != value);
	cr_assert(value == 0 || significant(text) <= digits, "%s, but %s is enough", text, want);
}

Test(lb_json_number, floats_have_the_fewest_digits_that_read_back_the_same, .timeout = 60)
{
	for (uint32_t bits = 0; bits < 0x7f800000; bits += 8191) {
		float value;

		memcpy(&value, &bits, sizeof(value));
		expect_shortest_f32(value);
	}
	/* every power of two: the neighbour below is nearer */
	for (uint32_t exponent = 0; exponent < 255; exponent++) {
		uint32_t bits = exponent << 23;
		float value;

		memcpy(&value, &bits, sizeof(value));
		expect_shortest_f32(value);
	}
}

Test(lb_json_number, doubles_have_the_fewest_digits_that_read_back_the_same, .timeout = 60)
{
	uint64_t state = 42;

	for (int i = 0; i < 100000; i++) {
		uint64_t bits = draw(&state);
		double value;

		memcpy(&value, &bits, sizeof(value));
		if (isfinite(value))
			expect_shortest_f64(value);
		expect_shortest_f64((double)(bits >> 44) / (double)(1 + (draw(&state) & 1023)));
	}
	for (uint64_t exponent = 0; exponent < 2047; exponent++) {
		uint64_t bits = exponent << 52;
		double value;

		memcpy(&value, &bits, sizeof(value));
		expect_shortest_f64(value);
	}
}

Test(lb_json_number, integers_are_written_whole)
{
	char text[JSON_NUMBER_ROOM], want[32];
	uint64_t state = 7;

	for (int i = 0; i < 10000; i++) {
		uint64_t value = i == 0   ? 0
				 : i == 1 ? UINT64_MAX
					  : draw(&state) >> (draw(&state) & 63);

		text[json_number_write_u64(text, value)] = '\0';
		snprintf(want, sizeof(want), "%" PRIu64, value);
		cr_assert_str_eq(text, want);
		text[json_number_write_i64(text, (int64_t)value)] = '\0';
		snprintf(want, sizeof(want), "%" PRId64, (int64_t)value);
		cr_assert_str_eq(text, want);
	}
	for (uint64_t power = 1; power < UINT64_MAX / 10; power *= 10) {
		text[json_number_write_u64(text, power - 1)] = '\0';
		snprintf(want, sizeof(want), "%" PRIu64, power - 1);
		cr_assert_str_eq(text, want);
	}
}
