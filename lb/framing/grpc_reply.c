/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers of gRPC calls. A worker's reply is the model's outputs, one behind the other; a message
 * has a head, and a field around each output. The reply of a model with one output, which is asked
 * for, stays where it lies, behind the head.
 */
#include <string.h>

#include "framing/grpc_reply.h"
#include "framing/grpc_call.h"
#include "framing/kserve_reply.h"
#include "framing/kserve_front.h"
#include "grpc/message.h"
#include "packet/notice.h"

static bool answer_is_streamed(const struct kserve_asked *a)
{
	const struct grpc_stream *s = a->call;

	return s != NULL && s->rpc == GRPC_MODEL_STREAM_INFER;
}

/* The field in front of the bytes of output <i>. Returns its length. */
static uint32_t answer_field(const struct kserve_asked *a, const struct reply_outputs *outputs,
			     uint8_t i, uint8_t *at)
{
	return grpc_write_raw(kserve_reply_bytes(outputs, a->output[i]), at);
}

/*
 * Text at <at>, the <text> that begins <begin> bytes behind the message's beginning: writes what of
 * it is next. Returns how much.
 */
static uint32_t answer_copy(const struct kserve_asked *a, const uint8_t *text, uint32_t length,
			    uint64_t begin, uint8_t *at, uint32_t room)
{
	uint64_t done = a->written - begin;
	uint32_t n = length - (uint32_t)done < room ? length - (uint32_t)done : room;

	memcpy(at, text + done, n);
	return n;
}

/* Bytes of the output that is written, which lie at <bytes>; if it has others, they are asked for.
 */
static uint32_t answer_copy_output(struct kserve_asked *a, const struct reply_outputs *outputs,
				   struct stream_reply *reply, const uint8_t *bytes,
				   uint32_t length, uint8_t *at, uint32_t room)
{
	uint8_t place = a->output[a->part];
	uint32_t left = kserve_reply_bytes(outputs, place) - a->part_taken;
	uint32_t wanted = kserve_reply_place(outputs, place, a->part_taken, &left);
	uint32_t n = length < left ? length : left;

	if (reply->taken != wanted) {
		reply->taken = wanted;
		return 0;
	}
	n = n < room ? n : room;
	memcpy(at, bytes, n);
	a->part_taken += n;
	reply->taken += n;
	return n;
}

/* The outputs behind the head, each with its field. <begin>: where the field of a->part begins. */
static uint32_t answer_write_part(struct kserve_asked *a, const struct reply_outputs *outputs,
				  struct stream_reply *reply, const uint8_t *bytes, uint32_t length,
				  uint8_t *at, uint32_t room)
{
	uint8_t field[GRPC_FIELD_MAX];
	uint32_t n = answer_field(a, outputs, a->part, field);

	if (a->written < a->json_length + n)
		return answer_copy(a, field, n, a->json_length, at, room);
	n = answer_copy_output(a, outputs, reply, bytes, length, at, room);
	return n;
}

/* Goes on to the next output when one is whole. */
static void answer_advance(struct kserve_asked *a, const struct reply_outputs *outputs)
{
	uint8_t field[GRPC_FIELD_MAX];

	while (a->part < a->outputs) {
		uint32_t n = answer_field(a, outputs, a->part, field);

		if (a->written <
		    a->json_length + n + kserve_reply_bytes(outputs, a->output[a->part]))
			return;
		a->json_length = a->written;
		a->part++;
		a->part_taken = 0;
	}
}

/* Is the reply the only output, as it is? */
static bool answer_stays(const struct kserve_asked *a)
{
	return a->outputs == 1 && a->layout->model.outputs == 1 && !a->says_final;
}

/* The head of the next message: that of the worker's outputs, or of the empty one behind them. */
static uint32_t answer_head(const struct kserve_asked *a, const struct reply_outputs *outputs,
			    bool final, uint8_t *at)
{
	struct kserve_answer answer = {0};

	kserve_reply_answer(a, outputs, &answer);
	if (a->says_final)
		answer.final = final ? KSERVE_FINAL : KSERVE_FINAL_FOLLOWS;
	if (final)
		answer.outputs = 0;
	return grpc_write_answer(&answer, answer_is_streamed(a), at);
}

