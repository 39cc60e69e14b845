/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/log_sink.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_log.h>

/* One per process, as stderr is. */
static struct {
	pthread_mutex_t lock;
	enum log_format format;
	const char *worker;      /* added to lines without one; NULL: none */
	char text[LOG_TEXT_MAX]; /* a line without its end so far */
	size_t length;
	char out[LOG_LINE_MAX];
	FILE *stream; /* never closed: other threads may be logging */
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A write error loses the line: stderr is the only place to report it. */
static void sink_write(const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t written = write(STDERR_FILENO, bytes, n);

		if (written < 0 && errno != EINTR)
			return;
		if (written > 0) {
			bytes += written;
			n -= (size_t)written;
		}
	}
}

static void sink_name_worker(void)
{
	size_t room = sizeof(sink.text) - sink.length;
	int n;

	if (sink.worker == NULL || memmem(sink.text, sink.length, "worker=", 7) != NULL)
		return;
	n = snprintf(sink.text + sink.length, room, " worker=%s", sink.worker);
	if (n > 0 && (size_t)n < room)
		sink.length += (size_t)n;
}

static void sink_end_line(int level)
{
	struct log_line line = {.level = level, .text = sink.text};

	sink_name_worker();
	line.length = sink.length;

	clock_gettime(CLOCK_REALTIME, &line.time);
	sink_write(sink.out, log_line_write(sink.format, &line, sink.out));
	sink.length = 0;
}

static void sink_take(int level, const char *bytes, size_t n)
{
	pthread_mutex_lock(&sink.lock);
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n')
			sink_end_line(level);
		else if (sink.length < sizeof(sink.text))
			sink.text[sink.length++] = bytes[i];
	}
	pthread_mutex_unlock(&sink.lock);
}

/* Called by the thread that logs, during its rte_log() call, which flushes the stream. */
static ssize_t sink_on_write(void *cookie, const char *bytes, size_t n)
{
	sink_take(rte_log_cur_msg_loglevel(), bytes, n);
	return (ssize_t)n;
}

int log_sink_open(enum log_format format)
{
	static const cookie_io_functions_t functions = {.write = sink_on_write};

	log_sink_format(format);
	if (sink.stream == NULL) {
		sink.stream = fopencookie(NULL, "w", functions);
		if (sink.stream == NULL)
			return -errno;
		/* Unbuffered, so that each message is one write with its own level. */
		setvbuf(sink.stream, NULL, _IONBF, 0);
	}
	return rte_openlog_stream(sink.stream) == 0 ? 0 : -EINVAL;
}

void log_sink_format(enum log_format format)
{
	pthread_mutex_lock(&sink.lock);
	sink.format = format;
	pthread_mutex_unlock(&sink.lock);
}

void log_sink_worker(const char *name)
{
	pthread_mutex_lock(&sink.lock);
	sink.worker = name;
	pthread_mutex_unlock(&sink.lock);
}

void log_sink_print(int level, const char *format, ...)
{
	char text[LOG_TEXT_MAX];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	sink_take(level, text, strlen(text));
	sink_take(level, "\n", 1);
}
