/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all parts of a turn use: reading what a NIC or a host writes, barriers, posting. Private to
 * loop_kernels.cu.
 *
 * Order across the bus: a load-acquire at system scope of the mark (a descriptor's sequence) makes
 * everything written before it visible to this thread, and a barrier to its block. Writes of a
 * block reach the NIC in order because the one thread that rings fences at system scope after the
 * barrier; fences are cumulative (PTX ISA, "Memory Consistency Model", causality order).
 */
#ifndef AGENT_LOOP_DEVICE_CUH
#define AGENT_LOOP_DEVICE_CUH

#include "loop/loop_spans.cuh"

static __device__ __forceinline__ uint64_t now_ns()
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

/* A descriptor is read 16 bytes a lane: a warp's load of a line crosses the bus once, while several
 * loads of one line wait for each other. */
#define QUARTERS 4u

/* Of the last quarter, <high> is the mark. Each is an acquire by itself: what the other lanes have
 * may be older than the mark. */
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

/* 16 bytes; of what a RNIC wrote only behind a mark that this block saw. Zeroes unless <wanted>: no
 * branch, so that nobody waits for them before they are used. */
static __device__ __forceinline__ struct bytes16 read_16(const void *at, bool wanted = true)
{
	struct bytes16 v = {};

	asm volatile("{\n\t.reg .pred p;\n\t"
		     "setp.ne.u32 p, %3, 0;\n\t"
		     "@p ld.global.v2.u64 {%0, %1}, [%2];\n\t}"
		     : "+l"(v.low), "+l"(v.high)
		     : "l"(at), "r"((uint32_t)wanted)
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

static __device__ __forceinline__ uint32_t relaxed_sys(const uint32_t *at)
{
	uint32_t v;

	asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(at));
	return v;
}

static __device__ __forceinline__ uint8_t relaxed_sys(const volatile uint8_t *at)
{
	uint32_t v;

	asm volatile("ld.relaxed.sys.global.u8 %0, [%1];" : "=r"(v) : "l"(at));
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
 * Barriers of block 0, beside __syncthreads(), which is 0: the first warp and the others meet there
 * from different places. The first need not wait; but behind a barrier where some only arrive
 * compute-sanitizer's racecheck (2025.3) reports races that barrier 0 rules out.
 */
enum { BARRIER_AHEAD = 1, BARRIER_VERDICT };

template <int barrier> static __device__ __forceinline__ void meet()
{
	__syncwarp();
	asm volatile("barrier.cta.sync %0, %1;" ::"n"(barrier), "n"(GPU_BLOCK) : "memory");
}

/* --- a turn ------------------------------------------------------------------------------------
 */

/* The first request that polling found, for those who fetch it before it is taken. */
struct ahead {
	bool told;
	uint32_t link, slot, length; /* GPU_NO_LINK: none that can be fetched */
	uint64_t position;
};

/* What a block has of the batch. */
struct turn : gpu_batch {
	struct gpu_request request[GPU_BATCH_MAX];
	struct spans spans;
	uint32_t n_staged;
	uint64_t start_ns;
	bool any_crc;
	bool odd;        /* some request is bad, or has a deadline or a sum */
	uint32_t before; /* turns of this graph */
	uint32_t heard;  /* of what block 0 published */
	/* loop_ahead.cuh */
	struct ahead ahead, lent; /* <lent>: what the blocks that only copy were told of */
	bool may_lend;
	/* loop_quick.cuh */
	bool again;          /* the batch is answered at once */
	uint32_t quick_left; /* so many more this kernel may answer without a turn */
};

/* --- posting -----------------------------------------------------------------------------------
 */

/* What block 0 keeps of the loop between batches. */
struct keeper {
	struct gpu_kept kept;
	struct agent_link links[AGENT_LINKS_MAX];
	bool open[AGENT_LINKS_MAX]; /* gets a doorbell */
};

/* Read a completion, if there is one. */
static __device__ void reap(struct keeper *k, struct agent_link *link)
{
	/* A load that nobody uses would be waited for wherever its register is needed next. */
	if (mlx5_cq_poll(&link->queue, NULL) != MLX5_POLL_ERROR || link->dead)
		return;
	link->dead = true;
	atomicAdd((unsigned long long *)&k->kept.stats.dead_links, 1);
}

/* Wait until what was counted fits. A peer that does not acknowledge ends it in an error. */
static __device__ bool make_room(const struct gpu_loop *g, struct keeper *k,
				 struct agent_link *link)
{
	while (!link->dead && mlx5_room(&link->queue) < link->built) {
		reap(k, link);
		if (relaxed_sys(&g->shared->stop))
			return false;
	}
	return !link->dead;
}

static __device__ uint8_t *reply_of(const struct agent_link *link, uint32_t slot)
{
	return link->replies + (uint64_t)slot * link->reply_stride;
}

static __device__ struct ring_reply *header_of(const struct agent_link *link, uint32_t slot)
{
	return (struct ring_reply *)reply_of(link, slot);
}

/* Where nothing is to be run the reply's own place can be the model's input, unless a sum is to be
 * checked first. */
static __device__ bool may_be_in_place(const struct gpu_loop *g, const struct gpu_request *r)
{
	return g->in_place && r->status == RING_OK && !(r->flags & RING_HAS_CRC) &&
	       r->length <= g->max_reply;
}

/* Bytes of the reply; <status> says why there is none. */
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

/* A CQE is for all WQEs before it: four a lap are enough to find room in time. */
static __device__ bool wants_cqe(const struct mlx5_queue *q, uint32_t ahead)
{
	uint32_t apart = q->wqe_count / 4;

	return apart <= 1 || ((q->producer + ahead) & (apart - 1)) == 0;
}

static __device__ void build_wqe(struct agent_link *link, const struct gpu_request *r,
				 uint32_t length, uint8_t status)
{
	struct mlx5_write write = {
		.remote_address = link->remote_address + (uint64_t)r->slot * link->remote_stride,
		.local_address = (uint64_t)reply_of(link, r->slot),
		.rkey = link->remote_rkey,
		.lkey = link->lkey,
		.length = (uint32_t)sizeof(struct ring_reply) + length,
		.imm = ring_imm(r->slot, status, 0),
		.with_imm = true,
		.signal = wants_cqe(&link->queue, r->ahead),
	};

	if (r->slot == GPU_NO_SLOT) { /* there must be a WQE: send a heartbeat */
		write.imm = RING_IMM_HEARTBEAT;
		write.length = 0;
	}
	mlx5_wqe_build(&link->queue, r->ahead, &write);
}

static __device__ void write_header(struct ring_reply *header, const struct gpu_request *r,
				    uint32_t length, uint64_t start_ns, uint64_t done_ns)
{
	header->sequence = r->sequence;
	header->seen_ns = r->seen_ns;
	header->start_ns = start_ns;
	header->done_ns = done_ns;
	*(uint64_t *)&header->length = length; /* and chunk 0 */
}

/* One thread: a batch of <n> was answered. */
static __device__ void count_batch(struct agent_loop_stats *stats, uint32_t n, uint64_t ran_ns)
{
	stats->batches++;
	stats->requests += n;
	if (ran_ns > stats->longest_run_ns)
		stats->longest_run_ns = ran_ns;
}

static __device__ void count(struct agent_loop_stats *stats, uint32_t n, uint8_t status,
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

/* Headers and WQEs of a batch, by all threads of a block, thread i for request i, whose reply has
 * <length> bytes. */
static __device__ void build_batch(const struct gpu_loop *g, struct keeper *k,
				   const struct gpu_request *request, uint32_t n, uint32_t length,
				   uint8_t status, uint64_t start_ns, uint64_t done_ns)
{
	uint32_t i = threadIdx.x;

	if (i < g->n_links)
		k->open[i] = k->links[i].built > 0 && make_room(g, k, &k->links[i]);
	__syncthreads();
	if (i < n && k->open[request[i].link]) {
		struct agent_link *link = &k->links[request[i].link];

		if (request[i].slot != GPU_NO_SLOT)
			write_header(header_of(link, request[i].slot), &request[i], length,
				     start_ns, done_ns);
		build_wqe(link, &request[i], length, status);
	}
}

/* One doorbell per link, behind a barrier. */
static __device__ void ring_batch(const struct gpu_loop *g, struct keeper *k)
{
	uint32_t i = threadIdx.x;

	if (i < g->n_links) {
		if (k->open[i])
			mlx5_ring(&k->links[i].queue, k->links[i].built);
		k->links[i].built = 0;
	}
}

#endif
