/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several workers, a process each (private to gpu-agent/). The supervisor starts this program anew
 * for every worker, watches it, and starts it again when it ended by a fault or gives no sign of
 * life. It has no GPU, no memory for packets and no connection; it sleeps until something happens.
 *
 * It speaks to its workers as systemd does to a service: they send READY=1 and WATCHDOG=1 to the
 * socket in $NOTIFY_SOCKET, and a SIGTERM asks them to drain. Main thread.
 */
#ifndef AGENT_SUPERVISOR_H
#define AGENT_SUPERVISOR_H

#include <stdbool.h>

struct agent_options;
struct notify;

/* Do they ask for several workers, in processes of their own? */
bool agent_supervisor_wanted(const struct agent_options *o);

/*
 * Run them until all have left. <argv> is what the options were made from, not written to since.
 * Who started this process hears of it by <notify>; <stop_fd> becomes readable, with a number, when
 * somebody wants them to leave (again). Returns the program's exit status.
 */
int agent_supervisor_run(int argc, char **argv, const struct agent_options *o,
			 const struct notify *notify, int stop_fd);

/* In a worker: its name, or NULL when nobody supervises this process. */
const char *agent_supervised_name(void);
/* In a worker: the supervisor has claimed this device for all of them. */
bool agent_supervisor_claimed(const char *device);

#endif
