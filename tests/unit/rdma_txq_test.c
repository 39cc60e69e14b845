/* SPDX-License-Identifier: BSD-3-Clause */
/* The transmit queue against a real port: a ring that brings back what was sent. */
#include <rte_dev.h>
#include <rte_ethdev.h>

#include "rdma_fixture.h"

static uint16_t open_port(struct fixture *f, uint16_t descriptors)
{
	struct rte_eth_conf conf = {0};
	uint16_t port;

	cr_assert_eq(rte_dev_probe("net_ring0"), 0);
	cr_assert_eq(rte_eth_dev_get_port_by_name("net_ring0", &port), 0);
	cr_assert_eq(rte_eth_dev_configure(port, 1, 1, &conf), 0);
	cr_assert_eq(rte_eth_rx_queue_setup(port, 0, descriptors, SOCKET_ID_ANY, NULL, f->packets),
		     0);
	cr_assert_eq(rte_eth_tx_queue_setup(port, 0, descriptors, SOCKET_ID_ANY, NULL), 0);
	cr_assert_eq(rte_eth_dev_start(port), 0);
	f->tx.port = port;
	return port;
}

static void close_port(uint16_t port)
{
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
}

/* Send until the port takes no more. */
static void fill(struct fixture *f, uint16_t port)
{
	struct rte_mbuf *m;

	do
		m = fixture_message(f, 1);
	while (rte_eth_tx_burst(port, 0, &m, 1) == 1);
	rte_pktmbuf_free(m);
}

static unsigned int take(uint16_t port, uint16_t n)
{
	struct rte_mbuf *m[32];

	n = rte_eth_rx_burst(port, 0, m, n);
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

Test(rdma_txq, keeps_what_the_port_does_not_take_in_order)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	uint16_t port = open_port(f, 64);

	fill(f, port);
	for (unsigned int i = 0; i < 10; i++)
		txq_push(&f->tx, fixture_message(f, 100 + i));
	cr_expect_eq(txq_flush(&f->tx), 0);
	cr_expect_eq(f->tx.n, 10);
	cr_expect_eq(txq_room(&f->tx), TXQ_SIZE - 10);
	cr_assert_eq(take(port, 4), 4);
	cr_expect_eq(txq_flush(&f->tx), 4);
	cr_expect_eq(f->tx.packets, 4);
	cr_expect_eq(f->tx.bytes, 10 * 100 + 45);
	cr_assert_eq(f->tx.n, 6);
	for (unsigned int i = 0; i < 6; i++)
		cr_expect_eq(f->tx.packet[i]->data_len, 104 + i, "order is everything");
	while (take(port, 32) > 0)
		;
	cr_expect_eq(txq_flush(&f->tx), 6);
	cr_expect_eq(f->tx.n, 0);
	while (take(port, 32) > 0)
		;
	close_port(port);
	fixture_destroy(f);
}

Test(rdma_txq, hands_the_original_buffer_to_the_port)
{
	struct fixture *f = fixture_create(4, 1024, 0x100, true);
	uint16_t port = open_port(f, 64);
	struct rte_mbuf *m = fixture_message(f, 8), *back;
	const uint8_t *payload = rte_pktmbuf_mtod(m, uint8_t *);

	cr_assert_eq(requester_write(&f->rq, m, FIXTURE_VA, FIXTURE_RKEY, 0, REQUESTER_ACK_REQUEST),
		     0);
	cr_assert_eq(txq_flush(&f->tx), 1);
	cr_assert_eq(rte_eth_rx_burst(port, 0, &back, 1), 1);
	cr_expect_eq(back, m);
	cr_expect_eq(rte_pktmbuf_mtod_offset(back, uint8_t *, f->path.length + ROCE_RETH_LENGTH),
		     payload);
	rte_pktmbuf_free(back);
	cr_expect_eq(fixture_in_use(f), 1, "held until acknowledged");
	cr_expect_eq(requester_ack(&f->rq, 0x100, 0x1f, f->rq.timer), REQUESTER_PROGRESS);
	cr_expect_eq(fixture_in_use(f), 0);
	close_port(port);
	fixture_destroy(f);
}
