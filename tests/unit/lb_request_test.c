/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "packet/request.h"

static const uint8_t sample[28] = {0xdb, 'D', 'B', 'Q', 1,   1,   3,   0,  'i',  'd',
				   'e',  'n', 't', 'i', 't', 'y', 0,   0,  0x27, 0x10,
				   0,    0,   0,   0,   'a', 'b', 'c', 'd'};

Test(request, says_id_priority_and_deadline)
{
	struct lb_request r;

	cr_assert_eq(lb_request_parse(sample, sizeof(sample), &r), 0);
	cr_expect_eq(r.kind, LB_REQUEST_REQUEST);
	cr_expect_eq(r.priority, 3);
	cr_expect_eq(memcmp(&r.id, "identity", 8), 0);
	cr_expect_eq(r.deadline_us, 10000);
}

Test(request, anything_else_is_refused)
{
	static const struct {
		const char *what;
		unsigned int at;
		uint8_t value;
		uint32_t length;
	} rows[] = {
		{"another magic", 3, 'N', 28},
		{"another version", 4, 2, 28},
		{"a reply", 5, 3, 28},
		{"kind 0", 5, 0, 28},
		{"kind 4", 5, 4, 28},
		{"priority 5", 6, 5, 28},
		{"byte 7 set", 7, 1, 28},
		{"bytes 20 to 23 set", 23, 1, 28},
		{"shorter than a header", 0, 0xdb, 23},
		{"a cancel with bytes", 5, 2, 28},
		{"nothing", 0, 0xdb, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[28];
		struct lb_request r;

		memcpy(bytes, sample, sizeof(bytes));
		bytes[rows[i].at] = rows[i].value;
		cr_expect_eq(lb_request_parse(bytes, rows[i].length, &r), -EINVAL, "%s",
			     rows[i].what);
	}
}

Test(request, a_cancel_is_a_header_alone)
{
	uint8_t bytes[24];
	struct lb_request r;

	memcpy(bytes, sample, sizeof(bytes));
	bytes[5] = 2;
	cr_assert_eq(lb_request_parse(bytes, sizeof(bytes), &r), 0);
	cr_expect_eq(r.kind, LB_REQUEST_CANCEL);
}

Test(request, a_reply_carries_id_chunk_and_whether_more_follow)
{
	static const uint8_t want[24] = {0xdb, 'D', 'B', 'Q', 1, 3, 1, 0, 'i', 'd', 'e', 'n',
					 't',  'i', 't', 'y', 0, 0, 1, 2, 0,   0,   0,   0};
	uint8_t at[24];
	uint64_t id;

	memcpy(&id, "identity", 8);
	lb_request_write_reply(at, id, 0x102, 1);
	cr_expect_arr_eq(at, want, sizeof(want));
}

Test(request, in_a_stream_the_last_word_is_a_length)
{
	uint8_t bytes[24];
	struct lb_request r;
	uint32_t length;

	memcpy(bytes, sample, sizeof(bytes));
	memcpy(bytes + 20, (const uint8_t[]){1, 2, 3, 4}, 4);
	cr_assert_eq(lb_request_parse_stream(bytes, &r, &length), 0);
	cr_expect_eq(length, 0x01020304);
	cr_expect_eq(r.kind, LB_REQUEST_REQUEST);
	cr_expect_eq(r.priority, 3);
	cr_expect_eq(memcmp(&r.id, "identity", 8), 0);
	cr_expect_eq(r.deadline_us, 10000);
}

Test(request, in_a_stream_id_and_length_survive_all_but_a_wrong_beginning)
{
	static const struct {
		const char *what;
		unsigned int at;
		uint8_t value;
		int error;
	} rows[] = {
		{"another magic", 0, 'D', -EBADMSG},
		{"another magic, at its end", 3, 'N', -EBADMSG},
		{"another version", 4, 2, -EBADMSG},
		{"a reply", 5, 3, -EINVAL},
		{"a notice", 5, 4, -EINVAL},
		{"kind 0", 5, 0, -EINVAL},
		{"priority 5", 6, 5, -EINVAL},
		{"byte 7 set", 7, 1, -EINVAL},
		{"a cancel with bytes", 5, 2, -EINVAL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[24];
		struct lb_request r;
		uint32_t length;

		memcpy(bytes, sample, sizeof(bytes));
		bytes[23] = 9;
		bytes[rows[i].at] = rows[i].value;
		cr_expect_eq(lb_request_parse_stream(bytes, &r, &length), rows[i].error, "%s",
			     rows[i].what);
		if (rows[i].error == -EINVAL)
			cr_expect(length == 9 && memcmp(&r.id, "identity", 8) == 0, "%s",
				  rows[i].what);
	}
}

Test(request, a_stream_of_another_kind_shows_at_its_first_wrong_byte)
{
	uint8_t bytes[24];

	for (uint32_t length = 0; length <= sizeof(bytes); length++) {
		memcpy(bytes, sample, sizeof(bytes));
		cr_expect(lb_request_begins(bytes, length), "%u bytes", length);
		for (uint32_t wrong = 0; wrong < length; wrong++) {
			bytes[wrong] ^= 0x80;
			cr_expect_eq(lb_request_begins(bytes, length), wrong >= 5, "%u of %u",
				     wrong, length);
			bytes[wrong] ^= 0x80;
		}
	}
}

Test(request, replies_and_notices_of_streams)
{
	static const uint8_t reply[24] = {0xdb, 'D', 'B', 'Q', 1, 3, 1, 0, 'i', 'd', 'e', 'n',
					  't',  'i', 't', 'y', 0, 0, 1, 2, 0,   0,   3,   4};
	static const uint8_t notice[24] = {0xdb, 'D', 'B', 'Q', 1,   4,   10,  0,
					   'i',  'd', 'e', 'n', 't', 'i', 't', 'y'};
	uint8_t at[24];
	uint64_t id;

	memcpy(&id, "identity", 8);
	lb_request_write_stream_reply(at, id, 0x102, 1, 0x304);
	cr_expect_arr_eq(at, reply, sizeof(reply));
	lb_request_write_stream_notice(at, id, 10);
	cr_expect_arr_eq(at, notice, sizeof(notice));
}
