/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernels of the loop on a GPU, in the order of a turn. One block waits and takes; the others
 * only help to copy.
 */
#include "loop_crc.cuh"
#include "loop_device.cuh"

/* Descriptors of one link that an idle loop looks at, side by side. */
#define IDLE_WIDTH 8
/* A request that waited longer may have been cancelled. */
#define CANCEL_AGE_NS 20000

/* What block 0 has of the batch while it is taken. */
struct intake {
	struct agent_link links[AGENT_LINKS_MAX];
	struct gpu_request request[GPU_BATCH_MAX];
	uint32_t row_request[GPU_BATCH_MAX];
	uint32_t n, rows;
	bool any_crc, stopped;
};

/* --- wait_inputs: one warp ---------------------------------------------------------------------
 */

/* Fill <r> from the descriptor whose mark was seen. False: it names no slot. */
static __device__ bool read_descriptor(const struct gpu_loop *g, const struct agent_link *link,
				       const struct ring_descriptor *d, struct gpu_request *r)
{
	uint4 head = *(const uint4 *)&d->slot; /* slot, length, service, flags */
	uint2 tail = *(const uint2 *)&d->deadline_us;

	r->slot = head.x;
	r->length = head.y;
	r->deadline_us = tail.x;
	r->crc32 = tail.y;
	r->has_crc = (head.w & RING_HAS_CRC) != 0;
	r->status =
		r->length > link->stride || r->length > g->max_request || r->length < g->min_request
			? RING_BAD
			: RING_OK;
	return r->slot < link->slot_count;
}

/*
 * Look at the next <width> descriptors of as many links as a warp has lanes for, take those that
 * are there. True: some link had more than were looked at.
 */
static __device__ bool look(struct gpu_loop *g, struct intake *in, uint32_t base, uint32_t width,
			    uint64_t now)
{
	uint32_t lane = threadIdx.x, group = lane / width, offset = lane % width;
	uint32_t below = (1u << lane) - 1, of_group, run, takers, l;
	bool has_link = base + group < g->n_links, mine, good = false;
	struct agent_link *link;
	struct gpu_request r = {};

	l = has_link ? (g->first_link + base + group) % g->n_links : 0;
	link = &in->links[l];
	r.sequence = link->position + offset + 1;
	r.seen_ns = now;
	r.link = l;
	const struct ring_descriptor *d =
		&link->descriptors[(link->position + offset) & (link->slot_count - 1)];

	/* The NIC's completions travel beside the look. */
	if (has_link && offset == 0)
		reap(g, link);
	mine = has_link && offset < link->slot_count && acquire_sys(&d->sequence) == r.sequence;
	of_group = (width == WARP ? ALL_LANES : ((1u << width) - 1) << group * width);
	/* Up to the first that is not there, and while the batch has room. */
	run = __ffs(~(__ballot_sync(ALL_LANES, mine) >> group * width)) - 1;
	run = run > width ? width : run; /* ~0 has no first */
	mine = mine && offset < run;
	takers = __ballot_sync(ALL_LANES, mine);
	mine = mine && in->n + __popc(takers & below) < g->max_batch;
	takers = __ballot_sync(ALL_LANES, mine);
	if (takers == 0)
		return false;
	if (mine)
		good = read_descriptor(g, link, d, &r);
	uint32_t kept = __ballot_sync(ALL_LANES, good);
	if (good) {
		r.ahead = link->built + __popc(kept & below & of_group);
		in->request[in->n + __popc(kept & below)] = r;
	}
	__syncwarp();
	if (has_link && offset == 0) {
		link->position += __popc(takers & of_group);
		link->built += __popc(kept & of_group);
	}
	if (lane == 0) {
		in->n += __popc(kept);
		g->stats.bad += __popc(takers) - __popc(kept);
	}
	__syncwarp();
	return __any_sync(ALL_LANES, has_link && run == width);
}

static __device__ void heartbeat(struct gpu_loop *g, struct intake *in, uint64_t now)
{
	for (uint32_t l = threadIdx.x; l < g->n_links; l += WARP) {
		struct agent_link *link = &in->links[l];
		struct mlx5_write write = {
			.remote_address = link->remote_address,
			.rkey = link->remote_rkey,
			.imm = RING_IMM_HEARTBEAT | (link->heartbeats++ & 0xfffff),
			.with_imm = true,
			.signal = true,
		};

		if (link->dead || mlx5_room(&link->queue) == 0)
			continue;
		mlx5_wqe_build(&link->queue, 0, &write);
		mlx5_ring(&link->queue, 1);
	}
	__syncwarp();
	if (threadIdx.x == 0) {
		g->next_heartbeat = now + g->heartbeat_ns;
		g->stats.heartbeats++;
		g->shared->stats = g->stats;
	}
	__syncwarp();
}

