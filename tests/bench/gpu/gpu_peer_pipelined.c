/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kind "pipelined": while a batch runs, the next one comes in and the last one goes out, each
 * on a stream of its own with buffers of its own; both ways of the bus and the GPU work at once.
 * The graph of a batch moves its rows from and to the model's buffers at the GPU's own speed.
 */
#include "gpu/gpu_peer_kind.h"
#include "loop/cuda/gpu_graph.h"

static bool record(struct agent_loop *loop, struct peer_batch *b)
{
	const struct agent_model_gpu *m = &loop->model.gpu;
	size_t rows = loop->params.max_batch;
	cudaGraph_t graph = NULL;

	return peer_ok(loop, cudaStreamBeginCapture(loop->stream, cudaStreamCaptureModeRelaxed),
		       "cannot record") &&
	       peer_ok(loop,
		       cudaMemcpyAsync(m->input, b->in, rows * m->input_stride,
				       cudaMemcpyDeviceToDevice, loop->stream),
		       "cannot record") &&
	       (loop->model.nodes == 0 || gpu_graph_embed(loop->stream, loop->model.graph,
							  loop->error, sizeof(loop->error)) == 0) &&
	       peer_ok(loop,
		       cudaMemcpyAsync(b->out, m->output, rows * m->output_stride,
				       cudaMemcpyDeviceToDevice, loop->stream),
		       "cannot record") &&
	       peer_ok(loop, cudaStreamEndCapture(loop->stream, &graph), "cannot record") &&
	       peer_instantiate(loop, graph, &b->exec);
}

static bool prepare(struct agent_loop *loop)
{
	const struct agent_model_gpu *m = &loop->model.gpu;
	size_t rows = loop->params.max_batch;

	if (!peer_ok(loop, cudaStreamCreateWithFlags(&loop->in, cudaStreamNonBlocking), "stream") ||
	    !peer_ok(loop, cudaStreamCreateWithFlags(&loop->out, cudaStreamNonBlocking), "stream"))
		return false;
	for (uint32_t d = 0; d < loop->kind->depth; d++) {
		struct peer_batch *b = &loop->batch[d];
		cudaEvent_t *events[] = {&b->came, &b->ran, &b->left};

		for (int i = 0; i < 3; i++)
			if (!peer_ok(loop,
				     cudaEventCreateWithFlags(events[i], cudaEventDisableTiming),
				     "event"))
				return false;
		if (!peer_ok(loop, cudaMalloc((void **)&b->in, rows * m->input_stride), "memory") ||
		    !peer_ok(loop, cudaMalloc((void **)&b->out, rows * m->output_stride),
			     "memory") ||
		    !record(loop, b))
			return false;
	}
	return true;
}

/* A batch's buffers are free when it is taken: the one before it in them has been answered. */
static void launch(struct agent_loop *loop, struct peer_batch *b)
{
	peer_copy_in(loop, b, b->in, loop->in);
	peer_must(cudaEventRecord(b->came, loop->in), "event");
	peer_must(cudaStreamWaitEvent(loop->stream, b->came, 0), "event");
	peer_sizes(loop, b, loop->stream);
	peer_must(cudaGraphLaunch(b->exec, loop->stream), "launch");
	peer_must(cudaEventRecord(b->ran, loop->stream), "event");
	peer_must(cudaStreamWaitEvent(loop->out, b->ran, 0), "event");
	peer_copy_out(loop, b, b->out, loop->out);
	peer_must(cudaEventRecord(b->left, loop->out), "event");
}

static bool is_done(struct agent_loop *loop, struct peer_batch *b)
{
	cudaError_t ret = cudaEventQuery(b->left);

	if (ret == cudaErrorNotReady)
		return false;
	peer_must(ret, "batch");
	return true;
}

const struct peer_kind peer_pipelined = {
	.depth = PEER_DEPTH_MAX,
	.prepare = prepare,
	.launch = launch,
	.is_done = is_done,
};
