/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <cuda_runtime_api.h>

#include "gpu/floor/floor.h"

#define BLOCK  256
#define UNIT   16
#define DEEP   4 /* loads of a thread in flight */
#define BLOCKS 64 /* that copy what one block cannot have in flight */
#define GAP_NS 20000
#define TURNS  64 /* of a graph */
#define HALF_TRIP 1200 /* cycles */
#define LIMIT  2000000000ull

/* In pinned memory, each word on a line of its own. */
struct words {
	alignas(128) uint32_t mark; /* the host: request <mark> is there */
	alignas(128) uint32_t bell; /* the GPU: it is answered */
	alignas(128) uint32_t stop;
};

/* In the GPU's memory. */
struct flags {
	alignas(128) uint32_t go;
	alignas(128) uint32_t done;
	alignas(128) uint32_t arrived;
};

struct job {
	struct words *words;
	const uint8_t *request;
	uint8_t *reply;
	uint8_t *input, *output; /* the GPU's */
	struct flags *flags;
	uint32_t *turn; /* the GPU's: requests answered */
	uint32_t bytes;       /* of the request */
	uint32_t reply_bytes; /* of the reply; the model's copy has as many */
};

static __device__ uint32_t acquire_sys(const uint32_t *at)
{
	uint32_t v;

	asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
	return v;
}

static __device__ uint32_t acquire_gpu(const uint32_t *at)
{
	uint32_t v;

	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
	return v;
}

static __device__ void release_gpu(uint32_t *at, uint32_t v)
{
	asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(v) : "memory");
}

static __device__ void ring(const struct job &j, uint32_t n)
{
	asm volatile("fence.acq_rel.sys;" ::: "memory");
	asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(&j.words->bell), "r"(n)
		     : "memory");
}

/* The block's share of a copy, four loads of a thread in flight. */
static __device__ void copy(uint8_t *to, const uint8_t *from, uint32_t bytes, uint32_t block,
			    uint32_t blocks)
{
	uint32_t step = blocks * BLOCK * UNIT;

	for (uint32_t at = (block * BLOCK + threadIdx.x) * UNIT; at < bytes; at += DEEP * step) {
		uint4 unit[DEEP];

#pragma unroll
		for (uint32_t i = 0; i < DEEP; i++)
			if (at + i * step < bytes)
				unit[i] = *(const uint4 *)(from + at + i * step);
#pragma unroll
		for (uint32_t i = 0; i < DEEP; i++)
			if (at + i * step < bytes)
				*(uint4 *)(to + at + i * step) = unit[i];
	}
}

/* The whole block: wait for mark <n>. False: stop. */
static __device__ bool await_mark(const struct job &j, uint32_t n)
{
	__shared__ uint32_t seen[2];

	if (threadIdx.x == 0) {
		uint32_t mark, stop;

		do {
			stop = *(volatile uint32_t *)&j.words->stop;
			mark = acquire_sys(&j.words->mark);
		} while (mark != n && stop == 0);
		seen[0] = mark == n;
	}
	__syncthreads();
	bool there = seen[0];
	__syncthreads();
	return there;
}

static __global__ void __launch_bounds__(BLOCK) bell(const __grid_constant__ struct job j)
{
	for (uint32_t n = 1; await_mark(j, n); n++)
		if (threadIdx.x == 0)
			ring(j, n);
}

static __global__ void __launch_bounds__(BLOCK) resident(const __grid_constant__ struct job j)
{
	for (uint32_t n = 1; await_mark(j, n); n++) {
		copy(j.reply, j.request, j.bytes, 0, 1);
		__syncthreads();
		if (threadIdx.x == 0)
			ring(j, n);
	}
}

