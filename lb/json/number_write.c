/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Floating point to text by the Schubfach method (R. Giulietti, "The Schubfach way to render
 * doubles", 2020). A number v = c * 2^q rounds back from anything between its two neighbours'
 * midpoints. k is the largest exponent for which that interval holds a multiple of 10^k for sure;
 * the answer is a multiple of 10^(k+1), if one lies inside, otherwise the nearest one of 10^k. All
 * three points are scaled by 10^-k to integers with two more bits and a sticky last one, which
 * keeps comparisons exact.
 */
#include <stdbool.h>
#include <string.h>

#include "json/number_write.h"
#include "json/powers.h"

typedef unsigned __int128 wide;

struct decimal {
	uint64_t digits; /* value = digits * 10^exponent */
	int exponent;
};

/* v and the ends of the interval that rounds to it, in quarters of 10^k. */
struct interval {
	uint64_t below, middle, above;
};

/* floor(log10(2^q)), or floor(log10(3/4 * 2^q)): 1262611 / 2^22 is log10(2) to seven digits. */
static inline int number_log10(int q, bool closer)
{
	return (q * 1262611 - (closer ? 524031 : 0)) >> 22;
}

/* The product's first bits, the last of them set if anything but zeros is behind it. */
static inline uint64_t number_scale_f64(wide power, uint64_t c)
{
	wide low = (wide)(uint64_t)power * c;
	wide high = (wide)(uint64_t)(power >> 64) * c + (low >> 64);

	return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static inline uint64_t number_scale_f32(uint64_t power, uint64_t c)
{
	wide product = (wide)power * c;

	return (uint64_t)(product >> 64) | ((uint32_t)(product >> 32) > 1);
}

/* 10^e to 128 bits, rounded up strictly. */
static inline wide number_power(int e)
{
	const uint64_t *power = json_powers[e - JSON_POWER_FIRST];

	return ((wide)power[0] << 64 | power[1]) + 1;
}

/* <even>: the ends of the interval belong to it, because ties round to v. */
static struct decimal number_shortest(struct interval i, int k, bool even)
{
	uint64_t below = i.below + !even, above = i.above - !even;
	uint64_t digits = i.middle / 4, tenth = digits / 10;
	bool down = below <= 40 * tenth, up = 40 * tenth + 40 <= above;

	if (digits >= 10 && down != up)
		return (struct decimal){tenth + up, k + 1};
	down = below <= 4 * digits;
	up = 4 * digits + 4 <= above;
	if (down == up) /* both or neither: the nearer one */
		up = i.middle > 4 * digits + 2 || (i.middle == 4 * digits + 2 && (digits & 1) != 0);
	return (struct decimal){digits + up, k};
}

/* <closer>: the neighbour below is only half as far away, as its exponent is smaller. */
static struct decimal number_decimal_f64(uint64_t c, int q, bool closer)
{
	int k = number_log10(q, closer);
	int shift = q + json_log2_of_power(-k) + 1;
	wide power = number_power(-k);
	struct interval i = {
		.below = number_scale_f64(power, (4 * c - 2 + closer) << shift),
		.middle = number_scale_f64(power, (4 * c) << shift),
		.above = number_scale_f64(power, (4 * c + 2) << shift),
	};

	return number_shortest(i, k, (c & 1) == 0);
}

static struct decimal number_decimal_f32(uint64_t c, int q, bool closer)
{
	int k = number_log10(q, closer);
	int shift = q + json_log2_of_power(-k) + 1;
	uint64_t power = json_powers[-k - JSON_POWER_FIRST][0] + 1;
	struct interval i = {
		.below = number_scale_f32(power, (4 * c - 2 + closer) << shift),
		.middle = number_scale_f32(power, (4 * c) << shift),
		.above = number_scale_f32(power, (4 * c + 2) << shift),
	};

	return number_shortest(i, k, (c & 1) == 0);
}

static uint32_t number_digits(uint64_t value)
{
	static const uint64_t powers[] = {0,
					  10,
					  100,
					  1000,
					  10000,
					  100000,
					  1000000,
					  10000000,
					  100000000,
					  1000000000,
					  10000000000,
					  100000000000,
					  1000000000000,
					  10000000000000,
					  100000000000000,
					  1000000000000000,
					  10000000000000000,
					  100000000000000000,
					  1000000000000000000,
					  10000000000000000000u};
	/* 1233 / 4096 is log10(2): right, or one too many. */
	uint32_t guess = (uint32_t)(64 - __builtin_clzll(value | 1)) * 1233 >> 12;

	return guess + (value >= powers[guess]);
}

/*
 * Eight digits, the first one in the lowest byte: the number is halved into parts of four, two and
 * one digit, side by side in one word. 10486 / 2^20 is 1/100 for all that has four digits, and
 * 103 / 2^10 is 1/10 for two.
 */
static inline uint64_t number_eight_digits(uint32_t value)
{
	uint64_t parts = value / 10000 | (uint64_t)(value % 10000) << 32;
	uint64_t high = (parts * 10486 >> 20) & 0x0000007f0000007f;

	parts = high | (parts - high * 100) << 16;
	high = (parts * 103 >> 10) & 0x000f000f000f000f;
	return (high | (parts - high * 10) << 8) + 0x3030303030303030;
}

/* A value of <n> digits, 8 at most; writes 8 bytes. */
static inline void number_put_few(char *at, uint32_t value, uint32_t n)
{
	uint64_t digits = number_eight_digits(value) >> (64 - 8 * n);

	memcpy(at, &digits, sizeof(digits));
}

/* A value of <n> digits, 1 to 20; writes up to 7 bytes more. */
static inline void number_put_digits(char *at, uint64_t value, uint32_t n)
{
	uint32_t rest = n;

	for (; rest > 8; rest -= 8) {
		number_put_few(at + rest - 8, (uint32_t)(value % 100000000), 8);
		value /= 100000000;
	}
	if (rest == n) {
		number_put_few(at, (uint32_t)value, n);
		return;
	}
	for (; rest > 0; rest--) { /* in front of what is written */
		at[rest - 1] = (char)('0' + value % 10);
		value /= 10;
	}
}

uint32_t json_number_write_u64(char *at, uint64_t value)
{
	uint32_t n = number_digits(value);

	n += n == 0;
	number_put_digits(at, value, n);
	return n;
}

uint32_t json_number_write_i64(char *at, int64_t value)
{
	if (value >= 0)
		return json_number_write_u64(at, (uint64_t)value);
	*at = '-';
	return 1 + json_number_write_u64(at + 1, -(uint64_t)value);
}

/* d.ddde-05 */
static char *number_put_scientific(char *at, uint64_t digits, uint32_t n, int exponent)
{
	number_put_digits(at + 1, digits, n);
	at[0] = at[1];
	at[1] = '.';
	at += n > 1 ? n + 1 : 1;
	*at++ = 'e';
	*at++ = exponent < 0 ? '-' : '+';
	exponent = exponent < 0 ? -exponent : exponent;
	n = exponent < 100 ? 2 : 3;
	number_put_few(at, (uint32_t)exponent, n);
	return at + n;
}

/* <point> digits, -3 to 16, are in front of the point. Writes whole words, so more than it says. */
static char *number_put_plain(char *at, uint64_t digits, uint32_t n, int point)
{
	wide behind;

	if (point <= 0) {
		memcpy(at, "0.000000", 8);
		number_put_digits(at + 2 - point, digits, n);
		return at + 2 - point + n;
	}
	number_put_digits(at, digits, n);
	if (point >= (int)n) {
		memcpy(at + n, "0000000000000000", 16);
		memcpy(at + point, ".0", 2);
		return at + point + 2;
	}
	memcpy(&behind, at + point, sizeof(behind));
	memcpy(at + point + 1, &behind, sizeof(behind));
	at[point] = '.';
	return at + n + 1;
}

/* Without an exponent from 0.0001 to 10^16, as most languages have it. */
static char *number_put_decimal(char *at, struct decimal d)
{
	uint32_t n;
	int point;

	while (d.digits % 100 == 0) {
		d.digits /= 100;
		d.exponent += 2;
	}
	if (d.digits % 10 == 0) {
		d.digits /= 10;
		d.exponent++;
	}
	n = number_digits(d.digits);
	point = (int)n + d.exponent;
	if (point < -3 || point > 16)
		return number_put_scientific(at, d.digits, n, point - 1);
	return number_put_plain(at, d.digits, n, point);
}

/* Zero, null, or 0: it has digits. */
static uint32_t number_put_special(char *at, bool finite, bool zero)
{
	if (!finite) {
		memcpy(at, "null", 4);
		return 4;
	}
	if (zero)
		memcpy(at, "0.0", 3);
	return zero ? 3 : 0;
}

/* A number of IEEE 754, taken apart: <fraction> times two to the power of <exponent>. */
struct binary {
	bool negative, finite, zero;
	bool closer; /* the number below is half as far away as the one above */
	uint64_t fraction;
	int exponent;
};

static inline struct binary number_split(uint64_t bits, unsigned int fraction_bits,
					 unsigned int exponent_bits)
{
	const uint64_t hidden = UINT64_C(1) << fraction_bits;
	const int most = (1 << exponent_bits) - 1;
	int exponent = (int)(bits >> fraction_bits) & most;
	uint64_t fraction = bits & (hidden - 1);

	return (struct binary){
		.negative = bits >> (fraction_bits + exponent_bits) != 0,
		.finite = exponent != most,
		.zero = exponent == 0 && fraction == 0,
		.closer = fraction == 0 && exponent > 1,
		.fraction = exponent == 0 ? fraction : fraction | hidden,
		.exponent = (exponent == 0 ? 1 : exponent) - most / 2 - (int)fraction_bits,
	};
}

/* Its sign, and all of it if it has no digits. Returns the bytes; <*all>: they are all. */
static inline uint32_t number_put_front(char *at, const struct binary *b, bool *all)
{
	uint32_t sign = b->negative && b->finite;

	if (sign)
		*at = '-';
	*all = !b->finite || b->zero;
	return *all ? sign + number_put_special(at + sign, b->finite, b->zero) : sign;
}

uint32_t json_number_write_f32(char *at, float value)
{
	struct binary b;
	uint32_t bits, n;
	bool all;

	memcpy(&bits, &value, sizeof(bits));
	b = number_split(bits, 23, 8);
	n = number_put_front(at, &b, &all);
	if (all)
		return n;
	return number_put_decimal(at + n,
				  number_decimal_f32((uint32_t)b.fraction, b.exponent, b.closer)) -
	       at;
}

uint32_t json_number_write_f64(char *at, double value)
{
	struct binary b;
	uint64_t bits;
	uint32_t n;
	bool all;

	memcpy(&bits, &value, sizeof(bits));
	b = number_split(bits, 52, 11);
	n = number_put_front(at, &b, &all);
	if (all)
		return n;
	return number_put_decimal(at + n, number_decimal_f64(b.fraction, b.exponent, b.closer)) -
	       at;
}
