/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "loop/cuda/gpu_memory.h"
#include "runtime/host_page.h"

typedef CUresult (*export_fn)(void *handle, CUdeviceptr at, size_t size, CUmemRangeHandleType type,
			      unsigned long long flags);
typedef CUresult (*attribute_fn)(const void *value, CUpointer_attribute attribute, CUdeviceptr at);

/* The driver's own calls come by name, so that a host without it can still start the agent. */
static void *driver_call(const char *name)
{
	enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
	void *call = NULL;
	cudaError_t ret;

#if CUDART_VERSION >= 12050
	ret = cudaGetDriverEntryPointByVersion(name, &call, 12000, cudaEnableDefault, &found);
#else
	ret = cudaGetDriverEntryPoint(name, &call, cudaEnableDefault, &found);
#endif
	return ret == cudaSuccess && found == cudaDriverEntryPointSuccess ? call : NULL;
}

static int export_dmabuf(const struct gpu_memory *m, char *why, size_t why_size)
{
	export_fn export = (export_fn)driver_call("cuMemGetHandleForAddressRange");
	int fd = -1;
	CUresult ret;

	if (export == NULL) {
		snprintf(why, why_size, "dma-buf: the NVIDIA driver is older than 515");
		return -1;
	}
	ret = export(&fd, m->at, m->size, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (ret == CUDA_SUCCESS)
		return fd;
	snprintf(why, why_size, "dma-buf: the NVIDIA driver exports none (error %d)", (int)ret);
	return -1;
}

/* The driver's copies to and from this memory must be done when they return, as a NIC uses it
 * without the driver's knowledge. */
static void order_copies(const struct gpu_memory *m)
{
	attribute_fn set = (attribute_fn)driver_call("cuPointerSetAttribute");
	unsigned int on = 1;

	if (set != NULL)
		set(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, m->at);
}

int gpu_memory_create(struct gpu_memory *m, int gpu, size_t size, char *why, size_t why_size)
{
	size_t unit = host_page() > GPU_MEMORY_UNIT ? host_page() : GPU_MEMORY_UNIT;
	size_t whole = (size + unit - 1) / unit * unit;
	cudaError_t ret = cudaSetDevice(gpu);

	*m = (struct gpu_memory){.gpu = gpu, .size = whole, .dmabuf_fd = -1};
	why[0] = '\0';
	/* Small allocations share a block of the driver's; with one unit more, ours begins and ends
	 * at multiples of it. */
	if (ret == cudaSuccess)
		ret = cudaMalloc(&m->allocation, whole + unit);
	if (ret == cudaSuccess) {
		m->at = ((uintptr_t)m->allocation + unit - 1) / unit * unit;
		ret = cudaMemset((void *)(uintptr_t)m->at, 0, whole);
	}
	if (ret == cudaSuccess)
		ret = cudaDeviceSynchronize();
	if (ret != cudaSuccess) {
		snprintf(why, why_size, "GPU %d: %s", gpu, cudaGetErrorString(ret));
		cudaGetLastError();
		gpu_memory_destroy(m);
		return -ENOMEM;
	}
	order_copies(m);
	m->dmabuf_fd = export_dmabuf(m, why, why_size);
	return 0;
}

void gpu_memory_destroy(struct gpu_memory *m)
{
	if (m->allocation == NULL)
		return;
	if (m->dmabuf_fd >= 0)
		close(m->dmabuf_fd);
	cudaSetDevice(m->gpu);
	cudaFree(m->allocation);
	cudaGetLastError();
	*m = (struct gpu_memory){.dmabuf_fd = -1};
}

bool gpu_memory_is_ordered(int gpu, char *why, size_t size)
{
	int ordering = -1;
	cudaError_t ret =
		cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, gpu);

	if (ret != cudaSuccess)
		snprintf(why, size, "GPU %d: CUDA does not say how it orders a NIC's writes: %s",
			 gpu, cudaGetErrorString(ret));
	else
		snprintf(why, size,
			 "GPU %d may see a NIC's writes out of order (write ordering %d, at least "
			 "%d is needed)",
			 gpu, ordering, cudaGPUDirectRDMAWritesOrderingOwner);
	cudaGetLastError();
	return ret == cudaSuccess && ordering >= cudaGPUDirectRDMAWritesOrderingOwner;
}
