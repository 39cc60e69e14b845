/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdlib.h>

#include "loop/gpu_pin.h"

#define PAGE 4096

struct pinned {
	uintptr_t from, to; /* whole pages */
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

cudaError_t gpu_pin(const volatile void *at, size_t size, bool io)
{
	uintptr_t from = (uintptr_t)at / PAGE * PAGE;
	uintptr_t to = ((uintptr_t)at + size + PAGE - 1) / PAGE * PAGE;
	struct pinned *known = find_pinned((uintptr_t)at);
	cudaError_t ret;
	void *seen;

	if (known != NULL) {
		/* Pages that are pinned already must hold all of this range. */
		if (known->to < to)
			return cudaErrorHostMemoryAlreadyRegistered;
		known->users++;
		return cudaSuccess;
	}
	ret = grow_table();
	if (ret != cudaSuccess)
		return ret;
	ret = cudaHostRegister((void *)from, to - from,
			       cudaHostRegisterPortable | cudaHostRegisterMapped |
				       (io ? cudaHostRegisterIoMemory : 0));
	if (ret != cudaSuccess)
		return ret;
	ret = cudaHostGetDevicePointer(&seen, (void *)from, 0);
	if (ret == cudaSuccess && seen != (void *)from)
		ret = cudaErrorNotSupported;
	if (ret != cudaSuccess) {
		cudaHostUnregister((void *)from);
		return ret;
	}
	table[n_pinned++] = (struct pinned){from, to, 1};
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
