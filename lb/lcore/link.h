/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link: one RC queue pair and one ring between this lcore and one worker, as the load balancer
 * sees it (private to lb/). Keeps the credits (free slots), remembers what is in flight in which
 * slot, and gathers descriptors so that a burst for one worker shares one WRITE.
 *
 * Owner: its lcore, from the mailbox call that attaches it on. The control thread builds it, reads
 * its counters, and destroys it after the lcore has set <reaped>.
 */
#ifndef LB_LINK_H
#define LB_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "packet/client_path.h"
#include "lcore/latency.h"
#include "lcore/counters.h"
#include "lcore/link_spec.h"
#include "lcore/payload_room.h"
#include "rdma/requester.h"
#include "rdma/responder.h"
#include "ring.h"

/* Limit of a link's unacknowledged cancel words: a worker that is slow to acknowledge them holds
 * that many of the lcore's mbufs. */
#define LINK_CANCELS_MAX 64

/* Most chunks of a reply. */
#define LINK_CHUNKS_MAX 4096

struct lcore;

enum slot_state {
	SLOT_FREE = 0,
	SLOT_FILLING, /* its payload is being written; the worker knows nothing of it */
	SLOT_BUSY,
	SLOT_PROBE,     /* a health probe of the load balancer's own */
	SLOT_ABANDONED, /* the client has had its notice; the worker still owes a reply */
};

/* A request in flight. */
struct slot {
	uint64_t sequence; /* of its descriptor */
	uint64_t flow;     /* conntrack handle */
	uint64_t arrived;  /* TSC: when the request came */
	uint64_t deadline; /* TSC: when its reply is due; 0: no limit */
	uint64_t sent;     /* TSC */
	uint64_t tag;      /* for a notice: the request's id, or its first 8 bytes */
	uint16_t service;
	uint8_t state;         /* enum slot_state */
	bool cancel_due;       /* abandoned, and its cancel word has not been sent yet */
	uint32_t chunks;       /* of the reply, so far */
	uint32_t older, newer; /* neighbours in its list; SLOT_NONE at the ends */
};
_Static_assert(sizeof(struct slot) == 64, "a cache line");

/* Slots in the order in which they were added. */
struct slot_list {
	uint32_t oldest, newest; /* SLOT_NONE: none */
};

enum probe_state { PROBE_WAITING, PROBE_GOOD, PROBE_BAD };

/* Replay state per slot; a separate array because few services enable it. */
struct replay_copy {
	struct rte_mbuf *packet; /* a reference to the payload's mbuf; NULL: none is kept */
	uint16_t offset, length; /* of the payload in its buffer */
	uint8_t replays;         /* so far */
	uint32_t hash;
};

/* The pages of a link's room that a request has. */
struct link_pages {
	uint32_t first, n; /* n 0: none */
};

#define SLOT_NONE UINT32_MAX

