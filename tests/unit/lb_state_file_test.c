/* SPDX-License-Identifier: BSD-3-Clause */
/* Operators' settings are written to the file atomically, and read back complete or with an error.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "config/state_file.h"

static char folder[64], path[96], error[512];
static struct state_file file;
static struct worker_settings *settings;

static void set_up(void)
{
	/* In memory where there is such a place: a busy disk may sync for more than a second. */
	snprintf(folder, sizeof(folder), "%s/doorbell-state-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/sub/state.json", folder);
	file = (struct state_file){.path = path};
	settings = workers_settings_create();
}

static void tear_down(void)
{
	char command[160];

	workers_settings_destroy(settings);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(lb_state_file, .init = set_up, .fini = tear_down);

static void save(void)
{
	cr_assert_eq(state_file_save(&file, settings, error, sizeof(error)), 0, "%s", error);
}

/* Loads the file as a load balancer does when it starts. */
static int load_again(void)
{
	workers_settings_destroy(settings);
	settings = workers_settings_create();
	file = (struct state_file){.path = path};
	return state_file_load(&file, settings, error, sizeof(error));
}

static void put(const char *text)
{
	FILE *out;

	mkdir(folder, 0700);
	snprintf(path, sizeof(path), "%s/state.json", folder);
	out = fopen(path, "w");
	cr_assert_not_null(out);
	fputs(text, out);
	fclose(out);
}

static char *contents(void)
{
	static char text[4096];
	FILE *in = fopen(path, "r");

	cr_assert_not_null(in);
	text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
	fclose(in);
	return text;
}

Test(lb_state_file, no_file_is_nothing_set)
{
	cr_assert_eq(load_again(), 0, "%s", error);
	cr_assert_eq(workers_settings_count(settings), 0);
	cr_assert_neq(access(path, F_OK), 0, "reading made it");
}

Test(lb_state_file, what_is_written_comes_back)
{
	const struct worker_setting *w1;

	workers_settings_drain(settings, "w1", true);
	workers_settings_weight(settings, "w1", 7);
	workers_settings_pin(settings, "w1", "echo", ASSIGN_IN);
	workers_settings_pin(settings, "w1", "see", ASSIGN_OUT);
	workers_settings_weight(settings, "w2", 256);
	save();
	cr_assert_eq(load_again(), 0, "%s", error);
	cr_assert_eq(workers_settings_count(settings), 2);
	w1 = workers_settings_find(settings, "w1");
	cr_assert(w1->drain);
	cr_assert_eq(w1->weight, 7);
	cr_assert_eq(w1->n_pins, 2);
	cr_assert_eq(workers_settings_pinned(settings, "w1", "echo"), ASSIGN_IN);
	cr_assert_eq(workers_settings_pinned(settings, "w1", "see"), ASSIGN_OUT);
	cr_assert_not(workers_settings_find(settings, "w2")->drain);
	cr_assert_eq(workers_settings_find(settings, "w2")->weight, 256);
	/* and again, over the file that is there */
	workers_settings_forget(settings, "w1");
	save();
	cr_assert_eq(load_again(), 0, "%s", error);
	cr_assert_eq(workers_settings_count(settings), 1);
}

Test(lb_state_file, holds_as_much_as_may_be_set)
{
	char name[WORKER_NAME_MAX], service[WORKER_NAME_MAX];

	for (unsigned int i = 0; i < SETTINGS_MAX; i++) {
		snprintf(name, sizeof(name), "%058u%05u", 0, i);
		snprintf(service, sizeof(service), "%058u%05u", 1, i);
		cr_assert_eq(workers_settings_drain(settings, name, true), 0);
		cr_assert_eq(workers_settings_weight(settings, name, 256), 0);
		cr_assert_eq(workers_settings_pin(settings, name, service, ASSIGN_OUT), 0);
	}
	save();
	cr_assert_eq(load_again(), 0, "%s", error);
	cr_assert_eq(workers_settings_count(settings), SETTINGS_MAX);
	cr_assert_eq(workers_settings_drain(settings, "one-more", true), -ENOSPC);
	cr_assert_eq(workers_settings_drain(settings, "one-more", false), 0);
	cr_assert_null(workers_settings_find(settings, "one-more"));
}

#define FIX "move it away to start without operators' settings"

static const struct {
	const char *text, *expect;
} refused[] = {
	{"", "is not JSON"},
	{"{\"version\": 1, \"workers\": [", "is not JSON"},
	{"[]", "is not an object with version and workers"},
	{"{\"version\": 1}", "is not an object with version and workers"},
	{"{\"version\": 0, \"workers\": []}", "is not an object with version"},
	{"{\"version\": \"1\", \"workers\": []}", "is not an object with version"},
	{"{\"version\": 1, \"workers\": [], \"x\": 1}", "is not an object with version"},
	{"{\"version\": 1, \"workers\": [1]}", "workers[0].name is missing"},
	{"{\"version\": 1, \"workers\": [{\"name\": \"a/b\"}]}", "no worker can have it"},
	{"{\"version\": 1, \"workers\": [{\"name\": \"a\", \"drain\": 1}]}",
	 "workers[0].drain is neither true nor false"},
	{"{\"version\": 1, \"workers\": [{\"name\": \"a\", \"weight\": 257}]}",
	 "weight is not an integer from 1 to 256"},
	{"{\"version\": 1, \"workers\": [{\"name\": \"a\", \"weight\": 0}]}", "weight is not"},
	{"{\"version\": 1, \"workers\": [{\"name\": \"a\", \"pace\": 0}]}",
	 "keys that this version does not know"},
	{"{\"version\": 1, \"workers\": [{\"name\": \"a\", \"assigned\": \"b\"}]}",
	 "assigned is not an array"},
	{"{\"version\": 1, \"workers\": [{\"name\": \"a\", \"released\": [\"b c\"]}]}",
	 "released is not an array"},
	{"{\"version\": 1, \"workers\": [{\"name\": \"a\", \"assigned\": [\"b\"], \"released\": "
	 "[\"b\"]}]}",
	 "names a service twice"},
	{"{\"version\": 1, \"workers\": [{\"name\": \"a\", \"drain\": true}, {\"name\": \"a\"}]}",
	 "workers[1].name is there twice"},
	{"{\"version\": 1, \"version\": 1, \"workers\": []}", "is not JSON: duplicate"},
	{"{\"version\": 2, \"workers\": [{\"name\": \"a\", \"successor\": \"b\"}]}",
	 "workers[0].successor needs drain: true"},
	{"{\"version\": 2, \"workers\": [{\"name\": \"a\", \"drain\": true, \"successor\": "
	 "\"a\"}]}",
	 "workers[0].successor is not the name of another worker"},
	{"{\"version\": 2, \"workers\": [{\"name\": \"a\", \"drain\": true, \"successor\": 1}]}",
	 "workers[0].successor is not the name of another worker"},
	{"{\"version\": 2, \"workers\": [{\"name\": \"a\", \"drain\": true, \"partly\": true}]}",
	 "workers[0].partly is not true or false beside a successor"},
	{"{\"version\": 2, \"workers\": [{\"name\": \"a\", \"drain\": true, \"successor\": \"b\", "
	 "\"partly\": 1}]}",
	 "workers[0].partly is not true or false beside a successor"},
};

Test(lb_state_file, what_is_not_understood_is_refused_and_left_as_it_is)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		put(refused[i].text);
		cr_expect_eq(load_again(), -EINVAL, "%s", refused[i].text);
		cr_expect(strncmp(error, path, strlen(path)) == 0 &&
				  strstr(error, refused[i].expect) && strstr(error, FIX),
			  "%s gave: %s", refused[i].text, error);
		cr_expect_str_eq(contents(), refused[i].text);
	}
}

