/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#ifdef DOORBELL_CUDA
#include <cuda_runtime_api.h>
#endif

#include "far.h"
#include "standin.h"

struct far {
	struct standin_far *far;
	uint32_t worker; /* its queue pair's number */
};

#ifdef DOORBELL_CUDA
static void copy_by_driver(void *to, const void *from, size_t size)
{
	cudaError_t ret = cudaMemcpy(to, from, size, cudaMemcpyDefault);

	if (ret == cudaSuccess)
		return;
	fprintf(stderr, "a copy to or from the GPU fails: %s\n", cudaGetErrorString(ret));
	abort();
}
#endif

const char *far_device(struct rnic_address *address, char *error, size_t size)
{
	*address = (struct rnic_address){
		.family = 4,
		.addr.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
	};
	return STANDIN_DEVICE;
}

void far_serve_gpu(bool on_gpu)
{
#ifdef DOORBELL_CUDA
	standin_copy = on_gpu ? copy_by_driver : NULL;
#endif
}

struct far *far_open(size_t bytes)
{
	struct far *f = calloc(1, sizeof(*f));

	if (f == NULL || (f->far = standin_far_open(bytes)) == NULL) {
		free(f);
		return NULL;
	}
	return f;
}

void far_close(struct far *f)
{
	if (f != NULL)
		standin_far_close(f->far);
	free(f);
}

uint32_t far_qpn(const struct far *f)
{
	return standin_far_qpn(f->far);
}

uint32_t far_rkey(const struct far *f)
{
	return standin_far_rkey(f->far);
}

uint8_t *far_memory(const struct far *f)
{
	return standin_far_memory(f->far);
}

int far_connect(struct far *f, uint32_t qpn)
{
	f->worker = qpn;
	return 0;
}

bool far_write(struct far *f, uint32_t rkey, uint64_t va, const void *bytes, size_t length)
{
	return standin_far_write(f->worker, rkey, va, bytes, length) == 0;
}

bool far_next(struct far *f, struct far_message *message)
{
	struct standin_message m;

	if (!standin_far_next(f->far, &m))
		return false;
	*message = (struct far_message){m.address, m.length, m.imm};
	return true;
}

bool far_hold(struct far *f, bool holds)
{
	standin_far_hold(f->far, holds);
	return true;
}

void far_break(struct far *f)
{
	standin_break(f->worker);
}

bool far_is_content(void)
{
	if (standin_counters.wrong > 0)
		fprintf(stderr, "the stand-in refuses: %s\n", standin_wrong);
	if (standin_counters.overruns > 0)
		fprintf(stderr, "a completion queue had no room\n");
	if (standin_objects() > 0)
		fprintf(stderr, "%u objects were not given back\n", standin_objects());
	return standin_counters.wrong == 0 && standin_counters.overruns == 0 &&
	       standin_objects() == 0;
}
