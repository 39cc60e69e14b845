/* SPDX-License-Identifier: BSD-3-Clause */
/* Notices as a load balancer sends them, for programs that stand in for one. */
#ifndef CLIENT_NOTICE_BUILD_H
#define CLIENT_NOTICE_BUILD_H

#include "cli/bench/notice.h"

/* Builds a notice in answer to <request>, which may be NULL. */
void notice_build(enum notice_code code, const uint8_t *request, size_t length,
		  uint8_t datagram[NOTICE_SIZE]);

#endif
