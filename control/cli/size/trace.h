/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trace of CUDA calls, as text: a line per call, in the order of the program, with seven words:
 *
 *   name kind gap_us call_us gpu_us sent_bytes received_bytes
 *
 * Empty lines and what follows a # are skipped. Pure but for trace_read().
 */
#ifndef SIZE_TRACE_H
#define SIZE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_CALLS_MAX 4000000
#define TRACE_BYTES_MAX (512ul << 20) /* of a file */
#define TRACE_US_MAX    1e9           /* of one time */
#define TRACE_LOAD_MAX  (1ull << 40)  /* bytes sent or received by one call */

enum trace_kind {
	TRACE_LOCAL, /* answered where the program runs: a shadow of what the server would say */
	TRACE_ASYNC, /* the program goes on as soon as the call is sent */
	TRACE_SYNC,  /* the program waits for the call's answer */
	TRACE_WAIT,  /* and that for all work on the GPU so far */
	TRACE_KINDS,
};

struct trace_call {
	enum trace_kind kind;
	double gap_us;  /* the program's own time before the call */
	double call_us; /* of the call itself, beside the GPU */
	double gpu_us;  /* of the work that it gives to the GPU; the GPU does it in order */
	uint64_t sent, received; /* bytes */
};

struct trace {
	size_t n;
	struct trace_call *call; /* owned */
};

const char *trace_kind_name(enum trace_kind kind);

/*
 * Read <length> bytes of text. Returns 0; -EINVAL with a sentence in <error> that names line and
 * word, or says that there is no call; -ENOMEM; -E2BIG. After an error <trace> is empty.
 */
int trace_parse(struct trace *trace, const char *text, size_t length, char *error, size_t size);
/* The same of a file; <error> has a sentence after any failure. Returns -errno. */
int trace_read(struct trace *trace, const char *path, char *error, size_t size);
void trace_fini(struct trace *trace);

#endif
