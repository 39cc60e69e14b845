/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "pool.h"
#include "schedule/pick.h"

static struct worker_spec good_spec(const char *name)
{
	struct worker_spec spec = {
		.model = "echo",
		.instance = 7,
		.slots = 64,
		.max_request = 1472,
		.max_reply = 1472,
		.max_batch = 32,
		.weight = 1,
		.heartbeat_ms = 100,
	};

	snprintf(spec.name, sizeof(spec.name), "%s", name);
	return spec;
}

static struct worker *must_register(struct worker_pool *pool, const char *name)
{
	struct worker_spec spec = good_spec(name);
	char error[160] = "";
	struct worker *worker = workers_register(pool, &spec, error, sizeof(error));

	cr_assert_not_null(worker, "%s", error);
	return worker;
}

static void assert_refused(struct worker_pool *pool, const struct worker_spec *spec,
			   const char *expected)
{
	char error[160] = "";

	cr_assert_null(workers_register(pool, spec, error, sizeof(error)), "accepted: %s",
		       expected);
	cr_assert_not_null(strstr(error, expected), "got '%s', expected '%s'", error, expected);
}

Test(workers_pool, a_registered_worker_is_joining_and_can_be_found)
{
	struct worker_pool *pool = workers_pool_create();
	struct worker *worker = must_register(pool, "host1.gpu-0_a");

	cr_assert_eq(worker->state, WORKER_JOINING);
	cr_assert_eq(worker->number, 0);
	cr_assert_eq(worker->generation, 1);
	cr_assert_not(worker->ready);
	cr_assert_eq(workers_find(pool, "host1.gpu-0_a"), worker);
	cr_assert_eq(workers_get(pool, 0), worker);
	cr_assert_eq(workers_count(pool, WORKER_JOINING), 1);
	cr_assert_eq(workers_count(pool, WORKER_GONE), WORKERS_MAX - 1);
	workers_pool_destroy(pool);
}

Test(workers_pool, lookups_of_what_is_not_there_give_null)
{
	struct worker_pool *pool = workers_pool_create();

	cr_assert_null(workers_find(pool, "nobody"));
	cr_assert_null(workers_find(pool, ""));
	cr_assert_null(workers_get(pool, 0));
	cr_assert_null(workers_get(pool, WORKERS_MAX));
	cr_assert_null(workers_get(pool, WORKER_NONE));
	workers_pool_destroy(pool);
}

Test(workers_pool, a_removed_worker_frees_its_name_and_its_place_gets_a_new_generation)
{
	struct worker_pool *pool = workers_pool_create();
	struct worker *first = must_register(pool, "a");
	struct worker *second;

	must_register(pool, "b");
	snprintf(first->reason, sizeof(first->reason), "no heartbeat");
	first->state = WORKER_ACTIVE;
	first->heartbeat_ms = 12;
	workers_remove(pool, first);
	cr_assert_null(workers_find(pool, "a"));
	cr_assert_null(workers_get(pool, 0));

	second = must_register(pool, "a");
	cr_assert_eq(second->number, 0);
	cr_assert_eq(second->generation, 2);
	cr_assert_eq(second->state, WORKER_JOINING);
	cr_assert_eq(second->heartbeat_ms, 0);
	cr_assert_str_empty(second->reason);
	workers_pool_destroy(pool);
}

Test(workers_pool, a_name_that_comes_back_gets_its_number_back_if_that_is_free)
{
	struct worker_pool *pool = workers_pool_create();
	struct worker *a = must_register(pool, "a"), *b = must_register(pool, "b");

	workers_remove(pool, a);
	workers_remove(pool, b);
	cr_assert_eq(must_register(pool, "b")->number, 1);
	cr_assert_eq(must_register(pool, "c")->number, 0);
	cr_assert_eq(must_register(pool, "a")->number, 2);
	workers_pool_destroy(pool);
}