/* An older doorbell-lb reads the file again as soon as nothing of a replacement is in it. */
Test(lb_state_file, a_replacement_that_is_under_way_is_kept_and_only_that_takes_version_2)
{
	const struct worker_setting *a;

	cr_assert_eq(workers_settings_weight(settings, "a", 3), 0);
	cr_assert_eq(workers_settings_replace(settings, "a", "b", true), 0);
	save();
	cr_expect(strstr(contents(), "\"version\": 2") != NULL, "%s", contents());
	cr_assert_eq(load_again(), 0, "%s", error);
	a = workers_settings_find(settings, "a");
	cr_assert_not_null(a);
	cr_expect_str_eq(a->successor, "b");
	cr_expect(a->drain && a->partly && a->weight == 3);
	/* drained: the replacement is over */
	cr_assert_eq(workers_settings_drain(settings, "a", true), 0);
	save();
	cr_expect(strstr(contents(), "\"version\": 1") != NULL, "%s", contents());
	cr_expect(strstr(contents(), "successor") == NULL, "%s", contents());
	cr_expect(strstr(contents(), "partly") == NULL, "%s", contents());
}

Test(lb_state_file, a_newer_versions_file_is_refused)
{
	put("{\"version\": 3, \"workers\": {}}");
	cr_assert_eq(load_again(), -EINVAL);
	cr_assert(strstr(error,
			 "has version 3, and this doorbell-lb reads version 2; install the newer"),
		  "%s", error);
}

