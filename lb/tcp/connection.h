/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's end of TCP connections, the public header of connection.c, receive.c, send.c and
 * timer.c: segments and time in, segments to send out. Pure: no packet
 * buffers, no clock, no addresses. The owner of a connection (an lcore) keeps the bytes: the core
 * says which bytes of a segment are new, and which sequence numbers to send.
 *
 *   tcp_open                 a SYN makes a connection; tcp_next() then gives its SYN-ACK
 *   tcp_receive              one segment; what is new in it, what it acknowledged
 *   tcp_grant                how much the owner can take beyond what came in order
 *   tcp_queue, tcp_close     the owner has more bytes to send; no more will come
 *   tcp_next                 the next segment to send, until it returns false
 *   tcp_next_alone           only an acknowledgement: the rest has to wait
 *   tcp_extend               more segments in the same packet, for a port that cuts it
 *   tcp_due, tcp_timer       when to call again, and that call
 *   tcp_release              give the memory back
 *
 * Conforms to RFC 9293 (passive opens only), 7323 (window scale, timestamps, PAWS), 2018 and 2883
 * (SACK), 8985 (RACK-TLP), 6298, 9937 (PRR), 9438 (CUBIC), 3168, 8257 (DCTCP), 5961, 6928, 1122.
 *
 * Every call belongs to the thread that owns <stack>. Before calls it sets now_us and now_ms.
 */
#ifndef LB_TCP_CONNECTION_H
#define LB_TCP_CONNECTION_H

#include <stddef.h>

#include "tcp/header.h"

struct tcp_congestion;

/* The states of RFC 9293, 3.3.2. LISTEN has no connection, and TIME-WAIT is kept in few bytes by
 * the owner: see tcp_received.closed. */
enum tcp_state {
	TCP_CLOSED,
	TCP_SYN_RECEIVED,
	TCP_ESTABLISHED,
	TCP_FIN_WAIT_1, /* we have closed */
	TCP_FIN_WAIT_2, /* and the client has acknowledged that */
	TCP_CLOSE_WAIT, /* the client has closed */
	TCP_CLOSING,    /* both have closed; ours is not acknowledged */
	TCP_LAST_ACK,   /* the same, and the client was first */
	TCP_TIME_WAIT,
	TCP_STATES,
};

/* Counted per reason by the stack. X(symbol, "name", "meaning") */
#define TCP_REFUSAL_LIST(X)                                                                        \
	X(NONE, "none", "nothing is wrong")                                                        \
	X(PAWS, "paws", "older timestamp than the last (RFC 7323, 5)")                             \
	X(TIMESTAMP, "no_timestamp", "timestamp missing where both ends use them")                 \
	X(BEFORE, "seq_before", "all of it came before")                                           \
	X(AFTER, "seq_after", "beyond the window that was offered")                                \
	X(SYN, "syn", "SYN in an open connection (RFC 5961, 4)")                                   \
	X(RST, "rst", "reset that is not at the next number (RFC 5961, 3)")                        \
	X(NO_ACK, "no_ack", "neither SYN, RST nor ACK")                                            \
	X(ACK, "ack", "acknowledges what was not sent, or long before (RFC 5961, 5)")              \
	X(HANDSHAKE, "handshake", "does not acknowledge our SYN")                                  \
	X(ROOM, "no_room", "no memory to remember bytes out of order")                             \
	X(ENDED, "ended", "comes behind a reset, in the same turn")

enum tcp_refusal {
#define TCP_REFUSAL_ENUM(symbol, name, text) TCP_REFUSAL_##symbol,
	TCP_REFUSAL_LIST(TCP_REFUSAL_ENUM)
#undef TCP_REFUSAL_ENUM
		TCP_REFUSALS,
};

struct tcp_settings {
	uint32_t rto_min_ms;   /* [200] */
	uint32_t rto_max_ms;   /* [60000] */
	uint32_t ack_delay_ms; /* [10] an acknowledgement waits this long for a reply to ride on */
	uint32_t give_up_ms;   /* [60000] without an acknowledgement while some is due */
	uint32_t keepalive_ms; /* [60000] of silence until a probe */
	uint32_t keepalive_interval_ms; /* [10000] between probes */
	uint32_t fin_wait_ms;           /* [10000] for the client's FIN after ours */
	uint16_t mss;                   /* [1460] largest payload without options that we take */
	uint8_t scale;                  /* [7] of our windows */
	uint8_t keepalive_probes;       /* [3] without an answer end the connection */
	uint8_t syn_retries;            /* [3] */
	uint8_t initial_segments;       /* [10] RFC 6928 */
	bool sack, timestamps, ecn;     /* [true, true, false] */
	const struct tcp_congestion *congestion; /* [&tcp_cubic] */
};
extern const struct tcp_settings tcp_settings_default;

