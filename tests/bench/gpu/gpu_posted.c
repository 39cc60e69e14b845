/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "gpu/gpu_parts.h"
#include "gpu/gpu_poster.h"
#include "loop/cuda/gpu_pin.h"
#include "rnic/send_queue.h"

#define RUN_NS        30000000ull
#define WQES_MAX      256u
#define WQES_MIN      16u
#define PAYLOAD_BYTES (16u << 20) /* of a poster */
#define QPN           0x300
#define LKEY          0
/* Bits per second that the literature asks for. */
#define WANTED 100e9

static const struct {
	const char *name;
	uint32_t bytes;
} sizes[] = {{"1kib", 1024},   {"4kib", 4096},     {"16kib", 16384},
	     {"64kib", 65536}, {"256kib", 262144}, {"1mib", 1u << 20}};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static const uint32_t warps[] = {1, 2, 4, 8};
#define WARPS (sizeof(warps) / sizeof(warps[0]))

/* The payload that a posting warp's block writes before it posts. */
enum payload { NONE, HOST, HBM, PAYLOADS };
static const char *const infix[PAYLOADS] = {"", "written_host_", "written_hbm_"};

/* The NIC's side of one poster. */
struct consumer {
	pthread_t thread;
	struct send_queue sq;
	struct rnic_span span;
	int stop; /* atomic: nothing more comes */
	uint64_t taken, bad;
};

static struct {
	uint8_t *payload[PAYLOADS]; /* POSTERS_MAX * PAYLOAD_BYTES each */
	struct gpu_poster *posters; /* pinned */
	struct consumer consumer[POSTERS_MAX];
} all;

/* Takes WQEs and completes them; reads no payload. */
static void *consume(void *argument)
{
	struct consumer *c = argument;
	struct send_queue *sq = &c->sq;
	struct send_work w;
	bool last;

	do {
		last = __atomic_load_n(&c->stop, __ATOMIC_ACQUIRE);
		send_queue_update(sq);
		while (sq->next != sq->producer) {
			c->bad += send_queue_read(sq, &c->span, LKEY, &w) != 0;
			sq->next++;
			c->taken++;
			if (w.signal)
				send_queue_report(sq, w.index, MLX5_POST_CQE_OK, 0);
		}
	} while (!last);
	return NULL;
}

static bool pin_queue(const struct send_queue *sq, struct mlx5_queue *q)
{
	void *wqes, *cqes, *record, *doorbell;

	*q = send_queue_view(sq);
	q->bell_counts = false; /* a ConnectX reads the record */
	if (gpu_pin(sq->wqes, sq->count * sizeof(*sq->wqes), false, &wqes) != cudaSuccess ||
	    gpu_pin(sq->cqes, sq->count * sizeof(*sq->cqes), false, &cqes) != cudaSuccess ||
	    gpu_pin(sq->record, 2 * sizeof(*sq->record), false, &record) != cudaSuccess ||
	    gpu_pin(sq->doorbell, sizeof(*sq->doorbell), false, &doorbell) != cudaSuccess)
		return false;
	q->wqes = wqes;
	q->cqes = cqes;
	q->record = record;
	q->doorbell = doorbell;
	return true;
}

static void unpin_queue(const struct send_queue *sq)
{
	gpu_unpin(sq->wqes);
	gpu_unpin(sq->cqes);
	gpu_unpin(sq->record);
	gpu_unpin(sq->doorbell);
}

static bool open_poster(uint32_t i, uint32_t bytes, enum payload payload)
{
	uint32_t wqes = PAYLOAD_BYTES / bytes;
	struct consumer *c = &all.consumer[i];
	struct gpu_poster *p = &all.posters[i];

	wqes = wqes > WQES_MAX ? WQES_MAX : wqes < WQES_MIN ? WQES_MIN : wqes;
	*c = (struct consumer){.span = {.va = 4096, .length = PAYLOAD_BYTES}};
	*p = (struct gpu_poster){.local_address = c->span.va};
	if (send_queue_create(&c->sq, wqes) < 0)
		return false;
	c->sq.qpn = QPN + i;
	if (!pin_queue(&c->sq, &p->queue))
		return false;
	if (payload != NONE)
		p->payload = all.payload[payload] + (size_t)i * PAYLOAD_BYTES;
	return pthread_create(&c->thread, NULL, consume, c) == 0;
}

