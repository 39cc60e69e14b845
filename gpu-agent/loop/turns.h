/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of one machine that run their models one at a time, as they share a device. They take
 * turns in the order in which they ask, by locks on a file, which end with their process. The loop
 * asks before it takes requests from its rings, so a batch has all that came while it waited for
 * its turn.
 *
 * Owner: the loop's thread.
 */
#ifndef AGENT_TURNS_H
#define AGENT_TURNS_H

#include <stdbool.h>
#include <stddef.h>

struct turns {
	int fd;
};

/* Open the file, or make it. 0, or -errno with a sentence in <error>. */
int turns_open(struct turns *turns, const char *path, char *error, size_t size);
void turns_close(struct turns *turns);

/* Wait for the turn. 0 or -errno. */
int turns_take(const struct turns *turns);
/* Give it to the next one that waits. */
void turns_give(const struct turns *turns);

/* Does another one wait to be the next? For tests. */
bool turns_are_wanted(const struct turns *turns);

#endif
