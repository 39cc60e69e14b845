/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "gpu/gpu_peer.h"
#include "loop/cpu_link.h"

#define PINS_MAX   (2 * AGENT_LINKS_MAX)
#define ALONE_RUNS 200

/* The model on a GPU, launched by the host. */
struct graph {
	cudaStream_t stream;
	cudaGraphExec_t exec; /* NULL: the model has no work of its own */
	struct agent_model_gpu model;
	uint32_t *sizes;       /* device: rows, then lengths */
	uint32_t rows, length; /* values that <sizes> has now, the same in every row */
};

struct agent_loop {
	struct agent_loop_params params;
	struct graph graph;
	void *pinned[PINS_MAX];
	unsigned int n_pinned;
	struct intake *request;
	struct agent_link **link;
	int stop; /* atomic */
	pthread_t thread;
	struct agent_loop_stats stats;
};

static bool ok(cudaError_t ret, const char *what, char *error, size_t size)
{
	if (ret != cudaSuccess)
		snprintf(error, size, "%s: %s", what, cudaGetErrorString(ret));
	return ret == cudaSuccess;
}

/* --- the model's graph -------------------------------------------------------------------------
 */

static size_t round_up(size_t n)
{
	return (n + 255) / 256 * 256;
}

static bool graph_create(struct graph *g, const struct agent_model *model, void *state,
			 const struct agent_model_shape *shape, uint32_t batch, char *error,
			 size_t size)
{
	size_t in = round_up(shape->max_request), out = round_up(shape->max_reply), nodes = 0;
	void *input, *output, *lengths;
	cudaGraph_t graph;

	if (!ok(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), "stream", error,
		size) ||
	    !ok(cudaMalloc((void **)&g->sizes, (batch + 1) * sizeof(uint32_t)), "memory", error,
		size) ||
	    !ok(cudaMalloc(&input, batch * in), "memory", error, size) ||
	    !ok(cudaMalloc(&output, batch * out), "memory", error, size) ||
	    !ok(cudaMalloc(&lengths, 2 * batch * sizeof(uint32_t)), "memory", error, size))
		return false;
	g->model = (struct agent_model_gpu){
		.stream = g->stream,
		.max_batch = batch,
		.rows = g->sizes,
		.lengths = g->sizes + 1,
		.input = input,
		.output = output,
		.input_stride = in,
		.output_stride = out,
		.reply_lengths = lengths,
		.statuses = (int32_t *)lengths + batch,
	};
	if (!ok(cudaStreamBeginCapture(g->stream, cudaStreamCaptureModeRelaxed), "capture", error,
		size) ||
	    model->capture(state, &g->model, error, size) < 0 ||
	    !ok(cudaStreamEndCapture(g->stream, &graph), "capture", error, size))
		return false;
	cudaGraphGetNodes(graph, NULL, &nodes);
	return nodes == 0 || (ok(cudaGraphInstantiate(&g->exec, graph, 0), "graph", error, size) &&
			      ok(cudaGraphUpload(g->exec, g->stream), "graph", error, size));
}

/* The sizes travel only when they change. */
static void graph_sizes(struct graph *g, const uint32_t *lengths, uint32_t rows)
{
	bool same = rows == g->rows;

	if (rows == 0)
		return;
	for (uint32_t i = 0; i < rows; i++)
		same &= lengths[i] == g->length;
	if (same)
		return;
	cudaMemcpyAsync(g->sizes, &rows, sizeof(rows), cudaMemcpyHostToDevice, g->stream);
	cudaMemcpyAsync(g->sizes + 1, lengths, rows * sizeof(*lengths), cudaMemcpyHostToDevice,
			g->stream);
	g->rows = rows;
	g->length = lengths[0];
	for (uint32_t i = 0; i < rows; i++)
		if (lengths[i] != g->length)
			g->rows = 0; /* the rows differ: send them the next time */
}

double gpu_model_alone_us(const struct agent_model *model, void *state,
			  const struct agent_model_shape *shape, uint32_t batch, int gpu,
			  char *error, size_t size)
{
	struct graph g = {0};
	cudaEvent_t from, to;
	uint32_t lengths[256] = {0};
	float ms = 0;

	cudaSetDevice(gpu);
	if (batch > 256 || !graph_create(&g, model, state, shape, batch, error, size))
		return -1;
	if (g.exec == NULL)
		return 0;
	for (uint32_t i = 0; i < batch; i++)
		lengths[i] = shape->max_request;
	graph_sizes(&g, lengths, batch);
	cudaMemsetAsync(g.model.input, 0, g.model.input_stride * batch, g.stream);
	cudaEventCreate(&from);
	cudaEventCreate(&to);
	for (int i = 0; i < 2 * ALONE_RUNS; i++) {
		if (i == ALONE_RUNS)
			cudaEventRecord(from, g.stream);
		cudaGraphLaunch(g.exec, g.stream);
	}
	cudaEventRecord(to, g.stream);
	if (!ok(cudaStreamSynchronize(g.stream), "graph", error, size))
		return -1;
	cudaEventElapsedTime(&ms, from, to);
	cudaGraphExecDestroy(g.exec);
	return ms * 1e3 / ALONE_RUNS;
}

/* --- the server --------------------------------------------------------------------------------
 */

