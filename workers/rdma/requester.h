/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC requester: sends RDMA WRITEs from mbufs and keeps them until the peer has acknowledged them
 * (IBTA volume 1, 9.7.3 to 9.7.5). The payload stays where it is: headers go into the mbuf's
 * headroom, pad and ICRC behind the data; a message of several packets is cut into indirect mbufs
 * that point into the original. Retransmission sends the same bytes again (go-back-N).
 *
 * Owner: one thread; all calls are its. Times are TSC cycles.
 */
#ifndef RDMA_REQUESTER_H
#define RDMA_REQUESTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_mbuf.h>

#include "rdma/dcqcn.h"
#include "rdma/path.h"
#include "runtime/txq.h"

/* Packets that may be unacknowledged. */
#define REQUESTER_WINDOW 1024
/* Mbufs of one packet at most: headers, a piece of the message, pad and ICRC. */
#define REQUESTER_SEGMENTS 3
/* Packets sent again per call after a loss, so that a retransmission does not cause the next. */
#define REQUESTER_RESEND_BURST 64
/* Who asks for the deadline is told to go on with a resend after so long; one who polls more often
 * goes on sooner. */
#define REQUESTER_RESEND_US 1000

/*
 * After a loss fewer packets may be unacknowledged, at least so many: what is behind a lost one
 * travels for nothing. One more for every REQUESTER_GROWTH that are acknowledged.
 */
#define REQUESTER_LIMIT_MIN 64
#define REQUESTER_GROWTH    32
/*
 * So many packets without a request for an acknowledgement are enough, whatever the caller wants: a
 * limit moves with acknowledgements only. More than a burst and its descriptors, which do ask.
 */
#define REQUESTER_ACK_EVERY 48
/* The first early retry comes after this part of the acknowledgement timeout. */
#define REQUESTER_EARLY 32

enum requester_error {
	REQUESTER_OK = 0,
	REQUESTER_RETRY_EXCEEDED, /* the peer stayed silent */
	REQUESTER_NAK,            /* the peer refused: see <nak> */
	REQUESTER_RNR_EXCEEDED,   /* the peer was never ready to receive */
	REQUESTER_DEVICE,         /* the RDMA device failed (engine verbs) */
};

struct requester_stats {
	uint64_t packets, resent, acks, naks, timeouts, early, rnr_naks, copies, notifications;
};

struct requester;

/* Requesters of one owner that hold packets back until their rate allows them. All zero is empty.
 */
LIST_HEAD(requester_list, requester);

/* Somebody else who sends what a requester's window holds, as verbs_send.h does. */
struct requester_engine {
	/* As requester_write(). */
	int (*write)(struct requester *rq, struct rte_mbuf *m, uint64_t va, uint32_t rkey,
		     uint32_t imm, uint32_t flags);
	/* Nothing more comes soon: hand over what was written. */
	void (*ring)(struct requester *rq);
};

struct requester {
	const struct roce_path *path;
	struct txq *tx;
	struct rte_mempool *pool; /* small mbufs for headers and trailers */
	const uint64_t *clock;    /* the owner's time, or NULL */
	const uint64_t *drained;  /* what arrived before this time was taken, or NULL */
	uint32_t *held;           /* packets in windows, all of one owner's requesters together */
	bool multi_segment;       /* the port sends REQUESTER_SEGMENTS; if not, pieces are copied */
	uint32_t next_psn;        /* the next packet gets this */
	uint32_t una_psn;         /* oldest that is not acknowledged */
	uint32_t send_psn;        /* next to hand to the port: behind next_psn after a loss */
	uint32_t sent_psn;        /* one past the furthest ever handed to the port */
	uint32_t limit;      /* packets under way at most: REQUESTER_WINDOW until one is lost */
	uint32_t grown;      /* acknowledged towards the next step of <limit> */
	uint32_t unasked;    /* built since one asked for an acknowledgement */
	uint64_t timer;      /* when una_psn last moved, or a packet left late */
	uint64_t hold_until; /* RNR NAK: send nothing before */
	uint64_t timeout;
	uint8_t retry_limit, retries;
	uint8_t rnr_retry, rnr_retries;
	uint8_t early; /* retries since una_psn last moved, before the timeout */
	/* The time to an acknowledgement, of one packet at a time. Never of one sent again. */
	bool timing;
	uint32_t timed_psn, timed_una; /* it, and una_psn when it left */
	uint64_t timed_at;
	uint64_t rtt, rtt_min; /* rarely longer; the shortest */
	uint64_t sample;       /* the last, in which so many were acknowledged: */
	uint32_t sample_packets;
	bool went_back; /* to una_psn, because of a NAK: another one brings nothing new */
	uint8_t nak;    /* syndrome of a fatal NAK; set before <error> */
	enum requester_error error; /* any thread may read it (atomic) */
	/* NULL: we send. With an engine a PSN is one of its work requests. */
	const struct requester_engine *engine;
	void *engine_context;
	bool paced; /* packets wait for the rate to allow them: on the list <waiting> */
	struct dcqcn rate;
	struct requester_list *waiting;
	struct requester_stats stats;
	LIST_ENTRY(requester) also_waiting;
	struct rte_mbuf *window[REQUESTER_WINDOW];
};

