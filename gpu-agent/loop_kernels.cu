/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A turn of the loop on a GPU. Block 0 polls, takes and posts, and has the links to itself; the
 * other blocks only help to copy.
 */
#include "loop_crc.cuh"
#include "loop_device.cuh"

/* Descriptors that a warp looks at, side by side. */
#define LOOK (WARP / QUARTERS)
/* A request that may have waited longer may have been cancelled. */
#define CANCEL_AGE_NS 20000

/* What a block has of the batch. */
struct turn {
	struct gpu_request request[GPU_BATCH_MAX];
	struct spans spans;
	uint32_t n, rows;
	uint64_t start_ns, done_ns;
	bool stopped, any_crc;
	bool odd; /* some request is bad, or has a deadline or a sum */
};

/* --- wait_inputs: one warp ---------------------------------------------------------------------
 */

static __device__ const struct ring_descriptor *descriptor_at(const struct agent_link *link,
							      uint64_t position)
{
	return &link->descriptors[position & (link->slot_count - 1)];
}

/* What a descriptor says in its first 32 bytes: slot, length, service, flags; flow, deadline and
 * sum. */
static __device__ void understand(const struct gpu_loop *g, const struct agent_link *link,
				  struct quarter first, struct quarter second,
				  struct gpu_request *r)
{
	r->slot = (uint32_t)first.low;
	r->length = (uint32_t)(first.low >> 32);
	r->flags = (uint32_t)(first.high >> 32);
	r->deadline_us = (uint32_t)second.high;
	r->crc32 = (uint32_t)(second.high >> 32);
	r->status = r->slot >= link->slot_count || r->length > link->stride ||
				    r->length > g->max_request || r->length < g->min_request
			    ? RING_BAD
			    : RING_OK;
	if (r->slot >= link->slot_count)
		r->slot = GPU_NO_SLOT;
}

/* Again, from behind the mark. */
static __device__ void read_again(const struct gpu_loop *g, const struct agent_link *link,
				  struct gpu_request *r)
{
	const struct ring_descriptor *d = descriptor_at(link, r->sequence - 1);
	struct quarter first = read_quarter(d, 0), second = read_quarter(d, 1);

	understand(g, link, first, second, r);
}

/*
 * Look at the next 2^<shift> descriptors of as many links as a warp has lanes for, four lanes a
 * descriptor; take those that are there. True: some link had more than were looked at.
 */
