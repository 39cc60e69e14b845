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
 *   barrier            AHEAD                   VERDICT          all
 */
#ifndef AGENT_LOOP_QUICK_CUH
#define AGENT_LOOP_QUICK_CUH

#include "loop/loop_ahead.cuh"

/* Payload that a thread has in flight. */
#define QUICK_LOADS 2
#define QUICK_STEP  ((GPU_BLOCK - WARP) * 16)
#define QUICK_MAX   (QUICK_LOADS * QUICK_STEP)

/* Is all of the batch one request, which is being fetched? */
static __device__ bool is_quick(const struct turn *t)
{
	const struct gpu_request *r = &t->request[0];

	return t->n == 1 && t->rows == 1 && r->length <= QUICK_MAX && !(r->flags & RING_HAS_CRC) &&
	       is_first(&t->ahead, t);
}

/* What thread 0 knows of a reply before there is one. */
struct reply {
	struct ring_reply *header;
	uint32_t length;
};

/* One thread: the WQE, if there is room, nothing can change it, and a block copies the reply in one
 * step. Errors go the way of all batches, where they are counted. */
static __device__ bool build(const struct gpu_loop *g, struct agent_link *link,
			     const struct gpu_request *r, struct reply *reply)
{
	uint8_t status;

	if (!g->foreseen || link->dead || mlx5_room(&link->queue) < link->built)
		return false;
	reply->header = header_of(link, r->slot);
	reply->length = reply_length(g, r, &status);
	if (status != RING_OK || (!r->in_place && (reply->length > GPU_BLOCK * 16 ||
						   (uint64_t)g->model.output % 16 != 0)))
		return false;
	build_wqe(link, r, reply->length, status);
	return true;
}

/* One thread: what was built leaves; everything that it sends is written, behind a barrier. */
static __device__ void send_built(struct keeper *k, struct agent_link *link,
				  struct ring_reply *header, uint64_t start_ns, uint64_t done_ns)
{
	header->done_ns = done_ns;
	mlx5_ring(&link->queue, 1);
	link->built = 0;
	count_batch(&k->kept.stats, 1, done_ns - start_ns);
}

/* The first warp: a batch. Is it quick? If so, all but its payload is ready now. */
static __device__ void take_and_judge(const struct gpu_loop *g, struct keeper *k, struct turn *t,
				      struct reply *reply)
{
	struct gpu_request *r = &t->request[0];
	bool quick;

	take_batch(g, k, t);
	__syncwarp();
	if (threadIdx.x == 0)
		r->in_place = may_be_in_place(g, r);
	__syncwarp();
	quick = is_quick(t);
	__syncwarp();
	if (threadIdx.x == 0) {
		t->quick = quick;
		t->built = t->again = false;
		r->in_place = quick && r->in_place;
		if (quick) {
			t->start_ns = g->state->start_ns = now_ns();
			t->built = build(g, &k->links[r->link], r, reply);
			t->again = t->built && r->in_place && t->quick_left > 0;
			t->header = reply->header;
			t->bytes = r->in_place ? 0 : reply->length;
		}
		if (quick && !t->again)
			publish_batch(g, t);
	}
	meet<BARRIER_VERDICT>();
}

/* Another warp of block 0: fetch what is being taken. <differs>: it is not what it was taken for.
 * True: it was lent, and not in vain. */
static __device__ bool fetch_quickly(const struct gpu_loop *g, const struct keeper *k,
				     struct turn *t, bool *differs)
{
	uint32_t at = (threadIdx.x - WARP) * 16, lane = threadIdx.x % WARP;
	const struct gpu_request *r = &t->request[0];
	const struct ahead *a = &t->ahead;
	struct bytes16 piece[QUICK_LOADS], half;
	bool last = threadIdx.x >= GPU_BLOCK - WARP, mine, fits, small, other;
	const uint8_t *from;
	uint8_t *to;

