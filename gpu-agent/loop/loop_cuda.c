/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host side of the loop on a GPU: memory, the graph, start and stop. Nothing here runs while
 * requests are served. Main thread.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/cuda/gpu_graph.h"
#include "loop/gpu_model.h"
#include "loop/cuda/gpu_pin.h"
#include "loop/loop_cuda.h"
#include "loop/model_load.h"

/* Blocks that copy: enough to fill the bus, few enough to leave the GPU to the model. */
#define BLOCKS_MAX 64
/* Blocks of a stage, which runs beside the model: an SM that has one may have no room for a block
 * of the model. One takes and posts; the others together have 80 KiB under way. */
#define STAGE_BLOCKS_MAX 6

/* Launching the graph again takes 6 us, which a request pays for that comes meanwhile: a graph has
 * this many turns, or fewer when it would have more than this many nodes of the model. */
#define TURNS_MAX       64
#define MODEL_NODES_MAX 4096
/* Bytes. A batch as large as this crosses the bus in some 15 us, which is worth staging while the
 * model runs: a graph with a branch runs 6 us longer, also for a request that comes alone. Batches
 * of one are never staged, because they are for low latency. */
#define STAGE_BYTES (768u << 10)

#define PINS_PER_LINK 9

struct agent_loop {
	int gpu;
	uint64_t hang_ns;          /* a model that does not end within this is taken for hung */
	cudaStream_t stream, side; /* for recording the graph; the loop runs in the first */
	cudaEvent_t fork, join;
	cudaGraphExec_t exec[1 + AGENT_BUCKETS_MAX]; /* the first is launched by the host */
	unsigned int n_execs;
	struct gpu_shared *shared;
	/* device memory */
	void *buffers[20];
	unsigned int n_buffers;
	const volatile void *pinned[AGENT_LINKS_MAX * PINS_PER_LINK];
	unsigned int n_pinned;
	struct agent_link links[AGENT_LINKS_MAX]; /* as the GPU sees them */
	/* the first error; memory of start()'s caller */
	char *error;
	size_t error_size;
	bool failed;
};

static bool cuda_check(struct agent_loop *loop, cudaError_t ret, const char *what)
{
	if (ret == cudaSuccess)
		return !loop->failed;
	if (!loop->failed)
		snprintf(loop->error, loop->error_size, "GPU %d: %s: %s (%s)", loop->gpu, what,
			 cudaGetErrorString(ret), cudaGetErrorName(ret));
	loop->failed = true;
	return false;
}

/* --- memory ------------------------------------------------------------------------------------
 */

static void *device_buffer(struct agent_loop *loop, size_t size)
{
	void *at = NULL;

	if (loop->failed || !cuda_check(loop, cudaMalloc(&at, size), "no memory on the GPU"))
		return NULL;
	loop->buffers[loop->n_buffers++] = at;
	cuda_check(loop, cudaMemset(at, 0, size), "cannot clear memory");
	return at;
}

#define NO_DOORBELL                                                                                \
	"the GPU cannot map the NIC's doorbell; the driver must allow PeerMappingOverride "        \
	"(doorbell doctor agent)"

/* Pin host memory. Returns the address at which the GPU sees it. */
static void *pin(struct agent_loop *loop, const volatile void *at, size_t size, bool io)
{
	void *seen = NULL;

	if (loop->failed || at == NULL)
		return NULL;
	if (cuda_check(loop, gpu_pin(at, size, io, &seen),
		       io ? NO_DOORBELL
			  : "cannot pin memory; is the locked-memory limit (ulimit -l) too low?"))
		loop->pinned[loop->n_pinned++] = at;
	return seen;
}

/* Rings, payloads and replies: of the host, unless they are the GPU's own. */
static void pin_memory(struct agent_loop *loop, struct agent_link *link)
{
	size_t slots = link->slot_count;

	if (link->memory_on_gpu)
		return;
	link->descriptors = pin(loop, link->descriptors, slots * sizeof(*link->descriptors), false);
	link->payloads =
		pin(loop, link->payloads,
		    link->room > 0 ? link->room_at + link->room : slots * link->stride, false);
	link->cancels = pin(loop, link->cancels, slots * sizeof(*link->cancels), false);
	link->replies = pin(loop, link->replies, slots * link->reply_stride, false);
}

