/* SPDX-License-Identifier: BSD-3-Clause */
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "models/mlp_cuda.h"

#define THREADS    128
#define SHARED_MAX (48u << 10)

struct device_layer {
	const float *weight; /* [inputs][outputs]: neighbours in a warp are neighbours in memory */
	const float *bias;
	uint32_t inputs, outputs;
};

struct mlp_cuda {
	float *floats; /* weights and biases of all layers */
	struct device_layer *layers;
	uint32_t n_layers, inputs, outputs, width;
	float scale;
};

/* All threads of a block: compute the layer's outputs for one request. */
static __device__ void mlp_forward_layer(const struct device_layer *layer, const float *from,
					 float *to, bool last)
{
	for (uint32_t o = threadIdx.x; o < layer->outputs; o += blockDim.x) {
		float sum = layer->bias[o];

#pragma unroll 16
		for (uint32_t i = 0; i < layer->inputs; i++)
			sum += layer->weight[(size_t)i * layer->outputs + o] * from[i];
		to[o] = last ? sum : fmaxf(sum, 0);
	}
	__syncthreads();
}

static __device__ void mlp_write_reply(uint8_t *to, const uint8_t *request, const float *scores,
				       uint32_t n)
{
	float *out = (float *)(to + MLP_REPLY_HEADER);
	uint32_t best = 0;

	for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
		out[i] = scores[i];
	if (threadIdx.x != 0)
		return;
	for (uint32_t i = 1; i < n; i++)
		best = scores[i] > scores[best] ? i : best;
	for (uint32_t i = 0; i < MLP_ID_SIZE; i++)
		to[i] = request[i];
	to[MLP_ID_SIZE] = (uint8_t)best;
	to[MLP_ID_SIZE + 1] = to[MLP_ID_SIZE + 2] = to[MLP_ID_SIZE + 3] = 0;
}

static __global__ void __launch_bounds__(THREADS)
	mlp_rows(struct mlp_cuda m, struct agent_model_gpu gpu)
{
	extern __shared__ float activations[];
	float *from = activations, *to = activations + m.width;
	uint32_t row = blockIdx.x;

	if (row >= *gpu.rows)
		return;
	const uint8_t *request = (const uint8_t *)gpu.input + row * gpu.input_stride;
	bool fits = gpu.lengths[row] == MLP_ID_SIZE + m.inputs;

	if (threadIdx.x == 0) {
		gpu.statuses[row] = fits ? 0 : -EINVAL;
		gpu.reply_lengths[row] = MLP_REPLY_HEADER + m.outputs * (uint32_t)sizeof(float);
	}
	if (!fits)
		return;
	for (uint32_t i = threadIdx.x; i < m.inputs; i += blockDim.x)
		from[i] = (float)request[MLP_ID_SIZE + i] * m.scale;
	__syncthreads();
	for (uint32_t l = 0; l < m.n_layers; l++) {
		float *swap = from;

		mlp_forward_layer(&m.layers[l], from, to, l + 1 == m.n_layers);
		from = to;
		to = swap;
	}
	mlp_write_reply((uint8_t *)gpu.output + row * gpu.output_stride, request, from, m.outputs);
}

/* Write the weights of all layers, transposed, each with its biases behind it, to <floats>; fill
 * <layers> with where they will begin on the <device>. */
static void mlp_pack_weights(const struct mlp_weights *w, float *floats, const float *device,
			     struct device_layer *layers)
{
	size_t at = 0;

	for (uint32_t l = 0; l < w->n_layers; l++) {
		const struct mlp_layer *layer = &w->layers[l];
		size_t products = (size_t)layer->inputs * layer->outputs;

		layers[l] = (struct device_layer){device + at, device + at + products,
						  layer->inputs, layer->outputs};
		for (size_t o = 0; o < layer->outputs; o++) {
			for (size_t i = 0; i < layer->inputs; i++)
				floats[at + i * layer->outputs + o] =
					layer->weight[o * layer->inputs + i];
			floats[at + products + o] = layer->bias[o];
		}
		at += products + layer->outputs;
	}
}

extern "C" struct mlp_cuda *mlp_cuda_create(const struct mlp_weights *w, char *error, size_t size)
{
	struct mlp_cuda *m = (struct mlp_cuda *)calloc(1, sizeof(*m));
	struct device_layer layers[MLP_LAYERS_MAX];
	cudaError_t ret = cudaErrorMemoryAllocation;
	float *floats = NULL;
	size_t n = 0;

	for (uint32_t l = 0; l < w->n_layers; l++)
		n += ((size_t)w->layers[l].inputs + 1) * w->layers[l].outputs;
	if (m == NULL || 2 * w->width * sizeof(float) > SHARED_MAX) {
		snprintf(error, size,
			 m == NULL ? "out of memory" : "a layer is wider than 6,144 on the GPU");
		free(m);
		return NULL;
	}
	m->n_layers = w->n_layers;
	m->inputs = w->inputs;
	m->outputs = w->outputs;
	m->width = w->width;
	m->scale = w->scale;
	floats = (float *)malloc(n * sizeof(*floats));
	if (floats != NULL)
		ret = cudaMalloc((void **)&m->floats, n * sizeof(float));
	if (ret == cudaSuccess)
		ret = cudaMalloc((void **)&m->layers, w->n_layers * sizeof(*layers));
	if (ret == cudaSuccess) {
		mlp_pack_weights(w, floats, m->floats, layers);
		ret = cudaMemcpy(m->floats, floats, n * sizeof(float), cudaMemcpyHostToDevice);
	}
	if (ret == cudaSuccess)
		ret = cudaMemcpy(m->layers, layers, w->n_layers * sizeof(*layers),
				 cudaMemcpyHostToDevice);
	free(floats);
	if (ret == cudaSuccess)
		return m;
	snprintf(error, size, "the weights cannot be copied to the GPU: %s",
		 cudaGetErrorString(ret));
	mlp_cuda_destroy(m);
	return NULL;
}

extern "C" int mlp_cuda_capture(struct mlp_cuda *m, struct agent_model_gpu *gpu, char *error,
				size_t size)
{
	mlp_rows<<<gpu->max_batch, THREADS, 2 * m->width * sizeof(float),
		   (cudaStream_t)gpu->stream>>>(*m, *gpu);
	cudaError_t ret = cudaGetLastError();

	if (ret == cudaSuccess)
		return 0;
	snprintf(error, size, "%s", cudaGetErrorString(ret));
	return -EIO;
}

extern "C" void mlp_cuda_destroy(struct mlp_cuda *m)
{
	if (m == NULL)
		return;
	cudaFree(m->floats);
	cudaFree(m->layers);
	free(m);
}
