/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/check.h"

/* /proc may have more entries than a folder of devices */
#define ENTRIES_MAX 65536

static int make_path(const struct doctor *d, char path[PATH_MAX], const char *format, va_list ap)
{
	int n = snprintf(path, PATH_MAX, "%s", d->root);

	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	n += vsnprintf(path + n, PATH_MAX - n, format, ap);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Read until the text is full: /proc gives at most a page per read. */
static int read_all(int fd, char *text, size_t size)
{
	size_t n = 0;

	while (n < size - 1) {
		ssize_t got = read(fd, text + n, size - 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += got;
	}
	for (size_t i = 0; i < n; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		n--;
	text[n] = '\0';
	return (int)n;
}

static int read_path(const char *path, char *text, size_t size)
{
	/* Do not block on a named pipe in the file's place: it may have no writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), n;

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	n = read_all(fd, text, size);
	if (n < 0)
		text[0] = '\0';
	close(fd);
	return n;
}

int doctor_read(const struct doctor *d, char *text, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	va_list ap;
	int ret;

	text[0] = '\0';
	va_start(ap, format);
	ret = make_path(d, path, format, ap);
	va_end(ap);
	return ret < 0 ? ret : read_path(path, text, size);
}

int doctor_read_number(const struct doctor *d, long long *number, const char *format, ...)
{
	char path[PATH_MAX], text[32], *end;
	va_list ap;
	int ret;

	*number = 0;
	va_start(ap, format);
	ret = make_path(d, path, format, ap);
	va_end(ap);
	if (ret == 0)
		ret = read_path(path, text, sizeof(text));
	if (ret < 0)
		return ret;
	errno = 0;
	*number = strtoll(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
	return *end || end == text || errno ? -EINVAL : 0;
}

bool doctor_exists(const struct doctor *d, const char *format, ...)
{
	char path[PATH_MAX];
	va_list ap;
	int ret;

	va_start(ap, format);
	ret = make_path(d, path, format, ap);
	va_end(ap);
	return ret == 0 && access(path, F_OK) == 0;
}

void doctor_read_link(const struct doctor *d, char *text, size_t size, const char *format, ...)
{
	char path[PATH_MAX], to[PATH_MAX];
	ssize_t n = -1;
	char *slash;
	va_list ap;

	va_start(ap, format);
	if (make_path(d, path, format, ap) == 0)
		n = readlink(path, to, sizeof(to) - 1);
	va_end(ap);
	to[n < 0 ? 0 : n] = '\0';
	slash = strrchr(to, '/');
	snprintf(text, size, "%s", slash != NULL ? slash + 1 : to);
}

static int names_compare(const void *a, const void *b)
{
	return strverscmp(a, b);
}

void doctor_list(const struct doctor *d, struct doctor_names *names, const char *format, ...)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir = NULL;
	va_list ap;

	names->n = 0;
	va_start(ap, format);
	if (make_path(d, path, format, ap) == 0)
		dir = opendir(path);
	va_end(ap);
	if (dir == NULL)
		return;
	for (int i = 0; i < ENTRIES_MAX && names->n < DOCTOR_NAMES_MAX; i++) {
		entry = readdir(dir);
		if (entry == NULL)
			break;
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < DOCTOR_NAME_MAX)
			strcpy(names->name[names->n++], entry->d_name);
	}
	closedir(dir);
	qsort(names->name, names->n, sizeof(names->name[0]), names_compare);
}

const char *doctor_names_text(const struct doctor_names *names, char *text, size_t size)
{
	size_t at = 0;

	snprintf(text, size, "none");
	for (unsigned int i = 0; i < names->n && at < size; i++) {
		if (at + strlen(names->name[i]) + 8 > size) {
			snprintf(text + at, size - at, ", ...");
			break;
		}
		at += snprintf(text + at, size - at, "%s%s", i ? ", " : "", names->name[i]);
	}
	return text;
}

bool doctor_has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	while (*text) {
		size_t n = strcspn(text, " ,\t\n");

		if (n == length && strncmp(text, word, n) == 0)
			return true;
		text += n + (text[n] != '\0');
	}
	return false;
}

const char *doctor_line(const char *text, const char *label)
{
	size_t n = strlen(label);

	while (text != NULL) {
		if (strncmp(text, label, n) == 0) {
			text += n;
			return text + strspn(text, " \t:");
		}
		text = strchr(text, '\n');
		text += text != NULL;
	}
	return NULL;
}

bool doctor_cpus_parse(struct doctor_cpus *cpus, const char *text)
{
	memset(cpus, 0, sizeof(*cpus));
	while (*text && *text != '\n') {
		unsigned long first, last;
		char *end;

		if (!isdigit((unsigned char)*text))
			return false;
		first = last = strtoul(text, &end, 10);
		if (*end == '-' && isdigit((unsigned char)end[1]))
			last = strtoul(end + 1, &end, 10);
		if ((*end && *end != ',' && *end != '\n') || last < first || last >= DOCTOR_CPUS)
			return false;
		for (unsigned long c = first; c <= last; c++) {
			cpus->n += !cpus->has[c];
			cpus->has[c] = true;
		}
		text = end + (*end == ',');
	}
	return true;
}