static void close_poster(uint32_t i)
{
	struct consumer *c = &all.consumer[i];

	__atomic_store_n(&c->stop, 1, __ATOMIC_RELEASE);
	pthread_join(c->thread, NULL);
	unpin_queue(&c->sq);
	send_queue_destroy(&c->sq);
}

/* Messages per second of <n> posters; <waited> gets the share of their time that they waited for
 * the consumers. -1 after an error was printed. */
static double post(uint32_t n, uint32_t bytes, uint32_t batch, enum payload payload, double *waited)
{
	uint64_t posted = 0, taken = 0, bad = 0, begin = UINT64_MAX, end = 0, stuck = 0;
	int ret;

	*waited = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!open_poster(i, bytes, payload)) {
			fprintf(stderr, "posted: no memory for a queue\n");
			return -1;
		}
	ret = gpu_poster_run(all.posters, n, bytes, batch, RUN_NS);
	for (uint32_t i = 0; i < n; i++) {
		const struct gpu_poster *p = &all.posters[i];

		close_poster(i);
		posted += p->posted;
		stuck += p->stuck;
		taken += all.consumer[i].taken;
		bad += all.consumer[i].bad;
		begin = p->begin_ns < begin ? p->begin_ns : begin;
		end = p->end_ns > end ? p->end_ns : end;
		*waited += 1.0 * p->waited_ns / (p->end_ns - p->begin_ns) / n;
	}
	if (ret == 0 && bad == 0 && stuck == 0 && taken == posted && posted > 0)
		return posted / ((end - begin) / 1e9);
	fprintf(stderr, "posted: %u posters of %u bytes: %lu posted, %lu taken, %lu bad, %s\n", n,
		bytes, (unsigned long)posted, (unsigned long)taken, (unsigned long)bad,
		cudaGetErrorString(cudaGetLastError()));
	return -1;
}

static int allocate(void)
{
	size_t bytes = (size_t)POSTERS_MAX * PAYLOAD_BYTES;

	if (all.posters != NULL)
		return 0;
	if (cudaHostAlloc((void **)&all.payload[HOST], bytes, cudaHostAllocMapped) == cudaSuccess &&
	    cudaMalloc((void **)&all.payload[HBM], bytes) == cudaSuccess &&
	    cudaHostAlloc((void **)&all.posters, POSTERS_MAX * sizeof(*all.posters),
			  cudaHostAllocMapped) == cudaSuccess)
		return 0;
	fprintf(stderr, "posted: no memory\n");
	return -1;
}

static int measure_size(struct report *report, size_t size, enum payload payload, long cores)
{
	double rate, gbps, best = 0, waited;

	for (size_t w = 0; w < WARPS && (long)warps[w] < cores; w++) {
		rate = post(warps[w], sizes[size].bytes, 1, payload, &waited);
		if (rate < 0)
			return -1;
		gbps = rate * sizes[size].bytes * 8 / 1e9;
		best = gbps > best ? gbps : best;
		report_add(report, gbps, "gbps_posted_%s%s_warps%u", infix[payload],
			   sizes[size].name, warps[w]);
		if (payload != NONE || size != 0)
			continue;
		report_add(report, rate / 1e6, "mposts_per_s_warps%u", warps[w]);
		report_add(report, 100 * waited, "post_waited_percent_warps%u", warps[w]);
		report_add(report, WANTED / 8 / rate, "bytes_at_100gbps_warps%u", warps[w]);
	}
	report_add(report, best, "gbps_posted_%s%s", infix[payload], sizes[size].name);
	return 0;
}

int gpu_posted_measure(struct report *report)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	double rate, waited;

	cudaSetDevice(0);
	if (allocate() < 0)
		return -1;
	for (enum payload payload = NONE; payload < PAYLOADS; payload++)
		for (size_t i = 0; i < SIZES; i++)
			if (measure_size(report, i, payload, cores) < 0)
				return -1;
	rate = post(1, sizes[0].bytes, 16, NONE, &waited);
	if (rate < 0)
		return -1;
	report_add(report, rate / 1e6, "mposts_per_s_warps1_batched16");
	report_add(report, 100 * waited, "post_waited_percent_warps1_batched16");
	report_add(report, WANTED / 8 / rate, "bytes_at_100gbps_warps1_batched16");
	return 0;
}
