/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "kserve/documents.h"

static void documents_put_text(struct json_out *out, const char *name, const char *value)
{
	json_put(out, name);
	json_put_string(out, value, (uint32_t)strlen(value));
}

static void documents_put_number(struct json_out *out, const char *name, uint64_t value)
{
	json_put(out, name);
	json_put_u64(out, value);
}

void kserve_write_server(struct json_out *out, const char *name, const char *version)
{
	documents_put_text(out, "{\"name\":", name);
	documents_put_text(out, ",\"version\":", version);
	json_put(out, ",\"extensions\":[\"binary_tensor_data\",\"model_configuration\","
		      "\"parameters\",\"schedule_policy\",\"statistics\"]}");
}

void kserve_write_health(struct json_out *out, const char *what, bool value)
{
	json_put(out, "{\"");
	json_put(out, what);
	json_put(out, value ? "\":true}" : "\":false}");
}

void kserve_write_model_ready(struct json_out *out, const char *name, bool ready)
{
	documents_put_text(out, "{\"name\":", name);
	json_put(out, ready ? ",\"ready\":true}" : ",\"ready\":false}");
}

/* --- metadata --- */

static void documents_put_shape(struct json_out *out, const struct kserve_tensor *tensor,
				bool batched)
{
	json_put(out, batched ? "[-1" : "[");
	for (uint8_t i = 0; i < tensor->dims; i++) {
		if (i > 0 || batched)
			json_put(out, ",");
		json_put_i64(out, tensor->shape[i]);
	}
	json_put(out, "]");
}

static void documents_put_tensors(struct json_out *out, const struct kserve_tensor *tensors,
				  uint8_t n, bool batched)
{
	for (uint8_t i = 0; i < n; i++) {
		documents_put_text(out, i > 0 ? ",{\"name\":" : "{\"name\":", tensors[i].name);
		documents_put_text(out, ",\"datatype\":", kserve_datatype_name(tensors[i].type));
		json_put(out, ",\"shape\":");
		documents_put_shape(out, &tensors[i], batched);
		json_put(out, "}");
	}
}

void kserve_write_model(struct json_out *out, const struct kserve_model *model)
{
	documents_put_text(out, "{\"name\":", model->name);
	json_put(out, ",\"versions\":[");
	for (uint8_t i = 0; i < model->versions; i++)
		documents_put_text(out, i > 0 ? "," : "", model->version[i]);
	documents_put_text(out, "],\"platform\":", model->platform);
	json_put(out, ",\"inputs\":[");
	documents_put_tensors(out, model->input, model->inputs, model->max_batch > 0);
	json_put(out, "],\"outputs\":[");
	documents_put_tensors(out, model->output, model->outputs, model->max_batch > 0);
	json_put(out, "]}");
}

/* --- configuration --- */

static void documents_put_settings(struct json_out *out, const struct kserve_tensor *tensors,
				   uint8_t n)
{
	for (uint8_t i = 0; i < n; i++) {
		bool is_bytes = tensors[i].type == KSERVE_BYTES;

		documents_put_text(out, i > 0 ? ",{\"name\":" : "{\"name\":", tensors[i].name);
		json_put(out, ",\"data_type\":\"TYPE_");
		json_put(out, is_bytes ? "STRING" : kserve_datatype_name(tensors[i].type));
		json_put(out, "\",\"dims\":");
		documents_put_shape(out, &tensors[i], false);
		json_put(out, "}");
	}
}

void kserve_write_config(struct json_out *out, const struct kserve_model *model)
{
	documents_put_text(out, "{\"name\":", model->name);
	documents_put_text(out, ",\"platform\":", model->platform);
	documents_put_number(out, ",\"max_batch_size\":", model->max_batch);
	json_put(out, ",\"input\":[");
	documents_put_settings(out, model->input, model->inputs);
	json_put(out, "],\"output\":[");
	documents_put_settings(out, model->output, model->outputs);
	json_put(out, "]}");
}

/* --- statistics --- */

static void documents_put_count(struct json_out *out, const char *name,
				const struct kserve_count *count)
{
	json_put(out, name);
	documents_put_number(out, ":{\"count\":", count->count);
	documents_put_number(out, ",\"ns\":", count->ns);
	json_put(out, "}");
}

void kserve_write_stats_begin(struct json_out *out)
{
	json_put(out, "{\"model_stats\":[");
}

void kserve_write_stats(struct json_out *out, const struct kserve_model *model, bool first)
{
	const struct kserve_counters *c = &model->counters;

	documents_put_text(out, first ? "{\"name\":" : ",{\"name\":", model->name);
	documents_put_text(out, ",\"version\":", kserve_last_version(model));
	documents_put_number(out, ",\"last_inference\":", c->last_inference);
	documents_put_number(out, ",\"inference_count\":", c->inferences);
	documents_put_number(out, ",\"execution_count\":", c->executions);
	json_put(out, ",\"inference_stats\":{");
	documents_put_count(out, "\"success\"", &c->success);
	documents_put_count(out, ",\"fail\"", &c->fail);
	documents_put_count(out, ",\"queue\"", &c->queue);
	documents_put_count(out, ",\"compute_input\"", &c->input);
	documents_put_count(out, ",\"compute_infer\"", &c->infer);
	documents_put_count(out, ",\"compute_output\"", &c->output);
	json_put(out, "},\"batch_stats\":[]}");
}

void kserve_write_stats_end(struct json_out *out)
{
	json_put(out, "]}");
}

/* --- repository --- */

void kserve_write_index_begin(struct json_out *out)
{
	json_put(out, "[");
}

void kserve_write_index(struct json_out *out, const struct kserve_model *model, bool first)
{
	documents_put_text(out, first ? "{\"name\":" : ",{\"name\":", model->name);
	documents_put_text(out, ",\"version\":", kserve_last_version(model));
	documents_put_text(out, ",\"state\":", kserve_state(model));
	documents_put_text(out, ",\"reason\":", kserve_state_reason(model));
	json_put(out, "}");
}

void kserve_write_index_end(struct json_out *out)
{
	json_put(out, "]");
}
