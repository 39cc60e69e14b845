/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel of a turn of the loop on a GPU. Block 0 polls, takes and posts; it alone has the
 * links. The other blocks are its helpers: they only copy. A batch of requests may take one of
 * three shortcuts: "quick" (loop_quick.cuh), "ahead" (loop_ahead.cuh) and "staged" (loop_stage.cu).
 *
 *   state     field, written by               left for                       skips
 *
 *   polled    -                               seen: a mark is there          -
 *                                             taken: no mark was announced
 *   seen      turn.first                      quick: the batch is this one   -
 *             announce_first(): block 0,      request, <= 17920 bytes, no
 *             warp 0                          checksum; fetched meanwhile
 *                                             ahead: it is larger, there are
 *                                             helpers, and a model runs
 *                                             taken: anything else
 *   quick     gpu_batch.quick                 prebuilt: reply length known,  gather, and waiting
 *             quick_take(): block 0,          room in the queue              for the helpers
 *             thread 0                        taken: its descriptor differs,
 *                                             or it is cancelled
 *                                             (quick_withdraw() clears both)
 *                                             sent: by the next turn
 *   prebuilt  gpu_batch.prebuilt              answered: the model runs       scatter, building the
 *             quick_take(): block 0,          nothing and answers_left > 0   WQE after the model
 *             thread 0                        armed: a model runs
 *   armed     gpu_state.post                  sent: by a model that works    the turn's own reading,
 *             quick_take(): block 0,          in place, if it calls          before the doorbell
 *             thread 0                        agent_model_post_send()
 *                                             (model_post.h); else at the
 *                                             beginning of the next turn,
 *                                             quick_send(): block 0
 *   answered  turn.answer_now                 polled: reply posted in the    the turn and the model
 *             quick_take(): block 0,          poll itself
 *             thread 0
 *   ahead     turn.ahead                      taken, hit: it is row 0 of     hit: copying row 0
 *             announce_first(): block 0,      the batch; first_fetched is    after the batch was
 *             warp 0                          set, PUBLISH_BATCH follows     taken
 *                                             taken, miss: ahead_withdraw()  miss: nothing
 *                                             and PUBLISH_MISS; copied anew
 *   staged    gpu_state.n_staged, and         taken: begin_with_staged() in  the bus, in the turn;
 *             gpu_request.stage               the next turn, which then      its batch is never
 *             publish_staged(): block 0       announces no request; the      quick or ahead
 *             of loop_stage.cu                replies of the batch before
 *                                             may be held for the stage
 *                                             beside its model to send
 *   taken     gpu_batch.n, rows               sent: after gather, the model  -
 *             publish_batch(): block 0        and scatter
 *
 * Replies of a batch of several requests, where no stage is beside the model, are posted behind the
 * poll for the next batch (turn.replies, turn.posts_behind): warps 1 to 7 of block 0 build, the
 * last one rings (post_behind()), warp 0 polls and takes meanwhile. After a large batch that poll
 * reads WINDOWS times as many descriptors at once (poll_wide()). Cancel words of such batches of
 * small requests are read beside the payloads, when rows are chosen already (drop_cancelled()).
 *
 * A descriptor is read together with its mark, so half of it may be older. Each state that copies
 * before the descriptor is confirmed reads it again (half_differs()) before the copy counts.
 */
#include "loop/loop_quick.cuh"

/* A helper's part in waiting and gathering. */
static __device__ void help_gather(const struct gpu_loop *g, struct turn *t)
{
	uint32_t number = await_published(g, t, PUBLISH_AHEAD);
	bool has_ahead = number & PUBLISH_HAS_AHEAD;

	if (has_ahead) {
		ahead_copy(g, t);
		number = await_published(g, t, PUBLISH_MISS);
	}
	if (number & PUBLISH_DONE) {
		report_arrival_at_exit(g, 2);
		return;
	}
	if (has_ahead) {
		report_arrival(&g->state->arrived);
		await_published(g, t, PUBLISH_BATCH);
	}
	/* A quick batch comes here only after an unnecessary copy ahead. */
	read_batch(g, t, NULL);
	if (!t->quick)
		gather_batch(g, t, g->links);
	report_arrival(&g->state->arrived, has_ahead ? 1 : 2);
}