/* Until there is a batch: full, or its first request has waited long enough. */
static __device__ void wait_inputs(struct gpu_loop *g, struct intake *in, bool *aged)
{
	uint32_t most = WARP, idle, width;
	uint64_t now;
	bool more, fresh = false; /* this turn has seen the rings empty */

	while (most > 1 && most * g->n_links > WARP)
		most /= 2;
	idle = most < IDLE_WIDTH ? most : IDLE_WIDTH;
	width = idle;
	*aged = false;
	for (;;) {
		uint32_t stop = relaxed_sys(&g->shared->stop);

		now = now_ns();
		more = false;
		for (uint32_t base = 0; base < g->n_links; base += WARP / width)
			more |= look(g, in, base, width, now);
		if (stop) {
			in->stopped = true;
			return;
		}
		if (in->n > 0 && !fresh)
			*aged = true;
		fresh = true;
		if (in->n == g->max_batch)
			break;
		width = more ? most : idle;
		if (in->n > 0 && !more && now - in->request[0].seen_ns >= g->batch_timeout_ns)
			break;
		if (now >= g->next_heartbeat)
			heartbeat(g, in, now);
	}
	*aged |= now - in->request[0].seen_ns > CANCEL_AGE_NS;
}

/* What is not worth running gets no row. */
static __device__ void choose_rows(struct gpu_loop *g, struct intake *in, bool aged, uint64_t now)
{
	uint32_t lane = threadIdx.x, rows = 0, crc = 0;

	for (uint32_t first = 0; first < in->n; first += WARP) {
		uint32_t i = first + lane, runs;
		bool mine = i < in->n, run = mine && in->request[i].status == RING_OK;
		struct gpu_request *r = &in->request[i];

		if (run && aged &&
		    relaxed_sys(&in->links[r->link].cancels[r->slot]) == r->sequence) {
			r->status = RING_CANCELLED;
		} else if (run && r->deadline_us != 0 &&
			   now - r->seen_ns > r->deadline_us * 1000ull) {
			r->status = RING_EXPIRED;
		}
		run = run && r->status == RING_OK;
		runs = __ballot_sync(ALL_LANES, run);
		if (mine)
			r->row = run ? rows + __popc(runs & ((1u << lane) - 1)) : GPU_NO_ROW;
		if (run)
			in->row_request[r->row] = i;
		rows += __popc(runs);
		crc |= __ballot_sync(ALL_LANES, run && r->has_crc);
	}
	if (lane == 0) {
		in->rows = rows;
		in->any_crc = crc != 0;
		g->start_ns = now;
	}
}

static __device__ void take_batch(struct gpu_loop *g, struct intake *in)
{
	bool aged;

	if (threadIdx.x == 0) {
		in->n = in->rows = 0;
		in->stopped = in->any_crc = false;
	}
	__syncwarp();
	wait_inputs(g, in, &aged);
	__syncwarp();
	if (in->stopped && threadIdx.x == 0)
		in->n = 0;
	__syncwarp();
	choose_rows(g, in, aged, now_ns());
}

/* --- gather: all blocks ------------------------------------------------------------------------
 */

/* Tell the other blocks and the kernels behind this one. */
static __device__ void publish(struct gpu_loop *g, const struct intake *in)
{
	uint32_t i = threadIdx.x;

	if (i < in->n)
		g->request[i] = in->request[i];
	if (i < in->rows) {
		g->row_request[i] = in->row_request[i];
		g->lengths[i] = in->request[in->row_request[i]].length;
	}
	if (i < g->n_links)
		g->links[i] = in->links[i];
	if (i == 0) {
		g->n = in->n;
		g->rows = in->rows;
		g->any_crc = in->any_crc;
		g->stopped = in->stopped;
		g->first_link++;
	}
	__syncthreads();
	if (i == 0)
		release_gpu(&g->published, g->turn + 1);
}

