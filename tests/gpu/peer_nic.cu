/* SPDX-License-Identifier: BSD-3-Clause */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#include "peer_nic.h"

#define THREADS 256
/* Blocks that place and read the payload of a request that is alone. */
#define ASK_BLOCKS 32
/* 16-byte loads that a thread has under way. */
#define LOADS 4
/* No reply within this, ns: something is broken. */
#define PATIENCE_NS 10000000000ull
/* A NIC that keeps no order is this late with a payload, ns. */
#define LATE_NS 20000u

/* A request that waits for its reply. */
struct waiting {
	uint64_t sequence; /* 0: none */
	uint32_t length, shift;
	bool cancelled;
};

struct peer_nic {
	int gpu, nic;
	uint32_t slots;
	cudaStream_t stream;
	uint8_t *source;	 /* random bytes, the NIC's memory */
	struct waiting *waiting; /* [PEER_LINKS_MAX * slots] */
	uint32_t *free;		 /* likewise: slots without a request, a queue */
	struct board *board;	 /* of the blocks of one request */
	/* pinned */
	struct peer_link *links;     /* [PEER_LINKS_MAX] */
	struct peer_result *results; /* [PEER_LINKS_MAX] */
	struct peer_took *took;
	uint32_t took_room;
};

/* Shared by all blocks of peer_ask_kernel(). */
struct board {
	uint32_t arrived;
	uint32_t stop;
	uint64_t local; /* of the reply */
	unsigned long long wrong_bytes;
};

/* --- reading and writing across a bus ----------------------------------------------------------
 */

struct alignas(16) bytes16 {
	uint64_t low, high;
};

static __device__ uint64_t now_ns()
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
	return t;
}

static __device__ struct bytes16 load_16(const void *at)
{
	struct bytes16 v;

	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
		     : "=l"(v.low), "=l"(v.high)
		     : "l"(at)
		     : "memory");
	return v;
}

static __device__ uint64_t load_8(const void *at)
{
	uint64_t v;

	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory");
	return v;
}

static __device__ uint64_t acquire_8(const void *at)
{
	uint64_t v;

	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory");
	return v;
}

static __device__ void store_16(void *at, uint64_t low, uint64_t high)
{
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(low), "l"(high)
		     : "memory");
}

static __device__ void store_8(void *at, uint64_t v)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(v) : "memory");
}

/* Thread <me> of <all> places its part of <n> bytes; what it has written is there when it returns. */
static __device__ void place(uint8_t *to, const uint8_t *from, uint32_t n, uint32_t me, uint32_t all)
{
	uint32_t whole = n / 16 * 16, step = all * 16;
	struct bytes16 v[LOADS];

	for (uint32_t i = me * 16; i < whole; i += LOADS * step) {
		for (uint32_t k = 0; k < LOADS; k++)
			if (i + k * step < whole)
				v[k] = *(const struct bytes16 *)(from + i + k * step);
		for (uint32_t k = 0; k < LOADS; k++)
			if (i + k * step < whole)
				store_16(to + i + k * step, v[k].low, v[k].high);
	}
	if (whole + me < n)
		((volatile uint8_t *)to)[whole + me] = from[whole + me];
	__threadfence_system();
}

static __device__ uint32_t differences(struct bytes16 a, const uint8_t *from)
{
	const struct bytes16 *b = (const struct bytes16 *)from;
	uint64_t low = a.low ^ b->low, high = a.high ^ b->high;
	uint32_t n = 0;

	if ((low | high) == 0)
		return 0;
	for (int i = 0; i < 64; i += 8)
		n += (low >> i & 0xff) != 0, n += (high >> i & 0xff) != 0;
	return n;
}