static __device__ void wait_and_gather(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				       bool behind)
{
	uint32_t flags;
	struct bytes16 half;
	uint64_t cancelled;
	struct mark mark;
	bool hit, differs;

	ahead_reset(t);
	if (!behind)
		await_arrivals(g, t, ARRIVE_SENT);
	for (;;) {
		enum quick_result result = quick_wait(g, b, t, behind);

		behind = false;

		if (result == QUICK_DONE) {
			publish_to_helpers(g, t, PUBLISH_BATCH, PUBLISH_DONE);
			return;
		}
		hit = __syncthreads_or(result == QUICK_NOT_HIT);
		if (hit && threadIdx.x == 0)
			t->first_fetched = true;
		else if (!hit && ahead_started(t))
			ahead_withdraw(g, t);
		/* Replies that are held back leave with the stage, beside the model. */
		if (t->stopped || t->rows > 0 || t->holding)
			break;
		/* No request of the batch runs: send the replies, and go on polling. */
		uint8_t status = threadIdx.x < t->n ? t->request[threadIdx.x].status : RING_OK;
		uint64_t now = globaltimer_ns();

		count_unread(g, b, t, read_mark(g, b, t));
		build_batch(g, b, t, t->n, 0, status, b->carried.unread, now, now);
		__syncthreads();
		ring_batch(g, b);
		count_replies(&b->carried.stats, t->n, status, 0);
		__syncthreads();
	}
	if (g->in_place)
		choose_in_place(g, b, t);
	publish_batch(g, t, b->links);
	flags = ahead_started(t) ? PUBLISH_HAS_AHEAD : 0;
	if (hit && t->n == 1 && !t->any_crc)
		flags |= PUBLISH_DONE;
	publish_to_helpers(g, t, PUBLISH_BATCH, flags);
	/* The last thread reads the clock: it seldom has a piece to copy. */
	if (threadIdx.x == GPU_BLOCK - 1)
		g->state->start_ns = t->start_ns = globaltimer_ns();
	half = read_half(b, t);
	mark = read_mark(g, b, t);
	cancelled = read_cancel(b, t);
	gather_batch(g, t, b->links);
	count_unread(g, b, t, mark);
	differs = any_differs(t, half);
	if (differs)
		gather_again(g, b, t);
	drop_cancelled(g, b, t, cancelled, differs);
	if (t->any_crc)
		check_crcs(g, b, t);
}

/* True when the batch's replies are to be put aside, for the stage beside the next batch's model to
 * send: that batch has come already, and shall not wait until they have crossed the bus. */
static __device__ bool holds_back(const struct gpu_loop *g, const struct turn *t)
{
	return g->held != NULL && t->n_staged > 0 && t->n > 0;
}

/* Block 0: leave the batch to the stage. Thread i does request i. */
static __device__ void hold_batch(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				  uint32_t length, uint8_t status, uint64_t done_ns)
{
	uint32_t i = threadIdx.x;

	if (i < t->n) {
		struct gpu_request r = t->request[i];

		r.reply_bytes = length;
		r.status = status;
		g->held[i] = r;
	}
	if (i < g->n_links) {
		b->links[i].held = b->links[i].built;
		b->links[i].built = 0;
	}
	if (i == 0) {
		t->holding = true;
		g->state->n_held = t->n;
		g->state->held_start_ns = t->start_ns;
		g->state->held_done_ns = done_ns;
	}
}

/* True when a helper loads its first unit of the model's first row before it is known whether the
 * batch is one request: that load overlaps the others at the beginning of a turn. Smaller replies of
 * one request are quick. */
static __device__ bool reads_row_early(const struct gpu_loop *g)
{
	return g->max_reply > QUICK_REPLY_MAX && !g->model.in_place &&
	       (uint64_t)g->model.output % 16 == 0;
}

static __device__ struct bytes16 read_row_unit(const struct gpu_loop *g)
{
	uint32_t at = row_unit();

	return read_16((const uint8_t *)g->model.output + at,
		       reads_row_early(g) && at < g->max_reply);
}

