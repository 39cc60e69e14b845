/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of a TCP stream: what each framing says of bytes, however they are cut. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "framing/stream_reader.h"
#include "packet/request.h"
#include "stream_owner.h"

#define MAX_REQUEST 100

/* A row's stream: hexadecimal digits; "*N" repeats the byte before it, N times in all. */
static size_t unhex(const char *text, uint8_t out[2048])
{
	size_t n = 0;

	while (*text != '\0') {
		if (*text == ' ') {
			text++;
		} else if (*text == '*') {
			char *end;
			unsigned long times = strtoul(text + 1, &end, 10);

			cr_assert(n > 0 && n + times <= 2048);
			memset(out + n, out[n - 1], times - 1);
			n += times - 1;
			text = end;
		} else {
			char digits[3] = {text[0], text[1], 0};

			out[n++] = (uint8_t)strtoul(digits, NULL, 16);
			text += 2;
		}
	}
	return n;
}

#define MAGIC    "db444251 01"
#define REQUEST  MAGIC "01 00 00"
#define CANCEL   MAGIC "02 00 00"
#define ID(last) "00000000000000" last

struct row {
	const char *what;
	const struct stream_framing *framing;
	const char *bytes;
	const char *log;
};

static const struct row rows[] = {
	{"nothing", &stream_length, "", ""},
	{"part of a header says nothing", &stream_length, "050000", ""},
	{"a request is named before it has come", &stream_length, "05000000 61",
	 "begin 0 of 5\nextent 0: 5 from 4 at 0\nend 0 of 5\n"},
	{"one ends where the next begins", &stream_length, "02000000 6162 01000000 63",
	 "begin 0 of 2\nextent 0: 2 from 4 at 0\nend 0 of 2\n"
	 "begin 1 of 1\nextent 1: 1 from 10 at 0\nend 1 of 1\n"},
	{"one byte more than max_request", &stream_length, "65000000 61*101 64000000 62*100",
	 "refuse 0 notice 10\n"
	 "begin 1 of 100\nextent 1: 100 from 109 at 0\nend 1 of 100\n"},
	{"empty requests", &stream_length, "00000000 00000000 01000000 61",
	 "refuse 0 notice 8\nrefuse 1 notice 8\n"
	 "begin 2 of 1\nextent 2: 1 from 12 at 0\nend 2 of 1\n"},
	{"the longest that can be said", &stream_length, "ffffffff 61*1000",
	 "refuse 0 notice 10\n"},
	{"payload that looks like headers is none", &stream_length,
	 "08000000 01000000 02000000 01000000 61",
	 "begin 0 of 8\nextent 0: 8 from 4 at 0\nend 0 of 8\n"
	 "begin 1 of 1\nextent 1: 1 from 16 at 0\nend 1 of 1\n"},

	{"part of a tagged header says nothing", &stream_tagged, REQUEST ID("07") "00000000 000000",
	 ""},
	{"id, priority and deadline", &stream_tagged,
	 MAGIC "01 03 00" ID("07") "0007a120 00000002 6162",
	 "begin 0 of 2 tag 700000000000000 deadline 500000 priority 3\n"
	 "extent 0: 2 from 24 at 0\nend 0 of 2\n"},
	{"a cancel behind its request", &stream_tagged,
	 REQUEST ID("07") "00000000 00000002 6162" CANCEL ID("07") "00000000 00000000",
	 "begin 0 of 2 tag 700000000000000\nextent 0: 2 from 24 at 0\nend 0 of 2\n"
	 "cancel tag 700000000000000\n"},
	{"cancels and requests alternate", &stream_tagged,
	 CANCEL ID("01") "00000000 00000000" REQUEST ID("02") "00000000 00000001 61" CANCEL ID(
		 "03") "00000000 00000000",
	 "cancel tag 100000000000000\n"
	 "begin 0 of 1 tag 200000000000000\nextent 0: 1 from 48 at 0\nend 0 of 1\n"
	 "cancel tag 300000000000000\n"},
	{"a cancel with bytes is refused, and they are skipped", &stream_tagged,
	 CANCEL ID("01") "00000000 00000002 6162" REQUEST ID("02") "00000000 00000001 61",
	 "refuse 0 notice 8 tag 100000000000000\n"
	 "begin 1 of 1 tag 200000000000000\nextent 1: 1 from 50 at 0\nend 1 of 1\n"},
	{"one byte more than max_request, tagged", &stream_tagged,
	 REQUEST ID("01") "00000000 00000065 61*101" REQUEST ID("02") "00000000 00000064 61*100",
	 "refuse 0 notice 10 tag 100000000000000\n"
	 "begin 1 of 100 tag 200000000000000\nextent 1: 100 from 149 at 0\nend 1 of 100\n"},
	{"an empty tagged request", &stream_tagged,
	 REQUEST ID("01") "00000000 00000000" REQUEST ID("02") "00000000 00000001 61",
	 "refuse 0 notice 8 tag 100000000000000\n"
	 "begin 1 of 1 tag 200000000000000\nextent 1: 1 from 48 at 0\nend 1 of 1\n"},
	{"kind, priority and byte 7 cost one request each", &stream_tagged,
	 MAGIC "03 00 00" ID("01") "00000000 00000001 61" MAGIC "01 05 00" ID(
		 "02") "00000000 00000001 61" MAGIC
		       "01 00 01" ID("03") "00000000 00000001 61" REQUEST ID(
			       "04") "00000000 00000001 61",
	 "refuse 0 notice 8 tag 100000000000000\nrefuse 1 notice 8 tag 200000000000000\n"
	 "refuse 2 notice 8 tag 300000000000000\n"
	 "begin 3 of 1 tag 400000000000000\nextent 3: 1 from 99 at 0\nend 3 of 1\n"},
	{"a bad magic ends the stream", &stream_tagged,
	 REQUEST ID("01") "00000000 00000001 61 db444253 01 01 00 00" ID(
		 "02") "00000000 00000001 61" REQUEST ID("02") "00000000 00000001 61",
	 "begin 0 of 1 tag 100000000000000\nextent 0: 1 from 24 at 0\nend 0 of 1\n"
	 "refuse 1 notice 8\nclose\n"},
	{"another version ends the stream", &stream_tagged, "db444251 02",
	 "refuse 0 notice 8\nclose\n"},
	{"another protocol: its first byte is enough", &stream_tagged, "47",
	 "refuse 0 notice 8\nclose\n"},
};