Test(lb_state_file, what_is_no_file_is_refused)
{
	put("");
	unlink(path);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(load_again(), -EINVAL);
	cr_assert(strstr(error, "is not a file of at most"), "%s", error);
}

Test(lb_state_file, what_cannot_be_written_changes_nothing)
{
	char before[4096];

	workers_settings_drain(settings, "w1", true);
	put("");
	unlink(path);
	save();
	strcpy(before, contents());
	workers_settings_drain(settings, "w2", true);
	/* a link in the new file's place is not followed */
	snprintf(path + strlen(path), 16, ".new");
	cr_assert_eq(symlink("/dev/full", path), 0);
	path[strlen(path) - 4] = '\0';
	cr_assert_neq(state_file_save(&file, settings, error, sizeof(error)), 0);
	cr_assert(strstr(error, "cannot be written") && strstr(error, "nothing was set"), "%s",
		  error);
	cr_assert_str_eq(contents(), before);
}

Test(lb_state_file, a_folder_that_cannot_be_made_is_said)
{
	put("");
	snprintf(path + strlen(path), 32, "/state.json");
	cr_assert_eq(state_file_save(&file, settings, error, sizeof(error)), -ENOTDIR);
	cr_assert(strstr(error, "Not a directory; nothing was set"), "%s", error);
}

Test(lb_state_file, a_file_that_somebody_else_changed_is_not_written_over)
{
	workers_settings_drain(settings, "w1", true);
	save();
	workers_settings_drain(settings, "w2", true);
	save();
	unlink(path);
	save(); /* removed, it is ours to write */
	unlink(path);
	snprintf(path, sizeof(path), "%s/sub/state.json", folder);
	{
		FILE *out = fopen(path, "w");

		fputs("{\"version\": 1, \"workers\": []}", out);
		fclose(out);
	}
	cr_assert_eq(state_file_save(&file, settings, error, sizeof(error)), -ESTALE);
	cr_assert(strstr(error, "another program has changed it"), "%s", error);
	cr_assert_str_eq(contents(), "{\"version\": 1, \"workers\": []}");
	/* nor one that appeared where there was none */
	file = (struct state_file){.path = path};
	cr_assert_eq(state_file_save(&file, settings, error, sizeof(error)), -ESTALE);
}