	meet<BARRIER_AHEAD>();
	fits = a->link != GPU_NO_LINK;
	small = fits && a->length <= QUICK_MAX;
	const struct agent_link *link = &k->links[fits ? a->link : 0];
	from = link->slots + (uint64_t)a->slot * link->stride;
	/* As few warps as can confirm: loads of one line wait for each other. In the reply's place
	 * each warp writes only what it has confirmed; of a large request the last warp looks,
	 * while the first lends it. */
	if (small)
		mine = threadIdx.x < 2 * WARP || (g->in_place && at - lane * 16 < a->length);
	else
		mine = fits && last;
	mine = mine && lane < 2;
	half = read_quarter(descriptor_at(link, a->position), lane, mine);
#pragma unroll
	for (uint32_t i = 0; i < QUICK_LOADS; i++)
		piece[i] = read_16(from + at + i * QUICK_STEP,
				   small && at + i * QUICK_STEP < a->length);
	if (threadIdx.x == WARP && fits && !small)
		lend(g, t, from);
	meet<BARRIER_VERDICT>();
	other = half_differs(r, half, lane); /* by all, so that all have waited for it */
	*differs = __any_sync(ALL_LANES, mine & other);
	if (!t->quick)
		return last && !*differs && was_worth_it(t);
	to = input_of(g, k->links, r).to;
#pragma unroll
	for (uint32_t i = 0; i < QUICK_LOADS; i++)
		if (!*differs && at + i * QUICK_STEP < r->length)
			store_some(to + at + i * QUICK_STEP, piece[i],
				   r->length - at - i * QUICK_STEP);
	return false;
}

/* Thread 0, when a quick batch is stored: answer it if there is nothing to run. One that <differs>
 * from what it was taken for goes the way of all. */
static __device__ void settle_quick(struct keeper *k, struct turn *t, const struct reply *reply,
				    bool differs)
{
	struct gpu_request *r = &t->request[0];

	if (differs) {
		t->quick = t->built = r->in_place = false;
		return;
	}
	if (t->built)
		write_header(reply->header, r, reply->length, t->start_ns, t->start_ns);
	if (t->again) {
		send_built(k, &k->links[r->link], reply->header, t->start_ns, now_ns());
		t->quick_left--;
	}
}

/* Block 0: a batch, gathered if it is quick. What has nothing to run is answered at once. True for
 * some thread: what was lent is the batch's first row. */
static __device__ bool take_quickly(const struct gpu_loop *g, struct keeper *k, struct turn *t)
{
	struct reply reply = {};
	bool differs, again, worth_it = false;

	do {
		differs = false;
		if (threadIdx.x < WARP)
			take_and_judge(g, k, t, &reply);
		else
			worth_it = fetch_quickly(g, k, t, &differs);
		if (!t->quick)
			return worth_it;
		again = t->again;
		differs = __syncthreads_or(differs);
		if (threadIdx.x == 0)
			settle_quick(k, t, &reply, differs);
		__syncwarp();
	} while (again && !differs);
	return false;
}

/* --- behind the model --------------------------------------------------------------------------
 */

/* What a thread will write of a quick reply, before it is known whether there is one: read beside
 * all that a turn begins with. */
static __device__ struct bytes16 read_early(const struct gpu_loop *g)
{
	const struct agent_model_gpu *m = &g->model;
	/* Of replies as long as their requests a model need not have room for longer ones. */
	uint32_t length =
		m->reply_lengths == NULL ? m->reply_length : min(g->max_request, g->max_reply);
	uint32_t at = threadIdx.x * 16;

	return read_16((const uint8_t *)m->output + at,
		       g->foreseen && (uint64_t)m->output % 16 == 0 && at < length);
}

/* Block 0: the bytes of a reply that was built, and the doorbell. */
static __device__ void send_quickly(struct keeper *k, struct turn *t, struct bytes16 early,
				    uint64_t done_ns)
{
	uint32_t at = threadIdx.x * 16;

	if (at < t->bytes)
		store_some((uint8_t *)(t->header + 1) + at, early, t->bytes - at);
	__syncthreads();
	if (threadIdx.x == 0)
		send_built(k, &k->links[t->request[0].link], t->header, t->start_ns, done_ns);
	__syncthreads();
}

#endif