/* Shows <bytes> cut at <cut>, ascending, and returns the log, which the caller frees. */
static char *log_of(const struct stream_framing *framing, const uint8_t *bytes, size_t n,
		    const size_t *cut, size_t cuts, unsigned int max)
{
	struct stream_owner o;
	size_t at = 0;
	char *log;

	stream_owner_init(&o, framing, MAX_REQUEST);
	for (size_t i = 0; i < cuts; at = cut[i++])
		stream_owner_take(&o, bytes + at, cut[i] - at, max);
	stream_owner_take(&o, bytes + at, n - at, max);
	log = strdup(o.log);
	stream_owner_fini(&o);
	return log;
}

static void expect_log(const struct row *row, const uint8_t *bytes, size_t n, const size_t *cut,
		       size_t cuts, unsigned int max)
{
	char *log = log_of(row->framing, bytes, n, cut, cuts, max);

	cr_expect_str_eq(log, row->log, "%s: %zu cuts, first %zu, %u actions at once", row->what,
			 cuts, cuts > 0 ? cut[0] : 0, max);
	free(log);
}

Test(lb_stream, a_stream_becomes_requests)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[2048];

		expect_log(&rows[i], bytes, unhex(rows[i].bytes, bytes), NULL, 0, 64);
	}
}

Test(lb_stream, wherever_it_is_cut_the_requests_are_the_same)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[2048];
		size_t n = unhex(rows[i].bytes, bytes), every[2048];

		for (size_t cut = 0; cut <= n; cut++)
			expect_log(&rows[i], bytes, n, &cut, 1, 64);
		for (size_t k = 0; k < n; k++)
			every[k] = k;
		expect_log(&rows[i], bytes, n, every, n, 64);
		for (size_t a = 0; n < 128 && a <= n; a++)
			for (size_t b = a; b <= n; b++)
				expect_log(&rows[i], bytes, n, (size_t[]){a, b}, 2, 5);
	}
}

Test(lb_stream, however_few_actions_it_takes_the_requests_are_the_same)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[2048];
		size_t n = unhex(rows[i].bytes, bytes);

		for (unsigned int max = STREAM_ACTIONS_MIN; max < 12; max++)
			expect_log(&rows[i], bytes, n, NULL, 0, max);
	}
}