/* Bytes of its part that thread <me> of <all> finds to be others than at <from>. */
static __device__ uint32_t compare(const uint8_t *at, const uint8_t *from, uint32_t n, uint32_t me,
				   uint32_t all)
{
	uint32_t whole = n / 16 * 16, step = all * 16, wrong = 0;
	struct bytes16 v[LOADS];

	for (uint32_t i = me * 16; i < whole; i += LOADS * step) {
		for (uint32_t k = 0; k < LOADS; k++)
			if (i + k * step < whole)
				v[k] = load_16(at + i + k * step);
		for (uint32_t k = 0; k < LOADS; k++)
			if (i + k * step < whole)
				wrong += differences(v[k], from + i + k * step);
	}
	if (whole + me < n)
		wrong += ((const volatile uint8_t *)at)[whole + me] != from[whole + me];
	return wrong;
}

/* --- requests ----------------------------------------------------------------------------------
 */

static __device__ uint32_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)(x ^ x >> 31);
}

/* Where in the random bytes the payload of this request begins. */
static __device__ uint32_t shift_of(uint32_t link, uint64_t position)
{
	return mix(position * PEER_LINKS_MAX + link + 1) % (PEER_SHIFTS / 16) * 16;
}

static __device__ uint8_t *payload_of(const struct peer_link *l, uint32_t slot)
{
	return l->payloads + l->first + slot * l->tile;
}

/* Places of replies are in another order than slots, so that a loop that counts by slots is
 * noticed. */
static __device__ uint64_t place_of(const struct peer_link *l, uint32_t slot)
{
	return (uint64_t)(l->slots - 1 - slot) * l->place;
}

/* One thread: all of a descriptor but its last 16 bytes, which have the mark. */
static __device__ void describe(struct peer_link *l, uint32_t slot, uint32_t length,
				uint32_t deadline_us)
{
	uint8_t *at = (uint8_t *)&l->descriptors[l->position & (l->slots - 1)];
	uint64_t payload = (l->first + slot * l->tile) / RING_ALIGNMENT;
	uint64_t reply = place_of(l, slot) / RING_ALIGNMENT;

	store_16(at, slot | (uint64_t)length << 32, 0);
	store_16(at + 16, payload | reply << 32, deadline_us);
	store_16(at + 32, 0, 0);
	__threadfence_system();
}

/* The mark. */
static __device__ void mark(struct peer_link *l)
{
	uint8_t *at = (uint8_t *)&l->descriptors[l->position & (l->slots - 1)];

	l->position++;
	store_16(at + 48, 0, l->position);
}

/* --- replies -----------------------------------------------------------------------------------
 */

/* A message that the loop has posted. */
struct message {
	uint64_t local;
	uint32_t length, imm;
	bool signal;
};

/* Read and check the next WQE. False: no right poster builds it. */
static __device__ bool read_wqe(const struct peer_link *l, struct message *m)
{
	const uint8_t *at = (const uint8_t *)&l->wqes[l->next & (l->wqe_count - 1)];
	struct bytes16 control = load_16(at), remote = load_16(at + 16), data = load_16(at + 32);
	uint32_t slot;

	if (mlx5_be32((uint32_t)control.low) != ((uint32_t)l->next << 8 | MLX5_OP_RDMA_WRITE_IMM) ||
	    mlx5_be32((uint32_t)remote.high) != l->rkey)
		return false;
	m->imm = mlx5_be32((uint32_t)(control.high >> 32));
	m->signal = ((uint32_t)control.high >> 24 & MLX5_CE_ALWAYS) != 0;
	m->length = 0;
	if (m->imm & RING_IMM_HEARTBEAT)
		return mlx5_be32((uint32_t)(control.low >> 32)) == (l->qpn << 8 | 2);
	slot = ring_imm_slot(m->imm);
	m->length = mlx5_be32((uint32_t)data.low);
	m->local = mlx5_be64(data.high);
	return mlx5_be32((uint32_t)(control.low >> 32)) == (l->qpn << 8 | 3) && slot < l->slots &&
	       mlx5_be64(remote.low) == l->remote + place_of(l, slot) &&
	       mlx5_be32((uint32_t)(data.low >> 32)) == l->lkey &&
	       m->local == l->replies + (uint64_t)slot * l->reply_stride;
}

