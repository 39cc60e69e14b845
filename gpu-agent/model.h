/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a model author implements: a shared object that exports one symbol, `agent_model`, of type
 * struct agent_model. The agent loads it with --model PATH (or --model NAME for those it ships),
 * opens it once, and calls run() from its loop with batches of requests that it gathered.
 *
 * Version 1 is the CPU side. CUDA models will add a call that appends their kernels to the graph.
 */
#ifndef AGENT_MODEL_H
#define AGENT_MODEL_H

#include <stddef.h>
#include <stdint.h>

#define AGENT_MODEL_ABI    1
#define AGENT_MODEL_SYMBOL "agent_model"

/* What the opened model needs; fixed for its life. */
struct agent_model_shape {
	uint32_t max_request; /* bytes; longer requests are refused before they reach run() */
	uint32_t max_reply;   /* bytes; each reply buffer has this much room */
	uint32_t max_batch;   /* requests per run() */
};

/* One request of a batch. Buffers belong to the agent and are valid during run() only. */
struct agent_model_item {
	const void *request; /* 64-byte aligned, in worker memory */
	uint32_t request_length;
	uint32_t reply_length; /* out: bytes written, at most max_reply */
	void *reply;           /* 8-byte aligned */
	int32_t status;        /* out: 0, or -errno: the client gets an error reply */
};

struct agent_model {
	uint32_t abi;     /* AGENT_MODEL_ABI */
	const char *name; /* what services call it in the load balancer's configuration */
	/*
	 * <arguments> is the text of --model-args ("key=value,key=value") or "". Fills <shape>; may
	 * lower or raise max_batch up to the <max_batch> the operator asked for, never above.
	 * Returns 0 and a state that close() frees, or -errno with a sentence in <error>.
	 */
	int (*open)(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		    void **state, char *error, size_t error_size);
	/* Answer <n> requests (1..max_batch). One thread at a time. Must give the same bytes for
	 * the same request whatever its batch. */
	void (*run)(void *state, struct agent_model_item *items, uint32_t n);
	void (*close)(void *state);
};

#endif
