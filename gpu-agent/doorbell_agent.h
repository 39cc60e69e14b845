/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent as a library: libdoorbell-agent.so exports these two calls and nothing else. With them
 * a process that has captured a model as a CUDA graph serves it without a plug-in.
 */
#ifndef DOORBELL_AGENT_H
#define DOORBELL_AGENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct agent_model_description; /* <doorbell/model.h> */

/*
 * A model on a GPU. The caller owns graph and buffers; they must live, and only the agent may use
 * them, while the agent runs. All requests have the same size, and so have all replies; both lie
 * one after the other. The graph always processes <batch> requests; results for rows without a
 * request are not used. Where graphs of smaller batches are given, the smallest one that has room
 * for the requests in hand runs; they read their requests from the beginning of the same <input>.
 */
struct doorbell_smaller {
	void *graph;
	const void *output; /* batch * reply_bytes; may be that of another graph */
	uint32_t batch;
};

struct doorbell_graph {
	void *graph;        /* cudaGraph_t: kernels, copies within the device, memsets */
	const void *input;  /* device memory: batch * request_bytes */
	const void *output; /* batch * reply_bytes */
	uint32_t request_bytes, reply_bytes;
	uint32_t batch;
	int32_t gpu; /* CUDA number of the device that they are on */
	/* The tensors of a request and a reply; it must live as long. NULL: undescribed. */
	const struct agent_model_description *description;
	/* Graphs of smaller batches, in the order of their sizes, 7 at most; or none. */
	const struct doorbell_smaller *smaller;
	uint32_t n_smaller;
	/* A request for a first try before the worker serves: request_bytes in host memory, which
	 * must live as long. The reply must not have NaN. NULL: zeros. */
	const void *sample;
};

/*
 * Run the agent with the command line of doorbell-agent until it has left; returns the program's
 * exit status. It runs on the calling thread, and logs to stderr. <graph> is the model, and --model
 * is what services call it; NULL: --model is a plug-in. Once per process. <argv> is as main() gets
 * it, and must stay valid until this returns. The caller handles signals, and ignores SIGPIPE.
 */
int doorbell_agent_run(int argc, char **argv, const struct doorbell_graph *graph);

/*
 * Drain, then return from doorbell_agent_run(); a second call ends it at once. From any thread, or
 * from a signal handler. A call before the run has begun is not lost: the run ends then.
 */
void doorbell_agent_stop(void);

#ifdef __cplusplus
}
#endif

#endif
