/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One TCP connection as seen from the middle: which state both ends are in together, and whether a
 * segment can belong to it. Pure: no table, no clock, no packet buffer. Whoever owns the flow owns
 * its struct tcp_track and calls from one thread.
 *
 * The server's side is trusted as far as handshakes go: behind a load balancer it is ourselves.
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

/* What of a segment matters here, in host order. */
struct tcp_segment {
	uint32_t seq, ack;
	uint32_t length; /* bytes of payload */
	uint16_t window; /* as sent, not scaled */
	uint8_t flags;   /* TCP_BIT_* */
	uint8_t scale;   /* of a SYN's window scale option, or TCP_SCALE_NONE */
	uint8_t header;  /* bytes, options included */
};

/* NONE is what zeroed memory says. The ends' own states (RFC 9293, 3.3.2) are in brackets. */
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
	TCP_VERDICT_ACCEPT, /* belongs to the connection, whose numbers and timer move on */
	TCP_VERDICT_REOPEN, /* accepted, and begins a new connection: what was known of the old is
			       over */
	TCP_VERDICT_DUPLICATE, /* seen and acknowledged before; the end that gets it answers. No
				  change */
	TCP_VERDICT_CHALLENGE, /* proves nothing, but the end that gets it must see it and answer.
				* No change of state or windows; what the answer may refer to is
				* remembered */
	TCP_VERDICT_INVALID, /* cannot belong to the connection: drop it. Nothing at all has changed
			      */
	TCP_VERDICTS,
};

/* Why a verdict is not ACCEPT or REOPEN. X(symbol, "name", "what it means") */
#define TCP_REASON_LIST(X)                                                                         \
	X(NONE, "none", "nothing is wrong")                                                        \
	X(TRUNCATED, "truncated", "ends inside the header")                                        \
	X(OFFSET, "offset", "data offset of less than five words")                                 \
	X(FLAGS, "flags", "combination of flags that no end sends")                                \
	X(NOT_OPEN, "not_open", "no connection, and this does not open one")                       \
	X(SIDE, "side", "SYN of the server, without one of the client")                            \
	X(HANDSHAKE, "handshake", "not what follows in the handshake")                             \
	X(SEQ_AFTER, "seq_after", "beyond the receiver's window")                                  \
	X(SEQ_BEFORE, "seq_before", "more than a window before what was sent")                     \
	X(ACK_AFTER, "ack_after", "acknowledges what was not sent")                                \
	X(ACK_BEFORE, "ack_before", "acknowledges less than a window ago")                         \
	X(FIN, "fin", "disagrees with where a FIN ended")                                          \
	X(RST_SEQ, "rst_seq", "reset outside the window")                                          \
	X(RST_ACK, "rst_ack", "reset that does not acknowledge the SYN")                           \
	X(RST_INEXACT, "rst_inexact", "reset in the window, but not at the next number")           \
	X(SYN_AGAIN, "syn_again", "SYN in a connection that lives")                                \
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

/* What one end has said so far; sequence numbers modulo 2^32. */
struct tcp_side {
	uint32_t first;      /* one past its SYN */
	uint32_t end;        /* one past the last number that it sent */
	uint32_t ack;        /* highest number that it acknowledged: what it expects next */
	uint32_t window_max; /* largest window that it offered, in bytes */
};

struct tcp_side_bits {
	uint8_t scale : 4;     /* shift of its windows, if both ends scale */
	uint8_t scales : 1;    /* its SYN had the option */
	uint8_t syn_acked : 1; /* by the other end, as the next two */
	uint8_t fin : 1;       /* sent; <end> is one past it */
	uint8_t fin_acked : 1;
};

/* Zeroed memory is a connection of which nothing was seen. Both arrays by enum tcp_direction. */
struct tcp_track {
	struct tcp_side side[2];
	/* The client's last SYN that got TCP_VERDICT_CHALLENGE: the server may answer it after all.
	 */
	uint32_t syn_seq;
	uint16_t syn_length, syn_window;
	uint8_t state : 4; /* enum tcp_state */
	uint8_t picked_up : 1;
	uint8_t syn_saved : 1; /* the three above, and scale: */
	struct tcp_side_bits bits[2];
	uint8_t syn_scale; /* or TCP_SCALE_NONE */
};
_Static_assert(sizeof(struct tcp_track) == 44, "one per flow");

/*
 * The header in the first bytes of <length> bytes of TCP, payload included. The check sum is the
 * caller's. TCP_REASON_NONE, or why it is no TCP header, with <out> undefined. Options end at the
 * first that is malformed, as they do at the ends.
 */
enum tcp_reason conntrack_tcp_parse(const uint8_t *tcp, uint32_t length, struct tcp_segment *out);

/*
 * A segment passes by. <pickup>: where nothing was seen before, believe a segment without SYN and
 * take the connection for established. Such a connection's windows are taken for the largest that
 * there can be, as its scaling is not known.
 */
struct tcp_outcome conntrack_tcp_track(struct tcp_track *track, const struct tcp_segment *segment,
				       enum tcp_direction from, bool pickup);

/* How long a silent connection is worth remembering: defaults for who keeps the time. */
extern const uint32_t conntrack_tcp_timeout_ms[TCP_STATES];

/* For people and JSON: "established", "challenge", "seq_after"; "unknown" for what there is not. */
const char *conntrack_tcp_state_name(enum tcp_state state);
const char *conntrack_tcp_verdict_name(enum tcp_verdict verdict);
const char *conntrack_tcp_reason_name(enum tcp_reason reason);
const char *conntrack_tcp_reason_text(enum tcp_reason reason);

#endif
