/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop on a CPU thread where others run in turn with it (turns/turns.h). It takes what is in
 * its rings as it comes, so it knows each request's deadline; it gives up what would be late, and
 * runs the batch that is worth most when its turn has come.
 */
#ifndef AGENT_LOOP_TURNS_H
#define AGENT_LOOP_TURNS_H

#include "loop/loop_cpu.h"

/* Its memory: 0, or -ENOMEM, which leaves what was made to loop_turns_destroy(). */
int loop_turns_create(struct agent_loop *loop);
void loop_turns_destroy(struct agent_loop *loop);

/*
 * Wait for the next batch, which is the loop's then: one to be run, with the turn, or requests that
 * are answered without a run. False: stop.
 */
bool loop_turns_gather(struct agent_loop *loop);
/* The batch begins, or has ended, and the turn with it. */
void loop_turns_begin(struct agent_loop *loop);
void loop_turns_end(struct agent_loop *loop);

/* Requests that were taken and wait. 0 where nobody runs in turn with the loop. */
uint32_t loop_turns_wait(const struct agent_loop *loop);

#endif
