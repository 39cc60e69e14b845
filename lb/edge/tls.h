/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private header of tls.c, tls_in.c and tls_out.c: TLS of connections. Between the endpoint and
 * the framing: records that came become bytes in packets of our own, which then go the way of all
 * bytes; bytes for the client become records in packets of our own. Handshakes are made by a thread
 * of their own (tls/helper.h): their bytes go there and come back, and the lcore has a connection's
 * keys from then on.
 *
 * Records are read in order only: what comes behind a hole is held as it came.
 */
#ifndef EDGE_TLS_H
#define EDGE_TLS_H

#include "edge/edge_private.h"
#include "tls/counters.h"
#include "tls/helper.h"

/* The part of a busy connection that has TLS. */
struct edge_tls {
	struct edge_tls *next; /* of the pool */
	struct edge_busy *busy;
	/* of its client's that go on in the next turn, by what they wait for; and, if it is on that
	 * list, the lcore's turn in which it was visited last */
	TAILQ_ENTRY(edge_tls) wait[EDGE_TLS_WAYS];
	uint32_t visited[EDGE_TLS_WAYS];
	TAILQ_ENTRY(edge_tls) opening; /* of those whose handshake is not over, oldest first */
	TAILQ_ENTRY(edge_tls)
	working; /* of these, those that have a job, in the order they got it */
	struct placement raw;          /* records as they came; its <stream> counts what was read */
	uint64_t in_order;             /* position of the raw stream up to which all bytes came */
	struct tls_job *job;           /* of its handshake, or of new keys; NULL: none */
	struct edge_piece *record, **record_tail; /* bytes of the record that is being read */
	struct rte_mbuf *plain, *plain_tail;      /* to be encrypted; packets of replies */
	uint32_t plain_packets, plain_bytes;
	uint32_t begun_ms; /* when its handshake began */
	bool away;         /* the job is at the helper */
	bool waits[EDGE_TLS_WAYS], is_opening, counted;
	bool starved; /* no memory to read on in this turn */
	bool rekey_in, rekey_out;
};

/* TLS of one lcore. */
struct edge_tls_room {
	struct tls_line *line;
	struct edge_tls *memory, *free;
	struct tls_session **session; /* of connections by number; NULL: no handshake is over */
	/* clients with connections that go on in the next turn, the next to be visited first */
	struct edge_turns turns[EDGE_TLS_WAYS];
	struct edge_tls_list opening, working;
	/* when room for a handshake was looked for last: one of anyone's, one of a client's own */
	uint32_t cleared_ms, cleared_own_ms;
	uint32_t away;          /* jobs at the helper */
	uint32_t n_opening;     /* handshakes that are not over */
	/* work of this turn that is kept for reading records, and for writing them; as in
	 * edge_may_work(), but reading takes what is above <leaves> of the rest. Of that, segments
	 * that come leave <kept> to connections that wait. */
	int32_t left, left_out, leaves, kept;
	bool short_of_time; /* the turn before was too short */
	struct tls_counters counters;
};

/* --- tls.c: memory, handshakes, the end ----------------------------------------------------------
 */

/* May records be read in this turn, and written? */
static inline bool edge_tls_may_read(const struct edge *e)
{
	return e->tls->left > 0 || e->kserve->text_left > e->tls->leaves;
}

static inline bool edge_tls_may_write(const struct edge *e)
{
	return edge_may_work(e, e->tls->left_out);
}

/* It goes on in the next turn. */
void edge_tls_enlist(struct edge *e, struct edge_tls *t, enum edge_tls_way way);
/* Has its client had too little time to read, and is it not its turn? */
static inline bool edge_tls_must_wait(const struct edge *e, const struct edge_tls *t)
{
	return unlikely(e->tls->short_of_time) &&
	       !TAILQ_EMPTY(&t->busy->client->tls[EDGE_TLS_READS]) &&
	       t->visited[EDGE_TLS_READS] != (uint32_t)e->lc->stats.polls;
}
/* Bytes of its handshake, or new keys, are due: to the helper, if there is a job for it. */
void edge_tls_ask(struct edge *e, struct edge_tls *t);
/* Ends the connection: <alert> goes out, or nothing if it is -1. Nothing more is read or answered.
 */
void edge_tls_fail(struct edge *e, struct edge_connection *c, int alert, enum lb_drop reason);
/* The keys of a connection; NULL: its handshake is not over. */
static inline struct tls_session **edge_session_at(const struct edge *e,
						   const struct edge_connection *c)
{
	return &e->tls->session[edge_number(e, c)];
}

static inline struct tls_session *edge_session_of(const struct edge *e,
						  const struct edge_connection *c)
{
	return *edge_session_at(e, c);
}

static inline struct tls_session *edge_session(const struct edge_tls *t)
{
	return edge_session_of(t->busy->edge, t->busy->connection);
}

/* --- tls_in.c ------------------------------------------------------------------------------------
 */

void edge_tls_init_read(struct edge_tls *t);
/* The last <n> bytes that were read are none of the handshake's: they are the next of the raw
 * stream again. False: no memory. */
bool edge_tls_unread(struct edge_tls *t, const uint8_t *bytes, uint32_t n);
void edge_tls_drop_record(struct edge_tls *t);

/* --- tls_out.c -----------------------------------------------------------------------------------
 */

/* Records that are ready go out as they are. False: no memory. */
bool edge_tls_send_raw(struct edge *e, struct edge_connection *c, const uint8_t *bytes, uint32_t n);
/* A record of few bytes. False: no memory. */
bool edge_tls_send_small(struct edge *e, struct edge_connection *c, enum tls_type type,
			 const uint8_t *bytes, uint32_t n);

#endif
