/* SPDX-License-Identifier: BSD-3-Clause */
/* How many workers there are at most, and the limits of what an agent registers. */
#ifndef WORKERS_WORKER_LIMITS_H
#define WORKERS_WORKER_LIMITS_H

#include <stdint.h>

#define WORKERS_MAX       1024
#define WORKER_NONE       UINT16_MAX
#define WORKER_NAME_MAX   64
#define WORKER_REASON_MAX 128
#define WORKER_SLOTS_MAX  32768 /* struct pick_load counts slots in 16 bits */
#define WORKER_BYTES_MAX  (64u << 20)
#define WORKER_WEIGHT_MAX 256
#define WORKER_SHARE_FULL 1000 /* per mille of its weight: slow start is over */
#define WORKER_LABELS_MAX 16

#endif
