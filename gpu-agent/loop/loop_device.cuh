/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A header, though it holds device code: nvcc compiles it into the kernels of loop_kernels.cu and
 * loop_stage.cu, inlined.
 *
 * Used by all parts of a turn: reading memory that a NIC or the host writes, barriers, posting.
 *
 * Order across the bus: a load-acquire at system scope of the mark (a descriptor's sequence) makes
 * everything written before it visible to this thread, and a barrier to its block. Writes of a
 * block reach the NIC in order because the one thread that rings fences at system scope after the
 * barrier; fences are cumulative (PTX ISA, "Memory Consistency Model", causality order).
 */
#ifndef AGENT_LOOP_DEVICE_CUH
#define AGENT_LOOP_DEVICE_CUH

#include "loop/loop_spans.cuh"

static __device__ __forceinline__ uint64_t globaltimer_ns()
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

/* Lanes per descriptor, 16 bytes each: one warp-wide load of a line crosses the bus once, but
 * several loads of the same line wait for each other. */
#define QUARTERS 4u

/* Load-acquire 16 bytes of a descriptor. <high> of the last quarter is the mark. Each lane's load
 * is an acquire by itself: what the other lanes have read may be older than the mark. */
static __device__ __forceinline__ struct bytes16 acquire_quarter(const struct ring_descriptor *d,
								 uint32_t quarter)
{
	struct bytes16 v;

	asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];"
		     : "=l"(v.low), "=l"(v.high)
		     : "l"((const uint8_t *)d + quarter * 16)
		     : "memory");
	return v;
}

static __device__ __forceinline__ struct bytes16 read_quarter(const struct ring_descriptor *d,
							      uint32_t quarter, bool wanted = true)
{
	return read_16((const uint8_t *)d + quarter * 16, wanted);
}

static __device__ __forceinline__ uint64_t relaxed_sys(const uint64_t *at)
{
	uint64_t v;

	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(at));
	return v;
}

/* Load, or 0 unless <wanted>; predicated as read_16() is. */
static __device__ __forceinline__ uint64_t relaxed_sys(const uint64_t *at, bool wanted)
{
	uint64_t v = 0;

	asm volatile("{\n\t.reg .pred p;\n\t"
		     "setp.ne.u32 p, %2, 0;\n\t"
		     "@p ld.relaxed.sys.global.u64 %0, [%1];\n\t}"
		     : "+l"(v)
		     : "l"(at), "r"((uint32_t)wanted)
		     : "memory");
	return v;
}

static __device__ __forceinline__ uint32_t relaxed_sys(const uint32_t *at)
{
	uint32_t v;

	asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(at));
	return v;
}

/* Load, or <otherwise> unless <wanted>; predicated as read_16() is. */
static __device__ __forceinline__ uint32_t relaxed_sys(const uint32_t *at, bool wanted,
						       uint32_t otherwise)
{
	uint32_t v = otherwise;

	asm volatile("{\n\t.reg .pred p;\n\t"
		     "setp.ne.u32 p, %2, 0;\n\t"
		     "@p ld.relaxed.sys.global.u32 %0, [%1];\n\t}"
		     : "+r"(v)
		     : "l"(at), "r"((uint32_t)wanted));
	return v;
}

static __device__ __forceinline__ uint8_t relaxed_sys(const volatile uint8_t *at, bool wanted,
						      uint8_t otherwise)
{
	uint32_t v = otherwise;

	asm volatile("{\n\t.reg .pred p;\n\t"
		     "setp.ne.u32 p, %2, 0;\n\t"
		     "@p ld.relaxed.sys.global.u8 %0, [%1];\n\t}"
		     : "+r"(v)
		     : "l"(at), "r"((uint32_t)wanted));
	return (uint8_t)v;
}

static __device__ __forceinline__ uint32_t acquire_gpu(const uint32_t *at)
{
	uint32_t v;

	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
	return v;
}

static __device__ __forceinline__ void release_gpu(uint32_t *at, uint32_t v)
{
	asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(v) : "memory");
}