/* One segment that was sent and is not acknowledged. */
struct tcp_sent {
	uint32_t seq;
	uint32_t time_us; /* of its last transmission */
	uint16_t length;  /* of payload */
	uint8_t flags;    /* TCP_SENT_* */
	uint8_t sends;
};

#define TCP_SENT_SACKED 1
#define TCP_SENT_LOST   2 /* and, unless AGAIN is set, to be sent again */
#define TCP_SENT_AGAIN  4 /* a retransmission is under way */
#define TCP_SENT_FIN    8

#define TCP_CHUNK_SENT 41
/* Records of a connection, so that no acknowledgement has more to judge. */
#define TCP_SENT_MAX 4096

/* Its records are counted by what they are, so that one with nothing to judge is passed over. */
struct tcp_chunk {
	struct tcp_chunk *next;
	uint8_t n_sacked, n_lost, n_twice, n_often; /* see struct tcp_active */
	uint32_t often_us; /* none of the last was sent before, if there is one */
	struct tcp_sent sent[TCP_CHUNK_SENT];
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct tcp_chunk) <= 512, "eight cache lines");

struct tcp_cursor {
	struct tcp_chunk *chunk;
	uint32_t index;
};

#define TCP_HOLES_MAX 128

/* Bytes that came out of order: ranges in order of numbers, none of which touch. */
struct tcp_held {
	struct tcp_held *next; /* of the pool */
	uint32_t n;
	uint32_t n_recent;
	uint32_t recent[TCP_SACKS_MAX]; /* a number in each range that grew last, newest first */
	struct tcp_range range[TCP_HOLES_MAX];
};

/* The part of a connection that exists only while segments are unacknowledged, other than a lone
 * one, or bytes are out of order. */
struct tcp_active {
	struct tcp_active *next; /* of the pool */
	struct tcp_held *held;   /* NULL: nothing is out of order */
	/* Records of what is sent, oldest first: from first.index of the first chunk on. */
	struct tcp_cursor first;
	struct tcp_chunk *last;
	uint32_t last_n; /* records of the last chunk, from its start on */
	uint32_t n_sent, n_sacked;
	uint32_t n_lost;        /* records to be sent again */
	uint32_t n_twice, n_often; /* under way, and sent twice, or more often */
	struct tcp_cursor lost; /* none before this one has to be sent again */
	uint32_t lost_offset;   /* bytes of it that were sent again: it is longer than a segment may
				   be now */
	/* RFC 8985, 6.2: of the segment sent last among those delivered */
	uint32_t rack_us, rack_end, rack_rtt_us;
	uint32_t highest;     /* one past the highest number delivered: reveals reordering */
	uint32_t dsack_round; /* a window grows at most once until this is acknowledged */
	uint32_t tlp_end;     /* of the probe under way; see tcp_connection.tlp */
	uint32_t prr_delivered, prr_out, prr_flight; /* bytes: RFC 9937 */
	/* Values from before a reduction, to restore them if it proves wrong. */
	uint32_t undo_cwnd, undo_ssthresh, undo_from, undo_ts;
	uint32_t undo_sends;    /* retransmissions that no duplicate SACK has named */
	bool undo;              /* the undo_ fields are valid */
	struct tcp_range dsack; /* to be reported once (RFC 2883); empty: none */
} __attribute__((aligned(64)));

enum tcp_timer {
	TCP_TIMER_RTO,
	TCP_TIMER_PROBE, /* RFC 8985, 7: tail loss */
	TCP_TIMER_ACK,
	TCP_TIMER_LIFE,    /* keepalive; the end of SYN-RECEIVED and FIN-WAIT-2 */
	TCP_TIMER_REORDER, /* RFC 8985, 6.2: what is late may be lost */
	TCP_TIMER_PERSIST, /* RFC 9293, 3.8.6.1: the client's window is closed */
	TCP_TIMERS,
};

enum tcp_phase {
	TCP_PHASE_OPEN,
	TCP_PHASE_REDUCED,  /* after a mark: until what was under way is acknowledged */
	TCP_PHASE_RECOVERY, /* after a loss */
	TCP_PHASE_TIMEOUT,  /* after the retransmission timer */
};

