/* SPDX-License-Identifier: BSD-3-Clause */
/* The private header of this folder: the state of connections, and the calls between its files. */
#ifndef EDGE_PRIVATE_H
#define EDGE_PRIVATE_H

#include <sys/queue.h>

#include "edge/edge.h"
#include "framing/kserve_room.h"
#include "framing/placement.h"
#include "packet/client_path.h"
#include "tcp/connection.h"
#include "tcp/secret.h"
#include "tcp/time_wait.h"
#include "tcp/wheel.h"

struct edge_busy;
TAILQ_HEAD(edge_busy_list, edge_busy);
struct edge_tls;
TAILQ_HEAD(edge_tls_list, edge_tls);
struct edge_connection;
STAILQ_HEAD(edge_list, edge_connection);

/* Connections with TLS wait for time to read records, and to write some. */
enum edge_tls_way { EDGE_TLS_READS, EDGE_TLS_WRITES, EDGE_TLS_WAYS };

/* A client's share of an lcore's memory: packets that are held for it; and of its time. */
struct edge_client {
	struct edge_client *next; /* of its chain, or of the pool */
	uint64_t key;             /* its IPv4 address, or its IPv6 /64 */
	uint16_t zone;
	uint32_t users;      /* connections with a busy part */
	uint32_t stalled;    /* those of them that wait for room to be read */
	uint32_t held;       /* packets, those of replies included */
	uint32_t replies;    /* packets of replies */
	uint32_t reserved;   /* packets of replies to come */
	uint32_t unfinished; /* requests that have a place and are not complete; */
	uint32_t ready;      /* that are, and wait for their worker */
	uint32_t handshakes; /* of TLS under way */
	uint32_t sessions;   /* connections that speak HTTP/2 */
	uint32_t reply_packets; /* of some replies: their average; 0: it had none yet */
	uint32_t batches, rows; /* those that are not over; their rows that have no reply */
	struct kserve_share text;
	/* connections whose framing reads text, and that wait for their client's turn */
	TAILQ_ENTRY(edge_client) turn; /* of those with any, the next to be visited first */
	struct edge_busy_list waiting; /* by <wants>, the next to be read first */
	/* the same of others, that wait for room */
	TAILQ_ENTRY(edge_client) other_turn;
	struct edge_busy_list others; /* likewise */
	/* the same of those that have had their part of a turn to send, and have more */
	TAILQ_ENTRY(edge_client) more_turn;
	struct edge_list more; /* by <due> */
	int32_t credit; /* text that its turn has left; below 0: a call took more than there was */
	uint32_t credit_turn; /* the lcore's turn in which it last got some without waiting */
	/* the same of records, by what they wait for */
	TAILQ_ENTRY(edge_client) tls_turn[EDGE_TLS_WAYS];
	struct edge_tls_list tls[EDGE_TLS_WAYS];
};

TAILQ_HEAD(edge_turns, edge_client);

/* A client's connections, whether or not something is under way. */
struct edge_opener {
	uint64_t key;       /* as a client's */
	uint32_t next;      /* number of the next of its chain, or of the pool; 0: none */
	uint32_t open;      /* half-open ones included */
	uint32_t half_open; /* whose address need not be the client's */
	uint16_t zone;
	uint8_t slow;         /* readers of it that were reset lately, halved with time */
	uint8_t slow_seconds; /* of the lcore's clock, when <slow> was right */
};
_Static_assert(sizeof(struct edge_opener) <= 24, "there may be a million");

/* Pieces that one segment can make. */
#define EDGE_PIECES TCP_NEW_MAX

/* A part of a received segment that is held. */
struct edge_piece {
	struct placement_piece piece; /* first: placement.h gives this pointer back */
	/* a reference, which is held; <piece.bytes> lies in it. NULL: it has moved on */
	struct rte_mbuf *m;
};

/* A range of a request's bytes, where the NIC put them. */
struct edge_part {
	STAILQ_ENTRY(edge_part) next;
	struct rte_mbuf *m; /* a reference */
	const uint8_t *bytes;
	uint32_t length;
	uint32_t offset; /* in the request */
};

STAILQ_HEAD(edge_parts, edge_part);

/*
 * The part of a request that is larger than a packet. It wants a place, then fills it, and is
 * announced then; after that this exists only if the service replays.
 */
struct edge_large {
	TAILQ_ENTRY(edge_large) entry; /* of those that want a place, or those that fill one */
	/* of those with bytes to write, or of its link's that wait to be announced */
	TAILQ_ENTRY(edge_large) write;
	struct edge_large *next_free;
	struct edge_request *request;
	struct edge_busy *busy;
	struct link *link; /* where its place is; NULL: it has none */
	struct link_place place;
	struct edge_parts parts; /* to be written */
	struct edge_part *copied; /* the last of <parts>, if bytes may be added to it */
	struct edge_parts kept;  /* written, and kept for a replay */
	uint64_t since;          /* TSC: when it began to want a place */
	uint64_t placed_at;      /* TSC: when it got one, and the bytes that had come by then */
	uint64_t placed_before;
	uint64_t ready_at;         /* TSC: when all its bytes were written; 0: they are not */
	uint64_t excused, checked; /* TSC cycles of that time in which it could not come; until when */
	uint32_t crc;            /* of its bytes so far */
	uint32_t extent;         /* where its last extent begins in the stream, modulo 2^32 */
	uint16_t lost;           /* of a replay: 1 + number of the worker that had it; else 0 */
	uint8_t replays;
	bool to_write; /* on the list */
	bool announced;
	bool unfinished; /* counted for its client */
	bool gone;       /* some of its bytes are only in the worker's memory */
	bool has_crc;    /* <crc> is kept: a reload changes that for later requests only */
	bool small;      /* its last extent has few bytes, */
	bool joins;      /* and so has the one before */
};

TAILQ_HEAD(edge_larges, edge_large);
TAILQ_HEAD(edge_writes, edge_large);
TAILQ_HEAD(edge_links, link);

