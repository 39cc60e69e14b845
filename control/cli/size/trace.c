/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/size/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CALLS 1024
#define WORDS       7
#define NAME_MAX_   63
#define NUMBER_MAX  40
#define DIGITS      "0123456789"

static const char *const kind_names[TRACE_KINDS] = {
	[TRACE_LOCAL] = "local",
	[TRACE_ASYNC] = "async",
	[TRACE_SYNC] = "sync",
	[TRACE_WAIT] = "wait",
};

const char *trace_kind_name(enum trace_kind kind)
{
	return kind_names[kind];
}

/* A word of a line: not terminated. */
struct word {
	const char *at;
	size_t length;
};

struct trace_line {
	unsigned long number;
	unsigned int n;
	struct word word[WORDS];
	char *error;
	size_t size;
};

static int trace_refuse(const struct trace_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int trace_refuse(const struct trace_line *line, const char *format, ...)
{
	int at = snprintf(line->error, line->size, "line %lu: ", line->number);
	va_list ap;

	va_start(ap, format);
	if (at > 0 && (size_t)at < line->size)
		vsnprintf(line->error + at, line->size - (size_t)at, format, ap);
	va_end(ap);
	return -EINVAL;
}

/* A word for a message: its beginning, without characters that a terminal would obey. */
static const char *word_shown(const struct word *w, char text[24])
{
	size_t n = w->length < 20 ? w->length : 20;

	for (size_t i = 0; i < n; i++)
		text[i] = w->at[i] > ' ' && w->at[i] <= '~' ? w->at[i] : '?';
	strcpy(text + n, n < w->length ? "..." : "");
	return text;
}

static const char *const columns[WORDS] = {"name",   "kind",       "gap_us",        "call_us",
					   "gpu_us", "sent_bytes", "received_bytes"};

/* Decimal digits, and one point in a number that is no <whole> one. */
static int word_number(const struct trace_line *line, unsigned int column, bool whole, double max,
		       double *value)
{
	const struct word *w = &line->word[column];
	char text[NUMBER_MAX + 1], shown[24], *end = text;

	if (w->length <= NUMBER_MAX) {
		memcpy(text, w->at, w->length);
		text[w->length] = '\0';
		if (strspn(text, whole ? DIGITS : DIGITS ".") == w->length && text[0] != '.')
			*value = strtod(text, &end);
	}
	if (end == text || *end != '\0')
		return trace_refuse(line, "%s: '%s' is no %snumber; write digits%s",
				    columns[column], word_shown(w, shown), whole ? "whole " : "",
				    whole ? "" : ", as 12 or 3.5");
	if (*value > max)
		return trace_refuse(line, "%s: %s is too much; at most %.0f", columns[column],
				    word_shown(w, shown), max);
	return 0;
}

static int word_kind(const struct trace_line *line, enum trace_kind *kind)
{
	const struct word *w = &line->word[1];
	char shown[24];

	for (unsigned int k = 0; k < TRACE_KINDS; k++) {
		if (strlen(kind_names[k]) != w->length ||
		    memcmp(kind_names[k], w->at, w->length) != 0)
			continue;
		*kind = (enum trace_kind)k;
		return 0;
	}
	return trace_refuse(line, "kind: '%s' is none of local, async, sync, wait",
			    word_shown(w, shown));
}

static int line_call(const struct trace_line *line, struct trace_call *call)
{
	double sent = 0, received = 0;
	char shown[24];
	int ret;

	if (line->n != WORDS)
		return trace_refuse(line,
				    "%u words; a call has %d: name kind gap_us call_us "
				    "gpu_us sent_bytes received_bytes",
				    line->n, WORDS);
	if (line->word[0].length > NAME_MAX_)
		return trace_refuse(line, "name: '%s' is longer than %d characters",
				    word_shown(&line->word[0], shown), NAME_MAX_);
	ret = word_kind(line, &call->kind);
	if (ret == 0)
		ret = word_number(line, 2, false, TRACE_US_MAX, &call->gap_us);
	if (ret == 0)
		ret = word_number(line, 3, false, TRACE_US_MAX, &call->call_us);
	if (ret == 0)
		ret = word_number(line, 4, false, TRACE_US_MAX, &call->gpu_us);
	if (ret == 0)
		ret = word_number(line, 5, true, (double)TRACE_LOAD_MAX, &sent);
	if (ret == 0)
		ret = word_number(line, 6, true, (double)TRACE_LOAD_MAX, &received);
	if (ret != 0)
		return ret;
	call->sent = (uint64_t)sent;
	call->received = (uint64_t)received;
	if (call->kind == TRACE_LOCAL && (call->gpu_us > 0 || sent > 0 || received > 0))
		return trace_refuse(line, "a local call has no work for the GPU and no bytes on "
					  "the network; write 0 0 0, or another kind");
	if (call->kind == TRACE_ASYNC && received > 0)
		return trace_refuse(line, "an async call receives no bytes: nothing waits for "
					  "them; write 0, or sync");
	return 0;
}

/* Cut a line into words. <n> counts those beyond WORDS, too. */
static void line_cut(struct trace_line *line, const char *at, const char *end)
{
	line->n = 0;
	while (at < end) {
		const char *start;

		while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
			at++;
		if (at == end || *at == '#')
			return;
		start = at;
		while (at < end && *at != ' ' && *at != '\t' && *at != '\r')
			at++;
		if (line->n < WORDS)
			line->word[line->n] = (struct word){start, (size_t)(at - start)};
		line->n++;
	}
}

static int trace_add(struct trace *trace, size_t *room, const struct trace_call *call)
{
	if (trace->n == TRACE_CALLS_MAX)
		return -E2BIG;
	if (trace->n == *room) {
		size_t more = *room != 0 ? 2 * *room : FIRST_CALLS;
		struct trace_call *calls = reallocarray(trace->call, more, sizeof(*calls));

		if (calls == NULL)
			return -ENOMEM;
		trace->call = calls;
		*room = more;
	}
	trace->call[trace->n++] = *call;
	return 0;
}

int trace_parse(struct trace *trace, const char *text, size_t length, char *error, size_t size)
{
	struct trace_line line = {.error = error, .size = size};
	const char *end = text + length;
	size_t room = 0;
	int ret = 0;

	memset(trace, 0, sizeof(*trace));
	while (ret == 0 && text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		struct trace_call call = {0};

		stop = stop != NULL ? stop : end;
		line.number++;
		line_cut(&line, text, stop);
		if (line.n != 0)
			ret = line_call(&line, &call);
		if (line.n != 0 && ret == 0) {
			ret = trace_add(trace, &room, &call);
			if (ret != 0)
				snprintf(error, size, "line %lu: %s", line.number,
					 ret == -E2BIG ? "more than 4,000,000 calls; cut the trace"
						       : "no memory for the calls");
		}
		text = stop < end ? stop + 1 : end;
	}
	if (ret == 0 && trace->n == 0) {
		snprintf(error, size,
			 "there is no call in it; write a line per call: name kind "
			 "gap_us call_us gpu_us sent_bytes received_bytes");
		ret = -EINVAL;
	}
	if (ret != 0)
		trace_fini(trace);
	return ret;
}

/* Read all of a file. Returns -errno. */
static int file_text(FILE *file, char **text, size_t *length)
{
	size_t room = 1 << 16;

	*length = 0;
	for (*text = NULL;; room *= 2) {
		char *more = realloc(*text, room);

		if (more == NULL)
			return -ENOMEM;
		*text = more;
		*length += fread(*text + *length, 1, room - *length, file);
		if (ferror(file))
			return errno != 0 ? -errno : -EIO;
		if (*length < room)
			return 0;
		if (room >= TRACE_BYTES_MAX)
			return -EFBIG;
	}
}

int trace_read(struct trace *trace, const char *path, char *error, size_t size)
{
	char *text = NULL;
	size_t length;
	FILE *file;
	int ret;

	memset(trace, 0, sizeof(*trace));
	errno = 0;
	file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	ret = file == NULL ? -errno : file_text(file, &text, &length);
	if (file == NULL)
		snprintf(error, size, "cannot be opened: %s", strerror(-ret));
	else if (ret != 0)
		snprintf(error, size, "cannot be read: %s", strerror(-ret));
	else
		ret = trace_parse(trace, text, length, error, size);
	if (file != NULL && file != stdin)
		fclose(file);
	free(text);
	return ret;
}

void trace_fini(struct trace *trace)
{
	free(trace->call);
	memset(trace, 0, sizeof(*trace));
}
