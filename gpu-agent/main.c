/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doorbell-agent: one per worker, or a supervisor of several. All it does is the library's; signals
 * are the program's.
 */
#include <signal.h>
#include <stddef.h>

#include "agent.h"
#include "doorbell_agent.h"

static void on_signal(int number)
{
	doorbell_agent_stop();
}

int main(int argc, char **argv)
{
	struct sigaction stop = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	return agent_main(argc, argv);
}
