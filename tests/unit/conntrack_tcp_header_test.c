/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of TCP headers, whole and cut short at every byte. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tcp.h"

/* Parses a heap block of the exact size, so that the sanitizer sees a read past the end. */
static enum tcp_reason parse(const uint8_t *bytes, uint32_t length, struct tcp_segment *out)
{
	uint8_t *exact = malloc(length);
	enum tcp_reason reason;

	memcpy(exact, bytes, length);
	memset(out, 0xaa, sizeof(*out));
	reason = conntrack_tcp_parse(exact, length, out);
	free(exact);
	return reason;
}

/* A SYN with these options, padded with zeros. */
static uint32_t syn(uint8_t out[60], const uint8_t *options, uint32_t n, uint8_t flags)
{
	uint32_t header = 20 + (n + 3) / 4 * 4;

	memset(out, 0, 60);
	memcpy(out + 20, options, n);
	out[12] = (uint8_t)(header / 4 << 4);
	out[13] = flags;
	return header;
}

Test(conntrack_tcp_header, every_field_is_where_the_rfc_has_it)
{
	static const uint8_t bytes[27] = {0x12, 0x34, 0x00, 0x50, 0x89, 0xab, 0xcd, 0xef,
					  0xfe, 0xdc, 0xba, 0x98, 0x6f, 0xd9, 0x8a, 0xbc,
					  0x11, 0x22, 0x33, 0x44, 1,    1,    1,    1};
	struct tcp_segment s;

	cr_assert_eq(parse(bytes, sizeof(bytes), &s), TCP_REASON_NONE);
	cr_assert_eq(s.seq, 0x89abcdef);
	cr_assert_eq(s.ack, 0xfedcba98);
	cr_assert_eq(s.window, 0x8abc);
	cr_assert_eq(s.flags, 0xd9);
	cr_assert_eq(s.header, 24);
	cr_assert_eq(s.length, 3);
	cr_assert_eq(s.scale, TCP_SCALE_NONE);
}

Test(conntrack_tcp_header, what_is_cut_short_or_disagrees_is_no_header)
{
	uint8_t bytes[60];
	struct tcp_segment s;
	uint32_t full = syn(bytes, (const uint8_t[40]){[0 ... 39] = 1}, 40, TCP_BIT_SYN);

	cr_assert_eq(full, 60);
	for (uint32_t length = 0; length < full; length++)
		cr_assert_eq(parse(bytes, length, &s), TCP_REASON_TRUNCATED, "%u bytes", length);
	cr_assert_eq(parse(bytes, full, &s), TCP_REASON_NONE);
	for (uint8_t words = 0; words < 5; words++) {
		bytes[12] = (uint8_t)(words << 4);
		cr_assert_eq(parse(bytes, full, &s), TCP_REASON_OFFSET, "%u words", words);
	}
}

static const struct {
	const char *what;
	uint32_t n;
	uint8_t options[40];
	uint8_t flags;
	uint8_t scale;
} rows[] = {
	{"none", 0, {0}, TCP_BIT_SYN, TCP_SCALE_NONE},
	{"alone", 3, {3, 3, 7}, TCP_BIT_SYN, 7},
	{"zero is a scale", 3, {3, 3, 0}, TCP_BIT_SYN, 0},
	{"fourteen", 3, {3, 3, 14}, TCP_BIT_SYN, 14},
	{"fifteen means fourteen", 3, {3, 3, 15}, TCP_BIT_SYN, 14},
	{"so does all above", 3, {3, 3, 255}, TCP_BIT_SYN, 14},
	{"in a SYN,ACK", 3, {3, 3, 7}, TCP_BIT_SYN | TCP_BIT_ACK, 7},
	{"not without SYN", 3, {3, 3, 7}, TCP_BIT_ACK, TCP_SCALE_NONE},
	{"as Linux has it",
	 20,
	 {2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 8},
	 TCP_BIT_SYN,
	 8},
	{"behind padding", 7, {1, 1, 1, 1, 3, 3, 9}, TCP_BIT_SYN, 9},
	{"behind the end", 4, {0, 3, 3, 9}, TCP_BIT_SYN, TCP_SCALE_NONE},
	{"behind a length of one", 5, {2, 1, 3, 3, 9}, TCP_BIT_SYN, TCP_SCALE_NONE},
	{"behind a length of zero", 5, {2, 0, 3, 3, 9}, TCP_BIT_SYN, TCP_SCALE_NONE},
	{"before a malformed one", 5, {3, 3, 9, 8, 0}, TCP_BIT_SYN, 9},
	{"behind one that is too long", 8, {2, 9, 0, 0, 0, 3, 3, 9}, TCP_BIT_SYN, TCP_SCALE_NONE},
	{"an unknown one is passed over", 9, {253, 6, 3, 3, 1, 2, 3, 3, 9}, TCP_BIT_SYN, 9},
	{"of another length it is none", 4, {3, 4, 9, 9}, TCP_BIT_SYN, TCP_SCALE_NONE},
	{"without its value", 4, {1, 1, 3, 2}, TCP_BIT_SYN, TCP_SCALE_NONE},
	{"its value is cut off", 4, {1, 1, 3, 3}, TCP_BIT_SYN, TCP_SCALE_NONE},
	{"its length is cut off", 4, {1, 1, 1, 3}, TCP_BIT_SYN, TCP_SCALE_NONE},
	{"the last of two counts", 7, {3, 3, 2, 1, 3, 3, 5}, TCP_BIT_SYN, 5},
	{"at the very end", 40, {[0 ... 36] = 1, 3, 3, 6}, TCP_BIT_SYN, 6},
};

Test(conntrack_tcp_header, the_window_scale_option_is_read_as_the_ends_do)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[60];
		uint32_t length = syn(bytes, rows[i].options, rows[i].n, rows[i].flags);
		struct tcp_segment s;

		cr_assert_eq(parse(bytes, length, &s), TCP_REASON_NONE, "%s", rows[i].what);
		cr_assert_eq(s.scale, rows[i].scale, "%s: %u", rows[i].what, s.scale);
		cr_assert_eq(s.length, 0);
	}
}

/* No option makes the parser read past the header, which is a block of the exact size. */
Test(conntrack_tcp_header, no_option_is_read_past_the_header)
{
	uint64_t state = 20261121;

	for (unsigned int i = 0; i < 200000; i++) {
		uint8_t bytes[60], options[40];
		struct tcp_segment s;
		uint32_t n;

		for (unsigned int k = 0; k < sizeof(options); k++) {
			state = state * 6364136223846793005 + 1442695040888963407;
			options[k] = (uint8_t)(state >> 60 & 7);
		}
		n = (uint32_t)(state >> 33) % 41;
		cr_assert_eq(parse(bytes, syn(bytes, options, n, TCP_BIT_SYN), &s),
			     TCP_REASON_NONE);
		cr_assert(s.scale <= TCP_SCALE_MAX || s.scale == TCP_SCALE_NONE);
	}
}