static __global__ void __launch_bounds__(BLOCK) speculative(const __grid_constant__ struct job j)
{
	uint32_t at = threadIdx.x * UNIT, mark = 0, stop = 0;
	uint4 unit = {};

	for (uint32_t n = 1;;) {
		/* Loads of one word wait for each other, so one thread reads it. */
		if (threadIdx.x == 0) {
			stop = *(volatile uint32_t *)&j.words->stop;
			mark = *(volatile uint32_t *)&j.words->mark;
		}
		if (at < j.bytes)
			asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
				     : "=r"(unit.x), "=r"(unit.y), "=r"(unit.z), "=r"(unit.w)
				     : "l"(j.request + at)
				     : "memory");
		if (__syncthreads_or(stop != 0))
			return;
		if (!__syncthreads_or(mark == n))
			continue;
		if (at < j.bytes)
			*(uint4 *)(j.reply + at) = unit;
		__syncthreads();
		if (threadIdx.x == 0)
			ring(j, n);
		n++;
	}
}

/* A barrier of the warp that has found the mark and the warps that do not poll. */
static __device__ void barrier_of_copiers()
{
	asm volatile("barrier.cta.sync 1, %0;" ::"n"(BLOCK - 32) : "memory");
}

/* Warps 0 and 1 poll, the second one half a trip behind the first; the one that sees the mark first
 * rings. The others copy, 16 bytes a thread. */
static __global__ void __launch_bounds__(BLOCK) staggered(const __grid_constant__ struct job j)
{
	__shared__ uint32_t claimed;
	uint32_t warp = threadIdx.x / 32, at = (threadIdx.x - 64) * UNIT;
	bool found = false;

	if (threadIdx.x == 0)
		claimed = 0;
	__syncthreads();
	for (uint32_t n = 1;; n++) {
		if (warp < 2) {
			uint64_t from = clock64();
			uint32_t stop = 0;

			while (warp == 1 && clock64() - from < HALF_TRIP)
				;
			do {
				stop = *(volatile uint32_t *)&j.words->stop;
				if (acquire_sys(&j.words->mark) == n && threadIdx.x % 32 == 0)
					found = atomicCAS(&claimed, n - 1, n) == n - 1;
				found = __any_sync(~0u, found);
			} while (!found && *(volatile uint32_t *)&claimed != n && stop == 0);
			if (stop != 0)
				atomicExch(&claimed, UINT32_MAX);
			if (!found && stop == 0)
				continue;
			/* When stopped, both come: one of them is the barrier's. */
			if (!found && warp == 1)
				return;
		}
		barrier_of_copiers();
		if (*(volatile uint32_t *)&claimed == UINT32_MAX)
			return;
		if (warp >= 2 && at < j.bytes)
			*(uint4 *)(j.reply + at) = *(const uint4 *)(j.request + at);
		barrier_of_copiers();
		if (found && threadIdx.x % 32 == 0)
			ring(j, n);
		found = false;
	}
}

/* Block 0 polls, fetches and answers; block 1 is the model. */
static __global__ void __launch_bounds__(BLOCK) beside(const __grid_constant__ struct job j)
{
	__shared__ uint32_t go;

	for (uint32_t n = 1;; n++) {
		if (blockIdx.x == 0) {
			bool there = await_mark(j, n);

			if (there)
				copy(j.input, j.request, j.bytes, 0, 1);
			__syncthreads();
			if (threadIdx.x == 0)
				release_gpu(&j.flags->go, there ? n : UINT32_MAX);
			if (!there)
				return;
			if (threadIdx.x == 0)
				while (acquire_gpu(&j.flags->done) != n)
					;
			__syncthreads();
			copy(j.reply, j.output, j.bytes, 0, 1);
			__syncthreads();
			if (threadIdx.x == 0)
				ring(j, n);
			continue;
		}
		if (threadIdx.x == 0) {
			do
				go = acquire_gpu(&j.flags->go);
			while (go != n && go != UINT32_MAX);
		}
		__syncthreads();
		if (go == UINT32_MAX)
			return;
		copy(j.output, j.input, j.bytes, 0, 1);
		__syncthreads();
		if (threadIdx.x == 0)
			release_gpu(&j.flags->done, n);
	}
}

