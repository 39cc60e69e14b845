/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface of a model: a shared object that exports one symbol, `agent_model`, of type struct
 * agent_model. Installed as <doorbell/model.h>; `pkg-config --cflags doorbell-model` finds it, and
 * `pkg-config --variable=modelsdir doorbell-model` prints the folder for plug-ins. The agent loads
 * one with --model PATH, or with --model NAME when NAME.so is in that folder, opens it once, and
 * calls run() from its loop with the batches of requests that it gathered. A model whose replies
 * come in pieces has step() in its place. A model that also runs on a GPU has capture(), which
 * records its work into the loop's graph, once for every size of batch that the model offers; run()
 * and step() are not called then. A model with step() gets there a word per row, which says what
 * its row holds (enum agent_row).
 */
#ifndef AGENT_MODEL_H
#define AGENT_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* Plug-ins of ABI 2, which has no describe(), of ABI 3, which has no step(), and of ABI 4, whose
 * step() runs on CPUs only and which cannot work in place, of ABI 5, whose batches have one size,
 * and of ABI 6, which cannot send a reply themselves, are loaded, too. */
#define AGENT_MODEL_ABI    7
#define AGENT_MODEL_SYMBOL "agent_model"

#define AGENT_MODEL_BUCKETS_MAX 7 /* sizes of batches below max_batch: 1, 2, 4 ... 64 */
#define AGENT_MODEL_BYTES_MAX   (64u << 20) /* of a request, and of a reply */

/* The sizes of an opened model; fixed for its life. */
struct agent_model_shape {
	/* bytes, 1 to AGENT_MODEL_BYTES_MAX; longer requests are refused before they reach the
	 * model */
	uint32_t max_request;
	uint32_t max_reply;   /* bytes, likewise; each reply buffer has this much room */
	uint32_t max_batch;   /* requests per batch */
	uint32_t min_request; /* bytes; shorter requests are refused, too */
	/* of a reply, its end included, if step() makes it: up to AGENT_MODEL_PIECES_MAX; 0: that
	 */
	uint32_t max_pieces;
	/*
	 * Sizes of batches that cost less than one of max_batch, in rows: 1 or more, each larger
	 * than the one before it and less than max_batch. The agent runs the smallest one that has
	 * room for the requests in hand, max_batch included. 0 sizes: each batch costs what its
	 * requests need, or all cost the same. Not with step().
	 */
	uint32_t n_buckets;
	uint32_t bucket[AGENT_MODEL_BUCKETS_MAX];
};
#define AGENT_MODEL_PIECES_MAX 4096

/* One request of a batch. Buffers belong to the agent and are valid during run() only. */
struct agent_model_item {
	const void *request; /* 64-byte aligned, in worker memory */
	uint32_t request_length;
	uint32_t reply_length; /* out: bytes written, at most max_reply */
	void *reply;           /* 8-byte aligned */
	int32_t status;        /* out: 0, or -errno: the client gets an error reply */
};

/*
 * One request of step(), from its first call to its last: the first one with <more> false, a
 * <status>, or <gone>. Each call sends one piece of the reply, as long as <more> is true.
 */
struct agent_model_turn {
	const void *request; /* 64-byte aligned, in worker memory; until the last call */
	uint32_t request_length;
	uint32_t reply_length; /* out: bytes of this piece, at most max_reply; 0: it is the end, or
				  nothing is sent now */
	void *reply;           /* 8-byte aligned; it has other bytes in each call */
	int32_t status;        /* out: 0, or -errno: the reply ends with an error */
	uint32_t wait_us;      /* out: with <more>: no call for so long; others are answered */
	uint8_t more;          /* out: 1: pieces follow */
	uint8_t gone;          /* in: 1: nobody wants the rest. Free <own>; nothing is sent */
	uint8_t reserved[6];
	void *own; /* the model's, for this request: NULL in its first call, then kept */
};