static struct stream_rewritten answer_fail(struct stream_reply *reply)
{
	reply->notice = LB_NOTICE_MODEL_ERROR;
	return (struct stream_rewritten){.done = true};
}

/* The outputs are written; the empty answer behind the last ones is not. */
static struct stream_rewritten answer_write_final(struct kserve_asked *a,
						  const struct reply_outputs *outputs,
						  struct stream_reply *reply, uint8_t *at,
						  uint32_t room)
{
	struct stream_rewritten written = {.done = true};
	uint8_t head[GRPC_HEAD_MAX];

	if (reply->more || !a->says_final)
		return written;
	written.length = answer_head(a, outputs, true, head);
	if (written.length == 0 || written.length > room)
		return answer_fail(reply);
	memcpy(at, head, written.length);
	return written;
}

/* Of a reply in pieces the end may have no bytes: then there is no answer of outputs. */
static bool answer_is_end(const struct stream_reply *reply)
{
	return reply->chunk > 0 && reply->length == 0;
}

/* Bytes of text that take as long as the head of such an answer. */
#define KEEPS_COST 48

/* Makes the head of an answer that passes as it is. NULL: it is none of the model's, or too long.
 */
static const struct kserve_front *answer_front(struct kserve_asked *a,
					       const struct stream_reply *reply)
{
	uint8_t head[GRPC_HEAD_MAX], field[GRPC_FIELD_MAX];
	struct reply_outputs outputs;
	struct kserve_answer answer;
	uint32_t n;

	if (!kserve_reply_find(a, reply, &outputs))
		return NULL;
	kserve_reply_answer(a, &outputs, &answer);
	n = grpc_write_answer(&answer, false, head);
	if (n == 0)
		return NULL;
	return kserve_front_make(a->room->front_calls, a, reply->length, head, n, field,
				 answer_field(a, &outputs, 0, field), 0);
}

bool grpc_keeps(struct stream *s, const struct stream_reply *reply)
{
	struct kserve_asked *a = (struct kserve_asked *)(uintptr_t)reply->tag;

	if (!kserve_reply_is_usual(a, reply) || a->call == NULL || answer_is_streamed(a) ||
	    !answer_stays(a))
		return false;
	a->room->text_left -= KEEPS_COST;
	a->front = kserve_front_find(a->room->front_calls, a, reply->length);
	if (a->front == NULL)
		a->front = answer_front(a, reply);
	return a->front != NULL;
}

/* a->json_length is where the field of the output that is written begins, a->written what is
 * written of the message so far. */
struct stream_rewritten grpc_rewrite(struct stream *s, struct stream_reply *reply,
				     const uint8_t *bytes, uint32_t length, uint8_t *at,
				     uint32_t room)
{
	struct kserve_asked *a = (struct kserve_asked *)(uintptr_t)reply->tag;
	struct stream_rewritten written = {0};
	struct reply_outputs outputs = {.rows = 1, .cuts = 1};
	uint8_t head[GRPC_HEAD_MAX];
	uint32_t n;

	if ((reply->more || reply->chunk > 0) && !answer_is_streamed(a)) {
		kserve_reply_refuse_pieces(a, "ModelStreamInfer");
		return answer_fail(reply);
	}
	if (answer_is_end(reply))
		return answer_write_final(a, &outputs, reply, at, room);
	if (!a->found && !kserve_reply_scan(a, reply, bytes, length))
		return answer_fail(reply);
	if (!a->found)
		return written;
	if (!kserve_reply_find(a, reply, &outputs))
		return answer_fail(reply);
	if (a->part == a->outputs)
		return answer_write_final(a, &outputs, reply, at, room);
	if (!a->writer.done) {
		n = answer_head(a, &outputs, false, head);
		if (n == 0)
			return answer_fail(reply);
		written.length = answer_copy(a, head, n, 0, at, room);
		a->writer.done = a->written + written.length == n;
		a->json_length = n;
	} else {
		written.length = answer_write_part(a, &outputs, reply, bytes, length, at, room);
	}
	a->written += written.length;
	if (!a->writer.done)
		return written;
	answer_advance(a, &outputs);
	written.keeps = answer_stays(a) &&
			a->written >= a->json_length + answer_field(a, &outputs, 0, head);
	written.done = written.keeps || (a->part == a->outputs && !a->says_final);
	return written;
}

