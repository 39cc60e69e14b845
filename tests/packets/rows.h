/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that a client, a worker or a stranger may send, and what the parser must return for each.
 */
#ifndef PACKETS_ROWS_H
#define PACKETS_ROWS_H

#include "packet.h"
#include "packet/parse.h"

struct packet_row {
	const char *name;
	struct packet packet;
	uint32_t checked; /* PARSE_*_CHECKED: what the NIC has verified */
	enum parse_kind kind;
	enum lb_drop reason; /* reason of PARSE_DROP */
	/* otherwise; 0 where the kind does not say */
	uint16_t l4_offset, l4_length, payload_offset, payload_length;
	bool about_tcp; /* of PARSE_ICMP_ERROR: the packet in it */
};

extern const struct packet_row packet_rows[];
extern const unsigned int packet_rows_n;

#endif
