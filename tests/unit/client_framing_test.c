/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client library against the load balancer's own framings of streams (lb/framing), as the peer
 * of a TCP connection: what one writes the other reads, refuses and answers.
 */
#include <stdlib.h>

#include "client_peer.h"
#include "framing/stream.h"

#define REQUESTS    64
#define SIZE_MAX_OF 5000

struct service {
	struct peer peer;
	const struct stream_framing *framing;
	struct stream_settings settings;
	struct stream stream;
	uint8_t bytes[1 << 20];
	size_t got;
	struct open {
		uint64_t tag, position, length;
		uint32_t deadline_us;
		uint8_t priority, notice;
		bool cancelled;
	} open[REQUESTS];
	uint32_t n_open, n_cancels;
	bool closed;
};

static void service_open(struct service *s, bool tagged, uint64_t max_request)
{
	struct doorbell_options options = {.protocol = DOORBELL_TCP,
					   .framing = tagged ? DOORBELL_TAGGED : DOORBELL_LENGTH};

	memset(s, 0, sizeof(*s));
	s->framing = tagged ? &stream_tagged : &stream_length;
	s->settings.max_request = max_request;
	peer_open(&s->peer, options);
}

static void service_act(struct service *s, const struct stream_action *a)
{
	struct open *o = &s->open[a->request % REQUESTS];

	switch (a->kind) {
	case STREAM_REQUEST:
		service_act(s, &(struct stream_action){.kind = STREAM_BEGIN,
						       .request = a->request,
						       .begin = a->whole.begin});
		o->position = a->whole.position;
		break;
	case STREAM_BEGIN:
		*o = (struct open){.tag = a->begin.tag,
				   .length = a->begin.size,
				   .deadline_us = a->begin.deadline_us,
				   .priority = a->begin.priority};
		s->n_open++;
		break;
	case STREAM_EXTENT:
		cr_assert_eq(a->extent.offset, 0);
		o->position = a->extent.position;
		break;
	case STREAM_REFUSE:
		*o = (struct open){.tag = a->refuse.tag, .notice = a->refuse.notice};
		s->n_open++;
		break;
	case STREAM_CANCEL:
		s->n_cancels++;
		for (uint32_t i = 0; i < s->n_open; i++)
			s->open[i].cancelled |= s->open[i].tag == a->tag;
		break;
	case STREAM_CLOSE:
		s->closed = true;
		break;
	default:
		break;
	}
}

/* Read until <n> requests and cancels came and the stream is between two of them. */
static void service_read(struct service *s, uint32_t n)
{
	struct stream_action actions[STREAM_ACTIONS_MIN];
	uint64_t at;
	ssize_t more;

	while (s->n_open + s->n_cancels < n || s->stream.position > s->got || s->stream.got > 0) {
		peer_wait(&s->peer, s->peer.fd);
		more = recv(s->peer.fd, s->bytes + s->got, sizeof(s->bytes) - s->got, 0);
		cr_assert(more > 0);
		s->got += (size_t)more;
		while ((at = s->stream.position) < s->got) {
			unsigned int n_actions = s->framing->read(
				&s->stream, &s->settings, s->bytes + at, (uint32_t)(s->got - at),
				actions, STREAM_ACTIONS_MIN);

			for (unsigned int i = 0; i < n_actions; i++)
				service_act(s, &actions[i]);
		}
	}
}

static void service_chunk(struct service *s, uint32_t request, uint32_t chunk, const uint8_t *bytes,
			  uint32_t length, bool more, uint8_t notice)
{
	struct stream_reply reply = {.request = request,
				     .tag = s->open[request].tag,
				     .chunk = chunk,
				     .length = length,
				     .notice = notice,
				     .more = more};
	struct stream_piece piece;
	uint8_t head[64];

	do {
		piece = s->framing->reply(&s->stream, &reply, head);
		peer_send(&s->peer, head, piece.head);
		if (piece.bytes > 0)
			peer_send(&s->peer, bytes, piece.bytes);
		bytes += piece.bytes;
	} while (!piece.last);
}

