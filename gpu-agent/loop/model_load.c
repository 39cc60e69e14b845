/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/model_load.h"
#include "loop/model_tensors.h"

/* Without describe(), step() and the words of rows, and the same otherwise. */
#define OLDEST_ABI 2

/* Of a model's name, as load balancers take it. */
#define NAME_MAX_BYTES 63

/* The folder of plug-ins in a build folder and in an installation, both as seen from the agent. */
static const char *const beside_agent[] = {"models", DOORBELL_MODELS_FROM_AGENT};

/* Find <folder>, given relative to the agent's own, without "..". False when it does not exist. */
static bool folder_beside_agent(char folder[PATH_MAX], const char *relative)
{
	char self[PATH_MAX / 2], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return false;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (slash == NULL)
		return false;
	*slash = '\0';
	snprintf(path, sizeof(path), "%s/%s", self, relative);
	return realpath(path, folder) != NULL;
}

static bool is_file(char *path, size_t size, const char *folder, const char *name, const char *end)
{
	int n = snprintf(path, size, "%s/%s%s", folder, name, end);

	return n > 0 && (size_t)n < size && access(path, R_OK) == 0;
}

/*
 * Find the file that <name> means: a path if it has a '/'; otherwise NAME.so in a folder of
 * plug-ins. A name that ends in .so may also be a file in the current folder, which comes first.
 * -ENOENT when there is none; <error> then names the folders.
 */
static int plugin_path(char *path, size_t size, const char *name, char *error, size_t error_size)
{
	size_t length = strlen(name), said;
	bool is_library = length > 3 && strcmp(name + length - 3, ".so") == 0;
	const char *end = is_library ? "" : ".so";
	char folder[PATH_MAX];

	if (strchr(name, '/') != NULL) {
		snprintf(path, size, "%s", name);
		return 0;
	}
	if (is_library && is_file(path, size, ".", name, ""))
		return 0;
	said = (size_t)snprintf(error, error_size, "there is no model '%s': no file %s%s in ", name,
				name, end);
	for (size_t i = 0; i < sizeof(beside_agent) / sizeof(beside_agent[0]); i++) {
		if (!folder_beside_agent(folder, beside_agent[i]) ||
		    strcmp(folder, DOORBELL_MODELS) == 0)
			continue;
		if (is_file(path, size, folder, name, end))
			return 0;
		if (said < error_size)
			said += (size_t)snprintf(error + said, error_size - said, "%s, ", folder);
	}
	if (is_file(path, size, DOORBELL_MODELS, name, end))
		return 0;
	if (said < error_size)
		snprintf(error + said, error_size - said,
			 DOORBELL_MODELS "%s; give --model the name of one that is there, such as "
					 "echo, or the path of a .so",
			 is_library ? ", or here" : "");
	return -ENOENT;
}

static int check_abi(const struct loaded_model *m, const char *path, char *error, size_t size)
{
	if (m->model->abi < OLDEST_ABI || m->model->abi > AGENT_MODEL_ABI) {
		snprintf(error, size,
			 "model '%s' has ABI %u, this agent takes %u to %u; build it against this "
			 "version's model.h",
			 path, m->model->abi, OLDEST_ABI, AGENT_MODEL_ABI);
		return -EINVAL;
	}
	return 0;
}

/* How many pieces a reply of the open model has: 1, unless it makes them by steps. */
static int check_pieces(struct loaded_model *m, char *error, size_t size)
{
	if (!agent_model_steps(m->model))
		m->shape.max_pieces = 1;
	else if (m->shape.max_pieces == 0)
		m->shape.max_pieces = AGENT_MODEL_PIECES_MAX;
	if (m->shape.max_pieces <= AGENT_MODEL_PIECES_MAX)
		return 0;
	snprintf(error, size, "max_pieces: %u is too many; use %u or less", m->shape.max_pieces,
		 AGENT_MODEL_PIECES_MAX);
	return -EINVAL;
}

/* The sizes of batches of the open model. Where replies come in pieces, rows stay where they are
 * from run to run, so all have one size. */
static int check_buckets(struct loaded_model *m, char *error, size_t size)
{
	if (agent_model_steps(m->model) && m->shape.n_buckets > 0) {
		snprintf(error, size,
			 "n_buckets: its replies come in pieces; those have one size "
			 "of batch");
		return -EINVAL;
	}
	return agent_buckets_read(&m->buckets, &m->shape, error, size);
}

/* The load balancer's rule for the names of models. */
static bool is_model_name(const char *name)
{
	size_t n = name == NULL ? 0 : strnlen(name, NAME_MAX_BYTES + 1);

	for (size_t i = 0; i < n; i++)
		if (!isgraph((unsigned char)name[i]))
			return false;
	return n > 0 && n <= NAME_MAX_BYTES;
}

