/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets that the requester puts on the wire, without a copy of the payload. */
#include "rdma_fixture.h"

static void expect_vector(const struct fixture *f, unsigned int i, const char *vector)
{
	uint8_t frame[FIXTURE_FRAME_MAX], expected[FIXTURE_FRAME_MAX];
	uint32_t n = vector_bytes(vector, expected);

	cr_assert_eq(fixture_flatten(f->tx.packet[i], frame), ROCE_ETHER_LENGTH + n);
	cr_expect_arr_eq(frame + ROCE_ETHER_LENGTH, expected, n);
}

static struct rte_mbuf *text(struct fixture *f, const char *bytes)
{
	struct rte_mbuf *m = fixture_message(f, strlen(bytes));

	memcpy(rte_pktmbuf_mtod(m, void *), bytes, strlen(bytes));
	return m;
}

/* Losses are found and the window moves, even when the caller never asks for acknowledgements. */
Test(rdma_requester, asks_for_an_acknowledgement_now_and_then_by_itself)
{
	struct fixture *f = fixture_create(4, 256, 1, true);
	uint8_t frame[FIXTURE_FRAME_MAX];

	for (unsigned int i = 0; i < 100; i++)
		fixture_write(f, 64, 0);
	for (unsigned int i = 0; i < 100; i++) {
		struct roce_packet p = fixture_packet(f, i, frame);

		cr_expect_eq(p.ack_request, p.psn % REQUESTER_ACK_EVERY == 0, "PSN %u", p.psn);
	}
	fixture_destroy(f);
}

Test(rdma_requester, builds_a_packet_around_the_payload_where_it_lies)
{
	struct fixture *f = fixture_create(4, 1024, 0x100, true);
	struct rte_mbuf *m = text(f, "ABCDEFGH");
	const uint8_t *payload = rte_pktmbuf_mtod(m, uint8_t *);

	cr_assert_eq(requester_write(&f->rq, m, 0x7f0000001000, 0x1234, 0, REQUESTER_ACK_REQUEST),
		     0);
	cr_assert_eq(f->tx.n, 1);
	cr_expect_eq(f->tx.packet[0], m);
	cr_expect_eq(m->nb_segs, 1);
	cr_expect_eq(rte_pktmbuf_mtod_offset(m, uint8_t *, f->path.length + ROCE_RETH_LENGTH),
		     payload);
	cr_expect_eq(rte_mbuf_refcnt_read(m), 2, "one for the port, one until acknowledged");
	cr_expect_eq(f->rq.stats.copies, 0);
	expect_vector(f, 0, VECTOR_WRITE_ONLY);
	fixture_destroy(f);
}

Test(rdma_requester, builds_immediate_and_pad)
{
	struct fixture *f = fixture_create(4, 1024, 0x101, true);

	cr_assert_eq(requester_write(&f->rq, text(f, "hello"), 0x7f0000001008, 0x1234, 0xdeadbeef,
				     REQUESTER_ACK_REQUEST | REQUESTER_IMM),
		     0);
	expect_vector(f, 0, VECTOR_WRITE_ONLY_IMM);
	fixture_destroy(f);
}

Test(rdma_requester, sends_over_ipv6)
{
	struct fixture *f = fixture_create(6, 1024, 0x100, true);

	cr_assert_eq(requester_write(&f->rq, text(f, "ABCDEFGH"), 0x7f0000001000, 0x1234, 0,
				     REQUESTER_ACK_REQUEST),
		     0);
	expect_vector(f, 0, VECTOR_WRITE_ONLY6);
	fixture_destroy(f);
}

/* A message with 6 bytes free behind it: one less than pad and ICRC. */
static struct rte_mbuf *text_at_the_end(struct fixture *f, const char *bytes)
{
	struct rte_mbuf *m = text(f, bytes);
	uint16_t room = rte_pktmbuf_tailroom(m) - 6;

	memmove(rte_pktmbuf_mtod_offset(m, uint8_t *, room), rte_pktmbuf_mtod(m, void *),
		strlen(bytes));
	m->data_off += room;
	return m;
}

