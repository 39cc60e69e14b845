/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gather: all blocks copy the batch to where the model, or the NIC, reads it. Private to
 * loop_kernels.cu.
 */
#ifndef AGENT_LOOP_GATHER_CUH
#define AGENT_LOOP_GATHER_CUH

#include "loop_crc.cuh"
#include "loop_take.cuh"

/* Request <i> of the batch, for the other blocks, the model, and the turn behind it. */
static __device__ void publish_request(const struct gpu_loop *g, const struct turn *t, uint32_t i)
{
	const struct gpu_request *r = &t->request[i];

	g->request[i] = *r;
	/* A model may trust lengths, also of what turned out bad when it had its row. */
	if (r->row != GPU_NO_ROW)
		g->lengths[r->row] = r->status == RING_OK ? r->length : g->min_request;
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

/* Block 0, one thread: until all have. */
static __device__ void await_others(const struct gpu_loop *g, uint32_t arrivals)
{
	while (gridDim.x > 1 && acquire_gpu(&g->state->arrived) != arrivals)
		;
}

/* Block 0: the same for all its threads. */
static __device__ void await_arrivals(const struct gpu_loop *g, uint32_t arrivals)
{
	__syncthreads();
	if (gridDim.x == 1)
		return;
	if (threadIdx.x == 0)
		await_others(g, arrivals);
	__syncthreads();
}

/* For the next kernel, and the other blocks, which must be done with the last batch. Thread i
 * brings request i: for a batch of one the first is enough. */
static __device__ void publish_batch(const struct gpu_loop *g, const struct turn *t)
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
		s->quick = t->quick;
		s->built = t->built;
	}
}

/* The blocks that only copy may begin. */
static __device__ void let_help(const struct gpu_loop *g, uint32_t published)
{
	if (gridDim.x == 1)
		return;
	__syncthreads();
	if (threadIdx.x == 0)
		release_gpu(&g->state->published, published);
}

/* The whole block copies, a word a thread: nobody waits for one load after the other. */
template <typename T> static __device__ void copy_words(T *to, const T *from, uint32_t n)
{
	static_assert(sizeof(T) % 8 == 0, "copied by words");
	for (uint32_t i = threadIdx.x; i < n * sizeof(T) / 8; i += blockDim.x)
		((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
}

/* What block 0 keeps of the loop. */
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

/* The batch as block 0, or the turn before this one, published it. */
static __device__ void read_batch(const struct gpu_loop *g, struct turn *t)
{
	const struct gpu_state *s = g->state;

	copy_words(t->request, g->request, g->max_batch);
	if (threadIdx.x == 0) {
		t->n = s->n;
		t->rows = s->rows;
		t->n_staged = s->n_staged;
		t->start_ns = s->start_ns;
		t->any_crc = s->any_crc;
		t->stopped = s->stopped;
		t->quick = s->quick;
		t->built = s->built;
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

/* Is half <i> of a descriptor not what it was taken for? */
static __device__ bool half_differs(const struct gpu_request *r, struct quarter half, uint32_t i)
{
	return i == 0 ? half.low != (r->slot | (uint64_t)r->length << 32) ||
				half.high >> 32 != r->flags
		      : half.high != (r->deadline_us | (uint64_t)r->crc32 << 32);
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
	bool differs = false;
	struct quarter half;

	if (!__syncthreads_or(mine))
		return;
	half = read_half(k, t);
	if (threadIdx.x / 2 < t->n && t->request[threadIdx.x / 2].row != GPU_NO_ROW)
		differs = half_differs(&t->request[threadIdx.x / 2], half, threadIdx.x % 2);
	if (!__syncthreads_or(differs) && mine)
		r->in_place = true;
	__syncthreads();
}

/* Block 0, behind its gathering: are descriptors what they were taken for? If not, gather anew. */
static __device__ void confirm(const struct gpu_loop *g, const struct keeper *k, struct turn *t,
			       struct quarter half, uint32_t arrivals)
{
	struct gpu_request *r = &t->request[threadIdx.x / 2];
	bool differs = false;
	struct span mine = {};

	if (threadIdx.x / 2 < t->n && r->row != GPU_NO_ROW)
		differs = half_differs(r, half, threadIdx.x % 2);
	if (!__syncthreads_or(differs))
		return;
	/* Nobody else may still write these rows. Every request of the batch is read again. */
	await_arrivals(g, arrivals);
	r = &t->request[threadIdx.x];
	differs = threadIdx.x < t->n && r->row != GPU_NO_ROW;
	if (differs) {
		read_again(g, &k->links[r->link], r);
		r->stage = 0;
		r->in_place = false;
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

#endif
