/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures: rings, blocks of the file, the thread that writes it, and packets that a port refuses.
 */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "observe/capture_writer.h"
#include "rdma_fixture.h"

#define RING 4096

/* --- the ring -------------------------------------------------------------------------------- */

static bool put(struct capture_ring *ring, uint32_t n, uint8_t first)
{
	struct capture_packet *packet = capture_ring_take(ring, n);

	if (packet == NULL)
		return false;
	packet->tsc = first;
	packet->ns = 1000000000;
	packet->original = n;
	packet->direction = CAPTURE_IN;
	for (uint32_t i = 0; i < n; i++)
		capture_packet_data(packet)[i] = first + i;
	return true;
}

static void expect_packet(struct capture_ring *ring, uint32_t n, uint8_t first)
{
	const struct capture_packet *packet = capture_ring_peek(ring);

	cr_assert_not_null(packet);
	cr_assert_eq(packet->length, n, "%u, not %u", packet->length, n);
	for (uint32_t i = 0; i < n; i++)
		cr_assert_eq(capture_packet_data(packet)[i], (uint8_t)(first + i));
	capture_ring_drop(ring);
}

Test(lb_capture, packets_come_round_the_ring_as_they_were)
{
	struct capture_ring ring;
	uint32_t out = 0;

	cr_assert_eq(capture_ring_init(&ring, RING), 0);
	cr_expect_null(capture_ring_peek(&ring));
	/* Lengths of all kinds, so that the ring ends at each place once. */
	for (uint32_t in = 0; in < 20000; in++) {
		while (!put(&ring, in * 37 % 1500, (uint8_t)in)) {
			expect_packet(&ring, out * 37 % 1500, (uint8_t)out);
			out++;
		}
		capture_ring_publish(&ring);
	}
	for (; out < 20000; out++)
		expect_packet(&ring, out * 37 % 1500, (uint8_t)out);
	cr_expect_null(capture_ring_peek(&ring));
	cr_expect_eq(ring.head, ring.tail);
	capture_ring_fini(&ring);
}

Test(lb_capture, a_full_ring_takes_nothing_and_is_whole_afterwards)
{
	struct capture_ring ring;

	cr_assert_eq(capture_ring_init(&ring, RING), 0);
	for (uint32_t i = 0; i < RING / 128; i++)
		cr_assert(put(&ring, 96, (uint8_t)i));
	cr_expect_not(put(&ring, 0, 0));
	cr_expect_null(capture_ring_peek(&ring), "it was not published yet");
	capture_ring_publish(&ring);
	expect_packet(&ring, 96, 0);
	cr_expect_not(put(&ring, 97, 0), "there is room for less than that");
	cr_expect(put(&ring, 96, RING / 128));
	capture_ring_publish(&ring);
	for (uint32_t i = 1; i <= RING / 128; i++)
		expect_packet(&ring, 96, (uint8_t)i);
	cr_expect_null(capture_ring_peek(&ring));
	cr_expect_not(put(&ring, RING - CAPTURE_ALIGN + 1, 0), "more than the ring has");
	capture_ring_fini(&ring);
}

/* --- the file -------------------------------------------------------------------------------- */

static uint32_t word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Returns the number of blocks of <type>; each block must end with its own length. */
static unsigned int blocks(const uint8_t *file, size_t size, uint32_t type)
{
	unsigned int n = 0;
	uint32_t length;

	for (size_t at = 0; at < size; at += length) {
		cr_assert_geq(size - at, 12);
		length = word(file + at + 4);
		cr_assert_eq(length % 4, 0);
		cr_assert_leq(length, size - at);
		cr_assert_geq(length, 12);
		cr_assert_eq(word(file + at + length - 4), length);
		n += word(file + at) == type;
	}
	return n;
}

Test(lb_capture, blocks_are_what_the_format_says)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	struct pcapng_interface interface = {
		.name = "clients", .description = "d", .filter = "udp", .mac = mac, .snaplen = 96};
	struct capture_ring ring;
	uint8_t buf[1024];
	size_t n;

	cr_assert_eq(capture_ring_init(&ring, RING), 0);
	n = pcapng_section(buf, sizeof(buf), "test");
	cr_expect_eq(blocks(buf, n, 0x0a0d0d0a), 1);
	cr_expect_eq(word(buf + 8), 0x1a2b3c4d);
	cr_expect_eq(word(buf + 12), 1, "version 1.0");
	n = pcapng_interface(buf, sizeof(buf), &interface);
	cr_expect_eq(blocks(buf, n, 1), 1);
	cr_expect_eq(word(buf + 8), 1, "Ethernet");
	cr_expect_eq(word(buf + 12), 96, "snaplen");
	put(&ring, 13, 7);
	capture_ring_publish(&ring);
	n = pcapng_packet(buf, sizeof(buf), capture_ring_peek(&ring));
	cr_expect_eq(blocks(buf, n, 6), 1);
	cr_expect_eq(word(buf + 12), 0);
	cr_expect_eq(word(buf + 16), 1000000000);
	cr_expect_eq(word(buf + 20), 13);
	cr_expect_eq(word(buf + 28) & 0xff, 7);
	cr_expect_leq(n, 13 + PCAPNG_PACKET_OVERHEAD);
	for (size_t size = 0; size < n; size++)
		cr_expect_eq(pcapng_packet(buf, size, capture_ring_peek(&ring)), 0);
	capture_ring_fini(&ring);
}

