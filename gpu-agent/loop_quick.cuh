/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small request that comes alone is in a hurry. As soon as the polling warp sees its mark, the
 * other warps of block 0 fetch it, and while it crosses the bus the first takes it from the ring,
 * builds its WQE and the header of its reply. Behind the model only the reply's bytes, its time and
 * the doorbell are left. What does not suit goes the way of all batches. Private to
 * loop_kernels.cu.
 *
 *   first warp   sees a mark        takes, builds               header, rings
 *   others       wait       fetch ------------------- confirm, store
 *   barrier            AHEAD                   VERDICT          STORED
 */
#ifndef AGENT_LOOP_QUICK_CUH
#define AGENT_LOOP_QUICK_CUH

#include "loop_gather.cuh"

/* Payload that a thread has in flight. */
#define QUICK_LOADS 2
#define QUICK_STEP  ((GPU_BLOCK - WARP) * 16)
#define QUICK_MAX   (QUICK_LOADS * QUICK_STEP)

/* Is all of the batch one request, which is being fetched? */
static __device__ bool is_quick(const struct gpu_loop *g, const struct keeper *k,
				const struct turn *t)
{
	const struct gpu_request *r = &t->request[0];
	const struct ahead *a = &t->ahead;

	return t->n == 1 && t->rows == 1 && r->length <= QUICK_MAX && !(r->flags & RING_HAS_CRC) &&
	       a->link == r->link && a->slot == r->slot && a->length == r->length &&
	       a->position + 1 == r->sequence && (uint64_t)input_of(g, k->links, r).to % 16 == 0;
}

/* One thread: the WQE, if there is room and nothing can change it. Errors go the way of all
 * batches, where they are counted. */
static __device__ bool build(const struct gpu_loop *g, struct agent_link *link,
			     const struct gpu_request *r)
{
	uint32_t length;
	uint8_t status;

	if (!g->foreseen || link->dead || mlx5_room(&link->queue) < link->built)
		return false;
	length = reply_length(g, r, &status);
	if (status == RING_OK)
		build_wqe(link, r, length, status);
	return status == RING_OK;
}

/* The first <n> of 16 bytes, none of the others: loads that do not wait for each other. */
static __device__ struct quarter load_some(const uint8_t *from, uint32_t n)
{
	struct quarter v = {};

	if (n >= 16) {
		ulonglong2 both = *(const ulonglong2 *)from;

		return (struct quarter){both.x, both.y};
	}
#pragma unroll
	for (uint32_t i = 0; i < 16; i++)
		if (i < n)
			*(i < 8 ? &v.low : &v.high) |= (uint64_t)from[i] << i % 8 * 8;
	return v;
}