static __device__ bool look(const struct gpu_loop *g, struct keeper *k, struct turn *t,
			    uint32_t base, uint32_t shift, uint64_t now, uint32_t *stop)
{
	uint32_t lane = threadIdx.x, index = lane / QUARTERS, part = lane % QUARTERS;
	uint32_t group = index >> shift, offset = index & ((1u << shift) - 1), l;
	uint32_t below = (1u << lane) - 1, group_lane = group << shift << 2;
	uint32_t of_group = (shift == 3 ? ALL_LANES : ((1u << (4u << shift)) - 1) << group_lane);
	uint32_t there, run, takers, kept;
	bool has_link = base + group < g->n_links, mine, good = false;
	struct quarter seen, first, second;
	struct gpu_request r = {};
	struct agent_link *link;
	uint8_t op_own;

	l = k->kept.first_link + base + (has_link ? group : 0);
	l -= l >= g->n_links ? g->n_links : 0;
	link = &k->links[l];
	/* The stop word and the NIC's next completion cross the bus beside the descriptors. */
	*stop = relaxed_sys(&g->shared->stop);
	op_own = relaxed_sys(mlx5_cqe_next(&link->queue));
	seen = acquire_quarter(descriptor_at(link, link->position + offset), part);
	mine = part == QUARTERS - 1 && has_link && offset < link->slot_count &&
	       seen.high == link->position + offset + 1;
	there = __ballot_sync(ALL_LANES, mine);
	if (there == 0) {
		/* Nothing else to do: completions may be read. */
		if (has_link && offset == 0 && part == 0 && mlx5_cqe_new(&link->queue, op_own))
			reap(k, link);
		__syncwarp();
		return false;
	}
	/* Up to the first that is not there, and while the batch has room. */
	run = __ffs(~(there >> group_lane | 0x77777777u)) - 1;
	mine = mine && lane - group_lane <= run;
	takers = __ballot_sync(ALL_LANES, mine);
	mine = mine && t->n + __popc(takers & below) < g->max_batch &&
	       link->built + __popc(takers & below & of_group) < link->slot_count;
	takers = __ballot_sync(ALL_LANES, mine);
	first.low = __shfl_sync(ALL_LANES, seen.low, lane & ~3u);
	first.high = __shfl_sync(ALL_LANES, seen.high, lane & ~3u);
	second.high = __shfl_sync(ALL_LANES, seen.high, (lane & ~3u) + 1);
	second.low = 0;
	if (mine) {
		r.sequence = seen.high;
		r.seen_ns = now;
		r.link = l;
		understand(g, link, first, second, &r);
		/* Half of what looks bad may be old: be sure. */
		if (r.status != RING_OK)
			read_again(g, link, &r);
		good = r.slot != GPU_NO_SLOT;
	}
	kept = __ballot_sync(ALL_LANES, good);
	if (good) {
		r.ahead = link->built + __popc(kept & below & of_group);
		r.row = t->n + __popc(kept & below);
		t->request[r.row] = r;
		if (r.status != RING_OK || r.deadline_us != 0 || r.flags != 0)
			t->odd = true;
	}
	__syncwarp();
	if (has_link && offset == 0 && part == 0) {
		link->position += __popc(takers & of_group);
		link->built += __popc(kept & of_group);
	}
	if (lane == 0) {
		t->n += __popc(kept);
		k->kept.stats.bad += __popc(takers) - __popc(kept);
	}
	__syncwarp();
	/* Every descriptor of the group was there. */
	return __any_sync(ALL_LANES, has_link && (there & of_group) == (0x88888888u & of_group));
}

/* Into the host's copy, which anybody may read: 8 bytes a lane. */
static __device__ void publish_stats(const struct gpu_loop *g, const struct keeper *k)
{
	static_assert(sizeof(k->kept.stats) % 8 == 0, "copied by words");
	__syncwarp();
	if (threadIdx.x < sizeof(k->kept.stats) / 8)
		((volatile uint64_t *)&g->shared->stats)[threadIdx.x] =
			((const volatile uint64_t *)&k->kept.stats)[threadIdx.x];
}

static __device__ void heartbeat(const struct gpu_loop *g, struct keeper *k, uint64_t now)
{
	__syncwarp(); /* all lanes have seen that it is due */
	for (uint32_t l = threadIdx.x; l < g->n_links; l += WARP) {
		struct agent_link *link = &k->links[l];
		struct mlx5_write write = {
			.remote_address = link->remote_address,
			.rkey = link->remote_rkey,
			.imm = RING_IMM_HEARTBEAT | (link->heartbeats++ & 0xfffff),
			.with_imm = true,
			.signal = true,
		};

		/* Also where no look ever finds the rings empty. */
		reap(k, link);
		if (link->dead || mlx5_room(&link->queue) == 0)
			continue;
		mlx5_wqe_build(&link->queue, 0, &write);
		mlx5_ring(&link->queue, 1);
	}
	if (threadIdx.x == 0) {
		k->kept.next_heartbeat = now + g->heartbeat_ns;
		k->kept.stats.heartbeats++;
	}
	publish_stats(g, k);
	__syncwarp();
}

/* Until there is a batch: full, or its first request has waited long enough. True: some of it may
 * have waited for long. */
