/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection, segment by segment: what comes in, what must go out. Numbers are relative to both
 * ends' SYNs, as tcpdump prints them. All times are ms.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "pools.h"
#include "tcp/congestion.h"
#include "tcp/connection.h"
#include "tcp/sent.h"

#define THEIRS 0xfffffff0u /* their numbers wrap early */
#define OURS   0x7ffffff0u
#define MSS    1000
#define WINDOW 60000

static struct tcp_settings settings;
static struct tcp_stack stack;
static struct tcp_connection c;
static struct tcp_received got;
static void *pools;
static struct tcp_header out;

static void row_init(void)
{
	settings = tcp_settings_default;
	settings.congestion = &tcp_reno;
	settings.scale = 0;
	pools = pools_init(&stack, &settings, 2, 100, 1);
	stack.now_ms = 5000;
	stack.now_us = 5000000;
}

static void row_fini(void)
{
	tcp_release(&stack, &c);
	free(pools);
}

TestSuite(tcp_rows, .init = row_init, .fini = row_fini);

static uint8_t row_flags(const char *text)
{
	static const char letters[] = "FSRP.UEC"; /* as bits 0x01, 0x02 ... */
	uint8_t flags = 0;

	for (; *text != '\0'; text++)
		flags |= 1 << (strchr(letters, *text) - letters);
	return flags;
}

static void row_pass(uint32_t ms)
{
	stack.now_ms += ms;
	stack.now_us += ms * 1000;
}

static struct tcp_header row_header(const char *flags, uint32_t seq, uint32_t ack, uint32_t length)
{
	return (struct tcp_header){
		.seq = THEIRS + seq,
		.ack = OURS + ack,
		.length = length,
		.window = WINDOW,
		.flags = row_flags(flags),
		.scale = TCP_SCALE_NONE,
	};
}

static void row_take(const struct tcp_header *h)
{
	tcp_receive(&stack, &c, h, false, &got);
}

/* A segment that comes in. */
static void in(const char *flags, uint32_t seq, uint32_t ack, uint32_t length)
{
	struct tcp_header h = row_header(flags, seq, ack, length);

	row_take(&h);
}

static void in_window(uint32_t seq, uint32_t ack, uint16_t window)
{
	struct tcp_header h = row_header(".", seq, ack, 0);

	h.window = window;
	row_take(&h);
}

static void in_sack(uint32_t ack, uint32_t from, uint32_t to, uint32_t from2, uint32_t to2)
{
	struct tcp_header h = row_header(".", 1, ack, 0);

	h.sack[h.n_sacks++] = (struct tcp_range){OURS + from, OURS + to};
	if (from2 != to2)
		h.sack[h.n_sacks++] = (struct tcp_range){OURS + from2, OURS + to2};
	row_take(&h);
}

/* Expects this segment as the next one that goes out. */
static void goes(const char *flags, uint32_t seq, uint32_t ack, uint32_t length)
{
	cr_assert(tcp_next(&stack, &c, &out), "nothing goes out");
	cr_expect_eq(out.flags & ~TCP_BIT_PSH, row_flags(flags), "flags %02x", out.flags);
	cr_expect_eq(out.seq - OURS, seq, "seq %u", out.seq - OURS);
	if (out.flags & TCP_BIT_ACK)
		cr_expect_eq(out.ack - THEIRS, ack, "ack %u", out.ack - THEIRS);
	cr_expect_eq(out.length, length, "length %u", out.length);
}

static void nothing(void)
{
	cr_expect_not(tcp_next(&stack, &c, &out), "flags %02x seq %u length %u", out.flags,
		      out.seq - OURS, out.length);
}

static void goes_sack(uint32_t from, uint32_t to)
{
	cr_assert_gt(out.n_sacks, 0);
	cr_expect_eq(out.sack[0].from - THEIRS, from, "from %u", out.sack[0].from - THEIRS);
	cr_expect_eq(out.sack[0].to - THEIRS, to, "to %u", out.sack[0].to - THEIRS);
}

static void row_open_with(bool sack, bool timestamps, uint32_t window)
{
	struct tcp_header syn = row_header("S", 0, 0, 0);

	syn.mss = MSS;
	syn.sack_permitted = sack;
	syn.has_timestamp = timestamps;
	syn.ts_value = 100;
	tcp_open(&stack, &c, &syn, 1460, window, OURS, 0);
	goes("S.", 0, 1, 0);
	cr_expect_eq(out.has_timestamp, timestamps);
	cr_expect_eq(out.ts_echo, timestamps ? 100 : 0);
	nothing();
}

static void row_open(void)
{
	row_open_with(true, false, WINDOW);
	row_pass(10);
	in(".", 1, 1, 0);
	cr_expect(got.established);
	nothing();
}

/* We send <n> full segments, which have not arrived yet. */
static void row_send(unsigned int n)
{
	uint32_t first = c.snd_nxt - OURS;

	tcp_queue(&c, n * MSS);
	for (unsigned int i = 0; i < n; i++)
		goes(".", first + i * MSS, 1, MSS);
	nothing();
}

/* Runs the clock to the next timer. */
static void row_timer(void)
{
	uint32_t at = 0;

	cr_assert(tcp_due(&c, &at), "no timer runs");
	row_pass(at - stack.now_ms);
	tcp_timer(&stack, &c);
}

/* --- RFC 9293: opening and closing --------------------------------------------------------------
 */

Test(tcp_rows, syn_ack_goes_again_and_then_never)
{
	row_open_with(true, false, WINDOW);
	for (unsigned int i = 0; i < settings.syn_retries; i++) {
		row_timer();
		goes("S.", 0, 1, 0);
	}
	row_timer();
	nothing();
	cr_expect_eq(c.state, TCP_CLOSED);
}

Test(tcp_rows, a_syn_that_comes_again_is_answered_again)
{
	struct tcp_header syn = row_header("S", 0, 0, 0);

	row_open_with(true, false, WINDOW);
	row_take(&syn);
	goes("S.", 0, 1, 0);
	nothing();
}