/* --- kernels of a graph ------------------------------------------------------------------------
 */

static __device__ void launch_next()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static __device__ void await_last()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Block 0 waits until the other blocks have come here <each> times. */
static __device__ void await_blocks(uint32_t *arrived, uint32_t each)
{
	__syncthreads();
	if (blockIdx.x > 0) {
		if (threadIdx.x == 0) {
			asm volatile("fence.acq_rel.gpu;" ::: "memory");
			atomicAdd(arrived, 1);
		}
		return;
	}
	if (threadIdx.x == 0)
		while (acquire_gpu(arrived) != each * (gridDim.x - 1))
			;
	__syncthreads();
}

/* Answers the last request unless it is the first of all, then waits for the next one, as a turn of
 * the loop does. The model's kernel counts requests. */
static __global__ void __launch_bounds__(BLOCK)
	turn(const __grid_constant__ struct job j, bool sends, bool fetches, bool early)
{
	uint32_t n;

	if (early)
		launch_next();
	await_last();
	n = *j.turn;
	if (sends && n > 0) {
		copy(j.reply, j.output, j.reply_bytes, blockIdx.x, gridDim.x);
		await_blocks(&j.flags->arrived, n);
		if (blockIdx.x == 0 && threadIdx.x == 0)
			ring(j, n);
	}
	if (blockIdx.x == 0) {
		await_mark(j, n + 1);
		if (threadIdx.x == 0 && gridDim.x > 1)
			release_gpu(&j.flags->go, n + 1);
	} else {
		if (threadIdx.x == 0)
			while (acquire_gpu(&j.flags->go) != n + 1)
				;
		__syncthreads();
	}
	if (fetches)
		copy(j.input, j.request, j.bytes, blockIdx.x, gridDim.x);
}

static __global__ void __launch_bounds__(BLOCK)
	model(const __grid_constant__ struct job j, bool early)
{
	if (early)
		launch_next();
	await_last();
	copy(j.output, j.input, j.reply_bytes, blockIdx.x, gridDim.x);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		++*j.turn;
}

/* The last block rings. */
static __global__ void __launch_bounds__(BLOCK)
	model_in_place(const __grid_constant__ struct job j)
{
	copy(j.reply, j.request, j.bytes, blockIdx.x, gridDim.x);
	__syncthreads();
	if (threadIdx.x > 0)
		return;
	asm volatile("fence.acq_rel.sys;" ::: "memory");
	if (gridDim.x > 1 && atomicAdd(&j.flags->done, 1) % gridDim.x != gridDim.x - 1)
		return;
	ring(j, ++*j.turn);
}

template <typename... Parameters, typename... Arguments>
static cudaError_t record(void (*kernel)(Parameters...), uint32_t blocks, bool programmatic,
			  cudaStream_t stream, Arguments... arguments)
{
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};

	attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attribute.val.programmaticStreamSerializationAllowed = 1;
	config.gridDim = blocks;
	config.blockDim = BLOCK;
	config.stream = stream;
	config.attrs = &attribute;
	config.numAttrs = programmatic ? 1 : 0;
	return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/* Graphs are launched by the host, the next one while the last one runs. One more than there are
 * requests for answers the last one, and ends when it is told to stop. */