/* --- the end of answers ------------------------------------------------------------------------
 */

static enum grpc_status answer_status(const struct kserve_asked *a, uint8_t notice)
{
	return a->status != 0 ? grpc_status_of_http(a->status) : grpc_status_of_notice(notice);
}

/* The owner is told: <length> bytes are the message, its prefix included. */
static void answer_tell(const struct stream *s, const struct kserve_asked *a, uint8_t notice,
			uint32_t length)
{
	kserve_room_tell(s, a, (uint16_t)answer_status(a, notice),
			 length > GRPC_PREFIX ? length - GRPC_PREFIX : 0);
}

/* An answer that is an error. Returns the bytes that go in front of nothing. */
static uint32_t answer_error(struct grpc_stream *g, struct kserve_asked *a, uint8_t notice,
			     uint8_t *at)
{
	const char *error = kserve_reply_error(a, notice);
	uint32_t n;

	if (!answer_is_streamed(a)) {
		grpc_stream_end(g, answer_status(a, notice), error);
		return 0;
	}
	n = grpc_write_stream_error(error, at, STREAM_HEAD_MAX);
	grpc_stream_respond(g, a, n);
	return n;
}

/* Nothing is sent of it any more, and nothing will be. */
static void answer_over(struct grpc_stream *g, struct kserve_asked *a)
{
	a->queued = g->session->over;
	g->session->over = a;
}

/* The answer is complete. Returns the bytes of an error. */
static uint32_t answer_end(struct grpc_stream *g, struct kserve_asked *a,
			   const struct stream_reply *reply, uint8_t *at)
{
	bool error = a->status != 0 || reply->notice != 0;
	uint32_t n = 0;

	a->answered = true;
	g->open--;
	if (g->asked == a)
		grpc_call_let_go(g);
	if (error)
		n = answer_error(g, a, reply->notice, at);
	if (answer_is_streamed(a) && a->to_send == 0)
		answer_over(g, a);
	if (g->rpc == GRPC_MODEL_STREAM_INFER)
		grpc_stream_settle(g);
	else if (!error)
		grpc_stream_end(g, GRPC_OK, NULL);
	return n;
}

struct stream_piece grpc_reply(struct stream *s, struct stream_reply *reply, uint8_t *at)
{
	struct kserve_asked *a = (struct kserve_asked *)(uintptr_t)reply->tag;
	struct grpc_stream *g = a->call;
	struct stream_piece piece = {.last = true};
	bool error = a->status != 0 || reply->notice != 0;

	reply->taken = reply->length;
	kserve_reply_note_row(a, reply);
	if (g == NULL) { /* the client has given it up */
		a->answered = !reply->more;
		if (!a->answered)
			return piece;
		answer_tell(s, a, LB_NOTICE_CANCELLED, 0);
		kserve_room_forget(s, a);
		return piece;
	}
	if (!error && (reply->length > 0 || a->front != NULL)) {
		if (a->front != NULL) {
			piece.head = a->front->text_length;
			memcpy(at, a->front->text, piece.head);
		}
		a->said += piece.head + reply->length;
		piece.bytes = reply->length;
		grpc_stream_respond(g, a, piece.head + reply->length);
	}
	if (error || !reply->more) {
		uint32_t text = answer_end(g, a, reply, at);

		piece.head += text;
		answer_tell(s, a, reply->notice, (uint32_t)a->said + text);
		return piece;
	}
	/* The next piece is a message of its own. */
	memset(&a->writer, 0, sizeof(a->writer));
	a->found = false;
	a->written = 0;
	a->part = 0;
	a->part_taken = 0;
	return piece;
}

