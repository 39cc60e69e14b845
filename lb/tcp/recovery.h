/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The meaning of acknowledgements for segments under way: which segments were delivered, which are
 * lost (RFC 8985), how much may be sent meanwhile (RFC 9937), and the timers of both. Pure.
 */
#ifndef LB_TCP_RECOVERY_H
#define LB_TCP_RECOVERY_H

#include "tcp/connection.h"

/* As tcp_recovery_acknowledged(), while something is under way, or was amiss. */
uint32_t tcp_recovery_judge(struct tcp_stack *stack, struct tcp_connection *c,
			    const struct tcp_header *h);
/* As above for a lone segment, of which nothing is amiss. */
uint32_t tcp_recovery_judge_lone(struct tcp_stack *stack, struct tcp_connection *c,
				 const struct tcp_header *h);

/* Takes the acknowledgement of <h>, which is in range. Returns the bytes newly acknowledged. */
static inline uint32_t tcp_recovery_acknowledged(struct tcp_stack *stack, struct tcp_connection *c,
						 const struct tcp_header *h)
{
	uint32_t acked = h->ack - c->snd_una;

	if (c->lone && h->ack == c->snd_nxt && h->n_sacks == 0)
		return tcp_recovery_judge_lone(stack, c, h);
	if (c->lone || c->active != NULL)
		return tcp_recovery_judge(stack, c, h);
	c->snd_una = h->ack;
	return acked;
}

/* <s>, which is in <chunk>, is about to be sent, for the first time or again. */
void tcp_recovery_sent(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_chunk *chunk,
		       struct tcp_sent *s);

/* <length> bytes are sent that are all that is under way, and need no record. */
void tcp_recovery_sent_lone(struct tcp_stack *stack, struct tcp_connection *c, uint32_t length);

/* The retransmission timer ended: all that is under way counts as lost. */
void tcp_recovery_timeout(struct tcp_stack *stack, struct tcp_connection *c);

/* The reordering timer ended. */
void tcp_recovery_reordered(struct tcp_stack *stack, struct tcp_connection *c);

/* Starts and stops the timers of what is under way. <restart>: of the retransmission timer. */
void tcp_recovery_timers(struct tcp_stack *stack, struct tcp_connection *c, bool restart);

#endif
