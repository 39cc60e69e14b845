/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/drop.h"
#include "packet/notice.h"
#include "stream_owner.h"

static void owner_require(bool holds, const char *promise)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", promise);
	abort();
}

void stream_owner_init(struct stream_owner *o, const struct stream_framing *framing,
		       uint64_t max_request)
{
	*o = (struct stream_owner){.framing = framing, .settings.max_request = max_request};
	o->log = calloc(1, 1);
}

void stream_owner_fini(struct stream_owner *o)
{
	if (o->framing->release != NULL)
		o->framing->release(&o->stream);
	free(o->request);
	free(o->log);
}

__attribute__((format(printf, 2, 3))) static void owner_log(struct stream_owner *o,
							    const char *format, ...)
{
	char line[256];
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	owner_require(n > 0 && (size_t)n < sizeof(line), "a line of the log fits");
	o->log = realloc(o->log, o->log_length + (size_t)n + 1);
	memcpy(o->log + o->log_length, line, (size_t)n + 1);
	o->log_length += (size_t)n;
}

/* Returns the request of an action; a number not named before is that of a new request. */
static struct owned_request *owner_request(struct stream_owner *o, uint32_t number)
{
	owner_require(number <= o->requests, "requests are numbered in order");
	if (number == o->requests) {
		o->request = realloc(o->request, ++o->requests * sizeof(*o->request));
		o->request[number] = (struct owned_request){0};
	}
	owner_require(!o->request[number].over, "nothing follows a request's end");
	return &o->request[number];
}

static void owner_begin(struct stream_owner *o, const struct stream_action *a)
{
	struct owned_request *r = owner_request(o, a->request);

	owner_require(!r->begun, "a request begins once");
	owner_require(a->begin.size == STREAM_SIZE_UNKNOWN ||
			      (a->begin.size > 0 && a->begin.size <= o->settings.max_request),
		      "a request is as large as allowed");
	owner_require(a->begin.priority <= 4, "priorities end at 4");
	r->begun = true;
	r->size = a->begin.size;
	owner_log(o, "begin %u", a->request);
	if (r->size == STREAM_SIZE_UNKNOWN)
		owner_log(o, " of unknown size");
	else
		owner_log(o, " of %" PRIu64, r->size);
	if (a->begin.tag != 0)
		owner_log(o, " tag %" PRIx64, a->begin.tag);
	if (a->begin.deadline_us != 0)
		owner_log(o, " deadline %u", a->begin.deadline_us);
	if (a->begin.priority != 0)
		owner_log(o, " priority %u", a->begin.priority);
	owner_log(o, "\n");
}

static void owner_name_bytes(struct stream_owner *o, uint32_t number, uint64_t offset,
			     uint64_t length)
{
	struct owned_request *r = owner_request(o, number);

	owner_require(r->begun, "bytes are of a request that began");
	owner_require(length > 0 && offset == r->named, "a request's bytes join");
	owner_require(length <= o->settings.max_request - r->named, "no more than is allowed");
	r->named += length;
	owner_require(r->named <= r->size, "no more than was said");
}

static void owner_extent(struct stream_owner *o, const struct stream_action *a)
{
	owner_name_bytes(o, a->request, a->extent.offset, a->extent.length);
	owner_require(a->extent.position >= o->extents_end, "extents are in order");
	o->extents_end = a->extent.position + a->extent.length;
	owner_require(o->extents_end > a->extent.position, "positions do not wrap");
	owner_require(o->extents_end <= o->stream.position, "the position is behind an extent");
	owner_log(o, "extent %u: %" PRIu64 " from %" PRIu64 " at %" PRIu64 "\n", a->request,
		  a->extent.length, a->extent.position, a->extent.offset);
}

static void owner_bytes(struct stream_owner *o, const struct stream_action *a, const char *verb)
{
	owner_log(o, "%s %u:%s", verb, a->request, a->bytes.ends ? " ends:" : "");
	for (uint32_t i = 0; i < a->bytes.length; i++)
		owner_log(o, " %02x", a->bytes.at[i]);
	owner_log(o, "\n");
}

static void owner_end(struct stream_owner *o, const struct stream_action *a)
{
	struct owned_request *r = owner_request(o, a->request);

	owner_require(r->begun, "a request ends that began");
	owner_require(a->size > 0 && a->size == r->named, "all bytes were named");
	owner_require(r->size == a->size || r->size == STREAM_SIZE_UNKNOWN,
		      "a request is as large as was said");
	r->over = true;
	owner_log(o, "end %u of %" PRIu64 "\n", a->request, a->size);
}

static void owner_refuse(struct stream_owner *o, const struct stream_action *a)
{
	owner_request(o, a->request)->over = true;
	owner_require(a->refuse.notice > 0 && a->refuse.notice < LB_NOTICE_CODES,
		      "a refusal has a notice");
	owner_require(a->refuse.reason < LB_DROP_NONE, "a refusal has a reason");
	owner_log(o, "refuse %u notice %u", a->request, a->refuse.notice);
	if (a->refuse.tag != 0)
		owner_log(o, " tag %" PRIx64, a->refuse.tag);
	owner_log(o, "\n");
}

