/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A header, though it holds device code: nvcc compiles it into the kernels of loop_kernels.cu and
 * loop_stage.cu, inlined.
 *
 * Requests that are too late or cancelled are dropped, and the others get rows. gather: all blocks
 * copy the batch to where the model, or the NIC, reads it.
 */
#ifndef AGENT_LOOP_GATHER_CUH
#define AGENT_LOOP_GATHER_CUH

#include "loop/loop_crc.cuh"
#include "loop/loop_take.cuh"

static __device__ bool is_expired(const struct gpu_request *r)
{
	return r->deadline_us != 0 &&
	       globaltimer_ns() - r->seen_ns + r->waited_us * 1000ull > r->deadline_us * 1000ull;
}

/* Check that the client is still there and that the deadline has not passed. A request that may
 * have waited is read again, after its mark. */
static __device__ void recheck(const struct gpu_loop *g, const struct block0 *b,
			       struct gpu_request *r, bool aged)
{
	const struct agent_link *link = &b->links[r->link];
	uint32_t slot = r->slot;
	uint64_t cancelled;

	if (aged) {
		cancelled = relaxed_sys(&link->cancels[slot]);
		reread_descriptor(g, link, r);
		if (r->slot != slot && r->slot != GPU_NO_SLOT)
			cancelled = relaxed_sys(&link->cancels[r->slot]);
		if (r->status == RING_OK && cancelled == r->sequence)
			r->status = RING_CANCELLED;
	}
	if (r->status != RING_OK || !is_expired(r))
		return;
	/* Half of the descriptor may have been old: read it again before the request counts as
	 * expired. */
	if (!aged)
		reread_descriptor(g, link, r);
	if (r->status == RING_OK && is_expired(r))
		r->status = RING_EXPIRED;
}

