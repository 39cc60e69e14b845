/* SPDX-License-Identifier: BSD-3-Clause */
/* Documents about models, read back by a JSON library. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kserve/documents.h"

static char text[KSERVE_DOCUMENT_MAX + 1];

static struct json_out begin(void)
{
	return (struct json_out){text, text + KSERVE_DOCUMENT_MAX, false};
}

static const char *end(struct json_out *out)
{
	cr_assert_not(out->full);
	*out->at = '\0';
	return text;
}

static struct kserve_model example(void)
{
	return (struct kserve_model){
		.name = "digits",
		.version = {"1", "2"},
		.platform = "doorbell",
		.versions = 2,
		.inputs = 1,
		.outputs = 2,
		.ready = true,
		.max_batch = 16,
		.input = {{.name = "image", .type = KSERVE_FP32, .dims = 1, .shape = {784}}},
		.output = {{.name = "scores", .type = KSERVE_FP32, .dims = 2, .shape = {-1, 10}},
			   {.name = "text", .type = KSERVE_BYTES}},
		.counters = {.success = {5, 500},
			     .fail = {1, 10},
			     .queue = {6, 60},
			     .input = {5, 50},
			     .infer = {5, 250},
			     .output = {5, 5},
			     .inferences = 7,
			     .executions = 3,
			     .last_inference = 1700000000000},
	};
}

Test(lb_kserve_documents, server)
{
	struct json_out out = begin();

	kserve_write_server(&out, "doorbell", "0.1.0");
	cr_assert_str_eq(end(&out), "{\"name\":\"doorbell\",\"version\":\"0.1.0\",\"extensions\":["
				    "\"binary_tensor_data\",\"model_configuration\",\"parameters\","
				    "\"schedule_policy\",\"statistics\"]}");
	out = begin();
	kserve_write_health(&out, "ready", false);
	cr_assert_str_eq(end(&out), "{\"ready\":false}");
	out = begin();
	kserve_write_health(&out, "live", true);
	cr_assert_str_eq(end(&out), "{\"live\":true}");
	out = begin();
	kserve_write_model_ready(&out, "digits", false);
	cr_assert_str_eq(end(&out), "{\"name\":\"digits\",\"ready\":false}");
}

Test(lb_kserve_documents, metadata)
{
	struct kserve_model model = example();
	struct json_out out = begin();

	kserve_write_model(&out, &model);
	cr_assert_str_eq(
		end(&out),
		"{\"name\":\"digits\",\"versions\":[\"1\",\"2\"],\"platform\":\"doorbell\","
		"\"inputs\":[{\"name\":\"image\",\"datatype\":\"FP32\",\"shape\":[-1,784]}],"
		"\"outputs\":[{\"name\":\"scores\",\"datatype\":\"FP32\",\"shape\":[-1,-1,10]},"
		"{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[-1]}]}");
	model.max_batch = 0;
	model.versions = 0;
	out = begin();
	kserve_write_model(&out, &model);
	cr_assert_str_eq(
		end(&out),
		"{\"name\":\"digits\",\"versions\":[],\"platform\":\"doorbell\","
		"\"inputs\":[{\"name\":\"image\",\"datatype\":\"FP32\",\"shape\":[784]}],"
		"\"outputs\":[{\"name\":\"scores\",\"datatype\":\"FP32\",\"shape\":[-1,10]},"
		"{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[]}]}");
}

Test(lb_kserve_documents, configuration)
{
	struct kserve_model model = example();
	struct json_out out = begin();

	kserve_write_config(&out, &model);
	cr_assert_str_eq(
		end(&out),
		"{\"name\":\"digits\",\"platform\":\"doorbell\",\"max_batch_size\":16,"
		"\"input\":[{\"name\":\"image\",\"data_type\":\"TYPE_FP32\",\"dims\":[784]}],"
		"\"output\":[{\"name\":\"scores\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1,10]},"
		"{\"name\":\"text\",\"data_type\":\"TYPE_STRING\",\"dims\":[]}]}");
}

Test(lb_kserve_documents, statistics)
{
	struct kserve_model model = example(), other = {.name = "o"};
	struct json_out out = begin();
	json_t *root, *stats;

	kserve_write_stats_begin(&out);
	kserve_write_stats(&out, &model, true);
	kserve_write_stats(&out, &other, false);
	kserve_write_stats_end(&out);
	root = json_loads(end(&out), 0, NULL);
	cr_assert_not_null(root, "%s", text);
	stats = json_object_get(root, "model_stats");
	cr_assert_eq(json_array_size(stats), 2);
	stats = json_array_get(stats, 0);
	cr_assert_str_eq(json_string_value(json_object_get(stats, "version")), "2");
	cr_assert_eq(json_integer_value(json_object_get(stats, "last_inference")), 1700000000000);
	cr_assert_eq(json_integer_value(json_object_get(stats, "inference_count")), 7);
	cr_assert_eq(json_integer_value(json_object_get(stats, "execution_count")), 3);
	stats = json_object_get(stats, "inference_stats");
	cr_assert_eq(
		json_integer_value(json_object_get(json_object_get(stats, "success"), "count")), 5);
	cr_assert_eq(json_integer_value(json_object_get(json_object_get(stats, "fail"), "count")),
		     1);
	cr_assert_eq(json_integer_value(json_object_get(json_object_get(stats, "queue"), "ns")),
		     60);
	cr_assert_eq(
		json_integer_value(json_object_get(json_object_get(stats, "compute_input"), "ns")),
		50);
	cr_assert_eq(
		json_integer_value(json_object_get(json_object_get(stats, "compute_infer"), "ns")),
		250);
	cr_assert_eq(
		json_integer_value(json_object_get(json_object_get(stats, "compute_output"), "ns")),
		5);
	json_decref(root);
}

Test(lb_kserve_documents, repository)
{
	struct kserve_model model = example(), other = {.name = "o"};
	struct json_out out = begin();

	kserve_write_index_begin(&out);
	kserve_write_index(&out, &model, true);
	kserve_write_index(&out, &other, false);
	kserve_write_index_end(&out);
	cr_assert_str_eq(
		end(&out),
		"[{\"name\":\"digits\",\"version\":\"2\",\"state\":\"READY\",\"reason\":\"\"},"
		"{\"name\":\"o\",\"version\":\"\",\"state\":\"UNAVAILABLE\","
		"\"reason\":\"no worker serves it\"}]");
}

/* Everything as long as it can be: names of characters that take six to write. */
Test(lb_kserve_documents, the_largest_model_fits)
{
	struct kserve_model model = {.versions = KSERVE_VERSIONS_MAX,
				     .inputs = KSERVE_TENSORS_MAX,
				     .outputs = KSERVE_TENSORS_MAX,
				     .max_batch = UINT32_MAX};
	struct json_out out;

	memset(model.name, 1, KSERVE_NAME_MAX - 1);
	memset(model.platform, 1, KSERVE_NAME_MAX - 1);
	for (int i = 0; i < KSERVE_VERSIONS_MAX; i++)
		memset(model.version[i], 1, KSERVE_VERSION_MAX - 1);
	for (int i = 0; i < KSERVE_TENSORS_MAX; i++) {
		memset(model.input[i].name, 1, KSERVE_NAME_MAX - 1);
		model.input[i].type = KSERVE_UINT64;
		model.input[i].dims = KSERVE_DIMS_MAX;
		for (int d = 0; d < KSERVE_DIMS_MAX; d++)
			model.input[i].shape[d] = INT64_MIN;
		model.output[i] = model.input[i];
	}
	memset(&model.counters, 0xff, sizeof(model.counters));
	out = begin();
	kserve_write_model(&out, &model);
	end(&out);
	out = begin();
	kserve_write_config(&out, &model);
	end(&out);
	out = begin();
	kserve_write_stats(&out, &model, false);
	end(&out);
}

Test(lb_kserve_documents, a_full_buffer_is_told)
{
	struct kserve_model model = example();
	char *small = malloc(100);
	struct json_out out = {small, small + 100, false};

	kserve_write_model(&out, &model);
	cr_assert(out.full);
	free(small);
}
