/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SYN cookies (RFC 4987, 3.6): while the backlog is full a SYN leaves no state, and the client's
 * acknowledgement brings back what is needed. MSS is in the sequence number; scale, SACK and ECN
 * are in the timestamp, and lost for clients without one. Pure.
 */
#ifndef LB_TCP_COOKIE_H
#define LB_TCP_COOKIE_H

#include "tcp/connection.h"
#include "tcp/secret.h"

#define TCP_COOKIE_MINUTES 2 /* a cookie is valid for at most these, and for at least one less */

/* Writes the SYN-ACK for <syn>. <mss>: what the path takes; <window>: bytes granted. */
void tcp_cookie_answer(struct tcp_stack *stack, const struct tcp_secret *secret,
		       const struct tcp_ends *ends, const struct tcp_header *syn, uint32_t window,
		       struct tcp_header *out);

/*
 * Opens <c> if <ack> acknowledges a cookie; the caller then gives <ack> to tcp_receive(). False: it
 * does not.
 */
bool tcp_cookie_open(const struct tcp_stack *stack, const struct tcp_secret *secret,
		     const struct tcp_ends *ends, const struct tcp_header *ack, uint16_t mss,
		     uint32_t window, struct tcp_connection *c);

/*
 * May <h>, which opens nothing, be a later segment of a client that has a cookie, and whose first
 * segments are lost or late? They come, or come again, and open the connection: a reset would end
 * it instead. Told by the cookie's age, its own and the timestamp's: while cookies are given, up to
 * 2 in 256 segments of others without a timestamp pass, with one 2 in 10^7.
 */
bool tcp_cookie_may_come(const struct tcp_stack *stack, const struct tcp_secret *secret,
			 const struct tcp_ends *ends, const struct tcp_header *h);

#endif
