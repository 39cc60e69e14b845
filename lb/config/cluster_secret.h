/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cluster's secret: a file that all load balancers of a cluster share, so that each of them
 * chooses the same worker for a flow, also after a restart. Pure but for reading the file.
 */
#ifndef LB_CLUSTER_SECRET_H
#define LB_CLUSTER_SECRET_H

#include <stddef.h>
#include <stdint.h>

/* 32 bytes, as 64 hexadecimal digits: openssl rand -hex 32. */
#define CLUSTER_SECRET_DIGITS 64

/* Read the secret into <seed>. 0, or -errno with a sentence in <error> that names <path> and the
 * fix. */
int lb_cluster_secret_read(const char *path, uint64_t seed[2], char *error, size_t error_size);

#endif
