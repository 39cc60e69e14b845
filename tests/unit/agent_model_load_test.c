/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --model takes a path, NAME.so in the current folder, or a name, of this ABI or the one before. A
 * model that describes itself wrongly is not served.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

static char folder[] = "/tmp/doorbell-models.XXXXXX";
static char error[512];
static struct loaded_model model;

static int load(const char *name)
{
	error[0] = '\0';
	return agent_model_load(&model, name, "", 4, error, sizeof(error));
}

static void leave(void)
{
	unlink("upper.so");
	unlink("broken.so");
	cr_assert_eq(chdir("/"), 0);
	rmdir(folder);
}

/* Makes a folder that holds the echo model as upper.so, and changes to it. */
static void enter(void)
{
	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(chdir(folder), 0);
	cr_assert_eq(symlink(ECHO_PLUGIN, "upper.so"), 0);
}

TestSuite(model_load, .init = enter, .fini = leave);

static void expect_loads(const char *name)
{
	cr_assert_eq(load(name), 0, "%s: %s", name, error);
	cr_assert_str_eq(model.model->name, "echo");
	agent_model_unload(&model);
}

Test(model_load, a_path_is_loaded)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/upper.so", folder);
	expect_loads(path);
	expect_loads("./upper.so");
}

Test(model_load, a_file_here_is_loaded_without_a_slash)
{
	expect_loads("upper.so");
}

Test(model_load, a_name_is_no_file_here)
{
	cr_assert_eq(load("upper"), -ENOENT);
	cr_assert_not_null(strstr(error, "there is no model 'upper': no file upper.so in /"), "%s",
			   error);
	cr_assert_not_null(strstr(error, "or the path of a .so"), "%s", error);
	cr_assert_null(strstr(error, "or here"), "%s", error);
}

Test(model_load, a_missing_file_does_not_get_a_second_ending)
{
	cr_assert_eq(load("lower.so"), -ENOENT);
	cr_assert_not_null(strstr(error, "no file lower.so in /"), "%s", error);
	cr_assert_not_null(strstr(error, ", or here"), "%s", error);
	cr_assert_null(strstr(error, ".so.so"), "%s", error);
}

Test(model_load, a_file_that_is_no_library_gives_the_loaders_reason)
{
	FILE *file = fopen("broken.so", "w");

	cr_assert_not_null(file);
	fputs("text\n", file);
	fclose(file);
	cr_assert_eq(load("broken.so"), -ENOENT);
	cr_assert_not_null(strstr(error, "model 'broken.so' cannot be loaded: "), "%s", error);
}

/* --- ABIs and descriptions ------------------------------------------------------------------- */

Test(model_load, a_plug_in_of_abi_2_is_loaded_and_undescribed)
{
	cr_assert_eq(load(PLUGIN_ABI2), 0, "%s", error);
	cr_expect_not(model.described);
	cr_expect_eq(model.shape.max_request, 64);
	agent_model_unload(&model);
}

Test(model_load, other_abis_are_refused_by_number)
{
	cr_assert_eq(load(PLUGIN_ABI1), -EINVAL);
	cr_expect_not_null(strstr(error, "has ABI 1, this agent takes 2 to 7; build it against"),
			   "%s", error);
	cr_assert_eq(load(PLUGIN_ABI8), -EINVAL);
	cr_expect_not_null(strstr(error, "has ABI 8, this agent takes 2 to 7"), "%s", error);
}

static void no_step(void *state, struct agent_model_turn *turns, uint32_t n)
{
}

static int no_capture(void *state, struct agent_model_gpu *gpu, char *why, size_t size)
{
	return 0;
}

Test(model_load, pieces_come_from_a_gpu_since_abi_5)
{
	static const struct {
		uint32_t abi;
		bool steps, captures, has_cuda_side;
	} rows[] = {
		{5, true, true, true},
		{5, true, false, false},
		{5, false, true, true},
		{4, true, true, false},
		{4, false, true, true},
		{2, false, true, true},
		/* behind the end of an older plug-in there is no step() */
		{3, true, true, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct agent_model m = {.abi = rows[i].abi,
					.step = rows[i].steps ? no_step : NULL,
					.capture = rows[i].captures ? no_capture : NULL};

		cr_expect_eq(agent_model_has_cuda_side(&m), rows[i].has_cuda_side, "row %zu", i);
	}
}

Test(model_load, a_plug_in_describes_its_tensors)
{
	cr_assert_eq(load("upper.so"), 0, "%s", error);
	cr_assert(model.described);
	cr_expect_str_eq(model.description.version, "1");
	cr_expect_str_eq(model.description.input[0].name, "input0");
	cr_expect_str_eq(model.description.output[0].name, "output0");
	cr_expect_eq(model.description.input[0].datatype, DATATYPE_UINT8);
	cr_expect_eq(model.description.input[0].shape[0], DESCRIPTION_FREE);
	agent_model_unload(&model);
}

/* Its description and its sizes, for the model below. */
static struct agent_model_description says;
static struct agent_model_shape sizes;
static int closed;

static int say_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		    void **state, char *why, size_t size)
{
	*shape = sizes;
	*state = NULL;
	return 0;
}

