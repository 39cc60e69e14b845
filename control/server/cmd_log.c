/* SPDX-License-Identifier: BSD-3-Clause */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_log.h>

#include "runtime/log_line.h"
#include "server/rpc.h"

struct log_query {
	char module[64]; /* empty: all of Doorbell's modules */
	char level[16];
};

static const struct control_param query_params[] = {
	{CONTROL_PARAM(log_query, module), CONTROL_TEXT},
	{CONTROL_PARAM(log_query, level), CONTROL_TEXT, .required = true},
};

/* DPDK lists its types as text only: "id 31: doorbell.lb, level is info". */
static json_t *modules(const char *pattern)
{
	json_t *rows = json_array();
	size_t size;
	char *text = NULL, *line, *rest;
	FILE *file = open_memstream(&text, &size);

	if (file == NULL)
		return rows;
	rte_log_dump(file);
	fclose(file);
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		char name[64], level[16];

		if (sscanf(line, "id %*u: %63[^,], level is %15s", name, level) == 2 &&
		    fnmatch(pattern, name, 0) == 0)
			json_array_append_new(rows,
					      json_pack("{s:o, s:o}", "module", control_text(name),
							"level", control_text(level)));
	}
	free(text);
	return rows;
}

json_t *control_log_show(struct control_call *call)
{
	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	return json_pack("{s:o}", "modules", modules("*"));
}

/*
 * Make a pattern for DPDK: "lb" becomes doorbell.lb; a module with a dot or a star stays as it is.
 */
static void pattern_of(const char *module, char *buf, size_t size)
{
	if (*module == '\0')
		snprintf(buf, size, "doorbell.*");
	else
		snprintf(buf, size, "%s%s", strpbrk(module, ".*") != NULL ? "" : "doorbell.",
			 module);
}

json_t *control_log_level(struct control_call *call)
{
	struct log_query q = {.module = ""};
	char pattern[80];
	json_t *changed;
	int level;

	if (!control_params_read(call, "params", call->params, query_params,
				 CONTROL_COUNT_OF(query_params), &q))
		return NULL;
	level = log_level_number(q.level);
	if (level < (int)RTE_LOG_ERR)
		return control_fail(call, CONTROL_ERROR_PARAMS,
				    "params.level: cannot use '%s'; give error, warning, notice, "
				    "info or debug",
				    q.level);
	pattern_of(q.module, pattern, sizeof(pattern));
	changed = modules(pattern);
	if (json_array_size(changed) == 0) {
		json_decref(changed);
		return control_fail(call, CONTROL_ERROR_NOT_FOUND,
				    "no module '%s'; log.show has them all", pattern);
	}
	json_decref(changed);
	rte_log_set_level_pattern(pattern, (uint32_t)level);
	return json_pack("{s:o}", "modules", modules(pattern));
}