Test(workers_pool, those_that_are_there_come_in_the_order_of_their_numbers)
{
	struct worker_pool *pool = workers_pool_create();
	struct worker *a, *b, *c, *d;

	cr_assert_null(workers_next(pool, NULL));
	a = must_register(pool, "a");
	b = must_register(pool, "b");
	c = must_register(pool, "c");
	d = must_register(pool, "d");
	workers_remove(pool, b);
	cr_assert_eq(workers_next(pool, NULL), a);
	cr_assert_eq(workers_next(pool, a), c);
	workers_remove(pool, c);
	cr_assert_eq(workers_next(pool, c), d, "it may have gone meanwhile");
	cr_assert_null(workers_next(pool, d));
	cr_assert_eq(must_register(pool, "b"), workers_next(pool, a));
	workers_pool_destroy(pool);
}

Test(workers_pool, a_generation_is_never_zero)
{
	struct worker_pool *pool = workers_pool_create();
	struct worker *worker = must_register(pool, "a");

	worker->generation = UINT16_MAX;
	workers_remove(pool, worker);
	cr_assert_eq(must_register(pool, "a")->generation, 1);
	workers_pool_destroy(pool);
}

Test(workers_pool, a_name_in_use_is_refused_and_says_by_whom)
{
	struct worker_pool *pool = workers_pool_create();
	struct worker_spec spec = good_spec("a");

	must_register(pool, "a");
	assert_refused(pool, &spec, "name 'a' is registered already by this agent");
	spec.instance = 8;
	assert_refused(pool, &spec, "name 'a' is in use by another live agent");
	cr_assert_eq(workers_count(pool, WORKER_JOINING), 1);
	workers_pool_destroy(pool);
}

Test(workers_pool, a_full_pool_refuses)
{
	struct worker_pool *pool = workers_pool_create();
	struct worker_spec spec = good_spec("one-more");

	for (int i = 0; i < WORKERS_MAX; i++) {
		char name[WORKER_NAME_MAX];

		snprintf(name, sizeof(name), "gpu-%d", i);
		cr_assert_eq(must_register(pool, name)->number, i);
	}
	assert_refused(pool, &spec, "all 1024 places for workers are taken");
	workers_pool_destroy(pool);
}

Test(workers_pool, every_text_field_is_checked)
{
	struct worker_pool *pool = workers_pool_create();
	struct worker_spec spec = good_spec("");

	assert_refused(pool, &spec, "name is empty; use 1 to 63 characters");
	memset(spec.name, 'a', sizeof(spec.name));
	assert_refused(pool, &spec, "name is too long; use 1 to 63 characters");
	spec = good_spec("gpu 0");
	assert_refused(pool, &spec, "name has a character that is not allowed; use letters");
	spec = good_spec("gpu/0");
	assert_refused(pool, &spec, "name has a character");
	spec = good_spec("gpu\xc3\xa9");
	assert_refused(pool, &spec, "name has a character");
	spec = good_spec("a");
	spec.model[0] = '\0';
	assert_refused(pool, &spec, "model is empty");
	memset(spec.model, 'm', sizeof(spec.model));
	assert_refused(pool, &spec, "model is too long");
	snprintf(spec.model, sizeof(spec.model), "echo\n2");
	assert_refused(pool, &spec, "model has a character");
	snprintf(spec.model, sizeof(spec.model), "meta/llama-3:8b");
	cr_assert_not_null(workers_register(pool, &spec, NULL, 0));
	workers_pool_destroy(pool);
}

struct number_row {
	size_t offset;
	uint32_t value;
	const char *expected; /* NULL: accepted */
};

#define FIELD(f) offsetof(struct worker_spec, f)

