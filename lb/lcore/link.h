/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link: one RC queue pair and one ring between this lcore and one worker, as the load balancer
 * sees it (private to lb/). Keeps the credits (free slots), remembers what is in flight in which
 * slot, and gathers descriptors so that a burst for one worker shares one WRITE.
 *
 * Owner: its lcore, from link_attach() on. The control thread builds it, reads its counters, and
 * destroys it after the lcore has let go.
 */
#ifndef LB_LINK_H
#define LB_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/client_path.h"
#include "lcore/latency.h"
#include "lcore/counters.h"
#include "lcore/link_spec.h"
#include "rdma/requester.h"
#include "rdma/responder.h"
#include "ring.h"

/* Cancel words of a link that may be unacknowledged: a worker that is slow to do so keeps that many
 * of the lcore's. */
#define LINK_CANCELS_MAX 64

enum slot_state {
	SLOT_FREE = 0,
	SLOT_BUSY,
	SLOT_PROBE,     /* no client's: is the worker well? */
	SLOT_ABANDONED, /* the client has had its notice; the worker still owes an answer */
};

/* A request in flight. */
struct slot {
	uint64_t sequence; /* of its descriptor */
	uint64_t flow;     /* conntrack handle */
	uint64_t arrived;  /* TSC: when the request came */
	uint64_t deadline; /* TSC: by when it is to be answered; 0: no limit */
	uint64_t sent;     /* TSC */
	uint64_t tag;      /* first 8 bytes of the request, for a notice */
	uint16_t service;
	uint8_t state;         /* enum slot_state */
	bool untold;           /* abandoned, and the worker does not know yet */
	uint32_t chunks;       /* of the reply, so far */
	uint32_t older, newer; /* neighbours in its list; SLOT_NONE at the ends */
};
_Static_assert(sizeof(struct slot) == 64, "a cache line");

/* Slots in the order in which they came. */
struct slot_list {
	uint32_t oldest, newest; /* SLOT_NONE: none */
};

enum probe_state { PROBE_WAITING, PROBE_GOOD, PROBE_BAD };

/* What it takes to send it again; beside the slots, as few services want it. */
struct kept {
	struct rte_mbuf *packet; /* a reference to what holds the payload; NULL: not kept */
	uint16_t offset, length; /* of the payload in its buffer */
	uint8_t replays;         /* so far */
	uint32_t hash;
};

#define SLOT_NONE UINT32_MAX

struct link {
	uint32_t qpn; /* ours, see LINK_QPN */
	uint16_t worker;
	uint16_t worker_generation;
	uint16_t port; /* index of the fabric port */
	bool direct;   /* the worker is no router's: packets come from its own MAC address */
	bool dirty;    /* on the lcore's list of links with descriptors or ACKs to send */
	bool active;   /* on the lcore's list of links that housekeeping looks after */
	bool suspect;  /* its worker may have gone: no new requests */
	/* the worker's ring */
	uint32_t rkey;
	uint32_t slots; /* power of two */
	uint32_t stride;
	uint32_t batch_share; /* of what the worker runs at a time, what is this lcore's */
	uint64_t descriptors, slot_address, cancels;
	uint64_t position;      /* of the next descriptor */
	struct rte_mbuf *batch; /* descriptors not sent yet */
	uint32_t batched;
	uint32_t batch_max; /* descriptors of one descriptor WRITE, which is one packet */
	/* cancel words under way: so many at most, and the PSN of the last */
	uint32_t n_cancels, cancel_psn;
	/* credits */
	struct slot *slot;
	struct client_path *client_path; /* by slot: the reply's way back */
	struct kept *kept;               /* by slot */
	uint16_t *free_slot;             /* stack */
	uint32_t n_free;
	uint32_t kept_back; /* free slots that requests which can wait here do not get: choose.c */
	uint32_t reserved_slots, reserved_packets; /* assigned in this burst, not written yet */
	struct slot_list busy;                     /* whose clients wait, in the order of sending */
	struct slot_list untold; /* of which the worker is to be told that nobody waits */
	/* the search for clients who are to be told goes on here; SLOT_NONE: at the oldest */
	uint32_t overdue_at;
	/* the same of the searches for those whose flow has gone, and for those to be replayed */
	uint32_t swept_at, moved_at;
	uint32_t reply_shift; /* log2 of the bytes from slot to slot of the reply region */
	uint32_t reply_slot;  /* that the message being received is addressed to */
	struct rte_mbuf *reply_head, *reply_tail; /* of the message being received */
	/* after link_detach: the lcore tells the clients, then the control thread frees the link */
	struct link *next_dying; /* on the lcore's list */
	struct link *next_grave; /* on the control thread's */
	int buried;              /* atomic */
	/* engine verbs: the queue pair, until it is stopped (atomic); the control thread's */
	struct verbs_qp *qp;
	/* of its replies since the control thread has looked; both write, one may win (atomic) */
	uint64_t longest_run_ns;
	uint8_t probe;         /* enum probe_state (atomic) */
	uint32_t strangers;    /* packets from other MAC addresses than the worker's (atomic) */
	uint32_t heartbeat_ms; /* when the last came; 0 = never */
	struct lb_link_stats stats;
	struct latency *latency; /* LATENCY_LINK_SIZE bytes */
	struct roce_path path;
	struct responder responder;
	struct requester requester; /* large: the window is its tail */
};

/*
 * Queue pair numbers: the lcore in the upper 6 bits, then 18 random bits, as a number is all that a
 * congestion notification takes. The lowest 11 of them are the link's place in its lcore's table,
 * which no other link has.
 */