/* State of congestion control, a struct per algorithm (its file). */
union tcp_control {
	struct {
		float w_max, k, w_est; /* segments, seconds, segments */
		uint32_t epoch_us;     /* 0: none */
	} cubic;
	struct {
		uint32_t acked, marked; /* bytes in this window */
		uint32_t window_end;
		float alpha;
	} dctcp;
};

/*
 * Zeroed memory is a closed connection. What each segment of a connection needs lies together, up
 * to TCP_TIMER_LIFE in <timer_ms>, so that its owner need not ask for the rest.
 */
struct tcp_connection {
	/* names as in RFC 9293, 3.3.1 */
	uint32_t snd_una, snd_nxt;
	uint32_t snd_end; /* one past what the owner has queued */
	uint32_t snd_wnd, snd_wl1, snd_wnd_max;
	uint32_t rcv_nxt;
	uint32_t rcv_limit; /* one past what the owner takes */
	uint32_t rcv_edge;  /* one past what the client was told; never goes back */
	uint32_t rcv_acked; /* rcv_nxt of the last segment sent */
	uint32_t ts_recent, ts_recent_ms, ts_offset;
	uint32_t cwnd, ssthresh, pipe; /* bytes */
	union {
		uint32_t recover; /* end of the phase that is not OPEN */
		uint32_t lone_us; /* in OPEN, if <lone>: when the segment was sent */
	};
	uint32_t srtt_us, rttvar_us, rtt_min_us;
	uint32_t rto_ms; /* without back-off */
	uint32_t heard_ms, sent_ms;
	uint32_t progress_ms; /* when the client last acknowledged something, or nothing was due */
	struct tcp_active *active;
	uint16_t mss;              /* of payload, options of every segment taken off */
	uint8_t state;             /* enum tcp_state */
	uint8_t phase : 7;         /* enum tcp_phase */
	bool reset_challenged : 1; /* the last challenge answered a reset */
	uint8_t timers;            /* bits of enum tcp_timer */
	uint8_t snd_scale, rcv_scale;
	uint8_t backoff; /* of the retransmission timer */
	uint8_t probes;  /* keepalives or window probes without an answer */
	uint8_t reorder; /* RFC 8985: quarters of the smallest RTT that a segment may be late by */
	uint8_t reorder_left; /* recoveries for which <reorder> stays */
	uint8_t duplicates;   /* acknowledgements, from clients without SACK */
	uint8_t ack_segments; /* full ones since the last acknowledgement */
	bool ack_now : 1;   /* send an acknowledgement at once */
	bool probe_now : 1; /* send a segment that makes the client answer */
	bool rst_now : 1;
	bool syn_now : 1;  /* send the SYN-ACK */
	bool tail_now : 1; /* the tail loss probe is due */
	bool push_now : 1; /* send what the client's window takes, however little */
	bool ece : 1, cwr_now : 1;
	bool fin_queued : 1, fin_sent : 1, fin_acked : 1;
	bool fin_known : 1, fin_received : 1;
	bool tlp : 1, tlp_again : 1; /* a probe is under way; it was a retransmission */
	bool reordered : 1;
	bool sack : 1, timestamps : 1, ecn : 1, scales : 1;
	bool lone : 1; /* all that is under way is one segment, sent once: it has no record */
	uint8_t reopened : 3; /* times that the window, closed before, is still to be told again */
	uint32_t timer_ms[TCP_TIMERS]; /* those whose bit in <timers> is set */
	uint32_t irs;
	uint32_t fin_seq; /* of the client's FIN, if fin_known */
	uint32_t challenge_ms;
	uint32_t retransmits; /* segments sent again, for people */
	union tcp_control control;
};

#define TCP_NEW_MAX 8

/* Bytes of a segment's payload that never came before. */
struct tcp_new {
	uint32_t offset, length; /* in the payload */
	uint32_t seq;
};

/* The effect of one segment. */
struct tcp_received {
	uint8_t refusal; /* enum tcp_refusal; others than NONE changed nothing, but an answer may
			    be due: call tcp_next() */
	uint8_t n_new;
	bool established;  /* now */
	bool finished;     /* the client's FIN came, in order, now */
	bool reset;        /* by the client: the connection is closed */
	bool closed;       /* CLOSED or TIME_WAIT now: the owner releases it */
	uint32_t acked;    /* bytes of ours that were acknowledged now */
	uint32_t advanced; /* bytes that are in order now and were not before */
	struct tcp_new new[TCP_NEW_MAX];
};