/* From here on the link has the GPU's addresses. */
static void pin_link(struct agent_loop *loop, struct agent_link *link)
{
	struct mlx5_queue *q = &link->queue;

	pin_memory(loop, link);
	q->wqes = pin(loop, q->wqes, q->wqe_count * sizeof(*q->wqes), false);
	q->cqes = pin(loop, q->cqes, q->cqe_count * sizeof(*q->cqes), false);
	q->record = pin(loop, q->record, 2 * sizeof(*q->record), false);
	q->cq_record = pin(loop, q->cq_record, sizeof(*q->cq_record), false);
	q->doorbell = pin(loop, q->doorbell, sizeof(*q->doorbell), link->doorbell_is_io);
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* The kernels' parameter, with its buffers on the GPU. */
static struct gpu_loop make_loop(struct agent_loop *loop, const struct agent_loop_params *p)
{
	uint32_t batch = p->max_batch;
	size_t in = round_up(p->shape.max_request, 256), out = round_up(p->shape.max_reply, 256);
	struct gpu_loop g = {
		.n_links = p->n_links,
		.max_batch = batch,
		.min_request = p->shape.min_request,
		.max_request = p->shape.max_request,
		.max_reply = p->max_reply,
		.batch_timeout_ns = p->batch_timeout_us * 1000ull,
		.heartbeat_ns = p->heartbeat_ms * 1000000ull,
		.links = device_buffer(loop, p->n_links * sizeof(*p->links)),
		.state = device_buffer(loop, sizeof(struct gpu_state)),
		.request = device_buffer(loop, batch * sizeof(struct gpu_request)),
		.lengths = device_buffer(loop, batch * sizeof(uint32_t)),
		.requests = device_buffer(loop, batch * sizeof(*g.requests)),
		.replies = device_buffer(loop, batch * sizeof(*g.replies)),
		.shared = loop->shared,
		.buckets = p->buckets,
	};

	agent_buckets_cut(&g.buckets, batch);
	g.model = (struct agent_model_gpu){
		.stream = loop->stream,
		.max_batch = batch,
		.rows = &g.state->batch.rows,
		.lengths = g.lengths,
		.input = device_buffer(loop, batch * in),
		.output = device_buffer(loop, batch * out),
		.input_stride = in,
		.output_stride = out,
		.reply_lengths = device_buffer(loop, 2 * batch * sizeof(uint32_t)),
		.requests = (const void *const *)g.requests,
		.replies = (void *const *)g.replies,
		.post = &g.state->post,
	};
	g.model.statuses = (int32_t *)g.model.reply_lengths + batch;
	return g;
}

/* Buffers that a model whose replies come in pieces needs beside those. */
static struct gpu_steps make_steps(struct agent_loop *loop, const struct agent_loop_params *p,
				   struct gpu_loop *g)
{
	size_t words = g->max_batch * sizeof(uint32_t);
	struct gpu_steps s = {
		.max_pieces = p->max_pieces,
		.states = device_buffer(loop, words),
		.row = device_buffer(loop, g->max_batch * sizeof(struct gpu_row)),
	};

	g->model.row_states = s.states;
	g->model.row_more = device_buffer(loop, words);
	return s;
}

/* --- the graph ---------------------------------------------------------------------------------
 */

static unsigned int copy_blocks(uint32_t batch, uint32_t bytes)
{
	size_t pieces = (size_t)batch * ((bytes + GPU_PIECE - 1) / GPU_PIECE);
	size_t blocks = (pieces + GPU_BLOCK / 32 - 1) / (GPU_BLOCK / 32);

	return blocks < 1 ? 1 : blocks > BLOCKS_MAX ? BLOCKS_MAX : blocks;
}

/* Record the model's graph, for batches of g->model.max_batch. The model may put its own buffers
 * into <g>. */
static cudaGraph_t record_model(struct agent_loop *loop, const struct agent_loop_params *p,
				struct gpu_loop *g)
{
	const struct agent_model_gpu given = g->model;
	cudaGraph_t graph = NULL;
	char why[320] = "";

	if (!cuda_check(loop, cudaStreamBeginCapture(loop->stream, cudaStreamCaptureModeRelaxed),
			"cannot record a graph"))
		return NULL;
	if (p->model->capture(p->model_state, &g->model, why, sizeof(why)) < 0) {
		snprintf(loop->error, loop->error_size, "model '%s': %s", p->model->name, why);
		loop->failed = true;
	}
	/* Recording must end, also after an error. */
	cuda_check(loop, cudaStreamEndCapture(loop->stream, &graph),
		   "the model broke the recording");
	if (!loop->failed && (gpu_graph_check(graph, why, sizeof(why)) < 0 ||
			      gpu_model_check(p->model, &given, &g->model, gpu_graph_nodes(graph),
					      why, sizeof(why)) < 0)) {
		snprintf(loop->error, loop->error_size, "model '%s': %s", p->model->name, why);
		loop->failed = true;
	}
	return graph;
}

/* Prepare a stage, if batches are large: payload then crosses the bus while the model runs. */
static void make_stage(struct agent_loop *loop, const struct agent_loop_params *p,
		       struct gpu_loop *g, size_t nodes)
{
	size_t row = round_up(p->shape.max_request, 256);

	if (nodes == 0 || g->model.in_place || g->max_batch == 1 ||
	    copy_blocks(g->max_batch, g->max_request) == 1 ||
	    (size_t)g->max_batch * p->shape.max_request < STAGE_BYTES)
		return;
	g->staged = device_buffer(loop, g->max_batch * sizeof(*g->staged));
	g->stage = device_buffer(loop, g->max_batch * row);
	g->stage_stride = row;
	if ((size_t)g->max_batch * g->max_reply >= STAGE_BYTES) {
		g->held = device_buffer(loop, g->max_batch * sizeof(*g->held));
		g->hold_stride = round_up(g->max_reply, 256);
		g->hold = device_buffer(loop, g->max_batch * g->hold_stride);
	}
	if (cuda_check(loop, cudaStreamCreateWithFlags(&loop->side, cudaStreamNonBlocking),
		       "no stream") &&
	    cuda_check(loop, cudaEventCreateWithFlags(&loop->fork, cudaEventDisableTiming),
		       "no event"))
		cuda_check(loop, cudaEventCreateWithFlags(&loop->join, cudaEventDisableTiming),
			   "no event");
}

/* The stage is one for all sizes of batches. */
static void share_stage(struct gpu_loop *g, const struct gpu_loop *of)
{
	g->staged = of->staged;
	g->stage = of->stage;
	g->stage_stride = of->stage_stride;
	g->held = of->held;
	g->hold = of->hold;
	g->hold_stride = of->hold_stride;
}

/* Record the model, and a stage beside it. */
static void record_run(struct agent_loop *loop, const struct gpu_loop *g, cudaGraph_t model,
		       unsigned int blocks, unsigned int turn)
{
	char why[320] = "";

	if (g->staged != NULL)
		cuda_check(loop, cudaEventRecord(loop->fork, loop->stream), "cannot record a fork");
	if (gpu_graph_embed(loop->stream, model, why, sizeof(why)) < 0) {
		snprintf(loop->error, loop->error_size, "GPU %d: %s", loop->gpu, why);
		loop->failed = true;
	}
	if (g->staged == NULL || loop->failed)
		return;
	if (cuda_check(loop, cudaStreamWaitEvent(loop->side, loop->fork, 0),
		       "cannot record a fork") &&
	    cuda_check(loop,
		       gpu_stage(g, blocks < STAGE_BLOCKS_MAX ? blocks : STAGE_BLOCKS_MAX, turn,
				 loop->side),
		       "cannot record a stage") &&
	    cuda_check(loop, cudaEventRecord(loop->join, loop->side), "cannot record a join"))
		cuda_check(loop, cudaStreamWaitEvent(loop->stream, loop->join, 0),
			   "cannot record a join");
}

/* Turns that a graph has, each with <nodes> nodes of the model. */
static unsigned int turns_of(size_t nodes)
{
	unsigned int turns = TURNS_MAX;

	while (turns > 1 && turns * nodes > MODEL_NODES_MAX)
		turns /= 2;
	return turns;
}

/* Blocks of a turn. */
static unsigned int blocks_of(const struct gpu_loop *g)
{
	unsigned int in = copy_blocks(g->max_batch, g->max_request);
	unsigned int out = copy_blocks(g->max_batch, g->max_reply);
	unsigned int blocks = in > out ? in : out, most = gpu_turn_blocks();

	/* Quick requests and models that work in place leave nothing to copy. Otherwise add one
	 * block, because block 0 does not copy while it takes requests. */
	if (g->model.in_place ||
	    (g->max_batch == 1 && g->max_request <= QUICK_MAX && g->max_reply <= QUICK_REPLY_MAX))
		blocks = 1;
	blocks += blocks > 1;
	if (blocks > most)
		blocks = most < 3 ? 1 : most;
	return blocks;
}

/* Record turns with the model between them, and a last one that only sends and launches the graph
 * again. */
static void record_turns(struct agent_loop *loop, const struct gpu_loop *g, cudaGraph_t model,
			 size_t nodes)
{
	unsigned int blocks = blocks_of(g), turns = turns_of(nodes);

	if (nodes == 0 && blocks == 1)
		turns = 1; /* one kernel does many turns */
	for (unsigned int i = 0; i < turns && !loop->failed; i++) {
		cuda_check(loop,
			   gpu_turn(g, blocks, GPU_SEND | GPU_WAIT,
				    nodes == 0 && blocks == 1 ? GPU_KERNEL_TURNS : 1, i,
				    loop->stream),
			   "cannot record a turn");
		if (nodes > 0)
			record_run(loop, g, model, blocks, i);
	}
	cuda_check(loop, gpu_turn(g, blocks, GPU_SEND, 1, turns, loop->stream),
		   "cannot record the end");
}

/* Record turns with the model behind each, and what launches the graph again. */
static void record_steps(struct agent_loop *loop, const struct gpu_loop *g,
			 const struct gpu_steps *s, cudaGraph_t model, size_t nodes)
{
	unsigned int turns = turns_of(nodes);

	for (unsigned int i = 0; i < turns && !loop->failed; i++) {
		cuda_check(loop, gpu_steps_turn(g, s, loop->stream), "cannot record a turn");
		record_run(loop, g, model, 1, i);
	}
	cuda_check(loop, gpu_steps_again(g, loop->stream), "cannot record the end");
}

/* Make the graph executable that loop->stream has recorded. */
static void instantiate(struct agent_loop *loop)
{
	cudaGraphExec_t *exec = &loop->exec[loop->n_execs];
	cudaGraph_t graph = NULL;

	cuda_check(loop, cudaStreamEndCapture(loop->stream, &graph), "cannot record a graph");
	if (!loop->failed &&
	    cuda_check(loop,
		       cudaGraphInstantiate(exec, graph, cudaGraphInstantiateFlagDeviceLaunch),
		       "the graph cannot be launched from the GPU")) {
		loop->n_execs++;
		cuda_check(loop, cudaGraphUpload(*exec, loop->stream), "cannot upload the graph");
	}
	if (graph != NULL)
		cudaGraphDestroy(graph);
}

static bool begin_recording(struct agent_loop *loop)
{
	return cuda_check(loop, cudaStreamBeginCapture(loop->stream, cudaStreamCaptureModeRelaxed),
			  "cannot record a graph");
}

/* The model as it was recorded for one size of batch, and the kernels' parameter for that. */
struct recorded {
	struct gpu_loop g;
	cudaGraph_t model;
	size_t nodes;
};

/* Note for the kernels how the model was recorded. */
static void note_model(struct recorded *r)
{
	const struct agent_model_gpu *m = &r->g.model;

	r->nodes = gpu_graph_nodes(r->model);
	r->g.in_place = r->nodes == 0 && m->output == m->input &&
			m->output_stride == m->input_stride && m->reply_lengths == m->lengths &&
			m->statuses == NULL;
	r->g.reply_known = (r->nodes > 0 || r->g.in_place) && m->statuses == NULL &&
			   (m->reply_lengths == NULL || m->reply_lengths == m->lengths);
}

/* Record the model for each size of its batches, the largest first, into <recorded>, where they are
 * in the order of their sizes. <g> is the parameter without a model. */
static void record_sizes(struct agent_loop *loop, const struct agent_loop_params *p,
			 const struct gpu_loop *g, struct recorded *recorded)
{
	const struct agent_buckets *b = &g->buckets;
	const struct agent_model_gpu *largest = &recorded[b->n - 1].g.model;
	char why[320] = "";

	for (uint32_t i = b->n; i-- > 0 && !loop->failed;) {
		recorded[i].g = *g;
		recorded[i].g.model.max_batch = b->rows[i];
		recorded[i].model = record_model(loop, p, &recorded[i].g);
		if (loop->failed)
			return;
		note_model(&recorded[i]);
		if (gpu_model_same(largest, &recorded[i].g.model, why, sizeof(why)) < 0) {
			snprintf(loop->error, loop->error_size, "model '%s': %s", p->model->name,
				 why);
			loop->failed = true;
		}
	}
}

/* One graph for each size of batch, and a first one that waits for the first batch. */
static void launch_sizes(struct agent_loop *loop, const struct recorded *recorded)
{
	uint32_t n = recorded[0].g.buckets.n;
	unsigned int blocks = blocks_of(&recorded[n - 1].g);

	for (uint32_t i = 0; i <= n && begin_recording(loop); i++) {
		const struct recorded *r = &recorded[i == 0 ? 0 : i - 1];

		if (i > 0)
			record_run(loop, &r->g, r->model, blocks, 0);
		cuda_check(loop,
			   gpu_turn(&r->g, blocks, GPU_SEND | GPU_WAIT | GPU_CHOOSE, 1, i > 0,
				    loop->stream),
			   "cannot record a turn");
		instantiate(loop);
	}
	if (!loop->failed)
		cuda_check(loop,
			   cudaMemcpy(recorded[0].g.graphs, &loop->exec[1],
				      n * sizeof(loop->exec[1]), cudaMemcpyHostToDevice),
			   "cannot copy");
}

/* One graph with many turns. */
static void launch_turns(struct agent_loop *loop, const struct recorded *r,
			 const struct gpu_steps *steps)
{
	if (!begin_recording(loop))
		return;
	if (steps == NULL)
		record_turns(loop, &r->g, r->model, r->nodes);
	else
		record_steps(loop, &r->g, steps, r->model, r->nodes);
	instantiate(loop);
}

/* Record the loop and start it. <steps>: of a model whose replies come in pieces, else NULL. */
static void launch(struct agent_loop *loop, const struct agent_loop_params *p, struct gpu_loop *g,
		   const struct gpu_steps *steps)
{
	struct recorded recorded[AGENT_BUCKETS_MAX] = {0};

	g->graphs = device_buffer(loop, sizeof(loop->exec));
	record_sizes(loop, p, g, recorded);
	if (!loop->failed) {
		struct recorded *largest = &recorded[g->buckets.n - 1];

		if (steps == NULL)
			make_stage(loop, p, &largest->g, largest->nodes);
		for (uint32_t i = 0; i + 1 < g->buckets.n; i++)
			share_stage(&recorded[i].g, &largest->g);
		/* A model that runs nothing has nothing to gain from smaller batches. */
		if (g->buckets.n > 1 && largest->nodes > 0)
			launch_sizes(loop, recorded);
		else
			launch_turns(loop, largest, steps);
	}
	if (!loop->failed)
		cuda_check(loop, cudaGraphLaunch(loop->exec[0], loop->stream),
			   "cannot launch the graph");
	for (uint32_t i = 0; i < g->buckets.n; i++)
		if (recorded[i].model != NULL)
			cudaGraphDestroy(recorded[i].model);
}

/* --- start and stop ----------------------------------------------------------------------------
 */

static void loop_cuda_destroy(struct agent_loop *loop)
{
	cudaSetDevice(loop->gpu);
	for (unsigned int i = 0; i < loop->n_execs; i++)
		cudaGraphExecDestroy(loop->exec[i]);
	if (loop->stream != NULL)
		cudaStreamDestroy(loop->stream);
	if (loop->side != NULL)
		cudaStreamDestroy(loop->side);
	if (loop->fork != NULL)
		cudaEventDestroy(loop->fork);
	if (loop->join != NULL)
		cudaEventDestroy(loop->join);
	for (unsigned int i = 0; i < loop->n_pinned; i++)
		gpu_unpin(loop->pinned[i]);
	for (unsigned int i = 0; i < loop->n_buffers; i++)
		cudaFree(loop->buffers[i]);
	if (loop->shared != NULL)
		cudaFreeHost(loop->shared);
	free(loop);
	/* Clear the error, or the next loop would see it. */
	cudaGetLastError();
}

static void CUDART_CB on_graph_end(void *semaphore)
{
	sem_post(semaphore);
}

/* Used by await_end(), which one thread calls. It outlives each loop, because a late callback may
 * still post it. */
static sem_t graph_ended;

/* Wait until the graph has ended, or failed. A kernel that does not end cannot be stopped, nor its
 * memory freed: then the process exits. */
static void await_end(struct agent_loop *loop)
{
	uint64_t limit = clock_now_ns() + loop->hang_ns;
	struct timespec until;

	sem_init(&graph_ended, 0, 0);
	cudaLaunchHostFunc(loop->stream, on_graph_end, &graph_ended);
	while (cudaStreamQuery(loop->stream) == cudaErrorNotReady) {
		until = clock_after_ms(CLOCK_MONOTONIC, 1000);
		sem_clockwait(&graph_ended, CLOCK_MONOTONIC, &until);
		if (clock_now_ns() > limit) {
			fprintf(stderr,
				"GPU %d: the model does not end within %llu ms; the agent exits\n",
				loop->gpu, (unsigned long long)(loop->hang_ns / 1000000));
			_exit(EXIT_FAILURE);
		}
	}
}

static void loop_cuda_stop(struct agent_loop *loop)
{
	if (loop == NULL)
		return;
	cudaSetDevice(loop->gpu);
	__atomic_store_n(&loop->shared->stop, 1, __ATOMIC_RELEASE);
	await_end(loop);
	loop_cuda_destroy(loop);
}

static struct agent_loop *loop_cuda_start(const struct agent_loop_params *params, char *error,
					  size_t size)
{
	struct agent_loop_params p = *params;
	struct agent_loop *loop = calloc(1, sizeof(*loop));
	bool in_pieces = agent_model_steps(p.model);
	struct gpu_steps steps = {0};
	struct gpu_loop g;

	if (loop == NULL) {
		snprintf(error, size, "no memory");
		return NULL;
	}
	loop->gpu = p.gpu;
	loop->hang_ns = (p.hang_ms == 0 ? AGENT_HANG_MS : p.hang_ms) * 1000000ull;
	loop->error = error;
	loop->error_size = size;
	if (p.max_batch > GPU_BATCH_MAX)
		p.max_batch = GPU_BATCH_MAX;
	cudaGetLastError();
	/* Waiting for the GPU sleeps instead of spinning. */
	if (!cuda_check(loop, cudaSetDevice(p.gpu), "cannot be used") ||
	    !cuda_check(loop, cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync),
			"cannot be set up") ||
	    !cuda_check(loop, cudaStreamCreateWithFlags(&loop->stream, cudaStreamNonBlocking),
			"no stream") ||
	    !cuda_check(loop,
			cudaHostAlloc((void **)&loop->shared, sizeof(*loop->shared),
				      cudaHostAllocMapped | cudaHostAllocPortable),
			"no pinned memory"))
		goto fail;
	memset(loop->shared, 0, sizeof(*loop->shared));
	memcpy(loop->links, p.links, p.n_links * sizeof(*p.links));
	p.links = loop->links;
	for (unsigned int i = 0; i < p.n_links && !loop->failed; i++)
		pin_link(loop, &p.links[i]);
	g = make_loop(loop, &p);
	if (in_pieces)
		steps = make_steps(loop, &p, &g);
	if (loop->failed)
		goto fail;
	if (cuda_check(loop,
		       cudaMemcpy(g.links, p.links, p.n_links * sizeof(*p.links),
				  cudaMemcpyHostToDevice),
		       "cannot copy"))
		launch(loop, &p, &g, in_pieces ? &steps : NULL);
	if (loop->failed)
		goto fail;
	return loop;

fail:
	loop_cuda_destroy(loop);
	return NULL;
}

