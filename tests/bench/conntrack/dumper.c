/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <string.h>

#include <rte_cycles.h>

#include "conntrack/dumper.h"
#include "common/rig.h"

static void leave_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (i != cpu)
			CPU_SET(i, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Returns false when it was told to stop on the way. */
static bool dump_once(struct dumper *d)
{
	struct flow_info info[128];
	uint64_t begin = rte_rdtsc(), flows = 0;
	uint32_t cursor = 0;

	while (cursor != CONNTRACK_DUMP_END) {
		if (!__atomic_load_n(&d->on, __ATOMIC_RELAXED))
			return false;
		flows += conntrack_dump(d->ct, &cursor, info, RTE_DIM(info));
	}
	d->flows = flows;
	d->seconds = (double)(rte_rdtsc() - begin) / (double)rte_get_tsc_hz();
	return true;
}

static void *run(void *context)
{
	struct dumper *d = context;

	while (!__atomic_load_n(&d->stop, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&d->on, __ATOMIC_ACQUIRE))
			d->dumps += dump_once(d);
		else
			sched_yield();
	}
	return NULL;
}

/* The thread inherits this one's CPU, and moves to another. */
static void *begin(void *context)
{
	leave_cpu(sched_getcpu());
	return run(context);
}

void dumper_start(struct dumper *d, const struct conntrack *ct)
{
	memset(d, 0, sizeof(*d));
	d->ct = ct;
	if (pthread_create(&d->thread, NULL, begin, d) != 0)
		rig_die("no thread to dump with");
}

void dumper_switch(struct dumper *d, bool on)
{
	__atomic_store_n(&d->on, on, __ATOMIC_RELEASE);
}

void dumper_stop(struct dumper *d)
{
	dumper_switch(d, false);
	__atomic_store_n(&d->stop, 1, __ATOMIC_RELEASE);
	pthread_join(d->thread, NULL);
}
