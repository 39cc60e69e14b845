/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RC requester's public header, for requester.c and requester_write.c: sends RDMA WRITEs from
 * mbufs and keeps them until the peer has acknowledged them (IBTA volume 1, 9.7.3 to 9.7.5). The
 * payload is not copied: headers go into the mbuf's headroom, pad and ICRC behind the data; a
 * message of several packets is cut into indirect mbufs that point into the original.
 * Retransmission sends the same bytes again (go-back-N).
 *
 * Owner: one thread makes all calls. Times are TSC cycles.
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

/* Most unacknowledged packets. */
#define REQUESTER_WINDOW 1024
/* Most mbufs of one packet: headers, a piece of the message, pad and ICRC. */
#define REQUESTER_SEGMENTS 3
/* Packets resent per call after a loss, so that one retransmission does not cause the next. */
#define REQUESTER_RESEND_BURST 64
/*
 * us until requester_deadline() asks for the next part of a resend; an earlier poll also sends it.
 */
#define REQUESTER_RESEND_US 1000

/*
 * After a loss the limit of packets under way falls, but not below REQUESTER_LIMIT_MIN, because the
 * packets behind a lost one are sent in vain. It grows by one per REQUESTER_GROWTH acknowledged.
 */
#define REQUESTER_LIMIT_MIN 64
#define REQUESTER_GROWTH    32
/*
 * Of this many packets in a row at least one asks for an acknowledgement, even if the caller does
 * not, because a limit only grows with acknowledgements. The number is larger than a burst and its
 * descriptors, which do ask.
 */
#define REQUESTER_ACK_EVERY 48
/* The first early retry comes after at least 1/REQUESTER_EARLY of the acknowledgement timeout. */
#define REQUESTER_EARLY 32

enum requester_error {
	REQUESTER_OK = 0,
	REQUESTER_RETRY_EXCEEDED, /* the peer did not answer */
	REQUESTER_NAK,            /* the peer refused a packet: see <nak> */
	REQUESTER_RNR_EXCEEDED,   /* the peer was never ready to receive */
	REQUESTER_DEVICE,         /* the RDMA device failed (engine verbs) */
};

struct requester_stats {
	uint64_t packets, resent, acks, naks, timeouts, early, rnr_naks, copies, notifications;
};

struct requester;

/* Requesters of one owner with packets that wait for their rate. All zero is empty. */
LIST_HEAD(requester_list, requester);

/* Calls that replace the requester's own sending; verbs_send.h is one. */
struct requester_engine {
	/* As requester_write(). */
	int (*write)(struct requester *rq, struct rte_mbuf *m, uint64_t va, uint32_t rkey,
		     uint32_t imm, uint32_t flags);
	/* The end of a burst: hand its writes to the device. */
	void (*ring)(struct requester *rq);
};

struct requester {
	const struct roce_path *path;
	struct txq *tx;
	struct rte_mempool *pool; /* small mbufs for headers and trailers */
	const uint64_t *clock;    /* time of the owner's iteration, or NULL */
	const uint64_t *drained;  /* all that arrived before this time was taken, or NULL */
	uint32_t *held;           /* packets in the windows of all of the owner's requesters */
	bool multi_segment;       /* the port sends REQUESTER_SEGMENTS; else pieces are copied */
	uint32_t next_psn;        /* PSN of the next packet to build */
	uint32_t una_psn;         /* oldest PSN that is not acknowledged */
	uint32_t send_psn;        /* next PSN for the port: behind next_psn after a loss */
	uint32_t sent_psn;        /* one past the highest PSN that was handed to the port */
	uint32_t limit;           /* most packets under way: REQUESTER_WINDOW until one is lost */
	uint32_t grown;           /* packets acknowledged towards the next step of <limit> */
	uint32_t unasked;         /* packets built since one asked for an acknowledgement */
	uint64_t timer;           /* when una_psn last moved, or a delayed packet left */
	uint64_t hold_until;      /* after an RNR NAK: send nothing before this time */
	uint64_t timeout;
	uint8_t retry_limit, retries;
	uint8_t rnr_retry, rnr_retries;
	uint8_t early; /* early retries since una_psn last moved */
	/* Time to an acknowledgement, measured on one packet at a time that was sent once. */
	bool timing;
	uint32_t timed_psn, timed_una; /* the packet; una_psn when it left */
	uint64_t timed_at;
	uint64_t rtt, rtt_min;   /* a recent maximum that decays; the minimum */
	uint64_t sample;         /* the last measured time */
	uint32_t sample_packets; /* packets acknowledged within <sample> */
	bool went_back;          /* a NAK already sent us back to una_psn: another adds nothing */
	uint8_t nak;             /* syndrome of a fatal NAK; set before <error> */
	enum requester_error error; /* any thread may read it (atomic) */
	/* NULL: the requester sends. With an engine, a PSN counts its work requests. */
	const struct requester_engine *engine;
	void *engine_context;
	bool paced; /* packets wait for their rate; then it is on the list <waiting> */
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
	uint32_t *held; /* see struct requester; outlives the requester */
	/* Time of the owner's iteration, TSC cycles. NULL: the TSC is read when needed. */
	const uint64_t *clock;
	/*
	 * struct drained's <at>: an acknowledgement is missing when it had not arrived by that
	 * time. NULL: by the time of the requester_poll() call.
	 */
	const uint64_t *drained;
	bool multi_segment;
	uint32_t psn;        /* first PSN */
	uint8_t ack_timeout; /* 4.096 us x 2^n; 0 = never */
	uint8_t retry_limit;
	uint64_t line_rate; /* bytes per second; 0: no rate control */
	/*
	 * List of the owner's requesters with packets that wait for their rate. While it is not
	 * empty, call requester_poll_waiting() every iteration. NULL: no list is kept.
	 */
	struct requester_list *waiting;
	uint8_t rnr_retry; /* RNR NAKs without progress before it fails; or ROCE_RNR_FOREVER */
};