static void say_close(void *state)
{
	closed++;
}

static void say_describe(const void *state, struct agent_model_description *description)
{
	*description = says;
}

static struct agent_model sayer(void)
{
	says = (struct agent_model_description){
		.batch = 1,
		.n_inputs = 1,
		.n_outputs = 1,
		.input = {{"x", "FP32", 2, {-1, 256}}},
		.output = {{"y", "FP16", 2, {-1, 10}}},
	};
	sizes = (struct agent_model_shape){
		.min_request = 1024, .max_request = 1024, .max_reply = 20, .max_batch = 8};
	closed = 0;
	return (struct agent_model){.abi = AGENT_MODEL_ABI,
				    .name = "sayer",
				    .open = say_open,
				    .close = say_close,
				    .describe = say_describe};
}

static void expect_refused(const struct agent_model *sayer, const char *expect)
{
	closed = 0;
	error[0] = '\0';
	cr_expect_eq(agent_model_open(&model, sayer, "", 8, error, sizeof(error)), -EINVAL, "%s",
		     expect);
	cr_expect_str_eq(error, expect);
	cr_expect_eq(closed, 1, "the model is not closed: %s", expect);
}

Test(describe, what_a_model_says_is_kept)
{
	struct agent_model model_of_test = sayer();

	says.version = "2.1-rc";
	says.platform = "mine";
	cr_assert_eq(agent_model_open(&model, &model_of_test, "", 8, error, sizeof(error)), 0, "%s",
		     error);
	cr_assert(model.described);
	cr_expect(model.description.batch);
	cr_expect_str_eq(model.description.version, "2.1-rc");
	cr_expect_str_eq(model.description.platform, "mine");
	cr_expect_eq(model.description.output[0].datatype, DATATYPE_FP16);
	cr_expect_eq(model.description.output[0].shape[1], 10);
	agent_model_unload(&model);
	cr_expect_eq(closed, 1);
}

Test(describe, a_model_without_a_description_is_undescribed)
{
	struct agent_model model_of_test = sayer();

	model_of_test.describe = NULL;
	cr_assert_eq(agent_model_open(&model, &model_of_test, "", 8, error, sizeof(error)), 0, "%s",
		     error);
	cr_expect_not(model.described);
	agent_model_unload(&model);
}

Test(describe, sizes_and_tensors_must_agree)
{
	struct agent_model model_of_test = sayer();

	sizes.max_request = 1028;
	expect_refused(&model_of_test, "model 'sayer': its description: max_request: 1028 bytes, "
				       "and the inputs have 1024");
	sizes.max_request = 1024;
	sizes.min_request = 0;
	expect_refused(&model_of_test, "model 'sayer': its description: min_request: 0 bytes, and "
				       "the inputs have 1024");
	sizes.min_request = 1024;
	sizes.max_reply = 40;
	expect_refused(&model_of_test, "model 'sayer': its description: max_reply: 40 bytes, and "
				       "the outputs have 20");
	sizes.max_reply = 16;
	expect_refused(&model_of_test, "model 'sayer': its description: max_reply: 16 bytes, and "
				       "the outputs have 20");
}

