/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Two bytes of the file. The holder of the first has the turn. Only the holder of the second waits
 * for the first, so that one which has just had a turn cannot take it again before one that waited.
 */
enum { TURN, NEXT };

/* Locks of an open file, which belong to no thread and end when it is closed. */
static int turns_lock(const struct turns *t, int command, short type, off_t which)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = which, .l_len = 1};
	int ret;

	do
		ret = fcntl(t->fd, command, &lock);
	while (ret != 0 && errno == EINTR);
	return ret != 0 ? -errno : lock.l_type;
}

int turns_open(struct turns *t, const char *path, char *error, size_t size)
{
	t->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (t->fd >= 0)
		return 0;
	snprintf(error, size, "--turns %s: %s", path, strerror(errno));
	return -errno;
}

void turns_close(struct turns *t)
{
	close(t->fd);
}

int turns_take(const struct turns *t)
{
	int ret = turns_lock(t, F_OFD_SETLKW, F_WRLCK, NEXT);

	if (ret >= 0)
		ret = turns_lock(t, F_OFD_SETLKW, F_WRLCK, TURN);
	turns_lock(t, F_OFD_SETLK, F_UNLCK, NEXT);
	return ret < 0 ? ret : 0;
}

void turns_give(const struct turns *t)
{
	turns_lock(t, F_OFD_SETLK, F_UNLCK, TURN);
}

bool turns_are_wanted(const struct turns *t)
{
	return turns_lock(t, F_OFD_GETLK, F_WRLCK, NEXT) != F_UNLCK;
}
