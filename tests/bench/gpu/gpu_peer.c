/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu_peer.h"
#include "gpu/gpu_peer_kind.h"
#include "loop/cuda/gpu_graph.h"

bool peer_ok(struct agent_loop *loop, cudaError_t ret, const char *what)
{
	if (ret != cudaSuccess)
		snprintf(loop->error, sizeof(loop->error), "peer: %s: %s", what,
			 cudaGetErrorString(ret));
	return ret == cudaSuccess;
}

void peer_must(cudaError_t ret, const char *what)
{
	if (ret == cudaSuccess)
		return;
	fprintf(stderr, "peer: %s: %s\n", what, cudaGetErrorString(ret));
	exit(1);
}

bool peer_instantiate(struct agent_loop *loop, cudaGraph_t graph, cudaGraphExec_t *exec)
{
	bool fine = peer_ok(loop, cudaGraphInstantiate(exec, graph, 0), "cannot make a graph") &&
		    peer_ok(loop, cudaGraphUpload(*exec, loop->stream), "cannot upload a graph");

	cudaGraphDestroy(graph);
	return fine;
}

/* --- the model ----------------------------------------------------------------------------------
 */

static size_t round_up(size_t n)
{
	return (n + 255) / 256 * 256;
}

static bool model_create(struct agent_loop *loop)
{
	const struct agent_loop_params *p = &loop->params;
	size_t in = round_up(p->shape.max_request), out = round_up(p->shape.max_reply);
	struct peer_model *m = &loop->model;
	void *input, *output, *lengths;

	if (!peer_ok(loop, cudaMalloc((void **)&m->sizes, (PEER_BATCH_MAX + 1) * sizeof(uint32_t)),
		     "memory") ||
	    !peer_ok(loop, cudaMalloc(&input, p->max_batch * in), "memory") ||
	    !peer_ok(loop, cudaMalloc(&output, p->max_batch * out), "memory") ||
	    !peer_ok(loop, cudaMalloc(&lengths, 2 * p->max_batch * sizeof(uint32_t)), "memory"))
		return false;
	m->gpu = (struct agent_model_gpu){
		.stream = loop->stream,
		.max_batch = p->max_batch,
		.rows = m->sizes,
		.lengths = m->sizes + 1,
		.input = input,
		.output = output,
		.input_stride = in,
		.output_stride = out,
		.reply_lengths = lengths,
		.statuses = (int32_t *)lengths + p->max_batch,
	};
	if (!peer_ok(loop, cudaStreamBeginCapture(loop->stream, cudaStreamCaptureModeRelaxed),
		     "cannot record") ||
	    p->model->capture(p->model_state, &m->gpu, loop->error, sizeof(loop->error)) < 0 ||
	    !peer_ok(loop, cudaStreamEndCapture(loop->stream, &m->graph), "cannot record"))
		return false;
	m->nodes = gpu_graph_nodes(m->graph);
	return true;
}

uint32_t peer_reply_length(const struct agent_loop *loop, const struct intake *r)
{
	const struct agent_model_gpu *m = &loop->model.gpu;

	return m->reply_lengths == m->lengths ? r->length
	       : m->reply_lengths == NULL     ? m->reply_length
					      : loop->params.shape.max_reply;
}

void peer_sizes(struct agent_loop *loop, const struct peer_batch *b, cudaStream_t stream)
{
	uint32_t sizes[1 + PEER_BATCH_MAX] = {b->n};
	struct peer_model *m = &loop->model;
	bool same = b->n == m->rows;

	for (uint32_t i = 0; i < b->n; i++) {
		sizes[1 + i] = b->request[i].length;
		same &= b->request[i].length == m->length;
	}
	if (same)
		return;
	peer_must(cudaMemcpyAsync(m->sizes, sizes, (1 + b->n) * sizeof(*sizes),
				  cudaMemcpyHostToDevice, stream),
		  "sizes");
	m->rows = b->n;
	m->length = b->request[0].length;
	for (uint32_t i = 0; i < b->n; i++)
		if (b->request[i].length != m->length)
			m->rows = 0; /* the rows differ: send them the next time */
}

