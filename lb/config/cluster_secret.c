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

/* 32 random bytes have fewer different digits than this never. */
#define DIFFERENT 6

static int fail(char *error, size_t size, int rc, const char *path, const char *why)
{
	snprintf(error, size, "cluster_secret_file %s: %s", path, why);
	return rc;
}

static bool is_hex(const char *text)
{
	for (unsigned int i = 0; i < CLUSTER_SECRET_DIGITS; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return true;
}

/* A check for "0000..." and the like, not for entropy. */
static bool looks_random(const char *text)
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

/* All of the secret's words are in the seed. */
static void fold_words(const char *text, uint64_t seed[2])
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

static int parse(const char *path, const char *text, size_t length, uint64_t seed[2], char *error,
		 size_t size)
{
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	if (length != CLUSTER_SECRET_DIGITS || !is_hex(text))
		return fail(error, size, -EINVAL, path,
			    "needs 64 hexadecimal digits and nothing else; make it with openssl "
			    "rand -hex 32, and copy it to all load balancers of the cluster");
	if (!looks_random(text))
		return fail(error, size, -EINVAL, path,
			    "is not random; make it with openssl rand -hex 32");
	fold_words(text, seed);
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
		return fail(error, error_size, rc, path, strerror(-rc));
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return fail(error, error_size, -EINVAL, path, "is not a regular file; give one");
	}
	if ((st.st_mode & 077) != 0) {
		close(fd);
		return fail(error, error_size, -EPERM, path,
			    "others than its owner may use it; chmod 600 it, and make a new one");
	}
	n = read(fd, text, sizeof(text));
	rc = n < 0 ? -errno : 0;
	close(fd);
	if (rc < 0)
		return fail(error, error_size, rc, path, strerror(-rc));
	rc = parse(path, text, n, seed, error, error_size);
	explicit_bzero(text, sizeof(text));
	return rc;
}
