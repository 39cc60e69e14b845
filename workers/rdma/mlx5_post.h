/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting RDMA WRITEs by hand to a send queue in mlx5 format: build WQEs, publish them in the
 * doorbell record, ring the doorbell, consume CQEs. One source for host C and CUDA; only the fences
 * and the doorbell store differ (__CUDA_ARCH__). On a ConnectX the queue comes from
 * mlx5dv_init_obj(); the software RNIC reads the same bytes from memory.
 *
 * Formats: mlx5 PRM "WQE Format", "Doorbell Record", "CQE Format"; rdma-core mlx5dv.h has the same
 * layouts. Everything is big-endian. A WRITE with one data segment is one WQEBB (64 bytes), so WQEs
 * never wrap around the queue's end.
 *
 * Owner: one thread (or one warp) per queue. A WQE's memory belongs to the NIC from mlx5_ring() on
 * until a CQE with its counter or a later one was read.
 */
#ifndef RDMA_MLX5_POST_H
#define RDMA_MLX5_POST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define MLX5_FN static __host__ __device__ inline
#else
#define MLX5_FN static inline
#endif

#define MLX5_WQEBB             64
#define MLX5_WQES_MAX          32768u /* of a queue: indices have 16 bits, and full is not empty */
#define MLX5_OP_RDMA_WRITE     0x08
#define MLX5_OP_RDMA_WRITE_IMM 0x09
#define MLX5_CE_ALWAYS         0x08 /* fm_ce_se: CQE for this WQE */

#define MLX5_POST_CQE_OK      0x0
#define MLX5_POST_CQE_ERROR   0xd
#define MLX5_POST_CQE_INVALID 0xf

/* CQE syndromes (PRM "CQE with error"). */
#define MLX5_SYNDROME_LOCAL_PROTECTION 0x04
#define MLX5_SYNDROME_FLUSHED          0x05
#define MLX5_SYNDROME_REMOTE_INVALID   0x12
#define MLX5_SYNDROME_REMOTE_ACCESS    0x13
#define MLX5_SYNDROME_REMOTE_OPERATION 0x14
#define MLX5_SYNDROME_RETRY_EXCEEDED   0x15
#define MLX5_SYNDROME_RNR_EXCEEDED     0x16
#define MLX5_SYNDROME_LOCAL_OPERATION  0x02

struct mlx5_wqe {
	uint32_t opmod_index_opcode; /* opcode modifier [31:24], WQE index [23:8], opcode [7:0] */
	uint32_t qpn_ds;             /* QPN [31:8], 16-byte units in this WQE [5:0] */
	uint8_t signature;
	uint8_t reserved[2];
	uint8_t fm_ce_se;
	uint32_t imm; /* network order: sent as it is */
	/* remote address segment */
	uint64_t remote_address;
	uint32_t rkey;
	uint32_t remote_reserved;
	/* data segment; left out when there is nothing to send */
	uint32_t byte_count;
	uint32_t lkey;
	uint64_t local_address;
	uint8_t unused[16];
};

struct mlx5_cqe {
	uint8_t unused[52];
	uint8_t hardware_syndrome[2];
	uint8_t vendor_error;
	uint8_t syndrome;
	uint32_t opcode_qpn; /* send opcode [31:24], QPN [23:0] */
	uint16_t wqe_counter;
	uint8_t signature;
	uint8_t op_own; /* opcode [7:4], owner [0] */
};

#ifdef __cplusplus
static_assert(sizeof(struct mlx5_wqe) == 64 && sizeof(struct mlx5_cqe) == 64, "PRM");
#else
_Static_assert(sizeof(struct mlx5_wqe) == 64, "PRM");
_Static_assert(sizeof(struct mlx5_cqe) == 64, "PRM");
_Static_assert(__builtin_offsetof(struct mlx5_wqe, remote_address) == 16, "PRM");
_Static_assert(__builtin_offsetof(struct mlx5_wqe, byte_count) == 32, "PRM");
_Static_assert(__builtin_offsetof(struct mlx5_cqe, syndrome) == 55, "PRM");
_Static_assert(__builtin_offsetof(struct mlx5_cqe, wqe_counter) == 60, "PRM");
#endif

/* A send queue and its completion queue, as the poster sees them. */
struct mlx5_queue {
	struct mlx5_wqe *wqes;
	volatile uint32_t *record;   /* doorbell record: word 1 is the send counter */
	volatile uint64_t *doorbell; /* UAR register, or the software RNIC's word */
	volatile struct mlx5_cqe *cqes;
	uint32_t wqe_count; /* power of two */
	uint32_t cqe_count; /* power of two */
	uint32_t qpn;
	uint32_t cq_index;            /* next CQE to read; free-running */
	uint16_t producer;            /* next WQE to build; free-running */
	uint16_t consumer;            /* oldest WQE that is not complete */
	volatile uint32_t *cq_record; /* doorbell record of the CQ; NULL: the NIC needs none */
	/* The doorbell's reader is software that takes the counter from the doorbell itself, never from
	 * the record: one fence is enough, which on a GPU saves half a microsecond. */
	bool bell_counts;
};

