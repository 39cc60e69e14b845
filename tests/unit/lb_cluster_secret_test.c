/* SPDX-License-Identifier: BSD-3-Clause */
/* The cluster's secret: the digits and the mode that its file must have. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/cluster_secret.h"

#define GOOD "00112233445566778899aabbccddeeff0123456789ABCDEFfedcba9876543210"

static int read_text(const char *text, mode_t mode, uint64_t seed[2], char *error, size_t size)
{
	char path[] = "/tmp/doorbell-secret-XXXXXX";
	int fd = mkstemp(path), rc;

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
	rc = lb_cluster_secret_read(path, seed, error, size);
	cr_assert(rc == 0 || strstr(error, path) != NULL, "%s", error);
	unlink(path);
	return rc;
}

static const struct {
	const char *text;
	mode_t mode;
	int rc;
	const char *error;
} rows[] = {
	{GOOD, 0600, 0, ""},
	{GOOD "\n", 0400, 0, ""},
	{GOOD " \r\n", 0600, 0, ""},
	{GOOD, 0640, -EPERM, "chmod 600"},
	{GOOD, 0604, -EPERM, "chmod 600"},
	{"", 0600, -EINVAL, "openssl rand -hex 32"},
	{GOOD "0", 0600, -EINVAL, "64 hexadecimal digits"},
	{"0" GOOD GOOD GOOD GOOD GOOD, 0600, -EINVAL, "64 hexadecimal digits"},
	{"g0112233445566778899aabbccddeeff0123456789ABCDEFfedcba9876543210", 0600, -EINVAL,
	 "64 hexadecimal digits"},
	{"0000000000000000000000000000000000000000000000000000000000000000", 0600, -EINVAL,
	 "not random"},
};

Test(lb_cluster_secret, the_file_is_64_digits_for_its_owner_alone)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char error[512] = "";
		uint64_t seed[2];

		cr_expect_eq(read_text(rows[i].text, rows[i].mode, seed, error, sizeof(error)),
			     rows[i].rc, "row %zu: %s", i, error);
		cr_expect_not_null(strstr(error, rows[i].error), "row %zu: %s", i, error);
	}
}

Test(lb_cluster_secret, every_digit_counts)
{
	char text[] = GOOD, error[512];
	uint64_t first[2], seed[2];

	cr_assert_eq(read_text(text, 0600, first, error, sizeof(error)), 0);
	for (size_t i = 0; i < CLUSTER_SECRET_DIGITS; i++) {
		char digit = text[i];

		text[i] = digit == '7' ? '8' : '7';
		cr_assert_eq(read_text(text, 0600, seed, error, sizeof(error)), 0);
		cr_expect(seed[0] != first[0] || seed[1] != first[1], "digit %zu", i);
		text[i] = digit;
	}
}

Test(lb_cluster_secret, what_is_no_file_is_refused)
{
	char error[512];
	uint64_t seed[2];

	cr_expect_eq(lb_cluster_secret_read("/nowhere/secret", seed, error, sizeof(error)),
		     -ENOENT);
	cr_expect_eq(lb_cluster_secret_read("/tmp", seed, error, sizeof(error)), -EINVAL);
	cr_expect_not_null(strstr(error, "not a regular file"));
}