/* A request from its header until its answer is in the send queue. */
struct edge_request {
	struct edge_request *next;  /* of its connection, in the order of the stream */
	uint64_t tag;               /* the framing's */
	uint64_t size, placed;      /* bytes; <size>: STREAM_SIZE_UNKNOWN until its END */
	uint64_t arrived, deadline; /* TSC */
	/* TSC, for the access log: when a worker got it, 0: none did; when it answered */
	uint64_t given_at, back_at;
	uint32_t number;  /* of the stream: the slot's tag */
	uint32_t hash;    /* of its session: the connection's, or one of its own */
	uint16_t service; /* the connection's, or one with its address */
	uint8_t priority;
	bool elsewhere;           /* it is another one, and counted there */
	bool named;               /* its END came */
	bool sent;                /* the walk has it */
	bool answered;            /* its last chunk, or a notice, is in a queue */
	bool over;                /* the framing sends nothing more of it, where that decides */
	bool streams;             /* it is on the edge's list of those whose replies are streams */
	bool watches;             /* answered, but the framing may have more for its client */
	uint32_t reserved;        /* packets set aside for its reply */
	struct edge_large *large; /* NULL: it fits a packet; */
	struct rte_mbuf *bytes;   /* then, gathered so far */
	struct edge_rewrite *rewrite; /* of its reply's oldest chunk; NULL: there is none now */
	/* pieces of its answer that are complete, while those of earlier requests are not */
	struct rte_mbuf *answer, *answer_tail;
	uint32_t answer_bytes, answer_packets;
	uint32_t reply_packets;
	uint64_t reply_bytes; /* of all its chunks so far */
	/* of a batch, or one of its rows */
	struct edge_request *parent;
	struct edge_rows *rows; /* of a parent */
	uint32_t row;           /* from 1 on: it is this one of <parent>; 0: none */
	uint32_t failed_row;    /* of a parent; 0: none */
	/* of one whose reply is a stream */
	TAILQ_ENTRY(edge_request) streaming;
	struct edge_busy *busy;
	struct rte_mbuf *text, *text_tail; /* of its chunks so far, if all are sent together */
	uint32_t text_packets;             /* that are held for it */
	uint32_t heard_ms; /* when something of its reply was sent last, or it began */
	uint32_t health;   /* the edge's when it was looked at; of one that watches */
} __attribute__((aligned(32)));
_Static_assert(sizeof(struct edge_request) % 32 == 0, "edge_zero() writes so many bytes at a time");

TAILQ_HEAD(edge_streaming, edge_request);

/*
 * The rows of a request that is a batch: requests of their own, whose replies become one. Those of
 * a request that is over are freed some at a time.
 */
struct edge_rows {
	TAILQ_ENTRY(edge_rows) entry; /* of those with something to do, or of the free ones */
	TAILQ_ENTRY(edge_rows) used;  /* of those in use, the oldest first */
	struct edge_busy *busy;       /* NULL: the request is over */
	struct edge_request *request;
	/* complete, to be sent: by <next> */
	struct edge_request *ready, **last_ready;
	uint64_t handle;   /* of the connection's flow */
	uint32_t n;        /* rows; 0: their replies are joined */
	uint32_t size;     /* bytes of each; of those that differ, of the longest */
	uint32_t left;     /* that have no reply */
	uint32_t packets;  /* of replies that are held */
	uint32_t gathered; /* packets that are held for bytes of rows */
	uint32_t freed;    /* rows, of a request that is over */
	uint32_t ended;    /* rows whose places are given back, as the request ends */
	/* replies that were joined, and their bytes */
	struct rte_mbuf *head, *tail;
	uint32_t joined, bytes;
	uint32_t moved_ms; /* when bytes of it came last */
	bool waits;        /* it is on the list: there is something to do */
	bool ends;
	bool differ;
	/* where each reply's bytes end; before the first one is joined, of rows that differ: where
	 * each row's bytes do */
	uint32_t end[KSERVE_ROWS_MAX];
	struct edge_request *row[KSERVE_ROWS_MAX];
};

#define EDGE_ROWS 256u /* batches of an lcore, at a time */

TAILQ_HEAD(edge_rows_list, edge_rows);

TAILQ_HEAD(edge_rewrites, edge_rewrite);

/* A chunk of a reply that its framing writes anew. */
struct edge_rewrite {
	struct edge_rewrite *next;       /* of its request: a younger chunk */
	uint32_t packets;                /* that are held for it */
	TAILQ_ENTRY(edge_rewrite) entry; /* of those that are not done, or of the free ones */
	struct edge_rewrites *list;      /* the former */
	struct edge_connection *connection;
	struct edge_request *request;
	struct stream_reply reply;
	struct rte_mbuf *bytes;       /* the worker's */
	struct rte_mbuf *at;          /* the one of them with the byte that is wanted next, */
	uint32_t at_offset;           /* and where in the reply it begins */
	struct rte_mbuf *text, *tail; /* what is written so far */
	bool waits;                   /* the next chunk's text is sent together with it */
};

/* The description of a service's model. */
struct edge_layout {
	struct kserve_layout *layout; /* NULL: there is none */
	uint32_t ms;                  /* when it was looked at */
	bool looked;
};

struct edge_tls_room; /* tls.h; of an lcore */
struct tls_session;

/* The part of a connection that exists while bytes or requests are under way. First what each
 * segment and reply needs. */
struct edge_busy {
	struct edge *edge;
	struct edge_connection *connection;
	struct edge_client *client;
	uint32_t held, replies, reserved; /* packets: parts of the client's */
	uint32_t progress_ms;
	/* of those with bytes to send: when a whole packet of them was acknowledged last */
	TAILQ_ENTRY(edge_busy) sending;
	/* on one of the edge's lists of deadlines that are seldom reached, and when it is looked at
	 * there */
	TAILQ_ENTRY(edge_busy) soon;
	struct edge_busy_list *soon_list; /* NULL: on none */
	uint32_t soon_ms;
	/* bytes that it is offered, and where and when the current measurement of a round trip
	 * began */
	uint32_t window, round_us;
	unsigned int n_requests;
	uint64_t round_position;
	uint64_t in_order; /* position of the stream up to which all bytes have come */
	uint64_t unwritten;                 /* bytes of large requests */
	struct edge_request *first, **last; /* open requests */
	/* bytes to send, from number <out_seq> on; <at>: the segment sent last, at number <at_seq>
	 */
	struct rte_mbuf *out, *out_tail, *at;
	uint32_t out_seq, at_seq;
	uint32_t front_seq; /* the largest <at_seq> so far */
	uint32_t out_bytes;
	uint8_t unmarked;     /* mbufs from the last one that is marked to that of <front_seq> */
	bool emits;           /* the framing is being asked what to send */
	bool held_back; /* it may have more to send than the client's acknowledgements allowed */
	bool shut; /* answers wait, and the client's windows of HTTP/2 have no room for them */
	bool session;         /* it is counted among its client's */
	bool frees; /* packets that were acknowledged are freed in the next turns: <freeing> */
	struct edge_tls *tls; /* NULL: the connection has no TLS */
	struct placement placement;
	/* The first and last of those to send that are marked, so that a number far from <at> is
	 * found in few steps; NULL: none is. See edge_find_out(). */
	struct rte_mbuf *marked, *last_marked;
	struct edge_busy *next; /* of the pool */
	/* when segments of it were refused first and last, in a row; 0: none was */
	uint32_t refused_first_ms, refused_ms;
	/* since when bytes are held that only others of its client bring on, and what had come in
	 * order by then; 0: none were, when it was looked at last */
	uint32_t waits_ms;
	uint64_t waits_position;
	TAILQ_ENTRY(edge_busy) wants;  /* on the edge's list of those that wait for room */
	TAILQ_ENTRY(edge_busy) narrow; /* of those whose window is closed for want of memory */
	TAILQ_ENTRY(edge_busy) freeing; /* of those with <frees> */
} __attribute__((aligned(64)));
/* Bytes of it that each segment and reply needs. */
#define EDGE_BUSY_HOT offsetof(struct edge_busy, last_marked)
_Static_assert(EDGE_BUSY_HOT <= 5 * RTE_CACHE_LINE_SIZE, "the rest seldom has to be here");

