/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doorbell-agent as a library: libdoorbell-agent.so exports these two calls, and nothing else. A
 * process that has captured a model as a CUDA graph serves it without a plug-in.
 */
#ifndef DOORBELL_AGENT_H
#define DOORBELL_AGENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A model on a GPU. Graph and buffers stay the caller's; they must live, and nobody else touch
 * them, while the agent runs. Requests and replies all have the same size, and lie one behind the
 * other. The graph reads <batch> of them whatever came; what it makes of the rest nobody sees.
 */
struct doorbell_graph {
	void *graph;        /* cudaGraph_t: kernels, copies within the device, memsets */
	const void *input;  /* device memory: batch * request_bytes */
	const void *output; /* batch * reply_bytes */
	uint32_t request_bytes, reply_bytes;
	uint32_t batch;
	int32_t gpu; /* CUDA's number of the device they are on */
};

/*
 * Run the agent with the command line of doorbell-agent until it has left, as the program does, on
 * this thread and with what it says on stderr. <graph>: the model, instead of a plug-in; then
 * --model is what services call it. NULL: --model is a plug-in. Once in a process. <argv> is as
 * main() gets it: writable, and there until this returns. Returns the program's exit status.
 * Signals are the caller's, who ignores SIGPIPE.
 */
int doorbell_agent_run(int argc, char **argv, const struct doorbell_graph *graph);

/*
 * Drain, then return from doorbell_agent_run(); a second call ends it at once. From any thread, or
 * from a signal handler. What comes before a run has begun is not lost: it ends it.
 */
void doorbell_agent_stop(void);

#ifdef __cplusplus
}
#endif

#endif