static const struct number_row number_rows[] = {
	{FIELD(slots), 0, "slots is 0; use a power of two from 2 to 32768"},
	{FIELD(slots), 1, "slots is 1"},
	{FIELD(slots), 2, NULL},
	{FIELD(slots), 100, "slots is 100; use a power of two"},
	{FIELD(slots), 32768, NULL},
	{FIELD(slots), 65536, "slots is 65536"},
	{FIELD(slots), 1u << 31, "slots is 2147483648"},
	{FIELD(max_request), 0, "max_request is 0; use 1 to 67108864"},
	{FIELD(max_request), 64 << 20, NULL},
	{FIELD(max_request), (64 << 20) + 1, "max_request is 67108865"},
	{FIELD(max_reply), 0, "max_reply is 0; use 1 to 67108864"},
	{FIELD(max_reply), 64 << 20, NULL},
	{FIELD(max_reply), UINT32_MAX, "max_reply is 4294967295"},
	{FIELD(max_batch), 0, "max_batch is 0; use 1 to 65536"},
	{FIELD(max_batch), 65536, NULL},
	{FIELD(max_batch), 65537, "max_batch is 65537"},
	{FIELD(weight), 0, "weight is 0; use 1 to 256"},
	{FIELD(weight), 256, NULL},
	{FIELD(weight), 257, "weight is 257"},
	{FIELD(heartbeat_ms), 9, "heartbeat_ms is 9; use 10 to 60000"},
	{FIELD(heartbeat_ms), 10, NULL},
	{FIELD(heartbeat_ms), 60000, NULL},
	{FIELD(heartbeat_ms), 60001, "heartbeat_ms is 60001"},
};

Test(workers_pool, every_number_is_checked_at_both_ends)
{
	struct worker_pool *pool = workers_pool_create();

	for (size_t i = 0; i < sizeof(number_rows) / sizeof(number_rows[0]); i++) {
		const struct number_row *row = &number_rows[i];
		struct worker_spec spec = good_spec("a");

		memcpy((char *)&spec + row->offset, &row->value, sizeof(row->value));
		if (row->expected != NULL) {
			assert_refused(pool, &spec, row->expected);
		} else {
			char error[160] = "";
			struct worker *worker = workers_register(pool, &spec, error, sizeof(error));

			cr_assert_not_null(worker, "row %zu: %s", i, error);
			workers_remove(pool, worker);
		}
	}
	workers_pool_destroy(pool);
}

Test(workers_pool, states_have_names)
{
	cr_assert_str_eq(worker_state_name(WORKER_GONE), "gone");
	cr_assert_str_eq(worker_state_name(WORKER_JOINING), "joining");
	cr_assert_str_eq(worker_state_name(WORKER_ACTIVE), "active");
	cr_assert_str_eq(worker_state_name(WORKER_DRAINING), "draining");
	cr_assert_str_eq(worker_state_name(WORKER_STATES), "unknown");
}

static void add_label(struct worker_spec *spec, const char *key, const char *value)
{
	struct worker_label *label = &spec->label[spec->n_labels++];

	strncpy(label->key, key, sizeof(label->key));
	strncpy(label->value, value, sizeof(label->value));
}

Test(workers_pool, labels_are_kept_and_found)
{
	struct worker_pool *pool = workers_pool_create();
	struct worker_spec spec = good_spec("a");
	struct worker *worker;
	char error[160] = "";

	add_label(&spec, "host", "rack2-7");
	add_label(&spec, "example.com/memory", "141GiB,hbm3");
	worker = workers_register(pool, &spec, error, sizeof(error));
	cr_assert_not_null(worker, "%s", error);
	cr_assert_str_eq(workers_label(worker, "host"), "rack2-7");
	cr_assert_str_eq(workers_label(worker, "example.com/memory"), "141GiB,hbm3");
	cr_assert_null(workers_label(worker, "gpu"));
	workers_pool_destroy(pool);
}

Test(workers_pool, labels_that_cannot_be_are_refused)
{
	static const struct {
		const char *key, *value, *error;
	} rows[] = {
		{"", "x", "the key of a label is empty"},
		{"host", "", "the value of a label is empty"},
		{"a key", "x", "the key of a label has a character that is not allowed"},
		{"k=v", "x", "the key of a label has a character that is not allowed"},
		{"host", "a b", "the value of a label has a character that is not allowed"},
		{"host", "a\x1b[2J", "the value of a label has a character that is not allowed"},
		{"host", "\xff", "the value of a label has a character that is not allowed"},
		{"a23456789a23456789a23456789a2345", "x", "the key of a label is too long"},
		{"host", "a23456789a23456789a23456789a23456789a23456789a23456789a23456789a234",
		 "the value of a label is too long"},
		{"twice", "x", "label 'twice' comes twice"},
	};
	struct worker_pool *pool = workers_pool_create();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct worker_spec spec = good_spec("a");

		add_label(&spec, "twice", "1");
		add_label(&spec, rows[i].key, rows[i].value);
		assert_refused(pool, &spec, rows[i].error);
	}
	workers_pool_destroy(pool);
}