#define LINK_TAG_MASK        0x3ffffu
#define LINK_PLACES          2048
#define LINK_QPN(lcore, tag) ((uint32_t)(lcore) << 18 | ((tag)&LINK_TAG_MASK))
#define LINK_QPN_LCORE(qpn)  ((qpn) >> 18)
#define LINK_QPN_PLACE(qpn)  ((qpn) & (LINK_PLACES - 1))
_Static_assert(2 * WORKERS_MAX <= LINK_PLACES && LB_LCORES_MAX <= 64, "QPN layout");

struct link_params {
	uint32_t qpn;
	uint16_t worker, worker_generation;
	uint16_t port;
	bool direct;
	const struct lb_link_spec *remote;
	uint32_t slots;
	uint32_t batch_share;  /* this lcore's, of what the worker runs at a time */
	uint32_t reply_stride; /* power of two */
	uint32_t reply_rkey;
	uint32_t psn; /* the first we send */
	struct roce_path_spec path;
	struct txq *tx;
	struct rte_mempool *pieces;      /* small mbufs for headers and trailers */
	uint32_t *held;                  /* counts packets that wait for an acknowledgement */
	const uint64_t *clock, *drained; /* as of requesters */
	struct requester_list *paced;    /* links whose packets wait for their rate */
	uint64_t line_rate;              /* bytes per second; 0: no congestion control */
	uint64_t notify_interval;        /* TSC; between congestion notifications; 0: none */
	bool multi_segment;
	uint32_t descriptor_room; /* in mbufs of descriptors, behind the headroom */
	uint8_t ack_timeout, retry_limit, rnr_retry;
};

/* NULL with errno ENOMEM. */
struct link *link_create(const struct link_params *params);
/*
 * Its owner gives back the packets that it holds and takes them off its own counters. What is left
 * is memory.
 */
void link_release(struct link *link);
/*
 * Frees it, after link_release() if there is still something to give back: that is for the owner
 * only. The control thread destroys links that were released, that no lcore ever had, or whose
 * lcores have stopped.
 */
void link_destroy(struct link *link);

static inline uint32_t link_outstanding(const struct link *link)
{
	return link->slots - link->n_free;
}

/* Is there anything that time may do something about: a slot in use, a timer, a rate? */
static inline bool link_has_work(const struct link *link)
{
	return link->n_free != link->slots || requester_unacked(&link->requester) != 0 ||
	       link->requester.rate.limited;
}

/* Room for so many packets more, <max> unacknowledged at most? For the first in any case. */
static inline bool link_room(const struct link *link, uint32_t packets, uint32_t max)
{
	uint32_t unacked = requester_unacked(&link->requester);

	if (unlikely(unacked + packets > max &&
		     (unacked + link->reserved_slots + link->batched > 0 ||
		      packets > REQUESTER_WINDOW)))
		return false;
	return txq_room(link->requester.tx) >= packets;
}

/*
 * Set aside a slot and room in window and transmit queue for a request of <packets>, its descriptor
 * WRITEs included; <kept_back> slots must be left, and <max> packets of the link may be
 * unacknowledged then. False: not now. link_send() or link_unreserve() must follow.
 */
static inline bool link_reserve(struct link *link, uint32_t packets, uint32_t kept_back,
				uint32_t max)
{
	/* At worst every descriptor leaves in a WRITE of its own: that bound needs no division. */
	uint32_t descriptors = link->batched + link->reserved_slots + 1;

	if (link->n_free <= link->reserved_slots + kept_back ||
	    link->requester.error != REQUESTER_OK ||
	    !link_room(link, link->reserved_packets + packets + descriptors, max))
		return false;
	link->reserved_slots++;
	link->reserved_packets += packets;
	return true;
}

static inline void link_unreserve(struct link *link, uint32_t packets)
{
	link->reserved_slots--;
	link->reserved_packets -= packets;
}

/* The slot that the next link_send() takes. */
static inline uint32_t link_next_slot(const struct link *link)
{
	return link->free_slot[link->n_free - 1];
}

/* Send the gathered descriptors, asking for an acknowledgement. */
void link_batch_flush(struct link *link);

/*
 * WRITE <m> (taken over on success) into a reserved slot and gather its descriptor, in an mbuf of
 * <pool>. It came at <arrived> (TSC) and is sent <now>. 0, or -ENOMEM / -EPIPE: nothing was sent,
 * the packet stays the caller's. Ends the reservation either way.
 */
int link_send(struct link *link, struct rte_mbuf *m, const struct ring_descriptor *request,
	      uint64_t tag, uint64_t arrived, uint64_t now, struct rte_mempool *pool);

/*
 * One acknowledgement for all packets that asked for one, and what there is to say of congestion;
 * stays due when there is no room.
 */
void link_acknowledge(struct link *link, struct txq *tx, struct rte_mempool *pool);

/* The reply's last chunk came, or nobody waits for it any more: the slot is free. */
void link_slot_free(struct link *link, uint32_t slot);

/* The client has had its notice. The slot stays taken until the worker lets go of it. */
void link_slot_abandon(struct link *link, uint32_t slot);

/*
 * The client has had its notice, and the worker is to be told that nobody waits for the answer: at
 * once, or with a later link_tell() when it does not acknowledge what it has been sent, or there is
 * no room or memory. Mbufs are of <pool>.
 */
void link_cancel(struct link *link, uint32_t slot, struct rte_mempool *pool);
/* Tell the worker of up to <max> slots that it has yet to be told of. How many it was told of. */
uint32_t link_tell(struct link *link, uint32_t max, struct rte_mempool *pool);

/* A slot in state SLOT_PROBE was answered with this status (enum ring_status). Its lcore. */
void link_probe_answered(struct link *link, uint32_t status);

/* Why the link cannot go on, or NULL. */
const char *link_error(const struct link *link);

#endif