/* The WQE is done: tell the loop, if it wants to know. */
static __device__ void complete(struct peer_link *l, bool signal)
{
	struct mlx5_cqe *cqe = &l->cqes[l->cq_index & (l->wqe_count - 1)];
	uint64_t owner = (l->cq_index & l->wqe_count) != 0;
	uint64_t last = mlx5_words(mlx5_be32(l->qpn), 0) |
			(uint64_t)(l->next >> 8 | (l->next & 0xff) << 8) << 32;

	l->next++;
	if (!signal)
		return;
	__threadfence_system();
	store_8((uint8_t *)cqe + 56,
		last | (owner | (uint64_t)MLX5_POST_CQE_OK << 4) << 56);
	l->cq_index++;
}

static __device__ void fail(struct peer_result *r, uint32_t fault, uint32_t link, uint32_t slot,
			    uint64_t got)
{
	if (r->fault != PEER_FINE)
		return;
	r->fault = fault;
	r->link = link;
	r->slot = slot;
	r->got = got;
}

/* One thread: check a reply's header and status. True: its bytes are to be compared. */
static __device__ bool check_header(struct peer_result *r, uint32_t link, const struct message *m,
				    const struct waiting *w)
{
	uint32_t slot = ring_imm_slot(m->imm), status = ring_imm_status(m->imm);
	const uint8_t *at = (const uint8_t *)m->local;
	uint64_t sequence = load_8(at), length = load_8(at + 32);
	uint32_t want = status == RING_OK ? w->length : 0;

	if (w->sequence == 0)
		fail(r, PEER_SLOT, link, slot, slot);
	else if (status != RING_OK && !(status == RING_CANCELLED && w->cancelled))
		fail(r, PEER_STATUS, link, slot, status);
	else if (sequence != w->sequence || (uint32_t)length != want || (length >> 32 & 0xffff) != 0 ||
		 m->length != sizeof(struct ring_reply) + want)
		fail(r, PEER_HEADER, link, slot, sequence);
	if (r->fault != PEER_FINE)
		return false;
	r->answered++;
	r->cancelled += status == RING_CANCELLED;
	r->missed += status == RING_OK && w->cancelled;
	return status == RING_OK;
}

/* --- many requests at once ---------------------------------------------------------------------
 */

enum step { SEND, CHECK, SKIP, END };

/* A block's shared memory. */
struct block {
	struct peer_link link;
	struct peer_result result;
	struct waiting request; /* that is sent or checked */
	struct message message;
	uint32_t slot;
	enum step step;
	unsigned int wrong;
	/* thread 0's */
	uint64_t sent, head, tail, last;
	uint16_t producer;
};

/* Thread 0: take a free slot for the next request. */
static __device__ void prepare(struct block *b, const struct peer_load *load, uint32_t *free,
			       struct waiting *waiting)
{
	uint64_t position = b->link.position;
	uint32_t random = mix(position ^ (uint64_t)blockIdx.x << 40);

	b->slot = free[b->head++ & (b->link.slots - 1)];
	b->request = {position + 1, load->least + random % (load->most - load->least + 1),
		      shift_of(blockIdx.x, position),
		      load->cancel_each != 0 && position % load->cancel_each == load->cancel_each - 1};
	waiting[b->slot] = b->request;
	b->sent++;
	b->step = SEND;
}

/* Thread 0: read the next WQE. */
static __device__ void inspect(struct block *b, const struct waiting *waiting)
{
	b->step = SKIP;
	if ((uint16_t)(b->producer - b->link.next) > b->link.wqe_count)
		return fail(&b->result, PEER_CQ_FULL, blockIdx.x, 0, b->producer);
	if (!read_wqe(&b->link, &b->message))
		return fail(&b->result, PEER_WQE, blockIdx.x, 0, b->link.next);
	b->last = now_ns();
	if (b->message.imm & RING_IMM_HEARTBEAT)
		return complete(&b->link, b->message.signal);
	b->slot = ring_imm_slot(b->message.imm);
	b->request = waiting[b->slot];
	b->step = check_header(&b->result, blockIdx.x, &b->message, &b->request) ? CHECK : SKIP;
	if (b->step == CHECK || b->result.fault != PEER_FINE)
		return;
	b->step = CHECK; /* a reply without bytes */
	b->request.length = 0;
}

