/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text to floating point: mantissa * 10^exponent is a product of 64 and 128 bits, the power being
 * known to within one unit of its last place. So the number lies between two bounds. If both round
 * to the same result, that is it; otherwise (ties, and what is next to them) the C
 * library decides, which calculates with as many digits as it takes.
 */
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json/number_read.h"
#include "json/powers.h"

typedef unsigned __int128 wide;

/* A binary format; its value is mantissa * 2^exponent. */
struct format {
	int bits;     /* of the mantissa, the implied one included */
	int smallest; /* exponent of subnormal numbers */
	int largest;  /* exponent of the largest numbers */
};
static const struct format format_f32 = {24, -149, 104}, format_f64 = {53, -1074, 971};

/* A binary number: the bits of its mantissa and its exponent. Zero: no bits. */
struct binary {
	uint64_t mantissa;
	int exponent;
	bool unsure;
};

static locale_t plain_locale;

/* The decimal point of the process's locale may be a comma. */
__attribute__((constructor)) static void number_read_init(void)
{
	plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

#define EXPONENT_MAX  308                  /* 10^309 is beyond all formats */
#define MANTISSA_ROOM 1000000000000000000u /* below it, another digit fits for sure */
#define EIGHT_FIT     10000000000u         /* below it, eight more do */

static inline bool number_is_digit(const char *at, const char *end)
{
	return at < end && *at >= '0' && *at <= '9';
}

/* Adds one of the digits after the first 19. False: it found no room, so no later one may. */
static bool number_add_last(struct json_number *n, uint64_t digit, bool *full)
{
	if (!*full && (n->mantissa < UINT64_MAX / 10 ||
		       (n->mantissa == UINT64_MAX / 10 && digit <= UINT64_MAX % 10))) {
		n->mantissa = n->mantissa * 10 + digit;
		return true;
	}
	*full = true;
	n->dropped |= digit != 0;
	return false;
}

/* Reads digits; the result is behind them. <lost> counts those that the mantissa did not take. */
static inline const char *number_read_digits(const char *at, const char *end, struct json_number *n,
					     bool *full, int32_t *lost)
{
	for (; number_is_digit(at, end); at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (n->mantissa < MANTISSA_ROOM)
			n->mantissa = n->mantissa * 10 + digit;
		else if (!number_add_last(n, digit, full))
			(*lost)++;
	}
	return at;
}

/* The value of eight digits, or false: they are not. The first one is in the lowest byte. */
static inline bool number_eight_digits(const char *at, uint64_t *value)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	/* Digits have 3 in their upper half, also when 6 is added. */
	if (((v & (v + 0x0606060606060606)) & 0xf0f0f0f0f0f0f0f0) != 0x3030303030303030 ||
	    ((v | (v + 0x0606060606060606)) & 0xf0f0f0f0f0f0f0f0) != 0x3030303030303030)
		return false;
	v -= 0x3030303030303030;
	v = v * 10 + (v >> 8); /* pairs, in every second byte */
	v = (v & 0x000000ff000000ff) * (100 + (1000000ull << 32)) +
	    (v >> 16 & 0x000000ff000000ff) * (1 + (10000ull << 32));
	*value = v >> 32;
	return true;
}

/* The exponent behind 'e'. Returns the character behind it; NULL: there is no digit. */
static const char *number_read_exponent(const char *at, const char *end, struct json_number *n)
{
	bool negative = at < end && *at == '-';
	int32_t exponent = 0;

	if (at < end && (*at == '-' || *at == '+'))
		at++;
	if (!number_is_digit(at, end))
		return NULL;
	for (; number_is_digit(at, end); at++) {
		/* Far beyond any format, whatever the number of digits. */
		if (exponent < 100000)
			exponent = exponent * 10 + (*at - '0');
	}
	n->exponent += negative ? -exponent : exponent;
	n->whole = false;
	return at;
}

uint32_t json_number_read(const char *at, const char *end, struct json_number *n)
{
	const char *start = at, *digits;
	bool full = false;

	*n = (struct json_number){.text = at, .negative = at < end && *at == '-', .whole = true};
	at += n->negative;
	digits = at;
	at = number_read_digits(at, end, n, &full, &n->exponent);
	if (at == digits || (*digits == '0' && at - digits > 1))
		return 0;
	if (at < end && *at == '.') {
		int32_t lost = 0;

		uint64_t eight;

		digits = ++at;
		while (end - at >= 8 && n->mantissa < EIGHT_FIT &&
		       number_eight_digits(at, &eight)) {
			n->mantissa = n->mantissa * 100000000 + eight;
			at += 8;
		}
		at = number_read_digits(at, end, n, &full, &lost);
		if (at == digits || at - digits > JSON_NUMBER_MAX)
			return 0;
		n->exponent -= (int32_t)(at - digits) - lost;
		n->whole = false;
	}
	if (at < end && (*at == 'e' || *at == 'E'))
		at = number_read_exponent(at + 1, end, n);
	if (at == NULL || at - start > JSON_NUMBER_MAX)
		return 0;
	n->length = (uint8_t)(at - start);
	return n->length;
}

bool json_number_u64(const struct json_number *n, uint64_t *value)
{
	*value = n->mantissa;
	return n->whole && n->exponent == 0 && (!n->negative || n->mantissa == 0);
}

bool json_number_i64(const struct json_number *n, int64_t *value)
{
	*value = (int64_t)(n->negative ? -n->mantissa : n->mantissa);
	return n->whole && n->exponent == 0 &&
	       n->mantissa <= (uint64_t)INT64_MAX + (n->negative ? 1 : 0);
}

/*
 * Rounds <value> * 2^exponent, the value's highest or second highest bit being set. <exact>: the
 * number is the value; otherwise it is larger by less than 1. Unsure: it is half-way between two
 * results, or may be.
 */
