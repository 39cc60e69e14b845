/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "cli/cli.h"

char *cli_capture_filter(const char *expression, char *error, size_t size)
{
	snprintf(error, size,
		 "this doorbell was built without libpcap; leave it out and filter the file "
		 "afterwards, or build it with libpcap-dev");
	return NULL;
}
