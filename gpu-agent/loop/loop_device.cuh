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

/* Load 16 bytes of a descriptor; <high> of the last quarter is the mark. Several such loads are on
 * their way together, and fence_acquire_sys() behind them makes them acquires. Each lane's is one by
 * itself: what the other lanes have read may be older than the mark. */
static __device__ __forceinline__ struct bytes16 relaxed_quarter(const struct ring_descriptor *d,
								 uint32_t quarter)
{
	struct bytes16 v;

	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
		     : "=l"(v.low), "=l"(v.high)
		     : "l"((const uint8_t *)d + quarter * 16)
		     : "memory");
	return v;
}

static __device__ __forceinline__ void fence_acquire_sys()
{
#if __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ >= 13
	asm volatile("fence.acquire.sys;" ::: "memory");
#else
	asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
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

static __device__ __forceinline__ uint32_t acquire_gpu(const uint32_t *at)
{
	uint32_t v;

	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
	return v;
}

static __device__ __forceinline__ struct gpu_published
acquire_gpu(const struct gpu_published *at)
{
	struct bytes16 v;

	asm volatile("{\n\t.reg .b128 w;\n\t"
		     "ld.acquire.gpu.global.b128 w, [%2];\n\t"
		     "mov.b128 {%0, %1}, w;\n\t}"
		     : "=l"(v.low), "=l"(v.high)
		     : "l"(at)
		     : "memory");
	return (struct gpu_published){(uint32_t)v.low, (uint32_t)(v.low >> 32),
				      (const uint8_t *)v.high};
}

static __device__ __forceinline__ void release_gpu(struct gpu_published *at,
						   const struct gpu_published &p)
{
	asm volatile("{\n\t.reg .b128 w;\n\t"
		     "mov.b128 w, {%1, %2};\n\t"
		     "st.release.gpu.global.b128 [%0], w;\n\t}" ::"l"(at),
		     "l"(p.number | (uint64_t)p.ahead_length << 32), "l"(p.ahead)
		     : "memory");
}

/* The same where nothing that this GPU has written must be seen before. */
static __device__ __forceinline__ void relaxed_gpu(struct gpu_published *at,
						   const struct gpu_published &p)
{
	asm volatile("{\n\t.reg .b128 w;\n\t"
		     "mov.b128 w, {%1, %2};\n\t"
		     "st.relaxed.gpu.global.b128 [%0], w;\n\t}" ::"l"(at),
		     "l"(p.number | (uint64_t)p.ahead_length << 32), "l"(p.ahead)
		     : "memory");
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
enum { BARRIER_AHEAD = 1, BARRIER_VERDICT, BARRIER_BEHIND, BARRIER_LATE };

template <int barrier> static __device__ __forceinline__ void barrier_sync()
{
	__syncwarp();
	asm volatile("barrier.cta.sync %0, %1;" ::"n"(barrier), "n"(GPU_BLOCK) : "memory");
}

/* All warps but the first one (BARRIER_BEHIND), or but the last one (BARRIER_LATE). */
template <int barrier> static __device__ __forceinline__ void barrier_but_one()
{
	__syncwarp();
	asm volatile("barrier.cta.sync %0, %1;" ::"n"(barrier), "n"(GPU_BLOCK - 32) : "memory");
}

/* barrier_sync(); true when <mine> is true in any thread. */
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

/* The last look at all links by look_wide(): its time, POLL_*, descriptors left in the rings, and
 * the host's stop word. */
struct wide_look {
	uint64_t now;
	uint32_t missed, left, stop;
};

/* Replies that are to be built and posted. */
struct replies {
	uint32_t n;
	uint32_t backlog; /* requests that are left */
	uint64_t start_ns, done_ns;
	uint32_t length[GPU_BATCH_MAX];
	uint8_t status[GPU_BATCH_MAX];
};

/* A block's copy of the batch. */
struct turn : gpu_batch {
	struct gpu_request request[GPU_BATCH_MAX];
	struct spans spans;
	uint32_t n_staged;
	bool holding; /* this turn has put replies aside */
	uint64_t start_ns;
	bool any_crc;
	bool needs_recheck;  /* some request is bad, may be too late, or has a checksum */
	uint32_t soonest_us; /* the shortest deadline of the batch; UINT32_MAX: none */
	bool asks;           /* cancel words are read beside the payloads (drop_cancelled()) */
	bool left_some;      /* the last poll may have left descriptors in the rings */
	uint32_t waiting[AGENT_LINKS_MAX]; /* while those are counted */
	uint32_t before;                   /* turns of this graph before this one */
	/* as this block has read it; block 0: with what is copied ahead */
	struct gpu_published published;
	/* the shortcut "ahead": loop_ahead.cuh */
	struct first_seen first, ahead; /* <ahead>: the one that the helpers copy ahead */
	bool may_start_ahead;
	/* the shortcut "quick": loop_quick.cuh */
	bool answer_now;       /* the poll answers the batch, without a turn */
	uint32_t answers_left; /* batches that this kernel may still answer so */
	bool stored;           /* the state of links and loop is stored already */
	/* The other warps build and ring for the batch before, while the first one polls
	 * (post_behind()); until then nothing else may be posted. */
	bool posts_behind;
	bool unposted;    /* the first warp has not seen yet that it is over (sees_posted()) */
	bool short_ahead; /* in the same turns, the first barrier AHEAD is without the last warp */
	uint32_t announced_late; /* for which this is set instead */
	struct replies replies;
	struct wide_look wide;
};

/* --- posting -----------------------------------------------------------------------------------
 */

/* Block 0's copy of the loop's state, in shared memory while the kernel runs. */
struct block0 {
	struct gpu_carried carried;
	struct agent_link links[AGENT_LINKS_MAX];
	bool open[AGENT_LINKS_MAX];       /* WQEs were built for it: ring its doorbell */
	uint32_t behind[AGENT_LINKS_MAX]; /* as many, if they are posted behind the poll */
	uint32_t spare[AGENT_LINKS_MAX];  /* spare_wqes() when that began */
};

/* Consume the next completion, whose last word is <tail>, if it is new. */
static __device__ void take_completion(struct block0 *b, struct agent_link *link, uint32_t tail)
{
	if (!mlx5_cqe_new(&link->queue, tail) ||
	    mlx5_cq_consume(&link->queue, tail) != MLX5_POLL_ERROR || link->dead)
		return;
	link->dead = true;
	atomicAdd((unsigned long long *)&b->carried.stats.dead_links, 1);
}

/* Read one completion, if there is one. */
static __device__ void reap_completion(struct block0 *b, struct agent_link *link)
{
	take_completion(b, link, mlx5_cqe_tail(mlx5_cqe_next(&link->queue)));
}

/* The last word of a completion that crosses the bus beside other loads. */
struct completion {
	uint32_t index, tail;
};

/* Stands for it where it is not wanted: the last word of a CQE that is not there. */
#define NO_CQE ((uint32_t)MLX5_POST_CQE_INVALID << 28)

static __device__ struct completion load_completion(const struct agent_link *link, bool wanted)
{
	const struct mlx5_queue *q = &link->queue;
	uint32_t index = q->cq_index;
	const volatile struct mlx5_cqe *cqe = &q->cqes[index & (q->cqe_count - 1)];

	return (struct completion){
		.index = index,
		.tail = relaxed_sys((const uint32_t *)&cqe->wqe_counter, wanted, NO_CQE),
	};
}

/* Consume it, unless that was done meanwhile. */
static __device__ void take_loaded(struct block0 *b, struct agent_link *link,
				   const struct completion *c)
{
	if (link->queue.cq_index == c->index)
		take_completion(b, link, c->tail);
}

/*
 * WQEs that no request needs which was taken. A peer that does not acknowledge leaves none: then its
 * requests stay in its ring, and its heartbeats are left out, until it does or its queue pair fails.
 * So no reply ever waits for room, and no link for another one. A dead link has as many as are asked
 * for: nothing is posted to it. Not while the batch before is posted behind the poll.
 */
static __device__ uint32_t spare_wqes(const struct agent_link *link)
{
	uint32_t needed = link->built + link->staged + link->held, room = mlx5_room(&link->queue);

	return link->dead ? UINT32_MAX : room - min(room, needed);
}

/* Warp 0: spare_wqes() of link <l> at any time. What is posted behind the poll needs no more than it
 * did when that began; what was taken since, of whatever link, needs some. */
static __device__ uint32_t spare_now(const struct block0 *b, const struct turn *t, uint32_t l)
{
	uint32_t spare = b->spare[l];

	return t->unposted ? spare - min(spare, t->n) : spare_wqes(&b->links[l]);
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

/* The last word of a reply's header: length, chunk and backlog, by one store. */
static __device__ uint64_t reply_sizes(uint32_t length, uint32_t backlog, uint32_t chunk)
{
	return length | (uint64_t)(uint16_t)chunk << 32 |
	       (uint64_t)ring_reply_backlog(backlog) << 48;
}

static __device__ void write_header(struct ring_reply *header, const struct gpu_request *r,
				    uint32_t length, uint32_t backlog, uint64_t start_ns,
				    uint64_t done_ns, uint32_t chunk = 0)
{
	header->sequence = r->sequence;
	header->seen_ns = r->seen_ns;
	header->start_ns = start_ns;
	header->done_ns = done_ns;
	*(uint64_t *)&header->length = reply_sizes(length, backlog, chunk);
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

/* Thread <own> of <threads>: which links have WQEs to build. There is room for them: spare_wqes() was
 * asked before their requests were taken. */
static __device__ void open_links(const struct gpu_loop *g, struct block0 *b, uint32_t own)
{
	if (own < g->n_links)
		b->open[own] = b->links[own].built > 0 && !b->links[own].dead;
}

/* The same threads, after a barrier: build headers and WQEs, each by a thread of its own. */
static __device__ void build_replies(struct block0 *b, const struct gpu_request *request,
				     const struct replies *replies, uint32_t own, uint32_t threads)
{
	uint32_t n = replies->n;

	for (uint32_t job = own; job < 2 * n; job += threads) {
		uint32_t i = job < n ? job : job - n;
		const struct gpu_request *r = &request[i];
		struct agent_link *link = &b->links[r->link];

		if (!b->open[r->link])
			continue;
		if (job < n)
			build_wqe(link, r, replies->length[i], replies->status[i],
				  replies->backlog);
		else if (r->slot != GPU_NO_SLOT)
			write_header(reply_header_at(link, r->slot), r, replies->length[i],
				     replies->backlog, replies->start_ns, replies->done_ns);
	}
}

/* Block 0: build the replies of <n> requests, of <length> bytes with <status>; thread i passes
 * those of request i. */
static __device__ void build_batch(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				   uint32_t n, uint32_t length, uint8_t status, uint32_t backlog,
				   uint64_t start_ns, uint64_t done_ns)
{
	struct replies *replies = &t->replies;
	uint32_t i = threadIdx.x;

	if (i < n) {
		replies->length[i] = length;
		replies->status[i] = status;
	}
	if (i == 0) {
		replies->n = n;
		replies->backlog = backlog;
		replies->start_ns = start_ns;
		replies->done_ns = done_ns;
	}
	open_links(g, b, i);
	__syncthreads();
	build_replies(b, t->request, replies, i, GPU_BLOCK);
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

/* One thread: wait until every helper has reported <each> steps. */
static __device__ void await_helpers(const uint32_t *arrived, uint32_t each)
{
	while (gridDim.x > 1 && acquire_gpu(arrived) != each * (gridDim.x - 1))
		;
}

/* Block 0: leave the replies of a batch to post_behind(). A barrier follows. */
static __device__ void leave_behind(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				    uint32_t backlog, uint64_t done_ns)
{
	if (threadIdx.x < g->n_links)
		b->spare[threadIdx.x] = spare_wqes(&b->links[threadIdx.x]);
	if (threadIdx.x != 0)
		return;
	t->replies.n = t->n;
	t->replies.backlog = backlog;
	t->replies.start_ns = t->start_ns;
	t->replies.done_ns = done_ns;
	t->posts_behind = t->unposted = t->short_ahead = true;
	t->announced_late = 0;
}

/* Threads that post behind: count the replies of a batch. */
static __device__ void count_behind(struct agent_loop_stats *stats, const struct replies *replies,
				    uint32_t own)
{
	uint8_t status = own < replies->n ? replies->status[own] : RING_OK;
	uint64_t *counts[] = {NULL, &stats->errors, &stats->expired, &stats->cancelled,
			      &stats->bad};

	if (own == 0)
		count_batch(stats, replies->n, replies->done_ns - replies->start_ns);
	for (uint32_t s = RING_ERROR; s <= RING_BAD; s++)
		if (status == s)
			atomicAdd((unsigned long long *)counts[s], 1);
}

/*
 * All warps but the first one: build the replies of the batch before; the last one rings when its
 * helpers have reported <each> steps. The first warp polls meanwhile. It takes and counts no WQE
 * before the barrier AHEAD, where the last warp is missing, and builds none while posts_behind is
 * set. Not for a request that came alone: its bell would be some 0.4 us later beside the poll's
 * loads.
 */
static __device__ void post_behind(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				   uint32_t each)
{
	struct replies *replies = &t->replies;
	uint32_t own = threadIdx.x - WARP;

	if (own < replies->n)
		replies->length[own] = reply_length(g, &t->request[own], &replies->status[own]);
	count_behind(&b->carried.stats, replies, own);
	open_links(g, b, own);
	if (own < g->n_links) {
		b->behind[own] = b->links[own].built;
		b->links[own].built = 0;
	}
	barrier_but_one<BARRIER_BEHIND>();
	build_replies(b, t->request, replies, own, GPU_BLOCK - WARP);
	barrier_but_one<BARRIER_BEHIND>();
	if (threadIdx.x < GPU_BLOCK - WARP)
		return;
	own = threadIdx.x % WARP;
	if (own == 0)
		await_helpers(&g->state->arrived, each);
	__syncwarp();
	for (uint32_t l = own; l < g->n_links; l += WARP)
		if (b->open[l])
			mlx5_ring(&b->links[l].queue, b->behind[l]);
	__syncwarp();
	if (own == 0) {
		__threadfence_block();
		*(volatile bool *)&t->posts_behind = false;
	}
}

/* Warp 0: the others may read the announcement; <without_last>: as turn.short_ahead says. */
static __device__ void meet_ahead(struct turn *t, bool without_last)
{
	__syncwarp();
	if (!without_last) {
		barrier_sync<BARRIER_AHEAD>();
		return;
	}
	if (threadIdx.x == 0) {
		t->short_ahead = false;
		__threadfence_block();
		*(volatile uint32_t *)&t->announced_late = 1;
	}
	barrier_but_one<BARRIER_LATE>();
}

/* The other warps, in a turn that posts <behind>: as far as they have done that. */
static __device__ void await_announcement(struct turn *t, bool behind)
{
	if (!behind) {
		barrier_sync<BARRIER_AHEAD>();
	} else if (threadIdx.x < GPU_BLOCK - WARP) {
		barrier_but_one<BARRIER_LATE>();
	} else {
		while (*(volatile uint32_t *)&t->announced_late == 0)
			;
		__threadfence_block();
		__syncwarp();
	}
}

/* Copy the counters to the host's memory, where any thread may read them: 8 bytes a lane. */
static __device__ void publish_stats(const struct gpu_loop *g, const struct block0 *b)
{
	static_assert(sizeof(b->carried.stats) % 8 == 0, "copied by words");
	__syncwarp();
	if (threadIdx.x < sizeof(b->carried.stats) / 8)
		((volatile uint64_t *)&g->shared->stats)[threadIdx.x] =
			((const volatile uint64_t *)&b->carried.stats)[threadIdx.x];
}

/* Warp 0: true when the batch before is posted; all lanes get the same answer. */
static __device__ bool may_post(const struct turn *t)
{
	bool mine = !*(const volatile bool *)&t->posts_behind;

	if (!__all_sync(ALL_LANES, mine))
		return false;
	__threadfence_block(); /* what the other warps have written is seen */
	return true;
}

/* Warp 0: as may_post(), between two looks. From then on the queues are the first warp's own. */
static __device__ bool sees_posted(struct turn *t)
{
	if (!t->unposted)
		return true;
	if (!may_post(t))
		return false;
	if (threadIdx.x == 0)
		t->unposted = false;
	__syncwarp();
	return true;
}

static __device__ void post_heartbeats(const struct gpu_loop *g, struct block0 *b,
				       const struct turn *t, uint64_t now)
{
	__syncwarp(); /* all lanes have read next_heartbeat */
	for (uint32_t l = threadIdx.x; l < g->n_links; l += WARP) {
		struct agent_link *link = &b->links[l];
		struct mlx5_write write;

		/* Under full load polling never finds the rings empty, and never reads a
		 * completion. */
		reap_completion(b, link);
		if (link->dead || spare_wqes(link) == 0)
			continue;
		write = agent_heartbeat(link, t->n + b->carried.unread);
		mlx5_wqe_build(&link->queue, 0, &write);
		mlx5_ring(&link->queue, 1);
	}
	if (threadIdx.x == 0) {
		b->carried.next_heartbeat = now + g->heartbeat_ns;
		b->carried.stats.backlog = t->n + b->carried.unread;
		b->carried.stats.heartbeats++;
	}
	publish_stats(g, b);
	__syncwarp();
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
