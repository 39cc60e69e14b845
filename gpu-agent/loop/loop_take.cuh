/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A header, though it holds device code: nvcc compiles it into the kernels of loop_kernels.cu and
 * loop_stage.cu, inlined.
 *
 * wait_inputs: one warp polls the rings until there is a batch.
 */
#ifndef AGENT_LOOP_TAKE_CUH
#define AGENT_LOOP_TAKE_CUH

#include "loop/loop_helpers.cuh"

/* Descriptors that a warp reads side by side. */
#define DESCRIPTORS_PER_POLL (WARP / QUARTERS)
/* Bytes from which gathering in place saves more than confirming first costs. */
#define IN_PLACE_MIN (64u << 10)
/* Where so many bytes of a request cross the bus both ways at once, fewer blocks are faster: writes
 * wait behind the reads that are on their way. */
#define BOTH_WAYS_MIN    (512u << 10)
#define BOTH_WAYS_BLOCKS 33u
/* Groups of descriptors that are read together under load. */
#define WINDOWS (WARP / DESCRIPTORS_PER_POLL)

/* Read the cancel word of a request that may have waited longer than this. */
#define CANCEL_AGE_NS 20000
/* No batch takes longer from its last poll until its rows are chosen: deadlines that lie further
 * ahead need not be looked at one by one. */
#define CHOICE_NS 100000

/* When the rings have been empty for so long, the host's words (stop, the next completion) are read
 * less often: the last of several loads to come back comes later than one alone, and a request that
 * comes alone waits for the look. */
#define CALM_NS 4000
/* How often those words are read then; and always where rings are the GPU's own, as a look at these
 * makes no other trip across the bus. */
#define ASK_HOST_NS 8000

/* Lanes that read a mark: the last of each descriptor's four. */
#define MARK_LANES 0x88888888u

static __device__ const struct ring_descriptor *descriptor_at(const struct agent_link *link,
							      uint64_t position)
{
	return &link->descriptors[position & (link->slot_count - 1)];
}

/* Parse the first 32 bytes of a descriptor: slot, length, service, flags; payload, reply, deadline
 * and checksum. */
static __device__ void parse_descriptor(const struct gpu_loop *g, const struct agent_link *link,
					struct bytes16 first, struct bytes16 second,
					struct gpu_request *r)
{
	r->slot = (uint32_t)first.low;
	r->length = (uint32_t)(first.low >> 32);
	r->flags = (uint32_t)(first.high >> 32);
	r->payload = (uint32_t)second.low;
	r->reply = (uint32_t)(second.low >> 32);
	r->deadline_us = (uint32_t)second.high;
	r->crc32 = (uint32_t)(second.high >> 32);
	r->status = r->slot >= link->slot_count || r->length > g->max_request ||
				    r->length < g->min_request ||
				    !ring_payload_fits(r->slot, r->payload, r->length, link->stride,
						       link->room_at, link->room)
			    ? RING_BAD
			    : RING_OK;
	if (r->slot >= link->slot_count)
		r->slot = GPU_NO_SLOT;
}

/* The stamp in the third quarter of a descriptor. */
static __device__ uint32_t stamp_of(struct bytes16 third)
{
	return (uint32_t)third.high;
}

/* Read the descriptor again: these loads come after the mark, so they are not older than it. */
static __device__ void reread_descriptor(const struct gpu_loop *g, const struct agent_link *link,
					 struct gpu_request *r)
{
	const struct ring_descriptor *d = descriptor_at(link, r->sequence - 1);
	struct bytes16 first = read_quarter(d, 0), second = read_quarter(d, 1);
	struct bytes16 third = read_quarter(d, 2);

	parse_descriptor(g, link, first, second, r);
	/* If half of the descriptor was old, so was the stamp. */
	r->waited_us = min(r->waited_us, ring_clock_waited(&link->clock, stamp_of(third),
							   r->seen_ns / 1000, UINT32_MAX));
}

/* us since the last poll, which a request that is seen <now> was not there for. */
static __device__ uint64_t most_us(const struct block0 *b, uint64_t now)
{
	return (now - b->carried.last_poll) / 1000;
}

/* When a look at the rings finds requests: in ns, and as their stamps want it. */
struct look {
	uint64_t now, now_us, most_us;
};