Test(tcp_rows, handshake_with_a_wrong_number_is_refused_and_goes_on)
{
	row_open_with(true, false, WINDOW);
	in(".", 1, 7, 0);
	cr_expect_eq(got.refusal, TCP_REFUSAL_HANDSHAKE);
	nothing(); /* the owner resets the sender */
	cr_expect_eq(c.state, TCP_SYN_RECEIVED);
	in(".", 1, 1, 0);
	cr_expect(got.established);
	cr_expect_eq(c.state, TCP_ESTABLISHED);
}

Test(tcp_rows, data_may_come_with_the_last_of_the_handshake)
{
	row_open_with(true, false, WINDOW);
	in(".", 1, 1, 100);
	cr_expect(got.established);
	cr_expect_eq(got.n_new, 1);
	cr_expect_eq(got.advanced, 100);
}

Test(tcp_rows, client_closes_first)
{
	row_open();
	in("F.", 1, 1, 10);
	cr_expect(got.finished);
	cr_expect_eq(got.advanced, 10);
	goes(".", 1, 12, 0);
	cr_expect_eq(c.state, TCP_CLOSE_WAIT);
	tcp_queue(&c, 20);
	tcp_close(&c);
	goes("F.", 1, 12, 20);
	cr_expect_eq(c.state, TCP_LAST_ACK);
	in(".", 12, 22, 0);
	cr_expect(got.closed);
	cr_expect_eq(got.acked, 20);
	cr_expect_eq(c.state, TCP_CLOSED);
}

Test(tcp_rows, we_close_first)
{
	row_open();
	tcp_close(&c);
	goes("F.", 1, 1, 0);
	in(".", 1, 2, 0);
	cr_expect_eq(c.state, TCP_FIN_WAIT_2);
	in(".", 1, 2, 50); /* its half stays open */
	cr_expect_eq(got.advanced, 50);
	in("F.", 51, 2, 0);
	cr_expect(got.closed);
	cr_expect_eq(c.state, TCP_TIME_WAIT);
	goes(".", 2, 52, 0);
}

Test(tcp_rows, fin_waits_for_memory)
{
	struct tcp_active *actives = stack.actives;

	row_open();
	stack.actives = NULL;
	tcp_close(&c);
	nothing();
	row_timer();
	nothing();
	stack.actives = actives;
	row_timer();
	goes("F.", 1, 1, 0);
	in(".", 1, 2, 0);
	cr_expect_eq(c.state, TCP_FIN_WAIT_2);
}

Test(tcp_rows, both_close_at_once)
{
	row_open();
	tcp_close(&c);
	goes("F.", 1, 1, 0);
	in("F.", 1, 1, 0);
	goes(".", 2, 2, 0);
	cr_expect_eq(c.state, TCP_CLOSING);
	in(".", 2, 2, 0);
	cr_expect_eq(c.state, TCP_TIME_WAIT);
}

Test(tcp_rows, fin_wait_2_ends)
{
	row_open();
	tcp_close(&c);
	goes("F.", 1, 1, 0);
	in(".", 1, 2, 0);
	row_pass(settings.fin_wait_ms);
	cr_expect(tcp_timer(&stack, &c));
	cr_expect_eq(c.state, TCP_CLOSED);
}

Test(tcp_rows, fin_before_its_data)
{
	row_open();
	in("F.", 101, 1, 50);
	cr_expect_not(got.finished);
	goes(".", 1, 1, 0);
	goes_sack(101, 151);
	in(".", 1, 1, 100);
	cr_expect(got.finished);
	cr_expect_eq(got.advanced, 150);
	goes(".", 1, 152, 0);
	in("F.", 101, 1, 50); /* again */
	cr_expect_eq(got.n_new, 0);
	cr_expect_not(got.finished);
	goes(".", 1, 152, 0);
}

Test(tcp_rows, bytes_behind_the_fin_are_forgotten)
{
	struct tcp_active *actives = stack.actives;

	row_open();
	in(".", 111, 1, 50);
	in("F.", 1, 1, 100);
	cr_expect(got.finished);
	in(".", 102, 1, 9);
	cr_expect_eq(got.n_new, 0);
	goes(".", 1, 102, 0);
	cr_expect_eq(out.n_sacks, 0);
	cr_expect_eq(stack.actives, actives);
	in("F.", 51, 1, 10); /* another end, inside the bytes that came */
	cr_expect_not(got.finished);
	cr_expect_eq(c.state, TCP_CLOSE_WAIT);
}

Test(tcp_rows, abort_sends_a_reset)
{
	row_open();
	in(".", 1, 1, 10);
	tcp_abort(&c);
	goes("R.", 1, 11, 0);
	cr_expect_eq(c.state, TCP_CLOSED);
	nothing();
}

Test(tcp_rows, nothing_follows_a_reset)
{
	row_open();
	in(".", 1, 1, 10);
	tcp_acknowledge(&c); /* one is owed */
	tcp_abort(&c);
	goes("R.", 1, 11, 0);
	nothing();
}

Test(tcp_rows, a_reset_of_the_client_gets_no_answer)
{
	row_open();
	in(".", 1, 1, 10);
	tcp_acknowledge(&c);
	tcp_abort(&c); /* ours has not left */
	in("R.", 11, 1, 0);
	cr_expect(got.reset);
	nothing();
}

Test(tcp_rows, bytes_behind_the_client_s_reset_are_not_taken)
{
	row_open();
	in("R.", 1, 1, 0);
	cr_expect(got.reset);
	in(".", 1, 1, 10);
	cr_expect_eq(got.refusal, TCP_REFUSAL_ENDED);
	cr_expect_eq(got.n_new, 0);
	nothing();
}