/* Without these a plug-in cannot be told of, opened or closed. */
static int check_calls(const struct agent_model *model, char *error, size_t size)
{
	if (!is_model_name(model->name)) {
		snprintf(error, size,
			 "the model's name: use 1 to %d printable ASCII characters without spaces",
			 NAME_MAX_BYTES);
		return -EINVAL;
	}
	if (model->open == NULL || model->close == NULL) {
		snprintf(error, size, "model '%s': it has no open() or no close()", model->name);
		return -EINVAL;
	}
	return 0;
}

static int check_bytes(const char *what, uint32_t bytes, char *error, size_t size)
{
	if (bytes >= 1 && bytes <= AGENT_MODEL_BYTES_MAX)
		return 0;
	snprintf(error, size, "%s: %u bytes; use 1 to %u", what, bytes, AGENT_MODEL_BYTES_MAX);
	return -EINVAL;
}

/* All buffers are made by these sizes. */
static int check_shape(const struct agent_model_shape *shape, uint32_t max_batch, char *error,
		       size_t size)
{
	if (shape->max_batch == 0 || shape->max_batch > max_batch) {
		snprintf(error, size, "max_batch: %u; choose 1 to %u, which is --max-batch",
			 shape->max_batch, max_batch);
		return -EINVAL;
	}
	if (shape->min_request > shape->max_request) {
		snprintf(error, size, "min_request: %u bytes, and max_request is %u",
			 shape->min_request, shape->max_request);
		return -EINVAL;
	}
	if (check_bytes("max_request", shape->max_request, error, size) < 0)
		return -EINVAL;
	return check_bytes("max_reply", shape->max_reply, error, size);
}

/* Call open(). Where it says no reason, the error number has to do. */
static int call_open(struct loaded_model *m, const char *arguments, uint32_t max_batch, char *why,
		     size_t size)
{
	int ret = m->model->open(arguments, max_batch, &m->shape, &m->state, why, size);

	if (ret > 0) {
		snprintf(why, size, "open() returned %d; it returns 0, or -errno after an error",
			 ret);
		return -EINVAL;
	}
	if (ret < 0 && why[0] == '\0')
		snprintf(why, size, "%s", strerror(-ret));
	return ret;
}

/* Whether the open model is one that can be served. */
static int check_model(struct loaded_model *m, uint32_t max_batch, char *why, size_t size)
{
	int ret = check_shape(&m->shape, max_batch, why, size);

	if (ret == 0)
		ret = check_pieces(m, why, size);
	if (ret == 0)
		ret = check_buckets(m, why, size);
	return ret == 0 ? model_tensors_read(m, why, size) : ret;
}

static int open_model(struct loaded_model *m, const char *arguments, uint32_t max_batch,
		      char *error, size_t size)
{
	char why[384] = "";
	int ret = check_calls(m->model, error, size);

	if (ret < 0) {
		m->model = NULL;
		return ret;
	}
	ret = call_open(m, arguments, max_batch, why, sizeof(why));
	if (ret == 0) {
		ret = check_model(m, max_batch, why, sizeof(why));
		if (ret == 0)
			return 0;
		m->model->close(m->state);
	}
	snprintf(error, size, "model '%s': %s", m->model->name, why);
	m->model = NULL;
	return ret;
}

int agent_model_open(struct loaded_model *m, const struct agent_model *model, const char *arguments,
		     uint32_t max_batch, char *error, size_t size)
{
	*m = (struct loaded_model){.model = model};
	return open_model(m, arguments, max_batch, error, size);
}

int agent_model_load(struct loaded_model *m, const char *name, const char *arguments,
		     uint32_t max_batch, char *error, size_t size)
{
	char path[PATH_MAX];
	int ret;

	memset(m, 0, sizeof(*m));
	ret = plugin_path(path, sizeof(path), name, error, size);
	if (ret < 0)
		return ret;
	m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (m->library == NULL) {
		snprintf(error, size, "model '%s' cannot be loaded: %s", name, dlerror());
		return -ENOENT;
	}
	m->model = dlsym(m->library, AGENT_MODEL_SYMBOL);
	if (m->model == NULL) {
		snprintf(error, size, "'%s' is not a model: it exports no symbol '%s'", path,
			 AGENT_MODEL_SYMBOL);
		ret = -EINVAL;
		goto fail;
	}
	ret = check_abi(m, path, error, size);
	if (ret < 0)
		goto fail;
	ret = open_model(m, arguments, max_batch, error, size);
	if (ret == 0)
		return 0;
fail:
	m->model = NULL;
	dlclose(m->library);
	return ret;
}

void agent_model_limit(struct loaded_model *m, uint32_t max_batch)
{
	if (m->shape.max_batch <= max_batch)
		return;
	m->shape.max_batch = max_batch;
	agent_buckets_cut(&m->buckets, max_batch);
}

void agent_model_keep_one_size(struct loaded_model *m)
{
	m->buckets = (struct agent_buckets){.n = 1, .rows = {m->shape.max_batch}};
}

void agent_model_unload(struct loaded_model *m)
{
	if (m->model == NULL)
		return;
	m->model->close(m->state);
	if (m->library != NULL)
		dlclose(m->library);
	m->model = NULL;
}