/* Computed here and not where it is used: beside loads that are on their way. */
static __device__ __forceinline__ uint64_t computed(uint64_t value)
{
	asm volatile("" : "+l"(value));
	return value;
}

/* A look's view of its link and of the turn, for when it has found a request. It is read before, so
 * that nothing waits for it then. */
struct before_look {
	uint32_t slot_count, stride; /* of the link */
	uint64_t room_at, room;
	uint64_t mark; /* of the lane's descriptor; 0: it reads none */
	uint64_t last_poll;
	bool first;       /* no request was announced */
	bool short_ahead; /* turn.short_ahead */
	bool may_ahead;   /* helpers may copy ahead */
	uint32_t ahead;   /* the number that tells them so */
	const uint8_t *payloads; /* of the link */
};

/*
 * Warp 0: announce the first request of a batch as soon as lane <lead> sees its mark, so that
 * others fetch it while it is taken: the other warps, or, if it is large, the helpers. Half of the
 * descriptor may still be old: what they read must at least lie within the payload region. <half>
 * gets what was read. Returns, on lane <lead>, whether slot, length and payload fit.
 */
static __device__ bool announce_first(const struct gpu_loop *g, const struct before_look *before,
				      uint32_t link_number, struct turn *t, struct bytes16 seen,
				      uint32_t lead, struct bytes16 half[2])
{
	uint32_t from = lead & ~(QUARTERS - 1), slot, length, payload;
	struct gpu_published told;
	bool fits, free, ahead;

	half[0].low = __shfl_sync(ALL_LANES, seen.low, from);
	half[1].low = __shfl_sync(ALL_LANES, seen.low, from + 1);
	half[0].high = __shfl_sync(ALL_LANES, seen.high, from);
	half[1].high = __shfl_sync(ALL_LANES, seen.high, from + 1);
	slot = (uint32_t)half[0].low;
	length = (uint32_t)(half[0].low >> 32);
	payload = (uint32_t)half[1].low;
	fits = (slot < before->slot_count) & (length <= g->max_request) &
	       ring_payload_fits(slot, payload, length, before->stride, before->room_at,
				 before->room);
	/* While helpers still read the replies of the batch before, nothing may be fetched to where
	 * these may lie. */
	free = !before->short_ahead || may_post(t);
	ahead = before->may_ahead & fits & free & (length > QUICK_MAX);
	told = {before->ahead, length, before->payloads + (uint64_t)payload * RING_ALIGNMENT};
	/* Relaxed: what helpers read is what the NIC has written, and they acquire. */
	if (threadIdx.x == lead && ahead)
		relaxed_gpu(&g->state->published, told);
	__syncwarp(); /* all lanes have read first.announced */
	if (threadIdx.x == lead)
		t->first = (struct first_seen){
			.announced = true,
			.link = fits && free ? link_number : GPU_NO_LINK,
			.slot = slot,
			.length = length,
			.payload = payload,
			.position = seen.high - 1,
			.half = {half[0], half[1]},
		};
	meet_ahead(t, before->short_ahead);
	if (threadIdx.x == lead && ahead) {
		t->may_start_ahead = false;
		t->ahead = t->first;
		t->published = told;
	}
	return fits;
}

/* Warp 0: announce that there is no first request to fetch. */
static __device__ void announce_none(struct turn *t)
{
	__syncwarp(); /* all lanes have read first.announced */
	if (threadIdx.x == 0)
		t->first = (struct first_seen){.announced = true, .link = GPU_NO_LINK};
	meet_ahead(t, t->short_ahead);
}

/* Results of poll_descriptors(): descriptors that it may have left in the rings. */
#define POLL_MORE  1u /* some link had as many descriptors as were read */
#define POLL_LEFT  2u /* not all of them fitted into the batch, how many is in the bits above; or some
			 link cannot answer more */
#define POLL_SHIFT 2

/* POLL_* where marks of <there> are there and <taken> requests were taken. */
static __device__ uint32_t poll_left(uint32_t there, uint32_t taken)
{
	uint32_t left = __popc(there) - taken;

	return left > 0 ? POLL_LEFT | left << POLL_SHIFT : 0;
}

/* A lane's part of a poll: a quarter of one descriptor of one link. */
struct poll_lane {
	struct agent_link *link;
	uint32_t link_number;
	bool has_link;        /* false: this lane's link does not exist, it only helps others */
	uint32_t offset;      /* of its descriptor, from link->position on */
	uint32_t part;        /* number of the quarter */
	uint32_t first_lane;  /* the first lane of the same link */
	uint32_t link_lanes;  /* mask of the lanes of the same link */
	uint32_t lower_lanes; /* mask of the lanes before this one */
};