/* --- sending -----------------------------------------------------------------------------------
 */

static struct kserve_asked *emit_asked_of(const struct stream *s, const struct grpc_stream *g)
{
	struct kserve_asked *a = s->open;

	while (a != NULL && a->call != g)
		a = a->next;
	return a;
}

/* A call has ended: so have its requests. False: it had none, or no more. */
static bool emit_end(struct stream *s, struct grpc_stream *g, struct stream_emitted *out)
{
	struct kserve_asked *a;

	while ((a = emit_asked_of(s, g)) != NULL) {
		bool told = a->told;

		out->request = a->number;
		out->ends = true;
		out->cancels = told && !a->answered;
		out->tag = (uintptr_t)a;
		a->call = NULL;
		a->reading = false;
		if (!told)
			kserve_room_tell(s, a, GRPC_CANCELLED, 0);
		if (!out->cancels)
			kserve_room_forget(s, a);
		if (told)
			return true;
	}
	if (g->reader != NULL)
		kserve_room_return_reader(g->reader);
	grpc_stream_free(g);
	return false;
}

/* The header of a DATA frame, and whose bytes follow. */
static void emit_data(struct stream *s, struct grpc_session *g, struct stream_emitted *out)
{
	struct kserve_asked *a = g->sends;

	out->head_at = g->sent_header;
	out->head = GRPC_FRAME_HEADER;
	g->sent = false;
	g->sends = NULL;
	if (a == NULL)
		return;
	out->bytes = g->sent_length;
	out->request = a->number;
	out->ends = a->to_send == 0 && a->answered && a->watch == NULL;
	if (out->ends)
		kserve_room_forget(s, a);
}

/* An answer that has ended without another byte. */
static void emit_over(struct stream *s, struct grpc_session *g, struct stream_emitted *out)
{
	struct kserve_asked *a = g->over;

	g->over = a->queued;
	out->request = a->number;
	out->ends = true;
	kserve_room_forget(s, a);
}

static void emit_end_all(struct grpc_session *g)
{
	struct grpc_stream *s;

	while ((s = TAILQ_FIRST(&g->streams)) != NULL) {
		TAILQ_REMOVE(&g->streams, s, entry);
		TAILQ_INSERT_TAIL(&g->ended, s, entry);
	}
}

static bool emit_is_over(const struct grpc_session *g)
{
	if (g->dead)
		return true;
	if (g->drains && TAILQ_EMPTY(&g->streams))
		return true;
	return !nghttp2_session_want_read(g->h2) && !nghttp2_session_want_write(g->h2);
}

/* Frames that nghttp2 has. False: there is none that may be sent. */
static bool emit_frame(struct stream *s, struct grpc_session *g, struct stream_emitted *out)
{
	const uint8_t *bytes;
	ssize_t n = nghttp2_session_mem_send(g->h2, &bytes);

	if (n < 0) {
		g->dead = true;
		return false;
	}
	if (g->sent) {
		emit_data(s, g, out);
		return true;
	}
	out->head_at = bytes;
	out->head = (uint32_t)n;
	return n > 0;
}

bool grpc_emit(struct stream *s, struct stream_emitted *out)
{
	struct grpc_session *g = s->own;

	memset(out, 0, sizeof(*out));
	if (g == NULL)
		return false;
	/* Before the calls that have ended, and what is known of their requests. */
	if (g->over != NULL) {
		emit_over(s, g, out);
		return true;
	}
	if (g->dead)
		emit_end_all(g);
	while (!TAILQ_EMPTY(&g->ended)) {
		if (emit_end(s, TAILQ_FIRST(&g->ended), out))
			return true;
		memset(out, 0, sizeof(*out));
	}
	if (!g->dead && emit_frame(s, g, out))
		return true;
	if (!TAILQ_EMPTY(&g->ended) || (g->dead && !TAILQ_EMPTY(&g->streams)))
		return grpc_emit(s, out);
	out->closes = emit_is_over(g) && s->position != STREAM_CLOSED;
	out->fault = out->closes && g->fault;
	return out->closes;
}