/* --- copies -------------------------------------------------------------------------------------
 */

static void copy_all(void **to, const void **from, size_t *size, uint32_t n,
		     enum cudaMemcpyKind way, cudaStream_t stream)
{
	struct cudaMemcpyAttributes how = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
	size_t first = 0;

	peer_must(n == 1 ? cudaMemcpyAsync(to[0], from[0], size[0], way, stream)
			 : cudaMemcpyBatchAsync(to, from, size, n, &how, &first, 1, stream),
		  "copy");
}

void peer_copy_in(struct agent_loop *loop, struct peer_batch *b, uint8_t *device,
		  cudaStream_t stream)
{
	const void *from[PEER_BATCH_MAX];
	void *to[PEER_BATCH_MAX];
	size_t size[PEER_BATCH_MAX];

	for (uint32_t i = 0; i < b->n; i++) {
		from[i] = peer_from(b, i);
		to[i] = device + i * loop->model.gpu.input_stride;
		size[i] = b->request[i].length;
	}
	copy_all(to, from, size, b->n, cudaMemcpyHostToDevice, stream);
}

void peer_copy_out(struct agent_loop *loop, struct peer_batch *b, uint8_t *device,
		   cudaStream_t stream)
{
	const void *from[PEER_BATCH_MAX];
	void *to[PEER_BATCH_MAX];
	size_t size[PEER_BATCH_MAX];

	for (uint32_t i = 0; i < b->n; i++) {
		from[i] = device + i * loop->model.gpu.output_stride;
		to[i] = peer_to(b, i);
		size[i] = peer_reply_length(loop, &b->request[i]);
	}
	copy_all(to, from, size, b->n, cudaMemcpyDeviceToHost, stream);
}

/* --- the server --------------------------------------------------------------------------------
 */

/* Take what is there. True when the batch is to run: it is full, or its first request has waited
 * for batch_timeout_us, as in the loop. */
static bool take(struct agent_loop *loop, struct peer_batch *b)
{
	uint64_t now = clock_now_ns(), timeout = loop->params.batch_timeout_us * 1000ull;

	for (unsigned int l = 0; l < loop->params.n_links; l++) {
		struct agent_link *link = &loop->params.links[l];
		uint32_t taken = cpu_link_take(&loop->params, link, now, &b->request[b->n],
					       loop->params.max_batch - b->n, &loop->stats);

		while (taken-- > 0)
			b->link[b->n++] = link;
	}
	return b->n == loop->params.max_batch ||
	       (b->n > 0 && now - b->request[0].seen_ns >= timeout);
}

static void send_batch(struct agent_loop *loop, struct peer_batch *b)
{
	uint64_t done = clock_now_ns();

	for (uint32_t i = 0; i < b->n; i++) {
		struct agent_link *link = b->link[i];
		const struct intake *r = &b->request[i];
		struct ring_reply *header = (void *)cpu_link_reply(link, r->slot);
		uint32_t length = peer_reply_length(loop, r);
		struct mlx5_write write =
			cpu_link_answer(link, r, sizeof(*header) + length, 0, false, &loop->stats);

		*header = (struct ring_reply){
			.sequence = r->sequence,
			.seen_ns = r->seen_ns,
			.start_ns = b->start_ns,
			.done_ns = done,
			.length = length,
		};
		cpu_link_reap(link, &loop->stats);
		mlx5_wqe_build(&link->queue, link->built++, &write);
	}
	for (unsigned int l = 0; l < loop->params.n_links; l++)
		cpu_link_ring(&loop->params, &loop->params.links[l]);
	loop->stats.batches++;
}