/* So an owner without a credit can stop behind each request. */
Test(lb_stream, the_least_room_for_actions_stops_behind_one_header)
{
	static const struct stream_settings settings = {.max_request = MAX_REQUEST};
	struct stream_action actions[STREAM_ACTIONS_MIN];
	struct stream s = {0};
	uint8_t bytes[2048];
	uint32_t n = (uint32_t)unhex("01000000 61 01000000 62 00000000", bytes);

	cr_expect_eq(stream_length.read(&s, &settings, bytes, n, actions, STREAM_ACTIONS_MIN - 1),
		     0);
	cr_expect_eq(s.position, 0);
	cr_expect_eq(stream_length.read(&s, &settings, bytes, n, actions, STREAM_ACTIONS_MIN), 1);
	cr_expect_eq(actions[0].kind, STREAM_REQUEST);
	cr_expect_eq(s.position, 5);
	cr_expect_eq(
		stream_length.read(&s, &settings, bytes + 5, n - 5, actions, STREAM_ACTIONS_MIN),
		1);
	cr_expect_eq(actions[0].request, 1);
	cr_expect_eq(actions[0].whole.position, 9);
	cr_expect_eq(s.position, 10);
	cr_expect_eq(
		stream_length.read(&s, &settings, bytes + 10, n - 10, actions, STREAM_ACTIONS_MIN),
		1);
	cr_expect_eq(actions[0].kind, STREAM_REFUSE);
	cr_expect_eq(actions[0].refuse.reason, LB_DROP_EMPTY_REQUEST);
}

Test(lb_stream, an_idle_connection_keeps_little)
{
	cr_expect_leq(sizeof(struct stream), 64);
	cr_expect_leq(sizeof(struct stream_action), 48);
}

/* Terabytes of requests, of which only the headers are shown. */
Test(lb_stream, positions_go_beyond_32_bits)
{
	static const uint8_t header[4] = {0xff, 0xff, 0xff, 0xff};
	struct stream_owner o;

	stream_owner_init(&o, &stream_length, UINT32_MAX);
	for (unsigned int i = 0; i < 1000; i++)
		stream_owner_take_headers(&o, header, sizeof(header), STREAM_ACTIONS_MIN);
	cr_expect_eq(o.stream.position, 1000 * (UINT64_C(4) + UINT32_MAX));
	cr_expect_eq(o.stream.requests, 1000);
	stream_owner_fini(&o);
}

static const struct {
	const char *what;
	const struct stream_framing *framing;
	struct stream_reply reply;
	const char *head;
} replies[] = {
	{"a reply", &stream_length, {.length = 0x102}, "02010000 00000000"},
	{"an empty reply", &stream_length, {.length = 0}, "00000000 00000000"},
	{"a chunk", &stream_length, {.length = 5, .chunk = 1, .more = true}, "05000000 00010000"},
	{"the last chunk", &stream_length, {.length = 5, .chunk = 2}, "05000000 00000000"},
	{"a notice", &stream_length, {.notice = LB_NOTICE_TOO_LARGE}, "00000000 0a000000"},
	{"a notice behind chunks",
	 &stream_length,
	 {.notice = LB_NOTICE_WORKER_LOST, .chunk = 3},
	 "00000000 03000000"},
	{"a tagged reply",
	 &stream_tagged,
	 {.tag = 0x8877665544332211, .length = 0x102},
	 MAGIC "03 00 00 1122334455667788 00000000 00000102"},
	{"a tagged chunk",
	 &stream_tagged,
	 {.tag = 1, .length = 5, .chunk = 0x203, .more = true},
	 MAGIC "03 01 00 0100000000000000 00000203 00000005"},
	{"a tagged notice",
	 &stream_tagged,
	 {.tag = 1, .notice = LB_NOTICE_BUSY},
	 MAGIC "04 01 00 0100000000000000 00000000 00000000"},
};