void requester_init(struct requester *rq, const struct requester_params *params);
/*
 * Free all unacknowledged packets. A second call touches nothing of the owner's, so any thread may
 * make it.
 */
void requester_fini(struct requester *rq);

#define REQUESTER_IMM         0x1u /* WRITE WITH IMMEDIATE */
#define REQUESTER_ACK_REQUEST 0x2u /* ask for an acknowledgement of the last packet */

/* Number of packets of a message of <length> bytes. */
static inline uint32_t requester_packets(const struct requester *rq, uint32_t length)
{
	return length <= rq->path->mtu ? 1 : (length + rq->path->mtu - 1) / rq->path->mtu;
}

static inline uint32_t requester_unacked(const struct requester *rq)
{
	return roce_psn_diff(rq->next_psn, rq->una_psn);
}

/* True when the window and the transmit queue have room for <packets>. */
static inline bool requester_room(const struct requester *rq, uint32_t packets)
{
	return requester_unacked(rq) + packets <= REQUESTER_WINDOW && txq_room(rq->tx) >= packets;
}

/*
 * WRITE the mbuf's data, one segment, to <va>. The caller has checked requester_room(). 0: the
 * requester owns <m> now. -ENOMEM (packet memory) or -EPIPE (queue pair in error): nothing was sent
 * and the caller keeps <m>.
 */
int requester_write(struct requester *rq, struct rte_mbuf *m, uint64_t va, uint32_t rkey,
		    uint32_t imm, uint32_t flags);

/*
 * The same for data whose surroundings belong to others: headers and trailers go into mbufs of
 * their own. <m> may be indirect.
 */
int requester_write_shared(struct requester *rq, struct rte_mbuf *m, uint64_t va, uint32_t rkey,
			   uint32_t flags);

/* End a burst of requester_write(). */
static inline void requester_ring(struct requester *rq)
{
	if (rq->engine != NULL)
		rq->engine->ring(rq);
}

/* For engines: <m> was handed to the device; the window holds it until requester_ack(). */
void requester_engine_sent(struct requester *rq, struct rte_mbuf *m);

/*
 * WRITE one packet's piece of a message that is not in one mbuf (the software RNIC reads messages
 * from memory). One call per packet, in order: <offset> of <length> bytes were written before, and
 * every piece but the last has exactly path->mtu bytes. Needs room for one packet.
 */
int requester_write_piece(struct requester *rq, struct rte_mbuf *m, uint32_t offset,
			  uint32_t length, uint64_t va, uint32_t rkey, uint32_t imm,
			  uint32_t flags);

enum requester_verdict { REQUESTER_PROGRESS, REQUESTER_OLD, REQUESTER_BEYOND, REQUESTER_FAILED };

/*
 * Process an ACK or NAK of the peer. REQUESTER_OLD: it adds nothing and was ignored, so that
 * repeated NAKs do not multiply. REQUESTER_BEYOND: it is for a packet that was never sent, and was
 * ignored.
 */
enum requester_verdict requester_ack(struct requester *rq, uint32_t psn, uint8_t syndrome,
				     uint64_t now);

/* The peer reported congestion: cut the rate. */
void requester_notify(struct requester *rq, uint64_t now);

/* Run the timers and send what is left to retransmit. Cheap when there is nothing to do. */
void requester_poll(struct requester *rq, uint64_t now);
/* Call requester_poll() for all requesters with packets that wait for their rate. */
void requester_poll_waiting(struct requester_list *waiting, uint64_t now);

/*
 * Time of the next requester_poll() that is needed, or UINT64_MAX: for the acknowledgement timer,
 * the pacer, the end of an RNR hold, or the rest of a resend.
 */
uint64_t requester_deadline(const struct requester *rq);

#endif
