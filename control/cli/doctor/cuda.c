/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "cli/doctor/cuda.h"

/* Numbers of CUdevice_attribute in CUDA 13.0's cuda.h; they never change. */
enum {
	COMPUTE_CAPABILITY_MAJOR = 75,
	COMPUTE_CAPABILITY_MINOR = 76,
	DIRECT_RDMA_SUPPORTED = 116,
	DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117,
	DIRECT_RDMA_WRITES_ORDERING = 118,
	DMA_BUF_SUPPORTED = 124,
};

/* CUresult is an enum and CUdevice an int; 0 is success. */
struct driver {
	int (*init)(unsigned int flags);
	int (*count)(int *count);
	int (*name)(char *name, int size, int device);
	int (*attribute)(int *value, int attribute, int device);
	int (*error_name)(int error, const char **text);
};

static int load(struct driver *driver, const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (handle == NULL)
		return -ENOENT;
	*(void **)&driver->init = dlsym(handle, "cuInit");
	*(void **)&driver->count = dlsym(handle, "cuDeviceGetCount");
	*(void **)&driver->name = dlsym(handle, "cuDeviceGetName");
	*(void **)&driver->attribute = dlsym(handle, "cuDeviceGetAttribute");
	*(void **)&driver->error_name = dlsym(handle, "cuGetErrorName");
	/* never closed: the driver's threads outlive dlclose() */
	return driver->init != NULL && driver->count != NULL && driver->name != NULL &&
			       driver->attribute != NULL
		       ? 0
		       : -EIO;
}

static int value(const struct driver *driver, int attribute, int device)
{
	int result = CUDA_NO_VALUE;

	return driver->attribute(&result, attribute, device) == 0 ? result : CUDA_NO_VALUE;
}

static void cuda_read_gpu(const struct driver *driver, int device, struct cuda_gpu *gpu)
{
	if (driver->name(gpu->name, sizeof(gpu->name), device) != 0)
		snprintf(gpu->name, sizeof(gpu->name), "unnamed");
	gpu->name[sizeof(gpu->name) - 1] = '\0';
	gpu->major = value(driver, COMPUTE_CAPABILITY_MAJOR, device);
	gpu->minor = value(driver, COMPUTE_CAPABILITY_MINOR, device);
	gpu->direct_rdma = value(driver, DIRECT_RDMA_SUPPORTED, device);
	gpu->dma_buf = value(driver, DMA_BUF_SUPPORTED, device);
	gpu->writes_ordering = value(driver, DIRECT_RDMA_WRITES_ORDERING, device);
	gpu->flush_options = value(driver, DIRECT_RDMA_FLUSH_WRITES_OPTIONS, device);
}

static int failed(const struct driver *driver, const char *call, int result, char *error,
		  size_t size)
{
	const char *text = NULL;

	if (driver->error_name != NULL)
		driver->error_name(result, &text);
	snprintf(error, size, "%s: %s (%d)", call, text != NULL ? text : "unknown error", result);
	return -EIO;
}

int cuda_gpus(const char *library, struct cuda_gpu gpu[CUDA_GPUS_MAX], char *error, size_t size)
{
	struct driver driver = {0};
	int n = 0, ret = load(&driver, library);

	if (ret == -EIO)
		snprintf(error, size, "%s is no CUDA driver", library);
	if (ret < 0)
		return ret;
	ret = driver.init(0);
	if (ret != 0)
		return failed(&driver, "cuInit", ret, error, size);
	ret = driver.count(&n);
	if (ret != 0)
		return failed(&driver, "cuDeviceGetCount", ret, error, size);
	n = n < 0 ? 0 : n < CUDA_GPUS_MAX ? n : CUDA_GPUS_MAX;
	for (int i = 0; i < n; i++)
		cuda_read_gpu(&driver, i, &gpu[i]);
	return n;
}