/* Events since the stack's start; only its owner writes. X(name, "meaning") */
#define TCP_COUNTER_LIST(X)                                                                        \
	X(segments_in, "segments received")                                                        \
	X(segments_out, "segments to send")                                                        \
	X(tso_out, "packets of several segments, which the port cuts")                             \
	X(retransmits, "segments sent again")                                                      \
	X(timeouts, "retransmission timeouts")                                                     \
	X(tail_probes, "tail loss probes")                                                         \
	X(recoveries, "recoveries after a loss")                                                   \
	X(undone, "reductions undone because nothing was lost")                                    \
	X(duplicates_in, "segments of which all bytes had come before")                            \
	X(dsacks_in, "reports that a retransmission was not needed")                               \
	X(window_probes, "probes of a closed window")                                              \
	X(windows_again, "windows told again after they opened, as nothing came")                  \
	X(keepalives, "keepalive probes")                                                          \
	X(challenges, "challenge acknowledgements")                                                \
	X(out_of_order, "segments out of order")                                                   \
	X(no_memory, "segments not sent or not taken for want of memory")                          \
	X(gave_up, "connections ended because the client did not answer")                          \
	X(cookies_out, "SYNs answered with a cookie, as the backlog was full")                     \
	X(cookies_in, "connections opened by a cookie")                                            \
	X(windows_closed, "windows that closed for want of memory for more bytes")                 \
	X(pipeline_full, "times that a connection had as many open requests as it may")            \
	X(replies_full, "times that the next request was not read for want of room for its reply")

struct tcp_counters {
#define TCP_COUNTER_FIELD(name, text) uint64_t name;
	TCP_COUNTER_LIST(TCP_COUNTER_FIELD)
#undef TCP_COUNTER_FIELD
	uint64_t refused[TCP_REFUSALS];
};

/* Shared by the connections of one thread. */
struct tcp_stack {
	const struct tcp_settings *settings;
	uint32_t now_us, now_ms;
	uint32_t cookie_ms;       /* when the last cookie was given, if one was */
	struct tcp_chunk *chunks; /* free ones, by <next> */
	struct tcp_active *actives;
	struct tcp_held *helds;
	uint32_t n_chunks; /* free ones */
	uint32_t n_aside;  /* of these, for active parts that have none, in use or not */
	struct tcp_counters counters;
};

/* Bytes that pools of these sizes take, in objects. */
size_t tcp_stack_bytes(uint32_t actives, uint32_t chunks, uint32_t helds);
/* Makes them in <memory>, which the caller owns, aligned to a cache line. */
void tcp_stack_init(struct tcp_stack *stack, const struct tcp_settings *settings, uint32_t actives,
		    uint32_t chunks, uint32_t helds, void *memory);

/*
 * Opens <c> by the client's SYN, with <window> bytes granted. <mss>: what the path to the client
 * takes. <iss> and <ts_offset> cannot be guessed by others (RFC 9293, 3.4.1; 7323, 7.1).
 */
void tcp_open(const struct tcp_stack *stack, struct tcp_connection *c, const struct tcp_header *syn,
	      uint16_t mss, uint32_t window, uint32_t iss, uint32_t ts_offset);

/*
 * Takes one segment of <c>. <marked>: it came with ECN's CE. New bytes are the owner's to keep:
 * they are acknowledged by the next segment, and will not come again. A segment that is refused with
 * TCP_REFUSAL_HANDSHAKE is answered by the owner, with the reset of tcp_reset_for(); the handshake
 * goes on (RFC 9293, 3.10.7.4).
 */
void tcp_receive(struct tcp_stack *stack, struct tcp_connection *c, const struct tcp_header *h,
		 bool marked, struct tcp_received *out);

/*
 * The owner takes <bytes> beyond what is in order, rounded up to the unit of windows (1 << scale).
 * The client may send all that it was ever offered: a smaller number takes effect as bytes come.
 */
static inline void tcp_grant(struct tcp_connection *c, uint32_t bytes)
{
	uint32_t left = c->rcv_edge - c->rcv_nxt, unit = 1u << c->rcv_scale, more;

	bytes = (bytes + unit - 1) & ~(unit - 1);
	c->rcv_limit = sequence_max(c->rcv_limit, c->rcv_nxt + bytes);
	more = c->rcv_limit - c->rcv_edge;
	/* Offer more in steps that are worth a segment (RFC 9293, 3.8.6.2.2), or at once if the
	 * client may be waiting for it. */
	if (more >= c->mss && more < INT32_MAX && c->state >= TCP_ESTABLISHED && !c->fin_received &&
	    (left < 2u * c->mss || left < (c->rcv_limit - c->rcv_nxt) / 2))
		c->ack_now = true;
}

