/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports to systemd, or another supervisor that set $NOTIFY_SOCKET: readiness, status, watchdog.
 * Control thread; part of the program, not of the load balancer.
 */
#ifndef LB_SUPERVISOR_H
#define LB_SUPERVISOR_H

#include "runtime/notify.h"

struct lb;

struct supervisor {
	struct notify notify;
	uint64_t next_ms;    /* time of the next watchdog and status message */
	unsigned int active; /* active workers in the last status */
	unsigned int services;
	bool stopping;
};

void supervisor_open(struct supervisor *s);
void supervisor_close(struct supervisor *s);

void supervisor_ready(struct supervisor *s, struct lb *lb);
/* A reload begins; supervisor_ready() ends it. */
void supervisor_reloading(struct supervisor *s);
/* A stop begins and may take <timeout_ms>. */
void supervisor_stopping(struct supervisor *s, uint32_t timeout_ms);
/* Call at every tick of the control thread. */
void supervisor_tick(struct supervisor *s, struct lb *lb, uint64_t now_ms);

#endif
