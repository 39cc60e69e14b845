/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A graceful stop: new requests are refused, admitted ones are finished or their clients get
 * notices. Control thread; walk/stopping.h is the lcores' part.
 */
#ifndef LB_STOP_H
#define LB_STOP_H

#include <stdbool.h>

struct lb;

/*
 * Begin a graceful stop: new requests are refused with a notice, and so are registrations and
 * changes of the configuration. Admitted requests are served for up to stop_timeout_ms, then the
 * clients of the rest get notices. lb_tick() does the work; lb_stop_over() is true when it is done.
 * Workers stay until then.
 */
void lb_stop_begin(struct lb *lb);
bool lb_is_stopping(const struct lb *lb);
bool lb_stop_over(const struct lb *lb);
/* --- private to lb/ ----------------------------------------------------------------------------
 */

/* Every tick: go on to the next stage when it is due. */
void stop_tick(struct lb *lb);
/* After the last iteration: wait until the NICs have sent what they were given, 50 ms at most. */
void stop_settle(const struct lb *lb);

#endif
