/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notices: the error datagram that a client gets instead of a reply, so that no request ends in
 * silence. A UDP datagram of 16 bytes, recognised by its magic and length:
 *
 *   0  4  magic 0xDB 'D' 'B' 'N'
 *   4  1  version, 1
 *   5  1  code, below
 *   6  2  zero
 *   8  8  the id of a tagged request (request.h), else the first 8 bytes of the request, zero
 *         padded: a client that puts an id there can tell which request it answers
 */
#ifndef LB_NOTICE_H
#define LB_NOTICE_H

#include <stdint.h>

#define LB_NOTICE_LENGTH 16
#define LB_NOTICE_MAGIC  "\xdb\x44\x42\x4e"
#define LB_NOTICE_CODES  16 /* all codes are below */

enum lb_notice {
	LB_NOTICE_BUSY = 1,        /* no worker, no credit, or waited too long for one */
	LB_NOTICE_TIMEOUT = 2,     /* the worker did not answer in time, or not before the load
				      balancer stopped */
	LB_NOTICE_WORKER_LOST = 3, /* the worker died with the request in flight */
	LB_NOTICE_MODEL_ERROR =
		4, /* the model refused the request or failed, or its reply did not fit */
	LB_NOTICE_EXPIRED = 5, /* the deadline passed before the model ran */
	LB_NOTICE_CANCELLED = 6,
	LB_NOTICE_DEADLINE = 7,  /* cannot be, or was not, answered by its deadline */
	LB_NOTICE_MALFORMED = 8, /* not valid in this service's framing */
	LB_NOTICE_STOPPING = 9, /* never ran: the load balancer stops; use another, or retry soon */
	LB_NOTICE_TOO_LARGE = 10, /* longer than the service or the network allows */
};

#endif