/* Warp 0: number the rows of the requests that run; the others get none. */
static __device__ void choose_rows(const struct gpu_loop *g, const struct block0 *b, struct turn *t,
				   bool aged)
{
	uint32_t lane = threadIdx.x, rows = 0, crc = 0;

	for (uint32_t first = 0; first < t->n; first += WARP) {
		uint32_t i = first + lane, runs;
		struct gpu_request *r = &t->request[i < t->n ? i : 0];
		bool run = i < t->n && r->status == RING_OK;

		if (run) {
			recheck(g, b, r, aged);
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

/* Tell a model that works in place where a request lies and where its reply goes. A quick one of
 * some kilobytes is fetched to the first row while it is taken; and so that a request which turned
 * out bad after it got its row does no harm, its row is in the model's buffers. */
static __device__ void publish_places(const struct gpu_loop *g, const struct turn *t,
				      const struct agent_link *links, const struct gpu_request *r)
{
	const struct agent_link *link = &links[r->link];
	const uint8_t *payload = payload_at(link, r->payload);
	uint8_t *reply = reply_at(link, r->slot) + sizeof(struct ring_reply);
	bool good = r->status == RING_OK, fetched = t->quick & (r->length <= QUICK_MAX);

	g->requests[r->row] = good & !fetched ? payload : (const uint8_t *)g->model.input;
	g->replies[r->row] = good ? reply : (uint8_t *)g->model.output;
}

/* Tell the model of a request that has a row. */
static __device__ void publish_row(const struct gpu_loop *g, const struct turn *t,
				   const struct agent_link *links, const struct gpu_request *r)
{
	/* A model may trust lengths, also of a request that turned out bad after it got its row. */
	g->lengths[r->row] = r->status == RING_OK ? r->length : g->min_request;
	if (g->model.in_place)
		publish_places(g, t, links, r);
}

/* Publish request <i> of the batch for the helpers, the model and the next turn. */
static __device__ void publish_request(const struct gpu_loop *g, const struct turn *t,
				       const struct agent_link *links, uint32_t i)
{
	const struct gpu_request *r = &t->request[i];

	g->request[i] = *r;
	if (r->row != GPU_NO_ROW)
		publish_row(g, t, links, r);
}

/* Block 0: tell the next turn's helpers where the reply of a batch of one request goes, so that they
 * need not read its link. */
static __device__ void publish_header(const struct gpu_loop *g, struct turn *t,
				      const struct agent_link *links)
{
	const struct gpu_request *r = &t->request[0];

	if (threadIdx.x == 0 && t->n == 1 && r->slot != GPU_NO_SLOT)
		g->state->batch.header = t->header = reply_header_at(&links[r->link], r->slot);
}

/* Block 0: publish the batch for the next kernel and the helpers. Thread i does request i; a batch
 * of one needs thread 0 only. */
static __device__ void publish_batch(const struct gpu_loop *g, struct turn *t,
				     const struct agent_link *links)
{
	uint32_t i = threadIdx.x;

	if (i < t->n)
		publish_request(g, t, links, i);
	if (i == 0)
		g->state->batch = *t;
	publish_header(g, t, links);
}

/* Warp 0: the same for a batch of one that is quick, and store the state of links and loop. All is
 * read from shared memory before the first of it is stored. */
static __device__ void publish_quick(const struct gpu_loop *g, const struct turn *t,
				     const struct block0 *b)
{
	uint64_t request = lane_word(t->request), link = lane_word(b->links);
	uint64_t batch = lane_word((const struct gpu_batch *)t);
	uint64_t carried = lane_word(&b->carried);

	store_lane_word(g->request, request);
	store_lane_word(&g->state->batch, batch);
	store_lane_word(&g->state->carried, carried);
	store_lane_word(g->links, link);
	if (g->n_links > 1)
		copy_words(g->links + 1, b->links + 1, g->n_links - 1, WARP);
	if (threadIdx.x == 0)
		publish_row(g, t, b->links, &t->request[0]);
}

/* Block 0, when it is done in its kernel: store the state of links and loop with <threads> threads.
 */
static __device__ void store_carried(const struct gpu_loop *g, const struct block0 *b,
				     uint32_t threads)
{
	copy_words(g->links, b->links, g->n_links, threads);
	copy_words(&g->state->carried, &b->carried, 1, threads);
}

/* A thread's words of the batch as the last turn, or block 0, published it; and, for block 0, of the
 * loop's state. */
struct batch_words {
	uint64_t batch, request, n_staged;
	uint64_t link, carried, start_ns;
};

/* Load them: all loads are on their way before the thread waits for the first. */
static __device__ struct batch_words load_batch(const struct gpu_loop *g)
{
	const struct gpu_state *s = g->state;
	bool keeps = blockIdx.x == 0;

	return (struct batch_words){
		.batch = load_word(&s->batch, 1),
		.request = load_word(g->request, g->max_batch),
		.n_staged = load_word(&s->n_staged, 1),
		.link = load_word(g->links, keeps ? g->n_links : 0),
		.carried = load_word(&s->carried, keeps ? 1 : 0),
		.start_ns = load_word(&s->start_ns, keeps ? 1 : 0),
	};
}

/* Make them the block's copy of the batch, with what they leave out. */
static __device__ void keep_batch(const struct gpu_loop *g, struct turn *t, struct block0 *b,
				  const struct batch_words &words)
{
	const struct gpu_state *s = g->state;

	store_words((struct gpu_batch *)t, (const struct gpu_batch *)&s->batch, 1, words.batch);
	store_words(t->request, g->request, g->max_batch, words.request);
	if (threadIdx.x == 0) {
		t->n_staged = (uint32_t)words.n_staged;
		t->start_ns = words.start_ns;
	}
	if (blockIdx.x == 0) {
		store_words(b->links, g->links, g->n_links, words.link);
		store_words(&b->carried, &s->carried, 1, words.carried);
	}
	__syncthreads();
}

static __device__ void read_batch(const struct gpu_loop *g, struct turn *t, struct block0 *b)
{
	keep_batch(g, t, b, load_batch(g));
}

static __device__ struct span input_of(const struct gpu_loop *g, const struct agent_link *links,
				       const struct gpu_request *r)
{
	const struct agent_link *link = &links[r->link];

	return (struct span){
		.from = r->stage != 0 ? g->stage + (r->stage - 1) * g->stage_stride
				      : payload_at(link, r->payload),
		.to = r->in_place ? reply_at(link, r->slot) + sizeof(struct ring_reply)
				  : (uint8_t *)g->model.input + r->row * g->model.input_stride,
		.length = r->length,
	};
}

/* True when request <i> must still be copied and confirmed. */
static __device__ bool is_to_gather(const struct turn *t, uint32_t i)
{
	return i < t->n && t->request[i].row != GPU_NO_ROW && !(i == 0 && t->first_fetched);
}

/* Blocks that gather the batch. */
static __device__ uint32_t gather_blocks(const struct turn *t)
{
	const struct gpu_request *r = &t->request[0];
	bool both_ways = (t->n > 0) & r->in_place & (r->length >= BOTH_WAYS_MIN);

	return both_ways ? min(gridDim.x, BOTH_WAYS_BLOCKS) : gridDim.x;
}

static __device__ void gather_batch(const struct gpu_loop *g, struct turn *t,
				    const struct agent_link *links)
{
	uint32_t i = threadIdx.x, blocks = gather_blocks(t);
	struct span mine = {};

	if (g->model.in_place || blockIdx.x >= blocks)
		return;
	if (is_to_gather(t, i) && t->request[i].status == RING_OK)
		mine = input_of(g, links, &t->request[i]);
	copy_spans(&t->spans, t->n, mine, blockIdx.x, blocks);
}

/* Threads 2i and 2i + 1: read again the two halves of request i's descriptor that matter. They
 * cross the bus beside the payload. */
static __device__ struct bytes16 read_half(const struct block0 *b, const struct turn *t)
{
	uint32_t i = threadIdx.x / 2 < GPU_BATCH_MAX ? threadIdx.x / 2 : 0;
	const struct gpu_request *r = &t->request[i];
	uint32_t link = i < t->n ? r->link : 0;

	return read_quarter(descriptor_at(&b->links[link], r->sequence - 1), threadIdx.x % 2,
			    is_to_gather(t, i));
}

/* True when half <i> of the descriptor differs from what the request was taken for. */
static __device__ bool half_differs(const struct gpu_request *r, struct bytes16 half, uint32_t i)
{
	return i == 0 ? half.low != (r->slot | (uint64_t)r->length << 32) ||
				half.high >> 32 != r->flags
		      : half.low != (r->payload | (uint64_t)r->reply << 32) ||
				half.high != (r->deadline_us | (uint64_t)r->crc32 << 32);
}

/* A descriptor's mark that a thread has read to count the requests that wait. */
struct mark {
	uint32_t link;
	uint64_t position, seen; /* it is there when <seen> is position + 1 */
};

/* Block 0: read the next marks of all rings, a thread each, if the last poll may have left requests
 * there. They cross the bus beside the payload. */
static __device__ struct mark read_mark(const struct gpu_loop *g, const struct block0 *b,
					const struct turn *t)
{
	uint32_t l = threadIdx.x % g->n_links, ahead = threadIdx.x / g->n_links;
	const struct agent_link *link = &b->links[l];
	uint64_t from = link->counted > link->position ? link->counted : link->position;
	struct mark m = {.link = l, .position = from + ahead};

	if (t->left_some && m.position - link->position < link->slot_count)
		m.seen = relaxed_sys(&descriptor_at(link, m.position)->sequence);
	return m;
}

/* Block 0, thread l: load the next completion of link l if some link may have no room. It crosses the
 * bus beside the payload: where a batch is posted behind the poll, and no look finds the rings empty,
 * the poll takes none. */
static __device__ struct completion read_completion(const struct gpu_loop *g,
						    const struct block0 *b, const struct turn *t)
{
	uint32_t l = threadIdx.x;

	return load_completion(&b->links[l < g->n_links ? l : 0], t->left_some && l < g->n_links);
}

/* The same threads: consume it, if it is new. */
static __device__ void take_read(const struct gpu_loop *g, struct block0 *b,
				 const struct completion *c)
{
	uint32_t l = threadIdx.x;

	if (l >= g->n_links || !mlx5_cqe_new(&b->links[l].queue, c->tail))
		return;
	fence_acquire_sys();
	take_loaded(b, &b->links[l], c);
}

/* Block 0: count the requests that wait, by the marks that its threads have read. A turn counts at
 * most GPU_BLOCK that were not counted before. */
static __device__ void count_unread(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				    struct mark m)
{
	uint32_t l = threadIdx.x;

	if (!t->left_some)
		return;
	if (l < g->n_links) {
		const struct agent_link *link = &b->links[l];

		t->waiting[l] = link->counted > link->position ? link->counted - link->position : 0;
	}
	if (l == 0)
		b->carried.unread = 0;
	__syncthreads();
	/* 32 bits, as an atomic of 64 bits in shared memory is a loop that all lanes contend for.
	 */
	if (m.seen == m.position + 1)
		atomicMax(&t->waiting[m.link],
			  (uint32_t)(m.position + 1 - b->links[m.link].position));
	__syncthreads();
	if (l < g->n_links) {
		struct agent_link *link = &b->links[l];

		if (t->waiting[l] > 0)
			link->counted = link->position + t->waiting[l];
		atomicAdd(&b->carried.unread, t->waiting[l]);
	}
	__syncthreads();
}

/* Block 0: true when any descriptor of the batch differs from what its request was taken for. */
static __device__ bool any_differs(const struct turn *t, struct bytes16 half)
{
	uint32_t i = threadIdx.x / 2;

	return __syncthreads_or(is_to_gather(t, i) &&
				half_differs(&t->request[i], half, threadIdx.x % 2));
}

/*
 * Block 0, before it gathers: large requests on which no model runs go to where the NIC reads the
 * reply. Descriptors must be confirmed first: an old one would name a slot whose reply may be on
 * its way.
 */
static __device__ void choose_in_place(const struct gpu_loop *g, const struct block0 *b,
				       struct turn *t)
{
	struct gpu_request *r = &t->request[threadIdx.x];
	bool mine = threadIdx.x < t->n && r->row != GPU_NO_ROW && r->length >= IN_PLACE_MIN &&
		    may_be_in_place(g, r);

	if (!__syncthreads_or(mine))
		return;
	if (!any_differs(t, read_half(b, t)) && mine)
		r->in_place = true;
	__syncthreads();
}

/* Block 0: read all descriptors of the batch again, and copy all payloads again. */
static __device__ void gather_again(const struct gpu_loop *g, const struct block0 *b,
				    struct turn *t)
{
	struct gpu_request *r = &t->request[threadIdx.x];
	bool runs = threadIdx.x < t->n && r->row != GPU_NO_ROW;
	struct span mine = {};

	/* The helpers have stopped writing these rows. */
	await_arrivals(g, t, ARRIVE_GATHERED);
	if (runs) {
		reread_descriptor(g, &b->links[r->link], r);
		r->stage = 0;
		r->in_place = false;
		if (r->status == RING_OK && !g->model.in_place)
			mine = input_of(g, b->links, r);
		publish_request(g, t, b->links, threadIdx.x);
	}
	publish_header(g, t, b->links);
	if (__syncthreads_or(runs && r->flags & RING_HAS_CRC))
		t->any_crc = true;
	copy_spans(&t->spans, t->n, mine, 0, 1);
	__syncthreads();
}

/* Block 0, thread i: read the cancel word of request i, if they are to be read now. */
static __device__ uint64_t read_cancel(const struct block0 *b, const struct turn *t)
{
	bool mine = t->asks && threadIdx.x < t->n && t->request[threadIdx.x].row != GPU_NO_ROW;
	const struct gpu_request *r = &t->request[mine ? threadIdx.x : 0];

	return relaxed_sys(&b->links[mine ? r->link : 0].cancels[mine ? r->slot : 0], mine);
}

/* Block 0: requests whose cancel words thread i has read, and which have their rows already, get
 * RING_CANCELLED; what the model makes of those rows is not sent. <again>: descriptors were
 * different, so read the words again. */
static __device__ void drop_cancelled(const struct gpu_loop *g, const struct block0 *b,
				      struct turn *t, uint64_t cancelled, bool again)
{
	struct gpu_request *r = &t->request[threadIdx.x];
	bool mine;

	if (!t->asks)
		return;
	if (again)
		cancelled = read_cancel(b, t);
	mine = threadIdx.x < t->n && r->row != GPU_NO_ROW && r->status == RING_OK &&
	       cancelled == r->sequence;
	if (!__syncthreads_or(mine))
		return;
	/* The helpers have read the requests. */
	await_arrivals(g, t, ARRIVE_GATHERED);
	if (mine)
		g->request[threadIdx.x].status = r->status = RING_CANCELLED;
	__syncthreads();
}

/* The bytes of a request that has been gathered, or need not be. */
static __device__ const uint8_t *gathered_at(const struct gpu_loop *g, const struct block0 *b,
					     const struct gpu_request *r)
{
	return g->model.in_place ? payload_at(&b->links[r->link], r->payload)
				 : (const uint8_t *)g->model.input + r->row * g->model.input_stride;
}

/* Block 0: verify the checksums that the load balancer sent. A request that fails gets RING_BAD. */
static __device__ void check_crcs(const struct gpu_loop *g, const struct block0 *b, struct turn *t)
{
	await_arrivals(g, t, ARRIVE_GATHERED);
	for (uint32_t i = 0; i < t->n; i++) {
		struct gpu_request *r = &t->request[i];

		if (r->row == GPU_NO_ROW || r->status != RING_OK || !(r->flags & RING_HAS_CRC))
			continue;
		if (crc32_of(gathered_at(g, b, r), r->length) == r->crc32 || threadIdx.x != 0)
			continue;
		r->status = RING_BAD;
		g->request[i].status = RING_BAD;
	}
	__syncthreads();
}

#endif
