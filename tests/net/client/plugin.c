/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

int plugin_open(struct plugin *plugin, const char *path, const char *arguments, uint32_t max_batch)
{
	char error[512] = "";
	int ret;

	memset(plugin, 0, sizeof(*plugin));
	plugin->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (plugin->library == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return -ENOENT;
	}
	plugin->model = dlsym(plugin->library, AGENT_MODEL_SYMBOL);
	if (plugin->model == NULL || plugin->model->abi != AGENT_MODEL_ABI) {
		fprintf(stderr, "%s: not a model plug-in of version %d\n", path, AGENT_MODEL_ABI);
		dlclose(plugin->library);
		return -EINVAL;
	}
	ret = plugin->model->open(arguments, max_batch, &plugin->shape, &plugin->state, error,
				  sizeof(error));
	if (ret != 0) {
		fprintf(stderr, "%s: %s\n", path, error);
		dlclose(plugin->library);
	}
	return ret;
}

void plugin_close(struct plugin *plugin)
{
	plugin->model->close(plugin->state);
	dlclose(plugin->library);
}