static struct binary binary_round(wide value, int exponent, bool exact, const struct format *format)
{
	int shift = 128 - format->bits - (value >> 127 == 0);
	wide half, rest;
	uint64_t mantissa;

	if (exponent + shift < format->smallest)
		shift = format->smallest - exponent;
	if (shift > 128) /* less than half of the smallest number */
		return (struct binary){.exponent = format->smallest};
	if (shift == 128)
		return (struct binary){.unsure = true};
	half = (wide)1 << (shift - 1);
	rest = value & ((half << 1) - 1);
	mantissa = (uint64_t)(value >> shift);
	if (rest == half && !exact)
		return (struct binary){.unsure = true};
	mantissa += rest > half || (rest == half && (mantissa & 1) != 0);
	if (mantissa >> format->bits != 0) {
		mantissa >>= 1;
		shift++;
	}
	return (struct binary){.mantissa = mantissa, .exponent = exponent + shift};
}

/*
 * The usual case: the number lies between two bounds that differ by 2 in the first 64 bits of the
 * product, and neither is near the middle between two results. False: look closer.
 */
static inline bool number_round_quick(uint64_t first, int exponent, const struct format *format,
				      struct binary *b)
{
	int shift = 64 - format->bits - (int)(~first >> 63);
	uint64_t half = (uint64_t)1 << (shift - 1);
	uint64_t rest = first & (2 * half - 1);

	if (half - rest <= 2 || exponent + shift < format->smallest)
		return false;
	b->mantissa = (first >> shift) + (rest > half);
	b->exponent = exponent + shift;
	b->unsure = false;
	if (b->mantissa >> format->bits != 0) {
		b->mantissa >>= 1;
		b->exponent++;
	}
	return true;
}

/* The mantissa's highest bit is set after <zeros> shifts. */
static struct binary number_round(const struct json_number *n, const struct format *format)
{
	const uint64_t *power = json_powers[n->exponent - JSON_POWER_FIRST];
	int zeros = __builtin_clzll(n->mantissa);
	uint64_t mantissa = n->mantissa << zeros;
	wide low = (wide)mantissa * power[1];
	wide value = (wide)mantissa * power[0] + (low >> 64);
	int exponent = json_log2_of_power(n->exponent) - 63 - zeros;
	bool exact = !n->dropped && (uint64_t)low == 0 && n->exponent >= JSON_POWER_EXACT_FIRST &&
		     n->exponent <= JSON_POWER_EXACT_LAST;
	wide error = 1; /* the power's last place, in units of the value's */
	struct binary below, above;

	if (!n->dropped &&
	    number_round_quick((uint64_t)(value >> 64), exponent + 64, format, &below))
		return below;
	below = binary_round(value, exponent, exact, format);
	if (exact || below.unsure)
		return below;
	if (n->dropped)
		error += (wide)1 << (64 + zeros);
	above = binary_round(value + error < value ? ~(wide)0 : value + error, exponent, false,
			     format);
	below.unsure = above.unsure || above.mantissa != below.mantissa ||
		       above.exponent != below.exponent;
	return below;
}

/* Rounds to <format>. False: too large. Unsure: ask the C library. */
static bool number_to_binary(const struct json_number *n, const struct format *format,
			     struct binary *b)
{
	*b = (struct binary){.exponent = format->smallest};
	if (n->mantissa == 0 || n->exponent < JSON_POWER_FIRST)
		return true;
	if (n->exponent > EXPONENT_MAX)
		return false;
	*b = number_round(n, format);
	return b->unsure || b->exponent <= format->largest;
}

/* A copy that ends in a 0, as the C library wants it. */
static const char *number_text(const struct json_number *n, char text[JSON_NUMBER_MAX + 1])
{
	memcpy(text, n->text, n->length);
	text[n->length] = '\0';
	return text;
}

/* The bits of a number without its sign: the implied bit adds one to the exponent. */
static uint64_t binary_pack(const struct binary *b, const struct format *format)
{
	return ((uint64_t)(b->exponent - format->smallest) << (format->bits - 1)) + b->mantissa;
}

bool json_number_f32(const struct json_number *n, float *value)
{
	char text[JSON_NUMBER_MAX + 1];
	struct binary b;
	uint32_t bits;

	if (!number_to_binary(n, &format_f32, &b))
		return false;
	if (b.unsure) {
		*value = strtof_l(number_text(n, text), NULL, plain_locale);
		return !isinf(*value);
	}
	bits = (uint32_t)binary_pack(&b, &format_f32) | (uint32_t)n->negative << 31;
	memcpy(value, &bits, sizeof(bits));
	return true;
}

/* A product or quotient of two exact numbers is rounded once: it is correct. */
static bool number_is_simple(const struct json_number *n, double *value)
{
	static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
					1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
					1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

	if (n->dropped || n->mantissa >> 53 != 0 || n->exponent < -22 || n->exponent > 22)
		return false;
	*value = (double)n->mantissa;
	if (n->exponent < 0)
		*value /= powers[-n->exponent];
	else
		*value *= powers[n->exponent];
	*value = n->negative ? -*value : *value;
	return true;
}

bool json_number_f64(const struct json_number *n, double *value)
{
	char text[JSON_NUMBER_MAX + 1];
	struct binary b;
	uint64_t bits;

	if (number_is_simple(n, value))
		return true;
	if (!number_to_binary(n, &format_f64, &b))
		return false;
	if (b.unsure) {
		*value = strtod_l(number_text(n, text), NULL, plain_locale);
		return !isinf(*value);
	}
	bits = binary_pack(&b, &format_f64) | (uint64_t)n->negative << 63;
	memcpy(value, &bits, sizeof(bits));
	return true;
}
