/* SPDX-License-Identifier: BSD-3-Clause */
/* For builds without libpcap: every filter is refused. */
#include "observe/capture_filter.h"

#include <stdio.h>

struct capture_filter *capture_filter_create(const char *program, char *error, size_t size)
{
	snprintf(error, size,
		 "this doorbell-lb was built without libpcap; leave the filter out, or build it "
		 "with libpcap-dev");
	return NULL;
}

void capture_filter_destroy(struct capture_filter *filter)
{
}

bool capture_filter_takes(const struct capture_filter *filter, const uint8_t *packet, uint32_t n,
			  uint32_t length)
{
	return false;
}