struct link {
	uint32_t qpn; /* ours, see LINK_QPN */
	uint16_t worker;
	uint16_t worker_generation;
	uint16_t port; /* index of the fabric port */
	bool direct;   /* no router in between: packets come from the worker's own MAC address */
	bool dirty;    /* on the lcore's list of links with descriptors or ACKs to send */
	bool active;   /* on the lcore's list of links that housekeeping visits */
	bool suspect;  /* its worker may have gone: no new requests */
	/* what the control thread says of that, and whether a call with it is on its way (atomic)
	 */
	uint8_t doubted, doubt_sent;
	/* the worker's ring */
	uint32_t rkey;
	uint32_t slots; /* power of two */
	uint32_t stride;
	uint32_t batch_share; /* this lcore's part of the requests that the worker runs at a time */
	uint64_t descriptors, payloads, cancels;
	uint64_t position;      /* of the next descriptor */
	struct rte_mbuf *batch; /* descriptors not sent yet */
	uint32_t batched;
	uint32_t batch_max; /* descriptors in one descriptor WRITE, which is one packet */
	/* cancel words that may be unacknowledged, and the PSN of the last */
	uint32_t n_cancels, cancel_psn;
	/* credits */
	struct slot *slot;
	struct client_path *client_path; /* by slot: the reply's way back */
	struct replay_copy *replay_copy; /* by slot */
	uint16_t *free_slot;             /* stack */
	uint32_t n_free;
	/* free slots withheld from requests that can wait here, so that the worker has no more than
	 * it should: choose.c; and those of them that places do not have */
	uint32_t kept_back, withheld;
	uint32_t n_filling; /* slots of places that were not announced: the worker has not those */
	/* Large requests that are complete and wait until the worker has fewer (lb/edge): bytes of
	 * the first, and of requests in packets that were sent while it waited. */
	TAILQ_HEAD(, edge_large) ready;
	TAILQ_ENTRY(link) ready_entry; /* of the links with such */
	uint32_t n_ready, ready_bytes, owed;
	uint32_t ready_pages; /* of all of them */
	/* Requests in pages that the worker has: how many, in how many pages, and how long it takes
	 * for a page. */
	uint32_t n_paged, paged;
	uint64_t paged_at; /* TSC: when it answered the last one, or got the first */
	float page_cycles; /* 0: not known yet */
	uint32_t reserved_slots, reserved_packets; /* assigned in this burst, not written yet */
	struct slot_list busy;                     /* in state SLOT_BUSY, in the order of sending */
	struct slot_list cancel_due; /* those whose cancel word has not been sent yet */
	/* where the next search for overdue requests starts; SLOT_NONE: at the oldest */
	uint32_t overdue_at;
	/* the same for requests whose flow has gone, and for those to be replayed */
	uint32_t swept_at, moved_at;
	uint32_t reply_shift; /* log2 of the bytes from slot to slot of the reply region */
	uint32_t chunk_shift; /* log2 of the bytes from chunk to chunk of a reply */
	uint32_t reply_slot;  /* the slot of the message being received */
	struct rte_mbuf *reply_head, *reply_tail; /* of the message being received */
	/* payloads that are longer than a tile; NULL and empty if the worker gave no room */
	struct link_pages *pages; /* by slot */
	struct payload_room room;
	uint64_t room_at;   /* offset of the room in the payload region */
	uint64_t room_owed; /* one past the iteration in which a request found too little of it */
	/* once detached: the lcore notifies the clients and sets <reaped>, then the control thread
	 * frees the link */
	struct link *next_detached; /* on the lcore's list */
	struct link *next_to_free;  /* on the control thread's */
	int let_go;                 /* atomic: the lcore has detached it */
	int reaped;                 /* atomic */
	/* the control thread's, once its worker is gone: whose it is, whether that lcore was asked
	 * to detach it, and whether the device was stopped */
	uint16_t lcore;
	bool asked, stopped;
	/* engine verbs: the queue pair, until it is stopped (atomic); the control thread's */
	struct verbs_qp *qp;
	uint16_t *
		copied; /* engine verbs, by slot: chunks of the reply that have left their places */
	/* ns; of the replies since the control thread last read and reset it (atomic). Both write,
	 * so one value may be lost */
	uint64_t longest_run_ns;
	/* Requests of all its links that the worker had when it last answered or beat here (atomic)
	 */
	uint32_t backlog;
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
 * Queue pair numbers: the lcore in the upper 6 bits, then 18 bits that cannot be guessed, because
 * the number alone authorizes a congestion notification. The lowest 11 bits are the link's place in
 * its lcore's table, unique in it.
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
	uint32_t batch_share; /* this lcore's part of the requests that the worker runs at a time */
	uint64_t reply_stride; /* bytes from slot to slot of the reply region; power of two */
	uint32_t chunk;        /* bytes from chunk to chunk of a reply; power of two */
	uint32_t reply_rkey;
	uint32_t psn; /* the first we send */
	struct roce_path_spec path;
	struct txq *tx;
	struct rte_mempool *indirect_pool; /* small mbufs for headers and trailers */
	uint32_t *held;                    /* counts packets that wait for an acknowledgement */
	const uint64_t *clock, *drained;   /* see struct requester_params */
	struct requester_list *paced;      /* links whose packets wait for their rate */
	uint64_t line_rate;                /* bytes per second; 0: no congestion control */
	uint64_t notify_interval;          /* TSC between congestion notifications; 0: send none */
	bool multi_segment;
	uint32_t descriptor_room; /* in mbufs of descriptors, behind the headroom */
	uint8_t ack_timeout, retry_limit, rnr_retry;
};