static __device__ struct poll_lane poll_lane_of(const struct gpu_loop *g, struct block0 *b,
						uint32_t base, uint32_t shift)
{
	uint32_t lane = threadIdx.x, index = lane / QUARTERS, part = lane % QUARTERS;
	uint32_t group = index >> shift, offset = index & ((1u << shift) - 1), l;
	uint32_t below = (1u << lane) - 1, first_lane = group << shift << 2;
	uint32_t lanes = (shift == 3 ? ALL_LANES : ((1u << (4u << shift)) - 1) << first_lane);
	bool has_link = base + group < g->n_links;

	l = b->carried.first_link + base + (has_link ? group : 0);
	l -= l >= g->n_links ? g->n_links : 0;
	return (struct poll_lane){
		.link = &b->links[l],
		.link_number = l,
		.has_link = has_link,
		.offset = offset,
		.part = part,
		.first_lane = first_lane,
		.link_lanes = lanes,
		.lower_lanes = below,
	};
}

/* POLL_MORE if some link had as many descriptors as were read, which are <there>; else 0. */
static __device__ uint32_t poll_more(const struct poll_lane *p, uint32_t there)
{
	uint32_t marks = MARK_LANES & p->link_lanes;

	return __any_sync(ALL_LANES, p->has_link && (there & marks) == marks) ? POLL_MORE : 0;
}

static __device__ struct before_look before_look(const struct gpu_loop *g, const struct block0 *b,
						 const struct turn *t, const struct poll_lane *p,
						 bool may_wait)
{
	const struct agent_link *link = p->link;
	bool reads = p->part == QUARTERS - 1 && p->has_link && p->offset < link->slot_count;

	return (struct before_look){
		.slot_count = link->slot_count,
		.stride = link->stride,
		.room_at = link->room_at,
		.room = link->room,
		.mark = reads ? link->position + p->offset + 1 : 0,
		.last_poll = b->carried.last_poll,
		.first = may_wait && !t->first.announced,
		.short_ahead = t->short_ahead,
		.may_ahead = may_wait && may_start_ahead(g, t),
		.ahead = publication(t, PUBLISH_AHEAD, PUBLISH_HAS_AHEAD),
		.payloads = link->payloads,
	};
}

/*
 * While a look crosses the bus: the mark that the lane looks for, or 0 if its link could not answer
 * the request. <mark> is 0 on lanes that look for none. <lacks> gets POLL_LEFT if some link may have
 * requests that it cannot answer, else 0.
 */
static __device__ uint64_t mark_with_room(const struct block0 *b, const struct turn *t,
					  const struct poll_lane *p, uint64_t mark, uint32_t *lacks)
{
	bool lane_lacks = mark != 0 && p->offset >= spare_now(b, t, p->link_number);
	/* While others post, <built> is theirs. */
	bool may_have = lane_lacks &&
			(t->unposted || p->link->built + p->offset < p->link->slot_count);

	*lacks = (uint32_t)computed(__any_sync(ALL_LANES, may_have) ? POLL_LEFT : 0);
	return computed(lane_lacks ? 0 : mark);
}

/* True on the lanes that take the request whose mark they have read. <there>: the lanes whose mark
 * is there. Lanes take requests up to the first missing mark, and while the batch has room. */
static __device__ bool takes_request(const struct gpu_loop *g, const struct turn *t,
				     const struct poll_lane *p, uint32_t there, bool mine)
{
	uint32_t run = __ffs(~(there >> p->first_lane | ~MARK_LANES)) - 1, takers;

	mine = mine && threadIdx.x - p->first_lane <= run;
	takers = __ballot_sync(ALL_LANES, mine);
	return mine && t->n + __popc(takers & p->lower_lanes) < g->max_batch &&
	       p->link->built + __popc(takers & p->lower_lanes & p->link_lanes) <
		       p->link->slot_count;
}

/* Make request <r> of the descriptor that four lanes have <seen>, on the lane that takes it
 * (<mine>); all lanes call it. False when it has no valid slot, so that nothing can answer it. */
