/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A multi-layer perceptron with weights from a safetensors file: layers.N.weight [out, in] and
 * layers.N.bias [out], both F32, ReLU between layers and none after the last. A pixel is first
 * multiplied by __metadata__.input_scale (1 if there is none). Argument: weights=PATH.
 *
 * Request: 8 bytes of the client's own, then one byte per input of the first layer. Reply: the same
 * 8 bytes, the best class (u8), 3 zero bytes, one little-endian f32 score per output of the last.
 * Described as tensors: id and pixels, and id, class and scores.
 */
#include "models/arguments.h"
#include "models/mlp_cuda.h"
#include "models/mlp_weights.h"
#include "models/model.h"

#include <cblas.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows per product: always the same, so that BLAS picks the same kernel for every batch. */
#define MLP_TILE 16

struct mlp {
	struct mlp_weights weights;
	/* Rows of a tile that carry requests; the rest stay zero. MLP_TILE, or 1 where this
	 * machine's BLAS gives a row different bits at another place of the tile. */
	uint32_t rows;
	float *from; /* MLP_TILE x width floats each; a layer reads one and writes the other */
	float *to;
	struct mlp_cuda *cuda; /* NULL until captured */
};

static void layer_forward(const struct mlp_layer *layer, const float *from, float *to, bool last)
{
	for (uint32_t row = 0; row < MLP_TILE; row++)
		memcpy(to + (size_t)row * layer->outputs, layer->bias,
		       layer->outputs * sizeof(float));
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, MLP_TILE, (int)layer->outputs,
		    (int)layer->inputs, 1, from, (int)layer->inputs, layer->weight,
		    (int)layer->inputs, 1, to, (int)layer->outputs);
	for (size_t i = 0; !last && i < (size_t)MLP_TILE * layer->outputs; i++)
		to[i] = to[i] > 0 ? to[i] : 0;
}

/* Run all layers on the inputs in mlp->from. Returns the one of the two buffers that has the
 * scores. */
static const float *tile_forward(struct mlp *mlp)
{
	float *from = mlp->from, *to = mlp->to;

	for (uint32_t n = 0; n < mlp->weights.n_layers; n++) {
		float *swap = from;

		layer_forward(&mlp->weights.layers[n], from, to, n + 1 == mlp->weights.n_layers);
		from = to;
		to = swap;
	}
	return from;
}

/* True when equal rows of a tile give equal results, to the bit. */
static bool rows_agree(struct mlp *mlp)
{
	size_t outputs = mlp->weights.outputs, inputs = mlp->weights.inputs;
	const float *scores;

	for (uint32_t row = 0; row < MLP_TILE; row++)
		for (size_t i = 0; i < inputs; i++)
			mlp->from[row * inputs + i] = (float)(i * 2654435761u % 251) / 251;
	scores = tile_forward(mlp);
	for (uint32_t row = 1; row < MLP_TILE; row++)
		if (memcmp(scores, scores + row * outputs, outputs * sizeof(float)) != 0)
			return false;
	return true;
}

static void request_load(const struct mlp *mlp, const struct agent_model_item *item, float *row)
{
	const uint8_t *pixels = (const uint8_t *)item->request + MLP_ID_SIZE;

	for (uint32_t i = 0; i < mlp->weights.inputs; i++)
		row[i] = (float)pixels[i] * mlp->weights.scale;
}

static void reply_store(const struct mlp *mlp, struct agent_model_item *item, const float *scores)
{
	uint32_t outputs = mlp->weights.outputs;
	uint8_t *reply = item->reply;
	uint32_t best = 0;

	for (uint32_t i = 1; i < outputs; i++)
		if (scores[i] > scores[best])
			best = i;
	memcpy(reply, item->request, MLP_ID_SIZE);
	reply[MLP_ID_SIZE] = (uint8_t)best;
	memset(reply + MLP_ID_SIZE + 1, 0, 3);
	memcpy(reply + MLP_REPLY_HEADER, scores, outputs * sizeof(float));
	item->reply_length = MLP_REPLY_HEADER + outputs * (uint32_t)sizeof(float);
	item->status = 0;
}

