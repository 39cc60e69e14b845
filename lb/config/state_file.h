/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file that keeps operators' settings over restarts (control.state_file): JSON,
 *   {"version": 1, "workers": [{"name", "drain"?, "weight"?, "assigned"?, "released"?}, ...]}
 * Version 2 has "successor", and "partly" where that is allowed, beside "drain" of a worker that is
 * being replaced. It is written only as long as there is one, so that an older doorbell-lb can read
 * all other files.
 * The file is replaced whole: another file is written beside it, synced, and renamed over it. Pure
 * but for the file; control thread.
 */
#ifndef LB_STATE_FILE_H
#define LB_STATE_FILE_H

#include <stddef.h>
#include <sys/stat.h>

#include "settings.h"

#define STATE_FILE_VERSION 2

/* The file as it was last read or written, to notice that another program changed it. */
struct state_file {
	const char *path;
	bool exists;
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	struct state_write *writing; /* a change that the disk did not take in time, or NULL */
};

/*
 * Read <f->path> into <settings>, which must be empty. A missing file counts as an empty one. 0; or
 * -errno with a sentence in <error> that names the file and the fix. Never changes the file.
 */
int state_file_load(struct state_file *f, struct worker_settings *settings, char *error,
		    size_t error_size);

/*
 * Check what a start would find and whether settings could be kept. Writes nothing. 0 and in <n>
 * the number of workers that have settings; or -errno with a sentence that names the file and,
 * behind the last "; ", the fix. -EPERM: a user other than root and this process' own may write the
 * file.
 */
int state_file_check(const char *path, unsigned int *n, char *error, size_t error_size);

/*
 * Write <settings>; make the file's folder if it is missing. 0; or -errno with a sentence, and the
 * file is as it was. -ESTALE: another program has changed it. -ETIMEDOUT, and -EBUSY while that
 * lasts: the disk did not answer within a second. -EINPROGRESS: the same, but the file may still
 * change when the disk answers.
 */
int state_file_save(struct state_file *f, const struct worker_settings *settings, char *error,
		    size_t error_size);

#endif
