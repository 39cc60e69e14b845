/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdlib.h>

#include "loop/cuda/gpu_pin.h"
#include "runtime/host_page.h"

struct pinned {
	uintptr_t from, to; /* whole pages */
	uintptr_t seen;     /* where GPUs see <from> */
	unsigned int users;
};

static struct pinned *table;
static size_t n_pinned, capacity;

static struct pinned *find_pinned(uintptr_t at)
{
	for (size_t i = 0; i < n_pinned; i++)
		if (table[i].from <= at && at < table[i].to)
			return &table[i];
	return NULL;
}

static cudaError_t grow_table(void)
{
	struct pinned *larger;

	if (n_pinned < capacity)
		return cudaSuccess;
	larger = realloc(table, (2 * capacity + 64) * sizeof(*table));
	if (larger == NULL)
		return cudaErrorMemoryAllocation;
	table = larger;
	capacity = 2 * capacity + 64;
	return cudaSuccess;
}

static cudaError_t register_pages(uintptr_t from, size_t size, bool io)
{
	const unsigned int all = cudaHostRegisterPortable | cudaHostRegisterMapped;
	cudaError_t ret;

	ret = cudaHostRegister((void *)from, size, all | (io ? cudaHostRegisterIoMemory : 0));
	if (ret == cudaSuccess || !io || cudaHostRegister((void *)from, size, all) != cudaSuccess) {
		/* The first error is the one to tell: it is about registers. */
		cudaGetLastError();
		return ret;
	}
	cudaGetLastError();
	return cudaSuccess;
}

cudaError_t gpu_pin(const volatile void *at, size_t size, bool io, void **seen)
{
	uintptr_t from = (uintptr_t)at & ~(host_page() - 1);
	uintptr_t to = from + host_pages_up((uintptr_t)at - from + size);
	struct pinned *known = find_pinned((uintptr_t)at);
	cudaError_t ret;
	void *first;

	if (known != NULL) {
		/* Pages that are pinned already must hold all of this range. */
		if (known->to < to)
			return cudaErrorHostMemoryAlreadyRegistered;
		known->users++;
		*seen = (void *)(known->seen + ((uintptr_t)at - known->from));
		return cudaSuccess;
	}
	ret = grow_table();
	if (ret == cudaSuccess)
		ret = register_pages(from, to - from, io);
	if (ret != cudaSuccess)
		return ret;
	ret = cudaHostGetDevicePointer(&first, (void *)from, 0);
	if (ret != cudaSuccess) {
		cudaHostUnregister((void *)from);
		return ret;
	}
	table[n_pinned++] = (struct pinned){from, to, (uintptr_t)first, 1};
	*seen = (void *)((uintptr_t)first + ((uintptr_t)at - from));
	return cudaSuccess;
}

void gpu_unpin(const volatile void *at)
{
	struct pinned *known = find_pinned((uintptr_t)at);

	if (known == NULL || --known->users > 0)
		return;
	cudaHostUnregister((void *)known->from);
	*known = table[--n_pinned];
}
