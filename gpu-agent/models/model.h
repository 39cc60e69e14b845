/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a model author implements: a shared object that exports one symbol, `agent_model`, of type
 * struct agent_model. Installed as <doorbell/model.h>; `pkg-config --cflags doorbell-model` finds
 * it, and `pkg-config --variable=modelsdir doorbell-model` names the folder for plug-ins. The agent
 * loads one with --model PATH, or with --model NAME when NAME.so lies in that folder, opens it
 * once, and calls run() from its loop with batches of requests that it gathered. A model that also
 * runs on a GPU has capture(), which is called once and puts its work into the loop's graph; run()
 * is not called then.
 */
#ifndef AGENT_MODEL_H
#define AGENT_MODEL_H

#include <stddef.h>
#include <stdint.h>

#define AGENT_MODEL_ABI    2
#define AGENT_MODEL_SYMBOL "agent_model"

/* What the opened model needs; fixed for its life. */
struct agent_model_shape {
	uint32_t max_request; /* bytes; longer requests are refused before they reach the model */
	uint32_t max_reply;   /* bytes; each reply buffer has this much room */
	uint32_t max_batch;   /* requests per batch */
	uint32_t min_request; /* bytes; so are shorter ones */
};

/* One request of a batch. Buffers belong to the agent and are valid during run() only. */
struct agent_model_item {
	const void *request; /* 64-byte aligned, in worker memory */
	uint32_t request_length;
	uint32_t reply_length; /* out: bytes written, at most max_reply */
	void *reply;           /* 8-byte aligned */
	int32_t status;        /* out: 0, or -errno: the client gets an error reply */
};

/*
 * A batch on a GPU. <rows> and <lengths> are the agent's; the other buffers may be replaced by the
 * model's own, which live as long as it does. All of it is device memory. A request's row is the
 * same in every array. Rows from *rows on hold nothing, and are not looked at. Replies are read in
 * aligned units of 16 bytes: what follows the last one in its unit must be readable, too.
 */
struct agent_model_gpu {
	void *stream; /* cudaStream_t, being captured on the current device */
	uint32_t max_batch;
	const uint32_t *rows; /* how many requests the batch has */
	uint32_t *lengths;    /* their bytes; only read */
	void *input;          /* row i at input + i * input_stride */
	void *output;
	size_t input_stride, output_stride; /* multiples of 16, unless the model's own */
	/* Set by the model's work for every row, or replaced by NULL: then every reply has
	 * <reply_length> bytes and none fails. */
	uint32_t *reply_lengths;
	int32_t *statuses; /* 0, or -errno; NULL: all 0 */
	uint32_t reply_length;
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
	/*
	 * Put what run() does onto gpu->stream, which records it. Only kernels, copies within the
	 * device and memsets can be launched from a GPU. NULL: the model runs on CPUs only. 0 or
	 * -errno with a sentence in <error>.
	 */
	int (*capture)(void *state, struct agent_model_gpu *gpu, char *error, size_t error_size);
};

#ifdef __cplusplus
extern "C" {
#endif

/* The symbol that a plug-in defines. */
extern const struct agent_model agent_model __attribute__((visibility("default")));

#ifdef __cplusplus
}
#endif

#endif