/* Allocate a link. NULL with errno ENOMEM. Control thread. */
struct link *link_create(const struct link_params *params);
/*
 * Give back the packets that the link holds and take them off the owner's counters. The link is
 * then only memory to free. Owner only.
 */
void link_release(struct link *link);
/*
 * Free the link, after link_release() if that has not been done yet. The control thread destroys
 * links that were released, that no lcore ever had, or whose lcores have stopped.
 */
void link_destroy(struct link *link);

static inline uint32_t link_outstanding(const struct link *link)
{
	return link->slots - link->n_free;
}

/* Does the link need housekeeping: is a slot in use, a timer running, or a rate limited? */
static inline bool link_has_work(const struct link *link)
{
	return link->n_free != link->slots || requester_unacked(&link->requester) != 0 ||
	       link->requester.rate.limited;
}

/*
 * May <packets> more be sent, with at most <max> unacknowledged? A link without unacknowledged
 * packets may always send.
 */
static inline bool link_room(const struct link *link, uint32_t packets, uint32_t max)
{
	uint32_t unacked = requester_unacked(&link->requester);

	if (unlikely(unacked + packets > max &&
		     (unacked + link->reserved_slots + link->batched > 0 ||
		      packets > REQUESTER_WINDOW)))
		return false;
	return txq_room(link->requester.tx) >= packets;
}

/* Withhold <slots>, so that the worker has no more than it should. */
void link_keep_back(struct link *link, uint32_t slots);

