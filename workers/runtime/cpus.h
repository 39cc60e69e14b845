/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPUs of this process, as the EAL's --lcores takes them. */
#ifndef RUNTIME_CPUS_H
#define RUNTIME_CPUS_H

/* Bytes; room for all CPUs that a cpu_set_t can name, each at most five bytes ("1023,"). */
#define CPUS_TEXT_MAX (5 * 1024)

/* Write the numbers of the CPUs that this thread may run on, such as "0,2,3". Returns <text>. */
const char *cpus_allowed(char text[CPUS_TEXT_MAX]);

#endif
