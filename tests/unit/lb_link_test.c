/* SPDX-License-Identifier: BSD-3-Clause */
/* A link: credits, which slot and which ring entry a request goes to, and what a burst reserves. */
#include "lcore/link.h"
#include "rdma_fixture.h"

#define SLOTS       0x7f0000100000
#define DESCRIPTORS 0x7f0000200000
#define CANCELS     0x7f0000300000
#define STRIDE      4096
#define QPN         LINK_QPN(3, 0x1c05)

/* A link whose mbufs for descriptors have <room> bytes behind the headroom. */
static struct link *link_of(struct fixture *f, uint32_t slots, uint32_t mtu, uint32_t room,
			    uint64_t payload_room)
{
	struct lb_link_spec remote = {
		.qpn = 0x11,
		.psn = 0x900,
		.rkey = FIXTURE_RKEY,
		.descriptors = DESCRIPTORS,
		.payloads = SLOTS,
		.cancels = CANCELS,
		.stride = STRIDE,
		.room = payload_room,
	};
	struct link_params params = {
		.qpn = QPN,
		.worker = 5,
		.worker_generation = 2,
		.remote = &remote,
		.slots = slots,
		.reply_stride = 2048,
		.chunk = 2048,
		.reply_rkey = 0x77,
		.psn = 0x100,
		.path = vector_spec(4, false, mtu),
		.tx = &f->tx,
		.indirect_pool = f->small,
		.held = &f->held,
		.multi_segment = true,
		.descriptor_room = room,
		.ack_timeout = 14,
		.retry_limit = 7,
		.rnr_retry = 2,
		.notify_interval = 50,
	};
	struct link *link = link_create(&params);

	cr_assert(link);
	return link;
}

static struct link *link_in(struct fixture *f, uint32_t slots, uint32_t mtu, uint32_t room)
{
	return link_of(f, slots, mtu, room, 0);
}

static struct link *link_on(struct fixture *f, uint32_t slots, uint32_t mtu)
{
	return link_in(f, slots, mtu,
		       rte_pktmbuf_data_room_size(f->packets) - RTE_PKTMBUF_HEADROOM);
}

static int send_length(struct fixture *f, struct link *link, uint32_t length)
{
	struct ring_descriptor request = {.length = length, .service = 4, .flow = 0x1234};
	struct rte_mbuf *m = fixture_message(f, length);
	int ret = link_send(link, m, &request, 99, 900, 1000, f->packets);

	if (ret < 0)
		rte_pktmbuf_free(m);
	return ret;
}

static void send_one(struct fixture *f, struct link *link)
{
	cr_assert(link_reserve(link, 1, 0, REQUESTER_WINDOW));
	cr_assert_eq(send_length(f, link, 10), 0);
}

/* The worker has acknowledged everything. */
static void acknowledge(struct fixture *f, struct link *link)
{
	struct requester *rq = &link->requester;

	fixture_sent(f);
	cr_assert_eq(requester_ack(rq, roce_psn_add(rq->next_psn, ROCE_PSN_MASK), 0x1f, rq->timer),
		     REQUESTER_PROGRESS);
}

/* Packet <i> must be a WRITE of <n> descriptors for positions <first> and on. */
static void expect_descriptors(struct fixture *f, unsigned int i, uint32_t slots, uint64_t first,
			       uint32_t n)
{
	uint8_t frame[FIXTURE_FRAME_MAX];
	struct roce_packet p = fixture_packet(f, i, frame);
	struct ring_descriptor d;

	cr_assert_eq(p.opcode, ROCE_WRITE_ONLY);
	cr_expect(p.ack_request);
	cr_expect_eq(p.rkey, FIXTURE_RKEY);
	cr_expect_eq(p.va, DESCRIPTORS + first % slots * sizeof(d));
	cr_assert_eq(p.length, n * sizeof(d), "%u bytes", p.length);
	for (uint32_t k = 0; k < n; k++) {
		memcpy(&d, frame + p.payload_offset + k * sizeof(d), sizeof(d));
		cr_expect_eq(d.sequence, first + k + 1);
		cr_expect_eq(d.flow, 0x1234);
		cr_expect_eq(d.service, 4);
	}
}

/* An RDMA device's path MTU may be 4096 where the ports' MTU, and so the packets' memory, is less.
 */
