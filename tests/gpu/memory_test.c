/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU's memory as an RDMA device would get it: allocated, exported as a dma-buf, and given back.
 * No RDMA device is needed. Prints what it found. Exits with 77 where there is no GPU.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/cuda/gpu_list.h"
#include "loop/cuda/gpu_memory.h"
#include "loop/cuda/gpu_pin.h"
#include "loop/link_memory.h"
#include "loop/loop.h"
#include "runtime/host_page.h"
#include "require.h"

#define ROUNDS 64

static bool is_zero(const struct gpu_memory *m)
{
	uint8_t *host = malloc(m->size);
	bool zero;

	if (host == NULL || cudaMemcpy(host, (const void *)(uintptr_t)m->at, m->size,
				       cudaMemcpyDeviceToHost) != cudaSuccess) {
		free(host);
		return false;
	}
	zero = host[0] == 0 && memcmp(host, host + 1, m->size - 1) == 0;
	free(host);
	return zero;
}

static void check_size(size_t size)
{
	struct gpu_memory m;
	char why[160];
	int fd;

	if (gpu_memory_create(&m, 0, size, why, sizeof(why)) < 0) {
		REQUIRE(false, "%zu bytes: %s", size, why);
		return;
	}
	fd = m.dmabuf_fd;
	REQUIRE(m.at % GPU_MEMORY_UNIT == 0 && m.size % GPU_MEMORY_UNIT == 0 && m.size >= size &&
			m.size % host_page() == 0,
		"%zu bytes: at %#lx, %zu", size, (unsigned long)m.at, m.size);
	REQUIRE(is_zero(&m), "%zu bytes: not zeroed", size);
	if (fd >= 0)
		REQUIRE(lseek(fd, 0, SEEK_END) == (off_t)m.size, "%zu bytes: the dma-buf has %ld",
			size, (long)lseek(fd, 0, SEEK_END));
	printf("       %zu bytes: at %#lx, %zu, dma-buf %s\n", size, (unsigned long)m.at, m.size,
	       fd >= 0 ? "exported" : why);
	gpu_memory_destroy(&m);
	REQUIRE(fd < 0 || fcntl(fd, F_GETFD) < 0, "%zu bytes: the dma-buf is still open", size);
}

/* A link's spans name parts of one dma-buf, at the same offset in a page as in memory. */
static void check_link(void)
{
	struct link_memory m;
	char why[160];
	uint64_t page = host_page();

	if (link_memory_create_on_gpu(&m, 0, 256, 65536, 1000, 1 << 20, why, sizeof(why)) < 0) {
		REQUIRE(false, "%s", why);
		return;
	}
	REQUIRE(m.writable.on_gpu && m.sendable.on_gpu && m.writable.dmabuf_offset == 0 &&
			m.sendable.dmabuf_offset == m.sendable.va - m.writable.va &&
			m.sendable.dmabuf_offset % page == m.sendable.va % page &&
			m.sendable.dmabuf_offset + m.sendable.length <= m.gpu.size,
		"the spans do not fit their dma-buf");
	link_memory_destroy(&m);
}

static size_t free_bytes(void)
{
	size_t left = 0, all;

	cudaMemGetInfo(&left, &all);
	return left;
}

static void check_return(void)
{
	struct gpu_memory m;
	char why[160];
	size_t before = free_bytes();

	for (int i = 0; i < ROUNDS; i++)
		if (gpu_memory_create(&m, 0, 8 << 20, why, sizeof(why)) == 0)
			gpu_memory_destroy(&m);
	REQUIRE(free_bytes() >= before, "%zu bytes are not given back", before - free_bytes());
}

/* An ordinary page, as a register, and others as a queue: there is no NIC here. */
static void check_register(void)
{
	uint8_t *pages = aligned_alloc(host_page(), 4 * host_page());
	struct mlx5_queue q = {.wqe_count = 16, .cqe_count = 16};
	char why[256] = "";

	REQUIRE(pages != NULL, "no memory");
	q.doorbell = (volatile uint64_t *)pages;
	REQUIRE(agent_loop_cuda.can_ring(0, &q, why, sizeof(why)), "%s", why);
	q.wqes = (struct mlx5_wqe *)(pages + host_page());
	q.cqes = (struct mlx5_cqe *)(pages + 2 * host_page());
	q.record = (uint32_t *)(pages + 3 * host_page());
	q.cq_record = q.record + 16;
	REQUIRE(agent_loop_cuda.can_ring(0, &q, why, sizeof(why)), "%s", why);
	/* Nothing is mapped there. */
	q.wqes = (struct mlx5_wqe *)0x1000;
	REQUIRE(!agent_loop_cuda.can_ring(0, &q, why, sizeof(why)) && strstr(why, "queues") != NULL,
		"a queue that is not there is mapped");
	q.doorbell = (volatile uint64_t *)0x1000;
	REQUIRE(!agent_loop_cuda.can_ring(0, &q, why, sizeof(why)),
		"a page that is not there is mapped");
	printf("       a page that is not there: %s\n", why);
	free(pages);
}

int main(void)
{
	char name[128], why[256] = "";

	if (agent_gpus(why, sizeof(why)) == 0) {
		printf("skipped: %s\n", why);
		return 77;
	}
	agent_gpu_name(0, name, sizeof(name));
	printf("       %s: %s\n", name,
	       gpu_memory_is_ordered(0, why, sizeof(why)) ? "sees a NIC's writes in order" : why);
	check_size(1);
	check_size(GPU_MEMORY_UNIT);
	check_size(GPU_MEMORY_UNIT + 1);
	check_size(33 << 20);
	check_link();
	check_return();
	check_register();
	printf("%s\n", failures == 0 ? "passed" : "failed");
	return failures == 0 ? 0 : 1;
}
