/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that only libibverbs knows: verbs.c where it is installed, verbs_none.c elsewhere. */
#ifndef DOCTOR_VERBS_H
#define DOCTOR_VERBS_H

/* Bytes of the port's active MTU; 0 when it cannot be told. */
unsigned int verbs_active_mtu(const char *device, unsigned int port);

#endif
