/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gather: all blocks copy the batch to where the model, or the NIC, reads it. Private to
 * loop_kernels.cu.
 */
#ifndef AGENT_LOOP_GATHER_CUH
#define AGENT_LOOP_GATHER_CUH

#include "loop/loop_crc.cuh"
#include "loop/loop_take.cuh"

/* Request <i> of the batch, for the other blocks, the model, and the turn behind it. */
static __device__ void publish_request(const struct gpu_loop *g, const struct turn *t, uint32_t i)
{
	const struct gpu_request *r = &t->request[i];

	g->request[i] = *r;
	/* A model may trust lengths, also of what turned out bad when it had its row. */
	if (r->row != GPU_NO_ROW)
		g->lengths[r->row] = r->status == RING_OK ? r->length : g->min_request;
}

/*
 * What the blocks of a graph tell each other is counted from its beginning. In each turn block 0
 * publishes the batch, before it perhaps a request that comes ahead of it, and that this was in
 * vain (loop_ahead.cuh); in each stage what it has taken. The others arrive when they have sent,
 * when they have copied what came ahead, and when they have gathered; and when they have staged.
 */
enum { PUBLISH_AHEAD = 1, PUBLISH_MISS, PUBLISH_BATCH, PUBLISH_STAGED, PUBLICATIONS = 4 };
enum { ARRIVE_SENT = 1, ARRIVE_AHEAD, ARRIVE_GATHERED, ARRIVE_STAGED };
/* Beside the number of what was published. */
#define PUBLISH_SHIFT 2
#define PUBLISH_LENT  1u /* something came ahead */
#define PUBLISH_DONE  2u /* nothing is left to copy */

/* One that only copies: it has, <times> at once. */
static __device__ void arrive(const struct gpu_loop *g, uint32_t times = 1)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		fence_gpu();
		atomicAdd(&g->state->arrived, times);
	}
}

/* The same where only the next turn counts it: this kernel ends behind it, which is fence enough.
 */
static __device__ void leave(const struct gpu_loop *g, uint32_t times)
{
	if (threadIdx.x == 0)
		atomicAdd(&g->state->arrived, times);
}

/* Block 0: until all have. */
static __device__ void await_arrivals(const struct gpu_loop *g, const struct turn *t,
				      uint32_t arrival)
{
	uint32_t each = (g->staged != NULL ? ARRIVE_STAGED : ARRIVE_GATHERED) * t->before + arrival;

	__syncthreads();
	if (gridDim.x == 1)
		return;
	if (threadIdx.x == 0)
		while (acquire_gpu(&g->state->arrived) != each * (gridDim.x - 1))
			;
	__syncthreads();
}

/* For the next kernel, and the other blocks. Thread i brings request i: for a batch of one the
 * first is enough. */
static __device__ void publish_batch(const struct gpu_loop *g, const struct turn *t)
{
	uint32_t i = threadIdx.x;

	if (i < t->n)
		publish_request(g, t, i);
	if (i == 0)
		g->state->batch = *t;
}

/* Block 0, one thread: and all that was written before. */
static __device__ void publish(const struct gpu_loop *g, const struct turn *t, uint32_t what,
			       uint32_t flags)
{
	uint32_t number = PUBLICATIONS * t->before + what;

	release_gpu(&g->state->published, number << PUBLISH_SHIFT | flags);
}

/* Block 0: the others may begin. */
static __device__ void let_help(const struct gpu_loop *g, const struct turn *t, uint32_t what,
				uint32_t flags)
{
	if (gridDim.x == 1)
		return;
	__syncthreads();
	if (threadIdx.x == 0)
		publish(g, t, what, flags);
}

/* One that only copies: until this, or what comes behind it, was published. With what flags? */
static __device__ uint32_t await_published(const struct gpu_loop *g, struct turn *t, uint32_t what)
{
	if (threadIdx.x == 0) {
		uint32_t number = PUBLICATIONS * t->before + what, heard;

		do
			heard = acquire_gpu(&g->state->published);
		while (heard >> PUBLISH_SHIFT < number);
		t->heard = heard;
	}
	__syncthreads();
	return t->heard;
}

static __device__ void put_back(const struct gpu_loop *g, const struct keeper *k)
{
	__syncthreads();
	copy_words(g->links, k->links, g->n_links);
	copy_words(&g->state->kept, &k->kept, 1);
}

/* The batch as block 0, or the turn before this one, published it; and for block 0 what it keeps of
 * the loop. All loads are on their way before one is waited for. */