Test(lb_link, descriptors_stay_in_the_memory_they_are_gathered_in)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_in(f, 256, 4096, 2048);

	/* 32 would fill it, and leave no room for the ICRC. */
	for (unsigned int i = 0; i < 31; i++)
		send_one(f, link);
	cr_expect_eq(link->batched, 0, "%u descriptors of 64 bytes in 2048", link->batched);
	expect_descriptors(f, f->tx.n - 1, 256, 0, 31);
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, writes_the_payload_to_a_slot_and_announces_it)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 8, 1024);
	uint8_t frame[FIXTURE_FRAME_MAX];
	struct roce_packet p;

	send_one(f, link);
	send_one(f, link);
	cr_assert_eq(f->tx.n, 2, "descriptors wait for the burst's end");
	for (unsigned int i = 0; i < 2; i++) {
		p = fixture_packet(f, i, frame);
		cr_expect_eq(p.va, SLOTS + i * STRIDE, "low slots first");
		cr_expect_eq(p.rkey, FIXTURE_RKEY);
		cr_expect_eq(p.length, 10);
		cr_expect_not(p.ack_request);
	}
	link_batch_flush(link);
	cr_assert_eq(f->tx.n, 3);
	expect_descriptors(f, 2, 8, 0, 2);
	cr_expect_eq(link->slot[1].sequence, 2);
	cr_expect_eq(link->slot[1].flow, 0x1234);
	cr_expect_eq(link->slot[1].sent, 1000);
	cr_expect_eq(link->slot[1].tag, 99);
	cr_expect_eq(link->slot[1].service, 4);
	cr_expect_eq(link->slot[1].state, SLOT_BUSY);
	cr_expect_eq(link_outstanding(link), 2);
	link_batch_flush(link);
	cr_expect_eq(f->tx.n, 3, "nothing more to announce");
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, tells_the_worker_of_congestion_when_there_is_room)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 8, 1024);
	uint8_t frame[FIXTURE_FRAME_MAX];

	responder_marked(&link->responder, 1);
	f->tx.n = TXQ_SIZE;
	link_acknowledge(link, &f->tx, f->small);
	f->tx.n = 0;
	link_acknowledge(link, &f->tx, f->small);
	cr_assert_eq(f->tx.n, 1, "still due");
	cr_expect_eq(fixture_packet(f, 0, frame).opcode, ROCE_CNP);
	link_acknowledge(link, &f->tx, f->small);
	cr_expect_eq(f->tx.n, 1, "told once");
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, never_sends_without_a_credit)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 4, 1024);

	for (unsigned int i = 0; i < 4; i++)
		cr_assert(link_reserve(link, 1, 0, REQUESTER_WINDOW));
	cr_expect_not(link_reserve(link, 1, 0, REQUESTER_WINDOW),
		      "what is assigned counts before it is written");
	link_unreserve(link, 1);
	cr_expect(link_reserve(link, 1, 0, REQUESTER_WINDOW));
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_eq(send_length(f, link, 10), 0);
	cr_expect_not(link_reserve(link, 1, 0, REQUESTER_WINDOW));
	cr_expect_eq(link->reserved_slots, 0);
	cr_expect_eq(link->reserved_packets, 0);
	link_slot_free(link, 2);
	cr_expect_eq(link->slot[2].state, SLOT_FREE);
	cr_expect_eq(link_outstanding(link), 3);
	cr_assert(link_reserve(link, 1, 0, REQUESTER_WINDOW));
	cr_assert_eq(send_length(f, link, 10), 0);
	cr_expect_eq(link->slot[2].sequence, 5, "the slot that came free");
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, ends_a_descriptor_write_where_the_ring_wraps)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 8, 1024);

	for (unsigned int i = 0; i < 6; i++)
		send_one(f, link);
	link_batch_flush(link);
	acknowledge(f, link);
	for (uint32_t slot = 0; slot < 6; slot++)
		link_slot_free(link, slot);
	for (unsigned int i = 0; i < 5; i++)
		send_one(f, link);
	link_batch_flush(link);
	cr_assert_eq(f->tx.n, 7);
	expect_descriptors(f, 2, 8, 6, 2);
	expect_descriptors(f, 6, 8, 8, 3);
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, sends_a_descriptor_write_when_it_fills_a_packet)
{
	static const struct {
		uint32_t mtu, batch;
	} rows[] = {{256, 4}, {512, 8}, {1024, 16}, {2048, 32}, {4096, 64}};
	struct fixture *f = fixture_create(4, 1024, 0, true);

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct link *link = link_on(f, 128, rows[i].mtu);

		cr_assert_eq(link->batch_max, rows[i].batch);
		for (uint32_t n = 0; n < rows[i].batch + 1; n++)
			send_one(f, link);
		cr_assert_eq(f->tx.n, rows[i].batch + 2);
		expect_descriptors(f, rows[i].batch, 128, 0, rows[i].batch);
		link_batch_flush(link);
		expect_descriptors(f, rows[i].batch + 2, 128, rows[i].batch, 1);
		fixture_sent(f);
		link_destroy(link);
	}
	fixture_destroy(f);
}