Test(tcp_rows, segments_to_nobody)
{
	struct tcp_header h = row_header(".", 100, 200, 5), reset;

	cr_assert(tcp_reset_for(&h, &reset));
	cr_expect_eq(reset.flags, TCP_BIT_RST);
	cr_expect_eq(reset.seq, OURS + 200);
	h = row_header("S", 100, 0, 0);
	cr_assert(tcp_reset_for(&h, &reset));
	cr_expect_eq(reset.flags, TCP_BIT_RST | TCP_BIT_ACK);
	cr_expect_eq(reset.ack, THEIRS + 101);
	h = row_header("R", 100, 0, 0);
	cr_expect_not(tcp_reset_for(&h, &reset));
}

/* --- RFC 5961 -----------------------------------------------------------------------------------
 */

Test(tcp_rows, reset_at_the_next_number)
{
	row_open();
	in("R", 1, 0, 0);
	cr_expect(got.reset);
	cr_expect(got.closed);
}

Test(tcp_rows, reset_elsewhere_in_the_window_is_challenged)
{
	row_open();
	in("R", 2, 0, 0);
	cr_expect_not(got.reset);
	goes(".", 1, 1, 0);
	in("R", 3, 0, 0); /* but not again so soon */
	nothing();
	in("R", WINDOW + 2, 0, 0);
	nothing();
	cr_expect_eq(c.state, TCP_ESTABLISHED);
}

Test(tcp_rows, syn_in_the_window_is_challenged)
{
	row_open();
	in("S", 1, 0, 0);
	goes(".", 1, 1, 0);
	row_pass(1000);
	in("S", 70000, 0, 0);
	goes(".", 1, 1, 0);
	cr_expect_eq(c.state, TCP_ESTABLISHED);
}

Test(tcp_rows, data_with_an_impossible_acknowledgement)
{
	row_open();
	in(".", 1, 2, 10); /* acknowledges bytes that were never sent */
	cr_expect_eq(got.refusal, TCP_REFUSAL_ACK);
	cr_expect_eq(got.n_new, 0);
	goes(".", 1, 1, 0);
	row_pass(1000);
	in(".", 1, (uint32_t)0 - WINDOW, 10); /* acknowledges bytes of long ago */
	cr_expect_eq(got.refusal, TCP_REFUSAL_ACK);
	goes(".", 1, 1, 0);
}

/* --- receiving ----------------------------------------------------------------------------------
 */

Test(tcp_rows, acknowledgements_wait_for_a_reply)
{
	row_open();
	in(".", 1, 1, 10);
	nothing();
	tcp_queue(&c, 30);
	goes(".", 1, 11, 30);
	nothing();
	in(".", 11, 31, 10);
	row_timer();
	goes(".", 31, 21, 0);
	in(".", 21, 31, MSS); /* every second full segment at once */
	nothing();
	in(".", 21 + MSS, 31, MSS);
	goes(".", 31, 21 + 2 * MSS, 0);
	in(".", 21 + 2 * MSS, 31, 10);
	tcp_acknowledge(&c); /* the owner waits for more */
	goes(".", 31, 31 + 2 * MSS, 0);
}

Test(tcp_rows, every_order_of_five_segments)
{
	unsigned int order[5], place[5];

	for (unsigned int n = 0; n < 120; n++) {
		uint32_t base = c.rcv_nxt - THEIRS, total = 0;
		unsigned int rest = n;

		if (n == 0) {
			row_open();
			base = 1;
		}
		for (unsigned int i = 0; i < 5; i++)
			place[i] = i;
		for (unsigned int i = 5, k; i > 0; i--, rest /= i + 1) {
			k = rest % i;
			order[5 - i] = place[k];
			memmove(place + k, place + k + 1, (i - k - 1) * sizeof(place[0]));
		}
		tcp_grant(&c, WINDOW);
		for (unsigned int i = 0; i < 5; i++) {
			in(".", base + order[i] * 100, 1, 100);
			cr_assert_eq(got.n_new, 1);
			cr_assert_eq(got.new[0].seq - THEIRS, base + order[i] * 100);
			total += got.advanced;
			in(".", base + order[i] * 100, 1, 100);
			cr_assert_eq(got.n_new, 0);
		}
		cr_assert_eq(total, 500);
		while (tcp_next(&stack, &c, &out))
			;
	}
}

Test(tcp_rows, overlaps_are_cut_on_both_sides)
{
	row_open();
	in(".", 101, 1, 100);
	in(".", 301, 1, 100);
	in(".", 51, 1, 500); /* three gaps in one */
	cr_assert_eq(got.n_new, 3);
	cr_expect_eq(got.new[0].offset, 0);
	cr_expect_eq(got.new[0].length, 50);
	cr_expect_eq(got.new[1].offset, 150);
	cr_expect_eq(got.new[1].length, 100);
	cr_expect_eq(got.new[2].offset, 350);
	cr_expect_eq(got.new[2].length, 150);
	in(".", 1, 1, 60);
	cr_expect_eq(got.advanced, 550);
	cr_expect_eq(got.new[0].length, 50);
}

Test(tcp_rows, duplicates_are_reported_once)
{
	row_open();
	in(".", 1, 1, 100);
	in(".", 1, 1, 100);
	goes(".", 1, 101, 0);
	goes_sack(1, 101);
	in(".", 301, 1, 100);
	goes(".", 1, 101, 0);
	cr_expect_eq(out.n_sacks, 1);
	goes_sack(301, 401);
	in(".", 301, 1, 100);
	goes(".", 1, 101, 0);
	cr_expect_eq(out.n_sacks, 2); /* RFC 2883, 4.2: the duplicate, then the range it is in */
	goes_sack(301, 401);
}

Test(tcp_rows, the_newest_block_is_first)
{
	row_open();
	in(".", 201, 1, 100);
	in(".", 601, 1, 100);
	in(".", 401, 1, 100);
	goes(".", 1, 1, 0);
	cr_assert_eq(out.n_sacks, 3);
	goes_sack(401, 501);
	cr_expect_eq(out.sack[1].from - THEIRS, 601);
	cr_expect_eq(out.sack[2].from - THEIRS, 201);
}