/* A helper: copy its share of the reply of a batch of one request, of which it has loaded the first
 * unit. False when the batch is another one. */
static __device__ bool scatter_row(const struct gpu_loop *g, const struct turn *t,
				   struct bytes16 first)
{
	const struct gpu_request *r = &t->request[0];
	uint32_t length;
	uint8_t status;

	if (t->n != 1 || r->row != 0 || r->in_place || holds_back(g, t) || !reads_row_early(g))
		return false;
	length = reply_length(g, r, &status);
	copy_row((uint8_t *)(t->header + 1), (const uint8_t *)g->model.output, length, first);
	return true;
}

/* Copy the model's output to where the RNIC reads it, or aside. With helpers, block 0 copies
 * nothing: it builds WQEs meanwhile. */
static __device__ void scatter_replies(const struct gpu_loop *g, struct turn *t,
				       const struct agent_link *links, uint32_t *length,
				       uint8_t *status)
{
	uint32_t i = threadIdx.x;
	struct span mine = {};

	*length = 0;
	*status = RING_OK;
	if (i < t->n) {
		const struct gpu_request *r = &t->request[i];

		*length = reply_length(g, r, status);
		mine.length = r->in_place || g->model.in_place ? 0 : *length;
		mine.from = (const uint8_t *)g->model.output + r->row * g->model.output_stride;
		mine.to = holds_back(g, t)
				  ? g->hold + i * g->hold_stride
				  : reply_at(&links[r->link], r->slot) + sizeof(struct ring_reply);
	}
	if (gridDim.x == 1)
		copy_spans(&t->spans, t->n, mine, 0, 1);
	else if (blockIdx.x > 0 && holds_back(g, t))
		copy_deep(&t->spans, t->n, mine, blockIdx.x - 1, gridDim.x - 1);
	else if (blockIdx.x > 0)
		copy_spans(&t->spans, t->n, mine, blockIdx.x - 1, gridDim.x - 1);
}

/* Send the replies of the batch. If there are several and the turn <waits> for the next batch, the
 * other warps post them while the first one polls: then it returns true, and until the barrier
 * AHEAD nothing else is posted. */
static __device__ bool scatter_and_post(const struct gpu_loop *g, struct block0 *b, struct turn *t,
					bool waits, uint64_t done_ns)
{
	/* Staged requests have counted WQEs before that barrier. */
	bool behind = waits && t->n > 1 && g->staged == NULL;
	uint32_t length = 0;
	uint8_t status = RING_OK;

	if (t->prebuilt) {
		quick_sent(g, b, t, done_ns);
		return false;
	}
	if (!behind || gridDim.x == 1)
		scatter_replies(g, t, b->links, &length, &status);
	if (behind) {
		if (threadIdx.x == 0)
			leave_behind(t, b->carried.unread, done_ns);
		__syncthreads();
		return true;
	}
	if (holds_back(g, t)) {
		hold_batch(g, b, t, length, status, done_ns);
		await_arrivals(g, t, ARRIVE_SENT);
		return false;
	}
	if (t->n > 0)
		build_batch(g, b, t, t->n, length, status, b->carried.unread + t->n_staged,
			    t->start_ns, done_ns);
	await_arrivals(g, t, ARRIVE_SENT);
	if (t->n > 0) {
		ring_batch(g, b);
		count_replies(&b->carried.stats, t->n, status, done_ns - t->start_ns);
	}
	__syncthreads();
	return false;
}

/* The end of the graph, with everything sent: launch the graph again, unless the host said stop. */
static __device__ void relaunch(const struct gpu_loop *g, const struct turn *t)
{
	/* Leave the state alone: helpers may not have read <stopped> yet. */
	if (t->stopped)
		return;
	g->state->batch = (struct gpu_batch){};
	g->state->published.number = 0;
	g->state->arrived = g->state->stage_arrived = 0;
	launch_again(g);
}

/* The end of the graph of one size of batch, of which only this turn's helpers may still run:
 * launch the graph for the batch that was taken. After a stop it is the first one, with no rows:
 * its stage sends what was held back, and its turn sees the stop. */