/* The largest burst that a link can be asked for, with the window nearly full. */
static void fill_the_window(struct fixture *f, uint32_t mtu, uint32_t packets)
{
	struct link *link = link_on(f, 4096, mtu);
	uint32_t length = packets * mtu, sent = 0, n;

	do {
		for (n = 0; n < 32 && link_reserve(link, packets, 0, REQUESTER_WINDOW); n++)
			;
		for (uint32_t i = 0; i < n; i++) {
			cr_assert_eq(send_length(f, link, length), 0);
			cr_assert_leq(requester_unacked(&link->requester), REQUESTER_WINDOW);
		}
		link_batch_flush(link);
		cr_assert_leq(requester_unacked(&link->requester), REQUESTER_WINDOW,
			      "path MTU %u: %u packets in the window", mtu,
			      requester_unacked(&link->requester));
		fixture_sent(f);
		sent += n;
	} while (n > 0);
	cr_expect_gt(sent * (packets + 1), REQUESTER_WINDOW * 8 / 10, "the window is used");
	acknowledge(f, link);
	cr_expect_eq(fixture_in_use(f), 0);
	link_destroy(link);
}

Test(lb_link, reserves_room_for_every_descriptor_write_of_a_burst)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);

	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2)
		for (uint32_t packets = 1; packets * mtu < FIXTURE_MESSAGE_MAX && packets < 8;
		     packets += 3)
			fill_the_window(f, mtu, packets);
	fixture_destroy(f);
}

Test(lb_link, reserves_room_on_a_ring_that_wraps_all_the_time)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 2, 1024);

	for (;;) {
		if (!link_reserve(link, 1, 0, REQUESTER_WINDOW))
			break;
		cr_assert_eq(send_length(f, link, 10), 0);
		link_batch_flush(link);
		link_slot_free(link, link->slot[0].state == SLOT_BUSY ? 0 : 1);
		cr_assert_leq(requester_unacked(&link->requester), REQUESTER_WINDOW);
		fixture_sent(f);
	}
	cr_expect_gt(requester_unacked(&link->requester), REQUESTER_WINDOW - 4);
	link_destroy(link);
	fixture_destroy(f);
}

static void expect_unchanged(const struct link *link, const struct link *before)
{
	cr_expect_eq(link->n_free, before->n_free);
	cr_expect_eq(link->position, before->position);
	cr_expect_eq(link->batched, before->batched);
	cr_expect_eq(link->requester.next_psn, before->requester.next_psn);
	cr_expect_eq(link->stats.requests, before->stats.requests);
	cr_expect_eq(link->reserved_slots, 0);
	cr_expect_eq(link->reserved_packets, 0);
	cr_expect_eq(link->slot[1].state, SLOT_FREE);
}

