/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes the log to stderr, one line per write(), in a format of log_line.h. Takes all lines of
 * rte_log(), DPDK's own included. Any thread may log.
 */
#ifndef RUNTIME_LOG_SINK_H
#define RUNTIME_LOG_SINK_H

#include "runtime/log_line.h"

/* Take rte_log()'s lines from now on; callable before the EAL starts. 0 or -errno. */
int log_sink_open(enum log_format format);
void log_sink_format(enum log_format format);
/* Add worker=<name> to every line without a worker. <name> outlives the log. NULL: add none. */
void log_sink_worker(const char *name);

/* Log a line of the program itself: "doorbell-lb: ...", without a newline. */
void log_sink_print(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