/* States of a row in a run on a GPU, of a model whose replies come in pieces. */
enum agent_row {
	AGENT_ROW_NONE = 0, /* nothing is to be done: leave the row and what is kept of it alone */
	AGENT_ROW_NEW = 1,  /* a request: its bytes are in the row's input, and stay there */
	AGENT_ROW_NEXT = 2, /* the request of earlier runs: make the next piece of its reply */
	AGENT_ROW_GONE = 3, /* nobody wants the rest: free what is kept. Results are not read */
};

/*
 * A batch on a GPU. The agent owns <rows>, <lengths> and <row_states>; the model may replace the
 * other buffers by its own, which live as long as it does. All of it is device memory. A request
 * has the same row in every array. Rows from *rows on hold no request; their results are not read.
 * Replies are read in aligned units of 16 bytes, so the rest of a reply's last unit must be
 * readable, too.
 */
struct agent_model_gpu {
	void *stream; /* cudaStream_t, being captured on the current device */
	/* Rows of the batches for which this is recorded. Where the model offers several sizes, it
	 * is called for each of them, and leaves all fields but <output> and <output_stride> the
	 * same: a request is copied to its row before the size of its batch is known. */
	uint32_t max_batch;
	const uint32_t *rows; /* how many requests the batch has */
	uint32_t *lengths;    /* bytes of each request; read only */
	void *input;          /* row i at input + i * input_stride */
	void *output;
	/* Bytes; multiples of 16, unless the model replaced the buffer. */
	size_t input_stride, output_stride;
	/* Written by the model's work for every row, or replaced by NULL: then every reply has
	 * <reply_length> bytes and none fails. */
	uint32_t *reply_lengths;
	int32_t *statuses; /* 0, or -errno; NULL: all 0 */
	uint32_t reply_length;
	/*
	 * Both NULL, unless the model has step(). Then each run goes on with the rows whose state
	 * is not AGENT_ROW_NONE, by one piece of each, and the agent runs the graph again as long
	 * as a request is open. A request keeps its row until the model has written 0 to its
	 * <row_more> or a status, or was told that it is gone; others join free rows between two
	 * runs. A row that is NONE and was not ended waits: its last piece is still in <output>.
	 */
	const uint32_t *row_states; /* enum agent_row */
	/* Written by the model's work for every row that is NEW or NEXT. 1: pieces follow; none is
	 * sent now if the reply's length is 0. 0: this is the last one. */
	uint32_t *row_more;
	/*
	 * Rows in place. A model that reads the request of row i at requests[i] and writes its reply
	 * to replies[i] sets <in_place>: then nothing is copied for it, and <input> and <output> are
	 * not used. Both are arrays on the GPU, new for every batch. What they point to is memory of
	 * the host that the GPU reads and writes across the bus, so read once and write once, 16
	 * bytes a thread; small requests may have been brought to the GPU. Addresses are multiples
	 * of 64. A request has lengths[i] bytes, and readable memory up to a multiple of 16; of a
	 * reply only its own bytes may be written, max_reply at most.
	 */
	const void *const *requests;
	void *const *replies;
	uint32_t in_place; /* 0 or 1 */
	/* The loop's, for a model in place that sends the reply to a request that came alone:
	 * model_post.h. NULL: nothing is sent. */
	struct agent_model_post *post;
};

#define AGENT_MODEL_TENSORS_MAX 16
#define AGENT_MODEL_RANK_MAX    8

/* One input or output. Its elements are little-endian, in row-major order, without gaps. */
struct agent_model_tensor {
	const char *name; /* 1 to 63 printable ASCII characters without spaces */
	/* KServe's name: BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16,
	 * FP32, FP64, BF16, or BYTES, whose elements are a length of 32 bits with so many bytes
	 * behind it */
	const char *datatype;
	uint32_t rank;
	int64_t shape[AGENT_MODEL_RANK_MAX]; /* -1: free, the request or the reply chooses */
};

/*
 * The tensors of a request and of a reply, in the order of their bytes, one right behind the other.
 * Where all dimensions are fixed, max_request and min_request are the sum of the inputs and
 * max_reply that of the outputs. Otherwise a request only has its length to tell the model, and a
 * reply to tell the load balancer: of the outputs only the last may have a free dimension, and only
 * one.
 */