/* --- the writer ------------------------------------------------------------------------------ */

struct output {
	struct capture_writer w;
	struct capture_tap tap[2];
	int reader;
	uint8_t *file;
	size_t size;
};

static struct output *start(uint64_t count)
{
	static const uint8_t mac[6];
	struct output *o = aligned_alloc(64, (sizeof(*o) + 63) / 64 * 64);
	int pair[2];

	fixture_eal();
	memset(o, 0, sizeof(*o));
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(capture_ring_init(&o->tap[i].ring, RING), 0);
	o->reader = pair[1];
	o->w.fd = pair[0];
	o->w.tap = o->tap;
	o->w.n_taps = 2;
	o->w.count = count;
	o->w.tsc_per_ms = 1; /* nothing is too young to be written */
	o->w.interface = (struct pcapng_interface){.name = "p", .description = "", .mac = mac};
	return o;
}

static void read_all(struct output *o)
{
	ssize_t n;

	o->file = malloc(1 << 20);
	while ((n = read(o->reader, o->file + o->size, (1 << 20) - o->size)) > 0)
		o->size += (size_t)n;
}

static void stop(struct output *o)
{
	capture_writer_join(&o->w);
	for (unsigned int i = 0; i < 2; i++)
		capture_ring_fini(&o->tap[i].ring);
	close(o->reader);
	free(o->file);
	free(o);
}

Test(lb_capture, the_file_has_all_packets_in_the_order_of_time, .timeout = 30)
{
	struct output *o = start(0);
	const uint8_t *at;

	for (uint8_t i = 0; i < 20; i++)
		put(&o->tap[i % 3 == 0].ring, 50, i);
	capture_ring_publish(&o->tap[0].ring);
	capture_ring_publish(&o->tap[1].ring);
	cr_assert_eq(capture_writer_start(&o->w), 0);
	capture_writer_end(&o->w);
	read_all(o);
	cr_expect_eq(blocks(o->file, o->size, 6), 20);
	cr_expect_eq(blocks(o->file, o->size, 5), 1, "statistics");
	cr_expect_eq(o->w.bytes, o->size);
	at = o->file + word(o->file + 4);
	for (uint8_t i = 0; i < 20; i++) {
		at += word(at + 4);
		cr_expect_eq(at[28], i, "packet %u is number %u", at[28], i);
	}
	stop(o);
}

Test(lb_capture, it_ends_with_exactly_as_many_packets_as_were_asked_for, .timeout = 30)
{
	struct output *o = start(7);

	for (uint8_t i = 0; i < 20; i++)
		put(&o->tap[0].ring, 50, i);
	capture_ring_publish(&o->tap[0].ring);
	cr_assert_eq(capture_writer_start(&o->w), 0);
	while (!__atomic_load_n(&o->w.full, __ATOMIC_ACQUIRE))
		sched_yield();
	capture_writer_end(&o->w);
	read_all(o);
	cr_expect_eq(blocks(o->file, o->size, 6), 7);
	cr_expect_eq(o->w.packets, 7);
	stop(o);
}

Test(lb_capture, a_reader_that_has_gone_is_noticed_and_the_rings_stay_empty, .timeout = 30)
{
	struct output *o = start(0);

	shutdown(o->reader, SHUT_RDWR);
	cr_assert_eq(capture_writer_start(&o->w), 0);
	while (!__atomic_load_n(&o->w.failed, __ATOMIC_ACQUIRE))
		sched_yield();
	for (uint8_t i = 0; i < 200; i++) {
		while (!put(&o->tap[0].ring, 500, i))
			sched_yield();
		capture_ring_publish(&o->tap[0].ring);
	}
	stop(o);
}