Test(rdma_requester, puts_the_trailer_into_an_mbuf_of_its_own_when_there_is_no_room)
{
	struct fixture *f = fixture_create(4, 1024, 0x101, true);

	cr_assert_eq(requester_write(&f->rq, text_at_the_end(f, "hello"), 0x7f0000001008, 0x1234,
				     0xdeadbeef, REQUESTER_ACK_REQUEST | REQUESTER_IMM),
		     0);
	cr_expect_eq(f->tx.packet[0]->nb_segs, 3);
	expect_vector(f, 0, VECTOR_WRITE_ONLY_IMM);
	fixture_destroy(f);
}

/* As a load balancer does that may have to send it to another worker. */
Test(rdma_requester, frees_no_trailer_of_a_message_that_its_owner_keeps_twice)
{
	struct fixture *f = fixture_create(4, 1024, 0x101, true);
	struct rte_mbuf *m = text_at_the_end(f, "hello"), *other, *all[4095];

	other = rte_pktmbuf_alloc(f->small);
	rte_mbuf_refcnt_update(m, 1);
	cr_assert_eq(requester_write(&f->rq, m, 0x7f0000001008, 0x1234, 0xdeadbeef,
				     REQUESTER_ACK_REQUEST | REQUESTER_IMM),
		     0);
	fixture_sent(f);
	requester_fini(&f->rq);
	cr_expect_eq(rte_mbuf_refcnt_read(m), 1);
	rte_pktmbuf_free(m);
	/* All but one are in the pool, and none twice. */
	cr_expect_lt(rte_pktmbuf_alloc_bulk(f->small, all, RTE_DIM(all)), 0);
	rte_pktmbuf_free(other);
	fixture_destroy(f);
}

/* Nor does such a packet become a chain. */
Test(rdma_requester, copies_a_message_without_room_where_the_port_sends_no_chains)
{
	struct fixture *f = fixture_create(4, 1024, 0x101, false);

	cr_assert_eq(requester_write(&f->rq, text_at_the_end(f, "hello"), 0x7f0000001008, 0x1234,
				     0xdeadbeef, REQUESTER_ACK_REQUEST | REQUESTER_IMM),
		     0);
	cr_expect_eq(f->tx.packet[0]->nb_segs, 1);
	cr_expect_eq(f->rq.stats.copies, 1);
	expect_vector(f, 0, VECTOR_WRITE_ONLY_IMM);
	fixture_destroy(f);
}

Test(rdma_requester, refuses_an_mbuf_without_room_for_headers)
{
	struct fixture *f = fixture_create(4, 1024, 1, true);
	struct rte_mbuf *m = text(f, "hello");

	m->data_off = f->path.length + ROCE_RETH_LENGTH - 1;
	cr_expect_lt(requester_write(&f->rq, m, 0, 0, 0, 0), 0);
	cr_expect_eq(f->tx.n, 0);
	cr_expect_eq(f->rq.next_psn, 1);
	rte_pktmbuf_free(m);
	fixture_destroy(f);
}

static void expect_long(const struct fixture *f)
{
	uint8_t frame[FIXTURE_FRAME_MAX];

	cr_assert_eq(f->tx.n, VECTOR_LONG_PACKETS);
	for (unsigned int i = 0; i < VECTOR_LONG_PACKETS; i++) {
		struct roce_packet p = fixture_packet(f, i, frame);
		uint8_t *ip = frame + ROCE_ETHER_LENGTH;
		uint32_t crc;

		cr_expect_eq(p.opcode, vector_long[i].opcode);
		cr_expect_eq(p.psn, 0x200 + i);
		cr_expect_eq(p.ack_request, i == VECTOR_LONG_PACKETS - 1);
		cr_expect_eq(f->tx.packet[i]->pkt_len, 14u + vector_long[i].ip_length);
		cr_expect_eq(ip[2] << 8 | ip[3], vector_long[i].ip_length);
		cr_expect_eq(ip[10] << 8 | ip[11], vector_long[i].ip_checksum);
		cr_expect_eq(ip[24] << 8 | ip[25], vector_long[i].udp_length);
		crc = htole32(roce_icrc_of_packet(ip, 20, vector_long[i].ip_length - 4));
		cr_expect_arr_eq(&crc, vector_long[i].icrc, 4);
	}
}

