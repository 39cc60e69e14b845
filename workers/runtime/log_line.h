/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One line of a log, as people or programs want it. What is logged is "module: words key=value
 * key=\"two words\"", whoever says it; the pairs become fields. Pure.
 */
#ifndef LOG_LINE_H
#define LOG_LINE_H

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
/* LOG_FORMATS for a name of none. */
enum log_format log_format_named(const char *name);

/* Bytes of a message that are kept; what a line of them takes at most, its end included. */
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
 * Write it with a newline and no other control character, in valid UTF-8; returns the bytes. The
 * text is cut at LOG_TEXT_MAX.
 */
size_t log_line_write(enum log_format format, const struct log_line *line, char out[LOG_LINE_MAX]);

/* "error" and so on; "debug" for what is no level. */
const char *log_level_name(int level);
/* The level's number, or -1. */
int log_level_number(const char *name);

#endif