/* Batches are answered in the order in which they were taken. */
static void *serve(void *argument)
{
	struct agent_loop *loop = argument;
	uint32_t depth = loop->kind->depth;
	uint64_t taken = 0, answered = 0;

	cudaSetDevice(loop->params.gpu);
	while (answered < taken || !__atomic_load_n(&loop->stop, __ATOMIC_ACQUIRE)) {
		struct peer_batch *oldest = &loop->batch[answered % depth];
		struct peer_batch *next = &loop->batch[taken % depth];

		if (answered < taken && loop->kind->is_done(loop, oldest)) {
			send_batch(loop, oldest);
			oldest->n = 0;
			answered++;
		}
		if (taken - answered < depth && take(loop, next)) {
			next->start_ns = clock_now_ns();
			loop->kind->launch(loop, next);
			taken++;
		}
	}
	return NULL;
}

static bool pin(struct agent_loop *loop, const void *at, size_t n)
{
	void *host = (void *)(uintptr_t)at;

	loop->pinned[loop->n_pinned++] = host;
	return peer_ok(loop, cudaHostRegister(host, n, cudaHostRegisterPortable), "pin");
}

static bool batches_create(struct agent_loop *loop)
{
	for (uint32_t d = 0; d < loop->kind->depth; d++) {
		struct peer_batch *b = &loop->batch[d];

		b->request = calloc(loop->params.max_batch, sizeof(*b->request));
		b->link = calloc(loop->params.max_batch, sizeof(*b->link));
		if (!peer_ok(loop, cudaHostAlloc((void **)&b->table, sizeof(*b->table), 0),
			     "pinned memory"))
			return false;
	}
	return true;
}

static struct agent_loop *start(const struct peer_kind *kind,
				const struct agent_loop_params *params, char *error, size_t size)
{
	struct agent_loop *loop = calloc(1, sizeof(*loop));
	bool fine;

	loop->params = *params;
	loop->kind = kind;
	fine = params->max_batch <= PEER_BATCH_MAX &&
	       peer_ok(loop, cudaSetDevice(params->gpu), "GPU") &&
	       peer_ok(loop, cudaStreamCreateWithFlags(&loop->stream, cudaStreamNonBlocking),
		       "stream") &&
	       model_create(loop) && batches_create(loop);
	for (unsigned int l = 0; fine && l < params->n_links; l++) {
		const struct agent_link *link = &params->links[l];

		fine = pin(loop, link->payloads, link->room_at + link->room) &&
		       pin(loop, link->replies, (size_t)link->slot_count * link->reply_stride);
	}
	if (!fine || !kind->prepare(loop) ||
	    !peer_ok(loop, cudaStreamSynchronize(loop->stream), "start") ||
	    pthread_create(&loop->thread, NULL, serve, loop) != 0) {
		snprintf(error, size, "%s", loop->error);
		return NULL; /* the bench ends, so there is no clean-up */
	}
	return loop;
}

/* Graphs, streams and small buffers stay until the bench ends. */
static void stop(struct agent_loop *loop)
{
	__atomic_store_n(&loop->stop, 1, __ATOMIC_RELEASE);
	pthread_join(loop->thread, NULL);
	cudaDeviceSynchronize();
	for (unsigned int i = 0; i < loop->n_pinned; i++)
		cudaHostUnregister(loop->pinned[i]);
	cudaGraphDestroy(loop->model.graph);
	free(loop);
}

static void read_stats(const struct agent_loop *loop, struct agent_loop_stats *out)
{
	*out = loop->stats;
}

static bool failed(const struct agent_loop *loop, char *why, size_t size)
{
	return false;
}

#define PEER(kind)                                                                                 \
	static struct agent_loop *start_##kind(const struct agent_loop_params *params,             \
					       char *error, size_t size)                           \
	{                                                                                          \
		return start(&peer_##kind, params, error, size);                                   \
	}                                                                                          \
	const struct agent_loop_ops gpu_peer_##kind = {                                            \
		.name = #kind,                                                                     \
		.batch_max = PEER_BATCH_MAX,                                                       \
		.start = start_##kind,                                                             \
		.stop = stop,                                                                      \
		.stats = read_stats,                                                               \
		.failed = failed,                                                                  \
	}

PEER(gathered);
PEER(in_place);
PEER(copied);
PEER(pipelined);