/* <bytes> more may be sent, from snd_end on. Not after tcp_close(). */
static inline void tcp_queue(struct tcp_connection *c, uint32_t bytes)
{
	if (!c->fin_queued && c->state != TCP_CLOSED)
		c->snd_end += bytes;
}

/* Send a FIN after all that is queued. */
void tcp_close(struct tcp_connection *c);

/* Send a reset and forget what is queued. The state is CLOSED once tcp_next() has given it. */
void tcp_abort(struct tcp_connection *c);

/* Acknowledge at once: no reply will soon carry it. */
void tcp_acknowledge(struct tcp_connection *c);

/* The path takes <mss> bytes of payload and options only (RFC 1191, 8201). */
void tcp_set_mss(struct tcp_connection *c, uint16_t mss);

/* There is certainly no segment to send, and nothing for tcp_next() to do: most connections, most
 * of the time. */
static inline bool tcp_is_quiet(const struct tcp_connection *c)
{
	/* A FIN has a number when it was sent. */
	return c->snd_nxt == c->snd_end + c->fin_queued && !c->ack_now && !c->probe_now &&
	       !c->rst_now && !c->syn_now && !c->tail_now &&
	       !(c->timers & 1u << TCP_TIMER_PERSIST) &&
	       (c->active == NULL || c->active->n_lost == 0);
}

/*
 * The next segment to send: <length> bytes from <seq> on, if <length> is not 0. False: none now.
 * The caller sends it; a segment that does not leave counts as lost on the way.
 */
bool tcp_next(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_header *out);

/* The acknowledgement that is owed, without what else is to be sent, which waits. False: none is.
 */
bool tcp_next_alone(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_header *out);

/* Is <out>, which tcp_next() has just given, a full segment of new data, with more behind it? */
static inline bool tcp_may_extend(const struct tcp_connection *c, const struct tcp_header *out)
{
	return out->length == c->mss && out->seq + out->length == c->snd_nxt &&
	       c->snd_nxt != c->snd_end;
}

/*
 * Lets the next segments leave in the packet of <out>, which tcp_next() has just given: what would
 * follow it now anyway, up to <most> bytes with it. All have <mss> bytes, but for the last, and the
 * header of <out>; FIN and PSH are for the last. Each is recorded like a segment of its own.
 * Nothing changes if <out> is sent again, or what follows needs another header.
 */
void tcp_extend(struct tcp_stack *stack, struct tcp_connection *c, uint32_t most,
		struct tcp_header *out);

/* True, and in <ms> when tcp_timer() is to be called, if any timer runs. */
static inline bool tcp_due(const struct tcp_connection *c, uint32_t *ms)
{
	unsigned int left = c->timers;

	if (left == 0)
		return false;
	*ms = c->timer_ms[__builtin_ctz(left)];
	while ((left &= left - 1) != 0)
		*ms = sequence_min(*ms, c->timer_ms[__builtin_ctz(left)]);
	return true;
}

/*
 * Runs the timers that are due. True: the connection has timed out (state CLOSED); if rst_now is
 * set, tcp_next() gives the reset to send.
 */
bool tcp_timer(struct tcp_stack *stack, struct tcp_connection *c);

/* Gives memory back and zeroes <c>. */
void tcp_release(struct tcp_stack *stack, struct tcp_connection *c);

/* The reset that answers a segment to no connection (RFC 9293, 3.10.7.1). False: the segment is a
 * reset, which gets no answer.
 */
bool tcp_reset_for(const struct tcp_header *in, struct tcp_header *out);

const char *tcp_state_name(enum tcp_state state);
const char *tcp_phase_name(enum tcp_phase phase);
const char *tcp_refusal_name(enum tcp_refusal refusal);

/* Whether nothing is under way in either direction. */
static inline bool tcp_is_idle(const struct tcp_connection *c)
{
	return c->snd_una == c->snd_end && c->active == NULL;
}

/* The state has seen both SYNs. */
static inline bool tcp_is_synchronized(const struct tcp_connection *c)
{
	return c->state >= TCP_ESTABLISHED;
}

#endif