static void write_long(struct fixture *f, struct rte_mbuf *m)
{
	cr_assert_eq(
		requester_write(&f->rq, m, VECTOR_LONG_VA, FIXTURE_RKEY, 0, REQUESTER_ACK_REQUEST),
		0);
}

Test(rdma_requester, cuts_a_long_message_into_pointers_to_the_original)
{
	struct fixture *f = fixture_create(4, 256, 0x200, true);
	struct rte_mbuf *m = fixture_message(f, VECTOR_LONG_LENGTH);
	const uint8_t *payload = rte_pktmbuf_mtod(m, uint8_t *);

	write_long(f, m);
	expect_long(f);
	for (unsigned int i = 0; i < VECTOR_LONG_PACKETS; i++) {
		const struct rte_mbuf *head = f->tx.packet[i], *piece = head->next;

		cr_expect_eq(rte_pktmbuf_mtod(piece, uint8_t *), payload + 256 * i);
		cr_expect(RTE_MBUF_CLONED(piece));
		/* Behind the last piece is free memory, behind the others the next piece. */
		cr_expect_eq(head->nb_segs, i < 2 ? 3 : 2);
	}
	for (uint32_t i = 0; i < VECTOR_LONG_LENGTH; i++)
		cr_assert_eq(payload[i], (uint8_t)i, "byte %u was written over", i);
	cr_expect_eq(f->rq.stats.copies, 0);
	cr_expect_eq(rte_mempool_in_use_count(f->packets), 1, "the pieces hold the message");
	fixture_destroy(f);
}

/* Two ranges of one packet, each a message of its own, with bytes of others around them. */
Test(rdma_requester, leaves_the_memory_around_shared_data_alone)
{
	static const uint32_t at[] = {3, 47, 300, 47};
	struct fixture *f = fixture_create(4, 256, 0x200, true);
	struct rte_mbuf *m = fixture_message(f, 400), *range;
	uint8_t before[1024], frame[FIXTURE_FRAME_MAX];
	uint32_t size = m->buf_len < sizeof(before) ? m->buf_len : sizeof(before);

	memcpy(before, m->buf_addr, size);
	for (unsigned int i = 0; i < 4; i += 2) {
		range = rte_pktmbuf_alloc(f->small);
		rte_pktmbuf_attach(range, m);
		range->data_off += at[i];
		range->data_len = range->pkt_len = at[i + 1];
		cr_assert_eq(requester_write_shared(&f->rq, range, FIXTURE_VA, FIXTURE_RKEY,
						    REQUESTER_ACK_REQUEST),
			     0);
	}
	rte_pktmbuf_free(m);
	cr_assert_eq(f->tx.n, 2);
	cr_expect_arr_eq(before, m->buf_addr, size);
	for (unsigned int i = 0; i < 2; i++) {
		struct roce_packet p = fixture_packet(f, i, frame);

		cr_expect_eq(p.opcode, ROCE_WRITE_ONLY);
		cr_expect(p.ack_request);
		cr_expect_eq(frame[f->path.length + ROCE_RETH_LENGTH], (uint8_t)at[2 * i]);
	}
	cr_expect_eq(rte_mempool_in_use_count(f->packets), 1);
	fixture_destroy(f);
}

Test(rdma_requester, copies_shared_data_where_the_port_sends_no_chains)
{
	struct fixture *f = fixture_create(4, 256, 0x200, false);
	struct rte_mbuf *m = fixture_message(f, VECTOR_LONG_LENGTH);
	struct rte_mbuf *range = rte_pktmbuf_alloc(f->small);

	rte_pktmbuf_attach(range, m);
	rte_pktmbuf_free(m);
	cr_assert_eq(requester_write_shared(&f->rq, range, VECTOR_LONG_VA, FIXTURE_RKEY,
					    REQUESTER_ACK_REQUEST),
		     0);
	expect_long(f);
	cr_expect_eq(f->rq.stats.copies, VECTOR_LONG_PACKETS);
	fixture_destroy(f);
}