Test(lb_stream, answers_have_their_heads)
{
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		const struct stream_framing *framing = replies[i].framing;
		struct stream_reply reply = replies[i].reply;
		struct stream s = {0};
		uint8_t want[2048], *head = malloc(framing->head_max);
		struct stream_piece piece = framing->reply(&s, &reply, head);

		cr_assert_eq(piece.head, unhex(replies[i].head, want), "%s", replies[i].what);
		cr_expect_arr_eq(head, want, piece.head, "%s", replies[i].what);
		cr_expect_eq(piece.bytes, reply.length, "%s", replies[i].what);
		cr_expect_eq(reply.taken, reply.length, "%s", replies[i].what);
		cr_expect(piece.last, "%s", replies[i].what);
		free(head);
	}
}

Test(lb_stream, answers_go_in_the_order_of_requests_where_nothing_tells_them_apart)
{
	cr_expect(stream_length.in_order);
	cr_expect_not(stream_tagged.in_order);
}

/*
 * A framing like HTTP/2: frames with a kind, a stream number and a length; interleaved pieces of
 * requests, whose size only their end tells; frames that are answered at once; replies in pieces
 * with something behind the last; state of its own. It tests that the interface can express all of
 * these.
 */
struct frames {
	bool open[4];
	uint32_t request[4];
	uint64_t named[4];
	uint8_t left;    /* bytes of a frame that is converted, not placed */
	uint8_t of;      /* the stream that they belong to */
	uint8_t made[8]; /* from them */
};

static void frames_refuse(struct stream_reader *r, struct frames *f, uint8_t of)
{
	struct stream_action *a = &r->actions[r->n++];

	f->open[of] = false;
	*a = (struct stream_action){.kind = STREAM_REFUSE,
				    .request = f->request[of],
				    .refuse = {.tag = of,
					       .notice = LB_NOTICE_TOO_LARGE,
					       .reason = LB_DROP_REQUEST_TOO_LARGE}};
}

static void frames_header(struct stream_reader *r, struct frames *f, const uint8_t *header)
{
	uint8_t kind = header[0], of = header[1] & 3, length = header[2];
	struct stream_action *a = &r->actions[r->n];

	if (kind == 'b') {
		f->open[of] = true;
		f->request[of] = r->stream->requests++;
		f->named[of] = 0;
		r->n++;
		*a = (struct stream_action){.kind = STREAM_BEGIN,
					    .request = f->request[of],
					    .begin = {.size = STREAM_SIZE_UNKNOWN, .tag = of}};
	} else if (kind == 'd' && f->open[of] && f->named[of] + length > MAX_REQUEST) {
		frames_refuse(r, f, of);
	} else if (kind == 'd' && f->open[of]) {
		r->n++;
		*a = (struct stream_action){.kind = STREAM_EXTENT,
					    .request = f->request[of],
					    .extent = {.position = r->stream->position,
						       .offset = f->named[of],
						       .length = length}};
		f->named[of] += length;
	} else if (kind == 'e' && f->open[of]) {
		f->open[of] = false;
		r->n++;
		*a = (struct stream_action){
			.kind = STREAM_END, .request = f->request[of], .size = f->named[of]};
	} else if (kind == 'c') {
		f->left = length;
		f->of = of;
		return;
	} else if (kind == 'p') {
		f->made[0] = 'P';
		r->n++;
		*a = (struct stream_action){.kind = STREAM_SEND,
					    .bytes = {.at = f->made, .length = 1}};
	}
	r->stream->position += length;
}

static unsigned int frames_read(struct stream *s, const struct stream_settings *settings,
				const uint8_t *bytes, uint32_t length,
				struct stream_action *actions, unsigned int max)
{
	struct stream_reader r = stream_reader_of(s, bytes, length, actions, max);
	/* The reader keeps a header where the state of a larger framing has its pointer. */
	static struct frames frames;
	const uint8_t *at;

	if (s->position == 0 && s->got == 0)
		frames = (struct frames){0};
	while ((at = stream_reader_header(&r, frames.left > 0 ? 1 : 3)) != NULL) {
		if (frames.left == 0) {
			frames_header(&r, &frames, at);
			continue;
		}
		frames.left--;
		frames.made[0] = (uint8_t)(*at - '0');
		actions[r.n++] =
			(struct stream_action){.kind = STREAM_PRODUCE,
					       .request = frames.request[frames.of],
					       .bytes = {.at = frames.made,
							 .offset = frames.named[frames.of]++,
							 .length = 1}};
		/* <made> holds one */
		break;
	}
	return r.n;
}