static cudaError_t record_graph(enum floor_way way, const struct job &j, cudaStream_t stream,
				cudaGraphExec_t *exec)
{
	bool tail = way == FLOOR_TAIL || way == FLOOR_BOTH, head = way == FLOOR_BOTH;
	bool place = way == FLOOR_IN_PLACE;
	uint32_t most = std::max(j.bytes, j.reply_bytes);
	uint32_t blocks = most <= DEEP * BLOCK * UNIT ? 1 : BLOCKS;
	cudaGraph_t graph = nullptr;
	cudaError_t ret = cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);

	for (int i = 0; i < TURNS && ret == cudaSuccess; i++) {
		ret = record(turn, place ? 1 : blocks, tail && i > 0, stream, j, !place,
			     !place, head);
		if (ret == cudaSuccess)
			ret = place ? record(model_in_place, blocks, false, stream, j)
				    : record(model, blocks, head, stream, j, head);
	}
	cudaError_t end = cudaStreamEndCapture(stream, &graph);
	if (ret == cudaSuccess)
		ret = end;
	if (ret == cudaSuccess)
		ret = cudaGraphInstantiate(exec, graph, cudaGraphInstantiateFlagDeviceLaunch);
	if (ret == cudaSuccess)
		ret = cudaGraphUpload(*exec, stream);
	if (graph != nullptr)
		cudaGraphDestroy(graph);
	return ret;
}

/* --- the host ----------------------------------------------------------------------------------
 */

static uint64_t now_ns()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void until(uint64_t ns)
{
	while (now_ns() < ns)
		;
}

static double median(double *v, uint32_t n)
{
	std::nth_element(v, v + n / 2, v + n);
	return v[n / 2];
}

/* Ask requests 1 to <n>; the first tenth does not count. Returns how many times of <took> are set; 0:
 * a request was not answered. */
static uint32_t ask_all(struct words *w, uint32_t n, double *took)
{
	uint32_t times = 0;

	for (uint32_t i = 1; i <= n; i++) {
		uint64_t start, now;

		until(now_ns() + GAP_NS);
		start = now_ns();
		__atomic_store_n(&w->mark, i, __ATOMIC_RELEASE);
		do
			now = now_ns();
		while (__atomic_load_n(&w->bell, __ATOMIC_ACQUIRE) != i && now - start < LIMIT);
		if (now - start >= LIMIT)
			return 0;
		if (i > n / 10)
			took[times++] = (now - start) / 1e3;
	}
	return times;
}

static cudaError_t start(enum floor_way way, const struct job &j, cudaStream_t stream)
{
	switch (way) {
	case FLOOR_BELL:
		bell<<<1, BLOCK, 0, stream>>>(j);
		break;
	case FLOOR_SPECULATIVE:
		speculative<<<1, BLOCK, 0, stream>>>(j);
		break;
	case FLOOR_RESIDENT:
		resident<<<1, BLOCK, 0, stream>>>(j);
		break;
	case FLOOR_STAGGERED:
		staggered<<<1, BLOCK, 0, stream>>>(j);
		break;
	default:
		beside<<<2, BLOCK, 0, stream>>>(j);
		break;
	}
	return cudaGetLastError();
}