/* First what each segment and reply needs. */
struct edge_connection {
	uint64_t handle; /* of its flow; 0: free */
	struct client_path path;
	struct edge_busy *busy;
	/* on the edge's list of those with segments to send */
	STAILQ_ENTRY(edge_connection) due;
	uint32_t hash;   /* of the flow */
	uint32_t opener; /* number of its client */
	uint16_t service;
	bool is_due : 1, stalled : 1, narrow : 1;
	bool goes_on : 1;   /* due in one of the next turns: <due_more> */
	bool noted : 1;     /* something came for it meanwhile: <touched> */
	bool ended : 1;     /* the client has closed: what it sent before is still read */
	bool closing : 1;   /* nothing more is read: close when what was asked is answered */
	bool faulty : 1;    /* likewise, for what the client has sent: it is offered nothing more */
	bool opening : 1;   /* counted in the backlog */
	bool buried : 1;    /* it has ended, and its requests were told of, but not given back */
	bool secured : 1;   /* it has TLS; */
	bool tls_ended : 1; /* our close_notify is queued, or nothing more can be: TCP closes */
	struct tcp_connection tcp;
	uint64_t position; /* of the stream, while <busy> is NULL: all before it was read */
	uint32_t requests; /* of the stream, while <busy> is NULL */
	uint32_t idle_ms;  /* when <busy> became NULL */
	uint32_t lingered; /* bytes that came since it is closing, and a few for each segment */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct edge_connection) <= 256, "there may be a million at rest");
/* Bytes of it that each segment and reply needs. */
#define EDGE_CONNECTION_HOT offsetof(struct edge_connection, tcp.timer_ms[TCP_TIMER_LIFE + 1])
_Static_assert(EDGE_CONNECTION_HOT <= 3 * RTE_CACHE_LINE_SIZE, "the rest seldom has to be here");

/* Bytes that a client may send on a connection that is closing, beside those of a request: it may
 * send a body to its end before it reads the answer. */
#define EDGE_LINGER_BYTES (1u << 20)

/* In place of a connection's number, with the place in the ring. */
#define EDGE_WAITS 0x80000000u

/* A connection in TIME-WAIT. */
struct edge_wait {
	uint64_t handle;
	uint32_t until_ms;
	uint32_t begun_ms; /* later than its place in the ring says if it began anew */
	struct tcp_time_wait wait;
};

/* A request that the walk is to cancel. */
struct edge_cancel {
	uint64_t handle; /* of its flow */
	uint64_t tag;
	uint16_t service;
	bool told; /* its end was counted, and its client told */
};
#define EDGE_CANCELS 1024

#define EDGE_GRAVES 1024u

/*
 * Work of a turn, in bytes of text that is read: some 40 instructions each. Text that is read has
 * all of it, less what was written before, done with rows, and taken by records of TLS
 * (tls_work()); but a part is kept for each of them. What is sent at the end of a turn has what is
 * left of it.
 */
#define EDGE_WORK       2048
#define EDGE_WORK_LEAST 512
/* Connections with long replies that go on in a turn, and its segments beyond which those that
 * begin have but a few. */
#define EDGE_LONG     2u
/* Others of them for which something came, and that are looked at in a turn: two bursts. */
#define EDGE_TOUCHED  64u
#define EDGE_SEGMENTS 32u

