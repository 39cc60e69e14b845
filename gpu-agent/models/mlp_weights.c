/* SPDX-License-Identifier: BSD-3-Clause */
#include "models/mlp_weights.h"

#include "models/safetensors.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MLP_FILE_MAX  (1ll << 30)
#define MLP_ALIGNMENT 64

float *mlp_floats_create(size_t n)
{
	size_t size = (n * sizeof(float) + MLP_ALIGNMENT - 1) & ~(size_t)(MLP_ALIGNMENT - 1);
	float *floats = aligned_alloc(MLP_ALIGNMENT, size);

	if (floats != NULL)
		memset(floats, 0, size);
	return floats;
}

/* Copy the tensor: the file's bytes have any alignment, and are freed after loading. */
static int tensor_copy(const struct safetensors_tensor *tensor, float **floats, char *error,
		       size_t error_size)
{
	*floats = mlp_floats_create(tensor->elements);
	if (*floats == NULL) {
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	memcpy(*floats, tensor->data, tensor->size);
	for (uint64_t i = 0; i < tensor->elements; i++) {
		if (!isfinite((*floats)[i])) {
			snprintf(error, error_size, "tensor '%s': holds a value that is not finite",
				 tensor->name);
			return -EINVAL;
		}
	}
	return 0;
}

/* Find the tensor <name>. NULL with <error> unless it is F32, with <rank> dimensions of 1 to
 * MLP_WIDTH_MAX. */
static const struct safetensors_tensor *tensor_get(const struct safetensors *file, const char *name,
						   uint32_t rank, char *error, size_t error_size)
{
	const struct safetensors_tensor *tensor = safetensors_find(file, name);
	const char *problem = NULL;

	if (tensor == NULL)
		problem = "is missing";
	else if (strcmp(tensor->dtype, "F32") != 0)
		problem = "must be F32";
	else if (tensor->rank != rank)
		problem = rank == 2 ? "must have the shape [out, in]" : "must have the shape [out]";
	for (uint32_t i = 0; problem == NULL && i < rank; i++)
		if (tensor->shape[i] == 0 || tensor->shape[i] > MLP_WIDTH_MAX)
			problem = "has a width that is zero or above 65535";
	if (problem == NULL)
		return tensor;
	snprintf(error, error_size, "tensor '%s': %s", name, problem);
	return NULL;
}

static int layer_load(struct mlp_weights *weights, const struct safetensors *file, uint32_t n,
		      char *error, size_t error_size)
{
	const struct safetensors_tensor *weight, *bias;
	struct mlp_layer *layer = &weights->layers[n];
	char name[32];
	int ret;

	snprintf(name, sizeof(name), "layers.%u.weight", n);
	weight = tensor_get(file, name, 2, error, error_size);
	if (weight == NULL)
		return -EINVAL;
	if (n > 0 && weight->shape[1] != weights->layers[n - 1].outputs) {
		snprintf(error, error_size,
			 "tensor '%s': takes %u inputs, the layer before it has %u outputs", name,
			 (uint32_t)weight->shape[1], weights->layers[n - 1].outputs);
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "layers.%u.bias", n);
	bias = tensor_get(file, name, 1, error, error_size);
	if (bias == NULL)
		return -EINVAL;
	if (bias->shape[0] != weight->shape[0]) {
		snprintf(error, error_size, "tensor '%s': has %u values, its weight has %u rows",
			 name, (uint32_t)bias->shape[0], (uint32_t)weight->shape[0]);
		return -EINVAL;
	}
	layer->outputs = (uint32_t)weight->shape[0];
	layer->inputs = (uint32_t)weight->shape[1];
	ret = tensor_copy(weight, &layer->weight, error, error_size);
	return ret != 0 ? ret : tensor_copy(bias, &layer->bias, error, error_size);
}

static int scale_load(struct mlp_weights *weights, const struct safetensors *file, char *error,
		      size_t error_size)
{
	const char *text = safetensors_metadata(file, "input_scale");
	char *end;

	weights->scale = 1;
	if (text == NULL)
		return 0;
	weights->scale = strtof(text, &end);
	if (end == text || *end != '\0' || !isfinite(weights->scale)) {
		snprintf(error, error_size, "__metadata__.input_scale '%.32s' is not a number",
			 text);
		return -EINVAL;
	}
	return 0;
}

static int layers_load(struct mlp_weights *weights, const struct safetensors *file, char *error,
		       size_t error_size)
{
	char name[32] = "layers.0.weight";

	/* The first layer is required; the first missing one after it ends the list. */
	do {
		const struct mlp_layer *layer = &weights->layers[weights->n_layers];
		int ret = layer_load(weights, file, weights->n_layers, error, error_size);

		if (ret != 0)
			return ret;
		if (layer->inputs > weights->width)
			weights->width = layer->inputs;
		if (layer->outputs > weights->width)
			weights->width = layer->outputs;
		weights->outputs = layer->outputs;
		weights->n_layers++;
		snprintf(name, sizeof(name), "layers.%u.weight", weights->n_layers);
	} while (weights->n_layers < MLP_LAYERS_MAX && safetensors_find(file, name) != NULL);
	weights->inputs = weights->layers[0].inputs;
	if (safetensors_find(file, name) != NULL) {
		snprintf(error, error_size, "has more than %d layers", MLP_LAYERS_MAX);
		return -EINVAL;
	}
	if (weights->outputs > MLP_CLASSES_MAX) {
		snprintf(error, error_size, "the last layer has %u outputs, at most %d are served",
			 weights->outputs, MLP_CLASSES_MAX);
		return -EINVAL;
	}
	return 0;
}

static int file_read(const char *path, void **bytes, size_t *size, char *error, size_t error_size)
{
	FILE *file = fopen(path, "rbe");
	struct stat status;
	int ret = 0;

	*bytes = NULL;
	if (file == NULL || fstat(fileno(file), &status) != 0)
		ret = -errno;
	else if (!S_ISREG(status.st_mode) || status.st_size > MLP_FILE_MAX)
		ret = -EFBIG;
	else if ((*bytes = malloc((size_t)status.st_size + 1)) == NULL)
		ret = -ENOMEM;
	else if (fread(*bytes, 1, (size_t)status.st_size, file) != (size_t)status.st_size)
		ret = -EIO;
	else
		*size = (size_t)status.st_size;
	if (ret != 0) {
		snprintf(error, error_size, "%s: %s", path,
			 ret == -EFBIG ? "not a regular file of at most 1 GiB" : strerror(-ret));
		free(*bytes);
	}
	if (file != NULL)
		fclose(file);
	return ret;
}

int mlp_weights_load(struct mlp_weights *weights, const char *path, char *error, size_t error_size)
{
	struct safetensors *file;
	char problem[256];
	size_t size = 0;
	void *bytes;
	int ret;

	ret = file_read(path, &bytes, &size, error, error_size);
	if (ret != 0)
		return ret;
	ret = safetensors_parse(bytes, size, &file, problem, sizeof(problem));
	if (ret == 0) {
		ret = scale_load(weights, file, problem, sizeof(problem));
		if (ret == 0)
			ret = layers_load(weights, file, problem, sizeof(problem));
		safetensors_destroy(file);
	}
	if (ret != 0)
		snprintf(error, error_size, "%s: %s", path, problem);
	free(bytes);
	return ret;
}

void mlp_weights_fini(struct mlp_weights *weights)
{
	/* Free all layers, because a load that failed half-way has not counted its last one. */
	for (uint32_t n = 0; n < MLP_LAYERS_MAX; n++) {
		free(weights->layers[n].weight);
		free(weights->layers[n].bias);
	}
}