Test(tcp_rows, the_window_closes_and_opens)
{
	row_open_with(true, false, 3000);
	in(".", 1, 1, 0);
	in(".", 1, 1, MSS);
	in(".", 1001, 1, MSS);
	goes(".", 1, 2001, 0);
	cr_expect_eq(out.window, 1000);
	in(".", 2001, 1, MSS);
	row_timer();
	goes(".", 1, 3001, 0);
	cr_expect_eq(out.window, 0);
	in(".", 3001, 1, 1); /* a probe */
	cr_expect_eq(got.n_new, 0);
	goes(".", 1, 3001, 0);
	cr_expect_eq(out.n_sacks, 0);
	tcp_grant(&c, 500); /* not worth a segment */
	nothing();
	tcp_grant(&c, 3000);
	goes(".", 1, 3001, 0);
	cr_expect_eq(out.window, 3000);
	tcp_grant(&c, 100); /* the offered window must not shrink */
	in(".", 3001, 1, MSS);
	row_timer();
	goes(".", 1, 4001, 0);
	cr_expect_eq(out.window, 2000);
}

Test(tcp_rows, a_reset_behind_a_probe_is_challenged)
{
	row_open();
	in(".", 1, 1, 0);
	in(".", 0, 1, 0); /* a keepalive */
	goes(".", 1, 1, 0);
	row_pass(10);
	in("R", 500, 0, 0);
	goes(".", 1, 1, 0);
	in("R", 500, 0, 0);
	nothing();
	in(".", 0, 1, 0);
	nothing();
	row_pass(500);
	in("R", 500, 0, 0);
	goes(".", 1, 1, 0);
	in("R", 1, 0, 0);
	cr_expect_eq(c.state, TCP_CLOSED);
}

/* The segment that tells of it may be lost, and a client asks less and less often. */
Test(tcp_rows, an_opened_window_is_told_again_until_something_comes)
{
	row_open_with(true, false, 1000);
	in(".", 1, 1, 0);
	in(".", 1, 1, MSS);
	row_timer();
	goes(".", 1, 1001, 0);
	cr_expect_eq(out.window, 0);
	tcp_grant(&c, 3000);
	goes(".", 1, 1001, 0);
	cr_expect_eq(out.window, 3000);
	in(".", 1001, 1, 0); /* says nothing of the window */
	for (uint32_t i = 0; i < 7; i++) {
		uint32_t began = stack.now_ms;

		row_timer();
		cr_expect_eq(stack.now_ms - began, i < 4 ? 200 : 1000);
		goes(".", 1, 1001, 0);
		cr_expect_eq(out.window, 3000);
	}
	nothing();
	cr_expect_eq(stack.counters.windows_again, 7);
	row_timer();
	cr_expect_gt(stack.now_ms - c.sent_ms, 10000, "nothing before the keepalive");
}

Test(tcp_rows, a_client_that_has_closed_is_not_told_of_its_window)
{
	row_open_with(true, false, 1000);
	in(".", 1, 1, 0);
	in("F.", 1, 1, MSS);
	goes(".", 1, 1002, 0);
	cr_expect_eq(out.window, 0);
	tcp_grant(&c, 3000);
	nothing();
	tcp_queue(&c, 10);
	goes(".", 1, 1002, 10);
	cr_expect_eq(c.reopened, 0);
	in(".", 1002, 11, 0);
	row_timer();
	cr_expect_eq(stack.counters.windows_again, 0);
	cr_expect_gt(stack.now_ms - c.sent_ms, 10000, "nothing before the keepalive");
}

Test(tcp_rows, an_opened_window_that_is_used_is_not_told_again)
{
	row_open_with(true, false, 1000);
	in(".", 1, 1, 0);
	in(".", 1, 1, MSS);
	row_timer();
	goes(".", 1, 1001, 0);
	tcp_grant(&c, 3000);
	goes(".", 1, 1001, 0);
	row_pass(100);
	in(".", 1001, 1, 10);
	row_timer(); /* the delayed acknowledgement */
	goes(".", 1, 1011, 0);
	cr_expect_eq(c.timers, 1u << TCP_TIMER_LIFE);
	cr_expect_eq(stack.counters.windows_again, 0);
}

Test(tcp_rows, bytes_beyond_the_window_are_left)
{
	row_open_with(true, false, 1500);
	in(".", 1, 1, 0);
	in(".", 1001, 1, MSS);
	cr_assert_eq(got.n_new, 1);
	cr_expect_eq(got.new[0].length, 500);
	in(".", 2001, 1, 10);
	cr_expect_eq(got.refusal, TCP_REFUSAL_AFTER);
}

Test(tcp_rows, a_hundred_and_more_holes)
{
	row_open();
	for (uint32_t i = 0; i < TCP_HOLES_MAX + 10; i++) {
		in(".", 11 + 20 * i, 1, 10);
		cr_expect_eq(got.refusal, i < TCP_HOLES_MAX ? TCP_REFUSAL_NONE : TCP_REFUSAL_ROOM);
	}
	for (uint32_t i = 0; i < TCP_HOLES_MAX; i++)
		in(".", 1 + 20 * i, 1, 10);
	cr_expect_eq(c.rcv_nxt - THEIRS, 1 + 20 * TCP_HOLES_MAX);
}

/* --- RFC 7323 -----------------------------------------------------------------------------------
 */

static void in_at(const char *flags, uint32_t seq, uint32_t ack, uint32_t length, uint32_t ts)
{
	struct tcp_header h = row_header(flags, seq, ack, length);

	h.has_timestamp = true;
	h.ts_value = ts;
	h.ts_echo = stack.now_ms;
	row_take(&h);
}