static __device__ void read_batch(const struct gpu_loop *g, struct turn *t, struct keeper *k)
{
	const struct gpu_state *s = g->state;
	bool keeps = blockIdx.x == 0;
	uint64_t link = load_word(g->links, keeps ? g->n_links : 0);
	uint64_t kept = load_word(&s->kept, keeps ? 1 : 0);
	uint64_t request = load_word(g->request, g->max_batch);

	if (threadIdx.x == 0) {
		struct gpu_batch batch = s->batch;
		uint32_t n_staged = keeps ? s->n_staged : 0;
		uint64_t start_ns = keeps ? s->start_ns : 0;

		*(struct gpu_batch *)t = batch;
		t->n_staged = n_staged;
		t->start_ns = start_ns;
	}
	store_words(t->request, g->request, g->max_batch, request);
	if (keeps) {
		store_words(k->links, g->links, g->n_links, link);
		store_words(&k->kept, &s->kept, 1, kept);
	}
	__syncthreads();
}

static __device__ struct span input_of(const struct gpu_loop *g, const struct agent_link *links,
				       const struct gpu_request *r)
{
	const struct agent_link *link = &links[r->link];

	return (struct span){
		.from = r->stage != 0 ? g->stage + (r->stage - 1) * g->stage_stride
				      : link->slots + (uint64_t)r->slot * link->stride,
		.to = r->in_place ? reply_of(link, r->slot) + sizeof(struct ring_reply)
				  : (uint8_t *)g->model.input + r->row * g->model.input_stride,
		.length = r->length,
	};
}

/* Is request <i> of the batch still to be brought, and confirmed? */
static __device__ bool is_wanted(const struct turn *t, uint32_t i)
{
	return i < t->n && t->request[i].row != GPU_NO_ROW && !(i == 0 && t->first_fetched);
}

static __device__ void gather(const struct gpu_loop *g, struct turn *t,
			      const struct agent_link *links)
{
	uint32_t i = threadIdx.x;
	struct span mine = {};

	if (is_wanted(t, i) && t->request[i].status == RING_OK)
		mine = input_of(g, links, &t->request[i]);
	copy_spans(&t->spans, t->n, mine, blockIdx.x, gridDim.x);
}

/* The halves of request i's descriptor that matter, for threads 2i and 2i + 1, cross the bus beside
 * the payload. */
static __device__ struct bytes16 read_half(const struct keeper *k, const struct turn *t)
{
	uint32_t i = threadIdx.x / 2 < GPU_BATCH_MAX ? threadIdx.x / 2 : 0;
	const struct gpu_request *r = &t->request[i];
	uint32_t link = i < t->n ? r->link : 0;

	return read_quarter(descriptor_at(&k->links[link], r->sequence - 1), threadIdx.x % 2,
			    is_wanted(t, i));
}

/* Is half <i> of a descriptor not what it was taken for? */
static __device__ bool half_differs(const struct gpu_request *r, struct bytes16 half, uint32_t i)
{
	return i == 0 ? half.low != (r->slot | (uint64_t)r->length << 32) ||
				half.high >> 32 != r->flags
		      : half.high != (r->deadline_us | (uint64_t)r->crc32 << 32);
}

/* Block 0: is any of the batch not what it was taken for? */
static __device__ bool any_differs(const struct turn *t, struct bytes16 half)
{
	uint32_t i = threadIdx.x / 2;

	return __syncthreads_or(is_wanted(t, i) &&
				half_differs(&t->request[i], half, threadIdx.x % 2));
}

/*
 * Block 0, before its gathering: large requests that nothing is run on go where the NIC reads the
 * reply. Descriptors must be confirmed first: an old one would name a slot whose reply may be on
 * its way.
 */
static __device__ void settle_places(const struct gpu_loop *g, const struct keeper *k,
				     struct turn *t)
{
	struct gpu_request *r = &t->request[threadIdx.x];
	bool mine = threadIdx.x < t->n && r->row != GPU_NO_ROW && r->length >= IN_PLACE_MIN &&
		    may_be_in_place(g, r);

	if (!__syncthreads_or(mine))
		return;
	if (!any_differs(t, read_half(k, t)) && mine)
		r->in_place = true;
	__syncthreads();
}

/* Block 0: read all of the batch again, and gather it anew. */
static __device__ void gather_again(const struct gpu_loop *g, const struct keeper *k,
				    struct turn *t)
{
	struct gpu_request *r = &t->request[threadIdx.x];
	bool runs = threadIdx.x < t->n && r->row != GPU_NO_ROW;
	struct span mine = {};

	/* Nobody else may still write these rows. */
	await_arrivals(g, t, ARRIVE_GATHERED);
	if (runs) {
		read_again(g, &k->links[r->link], r);
		r->stage = 0;
		r->in_place = false;
		if (r->status == RING_OK)
			mine = input_of(g, k->links, r);
		publish_request(g, t, threadIdx.x);
	}
	if (__syncthreads_or(runs && r->flags & RING_HAS_CRC))
		t->any_crc = true;
	copy_spans(&t->spans, t->n, mine, 0, 1);
	__syncthreads();
}

/* Block 0: where the load balancer sent sums, what does not hold is not answered with a result. */
static __device__ void check_crcs(const struct gpu_loop *g, struct turn *t)
{
	await_arrivals(g, t, ARRIVE_GATHERED);
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

#endif
