/* SPDX-License-Identifier: BSD-3-Clause */
/* The access log's ring and thread: nothing waits, lines are whole, and what is lost was counted.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/access_line.h"
#include "observe/access_log.h"

static char folder[64], path[96], other[128];

static void make_folder(void)
{
	strcpy(folder, "/tmp/doorbell-access.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/access.log", folder);
	snprintf(other, sizeof(other), "%s.1", path);
}

static void remove_folder(void)
{
	unlink(path);
	unlink(other);
	rmdir(folder);
}

TestSuite(lb_access_log, .init = make_folder, .fini = remove_folder);

static struct access_log *open_log(unsigned int lcores, uint32_t one_in)
{
	char error[512];
	struct access_log *log = access_log_open(path, lcores, one_in, error, sizeof(error));

	cr_assert_not_null(log, "%s", error);
	return log;
}

/* A record whose id is <name>. */
static struct access_record record_of(const char *name)
{
	struct access_record r = {.call = "infer", .has_id = true, .service = "s"};

	r.id_length = (uint8_t)strlen(name);
	memcpy(r.id, name, r.id_length);
	return r;
}

/* Whole lines of a file with that id. */
static unsigned int lines_of(const char *file, const char *name)
{
	char line[ACCESS_LINE_MAX + 1], end[160];
	FILE *f = fopen(file, "r");
	unsigned int n = 0;

	cr_assert_not_null(f, "%s", file);
	snprintf(end, sizeof(end), ",\"id\":\"%s\"}\n", name);
	while (fgets(line, sizeof(line), f) != NULL) {
		size_t length = strlen(line);

		cr_assert_eq(strncmp(line, "{\"time\":\"", 9), 0, "%s", line);
		cr_assert_eq(strcmp(line + length - 2, "}\n"), 0, "%s", line);
		n += length > strlen(end) && strcmp(line + length - strlen(end), end) == 0;
	}
	fclose(f);
	return n;
}

Test(lb_access_log, a_full_ring_drops_lines_and_the_rest_is_written)
{
	struct access_log *log = open_log(2, 1);
	struct access_record first = record_of("first"), second = record_of("second");
	unsigned int taken = 0, dropped = 0;

	cr_assert(access_log_put(log, 1, &second));
	/* A put takes less time than a line. */
	while (dropped < 10 && taken < 50000000) {
		bool put = access_log_put(log, 0, &first);

		taken += put;
		dropped += !put;
	}
	cr_expect_eq(dropped, 10);
	/* Another lcore's ring has room. */
	cr_expect(access_log_put(log, 1, &second));
	access_log_close(log);
	cr_expect_eq(lines_of(path, "first"), taken);
	cr_expect_eq(lines_of(path, "second"), 2);
}

/* As logrotate does it. */
Test(lb_access_log, a_renamed_file_is_left_for_a_new_one)
{
	struct access_log *log = open_log(1, 1);
	struct access_record before = record_of("before"), after = record_of("after");
	struct stat s;

	cr_assert(access_log_put(log, 0, &before));
	while (stat(path, &s) == 0 && s.st_size == 0)
		usleep(1000);
	cr_assert_eq(rename(path, other), 0);
	access_log_reopen(log);
	while (stat(path, &s) != 0)
		usleep(1000);
	cr_assert(access_log_put(log, 0, &after));
	access_log_close(log);
	cr_expect_eq(lines_of(other, "before"), 1);
	cr_expect_eq(lines_of(path, "after"), 1);
	cr_expect_eq(s.st_mode & 0777, 0640 & ~umask(0));
}

Test(lb_access_log, one_in_n_by_chance)
{
	struct access_log *log = open_log(1, 1);
	unsigned int n = 0;

	for (unsigned int i = 0; i < 1000; i++)
		cr_assert(access_log_wants(log));
	access_log_set_one_in(log, 10);
	for (unsigned int i = 0; i < 100000; i++)
		n += access_log_wants(log);
	/* 95 is the standard deviation. */
	cr_expect(n > 9000 && n < 11000, "%u", n);
	access_log_close(log);
}

Test(lb_access_log, a_file_that_does_not_open_is_said)
{
	char error[512], none[160];

	snprintf(none, sizeof(none), "%s/none/access.log", folder);
	cr_expect_null(access_log_open(none, 1, 1, error, sizeof(error)));
	cr_expect_not_null(strstr(error, "/none/access.log: No such file"), "%s", error);
	cr_expect_eq(access_log_check(none, error, sizeof(error)), -ENOENT);
	cr_expect_not_null(strstr(error, "/none/access.log: No such file"), "%s", error);
	cr_expect_eq(access_log_check(path, error, sizeof(error)), 0);
	cr_expect_eq(access(path, F_OK), -1, "the check makes no file");
	access_log_close(NULL);
}
