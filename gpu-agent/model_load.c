/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

/* Plug-ins lie in models/ beside the agent while building, in DOORBELL_MODELS once installed. */
static void plugin_path(char *path, size_t size, const char *name)
{
	char self[PATH_MAX / 2];
	ssize_t n;
	char *slash;

	if (strchr(name, '/') != NULL) {
		snprintf(path, size, "%s", name);
		return;
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[n < 0 ? 0 : n] = '\0';
	slash = strrchr(self, '/');
	if (slash != NULL)
		*slash = '\0';
	snprintf(path, size, "%s/models/%s.so", self, name);
	if (access(path, R_OK) != 0)
		snprintf(path, size, DOORBELL_MODELS "/%s.so", name);
}

static int check(const struct loaded_model *m, const char *path, char *error, size_t size)
{
	if (m->model->abi != AGENT_MODEL_ABI) {
		snprintf(error, size,
			 "model '%s' has ABI %u, this agent %u; build it against this "
			 "version's model.h",
			 path, m->model->abi, AGENT_MODEL_ABI);
		return -EINVAL;
	}
	return 0;
}

static int open_model(struct loaded_model *m, const char *arguments, uint32_t max_batch,
		      char *error, size_t size)
{
	char why[384] = "";
	int ret = m->model->open(arguments, max_batch, &m->shape, &m->state, why, sizeof(why));

	if (ret == 0)
		return 0;
	snprintf(error, size, "model '%s': %s", m->model->name, why);
	m->model = NULL;
	return ret;
}

int agent_model_adopt(struct loaded_model *m, const struct agent_model *model,
		      const char *arguments, uint32_t max_batch, char *error, size_t size)
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
	plugin_path(path, sizeof(path), name);
	m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (m->library == NULL) {
		snprintf(error, size,
			 "model '%s' cannot be loaded: %s; give --model a plug-in's "
			 "name (echo, mlp) or the path of a .so",
			 name, dlerror());
		return -ENOENT;
	}
	m->model = dlsym(m->library, AGENT_MODEL_SYMBOL);
	if (m->model == NULL) {
		snprintf(error, size, "'%s' is no model: it exports no symbol '%s'", path,
			 AGENT_MODEL_SYMBOL);
		ret = -EINVAL;
		goto fail;
	}
	ret = check(m, path, error, size);
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

void agent_model_unload(struct loaded_model *m)
{
	if (m->model == NULL)
		return;
	m->model->close(m->state);
	if (m->library != NULL)
		dlclose(m->library);
	m->model = NULL;
}