/* Thread 0: what the block does next. */
static __device__ void decide(struct block *b, const struct peer_load *load, uint32_t *free,
			      struct waiting *waiting)
{
	uint64_t patience = load->patience_ms == 0 ? PATIENCE_NS : load->patience_ms * 1000000ull;

	b->wrong = 0;
	b->step = SKIP;
	if (b->result.fault != PEER_FINE || b->result.answered == load->requests) {
		b->step = END;
	} else if (b->producer != b->link.next) {
		inspect(b, waiting);
	} else if (b->sent < load->requests && b->sent - b->result.answered < load->window) {
		prepare(b, load, free, waiting);
	} else {
		b->producer = mlx5_bell_counter(acquire_8(b->link.doorbell));
		/* Before the first bell the word is 0, and so is the first WQE's index. */
		if (b->producer == b->link.next && now_ns() - b->last > patience)
			fail(&b->result, PEER_SILENT, blockIdx.x, 0, b->link.position);
	}
}

/* All threads: WRITE the payload, then the descriptor. */
static __device__ void send(struct block *b, const struct peer_load *load, const uint8_t *source)
{
	uint8_t *to = payload_of(&b->link, b->slot);
	uint64_t start;

	if (!load->backwards)
		place(to, source + b->request.shift, b->request.length, threadIdx.x, THREADS);
	__syncthreads();
	if (threadIdx.x == 0) {
		if (b->request.cancelled)
			store_8(&b->link.cancels[b->slot], b->request.sequence);
		describe(&b->link, b->slot, b->request.length, load->deadline_us);
		mark(&b->link);
		b->last = now_ns();
	}
	__syncthreads();
	if (!load->backwards)
		return;
	start = now_ns();
	while (now_ns() - start < LATE_NS)
		;
	place(to, source + b->request.shift, b->request.length, threadIdx.x, THREADS);
}

/* All threads: compare a reply, and free its slot. */
static __device__ void check(struct block *b, const uint8_t *source, uint32_t *free,
			     struct waiting *waiting)
{
	const uint8_t *at = (const uint8_t *)b->message.local + sizeof(struct ring_reply);
	uint32_t wrong = compare(at, source + b->request.shift, b->request.length, threadIdx.x,
				 THREADS);

	if (wrong > 0)
		atomicAdd(&b->wrong, wrong);
	__syncthreads();
	if (threadIdx.x != 0)
		return;
	b->result.bytes += b->request.length;
	b->result.wrong_bytes += b->wrong;
	b->result.wrong_replies += b->wrong > 0;
	waiting[b->slot].sequence = 0;
	free[b->tail++ & (b->link.slots - 1)] = b->slot;
	complete(&b->link, b->message.signal);
}

static __global__ void peer_load_kernel(struct peer_link *links, struct peer_load load,
					const uint8_t *source, struct waiting *all_waiting,
					uint32_t *all_free, struct peer_result *results)
{
	__shared__ struct block b;
	struct waiting *waiting;
	uint32_t *free;

	if (threadIdx.x == 0) {
		b.link = links[blockIdx.x];
		b.result = {};
		b.sent = b.head = 0;
		b.tail = b.link.slots;
		b.producer = b.link.next;
		b.last = now_ns();
	}
	__syncthreads();
	waiting = all_waiting + blockIdx.x * b.link.slots;
	free = all_free + blockIdx.x * b.link.slots;
	for (uint32_t i = threadIdx.x; i < b.link.slots; i += THREADS) {
		waiting[i].sequence = 0;
		free[i] = (i * 5 + 3) & (b.link.slots - 1);
	}
	do {
		__syncthreads();
		if (threadIdx.x == 0)
			decide(&b, &load, free, waiting);
		__syncthreads();
		if (b.step == SEND)
			send(&b, &load, source);
		else if (b.step == CHECK)
			check(&b, source, free, waiting);
	} while (b.step != END);
	if (threadIdx.x == 0) {
		links[blockIdx.x] = b.link;
		results[blockIdx.x] = b.result;
	}
}

