/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the layers of a multi-layer perceptron from a safetensors file: layers.N.weight [out, in]
 * and layers.N.bias [out], both F32 and finite; input_scale of __metadata__, 1 if there is none.
 */
#ifndef MODELS_MLP_WEIGHTS_H
#define MODELS_MLP_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#define MLP_LAYERS_MAX  64
#define MLP_WIDTH_MAX   65535
#define MLP_CLASSES_MAX 256 /* the class is one byte of the reply */

/* Request: an id that the client chooses, then pixels. Reply: the id, the class, 3 zeros, then
 * scores. */
#define MLP_ID_SIZE      8
#define MLP_REPLY_HEADER (MLP_ID_SIZE + 4)

struct mlp_layer {
	uint32_t inputs;
	uint32_t outputs;
	float *weight; /* [outputs][inputs] */
	float *bias;
};

struct mlp_weights {
	uint32_t n_layers; /* at least 1 */
	uint32_t inputs;   /* of the first layer */
	uint32_t outputs;  /* of the last */
	uint32_t width;    /* the widest of all inputs and outputs */
	float scale;       /* factor for every input */
	struct mlp_layer layers[MLP_LAYERS_MAX];
};

/* Load <path> into <weights>, which must be zeroed. 0, or -errno and an <error> that names file and
 * tensor; mlp_weights_fini() is needed in both cases. */
int mlp_weights_load(struct mlp_weights *weights, const char *path, char *error, size_t error_size);
void mlp_weights_fini(struct mlp_weights *weights);

/* Allocate <n> zeros, aligned for vector loads; freed by free(). NULL: no memory. */
float *mlp_floats_create(size_t n);

#endif
