/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP connections of clients, where they end: segments in, requests for the walk; replies in,
 * segments out. The facade of this folder (private to lb/).
 *
 * A connection is a flow of the lcore's table; flow->connection is its number here, and its control
 * block lies beside the table. Everything belongs to the flow's lcore.
 *
 *   edge_receive()   segments to connections, their bytes to requests: complete ones are in the
 *                    lcore's burst, for the walk to assign and send
 *   edge_reply()     a chunk of a reply to the connection's send queue
 *   edge_notice()    a notice in place of a reply
 *   edge_poll()      timers, and the segments that all of this made due
 */
#ifndef EDGE_H
#define EDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "lcore/lcore.h"

struct edge;

/* Make the lcore's edge; its services may be TCP services from then on. 0 or -ENOMEM. */
int edge_create(struct lcore *lc, const uint64_t seed[2]);
/* Gives back all packets that it holds. */
void edge_drain(struct lcore *lc);
void edge_destroy(struct lcore *lc);

/*
 * Take the segments of the burst from number <from> on, until the burst of requests is full.
 * Returns the number of the next segment: the walk sends the requests and calls again while it is
 * below the burst's.
 */
unsigned int edge_receive(struct lcore *lc, unsigned int from);

/* The connections of <flow> are worked on next: ask for their memory. Flows may be NULL, and of
 * UDP.
 */
void edge_prefetch(const struct lcore *lc, struct flow *const flow[], unsigned int n);

/*
 * Timers, and connections that had to wait: they may make requests, too, which the walk sends.
 * Returns true as long as there is more to do in this turn. <*visits> grows by the connections that
 * were visited: none, if there was nothing to do.
 */
bool edge_resume(struct lcore *lc, unsigned int *visits);

/* The next request to cancel; false: none. <told>: see cancel_told(). */
bool edge_take_cancel(struct lcore *lc, uint64_t *handle, uint16_t *service, uint64_t *tag,
		      bool *told);

/*
 * A request that is larger than a packet and has no place in a worker's memory yet. While the call
 * returns true, <at> is another one, oldest first; all zero begins. Each may be placed or refused
 * before the next call.
 */
struct edge_wanting {
	struct edge_large *large;
	struct flow *flow; /* NULL: it has expired, and the connection will end */
	uint64_t since;    /* TSC */
	uint64_t deadline; /* TSC; 0: none */
	uint32_t hash;
	uint32_t bytes;
	uint16_t service;
	uint16_t lost; /* 1 + number of the worker that had it; 0: none */
	bool again;    /* a worker that had it was lost */
	bool may;   /* false: its client has as many unfinished ones as it may */
	bool may_wait; /* false: also with those that are complete and wait for their worker */
};
bool edge_next_wanting(struct lcore *lc, struct edge_wanting *at);
/* There are more: edge_next_wanting() goes on where edge_pause_wanting() left off, if that is still
 * one of them. False: there are none. */
bool edge_resume_wanting(struct lcore *lc);
void edge_pause_wanting(struct lcore *lc);
/* It has this place, which it gives back if it is not announced. */
void edge_place(struct lcore *lc, const struct edge_wanting *at, struct link *link,
		const struct link_place *place);
/* It ends with a notice, enum lb_notice. */
void edge_refuse_wanting(struct lcore *lc, const struct edge_wanting *at, uint8_t notice,
			 enum lb_drop reason);
/* Write the bytes that came for requests with places; announce those that are complete. Returns how
 * many there were of both. */
unsigned int edge_write(struct lcore *lc);
/* The link was detached: its places are lost. */
void edge_lose_link(struct lcore *lc, const struct link *link);
/* The worker of this announced request is lost: it wants a place again, unless it has been sent
 * <most> times more, or its bytes are gone. False: then nothing has changed. */
bool edge_replay(struct lcore *lc, const struct flow *flow, uint64_t tag, uint8_t most,
		 uint16_t lost);
/* Once per ms: ends requests that come too slowly, and resets readers that are too slow. */
void edge_housekeeping(struct lcore *lc);

/* A worker answered the request of <slot>, or its time there is over: the access log tells when. It
 * is said before edge_reply() and edge_notice(); <flow> may be of UDP. */
void edge_access_worker(const struct lcore *lc, const struct flow *flow, const struct slot *slot);
static inline void edge_note_worker(const struct lcore *lc, const struct flow *flow,
				    const struct slot *slot)
{
	if (unlikely(lc->lb->access != NULL))
		edge_access_worker(lc, flow, slot);
}

/* Send what is due. Returns the number of segments. */
unsigned int edge_transmit(struct lcore *lc);

/* Has another thread answered, so that there is something to do at once? */
bool edge_must_stay_awake(const struct lcore *lc);

/* TSC of the next timer of all connections, at most 50 ms from now; UINT64_MAX: there is none. */
uint64_t edge_deadline(const struct lcore *lc);

/* Is <hash>, of a request by this flow, another one than its connection's: that of a session? */
bool edge_is_session(const struct lcore *lc, const struct flow *flow, uint32_t hash);

/* A chunk of the reply to request <tag> of <flow>. Takes <m>. False: the request is gone. */
bool edge_reply(struct lcore *lc, struct flow *flow, struct rte_mbuf *m, uint64_t tag,
		uint32_t chunk, bool more);

/* Frees a reply that nobody gets; a long one some packets at a time. */
void edge_free_reply(struct lcore *lc, struct rte_mbuf *m);

/* The request, of <*service>, ends with a notice, enum lb_notice. False: the request is gone. */
bool edge_notice(struct lcore *lc, const struct flow *flow, uint8_t code, uint64_t tag,
		 uint16_t *service);

/*
 * The end of connections. edge_close_all() and edge_reset() visit every connection; the rest is
 * done by edge_transmit().
 */
#define EDGE_ALL_SERVICES UINT16_MAX

/* Connections end when what they have asked is answered; nothing more is read. */
void edge_close_all(struct lcore *lc);
/* The connections of <service>, or of EDGE_ALL_SERVICES, end with a reset. */
void edge_reset(struct lcore *lc, uint16_t service);

struct edge_left {
	uint32_t connections; /* those in TIME-WAIT are not counted */
	uint32_t busy;        /* of these, those with requests, or bytes to be acknowledged */
	uint32_t requests;    /* of the service, by connections of others; of all services: all */
};
/* The connections that are left of <service>, or of EDGE_ALL_SERVICES; <busy> is for all services.
 */
struct edge_left edge_left(const struct lcore *lc, uint16_t service);

/* Packets that are held for clients. */
uint32_t edge_held_packets(const struct lcore *lc);

/*
 * An ICMP error says that the path takes packets of <mtu> bytes only, about the segment with number
 * <seq>. False: the number is not under way, so the error is forged or late, and has no effect
 * (RFC 5927, 7.2).
 */
bool edge_too_big(struct lcore *lc, const struct flow *flow, uint32_t seq, uint32_t mtu);

/* Counters of the lcore's endpoint; NULL: it has none. Any thread. */
struct tcp_counters;
const struct tcp_counters *edge_counters(const struct lcore *lc);

#endif
