/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that only libibverbs knows: from verbs.c where it is installed, else from verbs_none.c. */
#ifndef DOCTOR_VERBS_H
#define DOCTOR_VERBS_H

/* The port's active MTU in bytes; 0 when unknown. */
unsigned int verbs_active_mtu(const char *device, unsigned int port);

#endif