static void tile_run(struct mlp *mlp, struct agent_model_item **tile, uint32_t n)
{
	size_t inputs = mlp->weights.inputs, outputs = mlp->weights.outputs;
	const float *scores;

	for (uint32_t row = 0; row < n; row++)
		request_load(mlp, tile[row], mlp->from + row * inputs);
	memset(mlp->from + n * inputs, 0, (MLP_TILE - n) * inputs * sizeof(float));
	scores = tile_forward(mlp);
	for (uint32_t row = 0; row < n; row++)
		reply_store(mlp, tile[row], scores + row * outputs);
}

static void mlp_run(void *state, struct agent_model_item *items, uint32_t n)
{
	struct mlp *mlp = state;
	struct agent_model_item *tile[MLP_TILE];
	uint32_t rows = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (items[i].request_length != MLP_ID_SIZE + mlp->weights.inputs) {
			items[i].reply_length = 0;
			items[i].status = -EINVAL;
			continue;
		}
		tile[rows++] = &items[i];
		if (rows == mlp->rows) {
			tile_run(mlp, tile, rows);
			rows = 0;
		}
	}
	if (rows != 0)
		tile_run(mlp, tile, rows);
}

static int mlp_capture(void *state, struct agent_model_gpu *gpu, char *error, size_t error_size)
{
	struct mlp *mlp = state;

	mlp_cuda_destroy(mlp->cuda);
	mlp->cuda = mlp_cuda_create(&mlp->weights, error, error_size);
	return mlp->cuda == NULL ? -EIO : mlp_cuda_capture(mlp->cuda, gpu, error, error_size);
}

/* The class and its zero bytes are a little-endian number of 32 bits. */
static void mlp_describe(const void *state, struct agent_model_description *description)
{
	const struct mlp_weights *weights = &((const struct mlp *)state)->weights;

	*description = (struct agent_model_description){
		.platform = "doorbell_safetensors",
		.batch = 1,
		.n_inputs = 2,
		.n_outputs = 3,
		.input = {{"id", "UINT64", 2, {-1, 1}},
			  {"pixels", "UINT8", 2, {-1, weights->inputs}}},
		.output = {{"id", "UINT64", 2, {-1, 1}},
			   {"class", "UINT32", 2, {-1, 1}},
			   {"scores", "FP32", 2, {-1, weights->outputs}}},
	};
}

static void mlp_close(void *state)
{
	struct mlp *mlp = state;

	mlp_cuda_destroy(mlp->cuda);
	mlp_weights_fini(&mlp->weights);
	free(mlp->from);
	free(mlp->to);
	free(mlp);
}

static int mlp_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		    void **state, char *error, size_t error_size)
{
	char path[ARGUMENT_TEXT_SIZE] = "";
	const struct argument table[] = {{.key = "weights", .text = path}};
	struct mlp *mlp;
	int ret;

	ret = arguments_parse(arguments, table, 1, error, error_size);
	if (ret != 0)
		return ret;
	if (path[0] == '\0') {
		snprintf(error, error_size, "needs the argument weights=PATH");
		return -EINVAL;
	}
	/* One thread: a request's products are too small to share, and the agent expects one. */
	openblas_set_num_threads(1);
	mlp = calloc(1, sizeof(*mlp));
	if (mlp == NULL)
		goto no_memory;
	ret = mlp_weights_load(&mlp->weights, path, error, error_size);
	if (ret != 0)
		goto close;
	mlp->from = mlp_floats_create((size_t)MLP_TILE * mlp->weights.width);
	mlp->to = mlp_floats_create((size_t)MLP_TILE * mlp->weights.width);
	if (mlp->from == NULL || mlp->to == NULL)
		goto no_memory;
	mlp->rows = rows_agree(mlp) ? MLP_TILE : 1;
	shape->min_request = MLP_ID_SIZE + mlp->weights.inputs;
	shape->max_request = MLP_ID_SIZE + mlp->weights.inputs;
	shape->max_reply = MLP_REPLY_HEADER + mlp->weights.outputs * (uint32_t)sizeof(float);
	shape->max_batch = max_batch;
	*state = mlp;
	return 0;

no_memory:
	snprintf(error, error_size, "out of memory");
	ret = -ENOMEM;
close:
	if (mlp != NULL)
		mlp_close(mlp);
	return ret;
}

const struct agent_model agent_model = {
	.abi = AGENT_MODEL_ABI,
	.name = "mlp",
	.open = mlp_open,
	.run = mlp_run,
	.close = mlp_close,
	.capture = mlp_capture,
	.describe = mlp_describe,
};
