/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that writes a capture: from the lcores' rings, in the order of time, to a socket whose
 * other end may read as slowly as it likes. All calls are the control thread's, and none waits for
 * the socket (private to lb/).
 */
#ifndef CAPTURE_WRITER_H
#define CAPTURE_WRITER_H

#include <pthread.h>
#include <stdbool.h>

#include "observe/capture_tap.h"
#include "config/config.h"
#include "observe/pcapng.h"

struct capture_writer {
	/* filled before the start, and left alone until the thread was joined */
	int fd; /* the thread's to close */
	struct capture_tap *tap;
	unsigned int n_taps;
	struct pcapng_interface interface;
	uint64_t count; /* packets to write, 0: any number */
	uint64_t tsc_per_ms;
	/* atomic, the thread's */
	uint64_t packets, bytes;
	bool full, failed; /* it has <count> of them; its reader has gone, or reads no more */
	bool done;
	/* atomic, of the control thread */
	bool ending, hurry;
	/* the thread's own */
	uint64_t start_ns, stuck_ms;
	uint8_t *buf;
	size_t n;
	pthread_t thread;
};

/* 0 or -errno. */
int capture_writer_start(struct capture_writer *w);
/* No lcore takes any more: write what there is, then the statistics, and be done. */
void capture_writer_end(struct capture_writer *w);
/* Over, without what is not written yet. */
void capture_writer_join(struct capture_writer *w);

#endif