MLX5_FN uint32_t mlx5_be32(uint32_t v)
{
#ifdef __CUDA_ARCH__
	return __byte_perm(v, 0, 0x0123);
#else
	return v << 24 | (v & 0xff00) << 8 | (v >> 8 & 0xff00) | v >> 24;
#endif
}

MLX5_FN uint64_t mlx5_be64(uint64_t v)
{
	return (uint64_t)mlx5_be32((uint32_t)v) << 32 | mlx5_be32((uint32_t)(v >> 32));
}

#ifdef __CUDA_ARCH__
/* A fence that also acquires takes some 100 cycles more and invalidates the first-level cache. */
static __device__ inline void mlx5_fence_release(void)
{
#if __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ >= 13
	asm volatile("fence.release.sys;" ::: "memory");
#else
	asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}
#endif

/* WQEs must be visible before the record that counts them: the NIC may read them at once. */
MLX5_FN void mlx5_wqes_before_record(void)
{
#ifdef __CUDA_ARCH__
	mlx5_fence_release();
#else
	__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

/* The record must be visible before the doorbell: the NIC reads it when the bell rings. */
MLX5_FN void mlx5_record_before_doorbell(void)
{
#ifdef __CUDA_ARCH__
	mlx5_fence_release();
#elif defined(__x86_64__)
	/* The UAR is write-combining memory; a plain release does not order it. */
	__asm__ volatile("sfence" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#ifdef __CUDA_ARCH__
/*
 * Lanes that ring together do so one after the other: stores of one instruction may leave the GPU
 * as one packet, and a NIC takes one register's 8 bytes at a time. `mmio`: performed once, as it is
 * (PTX ISA 8.2, "st"; a register is not memory).
 */
static __device__ inline void mlx5_doorbell_lanes(volatile uint64_t *doorbell, uint64_t value)
{
	uint32_t lane, waiting = __activemask();

	asm("mov.u32 %0, %%laneid;" : "=r"(lane));
#pragma unroll 1
	for (; waiting != 0; waiting &= waiting - 1)
		if (lane == (uint32_t)__ffs(waiting) - 1)
			asm volatile("st.mmio.relaxed.sys.global.u64 [%0], %1;" ::"l"(doorbell),
				     "l"(value)
				     : "memory");
}
#endif

/* One 8-byte store, never two of 4; mlx5_record_before_doorbell() came before it. */
MLX5_FN void mlx5_doorbell_store(volatile uint64_t *doorbell, uint64_t value)
{
#ifdef __CUDA_ARCH__
	mlx5_doorbell_lanes(doorbell, value);
#else
	__atomic_store_n(doorbell, value, __ATOMIC_RELEASE);
#endif
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
	/* Empty the write-combining buffer now, not when it happens to fill. */
	__asm__ volatile("sfence" ::: "memory");
#endif
}

/*
 * The last word of a CQE: its counter, signature and owner. On a host the owner is read before the
 * counter, which is valid only after it; a GPU reads both with one load, as each crosses the bus.
 */
MLX5_FN uint32_t mlx5_cqe_tail(const volatile struct mlx5_cqe *cqe)
{
#ifdef __CUDA_ARCH__
	uint32_t tail;

	asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
		     : "=r"(tail)
		     : "l"(&cqe->wqe_counter)
		     : "memory");
	return tail;
#else
	uint8_t op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);

	return cqe->wqe_counter | (uint32_t)op_own << 24;
#endif
}

/* Number of WQEs that can be built now. */
MLX5_FN uint32_t mlx5_room(const struct mlx5_queue *q)
{
	return q->wqe_count - (uint16_t)(q->producer - q->consumer);
}

struct mlx5_write {
	uint64_t remote_address;
	uint64_t local_address;
	uint32_t rkey, lkey;
	uint32_t length; /* 0 sends a message without data */
	uint32_t imm;    /* host order */
	bool with_imm;
	bool signal; /* ask for a CQE */
};

/* Two 32-bit words in memory order as one 64-bit word. */
MLX5_FN uint64_t mlx5_words(uint32_t first, uint32_t second)
{
	return first | (uint64_t)second << 32;
}

/* Few wide stores, because each crosses the bus by itself when a GPU posts. The NIC does not read
 * the last 16 bytes of a WQEBB. */
MLX5_FN void mlx5_wqe_store(struct mlx5_wqe *wqe, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
			    uint64_t e, uint64_t f)
{
#ifdef __CUDA_ARCH__
	ulonglong2 *to = (ulonglong2 *)wqe;

	to[0] = make_ulonglong2(a, b);
	to[1] = make_ulonglong2(c, d);
	to[2] = make_ulonglong2(e, f);
#else
	const uint64_t words[] = {a, b, c, d, e, f};

	memcpy(wqe, words, sizeof(words));
#endif
}

/*
 * Build the WQE with index q->producer + <ahead>. Lanes of a warp may build different WQEs at the
 * same time; mlx5_ring() then publishes them together. The caller has checked mlx5_room().
 */
MLX5_FN void mlx5_wqe_build(struct mlx5_queue *q, uint32_t ahead, const struct mlx5_write *w)
{
	uint16_t index = (uint16_t)(q->producer + ahead);
	struct mlx5_wqe *wqe = &q->wqes[index & (q->wqe_count - 1)];
	uint32_t opcode = w->with_imm ? MLX5_OP_RDMA_WRITE_IMM : MLX5_OP_RDMA_WRITE;

	mlx5_wqe_store(wqe,
		       /* control segment */
		       mlx5_words(mlx5_be32((uint32_t)index << 8 | opcode),
				  mlx5_be32(q->qpn << 8 | (w->length > 0 ? 3 : 2))),
		       mlx5_words(w->signal ? (uint32_t)MLX5_CE_ALWAYS << 24 : 0,
				  w->with_imm ? mlx5_be32(w->imm) : 0),
		       /* remote address segment */
		       mlx5_be64(w->remote_address), mlx5_words(mlx5_be32(w->rkey), 0),
		       /* data segment */
		       mlx5_words(mlx5_be32(w->length), mlx5_be32(w->lkey)),
		       mlx5_be64(w->local_address));
}

/* The send counter that a doorbell's value carries. */
MLX5_FN uint16_t mlx5_bell_counter(uint64_t value)
{
	return (uint16_t)(mlx5_be32((uint32_t)value) >> 8);
}

/* The doorbell's value when <producer> WQEs are built. */
MLX5_FN uint64_t mlx5_bell(const struct mlx5_queue *q, uint16_t producer)
{
	return mlx5_words(mlx5_be32((uint32_t)producer << 8), mlx5_be32(q->qpn << 8));
}

/* Hand the next <n> WQEs to the NIC with one doorbell. One thread calls it. */
MLX5_FN void mlx5_ring(struct mlx5_queue *q, uint32_t n)
{
	q->producer = (uint16_t)(q->producer + n);
	mlx5_wqes_before_record();
	q->record[1] = mlx5_be32(q->producer);
	if (!q->bell_counts)
		mlx5_record_before_doorbell();
	mlx5_doorbell_store(q->doorbell, mlx5_bell(q, q->producer));
}

/* True when <tail>, the last word of the next CQE, says that the CQE is new. */
MLX5_FN bool mlx5_cqe_new(const struct mlx5_queue *q, uint32_t tail)
{
	uint8_t op_own = (uint8_t)(tail >> 24);

	return op_own >> 4 != MLX5_POST_CQE_INVALID &&
	       (op_own & 1) == ((q->cq_index & q->cqe_count) != 0);
}

MLX5_FN const volatile struct mlx5_cqe *mlx5_cqe_next(const struct mlx5_queue *q)
{
	return &q->cqes[q->cq_index & (q->cqe_count - 1)];
}

enum mlx5_poll { MLX5_POLL_EMPTY, MLX5_POLL_DONE, MLX5_POLL_ERROR };

/* Consume the next CQE, whose last word is <tail>, and which is new. Results as mlx5_cq_poll(). */
MLX5_FN enum mlx5_poll mlx5_cq_consume(struct mlx5_queue *q, uint32_t tail)
{
	uint16_t counter = (uint16_t)((tail & 0xff) << 8 | (tail >> 8 & 0xff));

	q->consumer = (uint16_t)(counter + 1);
	/* The NIC may overwrite the CQE from here on. */
	q->cq_index++;
	if (q->cq_record != NULL)
		*q->cq_record = mlx5_be32(q->cq_index & 0xffffff);
	return tail >> 28 == MLX5_POST_CQE_ERROR ? MLX5_POLL_ERROR : MLX5_POLL_DONE;
}

/*
 * Read one CQE. MLX5_POLL_DONE: its WQE and all before it are complete. MLX5_POLL_ERROR: the queue
 * is dead; <syndrome>, unless NULL, gets the reason (MLX5_SYNDROME_*).
 */
MLX5_FN enum mlx5_poll mlx5_cq_poll(struct mlx5_queue *q, uint8_t *syndrome)
{
	const volatile struct mlx5_cqe *cqe = mlx5_cqe_next(q);
	uint32_t tail = mlx5_cqe_tail(cqe);

	if (!mlx5_cqe_new(q, tail))
		return MLX5_POLL_EMPTY;
	if (tail >> 28 == MLX5_POST_CQE_ERROR && syndrome != NULL)
		*syndrome = cqe->syndrome;
	return mlx5_cq_consume(q, tail);
}

#endif