static uint32_t take(struct agent_loop *loop)
{
	uint64_t now = clock_now_ns();
	uint32_t n = 0;

	for (unsigned int l = 0; l < loop->params.n_links; l++) {
		struct agent_link *link = &loop->params.links[l];
		uint32_t taken = cpu_link_take(&loop->params, link, now, &loop->request[n],
					       loop->params.max_batch - n, &loop->stats);

		while (taken-- > 0)
			loop->link[n++] = link;
	}
	return n;
}

static uint32_t reply_length(const struct agent_loop *loop, const struct intake *r)
{
	const struct agent_model_gpu *m = &loop->graph.model;

	return m->reply_lengths == m->lengths ? r->length
	       : m->reply_lengths == NULL     ? m->reply_length
					      : loop->params.shape.max_reply;
}

/* H2D, graph, D2H, sync */
static void run_batch(struct agent_loop *loop, uint32_t n)
{
	struct graph *g = &loop->graph;
	uint32_t lengths[256] = {0};

	for (uint32_t i = 0; i < n; i++) {
		const struct intake *r = &loop->request[i];
		const struct agent_link *link = loop->link[i];

		lengths[i] = r->length;
		cudaMemcpyAsync((uint8_t *)g->model.input + i * g->model.input_stride,
				link->payloads + (uint64_t)r->payload * RING_ALIGNMENT, r->length,
				cudaMemcpyHostToDevice, g->stream);
	}
	if (g->exec != NULL) {
		graph_sizes(g, lengths, n);
		cudaGraphLaunch(g->exec, g->stream);
	}
	for (uint32_t i = 0; i < n; i++)
		cudaMemcpyAsync(cpu_link_reply(loop->link[i], loop->request[i].slot) +
					sizeof(struct ring_reply),
				(uint8_t *)g->model.output + i * g->model.output_stride,
				reply_length(loop, &loop->request[i]), cudaMemcpyDeviceToHost,
				g->stream);
	while (cudaStreamQuery(g->stream) == cudaErrorNotReady)
		;
}

static void send_batch(struct agent_loop *loop, uint32_t n, uint64_t start)
{
	uint64_t done = clock_now_ns();

	for (uint32_t i = 0; i < n; i++) {
		struct agent_link *link = loop->link[i];
		const struct intake *r = &loop->request[i];
		struct ring_reply *header = (void *)cpu_link_reply(link, r->slot);
		struct mlx5_write write = cpu_link_answer(
			link, r, sizeof(*header) + reply_length(loop, r), 0, false, &loop->stats);

		*header = (struct ring_reply){
			.sequence = r->sequence,
			.seen_ns = r->seen_ns,
			.start_ns = start,
			.done_ns = done,
			.length = reply_length(loop, r),
		};
		cpu_link_reap(link, &loop->stats);
		mlx5_wqe_build(&link->queue, link->built++, &write);
	}
	for (unsigned int l = 0; l < loop->params.n_links; l++)
		cpu_link_ring(&loop->params, &loop->params.links[l]);
	loop->stats.batches++;
}

static void *run(void *argument)
{
	struct agent_loop *loop = argument;

	cudaSetDevice(loop->params.gpu);
	while (!__atomic_load_n(&loop->stop, __ATOMIC_ACQUIRE)) {
		uint32_t n = take(loop);
		uint64_t start = clock_now_ns();

		if (n == 0)
			continue;
		run_batch(loop, n);
		send_batch(loop, n, start);
	}
	return NULL;
}

static bool pin(struct agent_loop *loop, const void *at, size_t n, char *error, size_t size)
{
	void *host = (void *)(uintptr_t)at;

	loop->pinned[loop->n_pinned++] = host;
	return ok(cudaHostRegister(host, n, cudaHostRegisterPortable), "pin", error, size);
}

static struct agent_loop *start(const struct agent_loop_params *params, char *error, size_t size)
{
	struct agent_loop *loop = calloc(1, sizeof(*loop));
	bool fine;

	loop->params = *params;
	loop->request = calloc(params->max_batch, sizeof(*loop->request));
	loop->link = calloc(params->max_batch, sizeof(*loop->link));
	fine = ok(cudaSetDevice(params->gpu), "GPU", error, size) && params->max_batch <= 256 &&
	       graph_create(&loop->graph, params->model, params->model_state, &params->shape,
			    params->max_batch, error, size);
	for (unsigned int l = 0; fine && l < params->n_links; l++) {
		const struct agent_link *link = &params->links[l];

		fine = pin(loop, link->payloads, link->room_at + link->room, error, size) &&
		       pin(loop, link->replies, (size_t)link->slot_count * link->reply_stride,
			   error, size);
	}
	if (!fine || pthread_create(&loop->thread, NULL, run, loop) != 0)
		return NULL; /* the bench ends, so there is no clean-up */
	return loop;
}

static void stop(struct agent_loop *loop)
{
	__atomic_store_n(&loop->stop, 1, __ATOMIC_RELEASE);
	pthread_join(loop->thread, NULL);
	for (unsigned int i = 0; i < loop->n_pinned; i++)
		cudaHostUnregister(loop->pinned[i]);
	if (loop->graph.exec != NULL)
		cudaGraphExecDestroy(loop->graph.exec);
	cudaStreamDestroy(loop->graph.stream);
	free(loop->request);
	free(loop->link);
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

const struct agent_loop_ops gpu_peer = {
	.name = "cpu-mediated",
	.batch_max = 256,
	.start = start,
	.stop = stop,
	.stats = read_stats,
	.failed = failed,
};
