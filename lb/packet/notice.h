/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notices: what a client gets instead of a reply, so that nothing ends in silence. A UDP datagram
 * of 16 bytes, told from data by its magic and length:
 *
 *   0  4  magic 0xDB 'D' 'B' 'N'
 *   4  1  version, 1
 *   5  1  code, below
 *   6  2  zero
 *   8  8  the id of a tagged request (request.h), else the first 8 bytes of the request it
 *         answers (zeros behind a shorter one), so that a client that puts an id there knows which
 */
#ifndef LB_NOTICE_H
#define LB_NOTICE_H

#include <stdint.h>

#define LB_NOTICE_LENGTH 16
#define LB_NOTICE_MAGIC  "\xdb\x44\x42\x4e"
#define LB_NOTICE_CODES  16 /* all codes are below */

enum lb_notice {
	LB_NOTICE_BUSY = 1,        /* no worker, no credit, or waited too long for one */
	LB_NOTICE_TIMEOUT = 2,     /* sent to a worker that has not answered in time, or not before
				      the load balancer's end */
	LB_NOTICE_WORKER_LOST = 3, /* the worker died with the request in flight */
	LB_NOTICE_MODEL_ERROR =
		4, /* the model refused the request or failed, or its reply did not fit */
	LB_NOTICE_EXPIRED = 5, /* the deadline passed before the model ran */
	LB_NOTICE_CANCELLED = 6,
	LB_NOTICE_DEADLINE = 7,  /* could not be answered by its deadline, or was not */
	LB_NOTICE_MALFORMED = 8, /* not a request of this service's framing */
	LB_NOTICE_STOPPING = 9,  /* never ran: the load balancer ends; ask another, or soon again */
	LB_NOTICE_TOO_LARGE = 10, /* longer than the service or the way to it allows */
};

#endif
