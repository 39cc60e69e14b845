/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The access log: a line for each request, or one of so many, in a file. Lcores put records into a
 * ring each, and never wait; a thread of its own writes the lines, of one lcore after the other.
 */
#ifndef ACCESS_LOG_H
#define ACCESS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct access_log;
struct access_record;

/* --- control thread --- */

/* Would the file open? It is not made. 0, or -errno with a sentence in <error>. */
int access_log_check(const char *path, char *error, size_t error_size);
/* Opens the file, to append to it, and starts the thread. NULL with a sentence in <error>. */
struct access_log *access_log_open(const char *path, unsigned int lcores, uint32_t one_in,
				   char *error, size_t error_size);
/* Lines that are written from now on go to a file of that name, which is opened anew: the old one
 * may have another name by now. */
void access_log_reopen(struct access_log *log);
/* A line for one request of <one_in>, by chance. */
void access_log_set_one_in(struct access_log *log, uint32_t one_in);
/* The lcores have ended: writes what is there, and ends the thread. NULL is allowed. */
void access_log_close(struct access_log *log);

/* --- lcores --- */

/* Is this request one that gets a line? */
bool access_log_wants(const struct access_log *log);
/* False: the ring of <lcore> is full, and the line is dropped. */
bool access_log_put(struct access_log *log, unsigned int lcore, const struct access_record *record);

#endif