static __device__ bool make_request(const struct gpu_loop *g, const struct poll_lane *p, struct bytes16 seen,
				    const struct look *at, bool mine, uint32_t takers,
				    struct gpu_request *r)
{
	uint32_t first_part = threadIdx.x & ~(QUARTERS - 1), sent_us;
	struct bytes16 first, second;
	bool good = false;

	first.low = __shfl_sync(ALL_LANES, seen.low, first_part);
	first.high = __shfl_sync(ALL_LANES, seen.high, first_part);
	second.low = __shfl_sync(ALL_LANES, seen.low, first_part + 1);
	second.high = __shfl_sync(ALL_LANES, seen.high, first_part + 1);
	sent_us = (uint32_t)__shfl_sync(ALL_LANES, seen.high, first_part + 2);
	/* The last request of the link that is taken has waited least. */
	if (mine && (takers & p->link_lanes) >> threadIdx.x == 1)
		ring_clock_note(&p->link->clock, sent_us, at->now_us, at->most_us);
	__syncwarp();
	if (mine) {
		r->waited_us =
			ring_clock_waited(&p->link->clock, sent_us, at->now_us, at->most_us);
		r->sequence = seen.high;
		r->seen_ns = at->now;
		r->link = p->link_number;
		parse_descriptor(g, p->link, first, second, r);
		/* Half of the descriptor may have been old: read it again before the request is
		 * called bad. */
		if (r->status != RING_OK)
			reread_descriptor(g, p->link, r);
		good = r->slot != GPU_NO_SLOT;
	}
	return good;
}

static __device__ uint32_t deadline_of(const struct gpu_request *r)
{
	return r->deadline_us == 0             ? UINT32_MAX
	       : r->deadline_us > r->waited_us ? r->deadline_us - r->waited_us
					       : 0;
}

/*
 * Warp 0: announce and take the first request that a look has found, and only that one, as the first
 * of a batch; lane <lead> has read its mark. It does what announce_first(), make_request() and
 * add_requests() do, with one lane and few words between the warp's lanes: most requests come alone,
 * and each step is a trip through shared memory. False when it is only announced: half of its
 * descriptor may have been old, which the others read again before they call it bad.
 */
static __device__ bool take_only(const struct gpu_loop *g, struct turn *t,
				 const struct poll_lane *p, const struct before_look *before,
				 struct bytes16 seen, uint32_t lead, const struct look *at)
{
	struct agent_link *link = p->link;
	struct bytes16 half[2];
	uint32_t sent_us = (uint32_t)__shfl_sync(ALL_LANES, seen.high, lead - 1);
	bool fits = announce_first(g, before, p->link_number, t, seen, lead, half);

	fits = fits && (uint32_t)(half[0].low >> 32) >= g->min_request;
	if (!__any_sync(ALL_LANES, threadIdx.x == lead && fits))
		return false;
	if (threadIdx.x == lead) {
		struct gpu_request r = {
			.sequence = seen.high,
			.seen_ns = at->now,
			.slot = (uint32_t)half[0].low,
			.length = (uint32_t)(half[0].low >> 32),
			.deadline_us = (uint32_t)half[1].high,
			.crc32 = (uint32_t)(half[1].high >> 32),
			.payload = (uint32_t)half[1].low,
			.reply = (uint32_t)(half[1].low >> 32),
			.link = p->link_number,
			.flags = (uint32_t)(half[0].high >> 32),
			.waited_us = ring_clock_note(&link->clock, sent_us, at->now_us, at->most_us),
			.status = RING_OK,
		};

		link->position = r.sequence;
		link->built = 1;
		t->request[0] = r;
		t->n = 1;
		t->soonest_us = deadline_of(&r);
		t->needs_recheck = r.flags != 0;
	}
	__syncwarp();
	return true;
}

/* Add the request of each <good> lane to the batch; <takers> have taken one, good or not. */
static __device__ void add_requests(struct block0 *b, struct turn *t, const struct poll_lane *p,
				    struct gpu_request *r, uint32_t takers, bool good)
{
	uint32_t added = __ballot_sync(ALL_LANES, good), soonest;

