/* SPDX-License-Identifier: BSD-3-Clause */
/* Another thread that dumps a flow table from beginning to end, over and over, while told to. */
#ifndef BENCH_DUMPER_H
#define BENCH_DUMPER_H

#include <pthread.h>

#include "conntrack.h"

struct dumper {
	const struct conntrack *ct;
	pthread_t thread;
	int on, stop;   /* atomic */
	uint64_t dumps; /* whole ones; the thread's while it runs */
	double seconds; /* of the last whole one */
	uint64_t flows; /* in it */
};

/* On any CPU but the caller's, if there is another. */
void dumper_start(struct dumper *d, const struct conntrack *ct);
void dumper_switch(struct dumper *d, bool on);
/* Ends the thread; results may be read. */
void dumper_stop(struct dumper *d);

#endif
