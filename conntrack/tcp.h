/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP tracking, the public header of the tcp*.c files: the state of one connection as seen from the
 * middle, and whether a segment can belong to it. Pure: no table, no clock, no packet buffer. The
 * owner of the flow owns its struct tcp_track and calls from one thread.
 *
 * Handshakes trust the server's side, which behind a load balancer is ourselves.
 */
#ifndef CONNTRACK_TCP_H
#define CONNTRACK_TCP_H

#include <stdbool.h>
#include <stdint.h>

/* Bits of the header's 14th byte (RFC 9293, 3.1). */
#define TCP_BIT_FIN 0x01
#define TCP_BIT_SYN 0x02
#define TCP_BIT_RST 0x04
#define TCP_BIT_PSH 0x08
#define TCP_BIT_ACK 0x10
#define TCP_BIT_URG 0x20

#define TCP_SCALE_MAX  14   /* RFC 7323, 2.3 */
#define TCP_SCALE_NONE 0xff /* no such option */

enum tcp_direction { TCP_FROM_CLIENT, TCP_TO_CLIENT };

/* The fields of a segment that tracking reads, in host order. */
struct tcp_segment {
	uint32_t seq, ack;
	uint32_t length; /* bytes of payload */
	uint16_t window; /* as sent, not scaled */
	uint8_t flags;   /* TCP_BIT_* */
	uint8_t scale;   /* of a SYN's window scale option, or TCP_SCALE_NONE */
	uint8_t header;  /* bytes of the header, options included */
};

/* Zeroed memory is NONE. The ends' own states (RFC 9293, 3.3.2) are in brackets. */
enum tcp_state {
	TCP_STATE_NONE,        /* nothing seen */
	TCP_STATE_SYN_SENT,    /* the client's SYN [SYN-SENT, LISTEN] */
	TCP_STATE_SYN_SENT2,   /* both ends' SYNs, none acknowledged [SYN-RECEIVED twice] */
	TCP_STATE_SYN_RECV,    /* both SYNs, one acknowledged [SYN-SENT, SYN-RECEIVED] */
	TCP_STATE_ESTABLISHED, /* both SYNs acknowledged */
	TCP_STATE_FIN_WAIT,    /* one FIN [FIN-WAIT-1, ESTABLISHED] */
	TCP_STATE_CLOSE_WAIT,  /* one FIN, acknowledged [FIN-WAIT-2, CLOSE-WAIT] */
	TCP_STATE_CLOSING,     /* both FINs, none acknowledged [CLOSING, or LAST-ACK] */
	TCP_STATE_LAST_ACK,    /* both FINs, one acknowledged [LAST-ACK, TIME-WAIT] */
	TCP_STATE_TIME_WAIT,   /* both FINs acknowledged [TIME-WAIT, CLOSED] */
	TCP_STATE_CLOSE,       /* reset [CLOSED] */
	TCP_STATES,
};

enum tcp_verdict {
	/* belongs to the connection; its numbers were updated, and the caller restarts the timer */
	TCP_VERDICT_ACCEPT,
	/* accepted, and starts a new connection: the state of the old one is gone */
	TCP_VERDICT_REOPEN,
	/* acknowledged before; pass it on, because the end that gets it answers. No change */
	TCP_VERDICT_DUPLICATE,
	/*
	 * proves nothing; pass it on, because the answer to it will. At most its SYN is saved for
	 * that
	 */
	TCP_VERDICT_CHALLENGE,
	/* cannot belong to the connection: drop it. No change */
	TCP_VERDICT_INVALID,
	TCP_VERDICTS,
};