/* --- one request at a time ---------------------------------------------------------------------
 */

/* All threads of all blocks meet; <meetings> counts. */
static __device__ void meet(struct board *board, uint32_t *meetings)
{
	uint32_t all = ++*meetings * gridDim.x, arrived;

	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence_system();
		atomicAdd(&board->arrived, 1);
		do
			asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
				     : "=r"(arrived)
				     : "l"(&board->arrived)
				     : "memory");
		while (arrived < all);
	}
	__syncthreads();
}

/* Wait for the doorbell of the reply. Its time, or 0. */
static __device__ uint64_t await_reply(struct peer_link *l, struct peer_result *r,
				       struct message *m)
{
	uint64_t start = now_ns(), rung;

	for (;;) {
		while (mlx5_bell_counter(acquire_8(l->doorbell)) == l->next)
			if (now_ns() - start > PATIENCE_NS) {
				fail(r, PEER_SILENT, 0, 0, l->position);
				return 0;
			}
		rung = now_ns();
		if (!read_wqe(l, m)) {
			fail(r, PEER_WQE, 0, 0, l->next);
			return 0;
		}
		if (!(m->imm & RING_IMM_HEARTBEAT))
			return rung;
		complete(l, m->signal);
	}
}

static __global__ void peer_ask_kernel(struct peer_link *links, struct peer_ask ask,
				       const uint8_t *source, struct board *board,
				       struct peer_took *took, struct peer_result *results)
{
	uint32_t me = blockIdx.x * THREADS + threadIdx.x, all = gridDim.x * THREADS, meetings = 0;
	struct peer_link l = links[0];
	bool first = me == 0;
	struct peer_result r = {};
	struct waiting w = {};
	struct message m = {};
	uint64_t begin = 0, marked = 0, rung = 0, end;

	for (uint32_t i = 0; i < ask.warm + ask.n; i++) {
		uint32_t slot = (uint32_t)l.position & (l.slots - 1), wrong;

		w = {l.position + 1, ask.length, shift_of(0, l.position), false};
		begin = now_ns();
		place(payload_of(&l, slot), source + w.shift, ask.length, me, all);
		meet(board, &meetings);
		if (first) {
			describe(&l, slot, ask.length, ask.deadline_us);
			marked = now_ns();
			mark(&l);
			rung = await_reply(&l, &r, &m);
			if (rung == 0 || !check_header(&r, 0, &m, &w))
				board->stop = 1;
			board->local = m.local;
		} else {
			l.position++;
		}
		meet(board, &meetings);
		if (*(volatile uint32_t *)&board->stop)
			break;
		wrong = compare((const uint8_t *)*(volatile uint64_t *)&board->local +
					sizeof(struct ring_reply),
				source + w.shift, ask.length, me, all);
		if (wrong > 0)
			atomicAdd(&board->wrong_bytes, (unsigned long long)wrong);
		meet(board, &meetings);
		if (!first)
			continue;
		end = now_ns();
		complete(&l, m.signal);
		if (i >= ask.warm)
			took[i - ask.warm] = {(uint32_t)(marked - begin), (uint32_t)(rung - marked),
					      (uint32_t)(end - rung), (uint32_t)(end - begin)};
		while (now_ns() - end < ask.gap_ns)
			;
	}
	if (!first)
		return;
	r.bytes = r.answered * ask.length;
	r.wrong_bytes = *(volatile unsigned long long *)&board->wrong_bytes;
	r.wrong_replies = r.wrong_bytes > 0;
	links[0] = l;
	results[0] = r;
}

