/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What doorbell-lb tells systemd, or whoever set $NOTIFY_SOCKET: that it serves, how it is, that it
 * is alive. Control thread; part of the program, not of the load balancer.
 */
#ifndef LB_SUPERVISOR_H
#define LB_SUPERVISOR_H

#include "runtime/notify.h"

struct lb;

struct supervisor {
	struct notify notify;
	uint64_t next_ms;    /* when to say again that it is alive, and how it is */
	unsigned int active; /* workers, as it said last */
	unsigned int services;
	bool stopping;
};

void supervisor_open(struct supervisor *s);
void supervisor_close(struct supervisor *s);

void supervisor_ready(struct supervisor *s, struct lb *lb);
/* Around a reload. */
void supervisor_reloading(struct supervisor *s);
/* It may take so long. */
void supervisor_stopping(struct supervisor *s, uint32_t timeout_ms);
/* Often: every tick of the control thread. */
void supervisor_tick(struct supervisor *s, struct lb *lb, uint64_t now_ms);

#endif