Test(lb_capture, a_reader_that_does_not_read_holds_nobody_up, .timeout = 30)
{
	struct output *o = start(0);
	unsigned int taken = 0, refused = 0;

	cr_assert_eq(capture_writer_start(&o->w), 0);
	/* Until the socket and the ring are full. */
	while (refused < 100000) {
		taken += put(&o->tap[0].ring, 1000, 0);
		refused = capture_ring_take(&o->tap[0].ring, 4000) == NULL ? refused + 1 : 0;
		capture_ring_publish(&o->tap[0].ring);
	}
	cr_expect_gt(taken, 0);
	stop(o); /* at once, without the rest */
}

/* --- what a port does not take at once ------------------------------------------------------- */

static uint16_t open_port(struct fixture *f)
{
	struct rte_eth_conf conf = {0};
	uint16_t port;

	cr_assert_eq(rte_dev_probe("net_ring0"), 0);
	cr_assert_eq(rte_eth_dev_get_port_by_name("net_ring0", &port), 0);
	cr_assert_eq(rte_eth_dev_configure(port, 1, 1, &conf), 0);
	cr_assert_eq(rte_eth_rx_queue_setup(port, 0, 64, SOCKET_ID_ANY, NULL, f->packets), 0);
	cr_assert_eq(rte_eth_tx_queue_setup(port, 0, 64, SOCKET_ID_ANY, NULL), 0);
	cr_assert_eq(rte_eth_dev_start(port), 0);
	f->tx.port = port;
	return port;
}

static unsigned int receive(uint16_t port, uint16_t n)
{
	struct rte_mbuf *m[32];

	n = rte_eth_rx_burst(port, 0, m, n);
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static void expect_taken(struct capture_tap *tap, unsigned int n, enum capture_direction direction)
{
	const struct capture_packet *packet;
	unsigned int got = 0;

	for (; (packet = capture_ring_peek(&tap->ring)) != NULL; got++) {
		cr_expect_eq(packet->direction, direction);
		capture_ring_drop(&tap->ring);
	}
	cr_expect_eq(got, n, "%u packets, not %u", got, n);
}

Test(lb_capture, what_a_full_port_takes_later_is_captured_once)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	static struct capture_tap tap = {.snaplen = 64};
	const struct rte_eth_rxtx_callback *out;
	uint16_t port = open_port(f);
	unsigned int received = 0, n;

	cr_assert_eq(capture_ring_init(&tap.ring, 1 << 20), 0);
	tap.tx = &f->tx;
	out = rte_eth_add_tx_callback(port, 0, capture_tap_out, &tap);
	for (unsigned int i = 0; i < 1500; i++) {
		if (txq_room(&f->tx) == 0)
			break;
		txq_push(&f->tx, fixture_message(f, 100));
		txq_flush(&f->tx);
	}
	cr_assert_gt(f->tx.n, 0, "the port is full");
	n = (unsigned int)f->tx.packets + f->tx.n;
	expect_taken(&tap, n, CAPTURE_OUT);
	for (unsigned int got = 1; got > 0; received += got) {
		got = receive(port, 7);
		txq_flush(&f->tx);
	}
	cr_expect_eq(received, n);
	expect_taken(&tap, 0, CAPTURE_OUT);
	rte_eth_remove_tx_callback(port, 0, out);
	rte_free((void *)(uintptr_t)out);
	capture_ring_fini(&tap.ring);
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
	fixture_destroy(f);
}

Test(lb_capture, packets_are_cut_chained_ones_joined_and_lost_ones_counted)
{
	struct fixture *f = fixture_create(4, 1024, 0, true);
	static struct capture_tap tap = {.snaplen = 100};
	struct rte_mbuf *m = fixture_message(f, 60), *tail = fixture_message(f, 60);
	const struct capture_packet *packet;
	unsigned int bursts = 0;

	cr_assert_eq(capture_ring_init(&tap.ring, RING), 0);
	rte_pktmbuf_chain(m, tail);
	m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = 0x1234;
	capture_tap_in(0, 0, &m, 1, 32, &tap);
	packet = capture_ring_peek(&tap.ring);
	cr_assert_not_null(packet);
	cr_expect_eq(packet->length, 100);
	cr_expect_eq(packet->original, 124);
	cr_expect_arr_eq(capture_packet_data(packet) + 12, "\x81\x00\x12\x34\x0c", 5);
	cr_expect_eq(capture_packet_data(packet)[63], 59);
	cr_expect_eq(capture_packet_data(packet)[64], 0);
	for (; tap.dropped < 3; bursts++)
		capture_tap_in(0, 0, &m, 1, 32, &tap);
	cr_expect_eq(bursts, RING / (CAPTURE_ALIGN + 128) - 1 + 3, "%u", bursts);
	rte_pktmbuf_free(m);
	capture_ring_fini(&tap.ring);
	fixture_destroy(f);
}