Test(tcp_rows, old_timestamps_are_refused)
{
	row_open_with(true, true, WINDOW);
	in_at(".", 1, 1, 0, 105);
	in_at(".", 1, 1, 100, 106);
	row_timer();
	goes(".", 1, 101, 0);
	cr_expect_eq(out.ts_echo, 106);
	in_at(".", 101, 1, 100, 90);
	cr_expect_eq(got.refusal, TCP_REFUSAL_PAWS);
	cr_expect_eq(got.n_new, 0);
	goes(".", 1, 101, 0);
	in(".", 101, 1, 100);
	cr_expect_eq(got.refusal, TCP_REFUSAL_TIMESTAMP);
	in_at("R", 101, 0, 0, 0); /* PAWS is not for resets */
	cr_expect(got.reset);
}

Test(tcp_rows, the_echo_is_of_the_first_segment_not_acknowledged)
{
	row_open_with(true, true, WINDOW);
	in_at(".", 1, 1, 0, 105);
	in_at(".", 1, 1, 100, 110);
	in_at(".", 101, 1, 100, 120);
	row_timer();
	goes(".", 1, 201, 0);
	cr_expect_eq(out.ts_echo, 110);
}

/* --- sending: RFC 6298, 8985, 9937 --------------------------------------------------------------
 */

Test(tcp_rows, ten_segments_at_first)
{
	row_open();
	tcp_queue(&c, 20 * MSS);
	for (unsigned int i = 0; i < 10; i++)
		goes(".", 1 + i * MSS, 1, MSS);
	nothing();
	row_pass(10);
	in(".", 1, 1 + 2 * MSS, 0);
	for (unsigned int i = 0; i < 4; i++) /* slow start: two for one */
		goes(".", 1 + (10 + i) * MSS, 1, MSS);
	nothing();
}

Test(tcp_rows, small_replies_leave_at_once)
{
	row_open();
	tcp_queue(&c, 10);
	goes(".", 1, 1, 10);
	tcp_queue(&c, 10);
	goes(".", 11, 1, 10);
}

Test(tcp_rows, a_hole_is_filled_once)
{
	row_open();
	row_send(10);
	row_pass(10);
	in_sack(1, 1001, 2001, 0, 0);
	nothing();
	in_sack(1, 1001, 3001, 0, 0);
	in_sack(1, 1001, 4001, 0, 0);
	goes(".", 1, 1, MSS);
	nothing();
	in_sack(1, 1001, 6001, 0, 0);
	nothing();
	row_pass(10);
	in(".", 1, 10001, 0);
	cr_expect_eq(got.acked, 10000);
	cr_expect_eq(stack.counters.retransmits, 1);
	cr_expect_eq(stack.counters.recoveries, 1);
	cr_expect_eq(c.cwnd, 5 * MSS);
}

Test(tcp_rows, a_duplicate_report_does_not_fill_the_hole_again)
{
	row_open();
	row_send(10);
	row_pass(10);
	in_sack(1, 1001, 4001, 0, 0);
	goes(".", 1, 1, MSS);
	for (unsigned int i = 0; i < 20; i++) {
		in_sack(1, 2001, 3001, 1001, 4001); /* RFC 2883: a duplicate inside a block */
		nothing();
	}
}

Test(tcp_rows, a_reduction_that_was_wrong_is_undone)
{
	row_open();
	row_send(10);
	row_pass(10);
	in_sack(1, 1001, 4001, 0, 0);
	goes(".", 1, 1, MSS);
	row_pass(1);
	in(".", 1, 10001, 0); /* the first was only late */
	row_pass(10);
	in_sack(10001, 1, 1001, 0, 0);
	cr_expect_eq(stack.counters.undone, 1);
	cr_expect_geq(c.cwnd, 10 * MSS);
}

Test(tcp_rows, segments_may_be_later_after_each_round_with_a_duplicate)
{
	/* Wherever the numbers begin. */
	for (uint32_t iss = 0; iss < 4; iss++) {
		struct tcp_header syn = row_header("S", 0, 0, 0), h = row_header(".", 1, 0, 0);

		syn.mss = MSS;
		syn.sack_permitted = true;
		tcp_open(&stack, &c, &syn, 1460, WINDOW, iss << 30, 0);
		h.ack = c.snd_nxt;
		row_take(&h);
		tcp_queue(&c, 4 * MSS);
		while (tcp_next(&stack, &c, &out))
			;
		for (unsigned int round = 1; round < 4; round++) {
			h.n_sacks = 1;
			h.sack[0] = (struct tcp_range){h.ack, h.ack + 1};
			h.ack += MSS;
			row_take(&h);
			cr_expect_eq(c.reorder, 1, "%u after %u, from %u", c.reorder, round, iss);
		}
		tcp_queue(&c, MSS);
		cr_assert(tcp_next(&stack, &c, &out));
		h.ack = c.snd_nxt;
		h.sack[0] = (struct tcp_range){h.ack - 1, h.ack};
		row_take(&h);
		cr_expect_eq(c.reorder, 2, "%u in the next round, from %u", c.reorder, iss);
		tcp_release(&stack, &c);
	}
}

Test(tcp_rows, a_retransmission_that_is_lost_goes_again)
{
	row_open();
	row_send(10);
	row_pass(10);
	in_sack(1, 1001, 4001, 0, 0);
	goes(".", 1, 1, MSS);
	tcp_queue(&c, 2 * MSS);
	row_pass(1);
	in_sack(1, 1001, 8001, 0, 0);
	goes(".", 10001, 1, MSS);
	row_pass(12);
	in_sack(1, 1001, 11001, 0, 0); /* sent later than the retransmission, and there */
	row_pass(12);
	tcp_timer(&stack, &c);
	goes(".", 1, 1, MSS);
}

Test(tcp_rows, the_tail_is_probed)
{
	row_open();
	row_send(3);
	row_pass(10);
	in(".", 1, 1001, 0);
	row_timer();
	cr_expect_eq(stack.counters.tail_probes, 1);
	goes(".", 2001, 1, MSS); /* the last one again */
	nothing();
	row_pass(10);
	in_sack(1001, 2001, 3001, 0, 0);
	goes(".", 1001, 1, MSS); /* so the one before it is lost */
}