	if (good) {
		r->ahead = p->link->built + __popc(added & p->lower_lanes & p->link_lanes);
		r->row = t->n + __popc(added & p->lower_lanes);
		t->request[r->row] = *r;
		if (r->status != RING_OK || r->flags != 0)
			t->needs_recheck = true;
	}
	soonest = __reduce_min_sync(ALL_LANES, good ? deadline_of(r) : UINT32_MAX);
	if (p->has_link && p->offset == 0 && p->part == 0) {
		p->link->position += __popc(takers & p->link_lanes);
		p->link->built += __popc(added & p->link_lanes);
	}
	if (threadIdx.x == 0) {
		t->n += __popc(added);
		t->soonest_us = min(t->soonest_us, soonest);
		b->carried.stats.bad += __popc(takers) - __popc(added);
	}
	__syncwarp();
}

/*
 * Warp 0: read the next 2^<shift> descriptors of as many links as the warp has lanes for, four
 * lanes per descriptor, and take those that are there. Links are counted from <base> on, beginning
 * with <first_link>. <stop> gets the host's stop word if this look
 * <asks_host>, else 0. Returns POLL_*.
 */
static __device__ uint32_t poll_descriptors(const struct gpu_loop *g, struct block0 *b,
					    struct turn *t, uint32_t base, uint32_t shift,
					    uint64_t now, uint32_t *stop, bool may_wait,
					    bool asks_host)
{
	struct poll_lane p = poll_lane_of(g, b, base, shift);
	struct before_look before = before_look(g, b, t, &p, may_wait);
	uint32_t there, lead, takers, lacks;
	struct look at = {.now = now};
	struct gpu_request r = {};
	struct bytes16 seen, half[2];
	bool mine, good;
	struct completion next;

	/* The stop word and the next completion cross the bus beside the descriptors. */
	*stop = relaxed_sys(&g->shared->stop, asks_host, 0);
	next = load_completion(p.link, asks_host);
	seen = relaxed_quarter(descriptor_at(p.link, p.link->position + p.offset), p.part);
	/* Before the fence, at which the warp waits. */
	at.now_us = computed(now / 1000);
	at.most_us = computed((now - before.last_poll) / 1000);
	before.mark = mark_with_room(b, t, &p, before.mark, &lacks);
	fence_acquire_sys();
	mine = (before.mark != 0) & (seen.high == before.mark);
	there = __ballot_sync(ALL_LANES, mine);
	if (there == 0 || lacks != 0) {
		/* The rings are empty, or a queue is full: time to take a completion. */
		if (sees_posted(t) && p.has_link && p.offset == 0 && p.part == 0)
			take_loaded(b, p.link, &next);
		__syncwarp();
		if (there == 0)
			return lacks;
	}
	lead = __ffs(there) - 1;
	if (before.first && (there == 1u << lead || g->max_batch == 1) &&
	    (lead / QUARTERS & ((1u << shift) - 1)) == 0) {
		if (take_only(g, t, &p, &before, seen, lead, &at))
			return poll_more(&p, there) | poll_left(there, 1) | lacks;
	} else if (before.first) {
		announce_first(g, &before, p.link_number, t, seen, lead, half);
	}
	mine = takes_request(g, t, &p, there, mine);
	takers = __ballot_sync(ALL_LANES, mine);
	good = make_request(g, &p, seen, &at, mine, takers, &r);
	add_requests(b, t, &p, &r, takers, good);
	return poll_more(&p, there) | poll_left(there, __popc(takers)) | lacks;
}

/* A lane's link where each lane has one descriptor of WINDOWS groups as poll_lane_of() numbers
 * them. */
static __device__ struct poll_lane wide_lane_of(const struct gpu_loop *g, struct block0 *b,
						uint32_t base, uint32_t shift)
{
	uint32_t lane = threadIdx.x, index = lane % DESCRIPTORS_PER_POLL;
	uint32_t group = index >> shift, l;
	uint32_t lanes = ((1u << (1u << shift)) - 1) << (group << shift);
	bool has_link = base + group < g->n_links;

	l = b->carried.first_link + base + (has_link ? group : 0);
	l -= l >= g->n_links ? g->n_links : 0;
	return (struct poll_lane){
		.link = &b->links[l],
		.link_number = l,
		.has_link = has_link,
		.offset = (lane / DESCRIPTORS_PER_POLL << shift) + (index & ((1u << shift) - 1)),
		.part = 0,
		.first_lane = group << shift,
		.link_lanes = lanes * 0x01010101u,
		.lower_lanes = (1u << lane) - 1,
	};
}

static __device__ uint64_t from_lane(uint64_t v, uint32_t lane)
{
	return __shfl_sync(ALL_LANES, v, lane);
}