struct edge {
	struct lcore *lc;
	struct flow *flows; /* memory of the lcore's flow table */
	struct tcp_stack stack;
	const struct service_snapshot *known; /* the configuration of this turn */
	struct tcp_secret secret;
	struct tcp_wheel wheel;
	uint32_t timers_turn;               /* the lcore's turn in which timers were run last */
	struct edge_connection *connection; /* by number, from 1 on */
	uint32_t connections, n_open;
	uint32_t *free_connection; /* stack */
	uint32_t n_free;
	struct edge_busy *busy_memory, *free_busy;
	uint32_t busies, n_busy; /* all, and those in use */
	uint32_t looked;         /* number of the next to look at, if segments are refused */
	uint32_t refused_ms;     /* when one was refused for want of memory; 0: none was */
	struct edge_request *request_memory, *free_request;
	uint32_t n_requests; /* in use */
	struct edge_piece *piece_memory, *free_piece;
	void *stack_memory, *wheel_memory;
	uint32_t n_pieces, pieces; /* free ones, and all */
	struct edge_large *large_memory, *free_large;
	struct edge_part *part_memory, *free_part;
	uint32_t n_larges, n_parts; /* in use */
	struct edge_larges wanting, filling; /* oldest first */
	struct edge_large *checked; /* the next of those that fill a place to be looked at */
	struct edge_links ready; /* whose workers have as many requests as they should */
	struct edge_writes writing;
	uint32_t n_writing;
	/* the next of those that want a place to be looked at; and, if there are many, the one at
	 * which the next turn goes on */
	struct edge_large *next_wanting, *paused;
	/* clients with busy connections, by hash; packets held for all, and their limits */
	struct edge_client **client_chain, *client_memory, *free_client;
	uint32_t client_mask, n_clients;
	/* clients with connections, by hash and by number from 1 on; connections of one at most */
	uint32_t *opener_chain;
	struct edge_opener *opener;
	uint32_t opener_mask, free_opener, openers_share;
	uint32_t held, replies, reserved;
	uint32_t budget, share;      /* packets: of all clients, of one */
	uint32_t small;              /* below which a client may use what the others leave */
	uint32_t plenty;             /* if all requests hold less, no limit of them is reached */
	uint32_t busy_share;         /* busy connections of one */
	uint32_t reply_packets[LB_SERVICES_MAX]; /* of some replies: their average */
	struct edge_busy_list sending; /* oldest progress first */
	/* those in TIME-WAIT, oldest first: a ring */
	struct edge_wait *wait;
	uint32_t waits, first_wait, n_wait;
	uint32_t backlog[LB_SERVICES_MAX]; /* half-open connections */
	uint32_t open[LB_SERVICES_MAX];    /* all but those in TIME-WAIT */
	uint32_t elsewhere[LB_SERVICES_MAX];  /* requests by connections of other services */
	uint32_t replied_ms[LB_SERVICES_MAX]; /* the last reply that was written anew */
	struct edge_cancel cancel[EDGE_CANCELS];
	unsigned int n_cancels;
	/* hashes of the burst's segments that had no flow, and may have one now */
	uint32_t changed[LB_BURST];
	unsigned int n_changed;
	uint32_t pipeline;   /* requests of one connection open at once */
	uint32_t gather_max; /* bytes of a request that is gathered */
	uint32_t window;     /* bytes offered to one connection at most */
	uint32_t first_window; /* and before it has shown what it uses */
	uint32_t backlog_max;
	uint32_t wait_ms, idle_ms;
	struct edge_list due;          /* by <due> */
	/* clients of those that have had their part of a turn, and have more */
	struct edge_turns due_more;
	/* of those connections, some for which something came in this turn: it is acknowledged */
	struct edge_connection *touched[EDGE_TOUCHED];
	unsigned int n_touched;
	/* by <soon>: those with an acknowledgement that waits for a reply to carry it, and those
	 * whose client has a while to answer; the first is looked at first */
	struct edge_busy_list owing, answered;
	/* clients with connections that wait for room, without those whose framing reads text; and
	 * these connections */
	struct edge_turns others;
	uint32_t n_others;
	/* bursts of requests that were read of those in this turn; and there was no time for more
	 */
	uint32_t resumed;
	bool resumes_on;
	uint32_t bursts;               /* of requests that segments of this turn have filled */
	struct edge_turns turns;       /* the clients of those that read text */
	uint32_t n_turns;              /* connections that wait for a turn there */
	struct edge_busy_list narrow;  /* by <narrow> */
	struct edge_busy_list freeing; /* by <freeing> */
	uint32_t widened_ms;           /* when these were looked at last */
	/* text: what is read and written for the framing kserve */
	struct kserve_room *kserve;
	struct grpc_room *grpc; /* sessions of HTTP/2 */
	/* open ones, and how many all and a client may have */
	uint32_t n_sessions, sessions, sessions_share;
	struct edge_rewrite *rewrite_memory;
	struct edge_rewrites rewrites, long_rewrites, free_rewrites;
	struct edge_streaming streaming; /* not looked at for longest first */
	unsigned int n_streaming;
	uint32_t health; /* another one when services, or whether they have workers, have changed */
	struct edge_rows *rows_memory;
	struct edge_rows_list rows, free_rows; /* with something to do */
	struct edge_rows_list used_rows;
	uint32_t n_batches, n_rows; /* in use, and rows of all */
	/* work of this turn that is kept for rows, for writing text and for ends of connections;
	 * see edge_may_work() */
	int32_t rows_left, write_left, ends_left;
	struct edge_layout layout[LB_SERVICES_MAX];
	uint32_t date_second; /* of the lcore's clock, when the date was written */
	bool dated;
	struct rte_mbuf *grave[EDGE_GRAVES]; /* chains that are freed some packets at a time */
	uint32_t n_graves;                   /* more than 0 while there is anything to free */
	struct rte_mbuf *more_graves;        /* those for which there was no place: see ending.c */
	bool goes_on; /* the next turn follows at once: this one had no time for all that is due */
	bool text_owed; /* those that wait had no text in this turn, and have that of the next */
	bool text_whole; /* one of those waits for a turn that has time for it alone: the next */
	bool text_used;            /* in this turn some may have been read or written */
	/* Of the connection that is read, when it had had so many requests: is there room for
	 * another's reply? */
	bool room_known, room_there;
	uint32_t room_requests;
	bool text_waited;          /* and those that wait have had theirs */
	bool text_short;           /* the turn before was too short for all text */
	struct edge_tls_room *tls; /* NULL: no service had TLS at the start */
};

/* The reply that is written next; NULL: none. */
static inline struct edge_rewrite *edge_next_rewrite(const struct edge *e)
{
	struct edge_rewrite *w = TAILQ_FIRST(&e->rewrites);

	return w != NULL ? w : TAILQ_FIRST(&e->long_rewrites);
}

/* Asks for memory that is used soon, and is seldom in the cache. */
static inline void edge_prefetch_bytes(const void *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += RTE_CACHE_LINE_SIZE)
		rte_prefetch0((const uint8_t *)at + i);
}

/* Zeroes few cache lines: gcc's way ("rep stos") takes long to begin. <bytes>: times 32. */
static inline void edge_zero(void *at, size_t bytes)
{
	typedef uint64_t lanes __attribute__((vector_size(32), aligned(8), may_alias));

	for (size_t i = 0; i < bytes; i += sizeof(lanes))
		*(lanes *)((uint8_t *)at + i) = (lanes){0};
}

/* --- connections.c ---------------------------------------------------------------------------- */

static inline struct edge_connection *edge_connection_of(const struct edge *e,
							 const struct flow *flow)
{
	return &e->connection[flow->connection];
}

static inline uint32_t edge_number(const struct edge *e, const struct edge_connection *c)
{
	return c - e->connection;
}

static inline struct flow *edge_flow(const struct edge *e, const struct edge_connection *c)
{
	return conntrack_flow_of(e->flows, c->handle);
}

/* A connection for <flow>, zeroed but for what concerns the flow. NULL: there are as many as may
 * be. */
struct edge_connection *edge_open(struct edge *e, struct flow *flow, uint32_t hash,
				  const struct client_path *path);
/* Gives a connection a busy part; NULL: no memory. */
struct edge_busy *edge_begin(struct edge *e, struct edge_connection *c);
/* Begins a turn: sets the endpoint's clock to the lcore's, and takes a new configuration. */
void edge_begin_turn(struct edge *e);
/* The endpoint's next calls are about connections of <service>. */
static inline void edge_select(struct edge *e, uint16_t service)
{
	e->stack.settings = &e->known->tcp_settings[service];
}
/* The flow's TIME-WAIT, or NULL. */
struct edge_wait *edge_wait_of(const struct edge *e, const struct flow *flow);
/* Its last segment came again: it begins anew. */
void edge_wait_restart(struct edge *e, struct edge_wait *w, struct flow *flow);
/* --- stalled.c -------------------------------------------------------------------------------- */

/* Reads on, offers the client what can be taken, and acknowledges. */
void edge_progress(struct edge *e, struct edge_connection *c);
/* It goes on in a later turn, or need not. */
void edge_stall(struct edge *e, struct edge_connection *c, bool stalled);
/* It waits, and ends. */
void edge_leave_stalled(struct edge *e, struct edge_busy *b);
/* Those that wait have their turns, as far as the turn of all has room. */
void edge_resume_stalled(struct edge *e);
/* --- connections.c ---------------------------------------------------------------------------- */

