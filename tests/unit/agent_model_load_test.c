/* SPDX-License-Identifier: BSD-3-Clause */
/* --model takes a path, NAME.so in the current folder, or a name. */
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