double floor_us(enum floor_way way, uint32_t bytes, uint32_t reply_bytes, uint32_t n, char *error,
		uint64_t size)
{
	cudaStream_t stream = nullptr;
	cudaGraphExec_t exec = nullptr;
	uint8_t *pinned = nullptr, *own = nullptr;
	bool graph = way >= FLOOR_KERNELS;
	uint32_t room = (std::max(bytes, reply_bytes) + 4095) / 4096 * 4096, times = 0;
	struct job j = {};
	double *took, us = -1;
	cudaError_t ret;

	n = (n + TURNS - 1) / TURNS * TURNS;
	took = (double *)calloc(n, sizeof(*took));
	if (took == nullptr) {
		snprintf(error, size, "no memory");
		return -1;
	}
	ret = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
	if (ret == cudaSuccess)
		ret = cudaHostAlloc((void **)&pinned, 4096 + 2 * room, cudaHostAllocMapped);
	if (ret == cudaSuccess)
		ret = cudaMalloc((void **)&own, 4096 + 2 * room);
	if (ret == cudaSuccess)
		ret = cudaMemset(own, 0, 4096 + 2 * room);
	if (ret == cudaSuccess) {
		memset(pinned, 0, 4096 + 2 * room);
		j.words = (struct words *)pinned;
		j.request = pinned + 4096;
		j.reply = pinned + 4096 + room;
		j.flags = (struct flags *)own;
		j.turn = (uint32_t *)(own + 2048);
		j.input = own + 4096;
		j.output = own + 4096 + room;
		j.bytes = bytes;
		j.reply_bytes = reply_bytes;
		ret = graph ? record_graph(way, j, stream, &exec) : start(way, j, stream);
	}
	for (uint32_t i = 0; graph && ret == cudaSuccess && i < n / TURNS + 1; i++)
		ret = cudaGraphLaunch(exec, stream);
	if (ret == cudaSuccess) {
		times = ask_all(j.words, n, took);
		__atomic_store_n(&j.words->stop, 1, __ATOMIC_RELEASE);
		ret = cudaStreamSynchronize(stream);
	}
	if (exec != nullptr)
		cudaGraphExecDestroy(exec);
	if (own != nullptr)
		cudaFree(own);
	if (pinned != nullptr)
		cudaFreeHost(pinned);
	if (stream != nullptr)
		cudaStreamDestroy(stream);
	if (ret == cudaSuccess && times > 0)
		us = median(took, times);
	else
		snprintf(error, size, "%s",
			 ret != cudaSuccess ? cudaGetErrorString(ret)
					    : "a request was not answered");
	free(took);
	return us;
}

/* --- the bus -----------------------------------------------------------------------------------
 */

#define ROUNDS 64
#define WARM   8 /* of them */
#define BULK   8192u /* bytes of one bulk copy */
#define STAGES 6     /* of them in flight in a block */

static __device__ void grid_barrier(uint32_t *arrived, uint32_t round)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		asm volatile("fence.acq_rel.gpu;" ::: "memory");
		atomicAdd(arrived, 1);
		while (acquire_gpu(arrived) < (round + 1) * gridDim.x)
			;
	}
	__syncthreads();
}

#if __CUDA_ARCH__ >= 900
static __device__ uint32_t shared_at(const void *at)
{
	return (uint32_t)__cvta_generic_to_shared(at);
}

static __device__ void bulk_load(void *to, const void *from, uint32_t bytes, uint64_t *barrier)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
			     shared_at(barrier)),
		     "r"(bytes)
		     : "memory");
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
		     "%2, [%3];" ::"r"(shared_at(to)),
		     "l"(from), "r"(bytes), "r"(shared_at(barrier))
		     : "memory");
}

static __device__ void await_bulk(uint64_t *barrier, uint32_t parity)
{
	asm volatile("{\n\t.reg .pred p;\n\tagain:\n\t"
		     "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
		     "@!p bra again;\n\t}" ::"r"(shared_at(barrier)),
		     "r"(parity)
		     : "memory");
}

static __device__ void bulk_store(void *to, const void *from, uint32_t bytes)
{
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
		     "r"(shared_at(from)), "r"(bytes)
		     : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
#endif

/* One thread of each block; <begun> counts the pieces of its life, for parities. */
static __device__ void copy_bulk(uint8_t *to, const uint8_t *from, uint32_t bytes, uint8_t *room,
				 uint64_t *barrier, uint32_t *begun)
{
#if __CUDA_ARCH__ >= 900
	uint32_t pieces = bytes / BULK, ahead = blockIdx.x, first = *begun, loaded = 0;

	for (uint32_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
		while (ahead < pieces && loaded < *begun - first + STAGES - 1) {
			uint32_t s = (first + loaded) % STAGES;

			/* The piece that this stage had before must have left. */
			asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(1) : "memory");
			bulk_load(room + s * BULK, from + ahead * BULK, BULK, &barrier[s]);
			loaded++;
			ahead += gridDim.x;
		}
		uint32_t s = *begun % STAGES;

		await_bulk(&barrier[s], *begun / STAGES & 1);
		bulk_store(to + piece * BULK, room + s * BULK, BULK);
		++*begun;
	}
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}