/* It goes on in one of the next turns: in this one it may acknowledge. */
static inline void edge_note_touched(struct edge *e, struct edge_connection *c)
{
	if (c->noted || e->n_touched == EDGE_TOUCHED)
		return;
	c->noted = true;
	e->touched[e->n_touched++] = c;
}
/* Its segments and timers are looked at before the turn ends. */
static inline void edge_touch(struct edge *e, struct edge_connection *c)
{
	if (unlikely(c->goes_on))
		return edge_note_touched(e, c);
	if (c->is_due)
		return;
	c->is_due = true;
	STAILQ_INSERT_TAIL(&e->due, c, due);
}
/* TCP is done with it: it is buried when its turn to send comes, and joins no list any more. */
static inline bool edge_is_over(const struct edge_connection *c)
{
	return c->tcp.state == TCP_CLOSED || c->tcp.state == TCP_TIME_WAIT;
}

/* Something of it is dropped, or it ends early. */
static inline void edge_count_drop(const struct edge *e, const struct edge_connection *c,
				   uint8_t reason)
{
	e->lc->stats.drop[reason]++;
	e->lc->service[c->service].stats.drops++;
}
/* Its flow is gone: it ends before the turn does. */
static inline void edge_expired(struct edge *e, struct edge_connection *c)
{
	tcp_abort(&c->tcp);
	edge_touch(e, c);
}
/* Nothing more is read: what is incomplete is dropped, the rest answered. Where the framing can say
 * so to the client, it does, and ends the connection when all is answered. */
void edge_close(struct edge *e, struct edge_connection *c);
/* The same without telling the client. */
void edge_close_now(struct edge *e, struct edge_connection *c);

/* --- segments_in.c ------------------------------------------------------------------------------
 */

/* Copies few bytes at <position> behind the piece before them, if that is held and its packet has
 * room. False: not. */
bool edge_join(struct edge_busy *b, uint64_t position, const uint8_t *bytes, uint32_t length);

/* --- clients.c -------------------------------------------------------------------------------- */

/* Reads the share of a client from the configuration. */
void edge_clients_share(struct edge *e);
/* <busy>: connections; <packets>: that may be held. */
int edge_clients_init(struct edge *e, uint32_t busy, uint32_t packets);
/* The client of a connection that becomes busy. */
struct edge_client *edge_client_join(struct edge *e, const struct flow *flow);
void edge_client_leave(struct edge *e, struct edge_client *client);
/* NULL: nothing is held for it. */
const struct edge_client *edge_client_of(const struct edge *e, const struct flow *flow);
/* A reply came: if replies fill the share of its client, the slowest reader of it is reset. */
void edge_press(struct edge *e, const struct edge_client *client);
/* Resets the slowest readers whose replies keep others from getting theirs. */
void edge_press_all(struct edge *e);
/* Resets those whose bytes are not brought on by others, and keep others' out. */
void edge_press_waiting(struct edge *e);
/* Notes that a segment was refused for want of memory. */
static inline void edge_note_short(struct edge *e)
{
	e->refused_ms = e->stack.now_ms - (e->stack.now_ms == 0);
}

/* Packets that all may hold together; what is left of the budget is for those that hold little. */
static inline uint32_t edge_commons(const struct edge *e)
{
	return e->budget - e->budget / 8;
}

/* Packets of requests, which replies neither take from nor add to. */
static inline uint32_t edge_requests_of(const struct edge_client *client)
{
	return client->held - client->replies;
}

static inline uint32_t edge_requests_of_all(const struct edge *e)
{
	return e->held - e->replies;
}

/*
 * Of <packets>, a share or the memory, half is for replies and half for requests. Windows are
 * offered within that half, to each connection by itself, so that all together promise more; what
 * was promised is taken up to three quarters.
 */
static inline uint32_t edge_half(uint32_t packets)
{
	return packets / 2;
}

static inline uint32_t edge_promised(uint32_t packets)
{
	return packets - packets / 4;
}

/* May requests of those that do not hold little have another packet? */
static inline bool edge_has_room(const struct edge *e)
{
	return e->held < edge_commons(e) &&
	       edge_requests_of_all(e) < edge_promised(edge_commons(e));
}

/* May requests of the client have another packet of its share? */
static inline bool edge_client_has_room(const struct edge *e, const struct edge_client *client)
{
	return edge_requests_of(client) < edge_promised(e->share);
}

/* Do requests hold so little that neither all nor a client can have reached a limit? */
static inline bool edge_has_plenty(const struct edge *e)
{
	return edge_requests_of_all(e) < e->plenty && e->held < edge_commons(e);
}

/* Are there few parts left for connections that become busy? */
static inline bool edge_is_short_of_busy(const struct edge *e)
{
	return e->n_busy >= e->busies - e->busies / 8;
}

/* Does the client hold so little that it may use what the others leave? */
static inline bool edge_client_is_small(const struct edge *e, const struct edge_client *client)
{
	return client->held + client->reserved < e->small;
}

/* Weight of the older replies in an average. */
#define EDGE_REPLIES_AVERAGE 8
/* Packets of a usual reply: its client's, or the service's while that had none. */
static inline uint32_t edge_usual_reply(const struct edge_busy *b)
{
	uint32_t sum = b->client->reply_packets;

	if (unlikely(sum == 0))
		sum = b->edge->reply_packets[b->connection->service];
	return sum / EDGE_REPLIES_AVERAGE + 1;
}
void edge_count_reply(struct edge_busy *b, uint32_t packets);
/* May the client have another reply, beside those that it will get? */
bool edge_has_reply_room(const struct edge *e, const struct edge_busy *b);

static inline void edge_hold(struct edge_busy *b, uint32_t packets)
{
	b->held += packets;
	b->client->held += packets;
	b->edge->held += packets;
}

static inline void edge_let_go(struct edge_busy *b, uint32_t packets)
{
	edge_hold(b, -packets);
}

/* The same for packets of replies. */
static inline void edge_hold_reply(struct edge_busy *b, uint32_t packets)
{
	edge_hold(b, packets);
	b->replies += packets;
	b->client->replies += packets;
	b->edge->replies += packets;
}

static inline void edge_let_reply_go(struct edge_busy *b, uint32_t packets)
{
	edge_hold_reply(b, -packets);
}

static inline void edge_reserve(struct edge_busy *b, uint32_t packets)
{
	b->reserved += packets;
	b->client->reserved += packets;
	b->edge->reserved += packets;
}

/* May the client send less than a segment beyond what has come in order? */
static inline bool edge_window_is_closed(const struct edge_connection *c)
{
	return c->tcp.rcv_edge - c->tcp.rcv_nxt < c->tcp.mss;
}

/* Where a client is counted. Keyed, so that no client can choose another's place. */
static inline uint32_t edge_client_hash(const struct edge *e, uint64_t key, uint16_t zone)
{
	uint64_t word = (key ^ e->secret.key[0]) * 0x9e3779b97f4a7c15ull;

	word = (word ^ word >> 32 ^ zone ^ e->secret.key[1]) * 0xbf58476d1ce4e5b9ull;
	return word ^ word >> 32;
}

