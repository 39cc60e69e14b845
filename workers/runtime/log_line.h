/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Formats one log line for people or programs. A message is "module: words key=value
 * key=\"two words\""; the pairs become fields. Pure.
 */
#ifndef RUNTIME_LOG_LINE_H
#define RUNTIME_LOG_LINE_H

#include <stddef.h>
#include <time.h>

enum log_format {
	LOG_FORMAT_TEXT,   /* 2026-11-22T06:00:00.000000Z notice lb: serving control=... */
	LOG_FORMAT_LOGFMT, /* time=... level=notice module=lb msg=serving control=... */
	LOG_FORMAT_JSON,   /* {"time":"...","level":"notice","module":"lb","msg":"serving",...} */
	LOG_FORMATS,
};

/* "text", "logfmt", "json", then NULL */
extern const char *const log_format_names[LOG_FORMATS + 1];

/* Most bytes of a message, and of the line that it becomes, newline included. */
#define LOG_TEXT_MAX 2048
#define LOG_LINE_MAX (16 * LOG_TEXT_MAX)

struct log_line {
	struct timespec time;
	int level; /* 1 to 8 as in rte_log.h: emergency to debug */
	/* One message without its newline, any bytes. */
	const char *text;
	size_t length;
};

/*
 * Write <line> to <out> as valid UTF-8 with a newline and no other control character; returns the
 * number of bytes. Text beyond LOG_TEXT_MAX is cut off.
 */
size_t log_line_write(enum log_format format, const struct log_line *line, char out[LOG_LINE_MAX]);

/* The level's name: "error" ...; "debug" when <level> is out of range. */
const char *log_level_name(int level);
/* The number of a level's name, or -1. */
int log_level_number(const char *name);

#endif
