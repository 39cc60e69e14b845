/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A load balancer without ports, for the tests and the fuzzer of control: real flow tables and a
 * real pool, and the lb_* calls between them that control makes. Two lcores; services "chat"
 * (model llama) and "vision" (model vit).
 */
#ifndef CONTROL_FAKE_LB_H
#define CONTROL_FAKE_LB_H

#include "lb.h"

#define FAKE_FLOWS 4096 /* per lcore */

/* EAL, once per process, before the first fake_lb_create(). */
void fake_eal(void);
/* The same with <megabytes> of memory, for more than a few small tables. */
void fake_eal_sized(unsigned int megabytes);

struct lb *fake_lb_create(void);
/* The same with room for so many flows per lcore; some 140 bytes of EAL's memory each. */
struct lb *fake_lb_create_sized(uint32_t flows);
void fake_lb_destroy(struct lb *lb);

/* The configuration, to change before use. */
struct lb_config *fake_lb_config(struct lb *lb);
/* Adds <requests> to the counters of every service and every lcore. */
void fake_lb_count(struct lb *lb, uint64_t requests);
/* The histograms of every service and every worker, to change before use. */
struct latency *fake_lb_latency(struct lb *lb);
/* From now on its lcores do not poll: it is being stopped. */
void fake_lb_halt(struct lb *lb);
void fake_lb_stopping(struct lb *lb);
/* Move the clock. */
void fake_lb_at(struct lb *lb, uint32_t now_ms);

/* A flow of client number <n> (10.0.0.0 + n, or IPv6 when odd) on <lcore>. */
struct flow *fake_lb_flow(struct lb *lb, unsigned int lcore, uint32_t n, uint16_t service,
			  const struct worker *worker);

/* Returns the flow table of <lcore>, to change what its flows say. */
struct conntrack *fake_lb_conntrack(struct lb *lb, unsigned int lcore);

/* Adds an active worker without a registration. */
struct worker *fake_lb_worker(struct lb *lb, const char *name);
/* The same of another model, which is described, in version <version>: FP32 [-1,4] in and out. */
struct worker *fake_lb_described(struct lb *lb, const char *name, const char *model,
				 const char *version);
/* Applies the effect of a heartbeat. */
void fake_lb_heartbeat(struct lb *lb, struct worker *worker);
/* Sets how many requests wait for an answer. Zero ends a drain. */
void fake_lb_outstanding(struct lb *lb, struct worker *worker, unsigned int n);
/* Applies the effect of missed heartbeats: the worker is dead. */
void fake_lb_kill(struct lb *lb, struct worker *worker);
/* The reason of the last removal, "" before it. */
const char *fake_lb_removed(const struct lb *lb);

#endif