struct requester_params {
	const struct roce_path *path; /* outlives the requester */
	struct txq *tx;
	struct rte_mempool *pool;
	uint32_t *held; /* counted up and down; outlives the requester */
	/* What time it is for the owner's turn, TSC cycles. NULL: the TSC is read when needed. */
	const uint64_t *clock;
	/*
	 * The owner's drained.h: an acknowledgement is missing when it had not arrived by that
	 * time. NULL: when it is not in by the time that requester_poll() is called with.
	 */
	const uint64_t *drained;
	bool multi_segment;
	uint32_t psn;        /* first PSN */
	uint8_t ack_timeout; /* 4.096 us x 2^n; 0 = never */
	uint8_t retry_limit;
	uint64_t line_rate; /* bytes per second; 0: no rate control */
	/*
	 * Of one owner's requesters together: those that hold packets back for the rate's sake.
	 * While there are any, requester_poll_waiting() is due every turn. NULL: no list is kept.
	 */
	struct requester_list *waiting;
	uint8_t rnr_retry; /* RNR NAKs without progress that are put up with; or ROCE_RNR_FOREVER */
};

void requester_init(struct requester *rq, const struct requester_params *params);
/*
 * Frees what is not acknowledged. Once nothing is, it touches nothing of the owner's, so that any
 * thread may do it again.
 */
void requester_fini(struct requester *rq);

#define REQUESTER_IMM         0x1u /* WRITE WITH IMMEDIATE */
#define REQUESTER_ACK_REQUEST 0x2u /* ask for an acknowledgement of the last packet */

/* Packets that a message of <length> bytes takes. */
static inline uint32_t requester_packets(const struct requester *rq, uint32_t length)
{
	return length <= rq->path->mtu ? 1 : (length + rq->path->mtu - 1) / rq->path->mtu;
}

static inline uint32_t requester_unacked(const struct requester *rq)
{
	return roce_psn_diff(rq->next_psn, rq->una_psn);
}

/* Is there room in the window and the transmit queue for <packets>? */
static inline bool requester_room(const struct requester *rq, uint32_t packets)
{
	return requester_unacked(rq) + packets <= REQUESTER_WINDOW && txq_room(rq->tx) >= packets;
}

/*
 * WRITE the mbuf's data to <va>. The caller has checked requester_room(). Takes <m> over (one
 * segment) and returns 0; -ENOMEM (packet memory) or -EPIPE (queue pair in error) leave it with the
 * caller and nothing was sent.
 */
int requester_write(struct requester *rq, struct rte_mbuf *m, uint64_t va, uint32_t rkey,
		    uint32_t imm, uint32_t flags);

/* The end of a burst of requester_write(). */
static inline void requester_ring(struct requester *rq)
{
	if (rq->engine != NULL)
		rq->engine->ring(rq);
}

/* For engines: <m> was handed to the device, and the window holds it until requester_ack(). */
void requester_engine_sent(struct requester *rq, struct rte_mbuf *m);

/*
 * The same for a message that does not lie in one mbuf (the software RNIC reads it from memory):
 * one call per packet, in order, each with its piece of the payload. <offset> of <length> bytes
 * were given before; every piece but the last has exactly path->mtu bytes. Room is needed for one
 * packet.
 */
int requester_write_piece(struct requester *rq, struct rte_mbuf *m, uint32_t offset,
			  uint32_t length, uint64_t va, uint32_t rkey, uint32_t imm,
			  uint32_t flags);

enum requester_verdict { REQUESTER_PROGRESS, REQUESTER_OLD, REQUESTER_BEYOND, REQUESTER_FAILED };

/*
 * An ACK or NAK came from the peer. REQUESTER_OLD: says nothing new; ignored, so that repeated NAKs
 * do not multiply. REQUESTER_BEYOND: for a packet never sent; ignored.
 */
enum requester_verdict requester_ack(struct requester *rq, uint32_t psn, uint8_t syndrome,
				     uint64_t now);

/* The peer has seen congestion on the way: cut the rate. */
void requester_notify(struct requester *rq, uint64_t now);

/* Timers and what is left to retransmit. Cheap when there is nothing to do. */
void requester_poll(struct requester *rq, uint64_t now);
/* The same for all that hold packets back for the rate's sake. */
void requester_poll_waiting(struct requester_list *waiting, uint64_t now);

/*
 * When requester_poll() must be called next, or UINT64_MAX: the transmit timer, the pacer, the end
 * of a hold, or more to resend.
 */
uint64_t requester_deadline(const struct requester *rq);

#endif
