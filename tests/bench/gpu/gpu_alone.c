/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu_alone.h"
#include "gpu/gpu_load.h"
#include "gpu/gpu_stamp.h"

#define BATCHES 300

/* The model between two stamps; one at a time, as capture() gets no pointer to it. */
static struct {
	struct agent_model model;
	const struct agent_model *inner;
	bool empty;            /* nothing between the stamps */
	struct stamps *stamps; /* on the GPU */
} stamped;

static int stamped_capture(void *state, struct agent_model_gpu *gpu, char *error, size_t size)
{
	bool fine = gpu_stamp(stamped.stamps, 0, gpu->stream) == cudaSuccess;
	int ret = 0;

	if (stamped.empty) {
		/* Its replies are empty. */
		gpu->reply_lengths = NULL;
		gpu->statuses = NULL;
	} else {
		ret = stamped.inner->capture(state, gpu, error, size);
	}
	if (ret == 0 && (!fine || gpu_stamp(stamped.stamps, 1, gpu->stream) != cudaSuccess)) {
		snprintf(error, size, "cannot record a stamp");
		ret = -EIO;
	}
	return ret;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_us(const struct stamps *s)
{
	double took[STAMPS_MAX];
	uint32_t n = s->n < STAMPS_MAX ? s->n : STAMPS_MAX, from = n / 10;

	for (uint32_t i = from; i < n; i++)
		took[i - from] = (s->end[i] - s->begin[i]) / 1e3;
	qsort(took, n - from, sizeof(*took), compare);
	return n > from ? took[(n - from) / 2] : -1;
}

/* Send full batches, one after the other. */
static void ask_batches(struct rig *rig, uint32_t batch)
{
	uint32_t length = rig->model.shape.max_request;
	uint64_t end = clock_now_ns() + 20000000000ull;
	struct rig_reply r;

	for (uint32_t i = 0; i < batch; i++)
		memset(rig_slot(rig, 0, i), 0x3c, length); /* floats near 0.01 */
	for (int k = 0; k < BATCHES; k++) {
		for (uint32_t i = 0; i < batch; i++)
			rig_submit(rig, 0, i, length, NULL);
		for (uint32_t came = 0; came < batch && clock_now_ns() < end;)
			came += rig_reply(rig, 0, &r);
	}
}

static double stamped_us(bool empty, const char *arguments, uint32_t batch, int gpu, char *error,
			 size_t size)
{
	uint32_t slots = 2;
	struct rig rig;
	struct stamps *host = calloc(1, sizeof(*host));
	double us = -1;

	while (slots < batch)
		slots *= 2;
	stamped.empty = empty;
	cudaSetDevice(gpu);
	if (host == NULL || cudaMalloc((void **)&stamped.stamps, sizeof(*host)) != cudaSuccess ||
	    cudaMemset(stamped.stamps, 0, sizeof(*host)) != cudaSuccess) {
		snprintf(error, size, "no memory for stamps");
	} else if (rig_start(&rig,
			     &(struct rig_params){.own = &stamped.model,
						  .arguments = arguments,
						  .max_batch = batch,
						  .batch_timeout_us = batch > 1 ? 1000 : 0,
						  .heartbeat_ms = 100,
						  .links = 1,
						  .slots = slots,
						  .gpu = gpu,
						  .ops = &agent_loop_cuda},
			     error, size) == 0) {
		ask_batches(&rig, batch);
		rig_stop(&rig);
		cudaMemcpy(host, stamped.stamps, sizeof(*host), cudaMemcpyDeviceToHost);
		us = median_us(host);
	}
	cudaFree(stamped.stamps);
	free(host);
	return us;
}

double gpu_alone_us(const struct agent_model *model, const char *arguments, uint32_t batch, int gpu,
		    char *error, size_t size)
{
	double with, without;

	stamped.inner = model;
	stamped.model = *model;
	stamped.model.capture = stamped_capture;
	with = stamped_us(false, arguments, batch, gpu, error, size);
	without = stamped_us(true, arguments, batch, gpu, error, size);
	return with < 0 || without < 0 ? -1 : with - without;
}
