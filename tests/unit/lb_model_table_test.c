/* SPDX-License-Identifier: BSD-3-Clause */
/* Models by the names that clients give, as lcores look them up. */
#include <criterion/criterion.h>
#include <string.h>

#include "lcore/model_table.h"

static struct model_description describe(const char *version, bool batch)
{
	struct model_description d = {.batch = batch, .n_inputs = 1, .n_outputs = 1};

	strcpy(d.version, version);
	return d;
}

static const char *version_of(const struct model_table *t, const char *name, size_t length)
{
	const struct model_entry *e = model_table_find(t, name, length);

	return e != NULL ? e->description.version : "none";
}

Test(lb_model_table, finds_whole_names_only_in_any_order_of_entry)
{
	static const char *const names[] = {"resnet50", "echo", "mlp", "echo2", "a", "zeta", "ec"};
	const unsigned int n = sizeof(names) / sizeof(names[0]);
	struct model_table *t = model_table_create(n);

	cr_assert_not_null(t);
	for (unsigned int i = 0; i < n; i++) {
		struct model_description d = describe((char[]){'0' + i, '\0'}, false);

		model_table_add(t, names[i], &d, 8);
	}
	cr_assert_eq(t->n, n);
	for (unsigned int i = 0; i < n; i++)
		cr_expect_str_eq(version_of(t, names[i], strlen(names[i])),
				 ((char[]){'0' + i, '\0'}), "%s", names[i]);
	cr_expect_str_eq(version_of(t, "echo2/infer", 4), "1", "a name ends with its length");
	cr_expect_str_eq(version_of(t, "echo2/infer", 5), "3");
	cr_expect_str_eq(version_of(t, "echo2/infer", 6), "none");
	cr_expect_str_eq(version_of(t, "e", 1), "none");
	cr_expect_str_eq(version_of(t, "", 0), "none");
	cr_expect_str_eq(version_of(t, "zz", 2), "none");
	cr_expect_str_eq(version_of(t, "echo\0", 5), "none");
	cr_expect_str_eq(version_of(t, "a\0b", 3), "none");
	model_table_destroy(t);
}

Test(lb_model_table, a_longer_name_than_any_is_not_there)
{
	struct model_table *t = model_table_create(1);
	struct model_description d = describe("1", false);
	char longest[WORKER_NAME_MAX + 1];

	memset(longest, 'm', sizeof(longest));
	longest[WORKER_NAME_MAX - 1] = '\0';
	model_table_add(t, longest, &d, 8);
	cr_expect_str_eq(version_of(t, longest, WORKER_NAME_MAX - 1), "1");
	longest[WORKER_NAME_MAX - 1] = 'm';
	cr_expect_str_eq(version_of(t, longest, WORKER_NAME_MAX), "none");
	cr_expect_str_eq(version_of(NULL, "m", 1), "none");
	model_table_destroy(t);
}

Test(lb_model_table, a_batch_has_the_rows_that_each_worker_takes)
{
	struct model_table *t = model_table_create(2);
	struct model_description batch = describe("1", true), none = describe("1", false);

	model_table_add(t, "mlp", &batch, 32);
	model_table_add(t, "mlp", &batch, 8);
	model_table_add(t, "mlp", &batch, 16);
	model_table_add(t, "echo", &none, 32);
	cr_assert_eq(t->n, 2);
	cr_expect_eq(model_table_find(t, "mlp", 3)->max_rows, 8);
	cr_expect_eq(model_table_find(t, "echo", 4)->max_rows, 1);
	model_table_destroy(t);
}