/* Send to a link that has <spare> buffers for descriptors and none for headers of pieces. */
static void send_without_memory(struct fixture *f, struct link *link, unsigned int spare)
{
	struct rte_mempool *pool = fixture_pool("descriptors", 4, 4096);
	struct rte_mbuf *small[4095], *descriptors[4], *m = fixture_message(f, 3000);
	unsigned int n = rte_mempool_avail_count(f->small);
	struct ring_descriptor request = {.length = 3000};
	struct link *before = malloc(sizeof(*before));

	cr_assert_eq(rte_pktmbuf_alloc_bulk(f->small, small, n), 0);
	cr_assert_eq(rte_pktmbuf_alloc_bulk(pool, descriptors, 4 - spare), 0);
	cr_assert(link_reserve(link, 3, 0, REQUESTER_WINDOW));
	memcpy(before, link, sizeof(*before));
	cr_expect_eq(link_send(link, m, &request, 0, 0, 0, pool), -ENOMEM);
	expect_unchanged(link, before);
	cr_expect_eq(rte_mbuf_refcnt_read(m), 1, "the packet stays the caller's");
	cr_expect_eq(m->data_len, 3000);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free_bulk(small, n);
	rte_pktmbuf_free_bulk(descriptors, 4 - spare);
	/* With memory again, the next request takes the slot and the position. */
	cr_assert(link_reserve(link, 1, 0, REQUESTER_WINDOW));
	cr_expect_eq(link_send(link, fixture_message(f, 10), &request, 0, 0, 0, pool), 0);
	cr_expect_eq(link->position, before->position + 1);
	cr_expect_eq(link->slot[1].state, SLOT_BUSY);
	link_batch_flush(link);
	acknowledge(f, link);
	cr_expect_eq(rte_mempool_in_use_count(pool), 0);
	rte_mempool_free(pool);
	free(before);
}

Test(lb_link, is_unchanged_when_there_is_no_memory_for_the_descriptor)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 4, 1024);

	send_one(f, link);
	link_batch_flush(link);
	send_without_memory(f, link, 0);
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, is_unchanged_when_there_is_no_memory_for_the_payload_packets)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 4, 1024);

	send_one(f, link);
	link_batch_flush(link);
	send_without_memory(f, link, 3);
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, takes_nothing_when_the_queue_pair_is_dead)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 4, 1024);

	send_one(f, link);
	cr_assert(link_reserve(link, 1, 0, REQUESTER_WINDOW));
	requester_ack(&link->requester, 0x100, ROCE_NAK_REMOTE_ACCESS, 0);
	cr_expect_eq(send_length(f, link, 10), -EPIPE);
	cr_expect_eq(link->reserved_slots, 0);
	cr_expect_not(link_reserve(link, 1, 0, REQUESTER_WINDOW));
	/* The announcement of the first request goes the same way; nothing leaks. */
	link_batch_flush(link);
	link_cancel(link, 0, f->small);
	link_destroy(link);
	fixture_destroy(f);
}

/* Expects these slots in use, oldest first, and the same list backwards. */
static void expect_age(const struct link *link, const uint32_t *slots, unsigned int n)
{
	uint32_t at = link->busy.oldest;

	for (unsigned int i = 0; i < n; i++, at = link->slot[at].newer)
		cr_assert_eq(at, slots[i], "place %u", i);
	cr_expect_eq(at, SLOT_NONE);
	for (at = link->busy.newest; n > 0; at = link->slot[at].older)
		cr_assert_eq(at, slots[--n]);
	cr_expect_eq(at, SLOT_NONE);
}

