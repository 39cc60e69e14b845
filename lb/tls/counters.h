/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of TLS on one lcore since its start; only the lcore writes. */
#ifndef LB_TLS_COUNTERS_H
#define LB_TLS_COUNTERS_H

#include <stdint.h>

/* X(name, "meaning") */
#define TLS_COUNTER_LIST(X)                                                                        \
	X(opened_13, "handshakes of TLS 1.3 that were completed")                                  \
	X(opened_12, "handshakes of TLS 1.2 that were completed")                                  \
	X(resumed, "of these, those that a ticket shortened")                                      \
	X(failed, "handshakes that failed")                                                        \
	X(late, "handshakes that took longer than tcp.handshake_ms")                               \
	X(crowded_out, "handshakes given up for others, as their clients were silent")             \
	X(not_tls, "connections whose first bytes are not TLS")                                    \
	X(renegotiations, "connections ended because the client wanted to renegotiate")            \
	X(bad_records,                                                                             \
	  "connections ended because of a record that is forged, not valid, or one of "            \
	  "too many that say nothing")                                                             \
	X(alerts_in, "connections ended by an alert of the client")                                \
	X(rekeys, "new keys, asked for by clients or due")                                         \
	X(records_in, "records decrypted")                                                         \
	X(records_out, "records encrypted")

struct tls_counters {
#define TLS_COUNTER_FIELD(name, text) uint64_t name;
	TLS_COUNTER_LIST(TLS_COUNTER_FIELD)
#undef TLS_COUNTER_FIELD
};

#endif
