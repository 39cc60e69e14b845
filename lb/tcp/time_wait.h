/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection that has ended and is remembered for a minute, so that its late segments are not
 * taken for those of a new connection, and the client's last FIN can be acknowledged again. Pure.
 */
#ifndef LB_TCP_TIME_WAIT_H
#define LB_TCP_TIME_WAIT_H

#include "tcp/connection.h"

struct tcp_time_wait {
	uint32_t snd_nxt, rcv_nxt;
	uint32_t ts_recent, ts_offset;
	uint32_t challenge_ms;
	uint16_t window; /* as on the wire */
	bool timestamps;
};
_Static_assert(sizeof(struct tcp_time_wait) <= 64, "there may be many");

enum tcp_time_wait_verdict {
	TCP_TIME_WAIT_IGNORE,
	TCP_TIME_WAIT_ANSWER,  /* send the segment that was made */
	TCP_TIME_WAIT_RESTART, /* the same, and the minute begins again */
	TCP_TIME_WAIT_REOPEN,  /* a SYN of a new connection: forget the old one, and open it with an
				  initial number above the one that was made */
};

/* Keeps of <c> in TIME-WAIT what is needed. */
void tcp_time_wait_enter(const struct tcp_connection *c, uint32_t now_ms,
			 struct tcp_time_wait *out);

/*
 * Takes a segment of the client. <out>: the answer, or for REOPEN <seq>, the lowest initial number.
 */
enum tcp_time_wait_verdict tcp_time_wait_receive(struct tcp_time_wait *w, uint32_t now_ms,
						 const struct tcp_header *h,
						 struct tcp_header *out);

#endif
