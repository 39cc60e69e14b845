/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A running load balancer takes another configuration: all of what can change without a restart
 * (config_diff.h), or nothing. Control thread.
 */
#ifndef LB_RELOAD_H
#define LB_RELOAD_H

#include "config/config_diff.h"
#include "config/config.h"

struct lb;

/* The file that the load balancer was started with; what the calls below read for a NULL. */
void lb_reload_set_file(struct lb *lb, const char *path);
const char *lb_reload_file(const struct lb *lb);

/*
 * Visit what <path> would change. 0, -EINVAL or what reading gave, with a line in <error> that
 * names file, line, key and fix.
 */
int lb_reload_diff(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
		   char *error, size_t size);

/*
 * The same for a good file that cannot be applied now: -EBUSY or -EAGAIN, with a sentence that says
 * why. Changes are visited in any case but that of a bad file.
 */
int lb_reload_check(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
		    char *error, size_t size);

/* Apply it: as above, or 0 and it is so; anything else than 0 and nothing has changed. */
int lb_reload_apply(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
		    char *error, size_t size);

#endif
