/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kinds "gathered" and "in place": kernels read requests and write replies across the bus, and
 * the last one sets a flag that the host polls. A request that comes alone has a graph of its own
 * for its slot, so that its kernels have all they need to know as parameters; a batch has a table
 * in pinned memory. Three batches may wait on the stream, so that a launch takes no time from the
 * GPU.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/gpu_peer_kind.h"
#include "loop/cuda/gpu_graph.h"

static bool record(struct agent_loop *loop, const struct peer_rows *rows, volatile uint32_t *flag,
		   cudaGraphExec_t *exec)
{
	struct peer_model *m = &loop->model;
	cudaGraph_t graph = NULL;
	bool fine;

	fine = peer_ok(loop, cudaStreamBeginCapture(loop->stream, cudaStreamCaptureModeRelaxed),
		       "cannot record");
	if (fine && loop->kind == &peer_in_place)
		fine = peer_ok(loop, peer_echo(rows, loop->arrived, flag, loop->stream), "echo");
	else if (fine)
		fine = peer_ok(loop, peer_gather(rows, &m->gpu, m->sizes, loop->stream),
			       "gather") &&
		       (m->nodes == 0 || gpu_graph_embed(loop->stream, m->graph, loop->error,
							 sizeof(loop->error)) == 0) &&
		       peer_ok(loop, peer_scatter(rows, &m->gpu, loop->arrived, flag, loop->stream),
			       "scatter");
	return fine && peer_ok(loop, cudaStreamEndCapture(loop->stream, &graph), "cannot record") &&
	       peer_instantiate(loop, graph, exec);
}

static bool prepare(struct agent_loop *loop)
{
	const struct agent_loop_params *p = &loop->params;
	size_t singles = (size_t)p->n_links * p->links[0].slot_count;
	struct peer_rows rows = {
		.rows_max = p->max_batch,
		.bytes_max = p->shape.max_request > p->shape.max_reply ? p->shape.max_request
								       : p->shape.max_reply,
	};
	uint32_t *flags;

	loop->single = calloc(singles, sizeof(*loop->single));
	if (!peer_ok(loop,
		     cudaHostAlloc((void **)&flags, (singles + PEER_DEPTH_MAX) * 64,
				   cudaHostAllocPortable),
		     "pinned memory") ||
	    !peer_ok(loop, cudaMalloc((void **)&loop->arrived, sizeof(uint32_t)), "memory") ||
	    !peer_ok(loop, cudaMemset(loop->arrived, 0, sizeof(uint32_t)), "memory"))
		return false;
	loop->single_flag = flags;
	for (uint32_t d = 0; d < loop->kind->depth && p->max_batch > 1; d++) {
		struct peer_batch *b = &loop->batch[d];

		b->own_flag = flags + (singles + d) * 16;
		rows.table = b->table;
		if (!record(loop, &rows, b->own_flag, &b->exec))
			return false;
	}
	return true;
}

/* Find or make the graph of the batch's only request. */
static cudaGraphExec_t single_exec(struct agent_loop *loop, struct peer_batch *b)
{
	const struct intake *r = &b->request[0];
	size_t number =
		(size_t)(b->link[0] - loop->params.links) * b->link[0]->slot_count + r->slot;
	struct peer_single *s = &loop->single[number];
	struct peer_row row = {
		.from = peer_from(b, 0),
		.to = peer_to(b, 0),
		.length = r->length,
		.reply = peer_reply_length(loop, r),
	};
	struct peer_rows rows = {
		.one = row,
		.rows_max = 1,
		.bytes_max = row.length > row.reply ? row.length : row.reply,
	};

	b->flag = loop->single_flag + number * 16;
	if (s->exec != NULL && s->from == row.from && s->to == row.to && s->length == row.length)
		return s->exec;
	*s = (struct peer_single){.from = row.from, .to = row.to, .length = row.length};
	if (!record(loop, &rows, b->flag, &s->exec)) {
		fprintf(stderr, "%s\n", loop->error);
		exit(1);
	}
	return s->exec;
}

static cudaGraphExec_t table_exec(struct agent_loop *loop, struct peer_batch *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		b->table->row[i] = (struct peer_row){
			.from = peer_from(b, i),
			.to = peer_to(b, i),
			.length = b->request[i].length,
			.reply = peer_reply_length(loop, &b->request[i]),
		};
	b->table->n = b->n;
	b->flag = b->own_flag;
	return b->exec;
}

static void launch(struct agent_loop *loop, struct peer_batch *b)
{
	cudaGraphExec_t exec = b->n == 1 ? single_exec(loop, b) : table_exec(loop, b);

	*b->flag = 0;
	peer_must(cudaGraphLaunch(exec, loop->stream), "launch");
}

static bool is_done(struct agent_loop *loop, struct peer_batch *b)
{
	return __atomic_load_n(b->flag, __ATOMIC_ACQUIRE) != 0;
}

const struct peer_kind peer_gathered = {
	.depth = PEER_DEPTH_MAX,
	.prepare = prepare,
	.launch = launch,
	.is_done = is_done,
};

const struct peer_kind peer_in_place = {
	.depth = PEER_DEPTH_MAX,
	.prepare = prepare,
	.launch = launch,
	.is_done = is_done,
};
