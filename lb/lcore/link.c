/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/link.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

static int link_alloc_slots(struct link *link, uint64_t room)
{
	link->slot = rte_zmalloc("slots", link->slots * sizeof(*link->slot), RTE_CACHE_LINE_SIZE);
	link->free_slot = rte_malloc("free_slots", link->slots * sizeof(*link->free_slot), 0);
	link->replay_copy = rte_zmalloc("replay_copy", link->slots * sizeof(*link->replay_copy),
					RTE_CACHE_LINE_SIZE);
	link->client_path = rte_zmalloc("client_paths", link->slots * sizeof(*link->client_path),
					RTE_CACHE_LINE_SIZE);
	if (link->slot == NULL || link->free_slot == NULL || link->replay_copy == NULL ||
	    link->client_path == NULL)
		return -ENOMEM;
	if (room > 0) {
		link->pages = rte_zmalloc("pages", link->slots * sizeof(*link->pages), 0);
		if (link->pages == NULL ||
		    payload_room_init(&link->room, room / PAYLOAD_ROOM_PAGE) < 0)
			return -ENOMEM;
	}
	/* Low numbers on top: a lightly loaded ring stays in few cache lines. */
	for (uint32_t i = 0; i < link->slots; i++)
		link->free_slot[i] = link->slots - 1 - i;
	link->n_free = link->slots;
	TAILQ_INIT(&link->ready);
	link->busy = link->cancel_due = (struct slot_list){SLOT_NONE, SLOT_NONE};
	link->overdue_at = link->swept_at = link->moved_at = SLOT_NONE;
	return 0;
}

/* Descriptors of one WRITE: it must be one packet and fit one mbuf, with its trailer. */
static uint32_t link_batch_max(const struct link_params *p)
{
	uint32_t room =
		p->descriptor_room - RTE_MIN(p->descriptor_room, (uint32_t)ROCE_TRAILER_MAX);

	return RTE_MIN(p->path.mtu, room) / (uint32_t)sizeof(struct ring_descriptor);
}

struct link *link_create(const struct link_params *p)
{
	struct link *link = rte_zmalloc("link", sizeof(*link), RTE_CACHE_LINE_SIZE);
	struct rdma_region replies = {
		.rkey = p->reply_rkey,
		.length = p->slots * p->reply_stride,
		.stride = p->chunk,
	};
	struct requester_params rq;

	if (link == NULL)
		goto fail;
	link->qpn = p->qpn;
	link->worker = p->worker;
	link->worker_generation = p->worker_generation;
	link->port = p->port;
	link->direct = p->direct;
	link->rkey = p->remote->rkey;
	link->slots = p->slots;
	link->stride = p->remote->stride;
	link->batch_share = p->batch_share;
	link->descriptors = p->remote->descriptors;
	link->payloads = p->remote->payloads;
	link->room_at = ring_room_at(p->slots, p->remote->stride);
	link->cancels = p->remote->cancels;
	link->reply_shift = rte_log2_u64(p->reply_stride);
	link->chunk_shift = rte_log2_u32(p->chunk);
	link->latency = latency_create(1, LATENCY_LINK_SIZE);
	if (link->latency == NULL || link_alloc_slots(link, p->remote->room) < 0)
		goto fail;
	roce_path_init(&link->path, &p->path);
	link->batch_max = link_batch_max(p);
	if (link->batch_max == 0)
		goto fail;
	rq = (struct requester_params){
		.path = &link->path,
		.tx = p->tx,
		.pool = p->indirect_pool,
		.held = p->held,
		.clock = p->clock,
		.drained = p->drained,
		.waiting = p->paced,
		.line_rate = p->line_rate,
		.multi_segment = p->multi_segment,
		.psn = p->psn,
		.ack_timeout = p->ack_timeout,
		.retry_limit = p->retry_limit,
		.rnr_retry = p->rnr_retry,
	};
	requester_init(&link->requester, &rq);
	responder_init(&link->responder, &replies, p->path.mtu, p->remote->psn);
	responder_notify_every(&link->responder, p->notify_interval);
	return link;
fail:
	link_destroy(link);
	errno = ENOMEM;
	return NULL;
}