/* --- the host's side ---------------------------------------------------------------------------
 */

const char *peer_nic_lacks(int gpu, int nic, char *how, unsigned int size)
{
	int can = 0, rank = -1, atomics = 0, same = 0, n = 0;

	how[0] = '\0';
	if (cudaGetDeviceCount(&n) != cudaSuccess || n <= gpu || n <= nic) {
		cudaGetLastError();
		return n < 2 ? "there is no second GPU" : "there is no such GPU";
	}
	cudaDeviceGetAttribute(&same, cudaDevAttrCanUseHostPointerForRegisteredMem, nic);
	if (!same)
		return "the second GPU sees the host's memory at other addresses";
	if (gpu == nic) {
		snprintf(how, size, "the loop's own GPU plays the NIC: no order between GPUs is tested");
		return NULL;
	}
	if (cudaDeviceCanAccessPeer(&can, nic, gpu) != cudaSuccess || !can)
		return "the second GPU has no peer access to the first";
	cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, nic, gpu);
	cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, nic, gpu);
	snprintf(how, size, "GPU %d to GPU %d: peer access, performance rank %d, %s", nic, gpu, rank,
		 atomics ? "native atomics, as over NVLink" : "no native atomics, as over PCIe");
	return NULL;
}

static bool failed(cudaError_t ret, const char *what, char *error, unsigned int size)
{
	if (ret == cudaSuccess)
		return false;
	snprintf(error, size, "%s: %s", what, cudaGetErrorString(ret));
	cudaGetLastError();
	return true;
}

static uint8_t *random_bytes(size_t n)
{
	uint64_t *at = (uint64_t *)malloc(n + 8), x = 88172645463325252ull;

	for (size_t i = 0; at != nullptr && i < n / 8 + 1; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		at[i] = x;
	}
	return (uint8_t *)at;
}

static bool allocate(struct peer_nic *n, size_t longest, char *error, unsigned int size)
{
	size_t bytes = PEER_SHIFTS + longest, all = (size_t)PEER_LINKS_MAX * n->slots;
	uint8_t *random = random_bytes(bytes);
	bool bad =
		random == nullptr || failed(cudaMalloc(&n->source, bytes), "memory", error, size) ||
		failed(cudaMemcpy(n->source, random, bytes, cudaMemcpyHostToDevice), "copy", error,
		       size) ||
		failed(cudaMalloc(&n->waiting, all * sizeof(*n->waiting)), "memory", error, size) ||
		failed(cudaMalloc(&n->free, all * sizeof(*n->free)), "memory", error, size) ||
		failed(cudaMalloc(&n->board, sizeof(*n->board)), "memory", error, size) ||
		failed(cudaHostAlloc(&n->links, PEER_LINKS_MAX * sizeof(*n->links),
				     cudaHostAllocPortable),
		       "pinned memory", error, size) ||
		failed(cudaHostAlloc(&n->results, PEER_LINKS_MAX * sizeof(*n->results),
				     cudaHostAllocPortable),
		       "pinned memory", error, size) ||
		failed(cudaHostAlloc(&n->took, n->took_room * sizeof(*n->took),
				     cudaHostAllocPortable),
		       "pinned memory", error, size) ||
		failed(cudaStreamCreateWithFlags(&n->stream, cudaStreamNonBlocking), "stream", error,
		       size);

	free(random);
	return !bad;
}

/* Run one kernel to its end. */
static bool finish(struct peer_nic *n, char *error, unsigned int size)
{
	return !failed(cudaGetLastError(), "the NIC's kernel does not start", error, size) &&
	       !failed(cudaStreamSynchronize(n->stream), "the NIC's kernel", error, size);
}

static bool run_ask(struct peer_nic *n, const struct peer_ask *ask, char *error, unsigned int size)
{
	if (failed(cudaMemsetAsync(n->board, 0, sizeof(*n->board), n->stream), "clear", error, size))
		return false;
	peer_ask_kernel<<<ASK_BLOCKS, THREADS, 0, n->stream>>>(n->links, *ask, n->source, n->board,
							       n->took, n->results);
	return finish(n, error, size);
}

