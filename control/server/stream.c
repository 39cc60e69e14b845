/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection: lines from a bufferevent, replies onto it. One line per iteration of the loop, so
 * that a peer that sends thousands at once delays only itself.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "observe/capture.h"
#include "server/stream.h"

#define OUTPUT_PAUSE    (256u << 10) /* unread replies, bytes, that stop taking lines */
#define OUTPUT_RESUME   (64u << 10)
#define OUTPUT_MAX      (16u << 20) /* bytes of unread replies at which the connection ends */
#define WRITE_TIMEOUT_S 60          /* for a peer that reads nothing */

static void run_later(struct control_stream *s)
{
	bufferevent_trigger(s->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

/* End the stream from its timer, so that the caller may go on using <s>. */
static void abandon(struct control_stream *s)
{
	s->closing = true;
	event_active(s->timer, EV_TIMEOUT, 0);
}

void control_stream_finish(struct control_stream *s)
{
	const struct timeval linger = {.tv_sec = 5};

	s->closing = true;
	bufferevent_disable(s->bev, EV_READ);
	if (evbuffer_get_length(bufferevent_get_output(s->bev)) == 0) {
		abandon(s);
		return;
	}
	bufferevent_setwatermark(s->bev, EV_WRITE, 0, 0);
	event_add(s->timer, &linger);
}

static void stream_free_text(const void *data, size_t n, void *context)
{
	free(context);
}

/* Consumes what <text> holds. */
static void send_text(struct control_stream *s, struct text *text)
{
	struct evbuffer *output = bufferevent_get_output(s->bev);

	text_string(text, "\n");
	/* by reference: a page of flows is too large to copy once more */
	if (text->failed || evbuffer_add_reference(output, text->data, text->n, stream_free_text,
						   text->data) != 0) {
		text_free(text);
		abandon(s);
	} else if (evbuffer_get_length(output) > OUTPUT_MAX) {
		abandon(s);
	}
}

void control_stream_send(struct control_stream *s, json_t *message)
{
	struct text text = {.failed = message == NULL};

	if (message != NULL)
		text_json(&text, message);
	json_decref(message);
	send_text(s, &text);
}

static void keep_lease(struct control_stream *s)
{
	const struct timeval lease = {.tv_sec = s->c.lease_ms / 1000,
				      .tv_usec = s->c.lease_ms % 1000 * 1000};

	if (!s->c.worker->ready)
		event_del(s->timer);
	else if (s->c.renewed)
		event_add(s->timer, &lease);
	s->c.renewed = false;
}

/* Start the phase's time limit only on entry: further lines do not extend it. */
static void stream_enter(struct control_stream *s, enum stream_phase phase, uint32_t ms)
{
	const struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	if (s->phase == phase)
		return;
	s->phase = phase;
	event_add(s->timer, &limit);
}

void control_stream_deadline(struct control_stream *s)
{
	if (s->c.role != CONTROL_AGENT || s->closing)
		return;
	if (s->c.over) {
		control_stream_finish(s);
	} else if (s->c.worker != NULL) {
		s->phase = STREAM_SERVING;
		keep_lease(s);
	} else if (s->c.greeted || s->phase == STREAM_SERVING) {
		stream_enter(s, STREAM_REGISTERING, CONTROL_REGISTER_S * 1000);
	} else if (s->phase == STREAM_NEW) {
		stream_enter(s, STREAM_GREETING, s->server->hello_ms);
	}
}

static void refuse_long_line(struct control_stream *s)
{
	char message[80];

	snprintf(message, sizeof(message), "line longer than %d bytes; send one message per line",
		 CONTROL_LINE_MAX);
	control_stream_send(s, control_error_reply(CONTROL_ERROR_REQUEST, message));
	control_stream_finish(s);
}

static bool is_blank(const char *line)
{
	return line[strspn(line, " \t\r")] == '\0';
}

/* Hand the socket to a capture's file; this thread writes nothing more to it. */
static void carry_capture(struct control_stream *s)
{
	if (s->c.carried == 0 ||
	    lb_capture_begin(s->c.lb, s->c.carried, bufferevent_getfd(s->bev)) < 0)
		control_stream_finish(s);
}

/* End the connection from which the worker was taken over. */
static void end_former(struct control_stream *s)
{
	struct control_stream *former;

	s->c.attached = false;
	LIST_FOREACH (former, &s->server->streams, next)
		if (former != s && former->c.over)
			control_stream_deadline(former);
}

static void handle_line(struct control_stream *s, const char *line, size_t n)
{
	struct text reply = {0};

	if (is_blank(line))
		return;
	control_dispatch(&s->c, line, n, &reply);
	if (s->c.attached)
		end_former(s);
	if (s->c.raw) {
		text_free(&reply);
		carry_capture(s);
		return;
	}
	if (reply.n > 0 || reply.failed)
		send_text(s, &reply);
	control_stream_deadline(s);
}

/* Discard the input of a peer that takes a file: it only shows that the peer is there. */
static void ignore_input(struct control_stream *s)
{
	struct evbuffer *input = bufferevent_get_input(s->bev);

	evbuffer_drain(input, evbuffer_get_length(input));
	if (s->ended)
		control_stream_finish(s);
}

/* Handle input without a whole line: it may be too long, or the peer's last. */
static void handle_rest(struct control_stream *s)
{
	if (evbuffer_get_length(bufferevent_get_input(s->bev)) > CONTROL_LINE_MAX)
		refuse_long_line(s);
	else if (s->ended)
		control_stream_finish(s);
}

static void on_read(struct bufferevent *bev, void *context)
{
	struct control_stream *s = context;
	size_t n;
	char *line;

	if (s->closing)
		return;
	if (s->c.raw) {
		ignore_input(s);
		return;
	}
	if (evbuffer_get_length(bufferevent_get_output(bev)) > OUTPUT_PAUSE) {
		bufferevent_disable(bev, EV_READ);
		return;
	}
	line = evbuffer_readln(bufferevent_get_input(bev), &n, EVBUFFER_EOL_LF);
	if (line == NULL) {
		handle_rest(s);
		return;
	}
	handle_line(s, line, n);
	free(line);
	if (!s->closing)
		run_later(s);
}

/* Called when the output fell to its low watermark. */
static void on_written(struct bufferevent *bev, void *context)
{
	struct control_stream *s = context;

	if (s->closing) {
		if (evbuffer_get_length(bufferevent_get_output(bev)) == 0)
			control_stream_destroy(s);
		return;
	}
	if (!s->ended)
		bufferevent_enable(bev, EV_READ);
	run_later(s);
}

/* True when the peer closed the connection; false when the network merely fell silent. */
static bool is_hung_up(short what)
{
	int error = EVUTIL_SOCKET_ERROR();

	if (what & BEV_EVENT_TIMEOUT)
		return false;
	return what & BEV_EVENT_EOF ||
	       (error != ETIMEDOUT && error != EHOSTUNREACH && error != ENETUNREACH);
}

static void stream_on_event(struct bufferevent *bev, short what, void *context)
{
	struct control_stream *s = context;

	/* an operator may send everything, shut down its side and read on, as socat does */
	if (what & BEV_EVENT_EOF && s->c.role != CONTROL_AGENT && !s->closing) {
		s->ended = true;
		bufferevent_disable(bev, EV_READ);
		run_later(s);
		return;
	}
	s->c.hung_up = is_hung_up(what);
	control_stream_destroy(s);
}

static void stream_on_timer(evutil_socket_t fd, short what, void *context)
{
	struct control_stream *s = context;

	/* The agent counts as heard again when it renews the lease. */
	if (s->c.worker != NULL && !s->closing)
		control_lease_end(&s->c);
	else
		control_stream_destroy(s);
}

struct control_stream *control_stream_create(struct control_server *server, struct bufferevent *bev,
					     enum control_role role, const char *peer, char *names)
{
	const struct timeval write_timeout = {.tv_sec = WRITE_TIMEOUT_S};
	struct control_stream *s = calloc(1, sizeof(*s));

	if (s == NULL)
		goto free_bev;
	s->server = server;
	s->c.lb = server->lb;
	s->c.role = role;
	s->c.server_start_ms = server->start_ms;
	s->c.names = s->names = names;
	s->c.window = server->window;
	s->c.refusals = &server->refusals;
	snprintf(s->c.peer, sizeof(s->c.peer), "%s", peer);
	s->timer = event_new(server->base, -1, 0, stream_on_timer, s);
	if (s->timer == NULL)
		goto free_stream;
	s->bev = bev;
	bufferevent_setcb(s->bev, on_read, on_written, stream_on_event, s);
	bufferevent_setwatermark(s->bev, EV_READ, 0, CONTROL_LINE_MAX + 1);
	bufferevent_setwatermark(s->bev, EV_WRITE, OUTPUT_RESUME, 0);
	bufferevent_set_timeouts(s->bev, NULL, &write_timeout);
	bufferevent_enable(s->bev, EV_READ | EV_WRITE);
	LIST_INSERT_HEAD(&server->streams, s, next);
	server->n_streams[role]++;
	control_stream_deadline(s);
	/* The first line may have come with the end of the handshake. */
	run_later(s);
	return s;

free_stream:
	free(s);
free_bev:
	free(names);
	bufferevent_free(bev);
	return NULL;
}

void control_stream_destroy(struct control_stream *s)
{
	LIST_REMOVE(s, next);
	s->server->n_streams[s->c.role]--;
	control_connection_closed(&s->c);
	event_free(s->timer);
	bufferevent_free(s->bev);
	free(s->names);
	free(s);
}
