/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells DPDK device strings apart by their form alone. Pure. */
#ifndef LB_DEVICE_H
#define LB_DEVICE_H

#include <stdbool.h>

/* True for "0000:3b:00.0" or "3b:00.0", with or without devargs behind it. */
bool lb_device_is_pci(const char *device);

#endif