static bool run_load(struct peer_nic *n, uint32_t links, const struct peer_load *load, char *error,
		     unsigned int size)
{
	peer_load_kernel<<<links, THREADS, 0, n->stream>>>(n->links, *load, n->source, n->waiting,
							   n->free, n->results);
	return finish(n, error, size);
}

struct peer_nic *peer_nic_open(int gpu, int nic, uint32_t longest, uint32_t slots, char *error,
			       unsigned int size)
{
	struct peer_nic *n = (struct peer_nic *)calloc(1, sizeof(*n));
	const struct peer_ask no_ask = {};
	const struct peer_load no_load = {};
	cudaError_t ret;

	if (n == nullptr) {
		snprintf(error, size, "no memory");
		return NULL;
	}
	n->gpu = gpu;
	n->nic = nic;
	n->slots = slots;
	n->took_room = 1u << 16;
	if (failed(cudaSetDevice(nic), "device", error, size))
		goto fail;
	ret = gpu == nic ? cudaSuccess : cudaDeviceEnablePeerAccess(gpu, 0);
	if (ret == cudaErrorPeerAccessAlreadyEnabled) {
		cudaGetLastError();
		ret = cudaSuccess;
	}
	if (failed(ret, "peer access", error, size) || !allocate(n, longest, error, size))
		goto fail;
	memset(n->links, 0, PEER_LINKS_MAX * sizeof(*n->links));
	n->links[0].slots = slots;
	/* Kernels without work, so that the driver has loaded them. */
	if (!run_ask(n, &no_ask, error, size) || !run_load(n, 1, &no_load, error, size))
		goto fail;
	return n;

fail:
	peer_nic_close(n);
	return NULL;
}

void peer_nic_close(struct peer_nic *n)
{
	if (n == nullptr)
		return;
	cudaSetDevice(n->nic);
	if (n->stream != nullptr)
		cudaStreamDestroy(n->stream);
	cudaFree(n->source);
	cudaFree(n->waiting);
	cudaFree(n->free);
	cudaFree(n->board);
	cudaFreeHost(n->links);
	cudaFreeHost(n->results);
	cudaFreeHost(n->took);
	cudaGetLastError();
	free(n);
}

static void add(struct peer_result *sum, const struct peer_result *r)
{
	sum->answered += r->answered;
	sum->bytes += r->bytes;
	sum->wrong_bytes += r->wrong_bytes;
	sum->wrong_replies += r->wrong_replies;
	sum->cancelled += r->cancelled;
	sum->missed += r->missed;
	if (sum->fault != PEER_FINE)
		return;
	sum->fault = r->fault;
	sum->link = r->link;
	sum->slot = r->slot;
	sum->got = r->got;
}

int peer_nic_load(struct peer_nic *n, struct peer_link *links, uint32_t count,
		  const struct peer_load *load, struct peer_result *result, char *error,
		  unsigned int size)
{
	*result = {};
	cudaSetDevice(n->nic);
	memcpy(n->links, links, count * sizeof(*links));
	if (!run_load(n, count, load, error, size))
		return -1;
	memcpy(links, n->links, count * sizeof(*links));
	for (uint32_t i = 0; i < count; i++)
		add(result, &n->results[i]);
	return 0;
}

int peer_nic_ask(struct peer_nic *n, struct peer_link *link, const struct peer_ask *ask,
		 struct peer_took *took, struct peer_result *result, char *error, unsigned int size)
{
	*result = {};
	cudaSetDevice(n->nic);
	n->links[0] = *link;
	if (ask->n > n->took_room) {
		snprintf(error, size, "%u requests are too many", ask->n);
		return -1;
	}
	if (!run_ask(n, ask, error, size))
		return -1;
	*link = n->links[0];
	*result = n->results[0];
	memcpy(took, n->took, ask->n * sizeof(*took));
	return 0;
}
