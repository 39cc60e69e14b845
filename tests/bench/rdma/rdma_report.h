/* SPDX-License-Identifier: BSD-3-Clause */
/* The report, as text and with --json. */
#ifndef BENCH_RDMA_REPORT_H
#define BENCH_RDMA_REPORT_H

#include "rdma/rdma.h"
#include "common/wire_child.h"

/* Print, and write --json if it is given. 0 or -errno. */
int rdma_report(const struct report *report, const struct rdma_options *o);

#endif