Test(rdma_requester, copies_and_counts_where_the_port_sends_no_chains)
{
	struct fixture *f = fixture_create(4, 256, 0x200, false);

	write_long(f, fixture_message(f, VECTOR_LONG_LENGTH));
	expect_long(f);
	for (unsigned int i = 0; i < VECTOR_LONG_PACKETS; i++)
		cr_expect_eq(f->tx.packet[i]->nb_segs, 1);
	cr_expect_eq(f->rq.stats.copies, VECTOR_LONG_PACKETS);
	cr_expect_eq(rte_mempool_in_use_count(f->packets), VECTOR_LONG_PACKETS);
	fixture_destroy(f);
}

Test(rdma_requester, sends_the_same_from_pieces)
{
	struct fixture *f = fixture_create(4, 256, 0x200, true);
	struct rte_mbuf *whole = fixture_message(f, VECTOR_LONG_LENGTH);

	for (uint32_t offset = 0; offset < VECTOR_LONG_LENGTH; offset += 256) {
		uint32_t n = RTE_MIN(VECTOR_LONG_LENGTH - offset, 256u);
		struct rte_mbuf *m = fixture_message(f, n);

		memcpy(rte_pktmbuf_mtod(m, void *), rte_pktmbuf_mtod_offset(whole, void *, offset),
		       n);
		cr_assert_eq(requester_write_piece(&f->rq, m, offset, VECTOR_LONG_LENGTH,
						   VECTOR_LONG_VA, FIXTURE_RKEY, 0,
						   REQUESTER_ACK_REQUEST),
			     0);
	}
	rte_pktmbuf_free(whole);
	expect_long(f);
	fixture_destroy(f);
}

Test(rdma_requester, picks_opcodes_and_headers_by_length)
{
	static const struct {
		uint32_t length, packets;
		uint8_t first, last, last_imm;
	} rows[] = {
		{0, 1, ROCE_WRITE_ONLY, ROCE_WRITE_ONLY, ROCE_WRITE_ONLY_IMM},
		{1, 1, ROCE_WRITE_ONLY, ROCE_WRITE_ONLY, ROCE_WRITE_ONLY_IMM},
		{256, 1, ROCE_WRITE_ONLY, ROCE_WRITE_ONLY, ROCE_WRITE_ONLY_IMM},
		{257, 2, ROCE_WRITE_FIRST, ROCE_WRITE_LAST, ROCE_WRITE_LAST_IMM},
		{512, 2, ROCE_WRITE_FIRST, ROCE_WRITE_LAST, ROCE_WRITE_LAST_IMM},
		{513, 3, ROCE_WRITE_FIRST, ROCE_WRITE_LAST, ROCE_WRITE_LAST_IMM},
	};
	struct fixture *f = fixture_create(4, 256, 0, true);
	uint8_t frame[FIXTURE_FRAME_MAX];

	for (unsigned int i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t length = rows[i / 2].length, n = rows[i / 2].packets;
		struct roce_packet first, last;

		cr_expect_eq(requester_packets(&f->rq, length), n);
		cr_assert_eq(requester_write(&f->rq, fixture_message(f, length), FIXTURE_VA,
					     FIXTURE_RKEY, 7, i & 1 ? REQUESTER_IMM : 0),
			     0);
		cr_assert_eq(f->tx.n, n, "%u bytes", length);
		first = fixture_packet(f, 0, frame);
		last = fixture_packet(f, n - 1, frame);
		if (n > 1)
			cr_expect_eq(first.opcode, rows[i / 2].first);
		cr_expect_eq(last.opcode, i & 1 ? rows[i / 2].last_imm : rows[i / 2].last);
		cr_expect_eq(first.length, length);
		cr_expect_eq(first.va, FIXTURE_VA);
		cr_expect_eq(first.rkey, FIXTURE_RKEY);
		cr_expect_eq(last.imm, i & 1 ? 7 : 0);
		cr_expect_eq(last.pad, -length & 3);
		fixture_sent(f);
	}
	fixture_destroy(f);
}

