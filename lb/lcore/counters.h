/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of lcores, services and links, and the stages that are timed. Only the lcore writes its
 * own; observe/stats.h reads them.
 */
#ifndef LB_COUNTERS_H
#define LB_COUNTERS_H

#include <stdint.h>

#include "packet/drop.h"
#include "packet/notice.h"

/* Stages of the walk that are timed; see loop.c. */
#define LB_STAGE_LIST(X)                                                                           \
	X(INGRESS, "ingress")     /* receive, parse, classify */                                   \
	X(CONNTRACK, "conntrack") /* look up, insert, count */                                     \
	X(ASSIGN, "assign")       /* choose a worker, take a credit */                             \
	X(SEND, "send")           /* payload and descriptors to WRITEs */                          \
	X(FABRIC, "fabric")       /* ACKs retired, replies accepted */                             \
	X(EGRESS, "egress")       /* replies to client packets */                                  \
	X(TRANSMIT, "transmit")   /* hand packets to the ports */                                  \
	X(HOUSEKEEPING, "housekeeping")

enum lb_stage {
#define LB_STAGE_ENUM(symbol, name) LB_STAGE_##symbol,
	LB_STAGE_LIST(LB_STAGE_ENUM)
#undef LB_STAGE_ENUM
		LB_STAGES,
};

/* Counters of one lcore, of one service on one lcore, of one link. Only the lcore writes them. */
struct lb_lcore_stats {
	uint64_t packets_in, bytes_in;   /* from clients' and fabric ports, as received */
	uint64_t packets_out, bytes_out; /* handed to the ports */
	uint64_t reassembled;            /* datagrams that came in fragments */
	uint64_t handed_over;            /* received here and passed to the lcore that owns them */
	uint64_t requests, replies;      /* requests sent to workers; last chunks sent to clients */
	uint64_t notices;                /* error datagrams sent to clients */
	uint64_t notice[LB_NOTICE_CODES]; /* the same by code */
	uint64_t payload_copies;          /* payloads that had to be copied; 0 on the normal path */
	uint64_t access_lines, access_dropped; /* of the access log: given to it; not taken */
	uint64_t drop[LB_DROPS];
	uint64_t stage_cycles[LB_STAGES];
	uint64_t stage_items[LB_STAGES];    /* packets, requests or replies it handled */
	uint64_t polls, idle_polls, sleeps; /* iterations of its loop; those that found nothing */
	/* now, and the limit: packets that workers have not acknowledged; requests that wait */
	uint64_t window_held, window_packets, queued, queue_packets;
	uint64_t stands_ms; /* for how long it has not ended a turn; 0: it goes on (lcores.h) */
};

struct lb_service_stats {
	uint64_t requests, replies, notices, drops;
	uint64_t queued;       /* waiting now */
	uint64_t queue_places; /* requests that may wait, all lcores together; not shared */
	uint64_t replays;      /* requests sent again, to another worker */
	/* affinity sticky: requests that went to their flow's preferred worker, requests that went
	 * to another, and flows that got a new preferred worker because theirs had gone */
	uint64_t preferred, spilled, moved;
	uint64_t bytes_in, bytes_out;
};

struct lb_link_stats {
	uint64_t requests, replies, errors; /* errors: replies with a status other than OK */
	uint64_t faults; /* errors that are the worker's fault: the model failed or refused */
	uint64_t lost;   /* in flight when the link went down */
	uint64_t outstanding, credits; /* now */
	uint64_t unacked;              /* packets that it has not acknowledged, now */
	uint64_t backlog;              /* requests that it has, as it last told one of its links */
	uint64_t room, room_used; /* bytes for requests that are longer than a slot's tile */
	uint64_t packets_sent, packets_resent, acks_received, naks_received, timeouts;
	uint64_t packets_received, naks_sent, rnr_naks_received;
	uint64_t duplicates, out_of_order; /* received; out of order: after a gap */
	uint64_t ecn_marked, cnps_sent; /* received with an ECN mark; notifications sent for it */
	uint64_t cnps_received;         /* the worker's notifications about our packets */
	/* bytes per second; of its slowest link that congestion limits; 0: no link is limited */
	uint64_t rate;
	/* sums over all replies, see latency.h */
	uint64_t wait_ns, run_ns, total_ns;
	uint64_t heartbeats;
};

#endif