struct agent_model_description {
	const char *version;  /* 1 to 31 letters, digits and ._-; NULL: "1" */
	const char *platform; /* as names, or NULL */
	/*
	 * 1: the first dimension of every tensor is a batch, -1 in its shape. A request of run() is
	 * one row of it and has 1 there, and so has its reply; up to max_batch rows that a client
	 * sends together become as many requests. 0: a request is all that a client sends.
	 */
	uint32_t batch;
	uint32_t n_inputs, n_outputs; /* 1 to AGENT_MODEL_TENSORS_MAX */
	struct agent_model_tensor input[AGENT_MODEL_TENSORS_MAX];
	struct agent_model_tensor output[AGENT_MODEL_TENSORS_MAX];
};

/* A request that a model can answer, for a first try before the worker serves. */
struct agent_model_sample {
	const void *request;
	uint32_t request_length;
	/* The reply, byte for byte; NULL: any that is no error and has no NaN. */
	const void *reply;
	uint32_t reply_length;
};

struct agent_model {
	uint32_t abi;     /* AGENT_MODEL_ABI */
	const char *name; /* the model's name in the load balancer's configuration */
	/*
	 * Open the model. <arguments> is the text of --model-args ("key=value,key=value") or "".
	 * Fills <shape>; it may choose a max_batch below the operator's <max_batch>, never above.
	 * Returns 0 and a state that close() frees, or -errno with a sentence in <error>.
	 */
	int (*open)(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		    void **state, char *error, size_t error_size);
	/* Answer <n> requests (1..max_batch). Called by one thread at a time. A request must get
	 * the same bytes in every batch. NULL, with a capture(): the model runs on GPUs only. */
	void (*run)(void *state, struct agent_model_item *items, uint32_t n);
	void (*close)(void *state);
	/*
	 * Record what run() does onto gpu->stream. A GPU can launch only kernels, copies within the
	 * device and memsets. NULL: the model runs on CPUs only. 0 or -errno with a sentence in
	 * <error>.
	 */
	int (*capture)(void *state, struct agent_model_gpu *gpu, char *error, size_t error_size);
	/*
	 * Describe the model that open() made: fill <description>, which is all zeroes. Its texts
	 * must live as long as <state>. Called once, after open(). NULL: the model is undescribed;
	 * it serves, but clients cannot ask it by the names of its tensors.
	 */
	void (*describe)(const void *state, struct agent_model_description *description);
	/*
	 * In place of run(), which is NULL then: go on with <n> requests (1..max_batch), each by
	 * one piece of its reply. Others join and leave between two calls: no more than max_batch
	 * are open. Where max_pieces are sent and <more> is true, the reply ends with an error, and
	 * the request is <gone>. Each piece is laid out as a reply is. Called by one thread at a
	 * time.
	 */
	void (*step)(void *state, struct agent_model_turn *turns, uint32_t n);
	/*
	 * In place of run() where shape.n_buckets is not 0: answer a batch of <rows> rows, one of
	 * the model's sizes, whose first <n> have requests; the smallest size for <n>. NULL: run()
	 * is called.
	 */
	void (*run_bucket)(void *state, struct agent_model_item *items, uint32_t n, uint32_t rows);
	/*
	 * Fill <sample>, which is all zeroes; its bytes must live as long as <state>. The worker
	 * does not serve unless the model answers it. NULL, or no request: zeros of the least
	 * length are asked for, which a model of requests of any length may refuse.
	 */
	void (*sample)(const void *state, struct agent_model_sample *sample);
};

/* Offer batches of 1, 2, 4 ... rows below shape->max_batch. For open(). */
static inline void agent_model_offer_powers(struct agent_model_shape *shape)
{
	shape->n_buckets = 0;
	for (uint32_t rows = 1;
	     rows < shape->max_batch && shape->n_buckets < AGENT_MODEL_BUCKETS_MAX; rows *= 2)
		shape->bucket[shape->n_buckets++] = rows;
}

#ifdef __cplusplus
extern "C" {
#endif

/* The symbol that a plug-in defines. */
extern const struct agent_model agent_model __attribute__((visibility("default")));

#ifdef __cplusplus
}
#endif

#endif