static __device__ bool wait_inputs(const struct gpu_loop *g, struct keeper *k, struct turn *t)
{
	uint32_t shift = 3, stop = 0;
	uint64_t last_look = k->kept.last_look, now;
	bool more, seen_empty = false;

	while (shift > 0 && g->n_links << shift > LOOK)
		shift--;
	for (;;) {
		uint32_t before = t->n;

		/* One clock and one stop for all lanes. */
		now = __shfl_sync(ALL_LANES, now_ns(), 0);
		if (now >= k->kept.next_heartbeat)
			heartbeat(g, k, now);
		more = false;
		for (uint32_t base = 0; base < g->n_links; base += LOOK >> shift)
			more |= look(g, k, t, base, shift, now, &stop);
		if (__any_sync(ALL_LANES, stop)) {
			__syncwarp();
			if (threadIdx.x == 0)
				t->stopped = true;
			return false;
		}
		/* More than its slots a link cannot have; what a load balancer says beyond waits.
		 */
		more = more && t->n > before;
		if (t->n == g->max_batch)
			break;
		if (t->n == 0) {
			if (!seen_empty)
				publish_stats(g, k);
			seen_empty = true;
			last_look = now;
		}
		if (t->n > 0 && !more && now - t->request[0].seen_ns >= g->batch_timeout_ns)
			break;
	}
	__syncwarp();
	/* What is left behind has waited since then. */
	if (threadIdx.x == 0)
		k->kept.last_look = t->n < g->max_batch ? now : last_look;
	return now - last_look > CANCEL_AGE_NS;
}

static __device__ bool is_late(const struct gpu_request *r)
{
	return r->deadline_us != 0 && now_ns() - r->seen_ns > r->deadline_us * 1000ull;
}

/* Is it still worth running? What may have waited is read again, from behind its mark. */
static __device__ void recheck(const struct gpu_loop *g, const struct keeper *k,
			       struct gpu_request *r, bool aged)
{
	const struct agent_link *link = &k->links[r->link];
	uint32_t slot = r->slot;
	uint64_t cancelled;

	if (aged) {
		cancelled = relaxed_sys(&link->cancels[slot]);
		read_again(g, link, r);
		if (r->slot != slot && r->slot != GPU_NO_SLOT)
			cancelled = relaxed_sys(&link->cancels[r->slot]);
		if (r->status == RING_OK && cancelled == r->sequence)
			r->status = RING_CANCELLED;
	}
	if (r->status != RING_OK || !is_late(r))
		return;
	/* Half of what says so may be old: be sure. */
	if (!aged)
		read_again(g, link, r);
	if (r->status == RING_OK && is_late(r))
		r->status = RING_EXPIRED;
}

/* What is not worth running gets no row. */
static __device__ void choose_rows(const struct gpu_loop *g, const struct keeper *k, struct turn *t,
				   bool aged)
{
	uint32_t lane = threadIdx.x, rows = 0, crc = 0;

	for (uint32_t first = 0; first < t->n; first += WARP) {
		uint32_t i = first + lane, runs;
		struct gpu_request *r = &t->request[i < t->n ? i : 0];
		bool run = i < t->n && r->status == RING_OK;

		if (run) {
			recheck(g, k, r, aged);
			run = r->status == RING_OK;
		}
		runs = __ballot_sync(ALL_LANES, run);
		if (i < t->n)
			r->row = run ? rows + __popc(runs & ((1u << lane) - 1)) : GPU_NO_ROW;
		rows += __popc(runs);
		crc |= __ballot_sync(ALL_LANES, run && r->flags & RING_HAS_CRC);
	}
	if (lane == 0) {
		t->rows = rows;
		t->any_crc = crc != 0;
	}
}

static __device__ void take_batch(const struct gpu_loop *g, struct keeper *k, struct turn *t)
{
	bool aged;

	if (threadIdx.x == 0) {
		k->kept.first_link =
			k->kept.first_link + 1 < g->n_links ? k->kept.first_link + 1 : 0;
		t->n = 0;
		t->odd = t->any_crc = false;
	}
	__syncwarp();
	aged = wait_inputs(g, k, t);
	__syncwarp();
	if (t->odd || aged)
		choose_rows(g, k, t, aged);
	else if (threadIdx.x == 0)
		t->rows = t->n;
	__syncwarp();
	if (threadIdx.x == 0 && t->stopped)
		t->n = t->rows = 0;
}

