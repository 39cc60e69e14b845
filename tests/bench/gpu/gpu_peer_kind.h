/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private header of the peers: what the server (gpu_peer.c) and the kinds (gpu_peer_gathered.c,
 * gpu_peer_copied.c, gpu_peer_pipelined.c) share. All of it belongs to the server's thread once it
 * runs.
 */
#ifndef BENCH_GPU_PEER_KIND_H
#define BENCH_GPU_PEER_KIND_H

#include <pthread.h>

#include <cuda_runtime_api.h>

#include "gpu/gpu_peer_kernels.h"
#include "loop/cpu_link.h"

/* Batches in flight at most. */
#define PEER_DEPTH_MAX 3

/* The model's work as a graph, with buffers on the GPU. */
struct peer_model {
	cudaGraph_t graph;
	size_t nodes; /* 0: the model runs nothing */
	struct agent_model_gpu gpu;
	uint32_t *sizes; /* on the GPU: rows, then lengths */
	/* The sizes there, if the host wrote them: <rows> of <length>; 0 rows: unknown. */
	uint32_t rows, length;
};

/* A batch in flight. */
struct peer_batch {
	uint32_t n;
	struct intake *request;
	struct agent_link **link;
	uint64_t start_ns;
	struct peer_table *table; /* pinned */
	volatile uint32_t *flag;  /* pinned; the GPU sets it when the batch is answered */
	/* gpu_peer_gathered.c */
	volatile uint32_t *own_flag;
	cudaGraphExec_t exec;
	/* gpu_peer_pipelined.c */
	uint8_t *in, *out;
	cudaEvent_t came, ran, left;
};

/* A request that comes alone has a graph made for its slot, with addresses and length in it. */
struct peer_single {
	const uint8_t *from;
	uint8_t *to;
	uint32_t length;
	cudaGraphExec_t exec;
};

struct peer_kind;

struct agent_loop {
	struct agent_loop_params params;
	const struct peer_kind *kind;
	struct peer_model model;
	cudaStream_t stream;
	struct peer_batch batch[PEER_DEPTH_MAX];
	void *pinned[2 * AGENT_LINKS_MAX];
	unsigned int n_pinned;
	/* gpu_peer_gathered.c: [links * slots] */
	struct peer_single *single;
	uint32_t *single_flag; /* pinned */
	uint32_t *arrived;     /* on the GPU: blocks that have written their replies */
	/* gpu_peer_pipelined.c */
	cudaStream_t in, out;
	int stop; /* atomic */
	pthread_t thread;
	struct agent_loop_stats stats;
	char error[512]; /* the reason of the last failure */
};

struct peer_kind {
	uint32_t depth; /* batches in flight */
	/* Prepare what the kind needs. False and loop->error. */
	bool (*prepare)(struct agent_loop *loop);
	/* Begin to answer <batch>; does not wait. */
	void (*launch)(struct agent_loop *loop, struct peer_batch *batch);
	/* True when all its replies are where they are sent from. */
	bool (*is_done)(struct agent_loop *loop, struct peer_batch *batch);
};

extern const struct peer_kind peer_gathered, peer_in_place, peer_copied, peer_pipelined;

/* Check a call of CUDA while the peer starts. */
bool peer_ok(struct agent_loop *loop, cudaError_t ret, const char *what);
/* End the bench after an error of CUDA while the peer serves. */
void peer_must(cudaError_t ret, const char *what);

/* Where request <i> of the batch lies, and where its reply's bytes go. */
static inline const uint8_t *peer_from(const struct peer_batch *b, uint32_t i)
{
	return b->link[i]->payloads + (uint64_t)b->request[i].payload * RING_ALIGNMENT;
}

static inline uint8_t *peer_to(const struct peer_batch *b, uint32_t i)
{
	return cpu_link_reply(b->link[i], b->request[i].slot) + sizeof(struct ring_reply);
}

/* Bytes of a reply that are copied: where only the GPU knows how many, the most. */
uint32_t peer_reply_length(const struct agent_loop *loop, const struct intake *r);

/* Tell the model the sizes of a batch by copies on <stream>, unless it knows them. */
void peer_sizes(struct agent_loop *loop, const struct peer_batch *b, cudaStream_t stream);

/* Copy all requests or replies of the batch in one call. <device>: row 0 on the GPU. */
void peer_copy_in(struct agent_loop *loop, struct peer_batch *b, uint8_t *device,
		  cudaStream_t stream);
void peer_copy_out(struct agent_loop *loop, struct peer_batch *b, uint8_t *device,
		   cudaStream_t stream);

/* Instantiate <graph>, and destroy it. */
bool peer_instantiate(struct agent_loop *loop, cudaGraph_t graph, cudaGraphExec_t *exec);

#endif