Test(tcp_rows, timeouts_double_and_end)
{
	uint32_t began, at;

	row_open_with(false, false, WINDOW);
	row_pass(10);
	in(".", 1, 1, 0);
	row_send(2);
	began = stack.now_ms;
	for (unsigned int i = 0; i < 4; i++) {
		row_timer();
		goes(".", 1, 1, MSS);
		nothing();
		cr_assert(tcp_due(&c, &at));
		cr_expect_eq(at - stack.now_ms, 1000u << (i + 1), "%u", at - stack.now_ms);
	}
	cr_expect_eq(c.cwnd, MSS);
	in(".", 1, 1001, 0);
	goes(".", 1001, 1, MSS);
	in(".", 1, 2001, 0);
	row_send(1);
	began = stack.now_ms;
	while (c.state != TCP_CLOSED)
		row_timer();
	cr_expect_geq(stack.now_ms - began, settings.give_up_ms);
	goes("R.", 3001, 1, 0);
}

Test(tcp_rows, the_wait_for_a_retransmission_is_no_round_trip)
{
	uint32_t before;

	row_open_with(false, false, WINDOW);
	row_pass(10);
	in(".", 1, 1, 0);
	row_send(1);
	row_pass(10);
	in(".", 1, 1001, 0);
	before = c.srtt_us;
	row_send(2);
	row_timer();
	goes(".", 1001, 1, MSS);
	row_pass(10);
	in(".", 1, 3001, 0); /* the second was sent once, long ago */
	cr_expect_eq(c.srtt_us, before, "%u", c.srtt_us);
}

Test(tcp_rows, three_duplicates_without_sack)
{
	row_open_with(false, false, WINDOW);
	row_pass(10);
	in(".", 1, 1, 0);
	row_send(10);
	row_pass(10);
	for (unsigned int i = 0; i < 2; i++) {
		in(".", 1, 1, 0);
		nothing();
	}
	in(".", 1, 1, 0);
	goes(".", 1, 1, MSS);
	in(".", 1, 2001, 0); /* partial: the next hole */
	goes(".", 2001, 1, MSS);
	in(".", 1, 10001, 0);
	cr_expect_eq(c.phase, TCP_PHASE_OPEN);
}

Test(tcp_rows, a_closed_window_is_probed)
{
	row_open();
	in_window(1, 1, 0);
	tcp_queue(&c, 500);
	nothing();
	for (unsigned int i = 0; i < 3; i++) {
		row_timer();
		goes(".", 0, 1, 0);
		in_window(1, 1, 0);
		nothing();
	}
	in_window(1, 1, 5000);
	goes(".", 1, 1, 500);
}

Test(tcp_rows, a_silly_window_waits_then_is_used)
{
	row_open();
	in(".", 1, 1, 1);
	in_window(2, 1, 100);
	tcp_queue(&c, 500);
	nothing();
	row_pass(20);
	tcp_timer(&stack, &c);
	goes(".", 1, 2, 0);
	nothing();
	row_timer();
	goes(".", 1, 2, 100);
	nothing();
}

Test(tcp_rows, a_reader_that_never_reads_is_let_be_while_it_answers)
{
	row_open();
	in_window(1, 1, 0);
	tcp_queue(&c, 500);
	nothing();
	for (unsigned int i = 0; i < 100; i++) {
		row_timer();
		if (tcp_next(&stack, &c, &out))
			in_window(1, 1, 0);
	}
	cr_expect_eq(c.state, TCP_ESTABLISHED);
}

Test(tcp_rows, a_reader_that_does_not_answer_probes_is_let_go)
{
	uint32_t began = stack.now_ms;

	row_open();
	in_window(1, 1, 0);
	tcp_queue(&c, 500);
	nothing();
	while (c.state != TCP_CLOSED) {
		row_timer();
		tcp_next(&stack, &c, &out);
	}
	cr_expect_geq(stack.now_ms - began, settings.give_up_ms);
	cr_expect_leq(stack.now_ms - began, 3 * settings.give_up_ms);
	cr_expect(out.flags & TCP_BIT_RST);
}

Test(tcp_rows, probes_of_a_closed_window_become_rare)
{
	uint32_t before, wait = 0, at;

	row_open();
	in_window(1, 1, 0);
	tcp_queue(&c, 500);
	nothing();
	for (unsigned int i = 0; i < 4; i++) {
		row_timer();
		goes(".", 0, 1, 0);
		in_window(1, 1, 0); /* it answers, and stays closed */
		nothing();
		before = wait;
		cr_assert(tcp_due(&c, &at));
		wait = at - stack.now_ms;
		cr_expect_geq(wait, 2 * before, "%u after %u", wait, before);
	}
	in_window(1, 1, 5000);
	goes(".", 1, 1, 500);
	cr_assert(tcp_due(&c, &at));
	cr_expect_leq(at - stack.now_ms, c.rto_ms, "%u", at - stack.now_ms);
}

Test(tcp_rows, a_window_does_not_grow_while_nothing_is_sent)
{
	settings.congestion = &tcp_cubic;
	row_open();
	c.ssthresh = c.cwnd;
	for (unsigned int i = 0; i < 4; i++) {
		row_send(10);
		row_pass(10);
		in(".", 1, c.snd_nxt - OURS, 0);
		c.cwnd = 10 * MSS;
	}
	row_pass(60000);
	row_send(10);
	row_pass(10);
	in(".", 1, c.snd_nxt - OURS, 0);
	cr_expect_leq(c.cwnd, 11 * MSS, "%u", c.cwnd);
}

Test(tcp_rows, a_silent_client_is_probed_and_let_go)
{
	uint32_t began = stack.now_ms;
	unsigned int probes = 0;

	row_open();
	while (c.state != TCP_CLOSED) {
		row_timer();
		if (c.state != TCP_CLOSED && tcp_next(&stack, &c, &out)) {
			cr_expect_eq(out.seq - OURS, 0);
			cr_expect_eq(out.length, 0);
			probes++;
		}
	}
	cr_expect_eq(probes, settings.keepalive_probes);
	cr_expect_geq(stack.now_ms - began, settings.keepalive_ms);
	goes("R.", 1, 1, 0);
}