static __global__ void __launch_bounds__(BLOCK)
	cross(uint8_t *to, const uint8_t *from, uint32_t bytes, uint32_t apart, uint32_t buffers,
	      enum floor_copy how, uint32_t *arrived, uint64_t *stamp)
{
	extern __shared__ __align__(128) uint8_t room[];
	__shared__ uint64_t barrier[STAGES];
	uint32_t begun = 0;

#if __CUDA_ARCH__ >= 900
	if (threadIdx.x == 0) {
		for (int i = 0; i < STAGES; i++)
			asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(
					     shared_at(&barrier[i]))
				     : "memory");
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
#endif
	__syncthreads();
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t skip = round % buffers * apart;
		uint64_t now;

		if (how == FLOOR_IN_BULK || how == FLOOR_OUT_BULK) {
			if (threadIdx.x == 0)
				copy_bulk(to + skip, from + skip, bytes, room, barrier, &begun);
		} else {
			copy(to + skip, from + skip, bytes, blockIdx.x, gridDim.x);
		}
		if (how >= FLOOR_OUT)
			asm volatile("fence.acq_rel.sys;" ::: "memory");
		grid_barrier(arrived, round);
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
		if (blockIdx.x == 0 && threadIdx.x == 0)
			stamp[round] = now;
	}
}

double floor_copy_us(enum floor_copy how, uint32_t bytes, uint32_t blocks, char *error,
		     uint64_t size)
{
	uint32_t apart = (bytes + 4095) / 4096 * 4096, buffers = (16u << 20) / apart;
	bool out = how >= FLOOR_OUT, bulk = how == FLOOR_IN_BULK || how == FLOOR_OUT_BULK;
	uint8_t *pinned = nullptr, *own = nullptr;
	uint64_t stamp[ROUNDS], *stamps = nullptr;
	double took[ROUNDS];
	cudaError_t ret;

	buffers = buffers < 1 ? 1 : buffers;
	bytes = bulk ? bytes / BULK * BULK : bytes;
	ret = cudaHostAlloc((void **)&pinned, (size_t)buffers * apart, cudaHostAllocMapped);
	if (ret == cudaSuccess)
		ret = cudaMalloc((void **)&own, (size_t)buffers * apart + 4096);
	if (ret == cudaSuccess)
		ret = cudaMalloc((void **)&stamps, sizeof(stamp));
	if (ret == cudaSuccess)
		ret = cudaMemset(own, 0, (size_t)buffers * apart + 4096);
	if (ret == cudaSuccess)
		ret = cudaFuncSetAttribute(cross, cudaFuncAttributeMaxDynamicSharedMemorySize,
					   STAGES * BULK);
	if (ret == cudaSuccess) {
		memset(pinned, 1, (size_t)buffers * apart);
		cross<<<blocks, BLOCK, bulk ? STAGES * BULK : 0>>>(
			out ? pinned : own, out ? own : pinned, bytes, apart, buffers, how,
			(uint32_t *)(own + (size_t)buffers * apart), stamps);
		ret = cudaGetLastError();
	}
	if (ret == cudaSuccess)
		ret = cudaMemcpy(stamp, stamps, sizeof(stamp), cudaMemcpyDefault);
	if (stamps != nullptr)
		cudaFree(stamps);
	if (own != nullptr)
		cudaFree(own);
	if (pinned != nullptr)
		cudaFreeHost(pinned);
	if (ret != cudaSuccess) {
		snprintf(error, size, "%s", cudaGetErrorString(ret));
		return -1;
	}
	for (int i = WARM; i < ROUNDS; i++)
		took[i - WARM] = (stamp[i] - stamp[i - 1]) / 1e3;
	return median(took, ROUNDS - WARM);
}