static __device__ void gather(const struct gpu_loop *g, struct spans *spans,
			      const struct agent_link *links, const struct gpu_request *request,
			      const uint32_t *row_request, uint32_t rows)
{
	uint32_t i = threadIdx.x;
	struct span mine = {};

	if (i < rows) {
		const struct gpu_request *r = &request[row_request[i]];

		mine.from = links[r->link].slots + (uint64_t)r->slot * links[r->link].stride;
		mine.to = (uint8_t *)g->model.input + i * g->model.input_stride;
		mine.length = r->length;
	}
	spans_set(spans, rows, mine);
	spans_copy(spans, rows);
}

/* The last block that has gathered checks the sums, where the load balancer sent some. */
static __device__ void check_crcs(struct gpu_loop *g)
{
	__shared__ bool last;

	if (!g->any_crc)
		return;
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		last = atomicAdd(&g->gathered, 1) == gridDim.x - 1;
		__threadfence();
	}
	__syncthreads();
	if (!last)
		return;
	for (uint32_t row = 0; row < g->rows; row++) {
		struct gpu_request *r = &g->request[g->row_request[row]];
		const uint8_t *input = (uint8_t *)g->model.input + row * g->model.input_stride;

		if (r->has_crc && crc32_of(input, r->length) != r->crc32 && threadIdx.x == 0)
			r->status = RING_BAD;
	}
	if (threadIdx.x == 0)
		g->gathered = 0;
}

static __global__ void __launch_bounds__(GPU_BLOCK) wait_gather(struct gpu_loop *g)
{
	__shared__ struct intake in;
	__shared__ struct spans spans;

	if (blockIdx.x > 0) {
		if (threadIdx.x == 0)
			while (acquire_gpu(&g->published) != g->turn + 1)
				;
		__syncthreads();
		gather(g, &spans, g->links, g->request, g->row_request, g->rows);
		check_crcs(g);
		return;
	}
	if (threadIdx.x < g->n_links)
		in.links[threadIdx.x] = g->links[threadIdx.x];
	__syncthreads();
	for (;;) {
		if (threadIdx.x < WARP)
			take_batch(g, &in);
		__syncthreads();
		if (in.stopped || in.rows > 0)
			break;
		/* Nothing to run: answer, and go on waiting. */
		send_batch(g, in.links, in.request, in.n, g->start_ns);
		__syncthreads();
	}
	publish(g, &in);
	gather(g, &spans, in.links, in.request, in.row_request, in.rows);
	check_crcs(g);
}

/* --- scatter, send_outputs, relaunch ---------------------------------------------------------
 */

static __device__ void scatter(const struct gpu_loop *g, struct spans *spans)
{
	uint32_t i = threadIdx.x, rows = g->rows;
	struct span mine = {};
	uint8_t status;

	if (i < rows) {
		const struct gpu_request *r = &g->request[g->row_request[i]];

		mine.length = reply_length(g, r, &status);
		mine.from = (const uint8_t *)g->model.output + i * g->model.output_stride;
		mine.to = reply_of(&g->links[r->link], r->slot) + sizeof(struct ring_reply);
	}
	spans_set(spans, rows, mine);
	spans_copy(spans, rows);
}

static __global__ void __launch_bounds__(GPU_BLOCK) scatter_send(struct gpu_loop *g)
{
	__shared__ struct spans spans;
	__shared__ bool last;
	uint64_t done_ns = now_ns();
	cudaError_t error;

	scatter(g, &spans);
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		last = atomicAdd(&g->scattered, 1) == gridDim.x - 1;
		__threadfence();
	}
	__syncthreads();
	if (!last)
		return;
	if (g->n > 0)
		send_batch(g, g->links, g->request, g->n, done_ns);
	if (threadIdx.x != 0)
		return;
	g->scattered = 0;
	g->turn++;
	if (g->stopped)
		return;
	error = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
	if (error != cudaSuccess)
		g->shared->launch_error = error;
}

extern "C" cudaError_t gpu_wait_gather(struct gpu_loop *loop, unsigned int blocks,
				       cudaStream_t stream)
{
	wait_gather<<<blocks, GPU_BLOCK, 0, stream>>>(loop);
	return cudaGetLastError();
}

extern "C" cudaError_t gpu_scatter_send(struct gpu_loop *loop, unsigned int blocks,
					cudaStream_t stream)
{
	scatter_send<<<blocks, GPU_BLOCK, 0, stream>>>(loop);
	return cudaGetLastError();
}