Test(lb_link, knows_its_requests_by_age)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 8, 1024);

	expect_age(link, NULL, 0);
	for (unsigned int i = 0; i < 5; i++)
		send_one(f, link);
	expect_age(link, (uint32_t[]){0, 1, 2, 3, 4}, 5);
	link_slot_free(link, 2); /* in the middle */
	link_slot_free(link, 0); /* the oldest */
	link_slot_free(link, 4); /* the newest */
	expect_age(link, (uint32_t[]){1, 3}, 2);
	send_one(f, link);
	send_one(f, link);
	expect_age(link, (uint32_t[]){1, 3, 4, 0}, 4);
	for (uint32_t slot = 0; slot < 5; slot += slot == 1 ? 2 : 1)
		link_slot_free(link, slot);
	expect_age(link, NULL, 0);
	send_one(f, link);
	expect_age(link, (uint32_t[]){4}, 1);
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, acknowledges_once_and_only_when_it_can)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 8, 1024);
	struct roce_packet heartbeat = {
		.opcode = ROCE_WRITE_ONLY_IMM, .psn = 0x900, .ack_request = true};
	struct responder_placement place;
	uint8_t frame[FIXTURE_FRAME_MAX];

	link_acknowledge(link, &f->tx, f->small);
	cr_expect_eq(f->tx.n, 0, "nothing due");
	cr_assert_eq(responder_receive(&link->responder, &heartbeat, &place), RESPONDER_ACCEPT);
	f->tx.n = TXQ_SIZE;
	link_acknowledge(link, &f->tx, f->small);
	f->tx.n = 0;
	cr_expect(link->responder.ack_due, "it stays due while the queue is full");
	link_acknowledge(link, &f->tx, f->small);
	cr_assert_eq(f->tx.n, 1);
	heartbeat = fixture_packet(f, 0, frame);
	cr_expect_eq(heartbeat.opcode, ROCE_ACK);
	cr_expect_eq(heartbeat.psn, 0x900);
	cr_expect_eq(heartbeat.syndrome, ROCE_CREDITS_UNUSED);
	cr_expect_eq(heartbeat.msn, 1);
	link_acknowledge(link, &f->tx, f->small);
	cr_expect_eq(f->tx.n, 1, "once");
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, cancels_by_the_sequence_in_the_slots_word)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 4, 1024);
	uint8_t frame[FIXTURE_FRAME_MAX];
	struct roce_packet p;
	uint64_t word;

	send_one(f, link);
	send_one(f, link);
	link_batch_flush(link);
	fixture_sent(f);
	link_cancel(link, 1, f->small);
	p = fixture_packet(f, 0, frame);
	cr_expect_eq(p.va, CANCELS + 8);
	cr_expect_eq(p.length, 8);
	memcpy(&word, frame + p.payload_offset, sizeof(word));
	cr_expect_eq(word, 2);
	cr_expect_eq(link->slot[1].state, SLOT_ABANDONED, "the worker still owns the slot");
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, puts_off_a_cancel_that_has_no_room)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 4, 1024);

	send_one(f, link);
	link_batch_flush(link);
	while (requester_room(&link->requester, 1)) {
		cr_assert_eq(requester_write(&link->requester, fixture_message(f, 1), SLOTS,
					     FIXTURE_RKEY, 0, 0),
			     0);
		fixture_sent(f);
	}
	link_cancel(link, link->busy.oldest, f->small);
	cr_expect_eq(requester_unacked(&link->requester), REQUESTER_WINDOW);
	cr_expect_eq(link_send_cancels(link, 1, f->small), 0);
	acknowledge(f, link);
	cr_expect_eq(link_send_cancels(link, 1, f->small), 1);
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, a_worker_that_does_not_acknowledge_gets_few_cancels)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 256, 1024);
	unsigned int cancel_due = 0;

	for (unsigned int i = 0; i < 256; i++) {
		send_one(f, link);
		fixture_sent(f);
	}
	link_batch_flush(link);
	for (unsigned int i = 0; i < 256; i++) {
		link_cancel(link, i, f->small);
		fixture_sent(f);
		cancel_due += link->slot[i].cancel_due;
	}
	cr_expect_eq(cancel_due, 256 - LINK_CANCELS_MAX);
	acknowledge(f, link);
	cr_expect_eq(link_send_cancels(link, 5, f->small), 5, "they have arrived");
	acknowledge(f, link);
	link->suspect = true;
	cr_expect_eq(link_send_cancels(link, 5, f->small), 0);
	link->suspect = false;
	cr_expect_eq(link_send_cancels(link, 1, f->small), 1);
	link->requester.early = 1;
	cr_expect_eq(link_send_cancels(link, 5, f->small), 0);
	link->requester.early = 0;
	link->requester.retries = 1;
	cr_expect_eq(link_send_cancels(link, 5, f->small), 0);
	link->requester.retries = 0;
	link_slot_free(link, link->cancel_due.oldest);
	cancel_due -= 7;
	cr_expect_eq(link_send_cancels(link, 256, f->small), LINK_CANCELS_MAX - 1);
	fixture_sent(f);
	acknowledge(f, link);
	cancel_due -= LINK_CANCELS_MAX - 1;
	cr_expect_eq(link_send_cancels(link, 256, f->small),
		     RTE_MIN(cancel_due, (unsigned int)LINK_CANCELS_MAX));
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, frees_what_it_holds)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 4, 1024);

	send_one(f, link); /* in the window, its descriptor not sent yet */
	link->reply_head = fixture_message(f, 100);
	fixture_sent(f);
	link_destroy(link);
	cr_expect_eq(fixture_in_use(f), 0);
	link_destroy(NULL);
	fixture_destroy(f);
}

