/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads counters straight from their owners' memory, without locks. Each is a 64-bit word that only
 * its lcore writes. Any thread.
 */
#ifndef LB_STATS_H
#define LB_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "lcore/counters.h"
#include "lcore/latency.h"

struct conntrack;
struct lb;
struct worker;

const char *lb_stage_name(enum lb_stage stage);

unsigned int lb_lcores(const struct lb *lb);

/* True when the configuration's port of this index has a link, as of about 100 ms ago. */
bool lb_port_up(const struct lb *lb, unsigned int port);
/* The counters of one lcore, and of one service on all lcores. Each read fills all of <out>. */
void lb_lcore_stats_read(const struct lb *lb, unsigned int lcore, struct lb_lcore_stats *out);
/* Packet buffers of an lcore that are in use now: those that its ports' receive queues hold ready are, too. */
struct lb_memory {
	uint64_t packets, packets_max; /* what ports receive into, and what is held of it */
	uint64_t control;              /* acknowledgements, notices */
	uint64_t cancels;
	uint64_t indirect; /* headers, and names of ranges of other buffers */
	uint64_t reassembled;
};
void lb_memory_read(const struct lb *lb, unsigned int lcore, struct lb_memory *out);
void lb_service_stats_read(const struct lb *lb, unsigned int service, struct lb_service_stats *out);
/* Sum over the worker's links; zeroes when it has none. */
void lb_worker_stats_read(const struct lb *lb, const struct worker *worker,
			  struct lb_link_stats *out);
/* The histograms of a service, and of a worker's links: its first LATENCY_LINK_PARTS. */
void lb_service_latency_read(const struct lb *lb, unsigned int service, struct latency *out);
void lb_worker_latency_read(const struct lb *lb, const struct worker *worker, struct latency *out);
/* One lcore's flow table, for conntrack_dump(), conntrack_count() and conntrack_stats_read(). */
const struct conntrack *lb_conntrack(const struct lb *lb, unsigned int lcore);
/* The clock of flows' last_seen and created, ms. */
uint32_t lb_now_ms(const struct lb *lb);

#endif