static __device__ __forceinline__ void fence_gpu()
{
	asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/*
 * Barriers of block 0, beside __syncthreads(), which is barrier 0: the first warp and the other
 * warps meet there from different places. The first warp need not wait, but it does: after a
 * barrier where some warps only arrive, compute-sanitizer's racecheck (2025.3) reports races that
 * barrier 0 rules out.
 */
enum { BARRIER_AHEAD = 1, BARRIER_VERDICT };

template <int barrier> static __device__ __forceinline__ void barrier_sync()
{
	__syncwarp();
	asm volatile("barrier.cta.sync %0, %1;" ::"n"(barrier), "n"(GPU_BLOCK) : "memory");
}

/* The same; true when <mine> is true in any thread. */
template <int barrier> static __device__ __forceinline__ bool barrier_or(bool mine)
{
	uint32_t any;

	__syncwarp();
	asm volatile("{\n\t.reg .pred p, q;\n\t"
		     "setp.ne.u32 p, %1, 0;\n\t"
		     "barrier.cta.red.or.pred q, %2, %3, p;\n\t"
		     "selp.u32 %0, 1, 0, q;\n\t}"
		     : "=r"(any)
		     : "r"((uint32_t)mine), "n"(barrier), "n"(GPU_BLOCK)
		     : "memory");
	return any != 0;
}

/* --- a turn ------------------------------------------------------------------------------------
 */

/* The first request that polling saw, for the warps and blocks that fetch it before it is taken. */
struct first_seen {
	bool announced;
	uint32_t link, slot, length; /* GPU_NO_LINK: none that can be fetched */
	uint32_t payload;
	uint64_t position;
	struct bytes16 half[2]; /* its descriptor as it was read with the mark */
};

/* A block's copy of the batch. */
struct turn : gpu_batch {
	struct gpu_request request[GPU_BATCH_MAX];
	struct spans spans;
	uint32_t n_staged;
	bool holding; /* this turn has put replies aside */
	uint64_t start_ns;
	bool any_crc;
	bool needs_recheck;   /* some request is bad, may be too late, or has a checksum */
	uint32_t soonest_us;  /* the shortest deadline of the batch; UINT32_MAX: none */
	bool left_some;       /* the last poll may have left descriptors in the rings */
	uint32_t before;      /* turns of this graph before this one */
	uint32_t seen_number; /* what block 0 published last, as this block read it */
	/* the shortcut "ahead": loop_ahead.cuh */
	struct first_seen first, ahead; /* <ahead>: the one that the helpers copy ahead */
	bool may_start_ahead;
	/* the shortcut "quick": loop_quick.cuh */
	bool answer_now;       /* the poll answers the batch, without a turn */
	uint32_t answers_left; /* batches that this kernel may still answer so */
	bool stored;           /* the state of links and loop is stored already */
};

/* --- posting -----------------------------------------------------------------------------------
 */

/* Block 0's copy of the loop's state, in shared memory while the kernel runs. */
struct block0 {
	struct gpu_carried carried;
	struct agent_link links[AGENT_LINKS_MAX];
	bool open[AGENT_LINKS_MAX]; /* WQEs were built for it: ring its doorbell */
};

/* Read one completion, if there is one. */
static __device__ void reap_completion(struct block0 *b, struct agent_link *link)
{
	/* NULL, because a thread would wait for an unused load wherever its register is needed
	 * next. */
	if (mlx5_cq_poll(&link->queue, NULL) != MLX5_POLL_ERROR || link->dead)
		return;
	link->dead = true;
	atomicAdd((unsigned long long *)&b->carried.stats.dead_links, 1);
}

/* Wait until the queue has room for link->built WQEs. Ends with false when the link is dead or the
 * loop is to stop. It does end: the queue pair of a peer that does not acknowledge fails. */
static __device__ bool await_room(const struct gpu_loop *g, struct block0 *b,
				  struct agent_link *link)
{
	while (!link->dead && mlx5_room(&link->queue) < link->built) {
		reap_completion(b, link);
		if (relaxed_sys(&g->shared->stop))
			return false;
	}
	return !link->dead;
}

/* The payload of a request whose descriptor was checked. */
static __device__ const uint8_t *payload_at(const struct agent_link *link, uint32_t payload)
{
	return link->payloads + (uint64_t)payload * RING_ALIGNMENT;
}

static __device__ uint8_t *reply_at(const struct agent_link *link, uint32_t slot)
{
	return link->replies + (uint64_t)slot * link->reply_stride;
}

static __device__ struct ring_reply *reply_header_at(const struct agent_link *link, uint32_t slot)
{
	return (struct ring_reply *)reply_at(link, slot);
}

/* True when the request may be copied to the place of its reply, from where the NIC sends it: the
 * model runs nothing, and there is no checksum to verify first. */
static __device__ bool may_be_in_place(const struct gpu_loop *g, const struct gpu_request *r)
{
	return g->in_place && r->status == RING_OK && !(r->flags & RING_HAS_CRC) &&
	       r->length <= g->max_reply;
}

/* Length of the reply in bytes; <status> says why it is 0. */
static __device__ uint32_t reply_length(const struct gpu_loop *g, const struct gpu_request *r,
					uint8_t *status)
{
	const struct agent_model_gpu *m = &g->model;
	uint32_t length;
	bool failed;

	*status = r->status;
	if (r->status != RING_OK || r->row == GPU_NO_ROW)
		return 0;
	failed = m->statuses != NULL && m->statuses[r->row] != 0;
	length = m->reply_lengths == NULL         ? m->reply_length
		 : m->reply_lengths == m->lengths ? r->length
						  : m->reply_lengths[r->row];
	if (failed || length > g->max_reply) {
		*status = RING_ERROR;
		return 0;
	}
	return length;
}

/* True when this WQE should ask for a CQE. A CQE completes all WQEs before it: four per lap of the
 * queue are enough. */
static __device__ bool wants_cqe(const struct mlx5_queue *q, uint32_t ahead)
{
	uint32_t apart = q->wqe_count / 4;

	return apart <= 1 || ((q->producer + ahead) & (apart - 1)) == 0;
}

static __device__ void build_wqe(struct agent_link *link, const struct gpu_request *r,
				 uint32_t length, uint8_t status, uint32_t backlog)
{
	struct mlx5_write write = {
		.remote_address = link->remote_address + (uint64_t)r->reply * RING_ALIGNMENT,
		.local_address = link->reply_address + (uint64_t)r->slot * link->reply_stride,
		.rkey = link->remote_rkey,
		.lkey = link->lkey,
		.length = (uint32_t)sizeof(struct ring_reply) + length,
		.imm = ring_imm(r->slot, status, 0),
		.with_imm = true,
		.signal = wants_cqe(&link->queue, r->ahead),
	};

	if (r->slot == GPU_NO_SLOT) { /* its WQE is counted already: make it a heartbeat */
		write.imm = ring_imm_heartbeat(backlog);
		write.length = 0;
	}
	mlx5_wqe_build(&link->queue, r->ahead, &write);
}

static __device__ void write_header(struct ring_reply *header, const struct gpu_request *r,
				    uint32_t length, uint32_t backlog, uint64_t start_ns,
				    uint64_t done_ns, uint32_t chunk = 0)
{
	header->sequence = r->sequence;
	header->seen_ns = r->seen_ns;
	header->start_ns = start_ns;
	header->done_ns = done_ns;
	/* One store for length, chunk and backlog. */
	*(uint64_t *)&header->length = length | (uint64_t)(uint16_t)chunk << 32 |
				       (uint64_t)ring_reply_backlog(backlog) << 48;
}

/* One thread: count a batch of <n> requests. */
static __device__ void count_batch(struct agent_loop_stats *stats, uint32_t n, uint64_t ran_ns)
{
	stats->batches++;
	stats->requests += n;
	if (ran_ns > stats->longest_run_ns)
		stats->longest_run_ns = ran_ns;
}

static __device__ void count_replies(struct agent_loop_stats *stats, uint32_t n, uint8_t status,
				     uint64_t ran_ns)
{
	bool mine = threadIdx.x < n;
	uint32_t failed = __syncthreads_count(mine && status != RING_OK), by[RING_BAD + 1] = {};

	if (failed > 0)
		for (uint32_t s = RING_ERROR; s <= RING_BAD; s++)
			by[s] = __syncthreads_count(mine && status == s);
	if (threadIdx.x != 0)
		return;
	count_batch(stats, n, ran_ns);
	stats->errors += by[RING_ERROR];
	stats->expired += by[RING_EXPIRED];
	stats->cancelled += by[RING_CANCELLED];
	stats->bad += by[RING_BAD];
}

/* All threads of block 0: build headers and WQEs. Thread i does request i, whose reply has <length>
 * bytes. <backlog> requests are left. */
static __device__ void build_batch(const struct gpu_loop *g, struct block0 *b,
				   const struct gpu_request *request, uint32_t n, uint32_t length,
				   uint8_t status, uint32_t backlog, uint64_t start_ns,
				   uint64_t done_ns)
{
	uint32_t i = threadIdx.x;

	if (i < g->n_links)
		b->open[i] = b->links[i].built > 0 && await_room(g, b, &b->links[i]);
	__syncthreads();
	if (i < n && b->open[request[i].link]) {
		struct agent_link *link = &b->links[request[i].link];

		if (request[i].slot != GPU_NO_SLOT)
			write_header(reply_header_at(link, request[i].slot), &request[i], length,
				     backlog, start_ns, done_ns);
		build_wqe(link, &request[i], length, status, backlog);
	}
}

/* Ring one doorbell per link. A barrier after the WQEs were built comes first. */
static __device__ void ring_batch(const struct gpu_loop *g, struct block0 *b)
{
	uint32_t i = threadIdx.x;

	if (i < g->n_links) {
		if (b->open[i])
			mlx5_ring(&b->links[i].queue, b->links[i].built);
		b->links[i].built = 0;
	}
}

/* One thread: launch <graph> when this one has ended. */
static __device__ void launch_graph(const struct gpu_loop *g, cudaGraphExec_t graph)
{
	cudaError_t error = cudaGraphLaunch(graph, cudaStreamGraphTailLaunch);

	if (error != cudaSuccess)
		g->shared->launch_error = error;
}

/* One thread: launch the graph again. */
static __device__ void launch_again(const struct gpu_loop *g)
{
	launch_graph(g, cudaGetCurrentGraphExec());
}

#endif
