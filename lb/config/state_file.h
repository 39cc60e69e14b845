/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file in which what operators set outlives the load balancer (control.state_file): JSON,
 *   {"version": 1, "workers": [{"name", "drain"?, "weight"?, "assigned"?, "released"?}, ...]}
 * It is replaced whole: another file is written beside it, synced, and renamed over it. Pure but
 * for the file; control thread.
 */
#ifndef LB_STATE_FILE_H
#define LB_STATE_FILE_H

#include <stddef.h>
#include <sys/stat.h>

#include "settings.h"

#define STATE_FILE_VERSION 1

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
 * Read <f->path> into <settings>, which is empty. A file that is not there is an empty one. 0; or
 * -errno with a sentence in <error> that names the file and says what to do: the file stays as it
 * is.
 */
int state_file_load(struct state_file *f, struct worker_settings *settings, char *error,
		    size_t error_size);

/*
 * What would a start find, and could anything be kept? Nothing is written. 0 and in <n> the names
 * that have settings; or -errno with a sentence that names the file and, behind the last "; ", says
 * what to do. -EPERM: somebody else than this process' user and root may write the file.
 */
int state_file_check(const char *path, unsigned int *n, char *error, size_t error_size);

/*
 * Write <settings>; the file's folder is made if it is missing. 0; or -errno with a sentence, and
 * then the file is as it was. -ESTALE: another program has changed it. -ETIMEDOUT, and -EBUSY while
 * that lasts: the disk does not answer, for which nobody waits longer than a second. -EINPROGRESS:
 * the same, but the file may change when it does.
 */
int state_file_save(struct state_file *f, const struct worker_settings *settings, char *error,
		    size_t error_size);

#endif