Test(workers_pool, more_labels_than_there_is_room_for_are_refused)
{
	struct worker_pool *pool = workers_pool_create();
	struct worker_spec spec = good_spec("a");

	spec.n_labels = WORKER_LABELS_MAX + 1;
	assert_refused(pool, &spec, "17 labels are too many; use at most 16");
	workers_pool_destroy(pool);
}

/* --- descriptions ------------------------------------------------------------------------------
 */

static struct model_description square(void)
{
	return (struct model_description){.version = "1",
					  .n_inputs = 1,
					  .n_outputs = 1,
					  .input = {{"x", DATATYPE_FP32, 2, {16, 16}}},
					  .output = {{"y", DATATYPE_FP32, 1, {4}}}};
}

static struct worker_spec described_spec(const char *name, const struct model_description *d)
{
	struct worker_spec spec = good_spec(name);

	spec.min_request = spec.max_request = 1024;
	spec.max_reply = 16;
	spec.description = d;
	return spec;
}

Test(workers_pool, a_worker_keeps_a_copy_of_its_description_until_it_is_removed)
{
	struct worker_pool *pool = workers_pool_create();
	struct model_description d = square();
	struct worker_spec spec = described_spec("a", &d);
	char error[160] = "";
	struct worker *worker = workers_register(pool, &spec, error, sizeof(error));

	cr_assert_not_null(worker, "%s", error);
	cr_assert_neq(worker->spec.description, &d);
	memset(&d, 0xee, sizeof(d));
	cr_expect_str_eq(worker->spec.description->input[0].name, "x");
	workers_remove(pool, worker);
	cr_expect_null(worker->spec.description);
	workers_pool_destroy(pool);
}

Test(workers_pool, a_bad_description_is_refused_and_takes_no_place)
{
	struct worker_pool *pool = workers_pool_create();
	struct model_description d = square();
	struct worker_spec spec = described_spec("a", &d);

	d.input[0].shape[1] = 0;
	assert_refused(pool, &spec, "description.inputs[0].shape[1]: 0; use 1 or more");
	d.input[0].shape[1] = 15;
	assert_refused(pool, &spec,
		       "max_request: 1024 bytes, and the inputs have 960; a description and its "
		       "sizes must agree");
	d.input[0].shape[1] = 16;
	spec.max_reply = 17;
	assert_refused(pool, &spec, "max_reply: 17 bytes, and the outputs have 16");
	cr_expect_eq(workers_count(pool, WORKER_GONE), WORKERS_MAX);
	workers_pool_destroy(pool);
}

Test(workers_pool, workers_of_one_model_agree)
{
	struct worker_pool *pool = workers_pool_create();
	struct model_description d = square(), other = square();
	struct worker_spec spec = described_spec("a", &d);
	struct worker *worker;
	char error[400] = "";

	worker = workers_register(pool, &spec, error, sizeof(error));
	cr_assert_not_null(worker, "%s", error);
	other.output[0].datatype = DATATYPE_INT32;
	spec = described_spec("b", &other);
	cr_assert_not(workers_spec_agrees(pool, &spec, error, sizeof(error)));
	cr_expect_str_eq(error, "description.outputs[0].datatype: output 'y' is INT32, and FP32 in "
				"worker 'a' of the same model; stop the workers with the other "
				"tensors first, or give the model another name");
	/* its own former registration, another model, and undescribed workers do not count */
	strcpy(spec.name, "a");
	cr_expect(workers_spec_agrees(pool, &spec, error, sizeof(error)));
	strcpy(spec.name, "b");
	strcpy(spec.model, "digits");
	cr_expect(workers_spec_agrees(pool, &spec, error, sizeof(error)));
	strcpy(spec.model, "echo");
	spec.description = NULL;
	cr_expect(workers_spec_agrees(pool, &spec, error, sizeof(error)));
	spec.description = &other;
	workers_remove(pool, worker);
	cr_expect(workers_spec_agrees(pool, &spec, error, sizeof(error)));
	workers_pool_destroy(pool);
}