/* --- openers.c -------------------------------------------------------------------------------- */

enum edge_may_open {
	EDGE_MAY_OPEN,
	/* Half-open ones take the rest of its share. They may be a stranger's, who sends with its
	 * address. */
	EDGE_MAY_OPEN_BY_COOKIE,
	EDGE_MAY_NOT_OPEN, /* it has its share */
};
/* May the source of <key> have another connection? */
enum edge_may_open edge_may_open(const struct edge *e, const struct flow_key *key);
/* Has the client of <c> its share without those that are half-open? */
static inline bool edge_opener_is_full(const struct edge *e, const struct edge_connection *c)
{
	const struct edge_opener *o = &e->opener[c->opener];

	return o->open - o->half_open >= e->openers_share;
}
/* Count the connection for its client, until edge_opener_leave(). */
void edge_opener_join(struct edge *e, struct edge_connection *c, const struct flow *flow);
void edge_opener_leave(struct edge *e, const struct edge_connection *c);
/* Count it in the backlog as well, or no longer. */
void edge_set_opening(struct edge *e, struct edge_connection *c, bool opening);
/* Reads the share of a client from the configuration. */
void edge_openers_share(struct edge *e);
int edge_openers_init(struct edge *e);

/* --- requests.c ------------------------------------------------------------------------------- */

/* The open request of that number, or NULL. */
static inline struct edge_request *edge_request_find(const struct edge_busy *b, uint32_t number)
{
	for (struct edge_request *r = b->first; r != NULL; r = r->next)
		if (r->number == number)
			return r;
	return NULL;
}

/* All its bytes have come. */
static inline bool edge_request_is_complete(const struct edge_request *r)
{
	return r->named && r->placed == r->size;
}
/* Ends a request that no worker has: its bytes are dropped, those that come too, and its client
 * gets a notice, enum lb_notice. */
void edge_request_fail(struct edge_busy *b, struct edge_request *r, uint8_t notice,
		       enum lb_drop reason);
extern const struct placement_ops edge_placement_ops;
/* The room of the framing kserve, with what concerns this connection (rewrite.c). */
void edge_kserve_settings(struct edge *e, const struct edge_connection *c,
			  struct stream_settings *settings);
/* Counts a connection that has begun to speak HTTP/2, and its memory, for its client. */
void edge_count_session(struct edge_busy *b);
/* Reads what is in order, as far as there is room. True: it stopped for want of room. */
static inline bool edge_read(struct edge *e, struct edge_connection *c)
{
	const struct lb_service_config *config = lcore_service_config(e->lc, c->service);
	struct stream_settings settings = {.max_request = config->max_request};

	if (unlikely(c->busy->placement.framing->rewrite != NULL))
		edge_kserve_settings(e, c, &settings);

	return placement_run(&c->busy->placement, &settings, c->busy->in_order);
}
/*
 * The usual request: whole, in one segment, with nothing before it that was not read and nothing
 * behind it. <m> ends with <bytes>, which are the next of the stream and came just now. True: it
 * was taken, with <m>; the bytes are in order. Not with TLS.
 */
bool edge_take_whole(struct edge *e, struct edge_connection *c, struct rte_mbuf *m,
		     const uint8_t *bytes);
/* The client does not want the reply of <r>, which is not answered. */
void edge_cancel(struct edge_busy *b, struct edge_request *r);
/* Memory for the request's bytes in one packet. False: there is none, and the request has failed.
 */
bool edge_request_gather(struct edge_busy *b, struct edge_request *r);
/* All bytes have come, and the burst has room: the request joins it. */
void edge_request_submit(struct edge_busy *b, struct edge_request *r);
/* Nothing more becomes of it. */
static inline bool edge_request_is_over(const struct edge_request *r)
{
	return r->answered && r->named && (likely(r->rows == NULL) || !r->rows->ends);
}
/* Frees the request; its packets go back. */
void edge_request_free(struct edge *e, struct edge_request *r);

/* --- large.c ---------------------------------------------------------------------------------- */

/* The request is larger than a packet. False: no memory. */
bool edge_large_begin(struct edge_busy *b, struct edge_request *r);
/* A segment of the connection was refused for want of memory. */
void edge_note_refused(struct edge_busy *b);
/* Does the byte of the stream at <position> belong to a request that has a place? */
bool edge_large_has_place(const struct edge_busy *b, uint64_t position);
/* Bytes of a request that has its place, and that have not come in order: no memory is needed for
 * them. */
uint64_t edge_large_missing(const struct edge_busy *b);
/* These bytes of <p> belong at <offset> of it. False: no memory. */
bool edge_large_place(struct edge_busy *b, struct edge_request *r, uint64_t offset,
		      struct edge_piece *p, const uint8_t *bytes, uint32_t length);
/* The same for bytes that are in no packet: they are copied. */
bool edge_large_produce(struct edge_busy *b, struct edge_request *r, uint64_t offset,
			const uint8_t *bytes, uint32_t length);
/* The bytes that are to be written are looked at before the turn ends. */
void edge_large_touch(struct edge *e, struct edge_large *l);
/* All its bytes are named: they are <size>, at most as many as were announced. */
void edge_large_named(struct edge_busy *b, struct edge_request *r, uint64_t size);
/* Gives all of it back, the place too. Does nothing if the request is not large. */
void edge_large_end(struct edge *e, struct edge_request *r);

/* A pointer to <length> bytes of <m>, which it holds. NULL: no memory. */
/* Each 64th mbuf that is sent is marked: the next one that is, and its number. */
struct edge_mark {
	struct rte_mbuf *next;
	uint32_t seq;
};
extern int edge_mark_offset; /* of mbufs' dynamic field */

static inline struct edge_mark *edge_mark(struct rte_mbuf *m)
{
	return RTE_MBUF_DYNFIELD(m, edge_mark_offset, struct edge_mark *);
}

/* Finds the mbuf with the byte of number <seq> among those to send, from where it was found last or
 * the marks on. <from>: the number of its first byte. NULL: it is behind them. */
struct rte_mbuf *edge_find_out(struct edge_busy *b, uint32_t seq, uint32_t *from);

static inline struct rte_mbuf *edge_refer(struct edge *e, struct rte_mbuf *m, const uint8_t *bytes,
					  uint16_t length)
{
	struct rte_mbuf *piece = rte_pktmbuf_alloc(e->lc->indirect_pool);

	if (piece == NULL)
		return NULL;
	rte_pktmbuf_attach(piece, m);
	piece->data_off += bytes - rte_pktmbuf_mtod(m, const uint8_t *);
	piece->data_len = piece->pkt_len = length;
	piece->next = NULL;
	piece->nb_segs = 1;
	return piece;
}