Test(describe, faults_name_the_field)
{
	char longer[DESCRIPTION_NAME_MAX + 1];
	struct agent_model model_of_test = sayer();

	memset(longer, 'n', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	says.input[0].name = longer;
	expect_refused(&model_of_test,
		       "model 'sayer': its description: inputs[0].name: use 1 to 63 printable "
		       "ASCII characters without spaces");
	says.input[0].name = NULL;
	expect_refused(&model_of_test,
		       "model 'sayer': its description: inputs[0].name: use 1 to 63 printable "
		       "ASCII characters without spaces");
	says.input[0].name = "x";
	says.output[0].datatype = "float32";
	expect_refused(&model_of_test,
		       "model 'sayer': its description: outputs[0].datatype: unknown; use BOOL, "
		       "UINT8 to UINT64, INT8 to INT64, FP16, FP32, FP64, BF16 or BYTES");
	says.output[0].datatype = NULL;
	expect_refused(&model_of_test,
		       "model 'sayer': its description: outputs[0].datatype: unknown; use BOOL, "
		       "UINT8 to UINT64, INT8 to INT64, FP16, FP32, FP64, BF16 or BYTES");
	says.output[0].datatype = "FP16";
	says.output[0].rank = 9;
	expect_refused(
		&model_of_test,
		"model 'sayer': its description: outputs[0].shape: 9 dimensions; use at most 8");
	says.output[0].rank = 2;
	says.output[0].shape[1] = INT64_MIN;
	expect_refused(&model_of_test,
		       "model 'sayer': its description: outputs[0].shape[1]: -2147483648; use 1 or "
		       "more, or -1 for a free dimension");
	says.output[0].shape[1] = INT64_C(1) << 32;
	expect_refused(
		&model_of_test,
		"model 'sayer': its description: outputs[0].shape: more than 67108864 bytes");
	says.n_inputs = 0;
	expect_refused(&model_of_test,
		       "model 'sayer': its description: inputs: 0 tensors; use 1 to 16");
}

/* --- sizes of batches ------------------------------------------------------------------------- */

static struct agent_model_shape offered;

static int offer(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		 void **state, char *why, size_t size)
{
	*shape = offered;
	*state = NULL;
	return 0;
}

static void no_run(void *state, struct agent_model_item *items, uint32_t n)
{
}

static void no_close(void *state)
{
}

static int open_offer_of(uint32_t max_batch)
{
	static struct agent_model with_sizes = {.abi = AGENT_MODEL_ABI, .name = "sizes"};

	with_sizes.open = offer;
	with_sizes.run = no_run;
	with_sizes.close = no_close;
	error[0] = '\0';
	return agent_model_open(&model, &with_sizes, "", max_batch, error, sizeof(error));
}

static int open_offer(void)
{
	offered.max_request = offered.max_reply = 64;
	return open_offer_of(8);
}

Test(model_load, sizes_of_batches_end_with_the_largest)
{
	offered = (struct agent_model_shape){.max_batch = 8, .n_buckets = 2, .bucket = {1, 3}};
	cr_assert_eq(open_offer(), 0, "%s", error);
	cr_expect_eq(model.buckets.n, 3);
	cr_expect_eq(model.buckets.rows[1], 3);
	cr_expect_eq(model.buckets.rows[2], 8);
	for (uint32_t n = 1; n <= 8; n++)
		cr_expect_eq(model.buckets.rows[agent_bucket(&model.buckets, n)], n == 1   ? 1
										  : n <= 3 ? 3
											   : 8);
	agent_buckets_cut(&model.buckets, 3);
	cr_expect_eq(model.buckets.n, 2);
	cr_expect_eq(model.buckets.rows[1], 3);
	agent_model_limit(&model, 2);
	cr_expect_eq(model.buckets.rows[1], 2, "what is reported is what runs");
	cr_expect_eq(model.shape.max_batch, 2);
	agent_model_limit(&model, 9);
	cr_expect_eq(model.shape.max_batch, 2);

	offered = (struct agent_model_shape){.max_batch = 128};
	agent_model_offer_powers(&offered);
	offered.max_request = offered.max_reply = 64;
	cr_assert_eq(open_offer_of(128), 0, "%s", error);
	cr_expect_eq(model.buckets.n, AGENT_BUCKETS_MAX);
	cr_expect_eq(model.buckets.rows[6], 64);
}

Test(model_load, sizes_of_batches_may_be_left_out)
{
	offered = (struct agent_model_shape){.max_batch = 8, .n_buckets = 2, .bucket = {1, 3}};
	cr_assert_eq(open_offer(), 0, "%s", error);
	agent_model_keep_one_size(&model);
	cr_expect_eq(model.buckets.n, 1);
	cr_expect_eq(model.buckets.rows[agent_bucket(&model.buckets, 1)], 8);
	agent_model_limit(&model, 4);
	cr_expect_eq(model.buckets.n, 1);
	cr_expect_eq(model.buckets.rows[0], 4);
}

Test(model_load, sizes_of_batches_that_make_no_sense_are_refused)
{
	static const struct agent_model_shape wrong[] = {
		{.max_batch = 8, .n_buckets = 1, .bucket = {8}},
		{.max_batch = 8, .n_buckets = 1, .bucket = {0}},
		{.max_batch = 8, .n_buckets = 2, .bucket = {2, 2}},
		{.max_batch = 8, .n_buckets = AGENT_MODEL_BUCKETS_MAX + 1},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		offered = wrong[i];
		cr_expect_eq(open_offer(), -EINVAL, "%zu", i);
		cr_expect_not_null(strstr(error, "model 'sizes': "), "%s", error);
	}
	cr_expect_not_null(strstr(error, "n_buckets: 8 is too many; offer 7 or fewer"), "%s",
			   error);
}

/* --- what no plug-in should say -----------------------------------------------------------------
 */

Test(model_load, sizes_that_no_worker_can_have_are_refused)
{
	static const struct {
		struct agent_model_shape shape;
		const char *expect;
	} rows[] = {
		{{.max_batch = 0, .max_request = 64, .max_reply = 64},
		 "model 'sizes': max_batch: 0; choose 1 to 8, which is --max-batch"},
		{{.max_batch = 9, .max_request = 64, .max_reply = 64},
		 "model 'sizes': max_batch: 9; choose 1 to 8, which is --max-batch"},
		{{.max_batch = UINT32_MAX, .max_request = 64, .max_reply = 64},
		 "model 'sizes': max_batch: 4294967295; choose 1 to 8, which is --max-batch"},
		{{.max_batch = 8, .max_request = 0, .max_reply = 64},
		 "model 'sizes': max_request: 0 bytes; use 1 to 67108864"},
		{{.max_batch = 8, .max_request = UINT32_MAX, .max_reply = 64},
		 "model 'sizes': max_request: 4294967295 bytes; use 1 to 67108864"},
		{{.max_batch = 8, .max_request = 64, .max_reply = 0},
		 "model 'sizes': max_reply: 0 bytes; use 1 to 67108864"},
		/* behind a header its end would be at address 39 of its buffer */
		{{.max_batch = 8, .max_request = 64, .max_reply = UINT32_MAX},
		 "model 'sizes': max_reply: 4294967295 bytes; use 1 to 67108864"},
		{{.max_batch = 8, .min_request = 65, .max_request = 64, .max_reply = 64},
		 "model 'sizes': min_request: 65 bytes, and max_request is 64"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		offered = rows[i].shape;
		cr_expect_eq(open_offer_of(8), -EINVAL, "%s", rows[i].expect);
		cr_expect_str_eq(error, rows[i].expect);
	}
	offered = (struct agent_model_shape){.max_batch = 1,
					     .max_request = 64 << 20,
					     .max_reply = 64 << 20,
					     .min_request = 64 << 20};
	cr_expect_eq(open_offer_of(8), 0, "%s", error);
}

static int open_result;

static int open_fails(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		      void **state, char *why, size_t size)
{
	return open_result;
}

Test(model_load, an_open_that_fails_without_a_word_is_told)
{
	struct agent_model fails = sayer();

	fails.open = open_fails;
	open_result = -ENOMEM;
	cr_expect_eq(agent_model_open(&model, &fails, "", 8, error, sizeof(error)), -ENOMEM);
	cr_expect_str_eq(error, "model 'sayer': Cannot allocate memory");
	/* An error number without its sign is no success. */
	open_result = ENOMEM;
	cr_expect_eq(agent_model_open(&model, &fails, "", 8, error, sizeof(error)), -EINVAL);
	cr_expect_str_eq(
		error, "model 'sayer': open() returned 12; it returns 0, or -errno after an error");
	cr_expect_eq(closed, 0, "nothing was opened");
}

Test(model_load, a_plug_in_without_a_name_or_a_call_is_refused)
{
	static const char *const names[] = {NULL, "", "two words", "tab\t", "umlaut-\xc3\xa4"};
	struct agent_model broken = sayer();
	char longer[65];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		broken.name = names[i];
		cr_expect_eq(agent_model_open(&model, &broken, "", 8, error, sizeof(error)),
			     -EINVAL, "%zu", i);
		cr_expect_str_eq(error, "the model's name: use 1 to 63 printable ASCII characters "
					"without spaces");
	}
	memset(longer, 'n', 64);
	longer[64] = '\0';
	broken.name = longer;
	cr_expect_eq(agent_model_open(&model, &broken, "", 8, error, sizeof(error)), -EINVAL);
	longer[63] = '\0';
	cr_expect_eq(agent_model_open(&model, &broken, "", 8, error, sizeof(error)), 0, "%s",
		     error);
	broken.close = NULL;
	cr_expect_eq(agent_model_open(&model, &broken, "", 8, error, sizeof(error)), -EINVAL);
	cr_expect_not_null(strstr(error, ": it has no open() or no close()"), "%s", error);
	broken = sayer();
	broken.open = NULL;
	cr_expect_eq(agent_model_open(&model, &broken, "", 8, error, sizeof(error)), -EINVAL);
	cr_expect_str_eq(error, "model 'sayer': it has no open() or no close()");
}

Test(model_load, a_plug_in_may_be_for_gpus_only)
{
	struct agent_model m = sayer();

	cr_expect_not(agent_model_has_cpu_side(&m));
	m.run = no_run;
	cr_expect(agent_model_has_cpu_side(&m));
	m.run = NULL;
	m.step = no_step;
	cr_expect(agent_model_has_cpu_side(&m));
	/* behind the end of an older plug-in there is no step() */
	m.abi = 3;
	cr_expect_not(agent_model_has_cpu_side(&m));
}
