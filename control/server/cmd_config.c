/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "reload/reload.h"
#include "server/rpc.h"

struct config_query {
	char file[1024]; /* empty: the file that the daemon was started with */
};

static const struct control_param query_params[] = {
	{CONTROL_PARAM(config_query, file), CONTROL_TEXT},
};

static json_t *value_or_null(const char *value)
{
	return *value != '\0' ? control_text(value) : json_null();
}

static void add_change(void *rows, const struct lb_config_change *change)
{
	json_array_append_new(
		rows, json_pack("{s:o, s:o, s:o, s:s}", "key", control_text(change->key), "from",
				value_or_null(change->from), "to", value_or_null(change->to),
				"effect", lb_config_effect_name(change->effect)));
}

typedef int reload_call(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
			char *error, size_t size);

/* Make {file, changes} with one of the calls of reload.h; <ret> and <error> are that call's. */
static json_t *config_call(struct control_call *call, reload_call *reload, int *ret, char *error,
			   size_t size)
{
	struct config_query q = {.file = ""};
	struct lb *lb = call->c->lb;
	json_t *rows;

	if (!control_params_read(call, "params", call->params, query_params,
				 CONTROL_COUNT_OF(query_params), &q))
		return NULL;
	if (q.file[0] != '\0' && q.file[0] != '/')
		return control_fail(call, CONTROL_ERROR_PARAMS,
				    "params.file: give an absolute path; the daemon is in "
				    "another folder");
	rows = json_array();
	*ret = reload(lb, q.file[0] != '\0' ? q.file : NULL, add_change, rows, error, size);
	return json_pack("{s:o, s:o}", "file",
			 value_or_null(q.file[0] != '\0'            ? q.file
				       : lb_reload_file(lb) != NULL ? lb_reload_file(lb)
								    : ""),
			 "changes", rows);
}

/*
 * True when the file cannot be read or is wrong; false when it is right but cannot be applied now.
 */
static bool is_bad(int ret)
{
	return ret < 0 && ret != -EBUSY && ret != -EAGAIN;
}

json_t *control_config_check(struct control_call *call)
{
	char error[512];
	int ret = 0;
	json_t *result = config_call(call, lb_reload_check, &ret, error, sizeof(error));

	if (result == NULL || !is_bad(ret)) {
		if (result != NULL)
			json_object_update_new(
				result, json_pack("{s:b, s:o}", "applies", ret == 0, "reason",
						  ret == 0 ? json_null() : control_text(error)));
		return result;
	}
	json_decref(result);
	return control_fail(call, CONTROL_ERROR_CONFIG, "%s", error);
}

/* Make the result, or fail when the call could not be done in full. */
static json_t *all_or_nothing(struct control_call *call, reload_call *reload)
{
	char error[512];
	int ret = 0;
	json_t *result = config_call(call, reload, &ret, error, sizeof(error));

	if (result == NULL || ret == 0)
		return result;
	json_decref(result);
	return control_fail(call, CONTROL_ERROR_CONFIG, "%s", error);
}

json_t *control_config_diff(struct control_call *call)
{
	return all_or_nothing(call, lb_reload_diff);
}

json_t *control_config_apply(struct control_call *call)
{
	return all_or_nothing(call, lb_reload_apply);
}
