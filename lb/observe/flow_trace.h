/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trace: records the steps of one flow's requests. Off, it costs each burst one branch per stage.
 * On, the lcore writes events of fixed size into a ring that the control thread empties; when the
 * ring is full, events are lost and counted, and nothing waits.
 */
#ifndef LB_FLOW_TRACE_H
#define LB_FLOW_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "config/address.h"

struct lb;
struct text;

/* The steps, and the meaning of an event's numbers. */
#define TRACE_STEP_LIST(X)                                                                         \
	X(ARRIVED, "arrived") /* a: bytes of payload, b: port, c: zone */                          \
	X(FLOW, "flow")       /* a: 1 if it is new, b: its state, c: its service */                \
	X(REQUEST, "request") /* a: bytes, b: level of the queue, c: deadline in us, 0: none */    \
	X(CHOSEN, "chosen")   /* a: worker, b: its credits, c: outstanding, d: candidates */       \
	X(WAITING, "waiting") /* a: requests in the queue, b: workers that could be chosen */      \
	X(SENT, "sent")       /* a: worker, b: slot, c: next PSN, d: us since the request came */  \
	X(ACKED, "acked")     /* a: worker, c: first PSN not acknowledged */                       \
	X(REPLY, "reply")     /* a: worker, b: slot, c: status, d: bytes */                        \
	X(TIMES, "times")     /* of the worker. a: us it waited there, b: us it ran */             \
	X(ANSWERED, "answered") /* a: chunk, b: 1 if more follow, c: 1 by a TCP connection */      \
	X(NOTICE, "notice")     /* a: code of notice.h */                                          \
	X(DROPPED, "dropped")   /* a: reason of drop.h */                                          \
	/* TCP: */                                                                                 \
	X(SEGMENT, "segment") /* from the client. a: bytes, b: flags, c: sequence number, d: ack */ \
	X(IGNORED, "ignored") /* the segment; a: reason of drop.h */                               \
	X(OPENED, "opened")   /* the handshake is complete. a: payload of a segment, c: service */ \
	X(READ, "read") /* a request is complete. a: bytes, d: us since its header came */         \
	X(RECEIVED, "received") /* the client acknowledged. a: bytes, b: bytes still under way */  \
	X(RESET, "reset")       /* a: 1 by the client, 0 by the load balancer */                   \
	X(CLOSED, "closed")     /* a: 1 if it is in TIME-WAIT, 0: it is forgotten */

enum trace_step {
#define TRACE_STEP_ENUM(symbol, name) TRACE_##symbol,
	TRACE_STEP_LIST(TRACE_STEP_ENUM)
#undef TRACE_STEP_ENUM
		TRACE_STEPS,
};
const char *lb_trace_step_name(enum trace_step step);

struct trace_event {
	uint64_t at_ns; /* since the trace began */
	uint64_t tag;   /* of the request, 0: not known yet */
	uint8_t step;   /* enum trace_step */
	uint8_t lcore;
	uint32_t a, b, c, d;
};

/* --- control thread -------------------------------------------------------------------------- */

/*
 * The flow to trace: a client, in one zone or in all, and a service's VIP and port, or any service
 * if the port is 0. Ports in host order.
 */
struct trace_flow {
	struct lb_address client, vip;
	uint16_t client_port, vip_port;
	bool in_zone;
	uint16_t zone;
	uint8_t protocol; /* IPPROTO_UDP or IPPROTO_TCP; 0: both */
};

/*
 * Begin a trace; a running one ends. 0; or -ENOMEM or -EBUSY (too much waits for an lcore that
 * stands still) and a sentence. A trace that is not read for LB_TRACE_IDLE_MS ends by itself.
 */
#define LB_TRACE_IDLE_MS 10000u
int lb_trace_start(struct lb *lb, const struct trace_flow *flow, uint32_t *id, char *error,
		   size_t size);
/* Read up to <n> events, in order per lcore. Returns their number, or -ENOENT: it has ended. */
int lb_trace_read(struct lb *lb, uint32_t id, struct trace_event *out, unsigned int n,
		  uint64_t *lost);
void lb_trace_stop(struct lb *lb, uint32_t id);

/* --- private to lb/: hooks, on the lcore, only while lc->trace is not NULL ---------------------
 */

struct lcore;
struct burst;
struct fabric_burst;
struct flow;
struct flow_key;
struct link;
struct rte_mbuf;

void trace_arrived(struct lcore *lc, const struct burst *b);
void trace_tracked(struct lcore *lc, const struct burst *b);
void trace_assigned(struct lcore *lc, const struct burst *b);
void trace_sent(struct lcore *lc, const struct burst *b);
void trace_replies(struct lcore *lc, const struct fabric_burst *f);
void trace_answered(struct lcore *lc, const struct fabric_burst *f);
void trace_notice(struct lcore *lc, const struct flow *flow, uint8_t code, uint64_t tag);
void trace_dropped(struct lcore *lc, const struct rte_mbuf *m, unsigned int reason);

/* Of TCP connections. A segment that is about to be taken; <flow> may be NULL. */
struct tcp_header;
void trace_segment(struct lcore *lc, const struct rte_mbuf *m, const struct flow_key *key,
		   const struct flow *flow, const struct tcp_header *h);
/* Requests that are complete, before they are assigned. */
void trace_stream_requests(struct lcore *lc, const struct burst *b);
/* A request that is larger than a packet: it got a place in a worker's memory, and later all of it
 * was written there and is announced. */
void trace_placed(struct lcore *lc, const struct flow *flow, uint64_t tag, const struct link *link);
void trace_announced(struct lcore *lc, const struct flow *flow, uint64_t tag,
		     const struct link *link, uint32_t slot, uint32_t bytes, uint64_t arrived);
/* A step of the connection with this handle, with its first two numbers. */
void trace_connection(struct lcore *lc, uint64_t handle, enum trace_step step, uint32_t a,
		      uint32_t b);
void trace_opened(struct lcore *lc, const struct flow_key *key, const struct flow *flow,
		  uint32_t mss);

/* Control thread, every tick: end a trace that is not read any more. */
void trace_tick(struct lb *lb);

#endif