static __device__ void launch_chosen(const struct gpu_loop *g, const struct turn *t)
{
	await_arrivals(g, t, ARRIVE_GATHERED);
	if (threadIdx.x != 0)
		return;
	g->state->published.number = g->state->stage_arrived = 0;
	g->state->arrived = ARRIVE_GATHERED * (gridDim.x - 1);
	launch_graph(g, g->graphs[agent_bucket(&g->buckets, t->rows)]);
}

/* One thread: count the batch by its size, if the model has run. */
static __device__ void count_bucket(const struct gpu_loop *g, struct block0 *b,
				    const struct turn *t, uint64_t done_ns)
{
	uint32_t bucket = agent_bucket(&g->buckets, t->rows);

	if (t->n == 0 || t->rows == 0)
		return;
	b->carried.stats.bucket_batches[bucket]++;
	b->carried.stats.bucket_run_ns[bucket] += done_ns - t->start_ns;
}

static __global__ void __launch_bounds__(GPU_BLOCK, 2)
	turn(const __grid_constant__ struct gpu_loop g, uint32_t what, uint32_t turns,
	     uint32_t before)
{
	__shared__ struct turn t;
	__shared__ struct block0 b;
	uint32_t length;
	struct batch_words words;
	struct quick_bytes early = {};
	struct bytes16 first = {};
	uint8_t status;

	if (what & GPU_SEND && blockIdx.x == 0)
		early = quick_read_reply(&g);
	else if (what & GPU_SEND)
		first = read_row_unit(&g);
	words = load_batch(&g);
	/* The reply waits for nothing else. */
	if (what & GPU_SEND && blockIdx.x == 0)
		quick_send(&g, early);
	if (threadIdx.x == 0) {
		t.before = before;
		t.stored = t.holding = false;
		t.posts_behind = t.short_ahead = false;
	}
	keep_batch(&g, &t, &b, words);
	if (blockIdx.x > 0) {
		if (what & GPU_SEND && !t.stopped) {
			if (!t.prebuilt && !scatter_row(&g, &t, first))
				scatter_replies(&g, &t, g.links, &length, &status);
			report_arrival(&g.state->arrived);
		}
		if (what & GPU_WAIT && !t.stopped)
			help_gather(&g, &t);
		return;
	}
	bool goes_on = !t.stopped;

	if (threadIdx.x == 0) /* only thread 0 reads it */
		t.answers_left = GPU_KERNEL_TURNS;
	for (; turns > 0 && !t.stopped; turns--) {
		uint64_t done_ns = globaltimer_ns();
		bool behind = false;

		if (what & GPU_SEND)
			behind = scatter_and_post(&g, &b, &t, what & GPU_WAIT, done_ns);
		/* Behind the doorbell: no reply waits for it. */
		if (what & GPU_SEND && threadIdx.x == 0)
			count_bucket(&g, &b, &t, done_ns);
		if (what & GPU_WAIT)
			wait_and_gather(&g, &b, &t, behind);
	}
	/* A quick reply does not wait for the helpers; but a late report must not count in the next
	 * graph. */
	if (!(what & GPU_WAIT) && !t.stopped)
		await_arrivals(&g, &t, ARRIVE_SENT);
	if (!t.stored) {
		__syncthreads();
		store_carried(&g, &b, GPU_BLOCK);
	}
	if (what & GPU_CHOOSE && goes_on)
		launch_chosen(&g, &t);
	if (!(what & GPU_WAIT) && threadIdx.x == 0)
		relaunch(&g, &t);
}

extern "C" unsigned int gpu_turn_blocks(void)
{
	int device, processors, per_processor;

	if (cudaGetDevice(&device) != cudaSuccess ||
	    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) !=
		    cudaSuccess ||
	    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, turn, GPU_BLOCK, 0) !=
		    cudaSuccess)
		return 0;
	return (unsigned int)(processors * per_processor);
}

extern "C" cudaError_t gpu_turn(const struct gpu_loop *loop, unsigned int blocks, unsigned int what,
				unsigned int turns, unsigned int before, cudaStream_t stream)
{
	turn<<<blocks, GPU_BLOCK, 0, stream>>>(*loop, what, turns, before);
	return cudaGetLastError();
}