/* Echo request number <i> in <chunks> parts. */
static void service_echo(struct service *s, uint32_t i, uint32_t chunks)
{
	const struct open *o = &s->open[i];
	uint32_t each = (uint32_t)o->length / chunks, from = 0;

	for (uint32_t c = 0; c < chunks; c++) {
		bool last = c + 1 == chunks;
		uint32_t length = last ? (uint32_t)o->length - from : each;

		service_chunk(s, i, c, s->bytes + o->position + from, length, !last, 0);
		from += length;
	}
}

static void expect_echoes(bool tagged)
{
	static struct service s;
	static uint8_t data[REQUESTS][SIZE_MAX_OF], reply[REQUESTS][SIZE_MAX_OF];
	struct doorbell_request r[REQUESTS] = {0};

	service_open(&s, tagged, SIZE_MAX_OF);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		r[i] = (struct doorbell_request){.data = data[i],
						 .length = 1 + i * 79,
						 .reply = reply[i],
						 .reply_size = SIZE_MAX_OF,
						 .deadline_ms = 10000,
						 .priority = (uint8_t)(i % 5)};
		memset(data[i], (int)i, SIZE_MAX_OF);
		cr_assert_eq(doorbell_client_submit(s.peer.client, &r[i]), 0);
	}
	peer_accept(&s.peer);
	service_read(&s, REQUESTS);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		cr_expect_eq(s.open[i].length, r[i].length);
		cr_expect_eq(s.open[i].priority, tagged ? i % 5 : 0);
		cr_expect_eq(s.open[i].deadline_us != 0, tagged);
	}
	for (uint32_t i = 0; i < REQUESTS; i++)
		service_echo(&s, tagged ? REQUESTS - 1 - i : i, 1 + i % 4);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		PEER_UNTIL(&s.peer, r[i].status != DOORBELL_PENDING);
		cr_expect_eq(r[i].status, DOORBELL_OK, "%s", doorbell_client_text(r[i].status));
		cr_expect_eq(r[i].reply_length, r[i].length);
		cr_expect_arr_eq(reply[i], data[i], r[i].length);
	}
	cr_expect_not(s.closed);
	cr_expect_eq(doorbell_client_counters(s.peer.client).ignored, 0);
	peer_close(&s.peer);
}

Test(client_framing, tagged_echoes_in_reverse)
{
	expect_echoes(true);
}

Test(client_framing, length_echoes_in_order)
{
	expect_echoes(false);
}

static void expect_refusals(bool tagged)
{
	static struct service s;
	struct ask small = {0}, large = {.r.retries = 3}, next = {0};

	service_open(&s, tagged, 5);
	ask_begin(&s.peer, &small, "small");
	ask_begin(&s.peer, &large, "larger");
	ask_begin(&s.peer, &next, "next");
	peer_accept(&s.peer);
	service_read(&s, 3);
	cr_expect_eq(s.open[1].notice, DOORBELL_TOO_LARGE);
	service_chunk(&s, 0, 0, NULL, 0, false, DOORBELL_WORKER_LOST);
	service_chunk(&s, 1, 0, NULL, 0, false, s.open[1].notice);
	service_echo(&s, 2, 2);
	ask_expect_status(&s.peer, &small, DOORBELL_WORKER_LOST);
	ask_expect_status(&s.peer, &large, DOORBELL_TOO_LARGE);
	ask_expect(&s.peer, &next, "next");
	peer_close(&s.peer);
}

Test(client_framing, notices_of_both_framings_are_read)
{
	expect_refusals(true);
	expect_refusals(false);
}

Test(client_framing, a_cancel_names_its_request)
{
	static struct service s;
	struct ask kept = {0}, cancelled = {0};

	service_open(&s, true, 100);
	ask_begin(&s.peer, &kept, "kept");
	ask_begin(&s.peer, &cancelled, "cancelled");
	peer_accept(&s.peer);
	service_read(&s, 2);
	doorbell_client_cancel(s.peer.client, &cancelled.r);
	service_read(&s, 3);
	cr_expect(s.open[1].cancelled && !s.open[0].cancelled);
	service_chunk(&s, 1, 0, NULL, 0, false, DOORBELL_CANCELLED);
	service_echo(&s, 0, 1);
	ask_expect(&s.peer, &kept, "kept");
	peer_close(&s.peer);
}
