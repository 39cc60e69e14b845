/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reloads the configuration of a running load balancer: all values that can change without a
 * restart (config_diff.h), or none. Control thread.
 */
#ifndef LB_RELOAD_H
#define LB_RELOAD_H

#include "config/config_diff.h"
#include "config/config.h"

struct lb;

/* The file that the load balancer was started with; the calls below read it if <path> is NULL. */
void lb_reload_set_file(struct lb *lb, const char *path);
const char *lb_reload_file(const struct lb *lb);

/*
 * Visit the changes that <path> would make. 0, or -errno of reading with a line in <error> that
 * names file, line, key and fix.
 */
int lb_reload_diff(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
		   char *error, size_t size);

/*
 * The same, and check that the file can be applied now: if not, -EBUSY or -EAGAIN with a sentence
 * that says why. Changes are visited unless the file is bad.
 */
int lb_reload_check(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
		    char *error, size_t size);

/* Apply the file. 0, or an error as above, and then nothing has changed. */
int lb_reload_apply(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
		    char *error, size_t size);

#endif