Test(lb_link, says_why_it_cannot_go_on)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 4, 1024);

	cr_expect_null(link_error(link));
	link->requester.error = REQUESTER_RETRY_EXCEEDED;
	cr_expect(strstr(link_error(link), "does not acknowledge"));
	link->requester.error = REQUESTER_RNR_EXCEEDED;
	cr_expect_str_eq(link_error(link), "the worker's queue pair stayed not ready to receive");
	link->requester.error = REQUESTER_NAK;
	link->requester.nak = ROCE_NAK_REMOTE_ACCESS;
	cr_expect(strstr(link_error(link), "wrong rkey or range"));
	link->requester.nak = ROCE_NAK_INVALID_REQUEST;
	cr_expect_str_eq(link_error(link), "the worker's queue pair refused a WRITE");
	/* An RDMA device ends both directions at once, and reports both: this one came first. */
	link->responder.error = true;
	cr_expect_str_eq(link_error(link), "the worker wrote where or what it may not");
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, names_lcore_and_place_in_its_queue_pair_number)
{
	cr_expect_eq(LINK_QPN_LCORE(QPN), 3);
	cr_expect_eq(LINK_QPN_PLACE(QPN), 0x405);
	cr_expect_eq(LINK_QPN_LCORE(LINK_QPN(63, UINT32_MAX)), 63);
	cr_expect_eq(LINK_QPN_PLACE(LINK_QPN(63, UINT32_MAX)), LINK_PLACES - 1);
	cr_expect_leq(LINK_QPN(63, UINT32_MAX), ROCE_PSN_MASK, "24 bits");
}

Test(lb_link, an_abandoned_slot_is_taken_but_nobody_waits_for_it)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 8, 1024);

	for (unsigned int i = 0; i < 3; i++)
		send_one(f, link);
	link_slot_abandon(link, 1);
	expect_age(link, (uint32_t[]){0, 2}, 2);
	cr_expect_eq(link_outstanding(link), 3);
	link_slot_free(link, 1);
	expect_age(link, (uint32_t[]){0, 2}, 2);
	cr_expect_eq(link_outstanding(link), 2);
	link_slot_free(link, 0);
	link_slot_free(link, 2);
	expect_age(link, NULL, 0);
	link_destroy(link);
	fixture_destroy(f);
}

/* --- payloads in pieces -------------------------------------------------------------------------
 */

/* Offset of the room behind 8 tiles of STRIDE bytes. */
#define ROOM_AT    (8 * STRIDE)
#define ROOM_PAGES 16

/* A link of 8 slots with a room of ROOM_PAGES pages. */
static struct link *roomy_link(struct fixture *f)
{
	return link_of(f, 8, 1024, rte_pktmbuf_data_room_size(f->packets) - RTE_PKTMBUF_HEADROOM,
		       ROOM_PAGES * 4096);
}

static struct link_place take(struct link *link, uint32_t bytes)
{
	struct link_place place;

	cr_assert_eq(link_take(link, bytes, 0, &place), LINK_TAKEN, "%u bytes", bytes);
	return place;
}

static int write_piece(struct fixture *f, struct link *link, const struct link_place *place,
		       uint32_t offset, uint32_t length, bool ask)
{
	struct rte_mbuf *m = fixture_message(f, length);
	int ret = link_write(link, place, offset, m, ask, REQUESTER_WINDOW);

	if (ret < 0)
		rte_pktmbuf_free(m);
	return ret;
}

static int announce(struct fixture *f, struct link *link, const struct link_place *place,
		    uint32_t length)
{
	struct ring_descriptor request = {.length = length, .service = 4, .flow = 0x1234};

	return link_announce(link, place, &request, 7, 900, 1000, REQUESTER_WINDOW, f->packets);
}

static struct ring_descriptor sent_descriptor(struct fixture *f, unsigned int i)
{
	uint8_t frame[FIXTURE_FRAME_MAX];
	struct roce_packet p = fixture_packet(f, i, frame);
	struct ring_descriptor d;

	cr_assert_eq(p.length, sizeof(d));
	memcpy(&d, frame + p.payload_offset, sizeof(d));
	return d;
}

