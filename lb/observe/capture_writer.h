/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that writes a capture from the lcores' rings to a socket, in the order of time
 * (private to lb/). The socket's reader may be arbitrarily slow. The control thread makes all
 * calls, and none waits for the socket.
 */
#ifndef CAPTURE_WRITER_H
#define CAPTURE_WRITER_H

#include <pthread.h>
#include <stdbool.h>

#include "observe/capture_tap.h"
#include "config/config.h"
#include "observe/pcapng.h"

struct capture_writer {
	/* set before the start, and not changed until the thread is joined */
	int fd; /* the thread closes it */
	struct capture_tap *tap;
	unsigned int n_taps;
	struct pcapng_interface interface;
	uint64_t count; /* packets to write, 0: any number */
	uint64_t tsc_per_ms;
	/* atomic, written by the thread */
	uint64_t packets, bytes;
	bool full,
		failed; /* <count> packets are written; the reader has gone, or stopped reading */
	bool done;
	/* atomic, written by the control thread */
	bool ending, hurry;
	/* the thread's own */
	uint64_t start_ns, stuck_ms;
	uint8_t *buf;
	size_t n;
	pthread_t thread;
};

/* Start the thread. 0 or -errno. */
int capture_writer_start(struct capture_writer *w);
/* The lcores have stopped: let the thread write what is in the rings, then the statistics. */
void capture_writer_end(struct capture_writer *w);
/* End the thread now; packets that are not written yet are lost. */
void capture_writer_join(struct capture_writer *w);

#endif
