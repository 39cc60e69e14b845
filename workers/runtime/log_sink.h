/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the log goes: stderr, a line per write(), in one of the formats of log_line.h. Takes what
 * is logged by rte_log(), DPDK's own lines included. Any thread may log.
 */
#ifndef LOG_SINK_H
#define LOG_SINK_H

#include "runtime/log_line.h"

/* Take rte_log()'s lines from now on; may be called before the EAL starts. 0 or -errno. */
int log_sink_open(enum log_format format);
void log_sink_format(enum log_format format);
/* Every line that names no worker names this one: several processes may share a log. <name> stays. */
void log_sink_worker(const char *name);

/* What a program says for itself: "doorbell-lb: ..." without a newline. */
void log_sink_print(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