/* Give each lane the descriptor of its own, of those that four lanes each have <seen>: its first
 * half and its mark. */
static __device__ uint64_t own_descriptor(const struct bytes16 seen[WINDOWS],
					  struct bytes16 half[2], uint32_t *sent_us)
{
	uint32_t from = threadIdx.x % DESCRIPTORS_PER_POLL * QUARTERS;
	uint64_t mark = 0;

#pragma unroll
	for (uint32_t w = 0; w < WINDOWS; w++) {
		struct bytes16 first = {from_lane(seen[w].low, from),
					from_lane(seen[w].high, from)};
		struct bytes16 second = {from_lane(seen[w].low, from + 1),
					 from_lane(seen[w].high, from + 1)};
		struct bytes16 third = {0, from_lane(seen[w].high, from + 2)};
		uint64_t last = from_lane(seen[w].high, from + QUARTERS - 1);

		if (w == threadIdx.x / DESCRIPTORS_PER_POLL) {
			half[0] = first;
			half[1] = second;
			*sent_us = stamp_of(third);
			mark = last;
		}
	}
	return mark;
}

/* Make request <r> of a lane's own descriptor. False when it has no valid slot. */
static __device__ bool own_request(const struct gpu_loop *g, const struct poll_lane *p,
				   const struct bytes16 half[2], uint64_t mark, uint64_t now,
				   struct gpu_request *r)
{
	r->sequence = mark;
	r->seen_ns = now;
	r->link = p->link_number;
	parse_descriptor(g, p->link, half[0], half[1], r);
	if (r->status != RING_OK) /* as make_request() does */
		reread_descriptor(g, p->link, r);
	return r->slot != GPU_NO_SLOT;
}

/*
 * Warp 0, as poll_descriptors(), where the last batch was large: WINDOWS times as many descriptors
 * cross the bus together, and each lane takes one. No request is announced: there are too many for
 * the shortcuts. Returns POLL_*, and the host's stop word in the upper half.
 */
static __device__ uint64_t poll_wide(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				     uint32_t base, uint32_t shift, uint64_t now, bool may_wait)
{
	struct poll_lane quarter = poll_lane_of(g, b, base, shift), p;
	struct bytes16 seen[WINDOWS], half[2];
	uint32_t there, takers, before, stop, lacks, sent_us = 0;
	struct gpu_request r = {};
	struct completion next;
	bool mine, good = false;
	uint64_t mark, wanted;

	stop = relaxed_sys(&g->shared->stop);
	next = load_completion(quarter.link, true);
#pragma unroll
	for (uint32_t w = 0; w < WINDOWS; w++)
		seen[w] = relaxed_quarter(
			descriptor_at(quarter.link,
				      quarter.link->position + (w << shift) + quarter.offset),
			quarter.part);
	p = wide_lane_of(g, b, base, shift);
	mark = p.has_link && p.offset < p.link->slot_count ? p.link->position + p.offset + 1 : 0;
	wanted = mark_with_room(b, t, &p, mark, &lacks);
	fence_acquire_sys();
	mark = own_descriptor(seen, half, &sent_us);
	mine = (wanted != 0) & (mark == wanted);
	there = __ballot_sync(ALL_LANES, mine);
	if (there == 0)
		return (uint64_t)stop << 32 | lacks;
	if (may_wait && !t->first.announced)
		announce_none(t);
	/* Under load no look finds the rings empty. */
	if (may_wait && sees_posted(t) && quarter.has_link && quarter.offset == 0 &&
	    quarter.part == 0)
		take_loaded(b, quarter.link, &next);
	/* Up to the first missing mark, and while the batch has room. */
	mine = mine && (~there & p.link_lanes & p.lower_lanes) == 0;
	takers = __ballot_sync(ALL_LANES, mine);
	before = takers & p.lower_lanes;
	mine = mine && t->n + __popc(before) < g->max_batch &&
	       p.link->built + __popc(before & p.link_lanes) < p.link->slot_count;
	takers = __ballot_sync(ALL_LANES, mine);
	/* The last request of the link that is taken has waited least. */
	if (mine && (takers & p.link_lanes & ~p.lower_lanes) == 1u << threadIdx.x)
		ring_clock_note(&p.link->clock, sent_us, now / 1000, most_us(b, now));
	__syncwarp();
	if (mine) {
		r.waited_us = ring_clock_waited(&p.link->clock, sent_us, now / 1000,
						most_us(b, now));
		good = own_request(g, &p, half, mark, now, &r);
	}
	add_requests(b, t, &p, &r, takers, good);
	mine = p.has_link && (there & p.link_lanes) == p.link_lanes;
	return (uint64_t)stop << 32 | (__any_sync(ALL_LANES, mine) ? POLL_MORE : 0) |
	       poll_left(there, __popc(takers)) | lacks;
}