/* The same as three actions. */
static void owner_whole(struct stream_owner *o, const struct stream_action *a)
{
	struct stream_action extent = {.kind = STREAM_EXTENT, .request = a->request};

	extent.extent.position = a->whole.position;
	extent.extent.length = a->whole.begin.size;
	owner_begin(o, &(struct stream_action){.kind = STREAM_BEGIN,
					       .request = a->request,
					       .begin = a->whole.begin});
	owner_extent(o, &extent);
	owner_end(o, &(struct stream_action){.kind = STREAM_END,
					     .request = a->request,
					     .size = a->whole.begin.size});
}

static void owner_act(struct stream_owner *o, const struct stream_action *a)
{
	owner_require(!o->closed, "nothing follows a close");
	switch ((enum stream_action_kind)a->kind) {
	case STREAM_REQUEST:
		owner_whole(o, a);
		break;
	case STREAM_BEGIN:
		owner_begin(o, a);
		break;
	case STREAM_EXTENT:
		owner_extent(o, a);
		break;
	case STREAM_PRODUCE:
		owner_name_bytes(o, a->request, a->bytes.offset, a->bytes.length);
		owner_bytes(o, a, "produce");
		break;
	case STREAM_END:
		owner_end(o, a);
		break;
	case STREAM_REFUSE:
		owner_refuse(o, a);
		break;
	case STREAM_CANCEL:
		owner_log(o, "cancel tag %" PRIx64 "\n", a->tag);
		break;
	case STREAM_SEND:
		if (a->bytes.of_request)
			owner_request(o, a->request)->over |= a->bytes.ends;
		owner_bytes(o, a, "send");
		break;
	case STREAM_CLOSE:
		owner_require(o->stream.position == STREAM_CLOSED, "a close needs no byte");
		o->closed = true;
		owner_log(o, "close\n");
		break;
	default:
		owner_require(false, "actions are of a known kind");
	}
}

/* whole() takes what read() would call one request that ends with the bytes, and nothing else. */
static void owner_check_whole(const struct stream_owner *o, const uint8_t *bytes, uint32_t length)
{
	struct stream taken = o->stream, read = o->stream;
	struct stream_action action[STREAM_ACTIONS_MIN];
	struct stream_begin begin;
	uint32_t header;
	bool is_whole;

	if (o->framing->whole == NULL)
		return;
	is_whole = o->framing->read(&read, &o->settings, bytes, length, action,
				    STREAM_ACTIONS_MIN) == 1 &&
		   action[0].kind == STREAM_REQUEST && o->stream.got == 0 &&
		   read.position == o->stream.position + length;
	header = o->framing->whole(&taken, &o->settings, bytes, length, &begin);
	owner_require(is_whole == (header != 0), "a whole request is taken as one");
	if (header == 0)
		return owner_require(memcmp(&taken, &o->stream, sizeof(taken)) == 0,
				     "nothing changes where none is");
	owner_require(taken.position == read.position && taken.requests == read.requests &&
			      taken.got == 0 &&
			      o->stream.position + header == action[0].whole.position,
		      "it is as if it had been read");
	owner_require(begin.size == action[0].whole.begin.size &&
			      begin.tag == action[0].whole.begin.tag &&
			      begin.deadline_us == action[0].whole.begin.deadline_us &&
			      begin.priority == action[0].whole.begin.priority &&
			      begin.service == action[0].whole.begin.service,
		      "the same is said of it");
}

/* One call of read() with the bytes from the stream's position on. */
static unsigned int owner_read(struct stream_owner *o, const uint8_t *bytes, uint32_t length,
			       unsigned int max)
{
	struct stream_action *actions = malloc(max * sizeof(*actions));
	uint8_t *exact = malloc(length);
	uint64_t before = o->stream.position;
	unsigned int n;

	memcpy(exact, bytes, length);
	owner_check_whole(o, exact, length);
	n = o->framing->read(&o->stream, &o->settings, exact, length, actions, max);
	owner_require(n <= max, "no more actions than there is room for");
	owner_require(o->stream.position >= before, "the position does not run backwards");
	owner_require(o->stream.position - before >= length || n > 0, "bytes are read or named");
	for (unsigned int i = 0; i < n; i++)
		owner_act(o, &actions[i]);
	owner_require(o->requests == o->stream.requests, "requests are counted");
	owner_require(o->closed == (o->stream.position == STREAM_CLOSED), "closed is closed");
	free(actions);
	free(exact);
	return n;
}

void stream_owner_take(struct stream_owner *o, const uint8_t *bytes, size_t n, unsigned int max)
{
	uint64_t start = o->came, end = o->came + n;

	owner_require(max >= STREAM_ACTIONS_MIN, "there is room for actions");
	o->came = end;
	while (o->stream.position < end) {
		uint64_t from = o->stream.position - start;

		owner_read(o, bytes + from, (uint32_t)(n - from), max);
	}
	/* Also when it is closed. */
	owner_require(owner_read(o, (const uint8_t *)"", 0, max) == 0, "no bytes, no actions");
}

void stream_owner_take_headers(struct stream_owner *o, const uint8_t *bytes, size_t n,
			       unsigned int max)
{
	for (size_t i = 0; i < n && !o->closed; i++) {
		o->came = o->stream.position;
		stream_owner_take(o, bytes + i, 1, max);
	}
}