/* At most 4 bytes per piece, and '.' behind the last chunk; the stream of a cancel hears nothing.
 */
static struct stream_piece frames_reply(struct stream *s, struct stream_reply *reply, uint8_t *at)
{
	struct stream_piece piece = {0};

	if (reply->notice == LB_NOTICE_CANCELLED)
		return (struct stream_piece){.last = true};
	piece.bytes = reply->length - reply->taken < 4 ? reply->length - reply->taken : 4;
	reply->taken += piece.bytes;
	if (piece.bytes > 0) {
		at[piece.head++] = (uint8_t)('0' + reply->tag);
		at[piece.head++] = (uint8_t)('0' + piece.bytes);
		piece.last = reply->more && reply->taken == reply->length;
	} else {
		at[piece.head++] = '.';
		piece.last = true;
	}
	return piece;
}

static const struct stream_framing frames_framing = {
	.name = "frames", .head_max = 2, .read = frames_read, .reply = frames_reply};

static const struct row frames_rows[] = {
	{"requests interleave", &frames_framing,
	 "620000 620100 640003 aaaaaa 640102 bbbb 640001 aa 650000 640101 bb 650100",
	 "begin 0 of unknown size\nbegin 1 of unknown size tag 1\n"
	 "extent 0: 3 from 9 at 0\nextent 1: 2 from 15 at 0\nextent 0: 1 from 20 at 3\n"
	 "end 0 of 4\nextent 1: 1 from 27 at 2\nend 1 of 3\n"},
	{"converted numbers among placed bytes", &frames_framing,
	 "620000 640001 aa 630003 313233 640001 aa 650000",
	 "begin 0 of unknown size\nextent 0: 1 from 6 at 0\n"
	 "produce 0: 01\nproduce 0: 02\nproduce 0: 03\n"
	 "extent 0: 1 from 16 at 4\nend 0 of 5\n"},
	{"an open request grows too large", &frames_framing,
	 "620100 620000 640164 aa*100 640101 aa 640001 bb 650000 640101 aa",
	 "begin 0 of unknown size tag 1\nbegin 1 of unknown size\n"
	 "extent 0: 100 from 9 at 0\nrefuse 0 notice 10 tag 1\n"
	 "extent 1: 1 from 116 at 0\nend 1 of 1\n"},
	{"a ping between", &frames_framing, "620000 640001 aa 700000 650000",
	 "begin 0 of unknown size\nextent 0: 1 from 6 at 0\nsend 0: 50\nend 0 of 1\n"},
};

Test(lb_stream, the_interface_takes_frames_that_interleave)
{
	for (size_t i = 0; i < sizeof(frames_rows) / sizeof(frames_rows[0]); i++) {
		uint8_t bytes[2048];
		size_t n = unhex(frames_rows[i].bytes, bytes);

		for (size_t cut = 0; cut <= n; cut++)
			for (unsigned int max = STREAM_ACTIONS_MIN; max < 7; max++)
				expect_log(&frames_rows[i], bytes, n, &cut, 1, max);
	}
}

/* Writes the bytes that the client gets of a chunk. */
static void send_chunk(const struct stream_framing *framing, struct stream_reply reply,
		       const char *bytes, char *out)
{
	struct stream s = {0};
	struct stream_piece piece;

	do {
		uint32_t taken = reply.taken;

		piece = framing->reply(&s, &reply, (uint8_t *)out);
		cr_assert_leq(piece.head, framing->head_max);
		cr_assert_eq(reply.taken - taken, piece.bytes);
		memcpy(out + piece.head, bytes + taken, piece.bytes);
		out += piece.head + piece.bytes;
	} while (!piece.last);
	*out = '\0';
}

Test(lb_stream, the_interface_takes_replies_in_pieces)
{
	char out[64];

	send_chunk(&frames_framing, (struct stream_reply){.tag = 1, .length = 6}, "abcdef", out);
	cr_expect_str_eq(out, "14abcd12ef.");
	send_chunk(&frames_framing, (struct stream_reply){.tag = 2, .length = 5, .more = true},
		   "abcde", out);
	cr_expect_str_eq(out, "24abcd21e");
	send_chunk(&frames_framing, (struct stream_reply){.notice = LB_NOTICE_CANCELLED}, "", out);
	cr_expect_str_eq(out, "");
}
