/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kind "copied": copy engines bring requests in and replies out, one call each per batch; the
 * model's graph runs between. The host asks the stream until it is done, which was faster than a
 * kernel that sets a flag behind the copies, and than a graph with the copies in it.
 */
#include "gpu/gpu_peer_kind.h"
#include "loop/cuda/gpu_graph.h"

static bool prepare(struct agent_loop *loop)
{
	struct peer_batch *b = &loop->batch[0];
	cudaGraph_t graph = NULL;

	return loop->model.nodes == 0 ||
	       (peer_ok(loop, cudaGraphClone(&graph, loop->model.graph), "graph") &&
		peer_instantiate(loop, graph, &b->exec));
}

static void launch(struct agent_loop *loop, struct peer_batch *b)
{
	struct peer_model *m = &loop->model;

	peer_copy_in(loop, b, m->gpu.input, loop->stream);
	if (m->nodes > 0) {
		peer_sizes(loop, b, loop->stream);
		peer_must(cudaGraphLaunch(b->exec, loop->stream), "launch");
	}
	peer_copy_out(loop, b, m->gpu.output, loop->stream);
}

static bool is_done(struct agent_loop *loop, struct peer_batch *b)
{
	cudaError_t ret = cudaStreamQuery(loop->stream);

	if (ret == cudaErrorNotReady)
		return false;
	peer_must(ret, "batch");
	return true;
}

const struct peer_kind peer_copied = {
	.depth = 1,
	.prepare = prepare,
	.launch = launch,
	.is_done = is_done,
};