/* Reasons of verdicts other than ACCEPT and REOPEN. X(symbol, "name", "meaning") */
#define TCP_REASON_LIST(X)                                                                         \
	X(NONE, "none", "nothing is wrong")                                                        \
	X(TRUNCATED, "truncated", "the segment ends inside the header")                            \
	X(OFFSET, "offset", "the data offset is less than five words")                             \
	X(FLAGS, "flags", "no end sends this combination of flags")                                \
	X(NOT_OPEN, "not_open", "there is no connection, and this segment does not open one")      \
	X(SIDE, "side", "SYN from the server without one from the client")                         \
	X(HANDSHAKE, "handshake", "out of order in the handshake")                                 \
	X(SEQ_AFTER, "seq_after", "beyond the receiver's window")                                  \
	X(SEQ_BEFORE, "seq_before", "more than a window before what was sent")                     \
	X(ACK_AFTER, "ack_after", "acknowledges bytes that were not sent")                         \
	X(ACK_BEFORE, "ack_before", "acknowledges more than a window before the last ACK")         \
	X(FIN, "fin", "disagrees with where a FIN ended")                                          \
	X(RST_SEQ, "rst_seq", "reset outside the window")                                          \
	X(RST_ACK, "rst_ack", "reset that does not acknowledge the SYN")                           \
	X(RST_INEXACT, "rst_inexact", "reset in the window, but not at the next number")           \
	X(SYN_AGAIN, "syn_again", "SYN in a live connection")                                      \
	X(OTHER_SYN, "other_syn", "answers another SYN than the client's")                         \
	X(OLD, "old", "all of it was acknowledged before")

enum tcp_reason {
#define TCP_REASON_ENUM(symbol, name, text) TCP_REASON_##symbol,
	TCP_REASON_LIST(TCP_REASON_ENUM)
#undef TCP_REASON_ENUM
		TCP_REASONS,
};

struct tcp_outcome {
	enum tcp_verdict verdict;
	enum tcp_reason reason;
};

/* One end of a connection: how far it has sent. Sequence numbers modulo 2^32. */
struct tcp_side {
	uint32_t first;      /* one past its SYN */
	uint32_t end;        /* one past the last number that it sent */
	uint32_t ack;        /* highest number that it acknowledged: the next that it expects */
	uint32_t window_max; /* largest window that it offered, in bytes */
};

struct tcp_side_bits {
	uint8_t scale : 4;     /* shift of its windows, if both ends scale */
	uint8_t scales : 1;    /* its SYN had the window scale option */
	uint8_t syn_acked : 1; /* the other end acknowledged its SYN */
	uint8_t fin : 1;       /* it sent a FIN; <end> is one past it */
	uint8_t fin_acked : 1; /* the other end acknowledged its FIN */
};

/* Zeroed memory is a connection of which nothing was seen. Arrays are indexed by tcp_direction. */
struct tcp_track {
	struct tcp_side side[2];
	/* The client's last SYN that got TCP_VERDICT_CHALLENGE: the server may still answer it. */
	uint32_t syn_seq;
	uint16_t syn_length, syn_window;
	uint8_t state : 4; /* enum tcp_state */
	uint8_t picked_up : 1;
	uint8_t syn_saved : 1; /* the three syn_ fields above and syn_scale are valid */
	struct tcp_side_bits bits[2];
	uint8_t syn_scale; /* or TCP_SCALE_NONE */
};
_Static_assert(sizeof(struct tcp_track) == 44, "one per flow");

/*
 * Parse the header of <length> bytes of TCP, payload included. The caller checks the checksum.
 * Returns TCP_REASON_NONE, or the reason why this is no TCP header, with <out> undefined. Options
 * end at the first malformed one, as the ends treat them.
 */
enum tcp_reason conntrack_tcp_parse(const uint8_t *tcp, uint32_t length, struct tcp_segment *out);

/*
 * Track one segment. <pickup>: take an unknown connection for established at a segment without SYN.
 * Its windows count as the largest possible ones, because its scaling is not known.
 */
struct tcp_outcome conntrack_tcp_track(struct tcp_track *track, const struct tcp_segment *segment,
				       enum tcp_direction from, bool pickup);

/* Default timeouts of a silent connection by state, in ms, for the caller that keeps the time. */
extern const uint32_t conntrack_tcp_timeout_ms[TCP_STATES];

/*
 * Names for the CLI and JSON: "established", "challenge", "seq_after"; "unknown" when out of range.
 */
const char *conntrack_tcp_state_name(enum tcp_state state);
const char *conntrack_tcp_verdict_name(enum tcp_verdict verdict);
const char *conntrack_tcp_reason_name(enum tcp_reason reason);
const char *conntrack_tcp_reason_text(enum tcp_reason reason);

#endif