Test(lb_link, names_tile_and_reply_of_a_request_in_its_descriptor)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = link_on(f, 8, 1024);
	struct ring_descriptor d;

	for (uint32_t i = 0; i < 3; i++) {
		send_one(f, link);
		link_batch_flush(link);
		d = sent_descriptor(f, 2 * i + 1);
		cr_expect_eq(d.slot, i);
		cr_expect_eq(d.payload * 64, i * STRIDE);
		cr_expect_eq(d.reply * 64, i * 2048);
	}
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, takes_a_tile_or_pages)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = roomy_link(f);
	struct link_place small = take(link, STRIDE), large = take(link, STRIDE + 1),
			  larger = take(link, 3 * 4096);

	cr_expect_eq(small.slot, 0);
	cr_expect_eq(small.payload, 0);
	cr_expect_eq(small.bytes, STRIDE);
	cr_expect_eq(large.slot, 1);
	cr_expect_eq(large.payload * 64, ROOM_AT);
	cr_expect_eq(large.bytes, 2 * 4096);
	cr_expect_eq(larger.payload * 64, ROOM_AT + 2 * 4096);
	cr_expect_eq(link->room.free, ROOM_PAGES - 5);
	cr_expect_eq(link->slot[0].state, SLOT_FILLING);
	cr_expect_eq(link->busy.oldest, SLOT_NONE, "nothing is in flight");
	cr_expect_eq(link_outstanding(link), 3, "but the slots are in use");
	link_give_back(link, &large);
	cr_expect_eq(link->room.free, ROOM_PAGES - 3);
	link_give_back(link, &small);
	link_give_back(link, &larger);
	cr_expect_eq(link->room.free, ROOM_PAGES);
	cr_expect_eq(link->n_free, 8);
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, says_why_it_takes_nothing)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = roomy_link(f), *roomless = link_on(f, 8, 1024);
	struct link_place place = {.slot = 77}, most;

	cr_expect_eq(link_take(roomless, STRIDE + 1, 0, &place), LINK_TOO_LARGE);
	cr_expect_eq(link_take(link, ROOM_PAGES * 4096 + 1, 0, &place), LINK_TOO_LARGE);
	most = take(link, ROOM_PAGES * 4096);
	cr_expect_eq(link_take(link, STRIDE + 1, 0, &place), LINK_NO_ROOM);
	cr_expect_eq(link->n_free, 7, "the slot stays free");
	cr_expect_eq(link_take(link, 1, 7, &place), LINK_NO_SLOT, "seven are kept back");
	cr_assert(link_reserve(link, 1, 0, REQUESTER_WINDOW));
	cr_expect_eq(link_take(link, 1, 6, &place), LINK_NO_SLOT, "the burst has one of them");
	cr_expect_eq(link_take(link, 1, 5, &place), LINK_TAKEN);
	link_unreserve(link, 1);
	link_give_back(link, &place);
	link_give_back(link, &most);
	link->requester.error = REQUESTER_RETRY_EXCEEDED;
	cr_expect_eq(link_take(link, 1, 0, &place), LINK_FAILED);
	link_destroy(link);
	link_destroy(roomless);
	fixture_destroy(f);
}

/* The pieces come in any order, the descriptor behind them. */
Test(lb_link, writes_pieces_to_their_places_and_then_announces)
{
	static const struct {
		uint32_t offset, length;
	} pieces[] = {{1000, 1000}, {0, 1000}, {5000, 24}, {2000, 3000}};
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = roomy_link(f);
	struct link_place place;
	uint8_t frame[FIXTURE_FRAME_MAX];
	struct ring_descriptor d;
	struct roce_packet p;

	send_one(f, link);
	link_batch_flush(link);
	place = take(link, 5024);
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(
			write_piece(f, link, &place, pieces[i].offset, pieces[i].length, i == 2),
			0);
		p = fixture_packet(f, 2 + i, frame);
		cr_expect_eq(p.va, SLOTS + ROOM_AT + pieces[i].offset);
		cr_expect_eq(p.rkey, FIXTURE_RKEY);
		cr_expect_eq(p.length, pieces[i].length);
		cr_expect_eq(p.ack_request, i == 2, "the last of its burst");
	}
	cr_expect_eq(link->busy.newest, 0, "only the first request is in flight");
	cr_assert_eq(write_piece(f, link, &place, pieces[3].offset, pieces[3].length, true), 0);
	cr_assert_eq(announce(f, link, &place, 5024), 0);
	link_batch_flush(link);
	d = sent_descriptor(f, f->tx.n - 1);
	cr_expect_eq(d.slot, 1);
	cr_expect_eq(d.payload * 64, ROOM_AT);
	cr_expect_eq(d.reply * 64, 2048);
	cr_expect_eq(d.length, 5024);
	cr_expect_eq(d.sequence, 2);
	cr_expect_eq(link->busy.newest, 1);
	cr_expect_eq(link->slot[1].tag, 7);
	cr_expect_eq(link->room.free, ROOM_PAGES - 2);
	link_slot_free(link, 1); /* its answer */
	cr_expect_eq(link->room.free, ROOM_PAGES);
	link_destroy(link);
	fixture_destroy(f);
}