/* --- gather: all blocks ------------------------------------------------------------------------
 */

/* Request <i> of the batch, for the other blocks, the model, and the turn behind it. */
static __device__ void publish_request(const struct gpu_loop *g, const struct turn *t, uint32_t i)
{
	const struct gpu_request *r = &t->request[i];

	g->request[i] = *r;
	/* A model may trust lengths, also of what turned out bad when it had its row. */
	if (r->row != GPU_NO_ROW)
		g->lengths[r->row] = r->status == RING_OK ? r->length : g->min_request;
}

static __device__ void publish(const struct gpu_loop *g, const struct turn *t, uint32_t published)
{
	struct gpu_state *s = g->state;
	uint32_t i = threadIdx.x;

	if (i < t->n)
		publish_request(g, t, i);
	if (i == 0) {
		s->n = t->n;
		s->rows = t->rows;
		s->any_crc = t->any_crc;
		s->stopped = t->stopped;
	}
	if (gridDim.x == 1)
		return;
	__syncthreads();
	if (i == 0)
		release_gpu(&s->published, published);
}

/* The whole block copies, a word a thread: nobody waits for one load after the other. */
template <typename T> static __device__ void copy_words(T *to, const T *from, uint32_t n)
{
	static_assert(sizeof(T) % 8 == 0, "copied by words");
	for (uint32_t i = threadIdx.x; i < n * sizeof(T) / 8; i += blockDim.x)
		((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
}

/* The batch as block 0, or the turn before this one, published it. */
static __device__ void read_batch(const struct gpu_loop *g, struct turn *t)
{
	const struct gpu_state *s = g->state;

	copy_words(t->request, g->request, g->max_batch);
	if (threadIdx.x == 0) {
		t->n = s->n;
		t->rows = s->rows;
		t->start_ns = s->start_ns;
		t->any_crc = s->any_crc;
		t->stopped = s->stopped;
	}
	__syncthreads();
}

static __device__ struct span input_of(const struct gpu_loop *g, const struct agent_link *links,
				       const struct gpu_request *r)
{
	const struct agent_link *link = &links[r->link];

	return (struct span){
		.from = link->slots + (uint64_t)r->slot * link->stride,
		.to = (uint8_t *)g->model.input + r->row * g->model.input_stride,
		.length = r->length,
	};
}

static __device__ void gather(const struct gpu_loop *g, struct turn *t,
			      const struct agent_link *links)
{
	uint32_t i = threadIdx.x;
	struct span mine = {};

	if (i < t->n && t->request[i].row != GPU_NO_ROW && t->request[i].status == RING_OK)
		mine = input_of(g, links, &t->request[i]);
	spans_set(&t->spans, t->n, mine);
	spans_copy(&t->spans, t->n, blockIdx.x, gridDim.x);
}

/* Blocks that only copy say that they have; block 0 counts. */
static __device__ void arrive(const struct gpu_loop *g, uint32_t *arrivals)
{
	*arrivals += gridDim.x - 1;
	if (blockIdx.x == 0)
		return;
	__syncthreads();
	if (threadIdx.x == 0) {
		fence_gpu();
		atomicAdd(&g->state->arrived, 1);
	}
}

/* Block 0: until all have. */
static __device__ void await_arrivals(const struct gpu_loop *g, uint32_t arrivals)
{
	__syncthreads();
	if (gridDim.x == 1)
		return;
	if (threadIdx.x == 0)
		while (acquire_gpu(&g->state->arrived) != arrivals)
			;
	__syncthreads();
}

/* The halves of request i's descriptor that matter, for threads 2i and 2i + 1, cross the bus beside
 * the payload. */
static __device__ struct quarter read_half(const struct keeper *k, const struct turn *t)
{
	uint32_t i = threadIdx.x / 2 < GPU_BATCH_MAX ? threadIdx.x / 2 : 0;
	const struct gpu_request *r = &t->request[i];
	uint32_t link = i < t->n ? r->link : 0;

	return read_quarter(descriptor_at(&k->links[link], r->sequence - 1), threadIdx.x % 2,
			    i < t->n && r->row != GPU_NO_ROW);
}

/* Block 0, behind its gathering: are descriptors what they were taken for? If not, gather anew. */
static __device__ void confirm(const struct gpu_loop *g, const struct keeper *k, struct turn *t,
			       struct quarter half, uint32_t arrivals)
{
	struct gpu_request *r = &t->request[threadIdx.x / 2];
	bool differs = false;
	struct span mine = {};

	if (threadIdx.x / 2 < t->n && r->row != GPU_NO_ROW)
		differs = threadIdx.x % 2 == 0
				  ? half.low != (r->slot | (uint64_t)r->length << 32) ||
					    half.high >> 32 != r->flags
				  : half.high != (r->deadline_us | (uint64_t)r->crc32 << 32);
	if (!__syncthreads_or(differs))
		return;
	/* Nobody else may still write these rows. Every request of the batch is read again. */
	await_arrivals(g, arrivals);
	r = &t->request[threadIdx.x];
	differs = threadIdx.x < t->n && r->row != GPU_NO_ROW;
	if (differs) {
		read_again(g, &k->links[r->link], r);
		if (r->status == RING_OK)
			mine = input_of(g, k->links, r);
		publish_request(g, t, threadIdx.x);
	}
	if (__syncthreads_or(differs && r->flags & RING_HAS_CRC))
		t->any_crc = true;
	spans_set(&t->spans, t->n, mine);
	spans_copy(&t->spans, t->n, 0, 1);
	__syncthreads();
}

/* Block 0: where the load balancer sent sums, what does not hold is not answered with a result. */
static __device__ void check_crcs(const struct gpu_loop *g, struct turn *t, uint32_t arrivals)
{
	if (!t->any_crc)
		return;
	await_arrivals(g, arrivals);
	for (uint32_t i = 0; i < t->n; i++) {
		struct gpu_request *r = &t->request[i];

		if (r->row == GPU_NO_ROW || r->status != RING_OK || !(r->flags & RING_HAS_CRC))
			continue;
		if (crc32_of((uint8_t *)g->model.input + r->row * g->model.input_stride,
			     r->length) == r->crc32 ||
		    threadIdx.x != 0)
			continue;
		r->status = RING_BAD;
		g->request[i].status = RING_BAD;
	}
	__syncthreads();
}

/* --- a turn ------------------------------------------------------------------------------------
 */

/* One of the blocks that only copy. */
static __device__ void help_gather(const struct gpu_loop *g, struct turn *t, uint32_t published,
				   uint32_t *arrivals)
{
	if (threadIdx.x == 0)
		while (acquire_gpu(&g->state->published) != published)
			;
	__syncthreads();
	read_batch(g, t);
	gather(g, t, g->links);
	arrive(g, arrivals);
}

static __device__ void wait_gather(const struct gpu_loop *g, struct keeper *k, struct turn *t,
				   uint32_t published, uint32_t *arrivals)
{
	struct quarter half;

	for (;;) {
		if (threadIdx.x < WARP)
			take_batch(g, k, t);
		__syncthreads();
		if (t->stopped || t->rows > 0)
			break;
		/* Nothing to run: answer, and go on waiting. */
		uint64_t now = now_ns();

		send_batch(g, k, t->request, t->n, 0,
			   threadIdx.x < t->n ? t->request[threadIdx.x].status : RING_OK, now, now);
		__syncthreads();
	}
	publish(g, t, published);
	/* A thread that seldom copies says when. */
	if (threadIdx.x == GPU_BLOCK - 1)
		g->state->start_ns = t->start_ns = now_ns();
	half = read_half(k, t);
	gather(g, t, k->links);
	arrive(g, arrivals);
	confirm(g, k, t, half, *arrivals);
	check_crcs(g, t, *arrivals);
}

static __device__ void scatter(const struct gpu_loop *g, struct turn *t,
			       const struct agent_link *links, uint32_t *length, uint8_t *status)
{
	uint32_t i = threadIdx.x;
	struct span mine = {};

	*length = 0;
	*status = RING_OK;
	if (i < t->n) {
		const struct gpu_request *r = &t->request[i];

		*length = mine.length = reply_length(g, r, status);
		mine.from = (const uint8_t *)g->model.output + r->row * g->model.output_stride;
		mine.to = reply_of(&links[r->link], r->slot) + sizeof(struct ring_reply);
	}
	spans_set(&t->spans, t->n, mine);
	spans_copy(&t->spans, t->n, blockIdx.x, gridDim.x);
}

static __device__ void scatter_send(const struct gpu_loop *g, struct keeper *k, struct turn *t,
				    uint32_t *arrivals)
{
	uint32_t length;
	uint8_t status;

	if (threadIdx.x == GPU_BLOCK - 1)
		t->done_ns = now_ns();
	scatter(g, t, k->links, &length, &status);
	arrive(g, arrivals);
	await_arrivals(g, *arrivals);
	if (t->n > 0)
		send_batch(g, k, t->request, t->n, length, status, t->start_ns, t->done_ns);
	__syncthreads();
}

static __device__ void fetch(const struct gpu_loop *g, struct keeper *k)
{
	copy_words(k->links, g->links, g->n_links);
	copy_words(&k->kept, &g->state->kept, 1);
}

static __device__ void put_back(const struct gpu_loop *g, const struct keeper *k)
{
	__syncthreads();
	copy_words(g->links, k->links, g->n_links);
	copy_words(&g->state->kept, &k->kept, 1);
}

/* The end of a graph, where all is sent: all over again, unless the host said stop. */
static __device__ void relaunch(const struct gpu_loop *g, const struct turn *t)
{
	cudaError_t error;

	g->state->n = 0;
	g->state->published = 0;
	g->state->arrived = 0;
	if (t->stopped)
		return;
	error = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
	if (error != cudaSuccess)
		g->shared->launch_error = error;
}

static __global__ void __launch_bounds__(GPU_BLOCK)
	turn(const __grid_constant__ struct gpu_loop g, uint32_t what, uint32_t turns,
	     uint32_t before)
{
	__shared__ struct turn t;
	__shared__ struct keeper k;
	/* Until here each turn of this graph had each block arrive twice. */
	uint32_t arrivals = 2 * before * (gridDim.x - 1), length;
	uint8_t status;

	if (blockIdx.x == 0)
		fetch(&g, &k);
	read_batch(&g, &t);
	if (blockIdx.x > 0) {
		if (what & GPU_SEND && !t.stopped) {
			scatter(&g, &t, g.links, &length, &status);
			arrive(&g, &arrivals);
		}
		if (what & GPU_WAIT && !t.stopped)
			help_gather(&g, &t, before + 1, &arrivals);
		return;
	}
	for (; turns > 0 && !t.stopped; turns--) {
		if (what & GPU_SEND)
			scatter_send(&g, &k, &t, &arrivals);
		if (what & GPU_WAIT)
			wait_gather(&g, &k, &t, before + 1, &arrivals);
	}
	put_back(&g, &k);
	if (!(what & GPU_WAIT) && threadIdx.x == 0)
		relaunch(&g, &t);
}

extern "C" cudaError_t gpu_turn(const struct gpu_loop *loop, unsigned int blocks, unsigned int what,
				unsigned int turns, unsigned int before, cudaStream_t stream)
{
	turn<<<blocks, GPU_BLOCK, 0, stream>>>(*loop, what, turns, before);
	return cudaGetLastError();
}