void link_release(struct link *link)
{
	if (link->requester.path != NULL)
		requester_fini(&link->requester);
	rte_pktmbuf_free(link->batch);
	rte_pktmbuf_free(link->reply_head);
	link->batch = link->reply_head = link->reply_tail = NULL;
	for (uint32_t i = 0; link->replay_copy != NULL && i < link->slots; i++) {
		rte_pktmbuf_free(link->replay_copy[i].packet);
		link->replay_copy[i].packet = NULL;
	}
}

void link_destroy(struct link *link)
{
	if (link == NULL)
		return;
	link_release(link);
	rte_free(link->replay_copy);
	rte_free(link->client_path);
	rte_free(link->slot);
	rte_free(link->free_slot);
	rte_free(link->pages);
	rte_free(link->copied);
	payload_room_fini(&link->room);
	free(link->latency);
	rte_free(link);
}

void link_batch_flush(struct link *link)
{
	uint64_t first = (link->position - link->batched) & (link->slots - 1);

	if (link->batched == 0)
		return;
	link->batch->data_len = link->batched * sizeof(struct ring_descriptor);
	link->batch->pkt_len = link->batch->data_len;
	link->batched = 0;
	/* Headroom and window were reserved: only a failed queue pair refuses. */
	if (requester_write(&link->requester, link->batch,
			    link->descriptors + first * sizeof(struct ring_descriptor), link->rkey,
			    0, REQUESTER_ACK_REQUEST) < 0)
		rte_pktmbuf_free(link->batch);
	link->batch = NULL;
	requester_ring(&link->requester);
}

/* Slots in use form a list by age, so that overdue requests need no search. */
static void link_list_append(struct slot *slots, struct slot_list *list, uint32_t number)
{
	struct slot *slot = &slots[number];

	slot->older = list->newest;
	slot->newer = SLOT_NONE;
	if (list->newest == SLOT_NONE)
		list->oldest = number;
	else
		slots[list->newest].newer = number;
	list->newest = number;
}

static void link_list_remove(struct slot *slots, struct slot_list *list, uint32_t number)
{
	const struct slot *slot = &slots[number];

	if (slot->older == SLOT_NONE)
		list->oldest = slot->newer;
	else
		slots[slot->older].newer = slot->newer;
	if (slot->newer == SLOT_NONE)
		list->newest = slot->older;
	else
		slots[slot->newer].older = slot->older;
}

/* Prefetch what the next requests of this burst write: stores that miss the cache would stall. */
static void link_prefetch_next(const struct link *link, const struct ring_descriptor *d)
{
	const uint32_t ahead = 4;

	rte_prefetch0(d + ahead);
	if (link->n_free > ahead) {
		uint16_t number = link->free_slot[link->n_free - ahead];

		rte_prefetch0(&link->slot[number]);
		rte_prefetch0(&link->client_path[number]);
	}
}

/* Put the request's descriptor into the batch, whose memory is there: its slot is in flight now. */
static inline void link_gather(struct link *link, uint32_t number,
			       const struct ring_descriptor *request, uint32_t payload,
			       uint64_t tag, uint64_t arrived, uint64_t now)
{
	struct ring_descriptor *d =
		rte_pktmbuf_mtod(link->batch, struct ring_descriptor *) + link->batched;

	link_prefetch_next(link, d);
	*d = *request;
	d->slot = number;
	d->payload = payload;
	d->reply = ((uint64_t)number << link->reply_shift) / RING_ALIGNMENT;
	d->sequence = ++link->position;
	link->slot[number] = (struct slot){
		.sequence = d->sequence,
		.flow = request->flow,
		.arrived = arrived,
		.sent = now,
		.tag = tag,
		.service = request->service,
		.state = SLOT_BUSY,
	};
	link_list_append(link->slot, &link->busy, number);
	link->batched++;
	link->stats.requests++;
	/* A WRITE is contiguous: it ends where the ring wraps. */
	if (link->batched == link->batch_max || (link->position & (link->slots - 1)) == 0)
		link_batch_flush(link);
}

