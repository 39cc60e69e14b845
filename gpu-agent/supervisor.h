/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs several workers, a process each (private to gpu-agent/). The supervisor starts this program
 * again for every worker, watches it, and restarts it when it has ended by a fault or gives no sign
 * of life. It has no GPU, no packet memory and no connection; it sleeps until something happens.
 *
 * It talks to its workers as systemd does to a service: they send READY=1 and WATCHDOG=1 to the
 * socket in $NOTIFY_SOCKET, and SIGTERM asks them to drain. Main thread.
 */
#ifndef AGENT_SUPERVISOR_H
#define AGENT_SUPERVISOR_H

#include <stdbool.h>

struct agent_options;
struct notify;

/* True when the options ask for several workers, in processes of their own. */
bool agent_supervisor_wanted(const struct agent_options *o);

/*
 * Run the workers until all have left. <argv> is what the options were parsed from, unmodified
 * since. <notify> reports to the service manager; <stop_fd>, an eventfd, becomes readable for every
 * request to stop. Returns the program's exit status.
 */
int agent_supervisor_run(int argc, char **argv, const struct agent_options *o,
			 const struct notify *notify, int stop_fd);

/* In a worker: its name; NULL when this process has no supervisor. */
const char *agent_supervised_name(void);
/* In a worker: true when the supervisor has claimed this device for all its workers. */
bool agent_supervisor_claimed(const char *device);

#endif