/* --- answers.c -------------------------------------------------------------------------------- */

/* The open request of <flow> with that number, and its connection; or NULL. */
struct edge_request *edge_request_of(const struct lcore *lc, const struct flow *flow, uint64_t tag,
				     struct edge_connection **c);
/* The client has acknowledged up to tcp.snd_una: packets before it are freed, and of many some in
 * the next turns. */
void edge_acknowledged(struct edge *e, struct edge_connection *c);
/* Goes on with that. */
void edge_free_acknowledged(struct edge *e);
void edge_leave_freeing(struct edge *e, struct edge_busy *b);
/* Answers a request with a notice. */
void edge_refuse(struct edge *e, struct edge_connection *c, struct edge_request *r, uint8_t code);
/* The reply <m> is written anew; takes it. False: it is dropped, and the request has failed. */
bool edge_rewrite_reply(struct edge *e, struct edge_connection *c, struct edge_request *r,
			const struct stream_reply *reply, struct rte_mbuf *m);
/* Chunks of a reply that are not written anew yet, and what waits for them, are dropped. */
void edge_drop_chunks(struct edge *e, struct edge_busy *b, struct edge_request *r);
/* Does the answer of <r> go out now? */
static inline bool edge_has_turn(const struct edge_busy *b, const struct edge_request *r)
{
	return !b->placement.framing->in_order || b->first == r;
}
/* Sends what it is the turn of. Requests with all their bytes named and answered are over. */
void edge_advance(struct edge *e, struct edge_connection *c);
/* Replies whose rewriting is not done go on. */
void edge_resume_rewrites(struct edge *e);
/* Bytes of the framing's own for the client of <r>; with <ends> they are its answer's end. */
void edge_answer_text(struct edge *e, struct edge_connection *c, struct edge_request *r,
		      const uint8_t *bytes, uint32_t length, bool ends);
/* Queues bytes that belong to no request. */
void edge_queue(struct edge *e, struct edge_connection *c, struct rte_mbuf *m);

/* Appends a chain to a queue. */
static inline void edge_append(struct rte_mbuf **head, struct rte_mbuf **tail, struct rte_mbuf *m)
{
	if (*head == NULL)
		*head = m;
	else
		(*tail)->next = m;
	*tail = rte_pktmbuf_lastseg(m);
}
/* The same for bytes that are held already, the last mbuf of which is <tail>: they go as they are.
 */
void edge_queue_chain(struct edge *e, struct edge_connection *c, struct rte_mbuf *head,
		      struct rte_mbuf *tail, uint32_t bytes);
/* Packets of replies are held, or no longer. */
void edge_hold_answer(struct edge *e, struct edge_busy *b, uint32_t packets);
void edge_let_answer_go(struct edge *e, struct edge_busy *b, uint32_t packets);
/* The same of packets that the client never was to get: that is no progress of it. */
void edge_release_answer(struct edge *e, struct edge_busy *b, uint32_t packets);
/* An answer that has not had its turn is not sent. */
void edge_drop_answer(struct edge *e, struct edge_busy *b, struct edge_request *r);
/* The client's time to take a packet begins. */
void edge_begin_wait(struct edge *e, struct edge_busy *b);
/* Queues one packet that is held already. */
void edge_queue_held(struct edge *e, struct edge_connection *c, struct rte_mbuf *m);
/* The request is over: unlinks and frees it. */
void edge_request_leave(struct edge *e, struct edge_busy *b, struct edge_request *r);

/* --- frames.c --------------------------------------------------------------------------------- */

/* Sends what the framing wants to send now. For framings with emit(). */
void edge_emit_answers(struct edge *e, struct edge_connection *c);
/* May such a framing read on? It refuses what it has no room for. */
bool edge_frames_ready(struct edge *e, const struct edge_busy *b);
/* Is it such a framing, and nothing under way? */
bool edge_frames_are_idle(const struct edge_connection *c);

/* --- tls.c, tls_in.c, tls_out.c: what the rest sees of TLS ---------------------------------------
 */

/* Memory for TLS, if a service has it. 0 or -ENOMEM. */
int edge_tls_init(struct edge *e);
void edge_tls_fini(struct edge *e);
/* A connection with TLS becomes busy, or is at rest. */
void edge_tls_begin(struct edge *e, struct edge_busy *b);
void edge_tls_end(struct edge *e, struct edge_busy *b);
/* Something is under way that needs its busy part. */
bool edge_tls_is_busy(const struct edge_busy *b);
/* Reads what came in order, as far as may be. */
void edge_tls_read(struct edge *e, struct edge_connection *c);
/* The same of one that waited for its turn: not before the framing has read what there is. */
void edge_tls_read_on(struct edge *e, struct edge_connection *c);
/* Those that have to go on do; what came back from the helper is taken. Returns how many of both.
 */
unsigned int edge_tls_resume(struct edge *e);
/* Those that wait with something to write do that before all others. */
void edge_tls_write_on(struct edge *e);
/* Once per ms: handshakes that take too long end. */
void edge_tls_housekeeping(struct edge *e);
/* A turn is over: as much may be read and written in the next one. */
void edge_tls_end_turn(struct edge *e);
/* There is something to do at once. */
bool edge_tls_must_go_on(const struct edge *e);
/* Some wait for a job, or for their client. */
bool edge_tls_waits(const struct edge *e);
/* Bytes came, perhaps of records: a piece of the raw stream. */
void edge_tls_take(struct edge_busy *b, struct edge_piece *p);
/* Bytes that came in order, of what the client sent. */
uint64_t edge_tls_in_order(const struct edge_busy *b);
static inline uint64_t edge_came(const struct edge_busy *b)
{
	return likely(b->tls == NULL) ? b->in_order : edge_tls_in_order(b);
}
void edge_tls_came(struct edge_busy *b, uint32_t bytes);
/* Bytes that are held and not read: records. */
uint64_t edge_tls_held(const struct edge_busy *b);
/* Bytes that wait to be encrypted. */
uint64_t edge_tls_unsent(const struct edge_busy *b);
/* All that came in order was read. */
bool edge_tls_is_read(const struct edge_busy *b);
/* A chain of <packets> to be encrypted; it is held already. */
void edge_tls_queue(struct edge *e, struct edge_connection *c, struct rte_mbuf *head,
		    struct rte_mbuf *tail, uint32_t packets, uint32_t bytes);
/* Encrypts what may be sent now. */
void edge_tls_write(struct edge *e, struct edge_connection *c);
/* All is answered: says goodbye. True: TCP may close. */
bool edge_tls_close(struct edge *e, struct edge_connection *c);
/* Its handshake is over. */
bool edge_tls_has_keys(const struct edge *e, const struct edge_connection *c);
/* The connection is over: its keys go. */
void edge_tls_forget(struct edge *e, struct edge_connection *c);
/* In the middle of a record, or of a handshake. */
bool edge_tls_is_inside(const struct edge_busy *b);
/* The time for its handshake is over, and it has not even begun: that is counted. */
bool edge_tls_is_late(struct edge *e, const struct edge_connection *c);

