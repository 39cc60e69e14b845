/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop on a CPU thread for models whose replies come in pieces. */
#ifndef AGENT_LOOP_STEPS_H
#define AGENT_LOOP_STEPS_H

#include "loop/loop_cpu.h"

/* Its memory: 0, or -ENOMEM, which leaves what was made to loop_steps_destroy(). */
int loop_steps_create(struct agent_loop *loop);
void loop_steps_destroy(struct agent_loop *loop);
/* The thread's function. */
void *loop_steps_thread(void *loop);

#endif