Test(tcp_rows, a_client_that_answers_probes_stays)
{
	row_open();
	for (unsigned int i = 0; i < 10; i++) {
		row_timer();
		if (tcp_next(&stack, &c, &out))
			in(".", 1, 1, 0);
	}
	cr_expect_eq(c.state, TCP_ESTABLISHED);
	cr_expect_gt(stack.counters.keepalives, 1);
}

/* Expects <n> segments more in the packet that has just gone out, <length> bytes in all. */
static void extends(uint32_t most, uint32_t length)
{
	uint64_t segments = stack.counters.segments_out;

	tcp_extend(&stack, &c, most, &out);
	cr_expect_eq(out.length, length, "length %u", out.length);
	cr_expect_eq(stack.counters.segments_out - segments, (length - 1) / MSS);
}

Test(tcp_rows, a_packet_of_several_segments_is_lost_in_part)
{
	row_open();
	tcp_queue(&c, 9 * MSS + 10);
	tcp_close(&c);
	goes(".", 1, 1, MSS);
	extends(5 * MSS, 5 * MSS);
	cr_expect_not(out.flags & (TCP_BIT_PSH | TCP_BIT_FIN));
	cr_expect_eq(c.active->n_sent, 5);
	goes(".", 5001, 1, MSS);
	extends(UINT16_MAX, 4 * MSS + 10);
	cr_expect_eq(out.flags, row_flags("FP."));
	cr_expect_eq(c.active->n_sent, 10);
	cr_expect_eq(c.pipe, 9 * MSS + 10);
	nothing();
	row_pass(10);
	in_sack(2001, 3001, 9001, 0, 0); /* the third of the first packet is missing */
	goes(".", 2001, 1, MSS);
	extends(UINT16_MAX, MSS);
	nothing();
	in(".", 1, 9012, 0);
	cr_expect_eq(c.state, TCP_FIN_WAIT_2);
	cr_expect_eq(stack.counters.retransmits, 1);
}

Test(tcp_rows, a_packet_is_as_long_as_windows_and_its_limit_allow)
{
	row_open();
	tcp_queue(&c, 30 * MSS);
	goes(".", 1, 1, MSS);
	extends(2 * MSS - 1, MSS);
	goes(".", 1001, 1, MSS);
	extends(UINT16_MAX, 9 * MSS); /* the congestion window */
	nothing();
	row_pass(10);
	in_window(1, 10001, 3500);
	goes(".", 10001, 1, MSS);
	extends(UINT16_MAX, 3 * MSS); /* the client's */
	nothing();
}

Test(tcp_rows, what_goes_again_goes_alone)
{
	row_open();
	row_send(2);
	row_pass(10);
	in(".", 1, 1001, 0);
	row_timer();
	row_timer(); /* after the tail's probe */
	tcp_queue(&c, 2 * MSS);
	goes(".", 1001, 1, MSS);
	extends(UINT16_MAX, MSS); /* it is the last that was sent, and new data follow it */
	in(".", 1, 2001, 0);
	goes(".", 2001, 1, MSS);
	extends(UINT16_MAX, 2 * MSS);
}

Test(tcp_rows, blocks_and_the_end_of_a_reduction_go_alone)
{
	row_open();
	in(".", 101, 1, 50);
	goes(".", 1, 1, 0);
	tcp_queue(&c, 3 * MSS);
	goes(".", 1, 1, MSS);
	extends(UINT16_MAX, MSS);
	in(".", 1, 1, 100);
	c.cwr_now = true;
	goes("C.", 1001, 151, MSS);
	extends(UINT16_MAX, MSS);
	goes(".", 2001, 151, MSS);
}

Test(tcp_rows, a_smaller_path_cuts_retransmissions)
{
	row_open();
	row_send(2);
	tcp_set_mss(&c, 600);
	row_timer();
	if (!tcp_next(&stack, &c, &out) || out.length > 600) { /* the tail's probe does not fit */
		row_timer();
		cr_assert(tcp_next(&stack, &c, &out));
	}
	cr_expect_eq(out.seq - OURS, 1);
	cr_expect_eq(out.length, 600);
	goes(".", 601, 1, 400);
}

Test(tcp_rows, marks_reduce_once_per_round)
{
	struct tcp_header syn = row_header("SEC", 0, 0, 0), h;

	settings.ecn = true;
	syn.mss = MSS;
	tcp_open(&stack, &c, &syn, 1460, WINDOW, OURS, 0);
	goes("S.E", 0, 1, 0);
	row_pass(10);
	in(".", 1, 1, 0);
	row_send(10);
	row_pass(10);
	h = row_header(".E", 1, 2001, 0);
	row_take(&h);
	cr_expect_eq(c.cwnd, 5 * MSS);
	h = row_header(".E", 1, 4001, 0);
	row_take(&h);
	cr_expect_eq(c.cwnd, 5 * MSS);
	in(".", 1, 10001, 0);
	tcp_queue(&c, MSS);
	goes(".C", 10001, 1, MSS);
	tcp_receive(&stack, &c,
		    &(struct tcp_header){.seq = THEIRS + 1,
					 .ack = OURS + 11001,
					 .length = 10,
					 .window = WINDOW,
					 .flags = TCP_BIT_ACK},
		    true, &got);
	row_timer();
	goes(".E", 11001, 11, 0); /* until the client says CWR */
	in("C.", 11, 11001, 10);
	row_timer();
	goes(".", 11001, 21, 0);
}

Test(tcp_rows, an_idle_connection_holds_no_memory)
{
	row_open();
	row_send(5);
	in(".", 1, 5001, 0);
	cr_expect_null(c.active);
	cr_expect(tcp_is_idle(&c));
	cr_expect_eq(c.timers, 1 << TCP_TIMER_LIFE);
}