Test(lb_state_file, is_not_readable_for_everybody)
{
	struct stat st;

	save();
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0007, 0);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A pipe without a reader, in place of the file beside, makes the write wait like a frozen disk. */
Test(lb_state_file, a_disk_that_does_not_answer_holds_nobody_up, .timeout = 60)
{
	char beside[128], text[512];
	double begin, waited;
	int fd, ret;

	cr_assert_eq(workers_settings_drain(settings, "w1", true), 0);
	save();
	snprintf(beside, sizeof(beside), "%s.new", path);
	cr_assert_eq(mkfifo(beside, 0600), 0);
	cr_assert_eq(workers_settings_drain(settings, "w2", true), 0);
	begin = now();
	cr_expect_eq(state_file_save(&file, settings, error, sizeof(error)), -ETIMEDOUT);
	waited = now() - begin;
	cr_expect_not_null(strstr(error, "did not answer"), "%s", error);
	cr_expect_not_null(strstr(error, "nothing was set"), "%s", error);
	begin = now();
	cr_expect_eq(state_file_save(&file, settings, error, sizeof(error)), -EBUSY);
	cr_expect_lt(now() - begin, waited, "the next one waits for nothing");
	/* The disk answers again: the write that was given up does not happen after all. */
	fd = open(beside, O_RDONLY);
	cr_assert_geq(fd, 0);
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
	do {
		ret = state_file_save(&file, settings, error, sizeof(error));
	} while (ret == -EBUSY && now() - begin < 40);
	cr_expect_eq(ret, 0, "%s", error);
	cr_expect_eq(load_again(), 0, "%s", error);
	cr_expect_eq(workers_settings_count(settings), 2);
}

/* Checks the file as before a start; returns -errno or 0, and the number of entries in <n>. */
static int check(unsigned int *n)
{
	error[0] = '\0';
	return state_file_check(path, n, error, sizeof(error));
}

Test(lb_state_file, a_look_says_what_a_start_would_find)
{
	unsigned int n = 7;

	put("{\"version\": 1, \"workers\": [{\"name\": \"w1\", \"drain\": true}]}\n");
	cr_expect_eq(check(&n), 0, "%s", error);
	cr_expect_eq(n, 1);
	put("{\"version\": 1,\n \"workers\": [{\"name\": \"w1\", \"dra");
	cr_expect_eq(check(&n), -EINVAL);
	cr_expect_not_null(strstr(error, "/state.json:2: is not JSON"), "%s", error);
	cr_expect_not_null(strstr(error, "; repair it, or move it away"), "%s", error);
	unlink(path);
	cr_expect_eq(check(&n), 0, "one that is not there is empty: %s", error);
	cr_expect_eq(n, 0);
	cr_expect_eq(access(path, F_OK), -1, "a look makes no file");
}

Test(lb_state_file, a_look_says_where_nothing_could_be_kept)
{
	unsigned int n;

	snprintf(path, sizeof(path), "%s/sub/state.json", folder);
	cr_expect_eq(check(&n), 0, "its folder would be made: %s", error);
	snprintf(path, sizeof(path), "%s/sub/sub/state.json", folder);
	cr_expect_eq(check(&n), -ENOENT);
	cr_expect_not_null(strstr(error, "/sub/sub/state.json: cannot be written: "), "%s", error);
	cr_expect_not_null(strstr(error, "; make its folder writable, or set control.state_file"),
			   "%s", error);
	snprintf(path, sizeof(path), "/dev/null/state.json");
	cr_expect_eq(check(&n), -ENOTDIR, "%s", error);
}

Test(lb_state_file, a_look_names_an_owner_who_is_not_us)
{
	unsigned int n;

	put("{\"version\": 1, \"workers\": []}\n");
	cr_expect_eq(check(&n), 0, "%s", error);
	if (geteuid() != 0)
		cr_skip_test("needs root to give a file away");
	cr_assert_eq(chown(path, 12345, 0), 0);
	cr_expect_eq(check(&n), -EPERM);
	cr_expect_not_null(strstr(error, "/state.json: belongs to user 12345"), "%s", error);
	cr_expect_not_null(strstr(error, "; chown 0 "), "%s", error);
	cr_assert_eq(chown(path, 0, 0), 0);
	cr_assert_eq(chmod(path, 0622), 0);
	cr_expect_eq(check(&n), -EPERM);
	cr_expect_not_null(strstr(error, "others may write it; chmod go-w "), "%s", error);
}