static __device__ void store_some(uint8_t *to, struct quarter v, uint32_t n)
{
	if (n >= 16) {
		*(ulonglong2 *)to = make_ulonglong2(v.low, v.high);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		to[i] = (uint8_t)((i < 8 ? v.low : v.high) >> i % 8 * 8);
}

/* One thread: what was built leaves; everything that it sends is written, behind a barrier. */
static __device__ void send_built(struct keeper *k, const struct gpu_request *r, uint64_t start_ns,
				  uint64_t done_ns)
{
	struct agent_link *link = &k->links[r->link];

	((struct ring_reply *)reply_of(link, r->slot))->done_ns = done_ns;
	mlx5_ring(&link->queue, 1);
	link->built = 0;
	count_batch(&k->kept.stats, 1, done_ns - start_ns);
}

/* The first warp: is the batch quick? If so, all but its payload is ready now. */
static __device__ bool quick_verdict(const struct gpu_loop *g, struct keeper *k, struct turn *t,
				     uint32_t arrivals)
{
	struct gpu_request *r = &t->request[0];
	bool quick;

	if (threadIdx.x == 0)
		r->in_place = may_be_in_place(g, r);
	__syncwarp();
	quick = is_quick(g, k, t);
	__syncwarp();
	if (threadIdx.x == 0) {
		t->quick = quick;
		t->built = t->again = false;
		r->in_place = quick && r->in_place;
		if (quick) {
			t->start_ns = g->state->start_ns = now_ns();
			t->built = build(g, &k->links[r->link], r);
			t->again = t->built && r->in_place && t->quick_left > 0;
		}
		if (quick && !t->again) {
			await_others(g, arrivals);
			publish_batch(g, t);
		}
	}
	barrier_arrive<BARRIER_VERDICT>();
	return quick;
}

/* The first warp: a batch, gathered if it is quick. What has nothing to run is answered at once. */
static __device__ void take_quickly(const struct gpu_loop *g, struct keeper *k, struct turn *t,
				    uint32_t arrivals)
{
	struct gpu_request *r = &t->request[0];
	uint8_t status;
	bool again;

	do {
		take_batch(g, k, t);
		__syncwarp();
		if (!quick_verdict(g, k, t, arrivals))
			return;
		again = t->again;
		if (barrier_or<BARRIER_STORED>(false)) {
			/* It is not what it was taken for. */
			if (threadIdx.x == 0)
				t->quick = t->built = r->in_place = false;
			return;
		}
		if (threadIdx.x == 0 && t->built)
			write_header(&k->links[r->link], r, reply_length(g, r, &status),
				     t->start_ns, t->start_ns);
		if (threadIdx.x == 0 && again) {
			send_built(k, r, t->start_ns, now_ns());
			t->quick_left--;
		}
		__syncwarp();
	} while (again);
}

/* Another warp of block 0, until there is a batch. */
static __device__ void help_quickly(const struct gpu_loop *g, const struct keeper *k,
				    const struct turn *t)
{
	uint32_t at = (threadIdx.x - WARP) * 16, lane = threadIdx.x % WARP;
	const struct gpu_request *r = &t->request[0];
	const struct ahead *a = &t->ahead;
	struct quarter piece[QUICK_LOADS], half;
	bool again, differs, mine;
	uint8_t *to;

	do {
		barrier_wait<BARRIER_AHEAD>();
		const struct agent_link *link = &k->links[a->link == GPU_NO_LINK ? 0 : a->link];
		const uint8_t *from = link->slots + (uint64_t)a->slot * link->stride;
		/* Half of what was seen may be old: stay within the slots. */
		bool fits = a->link != GPU_NO_LINK && a->slot < link->slot_count &&
			    a->length <= link->stride && a->length <= QUICK_MAX;

		/* Each warp that has payload confirms for itself, the first of them always. */
		mine = fits && lane < 2 && (threadIdx.x < 2 * WARP || at - lane * 16 < a->length);
		half = read_quarter(descriptor_at(link, a->position), lane, mine);
#pragma unroll
		for (uint32_t i = 0; i < QUICK_LOADS; i++)
			piece[i] = read_16(from + at + i * QUICK_STEP,
					   fits && at + i * QUICK_STEP < a->length);
		barrier_wait<BARRIER_VERDICT>();
		if (!t->quick)
			return;
		again = t->again;
		to = input_of(g, k->links, r).to;
		/* Before that nothing is written: it might be another reply's place. */
		differs = __any_sync(ALL_LANES, mine && half_differs(r, half, lane));
#pragma unroll
		for (uint32_t i = 0; i < QUICK_LOADS; i++)
			if (!differs && at + i * QUICK_STEP < r->length)
				store_some(to + at + i * QUICK_STEP, piece[i],
					   r->length - at - i * QUICK_STEP);
	} while (!barrier_or<BARRIER_STORED>(differs) && again);
}

/* --- behind the model --------------------------------------------------------------------------
 */

/* Is the reply as short as a block copies in one step? The same to all blocks. */
static __device__ bool leaves_quickly(const struct gpu_loop *g, const struct turn *t,
				      uint32_t *length)
{
	uint8_t status;

	if (t->n == 0 || !t->built)
		return false;
	*length = t->request[0].in_place ? 0 : reply_length(g, &t->request[0], &status);
	return *length <= GPU_BLOCK * 16 && (uint64_t)g->model.output % 16 == 0;
}

/* What a thread will write of a quick reply, before it is known whether there is one: read beside
 * all that a turn begins with. */
static __device__ struct quarter read_early(const struct gpu_loop *g)
{
	const struct agent_model_gpu *m = &g->model;
	/* Of replies as long as their requests a model need not have room for longer ones. */
	uint32_t length =
		m->reply_lengths == NULL ? m->reply_length : min(g->max_request, g->max_reply);
	uint32_t at = threadIdx.x * 16;

	if (!g->foreseen || (uint64_t)m->output % 16 != 0 || at >= length)
		return (struct quarter){};
	return load_some((const uint8_t *)m->output + at, length - at);
}

/* Block 0: the bytes of a reply that was built, and the doorbell. */
static __device__ void send_quickly(const struct gpu_loop *g, struct keeper *k, struct turn *t,
				    uint32_t length, struct quarter early)
{
	const struct gpu_request *r = &t->request[0];
	uint8_t *to = reply_of(&k->links[r->link], r->slot) + sizeof(struct ring_reply);
	uint64_t done_ns = now_ns();
	uint32_t at = threadIdx.x * 16;

	if (at < length)
		store_some(to + at, early, length - at);
	__syncthreads();
	if (threadIdx.x == 0)
		send_built(k, r, t->start_ns, done_ns);
	__syncthreads();
}

#endif
