/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program doorbell-agent: one worker, or a supervisor of several. The library does the work;
 * the program handles signals.
 */
#include <signal.h>
#include <stddef.h>

#include "agent.h"
#include "doorbell_agent.h"

static void main_on_signal(int number)
{
	doorbell_agent_stop();
}

int main(int argc, char **argv)
{
	struct sigaction stop = {.sa_handler = main_on_signal, .sa_flags = SA_RESTART};

	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	return agent_main(argc, argv);
}