static void loop_cuda_stats(const struct agent_loop *loop, struct agent_loop_stats *out)
{
	*out = loop->shared->stats;
}

static bool loop_cuda_failed(const struct agent_loop *loop, char *why, size_t size)
{
	cudaError_t ret;

	cudaSetDevice(loop->gpu);
	ret = cudaStreamQuery(loop->stream);
	if (ret == cudaErrorNotReady)
		return false;
	/* The graph has ended without a stop. */
	if (ret == cudaSuccess)
		ret = (cudaError_t)loop->shared->launch_error;
	snprintf(why, size, "GPU %d: the loop has ended: %s", loop->gpu,
		 ret == cudaSuccess ? "CUDA reports no error" : cudaGetErrorString(ret));
	return true;
}

/* Libraries may have a device's queues in memory that only the device maps. */
#define NO_QUEUES "the GPU cannot map the NIC's queues"

static bool loop_cuda_can_ring(int gpu, const struct mlx5_queue *q, char *why, size_t size)
{
	const struct {
		const volatile void *at;
		size_t size;
	} parts[] = {
		{q->doorbell, sizeof(*q->doorbell)},
		{q->wqes, q->wqe_count * sizeof(*q->wqes)},
		{q->cqes, q->cqe_count * sizeof(*q->cqes)},
		{q->record, 2 * sizeof(*q->record)},
		{q->cq_record, sizeof(*q->cq_record)},
	};
	cudaError_t ret = cudaSetDevice(gpu);
	unsigned int n = 0;
	void *seen;

	while (ret == cudaSuccess && n < sizeof(parts) / sizeof(parts[0])) {
		if (parts[n].at != NULL)
			ret = gpu_pin(parts[n].at, parts[n].size, n == 0, &seen);
		n += ret == cudaSuccess;
	}
	if (ret != cudaSuccess)
		snprintf(why, size, "GPU %d: %s: %s (%s)", gpu, n == 0 ? NO_DOORBELL : NO_QUEUES,
			 cudaGetErrorString(ret), cudaGetErrorName(ret));
	while (n-- > 0)
		if (parts[n].at != NULL)
			gpu_unpin(parts[n].at);
	cudaGetLastError();
	return ret == cudaSuccess;
}

const struct agent_loop_ops agent_loop_cuda = {
	.name = "cuda",
	.batch_max = GPU_BATCH_MAX,
	.start = loop_cuda_start,
	.stop = loop_cuda_stop,
	.stats = loop_cuda_stats,
	.failed = loop_cuda_failed,
	.can_ring = loop_cuda_can_ring,
};
