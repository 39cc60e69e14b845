/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinning for a GPU, with a CUDA runtime that remembers what it was asked for. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>

#include "loop/cuda/gpu_pin.h"

/* GPUs see host memory this far from where the host sees it. */
#define APART 0x100000000000ull

static long page_bytes = 4096;
static unsigned int registered, asked;
static unsigned int last_flags;
static uintptr_t last_at;
static size_t last_size;
static bool no_registers, no_memory;

long sysconf(int name)
{
	long (*host)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");

	return name == _SC_PAGESIZE ? page_bytes : host(name);
}

cudaError_t cudaHostRegister(void *at, size_t size, unsigned int flags)
{
	bool io = (flags & cudaHostRegisterIoMemory) != 0;

	asked++;
	last_at = (uintptr_t)at;
	last_size = size;
	last_flags = flags;
	if (io && no_registers)
		return cudaErrorNotPermitted;
	if (!io && no_memory)
		return cudaErrorInvalidValue;
	registered++;
	return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *at)
{
	cr_assert_eq((uintptr_t)at % (uintptr_t)page_bytes, 0);
	registered--;
	return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **seen, void *at, unsigned int flags)
{
	*seen = (uint8_t *)at + APART;
	return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

static volatile void *address(uintptr_t at)
{
	return (volatile void *)at;
}

Test(agent_gpu_pin, gpus_may_see_a_page_elsewhere)
{
	void *seen = NULL;

	cr_assert_eq(gpu_pin(address(0x10010), 8, false, &seen), cudaSuccess);
	cr_expect_eq((uintptr_t)seen, 0x10010 + APART);
	cr_expect_eq(last_at, 0x10000);
	cr_expect_eq(last_size, 4096);
	/* The same page again, by another user and another address. */
	cr_assert_eq(gpu_pin(address(0x10080), 8, false, &seen), cudaSuccess);
	cr_expect_eq((uintptr_t)seen, 0x10080 + APART);
	cr_expect_eq(asked, 1);
	gpu_unpin(address(0x10010));
	cr_expect_eq(registered, 1);
	gpu_unpin(address(0x10080));
	cr_expect_eq(registered, 0);
}

Test(agent_gpu_pin, whole_pages_of_any_size_are_pinned)
{
	static const struct {
		long page;
		uintptr_t at;
		size_t size;
		uintptr_t from;
		size_t pinned;
	} rows[] = {
		{4096, 0x20000, 4096, 0x20000, 4096},  {4096, 0x20fff, 2, 0x20000, 8192},
		{4096, 0x20040, 8192, 0x20000, 12288}, {65536, 0x20800, 8, 0x20000, 65536},
		{65536, 0x2ffff, 2, 0x20000, 131072},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *seen;

		page_bytes = rows[i].page;
		cr_assert_eq(gpu_pin(address(rows[i].at), rows[i].size, false, &seen), cudaSuccess);
		cr_expect_eq(last_at, rows[i].from, "row %zu", i);
		cr_expect_eq(last_size, rows[i].pinned, "row %zu", i);
		gpu_unpin(address(rows[i].at));
	}
	cr_expect_eq(registered, 0);
}

Test(agent_gpu_pin, a_register_is_pinned_as_one)
{
	void *seen;

	cr_assert_eq(gpu_pin(address(0x30800), 8, true, &seen), cudaSuccess);
	cr_expect(last_flags & cudaHostRegisterIoMemory);
	gpu_unpin(address(0x30800));
	/* Memory is not. */
	cr_assert_eq(gpu_pin(address(0x30800), 8, false, &seen), cudaSuccess);
	cr_expect_not(last_flags & cudaHostRegisterIoMemory);
	gpu_unpin(address(0x30800));
}

Test(agent_gpu_pin, a_register_in_memory_is_pinned_as_memory)
{
	void *seen;

	no_registers = true;
	cr_assert_eq(gpu_pin(address(0x30800), 8, true, &seen), cudaSuccess);
	cr_expect_eq(asked, 2);
	gpu_unpin(address(0x30800));
	cr_expect_eq(registered, 0);
	/* The error is the one about the register. */
	no_memory = true;
	cr_expect_eq(gpu_pin(address(0x30800), 8, true, &seen), cudaErrorNotPermitted);
	cr_expect_eq(registered, 0);
}

Test(agent_gpu_pin, pages_that_are_pinned_in_part_are_refused)
{
	void *seen;

	cr_assert_eq(gpu_pin(address(0x40000), 4096, false, &seen), cudaSuccess);
	cr_expect_eq(gpu_pin(address(0x40010), 4096, false, &seen),
		     cudaErrorHostMemoryAlreadyRegistered);
	gpu_unpin(address(0x40000));
	cr_expect_eq(registered, 0);
}
