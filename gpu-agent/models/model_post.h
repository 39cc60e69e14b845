/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model that works in place may send its reply itself, at the end of its last kernel: the loop's
 * next kernel, which does it otherwise, begins a microsecond later. Installed as
 * <doorbell/model_post.h>, for CUDA sources. Every thread of the grid of that kernel calls both:
 *
 *   struct agent_model_post post = agent_model_post_read(gpu);   at the kernel's beginning
 *   ...                                                          the reply's bytes are written
 *   agent_model_post_send(gpu, post);                            then; the last block sends
 */
#ifndef AGENT_MODEL_POST_H
#define AGENT_MODEL_POST_H

#include <stdint.h>

/*
 * The rest of a reply, in the GPU's memory: all else of it is known before the model runs, and its
 * WQE is built.
 *
 *   armed                 written by                     the reply is sent by
 *   AGENT_POST_NONE       the loop                       the loop, as any batch
 *   AGENT_POST_ARMED      the loop, of a request that    the model; if it does not, by the loop
 *                         came alone
 *   AGENT_POST_SENT       the grid's last block, or      -
 *                         the loop
 */
enum { AGENT_POST_NONE, AGENT_POST_ARMED, AGENT_POST_SENT };

struct agent_model_post {
	uint64_t *header; /* of the reply: struct ring_reply */
	uint32_t bytes;   /* of the reply, which the loop writes if it sends it */
	uint16_t armed;
	uint16_t one_fence; /* the doorbell's reader is software that reads no record */
	volatile uint64_t *doorbell;
	uint64_t bell;             /* its value */
	volatile uint32_t *record; /* of the queue: its doorbell record */
	uint32_t counter;          /* its value */
	uint32_t arrived;          /* blocks of the grid that are done */
	/* The header's words, but for done_ns, which comes before the last one. It is not written
	 * before: the place may be another reply's until the request is confirmed. */
	uint64_t sequence, seen_ns, start_ns, sizes;
} __attribute__((aligned(16)));

#ifdef __CUDACC__
#include "model.h"

static __device__ inline void agent_model_fence_release()
{
#if __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ >= 13
	asm volatile("fence.release.sys;" ::: "memory");
#else
	asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}

/* One thread: write the header. */
static __device__ inline void agent_model_post_header(const struct agent_model_post &p)
{
	uint64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	p.header[0] = p.sequence;
	p.header[1] = p.seen_ns;
	p.header[2] = p.start_ns;
	p.header[3] = now;
	p.header[4] = p.sizes;
}

/* One thread, behind barriers and fences that make the reply's bytes its own: ring. The order is
 * that of mlx5_ring() in rdma/mlx5_post.h. */
static __device__ inline void agent_model_post_ring(const struct agent_model_post &p)
{
	agent_model_fence_release();
	*p.record = p.counter;
	if (!p.one_fence)
		agent_model_fence_release();
	asm volatile("st.mmio.relaxed.sys.global.u64 [%0], %1;" ::"l"(p.doorbell), "l"(p.bell)
		     : "memory");
}

/* Load it in one trip to the second-level cache: the first 16 bytes, and those with which to ring
 * and those of the header if <rings> and <heads>. */
static __device__ inline struct agent_model_post
agent_model_post_load(const struct agent_model_post *from, bool rings, bool heads)
{
	static_assert(sizeof(struct agent_model_post) == 80, "copied by words");
	struct agent_model_post p = {};
	uint64_t *to = (uint64_t *)&p;

#pragma unroll
	for (uint32_t i = 0; i < sizeof(p) / 8; i += 2)
		asm volatile("{\n\t.reg .pred p;\n\t"
			     "setp.ne.u32 p, %3, 0;\n\t"
			     "@p ld.global.v2.u64 {%0, %1}, [%2];\n\t}"
			     : "+l"(to[i]), "+l"(to[i + 1])
			     : "l"((const uint64_t *)from + i),
			       "r"((uint32_t)(i == 0 || (i < 6 ? rings : heads))));
	return p;
}

static __device__ inline struct agent_model_post
agent_model_post_read(const struct agent_model_gpu &gpu)
{
	bool first = (threadIdx.x | threadIdx.y | threadIdx.z) == 0;
	struct agent_model_post none = {};

	return gpu.post == nullptr ? none : agent_model_post_load(gpu.post, first, first);
}

static __device__ inline void agent_model_post_send(const struct agent_model_gpu &gpu,
						    const struct agent_model_post &p)
{
	uint32_t blocks = gridDim.x * gridDim.y * gridDim.z;

	if (p.armed != AGENT_POST_ARMED)
		return;
	__syncthreads();
	if ((threadIdx.x | threadIdx.y | threadIdx.z) != 0)
		return;
	if (blocks > 1) {
		asm volatile("fence.acq_rel.gpu;" ::: "memory");
		if (atomicAdd(&gpu.post->arrived, 1) != blocks - 1)
			return;
		asm volatile("fence.acq_rel.gpu;" ::: "memory");
		gpu.post->arrived = 0;
	}
	agent_model_post_header(p);
	gpu.post->armed = AGENT_POST_SENT;
	agent_model_post_ring(p);
}
#endif

#endif