/* --- rewrite.c -------------------------------------------------------------------------------- */

int edge_rewrite_init(struct edge *e);
void edge_rewrite_fini(struct edge *e);
/* A client's shares of it, by the configuration. */
void edge_rewrite_share(struct edge *e);
/* Those that wait are read next: leaves them some text, once in a turn. */
void edge_rewrite_leave_text(struct edge *e);
/* The next turn may read and write as much text again. */
void edge_rewrite_end_turn(struct edge *e);
/* Once per ms: resets a connection whose head or JSON takes too long. */
void edge_rewrite_check_readers(struct edge *e);
/* Appends bytes to a chain, which may be empty: then both are NULL. False: no memory. */
bool edge_append_text(struct edge *e, struct rte_mbuf **head, struct rte_mbuf **tail,
		      const uint8_t *bytes, uint32_t length);
/* The reply <m> of <r> is to be written anew. Takes <m>, unless it returns false: no memory. */
bool edge_rewrite_begin(struct edge *e, struct edge_connection *c, struct edge_request *r,
			const struct stream_reply *reply, struct rte_mbuf *m);
/* Writes what may be written in this turn. 1: all is; 0; -ENOMEM. */
int edge_rewrite_run(struct edge *e, struct edge_rewrite *w);
/* Gives the oldest chunk's back, with the packets that it still has. */
void edge_rewrite_end(struct edge *e, struct edge_request *r);

/* --- rows.c ----------------------------------------------------------------------------------- */

int edge_rows_init(struct edge *e);
void edge_rows_fini(struct edge *e);
/* The request has rows. It fails if there is no memory, or its client has its share. */
void edge_rows_begin(struct edge_busy *b, struct edge_request *r, const struct stream_begin *begin);
/* Bytes of <r>, which are those of its rows: in the packet of <p>, or, where that is NULL, to be
 * copied. */
void edge_rows_place(struct edge_busy *b, struct edge_request *r, uint64_t offset,
		     struct edge_piece *p, const uint8_t *bytes, uint32_t length);
/* The row that has this byte of <r>; <r> itself if it has none. */
struct edge_request *edge_rows_at(struct edge_request *r, uint64_t offset);
/* A chunk of the reply to a row. Takes <m>. False: it is dropped. */
bool edge_rows_reply(struct edge *e, struct edge_connection *c, struct edge_request *row,
		     struct rte_mbuf *m, bool more);
/* The request was refused: its rows end, soon. */
void edge_rows_end(struct edge_request *r);
/* The connection is gone: are there rows with places in workers' memory? Then these are given back
 * in this turn and the next ones. */
bool edge_rows_end_all(struct edge_busy *b);
/* The request is over. <counted>: what its rows hold is given back to its client. */
void edge_rows_leave(struct edge *e, struct edge_request *r, bool counted);
/* Goes on with batches, as far as the turn and the burst have room: sends rows that are complete,
 * joins replies, and frees rows that nobody waits for. */
void edge_rows_run(struct edge *e);
/* A turn is over: as much may be done in the next one. */
void edge_rows_end_turn(struct edge *e);
/* There are no connections any more: frees what is left of their rows. */
void edge_rows_drain(struct edge *e);
/* --- ending.c --------------------------------------------------------------------------------- */

/* Frees a chain, or NULL; a long one some packets at a time, in this turn and the next ones. */
void edge_bury(struct edge *e, struct rte_mbuf *m);
/* Goes on with that. */
void edge_free_buried(struct edge *e, uint32_t packets);

/* May work be done for which <own> of the turn is kept? */
static inline bool edge_may_work(const struct edge *e, int32_t own)
{
	return own > 0 || e->kserve->text_left > EDGE_WORK_LEAST;
}

/* It was done. */
static inline void edge_work(struct edge *e, int32_t *own, uint32_t work)
{
	int32_t left = e->kserve->text_left;

	e->text_used = true;
	*own -= (int32_t)work;
	if (left > EDGE_WORK_LEAST)
		e->kserve->text_left = RTE_MAX(left - (int32_t)work, EDGE_WORK_LEAST);
}

/* The walk's name for a request. */
static inline uint64_t edge_tag(const struct edge_request *r)
{
	return r->number | (uint64_t)r->row << 32;
}

/* --- streams.c -------------------------------------------------------------------------------- */

/* The reply of <r> may come in pieces, until edge_stream_end(), which others may call, too. */
void edge_stream_begin(struct edge_busy *b, struct edge_request *r);
void edge_stream_end(struct edge *e, struct edge_request *r);
/* Once per ms: those that are silent, those whose time is over, and those that watch. */
void edge_streams_check(struct edge *e);
/* The connection takes no further requests: its clients that watch are told so. */
void edge_streams_end_watches(struct edge *e, struct edge_busy *b);
/* Tells the worker not to send the rest of a reply, as nobody waits for it. */
void edge_stream_cancel(struct edge_busy *b, const struct edge_request *r);
/* Text that waits for the next chunk, which is not going to come. */
void edge_stream_drop_text(struct edge *e, struct edge_busy *b, struct edge_request *r);

/* --- access.c --------------------------------------------------------------------------------- */

/* Requests are told of, if there is an access log. */
void edge_access_begin(struct edge *e);
/* The connection ends: those that were not answered are told of. */
void edge_access_lost(const struct edge *e, const struct edge_connection *c);

/* --- tso.c ------------------------------------------------------------------------------------ */

/* <h> is a segment to send now: those behind it are to leave in the same packet, which the port
 * cuts, as far as that is possible. */
void edge_extend(struct edge *e, struct edge_connection *c, struct tcp_header *h);
/* <m>, all of whose headers are written and which its port has not seen yet, is to be cut into
 * segments of <mss> bytes. */
void edge_let_cut(struct edge *e, const struct flow *flow, struct rte_mbuf *m, uint8_t *tcp,
		  const struct tcp_header *h, uint16_t mss);

/* --- segments_out.c --------------------------------------------------------------------------- */

/* Sends all that is due on <c>. False: the port or packet memory has no room now. If its flow has
 * expired nothing can be sent, and its state is CLOSED. Of one that goes on in a later turn only an
 * acknowledgement is sent, if it is owed. */
bool edge_emit(struct edge *e, struct edge_connection *c, unsigned int *sent);
/* Sends a segment without payload that belongs to no connection. */
void edge_emit_bare(struct edge *e, const struct flow_key *key, const struct client_path *path,
		    const struct tcp_header *h);

#endif