int link_send(struct link *link, struct rte_mbuf *m, const struct ring_descriptor *request,
	      uint64_t tag, uint64_t arrived, uint64_t now, struct rte_mempool *pool)
{
	uint32_t number = link_next_slot(link);
	uint64_t offset = (uint64_t)number * link->stride;
	int ret;

	link_unreserve(link, requester_packets(&link->requester, m->data_len));
	/*
	 * Allocate the descriptors' memory first: a payload without a descriptor would never be
	 * served.
	 */
	if (link->batch == NULL)
		link->batch = rte_pktmbuf_alloc(pool);
	if (link->batch == NULL)
		return -ENOMEM;
	ret = requester_write(&link->requester, m, link->payloads + offset, link->rkey, 0, 0);
	if (ret < 0)
		return ret;
	link->n_free--;
	link_gather(link, number, request, offset / RING_ALIGNMENT, tag, arrived, now);
	return 0;
}

void link_keep_back(struct link *link, uint32_t slots)
{
	link->kept_back = slots;
	link->withheld = slots > link->n_filling ? slots - link->n_filling : 0;
}

static void link_fill(struct link *link, int more)
{
	link->n_filling += more;
	link_keep_back(link, link->kept_back);
}

enum link_taken link_take(struct link *link, uint32_t bytes, uint32_t kept_back,
			  struct link_place *place)
{
	uint32_t number, first, pages = (bytes - 1) / PAYLOAD_ROOM_PAGE + 1;

	if (link->requester.error != REQUESTER_OK)
		return LINK_FAILED;
	if (bytes > link->stride && pages > link->room.pages)
		return LINK_TOO_LARGE;
	if (link->n_free <= link->reserved_slots + kept_back)
		return LINK_NO_SLOT;
	number = link_next_slot(link);
	*place = (struct link_place){
		.slot = number,
		.payload = (uint64_t)number * link->stride / RING_ALIGNMENT,
		.bytes = link->stride,
	};
	if (bytes > link->stride) {
		first = payload_room_take(&link->room, pages);
		if (first == PAYLOAD_ROOM_NONE)
			return LINK_NO_ROOM;
		link->pages[number] = (struct link_pages){first, pages};
		place->payload =
			(link->room_at + (uint64_t)first * PAYLOAD_ROOM_PAGE) / RING_ALIGNMENT;
		place->bytes = pages * PAYLOAD_ROOM_PAGE;
	}
	link->n_free--;
	link_fill(link, 1);
	link->slot[number].state = SLOT_FILLING;
	link->slot[number].cancel_due = false;
	return LINK_TAKEN;
}

/* May <packets> and a descriptor be sent, beside all that burst and batch have reserved? */
static bool link_has_room_beside(const struct link *link, uint32_t packets, uint32_t max)
{
	return link_room(
		link, link->reserved_packets + packets + link->batched + link->reserved_slots + 1,
		max);
}

/* Packets of another write for which there must be room, or this one asks for an acknowledgement. */
#define LINK_WRITE_AHEAD 16

int link_write(struct link *link, const struct link_place *place, uint32_t offset,
	       struct rte_mbuf *m, unsigned int flags, uint32_t max)
{
	uint64_t at = (uint64_t)place->payload * RING_ALIGNMENT + offset;
	uint32_t packets = requester_packets(&link->requester, m->data_len);
	bool ask;
	int ret;

	if (offset > place->bytes || m->data_len > place->bytes - offset)
		return -EMSGSIZE;
	if (link->requester.error != REQUESTER_OK)
		return -EPIPE;
	if (!link_has_room_beside(link, packets, max))
		return -EAGAIN;
	ask = flags & LINK_WRITE_ENDS ||
	      !link_has_room_beside(link, packets + LINK_WRITE_AHEAD, max);
	if (flags & LINK_WRITE_SHARED)
		ret = requester_write_shared(&link->requester, m, link->payloads + at, link->rkey,
					     ask ? REQUESTER_ACK_REQUEST : 0);
	else
		ret = requester_write(&link->requester, m, link->payloads + at, link->rkey, 0,
				      ask ? REQUESTER_ACK_REQUEST : 0);
	if (flags & LINK_WRITE_ENDS)
		requester_ring(&link->requester);
	return ret;
}

