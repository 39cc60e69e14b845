/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait_inputs: one warp polls the rings until there is a batch. Private to loop_kernels.cu.
 */
#ifndef AGENT_LOOP_TAKE_CUH
#define AGENT_LOOP_TAKE_CUH

#include "loop/loop_device.cuh"

/* Descriptors that a warp looks at, side by side. */
#define LOOK (WARP / QUARTERS)
/* A reply as large as this saves more, gathered in place, than confirming it first costs. */
#define IN_PLACE_MIN (64u << 10)
/* A request that may have waited longer may have been cancelled. */
#define CANCEL_AGE_NS 20000

static __device__ const struct ring_descriptor *descriptor_at(const struct agent_link *link,
							      uint64_t position)
{
	return &link->descriptors[position & (link->slot_count - 1)];
}

/* What a descriptor says in its first 32 bytes: slot, length, service, flags; flow, deadline and
 * sum. */
static __device__ void understand(const struct gpu_loop *g, const struct agent_link *link,
				  struct bytes16 first, struct bytes16 second,
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
	struct bytes16 first = read_quarter(d, 0), second = read_quarter(d, 1);

	understand(g, link, first, second, r);
}

/* The first request of a batch is in a hurry: as soon as lane <lead> sees its mark, others may
 * fetch it. Half of what was seen may be old: what they read must at least lie within the slots. */
static __device__ void tell_ahead(const struct gpu_loop *g, const struct keeper *k, struct turn *t,
				  struct bytes16 seen, uint32_t lead, uint32_t l)
{
	uint64_t what = __shfl_sync(ALL_LANES, seen.low, lead & ~(QUARTERS - 1));
	uint32_t slot = (uint32_t)what, length = (uint32_t)(what >> 32);
	const struct agent_link *link = &k->links[l];
	bool fits = slot < link->slot_count && length <= link->stride && length <= g->max_request;

	__syncwarp(); /* all have seen that nobody was told */
	if (threadIdx.x == lead)
		t->ahead = (struct ahead){
			.told = true,
			.link = fits ? l : GPU_NO_LINK,
			.slot = slot,
			.length = length,
			.position = seen.high - 1,
		};
	meet<BARRIER_AHEAD>();
}

/* There is none. */
static __device__ void tell_nothing(struct turn *t)
{
	__syncwarp(); /* all have seen that nobody was told */
	if (threadIdx.x == 0)
		t->ahead = (struct ahead){.told = true, .link = GPU_NO_LINK};
	meet<BARRIER_AHEAD>();
}

/* What a look may have missed. */
#define LOOK_MORE 1u /* some link had as many descriptors as were looked at */
#define LOOK_LEFT 2u /* and not all of them fitted */

/*
 * Look at the next 2^<shift> descriptors of as many links as a warp has lanes for, four lanes a
 * descriptor; take those that are there. Returns LOOK_*.
 */
static __device__ uint32_t look(const struct gpu_loop *g, struct keeper *k, struct turn *t,
				uint32_t base, uint32_t shift, uint64_t now, uint32_t *stop,
				bool patience)
{
	uint32_t lane = threadIdx.x, index = lane / QUARTERS, part = lane % QUARTERS;
	uint32_t group = index >> shift, offset = index & ((1u << shift) - 1), l;
	uint32_t below = (1u << lane) - 1, group_lane = group << shift << 2;
	uint32_t of_group = (shift == 3 ? ALL_LANES : ((1u << (4u << shift)) - 1) << group_lane);
	uint32_t there, run, takers, kept, missed = 0;
	bool has_link = base + group < g->n_links, mine, good = false;
	struct bytes16 seen, first, second;
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
		return 0;
	}
	if (patience && !t->ahead.told)
		tell_ahead(g, k, t, seen, __ffs(there) - 1, l);
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
	if (__any_sync(ALL_LANES, has_link && (there & of_group) == (0x88888888u & of_group)))
		missed |= LOOK_MORE;
	return there == takers ? missed : missed | LOOK_LEFT;
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
		struct mlx5_write write;

		/* Also where no look ever finds the rings empty. */
		reap(k, link);
		if (link->dead || mlx5_room(&link->queue) == 0)
			continue;
		write = agent_heartbeat(link);
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

/* Until there is a batch: full, or its first request has waited long enough; or, without
 * <patience>, as far as it is there. True: some of it may have waited for long. */
static __device__ bool wait_inputs(const struct gpu_loop *g, struct keeper *k, struct turn *t,
				   bool patience)
{
	uint32_t shift = 3, stop = 0, missed;
	uint64_t last_look = k->kept.last_look, now;
	bool more, seen_empty = false;

	while (shift > 0 && g->n_links << shift > LOOK)
		shift--;
	for (;;) {
		uint32_t before = t->n;

		/* One clock and one stop for all lanes. */
		now = __shfl_sync(ALL_LANES, now_ns(), 0);
		if (patience && now >= k->kept.next_heartbeat)
			heartbeat(g, k, now);
		missed = 0;
		for (uint32_t base = 0; base < g->n_links; base += LOOK >> shift)
			missed |= look(g, k, t, base, shift, now, &stop, patience);
		if (patience && __any_sync(ALL_LANES, stop)) {
			__syncwarp();
			if (threadIdx.x == 0)
				t->stopped = true;
			return false;
		}
		/* More than its slots a link cannot have; what a load balancer says beyond waits.
		 */
		more = missed & LOOK_MORE && t->n > before;
		if (t->n == g->max_batch)
			break;
		if (t->n == 0) {
			if (!seen_empty)
				publish_stats(g, k);
			seen_empty = true;
			last_look = now;
			if (!patience)
				break;
		}
		if (t->n > 0 && !more &&
		    (!patience || now - t->request[0].seen_ns >= g->batch_timeout_ns))
			break;
	}
	__syncwarp();
	/* Nothing that is there now was there then, unless it was missed. */
	if (threadIdx.x == 0)
		k->kept.last_look = missed == 0 ? now : last_look;
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

/* The batch begins with what was staged while the last one ran. Its deadlines may have passed. */
static __device__ void adopt_staged(const struct gpu_loop *g, struct keeper *k, struct turn *t)
{
	copy_words(t->request, g->staged, t->n_staged, WARP);
	for (uint32_t l = threadIdx.x; l < g->n_links; l += WARP) {
		k->links[l].built = k->links[l].staged;
		k->links[l].staged = 0;
	}
	__syncwarp();
	if (threadIdx.x == 0) {
		t->n = t->n_staged;
		t->n_staged = g->state->n_staged = 0;
		t->odd = true;
	}
	__syncwarp();
}

static __device__ void take_batch(const struct gpu_loop *g, struct keeper *k, struct turn *t)
{
	bool aged;

	if (threadIdx.x == 0) {
		k->kept.first_link =
			k->kept.first_link + 1 < g->n_links ? k->kept.first_link + 1 : 0;
		t->n = 0;
		t->odd = t->any_crc = t->ahead.told = false;
	}
	__syncwarp();
	if (t->n_staged > 0) {
		adopt_staged(g, k, t);
		tell_nothing(t); /* what comes now is not the first */
	}
	aged = wait_inputs(g, k, t, true);
	__syncwarp();
	if (!t->ahead.told)
		tell_nothing(t);
	if (t->odd || aged)
		choose_rows(g, k, t, aged);
	else if (threadIdx.x == 0)
		t->rows = t->n;
	__syncwarp();
	if (threadIdx.x == 0 && t->stopped)
		t->n = t->rows = 0;
}

#endif
