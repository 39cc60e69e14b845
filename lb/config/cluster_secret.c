/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/cluster_secret.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A secret has at least this many different digits; 32 random bytes practically always do. */
#define DIFFERENT 6

static int secret_fail(char *error, size_t size, int rc, const char *path, const char *why)
{
	snprintf(error, size, "cluster_secret_file %s: %s", path, why);
	return rc;
}

static bool secret_is_hex(const char *text)
{
	for (unsigned int i = 0; i < CLUSTER_SECRET_DIGITS; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return true;
}

/* Refuses "0000..." and the like; it does not measure entropy. */
static bool secret_looks_random(const char *text)
{
	bool seen[256] = {false};
	unsigned int different = 0;

	for (unsigned int i = 0; i < CLUSTER_SECRET_DIGITS; i++) {
		int c = tolower((unsigned char)text[i]);

		different += !seen[c];
		seen[c] = true;
	}
	return different >= DIFFERENT;
}

/* XOR all words of the secret into the seed. */
static void secret_to_seed(const char *text, uint64_t seed[2])
{
	char word[17] = "";
	unsigned long long value;

	seed[0] = seed[1] = 0;
	for (unsigned int i = 0; i < CLUSTER_SECRET_DIGITS / 16; i++) {
		memcpy(word, text + i * 16, 16);
		sscanf(word, "%16llx", &value);
		seed[i % 2] ^= value;
	}
}

static int secret_parse(const char *path, const char *text, size_t length, uint64_t seed[2],
			char *error, size_t size)
{
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	if (length != CLUSTER_SECRET_DIGITS || !secret_is_hex(text))
		return secret_fail(
			error, size, -EINVAL, path,
			"needs 64 hexadecimal digits and nothing else; make it with openssl "
			"rand -hex 32, and copy it to all load balancers of the cluster");
	if (!secret_looks_random(text))
		return secret_fail(error, size, -EINVAL, path,
				   "is not random; make it with openssl rand -hex 32");
	secret_to_seed(text, seed);
	return 0;
}

int lb_cluster_secret_read(const char *path, uint64_t seed[2], char *error, size_t error_size)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), rc;
	char text[256];
	struct stat st;
	ssize_t n;

	if (fd < 0) {
		rc = -errno;
		return secret_fail(error, error_size, rc, path, strerror(-rc));
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return secret_fail(error, error_size, -EINVAL, path,
				   "is not a regular file; give one");
	}
	if ((st.st_mode & 077) != 0) {
		close(fd);
		return secret_fail(
			error, error_size, -EPERM, path,
			"others than its owner may use it; make a new one and chmod 600 it");
	}
	n = read(fd, text, sizeof(text));
	rc = n < 0 ? -errno : 0;
	close(fd);
	if (rc < 0)
		return secret_fail(error, error_size, rc, path, strerror(-rc));
	rc = secret_parse(path, text, n, seed, error, error_size);
	explicit_bzero(text, sizeof(text));
	return rc;
}