int link_announce(struct link *link, const struct link_place *place,
		  const struct ring_descriptor *request, uint64_t tag, uint64_t arrived,
		  uint64_t now, uint32_t max, struct rte_mempool *pool)
{
	if (link->requester.error != REQUESTER_OK)
		return -EPIPE;
	if (!link_has_room_beside(link, 0, max))
		return -EAGAIN;
	if (link->batch == NULL)
		link->batch = rte_pktmbuf_alloc(pool);
	if (link->batch == NULL)
		return -ENOMEM;
	link_fill(link, -1);
	if (link_slot_has_pages(link, place->slot)) {
		if (link->n_paged++ == 0)
			link->paged_at = now;
		link->paged += link->pages[place->slot].n;
	}
	link_gather(link, place->slot, request, place->payload, tag, arrived, now);
	return 0;
}

void link_give_back(struct link *link, const struct link_place *place)
{
	/*
	 * WRITEs into the place may still be under way, or be sent again. Those of the next request
	 * in it come behind them on the same queue pair, which delivers in order; and nothing reads
	 * the place before the next request's descriptor, which comes last.
	 */
	link_fill(link, -1);
	link_slot_free(link, place->slot);
}

static void link_send_cnp(struct link *link, struct txq *tx, struct rte_mempool *pool)
{
	struct rte_mbuf *m;

	if (!roce_path_is_resolved(&link->path) || txq_room(tx) == 0)
		return;
	m = rte_pktmbuf_alloc(pool);
	if (m == NULL)
		return;
	responder_notification_due(&link->responder);
	m->data_len = m->pkt_len = roce_cnp_build(rte_pktmbuf_mtod(m, uint8_t *), &link->path);
	txq_push(tx, m);
}

void link_acknowledge(struct link *link, struct txq *tx, struct rte_mempool *pool)
{
	uint32_t psn, msn;
	uint8_t syndrome;
	struct rte_mbuf *m;

	if (unlikely(link->responder.notification_due))
		link_send_cnp(link, tx, pool);
	if (!link->responder.ack_due || !roce_path_is_resolved(&link->path) || txq_room(tx) == 0)
		return;
	m = rte_pktmbuf_alloc(pool);
	if (m == NULL)
		return;
	responder_ack_due(&link->responder, &psn, &syndrome, &msn);
	m->data_len = m->pkt_len =
		roce_ack_build(rte_pktmbuf_mtod(m, uint8_t *), &link->path, psn, syndrome, msn);
	txq_push(tx, m);
}

static __rte_noinline void link_pages_free(struct link *link, uint32_t number)
{
	struct link_pages *pages = &link->pages[number];

	if (pages->n > 0)
		payload_room_give(&link->room, pages->first, pages->n);
	pages->n = 0;
}

/* Weight of a new measurement in the average. */
#define LINK_AVERAGE 8

/* The time in which the worker owed such answers, over the pages of the one that came. */
void link_measure_pages(struct link *link, uint32_t number, uint64_t now, bool ran)
{
	float cycles = (float)(now - link->paged_at) / (float)link->pages[number].n;

	link->paged_at = now;
	if (ran)
		link->page_cycles +=
			(cycles - link->page_cycles) / (link->page_cycles == 0 ? 1 : LINK_AVERAGE);
}

/* ms of work in requests in pages that the worker should have, so that it does not run dry while
 * this lcore does something else, and small ones have little in front of them. */
#define LINK_AHEAD_MS 2

bool link_takes_paged(const struct link *link, uint64_t tsc_per_ms)
{
	return link->n_paged < 2 * link->batch_share ||
	       (float)link->paged * link->page_cycles < (float)(LINK_AHEAD_MS * tsc_per_ms);
}

void link_slot_free(struct link *link, uint32_t number)
{
	struct slot *slot = &link->slot[number];

	if (unlikely(link_slot_has_pages(link, number)) && slot->state != SLOT_FILLING) {
		link->n_paged--;
		link->paged -= link->pages[number].n;
	}
	if (slot->state == SLOT_BUSY)
		link_list_remove(link->slot, &link->busy, number);
	else if (unlikely(slot->cancel_due))
		link_list_remove(link->slot, &link->cancel_due, number);
	slot->state = SLOT_FREE;
	link->free_slot[link->n_free++] = number;
	/* The worker has answered, so the WRITEs into the pages are done; or see link_give_back().
	 */
	if (unlikely(link->pages != NULL))
		link_pages_free(link, number);
}