Test(tcp_rows, without_memory_nothing_breaks)
{
	struct tcp_chunk *chunks = stack.chunks;

	row_open();
	stack.chunks = NULL;
	tcp_queue(&c, 100);
	goes(".", 1, 1, 100); /* one needs none */
	cr_expect_eq(stack.counters.no_memory, 0);
	tcp_queue(&c, 100);
	nothing();
	cr_expect_gt(stack.counters.no_memory, 0);
	stack.chunks = chunks;
	goes(".", 101, 1, 100);
	in(".", 1, 201, 0);
	cr_expect(tcp_is_idle(&c));
}

Test(tcp_rows, a_lone_segment_is_sent_again_when_there_is_memory)
{
	struct tcp_active *actives = stack.actives;

	row_open();
	row_send(1);
	cr_expect(c.lone);
	stack.actives = NULL;
	for (unsigned int i = 0; i < 4; i++) { /* its probe, and timeouts */
		row_timer();
		nothing();
	}
	cr_expect(c.lone);
	in(".", 1, 51, 0);
	nothing();
	cr_expect_eq(c.pipe, MSS - 50);
	stack.actives = actives;
	row_timer();
	goes(".", 51, 1, MSS - 50);
	cr_expect_not(c.lone);
	in(".", 1, 1 + MSS, 0);
	cr_expect_eq(c.snd_una, c.snd_end);
	cr_expect_eq(c.pipe, 0);
}

Test(tcp_rows, a_lone_segment_gets_a_record_when_another_follows)
{
	row_open();
	row_send(1);
	cr_expect(c.lone);
	tcp_queue(&c, 2 * MSS);
	goes(".", 1 + MSS, 1, MSS);
	cr_expect_not(c.lone);
	goes(".", 1 + 2 * MSS, 1, MSS);
	cr_expect_eq(c.active->n_sent, 3);
	in(".", 1, 1 + 3 * MSS, 0);
	cr_expect(tcp_is_idle(&c));
}

Test(tcp_rows, an_older_acknowledgement_leaves_a_lone_segment_alone)
{
	uint32_t rto;

	row_open();
	row_send(1);
	rto = c.timer_ms[TCP_TIMER_RTO];
	row_pass(3);
	in("P.", 1, 1, 10); /* the next request, before the reply has come */
	cr_expect(c.lone);
	cr_expect_eq(c.timer_ms[TCP_TIMER_RTO], rto);
	cr_expect_eq(c.pipe, MSS);
}

/* Sends all that may go. Returns the bytes under way. */
static uint32_t row_fill(void)
{
	while (tcp_next(&stack, &c, &out))
		;
	return c.snd_nxt - c.snd_una;
}

/* However small the client wants its segments: each acknowledgement judges them. */
Test(tcp_rows, no_more_than_tcp_sent_max_segments_are_under_way)
{
	free(pools);
	pools = pools_init(&stack, &settings, 2, TCP_SENT_MAX, 1);
	stack.now_us = stack.now_ms * 1000;
	row_open();
	c.snd_wnd = c.snd_wnd_max = c.cwnd = 1 << 30;
	tcp_queue(&c, 1 << 29);
	cr_expect_eq(row_fill(), TCP_SENT_MAX * MSS);
	cr_expect_eq(c.active->n_sent, TCP_SENT_MAX);
	nothing();
	c.snd_scale = 14;
	in(".", 1, 1 + 3 * MSS, 0);
	cr_expect_eq(row_fill(), TCP_SENT_MAX * MSS);
	in(".", 1, 1 + (TCP_SENT_MAX + 3) * MSS, 0);
	cr_expect_eq(c.pipe, 0);
	cr_expect_eq(row_fill(), TCP_SENT_MAX * MSS);
}

/* A client takes all records that it can get, and another one begins then. */
Test(tcp_rows, one_client_s_small_segments_leave_records_for_others)
{
	struct tcp_connection first;

	settings.mss = 1460;
	row_open();
	c.snd_scale = 14;
	c.snd_wnd = c.snd_wnd_max = c.cwnd = 1 << 30;
	tcp_queue(&c, 1 << 29);
	/* Of 100 chunks one is set aside; it has as many of the others as are left. */
	cr_expect_eq(row_fill(), 50 * TCP_CHUNK_SENT * MSS);
	first = c;
	row_open();
	c.cwnd = 1 << 30;
	row_send(5);
	row_pass(10);
	in_sack(1, 1 + MSS, 1 + 5 * MSS, 0, 0);
	goes(".", 1, 1, MSS);
	in(".", 1, 1 + 5 * MSS, 0);
	cr_expect_eq(c.pipe, 0);
	tcp_release(&stack, &c);
	c = first;
	/* An acknowledgement makes room. */
	in(".", 1, 1 + TCP_CHUNK_SENT * MSS, 0);
	cr_expect_eq(row_fill(), 50 * TCP_CHUNK_SENT * MSS);
}

/* A block says nothing of a segment that it does not hold whole, and nothing at all if it cannot be
 * true. */
Test(tcp_rows, blocks_name_whole_segments_of_what_is_under_way)
{
	row_open();
	c.cwnd = 1 << 30;
	row_send(50);
	in_sack(1, 1 + MSS / 2, 1 + 2 * MSS + MSS / 2, 1 + 45 * MSS - 1, 1 + 45 * MSS + 1);
	cr_expect_eq(c.active->n_sacked, 1);
	in_sack(1, 1, 1 + 50 * MSS, 1 + 2 * MSS, 2 + 50 * MSS);
	cr_expect_eq(c.active->n_sacked, 1);
	in_sack(1, 1 + 9 * MSS, 1 + 8 * MSS, 0, 0);
	cr_expect_eq(c.active->n_sacked, 1);
	in_sack(1, 1 + 40 * MSS, 1 + 42 * MSS, 1 + 49 * MSS, 1 + 50 * MSS);
	cr_expect_eq(c.active->n_sacked, 4);
	cr_expect_eq(c.active->first.chunk->n_sacked, 2);
	cr_expect_eq(c.active->last->n_sacked, 2);
}