/* Has the worker as many requests as it should? */
static inline bool link_is_deep(const struct link *link)
{
	return link->n_free + link->n_filling <= link->reserved_slots + link->kept_back;
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
 * A request whose payload comes in pieces. link_take(), then link_write() for each piece in any
 * order, then link_announce(); or link_give_back(). The link does not time such a request, and it
 * is on none of its lists: its owner must give it back before the link is released. Credits are the
 * caller's to count, as with link_send(). Owner only.
 */
struct link_place {
	uint32_t slot;
	uint32_t payload; /* offset in the payload region, in units of RING_ALIGNMENT */
	uint32_t bytes;   /* that the place holds */
};

enum link_taken {
	LINK_TAKEN = 0,
	LINK_NO_SLOT,   /* not now: all slots are in use */
	LINK_NO_ROOM,   /* not now: too few pages are free in a row */
	LINK_TOO_LARGE, /* never: neither a tile nor the whole room holds it */
	LINK_FAILED,    /* the queue pair is in error */
};

/*
 * Take a slot with a place for <bytes>: its tile, or pages of the room. <kept_back> slots must be
 * left. Fills <place> on LINK_TAKEN only.
 */
enum link_taken link_take(struct link *link, uint32_t bytes, uint32_t kept_back,
			  struct link_place *place);

enum link_write_flag {
	LINK_WRITE_ENDS = 1,   /* the last of the caller's burst */
	LINK_WRITE_SHARED = 2, /* the memory around the data belongs to others */
};

/*
 * WRITE <m> (taken over on success), which is one segment, to <offset> of the place. Packets are
 * held, and sent again, until an acknowledgement comes: the last of a burst asks for one. At most
 * <max> packets of the link may be unacknowledged then. 0; or -EAGAIN (no room in window or
 * transmit queue now), -EMSGSIZE (not within the place), -ENOMEM or -EPIPE: nothing was sent, the
 * packet stays the caller's.
 */
int link_write(struct link *link, const struct link_place *place, uint32_t offset,
	       struct rte_mbuf *m, unsigned int flags, uint32_t max);

/*
 * Announce the request, whose payload was written: gather its descriptor, as link_send() does. 0;
 * or -EAGAIN or -ENOMEM: call again later; or -EPIPE. On an error the place stays the caller's.
 */
int link_announce(struct link *link, const struct link_place *place,
		  const struct ring_descriptor *request, uint64_t tag, uint64_t arrived,
		  uint64_t now, uint32_t max, struct rte_mempool *pool);

/* A request in a slot with pages was answered <now> (TSC), and the model <ran>. Call before
 * link_slot_free(). */
void link_measure_pages(struct link *link, uint32_t slot, uint64_t now, bool ran);
/* Is the worker given another request in pages? Not while what it has are two batches, and more
 * than some ms of work. */
bool link_takes_paged(const struct link *link, uint64_t tsc_per_ms);

static inline uint32_t link_slot_pages(const struct link *link, uint32_t slot)
{
	return link->pages != NULL ? link->pages[slot].n : 0;
}

static inline bool link_slot_has_pages(const struct link *link, uint32_t slot)
{
	return link_slot_pages(link, slot) > 0;
}

/* Give back a place whose request was not announced, and never will be. */
void link_give_back(struct link *link, const struct link_place *place);

/*
 * Send one acknowledgement for all packets that asked for one, and a congestion notification if one
 * is due. Both stay due when there is no room or memory.
 */
void link_acknowledge(struct link *link, struct txq *tx, struct rte_mempool *pool);

/* Free the slot: the reply's last chunk came, or none will come. */
void link_slot_free(struct link *link, uint32_t slot);

/* The slot where a search of the slots in flight continues: <at> if it is still in flight, or the
 * oldest. SLOT_NONE: none is in flight. */
static inline uint32_t link_busy_from(const struct link *link, uint32_t at)
{
	return at == SLOT_NONE || link->slot[at].state != SLOT_BUSY ? link->busy.oldest : at;
}

/*
 * Visit slots in flight, oldest first, up to <budget> of them: from <*at> on, which becomes the
 * next to visit. <visit> may free or abandon its slot. Returns what is left of the budget. Owner
 * only.
 */
static inline uint32_t
link_visit_busy(struct lcore *lc, struct link *link, uint32_t *at, uint32_t budget,
		void (*visit)(struct lcore *lc, struct link *link, uint32_t number))
{
	uint32_t number = link_busy_from(link, *at), newer;

	for (; number != SLOT_NONE && budget > 0; number = newer, budget--) {
		newer = link->slot[number].newer;
		visit(lc, link, number);
	}
	*at = number;
	return budget;
}

/* The client has had its notice. The slot stays in use until the worker has replied. */
void link_slot_abandon(struct link *link, uint32_t slot);

/*
 * Abandon the slot and send the worker a cancel word for it, in an mbuf of <pool>. A later
 * link_send_cancels() sends it while the worker does not acknowledge, or there is no room or
 * memory.
 */
void link_cancel(struct link *link, uint32_t slot, struct rte_mempool *pool);
/* Send up to <max> cancel words that are due. Returns how many. */
uint32_t link_send_cancels(struct link *link, uint32_t max, struct rte_mempool *pool);

/* Record the answer to a probe, an enum ring_status, for the control thread. On its lcore. */
void link_probe_answered(struct link *link, uint32_t status);

/* The reason why the link has failed, for logs and operators, or NULL. Any thread. */
const char *link_error(const struct link *link);

#endif