void link_slot_abandon(struct link *link, uint32_t number)
{
	link_list_remove(link->slot, &link->busy, number);
	link->slot[number].state = SLOT_ABANDONED;
}

/* Does the worker not acknowledge packets, or not want any now? */
static bool link_is_behind(const struct link *link)
{
	const struct requester *rq = &link->requester;

	return link->suspect || rq->early > 0 || rq->retries > 0 || rq->hold_until != 0;
}

/* Is there room for another unacknowledged cancel word? */
static bool link_has_cancel_room(struct link *link)
{
	const struct requester *rq = &link->requester;

	if (link->n_cancels > 0 && roce_psn_diff(rq->una_psn, link->cancel_psn) > 0)
		link->n_cancels = 0;
	/* Room must be left for gathered descriptors: at worst each takes a WRITE of its own. */
	return link->n_cancels < LINK_CANCELS_MAX && requester_room(rq, 1 + link->batched);
}

static bool link_write_cancel(struct link *link, uint32_t number, struct rte_mempool *pool)
{
	struct rte_mbuf *m;
	uint64_t *word;

	if (link_is_behind(link) || !link_has_cancel_room(link))
		return false;
	m = rte_pktmbuf_alloc(pool);
	if (m == NULL)
		return false;
	word = (uint64_t *)rte_pktmbuf_append(m, sizeof(*word));
	*word = link->slot[number].sequence;
	link->cancel_psn = link->requester.next_psn;
	if (requester_write(&link->requester, m, link->cancels + number * sizeof(*word), link->rkey,
			    0, REQUESTER_ACK_REQUEST) < 0) {
		rte_pktmbuf_free(m);
		return false;
	}
	link->n_cancels++;
	requester_ring(&link->requester);
	return true;
}

void link_cancel(struct link *link, uint32_t number, struct rte_mempool *pool)
{
	link_slot_abandon(link, number);
	/* Keep the order: cancel words that are due already go first. */
	if (link->cancel_due.oldest == SLOT_NONE && link_write_cancel(link, number, pool))
		return;
	link->slot[number].cancel_due = true;
	link_list_append(link->slot, &link->cancel_due, number);
}

uint32_t link_send_cancels(struct link *link, uint32_t max, struct rte_mempool *pool)
{
	uint32_t n = 0, number;

	for (; n < max; n++) {
		number = link->cancel_due.oldest;
		if (number == SLOT_NONE || !link_write_cancel(link, number, pool))
			break;
		link_list_remove(link->slot, &link->cancel_due, number);
		link->slot[number].cancel_due = false;
	}
	return n;
}

void link_probe_answered(struct link *link, uint32_t status)
{
	__atomic_store_n(&link->probe, status == RING_OK ? PROBE_GOOD : PROBE_BAD,
			 __ATOMIC_RELEASE);
}

const char *link_error(const struct link *link)
{
	enum requester_error error = __atomic_load_n(&link->requester.error, __ATOMIC_ACQUIRE);

	/* Check the responder first: its error also ends the sending side. */
	if (__atomic_load_n(&link->responder.error, __ATOMIC_RELAXED))
		return "the worker wrote where or what it may not";
	if (error == REQUESTER_RETRY_EXCEEDED)
		return "retries exhausted: the worker's queue pair does not acknowledge";
	if (error == REQUESTER_RNR_EXCEEDED)
		return "the worker's queue pair stayed not ready to receive";
	if (error == REQUESTER_NAK)
		return link->requester.nak == ROCE_NAK_REMOTE_ACCESS
			       ? "the worker's queue pair refused a WRITE: wrong rkey or range"
			       : "the worker's queue pair refused a WRITE";
	if (error == REQUESTER_DEVICE)
		return "the RDMA device failed a work request; the worker's queue pair may be gone";
	return NULL;
}