Test(rdma_requester, asks_for_acknowledgement_at_the_end_and_now_and_then)
{
	struct fixture *f = fixture_create(4, 256, 40, true);
	uint8_t frame[FIXTURE_FRAME_MAX];

	for (unsigned int i = 0; i < 20; i++)
		fixture_write(f, 10, 0);
	fixture_write(f, 30 * 256, REQUESTER_ACK_REQUEST); /* PSN 60 to 89 */
	fixture_write(f, 10, 0);
	for (unsigned int i = 0; i < f->tx.n; i++) {
		struct roce_packet p = fixture_packet(f, i, frame);

		cr_expect_eq(p.ack_request, p.psn == 87 || p.psn == 89, "PSN %u", p.psn);
	}
	fixture_destroy(f);
}

static void write_with_little_memory(struct fixture *f, unsigned int left)
{
	struct rte_mbuf *m = fixture_message(f, VECTOR_LONG_LENGTH), *held[4095];
	unsigned int n = rte_mempool_avail_count(f->small) - left, before;
	uint32_t psn = f->rq.next_psn;
	int ret;

	cr_assert_eq(rte_pktmbuf_alloc_bulk(f->small, held, n), 0);
	before = fixture_in_use(f);
	ret = requester_write(&f->rq, m, 0, 0, 0, 0);
	/* Three headers, three pieces, two trailers. */
	cr_assert_eq(ret, left < 8 ? -ENOMEM : 0, "%u mbufs left: %d", left, ret);
	if (ret < 0) {
		cr_expect_eq(fixture_in_use(f), before, "%u mbufs left", left);
		cr_expect_eq(f->rq.next_psn, psn);
		cr_expect_eq(f->tx.n, 0);
		cr_expect_eq(m->data_len, VECTOR_LONG_LENGTH);
		cr_expect_eq(rte_mbuf_refcnt_read(m), 1);
		rte_pktmbuf_free(m);
	}
	rte_pktmbuf_free_bulk(held, n);
}

Test(rdma_requester, sends_all_of_a_message_or_nothing_when_memory_is_out)
{
	struct fixture *f = fixture_create(4, 256, 5, true);

	for (unsigned int left = 0; left < 9; left++)
		write_with_little_memory(f, left);
	fixture_destroy(f);
}

Test(rdma_requester, keeps_the_payload_in_place_when_there_is_no_memory_for_a_trailer)
{
	struct fixture *f = fixture_create(4, 1024, 5, true);
	struct rte_mbuf *m = text(f, "hello"), *held[4095];
	unsigned int n = rte_mempool_avail_count(f->small);

	m->data_off += rte_pktmbuf_tailroom(m);
	cr_assert_eq(rte_pktmbuf_alloc_bulk(f->small, held, n), 0);
	cr_expect_eq(requester_write(&f->rq, m, 0, 0, 0, 0), -ENOMEM);
	cr_expect_eq(m->data_len, 5);
	cr_expect_eq(rte_pktmbuf_tailroom(m), 0);
	cr_expect_eq(f->rq.next_psn, 5);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free_bulk(held, n);
	fixture_destroy(f);
}

Test(rdma_requester, has_room_for_a_window_and_no_more)
{
	struct fixture *f = fixture_create(4, 1024, 0xfffff0, true);

	cr_expect(requester_room(&f->rq, REQUESTER_WINDOW));
	cr_expect_not(requester_room(&f->rq, REQUESTER_WINDOW + 1));
	for (unsigned int i = 0; i < REQUESTER_WINDOW; i++) {
		cr_assert(requester_room(&f->rq, 1), "packet %u", i);
		fixture_write(f, 4, 0);
		fixture_sent(f);
	}
	cr_expect_not(requester_room(&f->rq, 1));
	cr_expect_eq(requester_unacked(&f->rq), REQUESTER_WINDOW);
	/* The PSN has wrapped within the window. */
	cr_expect_eq(requester_ack(&f->rq, 0xfffff0, 0x1f, f->rq.timer), REQUESTER_PROGRESS);
	cr_expect(requester_room(&f->rq, 1));
	cr_expect_not(requester_room(&f->rq, 2));
	fixture_destroy(f);
}

Test(rdma_requester, has_no_room_when_the_transmit_queue_is_full)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);

	f->tx.n = TXQ_SIZE - 1;
	cr_expect(requester_room(&f->rq, 1));
	cr_expect_not(requester_room(&f->rq, 2));
	f->tx.n = 0;
	fixture_destroy(f);
}
