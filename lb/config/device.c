/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <string.h>

#include "config/device.h"

bool lb_device_is_pci(const char *device)
{
	size_t n = strcspn(device, ",");

	return n >= 7 && device[n - 2] == '.' && device[n - 5] == ':' &&
	       isxdigit((unsigned char)device[n - 1]);
}