/* Requests that wait in the rings, as far as the poll knows: it has <taken> of the <unread> known
 * before, and left <left> that it saw. count_unread() counts the others, for a batch that is
 * gathered. */
static __device__ uint32_t unread_left(uint32_t unread, uint32_t taken, uint32_t missed,
				       uint32_t left)
{
	if (missed == 0)
		return 0;
	unread -= min(unread, taken);
	return max(unread, left);
}

/* Binary logarithm of the descriptors that a warp reads of each link at once. */
static __device__ uint32_t poll_shift(const struct gpu_loop *g)
{
	uint32_t shift = 3;

	while (shift > 0 && g->n_links << shift > DESCRIPTORS_PER_POLL)
		shift--;
	return shift;
}

/* True when the batch is complete: it is full, or its first request has waited for
 * batch_timeout_ns by <now>, and there is no <more> to take. */
static __device__ bool is_batch(const struct gpu_loop *g, const struct turn *t, bool more,
				uint64_t now, bool may_wait)
{
	return t->n == g->max_batch ||
	       (t->n > 0 && !more &&
		(!may_wait || now - t->request[0].seen_ns >= g->batch_timeout_ns));
}

/* Warp 0, before it polls: look with poll_wide() as long as that finds many. Leaves in <t> what the
 * last look has found. True when the batch is complete, or the host said stop. Not inlined: it
 * would take registers from what a request that comes alone waits for. */
static __device__ __noinline__ bool look_wide(const struct gpu_loop *g, struct block0 *b,
					      struct turn *t, uint32_t shift, bool may_wait)
{
	uint32_t before, missed, left, stop = 0;
	uint64_t now, both;
	bool done, more;

	do {
		before = t->n;
		now = __shfl_sync(ALL_LANES, globaltimer_ns(), 0);
		if (may_wait && now >= b->carried.next_heartbeat && sees_posted(t))
			post_heartbeats(g, b, t, now);
		missed = left = 0;
		for (uint32_t base = 0; base < g->n_links; base += DESCRIPTORS_PER_POLL >> shift) {
			both = poll_wide(g, b, t, base, shift, now, may_wait);
			missed |= (uint32_t)both & (POLL_MORE | POLL_LEFT);
			left += (uint32_t)both >> POLL_SHIFT;
			stop = both >> 32;
		}
		more = missed & POLL_MORE && t->n > before;
		done = is_batch(g, t, more, now, may_wait) ||
		       (may_wait && __any_sync(ALL_LANES, stop));
	} while (more && !done);
	__syncwarp();
	if (threadIdx.x == 0)
		t->wide = (struct wide_look){now, missed, left, stop};
	__syncwarp();
	return done;
}

/* Warp 0: poll until there is a batch: it is full, or its first request has waited for
 * batch_timeout_ns. Unless it <may_wait>, take what is there. Returns true when some request may
 * have waited longer than CANCEL_AGE_NS. */
