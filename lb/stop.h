/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stopping as a good server does: new requests are refused, those that are here are finished or their
 * clients told, then nothing is left to do. Control thread; walk/stopping.h is the lcores' part.
 */
#ifndef LB_STOP_H
#define LB_STOP_H

#include <stdbool.h>

struct lb;

/*
 * Stop as a good server does: from now on new requests are refused with a notice, and so are
 * registrations and changes of the configuration; what is here is served for up to stop_timeout_ms,
 * then whoever is left is told. lb_tick() sees to it; lb_stop_over() says when there is nothing
 * more to do. Workers stay until then.
 */
void lb_stop_begin(struct lb *lb);
bool lb_is_stopping(const struct lb *lb);
bool lb_stop_over(const struct lb *lb);
/* --- private to lb/ ---------------------------------------------------------------------------- */

/* Regular work, each tick. */
void stop_tick(struct lb *lb);
/* After the last iteration: wait until the NICs have sent what they were given, 50 ms at most. */
void stop_settle(const struct lb *lb);

#endif