/* An abandoned request keeps its pages until the worker has answered: it may be read until then. */
Test(lb_link, keeps_the_pages_of_an_abandoned_request)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = roomy_link(f);
	struct link_place place = take(link, STRIDE + 1);

	cr_assert_eq(announce(f, link, &place, 5000), 0);
	link_slot_abandon(link, place.slot);
	cr_expect_eq(link->room.free, ROOM_PAGES - 2);
	link_slot_free(link, place.slot);
	cr_expect_eq(link->room.free, ROOM_PAGES);
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, writes_no_piece_beyond_its_place)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = roomy_link(f);
	struct link_place tile = take(link, 10), pages = take(link, STRIDE + 1);

	cr_expect_eq(write_piece(f, link, &tile, STRIDE - 9, 10, true), -EMSGSIZE);
	cr_expect_eq(write_piece(f, link, &tile, UINT32_MAX, 10, true), -EMSGSIZE);
	cr_expect_eq(write_piece(f, link, &pages, 2 * 4096 - 9, 10, true), -EMSGSIZE);
	cr_expect_eq(f->tx.n, 0);
	cr_expect_eq(write_piece(f, link, &tile, STRIDE - 10, 10, true), 0);
	cr_expect_eq(write_piece(f, link, &pages, 2 * 4096 - 10, 10, true), 0);
	link->requester.error = REQUESTER_NAK;
	cr_expect_eq(write_piece(f, link, &tile, 0, 10, true), -EPIPE);
	cr_expect_eq(announce(f, link, &tile, 10), -EPIPE);
	link_destroy(link);
	fixture_destroy(f);
}

/* Pieces leave what bursts have reserved, and the descriptors of all, in the window. */
Test(lb_link, pieces_and_bursts_share_the_window)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = roomy_link(f);
	struct link_place place = take(link, STRIDE);
	unsigned int n = 0;
	int ret;

	cr_assert(link_reserve(link, 1, 0, REQUESTER_WINDOW));
	while ((ret = write_piece(f, link, &place, 0, 1000, true)) == 0) {
		fixture_sent(f);
		n++;
	}
	cr_expect_eq(ret, -EAGAIN);
	cr_expect_eq(n, REQUESTER_WINDOW - 3, "a request, its descriptor and one more: %u", n);
	cr_assert_eq(announce(f, link, &place, 1000), 0);
	cr_assert_eq(send_length(f, link, 10), 0);
	link_batch_flush(link);
	cr_expect_leq(requester_unacked(&link->requester), REQUESTER_WINDOW);
	place = take(link, 10);
	cr_expect_eq(write_piece(f, link, &place, 0, 10, true), -EAGAIN);
	fixture_sent(f);
	acknowledge(f, link);
	cr_expect_eq(write_piece(f, link, &place, 0, 10, true), 0);
	cr_assert_eq(announce(f, link, &place, 10), 0);
	link_batch_flush(link);
	fixture_sent(f);
	acknowledge(f, link);
	cr_expect_eq(fixture_in_use(f), 0);
	link_destroy(link);
	fixture_destroy(f);
}

Test(lb_link, announces_later_when_there_is_no_memory)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	struct link *link = roomy_link(f);
	struct rte_mempool *pool = fixture_pool("announcements", 4, 4096);
	struct link_place place = take(link, 10);
	struct ring_descriptor request = {.length = 10};
	struct rte_mbuf *all[4];

	cr_assert_eq(rte_pktmbuf_alloc_bulk(pool, all, 4), 0);
	cr_expect_eq(link_announce(link, &place, &request, 0, 0, 0, REQUESTER_WINDOW, pool),
		     -ENOMEM);
	cr_expect_eq(link->slot[place.slot].state, SLOT_FILLING, "it is still the caller's");
	rte_pktmbuf_free_bulk(all, 4);
	cr_expect_eq(link_announce(link, &place, &request, 0, 0, 0, REQUESTER_WINDOW, pool), 0);
	cr_expect_eq(link->slot[place.slot].state, SLOT_BUSY);
	link_destroy(link);
	rte_mempool_free(pool);
	fixture_destroy(f);
}