static __device__ bool poll_until_batch(const struct gpu_loop *g, struct block0 *b, struct turn *t,
					bool may_wait)
{
	uint32_t shift = poll_shift(g), stop = 0, missed = 0, left = 0, result, first = t->n;
	uint64_t last_poll = b->carried.last_poll, next_ask = b->carried.next_ask, now = 0;
	uint64_t empty_at = 0; /* the rings have been empty since; 0: they were not seen so */
	bool on_gpu = b->links[0].memory_on_gpu, calm, asks_host, more, done = false;

	if (__any_sync(ALL_LANES, b->carried.wide != 0)) {
		done = look_wide(g, b, t, shift, may_wait);
		now = t->wide.now;
		missed = t->wide.missed;
		left = t->wide.left;
		if (may_wait && t->wide.stop != 0) {
			if (threadIdx.x == 0)
				t->stopped = true;
			return false;
		}
	}
	while (!done) {
		uint32_t before = t->n;

		/* All lanes use the same time. */
		now = __shfl_sync(ALL_LANES, globaltimer_ns(), 0);
		if (may_wait && now >= b->carried.next_heartbeat && sees_posted(t))
			post_heartbeats(g, b, t, now);
		/* A stage, which may not wait, leaves the question to the turn: it ignores stops. */
		calm = empty_at != 0 && now - empty_at >= CALM_NS;
		asks_host = (!on_gpu && !calm) || (may_wait && now >= next_ask);
		next_ask = asks_host ? now + ASK_HOST_NS : next_ask;
		missed = left = 0;
		for (uint32_t base = 0; base < g->n_links; base += DESCRIPTORS_PER_POLL >> shift) {
			result = poll_descriptors(g, b, t, base, shift, now, &stop, may_wait,
						  asks_host);
			missed |= result & (POLL_MORE | POLL_LEFT);
			left += result >> POLL_SHIFT;
		}
		if (may_wait && __any_sync(ALL_LANES, stop)) {
			__syncwarp();
			if (threadIdx.x == 0)
				t->stopped = true;
			return false;
		}
		/* A link has no more requests than slots: descriptors beyond that wait. */
		more = missed & POLL_MORE && t->n > before;
		if (t->n == g->max_batch)
			break;
		if (t->n == 0) {
			if (empty_at == 0 && sees_posted(t)) {
				publish_stats(g, b);
				if (threadIdx.x == 0 && missed == 0)
					b->carried.unread = 0;
				empty_at = now;
			}
			last_poll = missed == 0 ? now : last_poll;
			if (!may_wait)
				break;
		}
		done = is_batch(g, t, more, now, may_wait);
	}
	__syncwarp();
	/* A request that comes now was not there at <last_poll>, unless a poll left some behind. */
	if (threadIdx.x == 0) {
		b->carried.last_poll = missed == 0 ? now : last_poll;
		b->carried.next_ask = next_ask;
		b->carried.wide = t->n - first > DESCRIPTORS_PER_POLL;
		t->left_some = missed != 0;
		b->carried.unread = unread_left(b->carried.unread, t->n - first, missed, left);
		if (t->n > 0 && now + CHOICE_NS - t->request[0].seen_ns > t->soonest_us * 1000ull)
			t->needs_recheck = true;
	}
	return now - last_poll > CANCEL_AGE_NS;
}

/* Begin the batch with what the stage took while the last one ran. Deadlines may have passed since.
 */
static __device__ void begin_with_staged(const struct gpu_loop *g, struct block0 *b, struct turn *t)
{
	copy_words(t->request, g->staged, t->n_staged, WARP);
	for (uint32_t l = threadIdx.x; l < g->n_links; l += WARP) {
		b->links[l].built = b->links[l].staged;
		b->links[l].staged = 0;
	}
	__syncwarp();
	if (threadIdx.x == 0) {
		t->n = t->n_staged;
		t->n_staged = g->state->n_staged = 0;
		t->needs_recheck = true;
	}
	__syncwarp();
}

/* One thread: looks begin behind the link of the last request of the batch. One that always fills the
 * batch must not come again before the one behind it. */
static __device__ void look_behind(const struct gpu_loop *g, struct block0 *b, const struct turn *t)
{
	uint32_t next;

	if (t->n == 0)
		return;
	next = t->request[t->n - 1].link + 1;
	b->carried.first_link = next < g->n_links ? next : 0;
}

/* Warp 0. Returns whether cancel words must be read (poll_until_batch()). */
static __device__ bool take_batch(const struct gpu_loop *g, struct block0 *b, struct turn *t)
{
	bool aged;

	if (threadIdx.x == 0) {
		look_behind(g, b, t);
		t->n = 0;
		t->soonest_us = UINT32_MAX;
		t->needs_recheck = t->any_crc = t->first.announced = false;
	}
	__syncwarp();
	sees_posted(t);
	if (t->n_staged > 0) {
		begin_with_staged(g, b, t);
		announce_none(t); /* the first request is taken already */
	}
	aged = poll_until_batch(g, b, t, true);
	__syncwarp();
	if (!t->first.announced)
		announce_none(t);
	if (threadIdx.x == 0) {
		if (t->stopped)
			t->n = 0;
		t->rows = t->n;
	}
	__syncwarp();
	return aged;
}

#endif
