/* SPDX-License-Identifier: BSD-3-Clause */
/* Models: what services ask and workers have, with the tensors of their requests and replies. */
#include <stdlib.h>

#include "cli/cli.h"

static const struct cli_column brief[] = {
	{"MODEL", "name", CLI_TEXT},        {"WORKERS", "workers_text", CLI_TEXT},
	{"SERVICES", "services", CLI_TEXT}, {"VERSION", "versions", CLI_TEXT},
	{"INPUTS", "inputs", CLI_TEXT},     {"OUTPUTS", "outputs", CLI_TEXT},
};

static const struct cli_column full[] = {
	{"name", "name", CLI_TEXT},
	{"version", "versions", CLI_TEXT},
	{"platform", "platform", CLI_TEXT},
	{"services", "services", CLI_TEXT},
	{"workers", "workers_text", CLI_TEXT},
	{"undescribed", "undescribed", CLI_PLAIN},
	{"first dimension is a batch", "batch", CLI_TEXT},
	{"largest batch", "max_batch", CLI_PLAIN},
	{"every request", "request_bytes", CLI_BYTES},
	{"every reply", "reply_bytes", CLI_BYTES},
	{"smallest request", "min_request", CLI_BYTES},
	{"largest request", "max_request", CLI_BYTES},
	{"largest reply", "max_reply", CLI_BYTES},
};

static const struct cli_column inputs[] = {
	{"INPUT", "name", CLI_TEXT},
	{"DATATYPE", "datatype", CLI_TEXT},
	{"SHAPE", "shape", CLI_TEXT},
	{"BYTES", "bytes", CLI_PLAIN},
};

static const struct cli_column outputs[] = {
	{"OUTPUT", "name", CLI_TEXT},
	{"DATATYPE", "datatype", CLI_TEXT},
	{"SHAPE", "shape", CLI_TEXT},
	{"BYTES", "bytes", CLI_PLAIN},
};

static const struct cli_column members[] = {
	{"WORKER", "name", CLI_TEXT},
	{"STATE", "state", CLI_TEXT},
	{"VERSION", "version", CLI_TEXT},
	{"LARGEST BATCH", "max_batch", CLI_PLAIN},
};

/* [-1, 64] as "[-1,64]". */
static json_t *model_shape_text(const json_t *shape)
{
	char *text = json_dumps(shape, JSON_COMPACT);
	json_t *string = json_string(text != NULL ? text : "?");

	free(text);
	return string;
}

/* A tensor as "pixels:UINT8[-1,64]". */
static json_t *model_tensor_text(const json_t *tensor)
{
	json_t *shape = model_shape_text(json_object_get(tensor, "shape"));
	json_t *text = json_sprintf("%s:%s%s", json_string_value(json_object_get(tensor, "name")),
				    json_string_value(json_object_get(tensor, "datatype")),
				    json_string_value(shape));

	json_decref(shape);
	return text;
}

/* Replace the tensors of a model by texts, which a table shows as a,b. */
static void model_shorten(json_t *model, const char *side)
{
	json_t *tensors = json_object_get(model, side), *texts = json_array(), *tensor;
	size_t i;

	json_array_foreach (tensors, i, tensor)
		json_array_append_new(texts, model_tensor_text(tensor));
	json_object_set_new(model, side, texts);
}

/* Replace the shapes of a model's tensors by texts. */
static void model_write_shapes(json_t *model, const char *side)
{
	json_t *tensor;
	size_t i;

	json_array_foreach (json_object_get(model, side), i, tensor)
		json_object_set_new(tensor, "shape",
				    model_shape_text(json_object_get(tensor, "shape")));
}

static void model_count_workers(json_t *model)
{
	json_object_set_new(
		model, "workers_text",
		json_sprintf("%lld of %lld",
			     (long long)json_integer_value(json_object_get(model, "active")),
			     (long long)json_integer_value(json_object_get(model, "workers"))));
}

int cli_models_list(struct cli *cli)
{
	json_t *result = cli_call(cli, "models.list", NULL), *model;
	size_t i;

	if (result != NULL && !cli->json)
		json_array_foreach (json_object_get(result, "models"), i, model) {
			model_count_workers(model);
			model_shorten(model, "inputs");
			model_shorten(model, "outputs");
		}
	return cli_print_list(cli, result, "models", brief, CLI_COUNT_OF(brief));
}

/* Print a table behind an empty line, unless it has no rows. */
static void model_print_table(const struct cli *cli, const struct cli_column *column,
			      const json_t *rows)
{
	struct cli_table table = {.column = column, .n = CLI_COUNT_OF(inputs)};

	_Static_assert(CLI_COUNT_OF(inputs) == CLI_COUNT_OF(outputs) &&
			       CLI_COUNT_OF(inputs) == CLI_COUNT_OF(members),
		       "all have as many columns");
	if (json_array_size(rows) == 0)
		return;
	fputc('\n', cli->out);
	cli_table_print(cli->out, &table, rows);
}

int cli_models_show(struct cli *cli)
{
	json_t *result = cli_call(cli, "models.show", json_pack("{s:s}", "name", cli->name));
	json_t *model = json_object_get(result, "model");

	if (result == NULL)
		return 1;
	if (cli->json) {
		cli_print_json(cli, result);
		json_decref(result);
		return 0;
	}
	model_count_workers(model);
	model_write_shapes(model, "inputs");
	model_write_shapes(model, "outputs");
	cli_page_print(cli->out, full, CLI_COUNT_OF(full), model);
	model_print_table(cli, inputs, json_object_get(model, "inputs"));
	model_print_table(cli, outputs, json_object_get(model, "outputs"));
	model_print_table(cli, members, json_object_get(model, "members"));
	json_decref(result);
	return 0;
}
