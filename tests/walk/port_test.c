/* SPDX-License-Identifier: BSD-3-Clause */
/* Capabilities of ports, their limits, and the link state that the control thread sees. */
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "packet/checksum.h"
#include "runtime/eal_end.h"
#include "worker.h"
#include "lb.h"

static const struct packet ask4 = {.family = 4, .payload = 100};
static const struct packet ask6 = {.family = 6, .payload = 100};

/* A port reports of a packet that its bytes are right and its checksum is not. */
WALK(checksums_that_a_sender_left_to_hardware)
{
	struct walk *w = walk_create(&(struct walk_params){.verified = true});
	struct packet local = {.family = 4, .payload = 100, .l4_sum = SUM_WRONG};

	walk_worker(w, NULL);
	w->nic[0].ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_NONE;
	walk_send(w, 0, &local);
	walk_settle(w);
	walk_expect_echo(w, 0, &local);
	w->nic[0].ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_BAD;
	walk_send(w, 0, &local);
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_UDP_CHECKSUM, 1});
	walk_destroy(w);
}

/* A kernel leaves checksums of what it sends to itself to hardware, and the port does not say so.
 */
WALK(checksums_with_the_pseudo_headers_sum_only)
{
	struct walk *w = walk_create(NULL);
	struct packet partial = {.payload = 100, .l4_sum = SUM_PARTIAL}, wrong = ask4;

	walk_worker(w, NULL);
	wrong.l4_sum = SUM_WRONG;
	for (uint8_t family = 4; family <= 6; family += 2) {
		partial.family = family;
		w->lb->port[0].local_senders = false;
		walk_send(w, 0, &partial);
		walk_settle(w);
		walk_expect_drops(w, {LB_DROP_UDP_CHECKSUM, 1});
		w->lb->port[0].local_senders = true;
		walk_send(w, 0, &partial);
		walk_settle(w);
		walk_expect_echo(w, 0, &partial);
		walk_send(w, 0, &wrong);
		walk_settle(w);
		walk_expect_drops(w, {LB_DROP_UDP_CHECKSUM, 1});
	}
	walk_destroy(w);
}

/* Does the port's share of the work: the UDP checksum continues from the value in the field. */
static bool holds_when_complete(const struct walk_frame *from)
{
	uint32_t ip = from->family == 4 ? 20 : 40;
	uint8_t frame[WALK_FRAME_MAX], *l3 = frame + 14, *udp = l3 + ip;
	struct walk_frame f;
	uint16_t sum;

	memcpy(frame, from->bytes, from->length);
	if (from->family == 4) {
		walk_expect_eq(l3[10] << 8 | l3[11], 0);
		sum = ~checksum_fold(checksum_add(l3, 20));
		memcpy(l3 + 10, &sum, 2);
	}
	sum = ~checksum_fold(checksum_add(udp, from->length - 14 - ip));
	memcpy(udp + 6, &sum, 2);
	walk_parse(frame, from->length, &f);
	return f.sums_hold;
}

WALK(checksums_that_are_the_ports_to_compute)
{
	struct walk *w = walk_create(NULL);
	uint64_t *checksums = w->lb->lcore[0]->tx[0].checksums;
	struct walk_frame f;

	walk_worker(w, NULL);
	checksums[0] = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM;
	checksums[1] = RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_UDP_CKSUM;
	for (unsigned int i = 0; i < 2; i++) {
		walk_send(w, 0, i == 0 ? &ask4 : &ask6);
		walk_settle(w);
		walk_need(walk_take(w, 0, &f), "no reply");
		walk_expect_eq(f.family, i == 0 ? 4 : 6);
		walk_expect(!f.sums_hold);
		walk_expect(holds_when_complete(&f));
	}
	walk_destroy(w);
}

/* A reply in more pieces than the port takes is copied into one; requests go in copies, too. */
WALK(ports_that_send_short_chains_only)
{
	static const struct {
		uint16_t clients, fabric;
		uint64_t
			copies; /* of the reply, which comes in 6 packets, and of the request's 5 */
	} rows[] = {{8, 8, 0}, {6, 3, 0}, {5, 3, 1}, {6, 2, 5}};
	struct packet large = {.family = 4, .payload = 1280};

	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		struct walk *w = walk_create(NULL);

		walk_context("row %u", i);
		w->lb->port[0].segments_max = rows[i].clients;
		w->lb->port[w->fabric].segments_max = rows[i].fabric;
		walk_worker(w, &(struct walk_worker_params){.path_mtu = 256});
		walk_send(w, 0, &large);
		walk_settle(w);
		walk_expect_echo(w, 0, &large);
		walk_expect_eq(walk_stats(w).payload_copies, rows[i].copies);
		walk_destroy(w);
	}
	walk_context("%s", "");
}

/* --- bytes_out never runs backwards --------------------------------------------------------------
 */

struct watch {
	const uint64_t *value;
	int stop;        /* atomic */
	uint64_t values; /* number of values seen (atomic) */
	uint64_t backwards;
};

static void *look(void *argument)
{
	struct watch *watch = argument;
	uint64_t last = 0, now;

	while (!__atomic_load_n(&watch->stop, __ATOMIC_RELAXED)) {
		now = __atomic_load_n(watch->value, __ATOMIC_RELAXED);
		watch->backwards += now < last;
		if (now != last)
			__atomic_fetch_add(&watch->values, 1, __ATOMIC_RELAXED);
		last = now;
	}
	return NULL;
}

/* Both threads must run at once, which a busy machine may not let them do for long. */
static bool goes_on(const struct watch *watch, time_t end)
{
	return __atomic_load_n(&watch->values, __ATOMIC_RELAXED) < 20000 && time(NULL) < end;
}

WALK(bytes_out_never_runs_backwards)
{
	/* The more ports there are to add up, the longer a sum is not complete. */
	struct walk *w = walk_create(&(struct walk_params){.client_ports = 12});
	struct lcore *lc = w->lb->lcore[0];
	struct watch watch = {.value = &lc->stats.bytes_out};
	time_t end = time(NULL) + 10;
	pthread_t thread;

	walk_need(pthread_create(&thread, NULL, look, &watch) == 0, "no thread");
	while (goes_on(&watch, end)) {
		lc->tx[0].bytes++;
		lc->next_housekeeping = 0; /* it adds them up, every ms otherwise */
		walk_turn_lcore(w, 0);
	}
	__atomic_store_n(&watch.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	walk_expect_eq(watch.backwards, 0);
	walk_expect(watch.values > 1);
	walk_destroy(w);
}

/* --- a port that takes nothing ------------------------------------------------------------------
 */

static uint16_t take_nothing(void *queue, struct rte_mbuf **packet, uint16_t n)
{
	return 0;
}

/* Blocks port 0, whose cable is out: its queue is full. */
static eth_tx_burst_t block(struct walk *w)
{
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[w->nic[0].port];
	eth_tx_burst_t was = ops->tx_pkt_burst;
	struct packet p = {.family = 4, .payload = 40};

	ops->tx_pkt_burst = take_nothing;
	for (unsigned int i = 0; i < TXQ_SIZE; i++) {
		p.source_port = 2000 + i % 64;
		walk_send(w, 0, &p);
		walk_turn(w);
	}
	walk_settle(w);
	walk_expect_eq(txq_room(&w->lb->lcore[0]->tx[0]), 0);
	return was;
}

static struct walk *walk_of_two_ports(const char *service, const char *more)
{
	char services[512];

	snprintf(services, sizeof(services),
		 "  - {name: echo, address: " PACKET_DESTINATION4 ", port: 8000, model: echo%s}\n",
		 service);
	return walk_create(
		&(struct walk_params){.client_ports = 2, .services = services, .more = more});
}

/* A request of each port's client; the blocked port's is the older one. */
static void ask_on_both(struct walk *w, struct packet *other)
{
	struct packet blocked = {.family = 4, .payload = 40, .source_port = 3000};

	*other = (struct packet){.family = 4, .payload = 40, .source_port = 3001};
	walk_send(w, 0, &blocked);
	walk_settle(w);
	walk_send(w, 1, other);
	walk_settle(w);
}

static void unblock(struct walk *w, eth_tx_burst_t was)
{
	rte_eth_fp_ops[w->nic[0].port].tx_pkt_burst = was;
	walk_settle(w);
}

WALK(a_port_that_takes_nothing_holds_up_no_other_ports_timeouts)
{
	struct walk *w = walk_of_two_ports(", request_timeout_ms: 100", NULL);
	struct walk_worker *v = walk_worker(w, NULL);
	eth_tx_burst_t was = block(w);
	struct packet other;

	v->answers = false;
	ask_on_both(w, &other);
	walk_pass(w, 110);
	walk_expect_notice(w, 1, &other, LB_NOTICE_TIMEOUT);
	walk_expect_drops(w, {LB_DROP_REQUEST_TIMEOUT, 1});
	unblock(w, was);
	walk_pass(w, 2);
	walk_expect_drops(w, {LB_DROP_REQUEST_TIMEOUT, 1});
	walk_destroy(w);
}

WALK(nor_those_who_wait)
{
	struct walk *w = walk_of_two_ports(", queue_timeout_ms: 100", NULL);
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 2});
	eth_tx_burst_t was = block(w);
	struct packet other;

	v->answers = false;
	ask_on_both(w, &other); /* these take the slots */
	ask_on_both(w, &other);
	walk_pass(w, 110);
	walk_expect_notice(w, 1, &other, LB_NOTICE_BUSY);
	walk_expect_drops(w, {LB_DROP_QUEUE_TIMEOUT, 1});
	unblock(w, was);
	walk_pass(w, 2);
	walk_expect_drops(w, {LB_DROP_QUEUE_TIMEOUT, 1});
	walk_destroy(w);
}

WALK(nor_the_clients_of_a_worker_that_is_gone)
{
	struct walk *w = walk_of_two_ports("", NULL);
	struct walk_worker *v = walk_worker(w, NULL);
	eth_tx_burst_t was = block(w);
	struct packet other;

	v->answers = false;
	ask_on_both(w, &other);
	lb_worker_remove(w->lb, walk_worker_of(v), "killed");
	v->gone = true;
	walk_pass(w, 5);
	walk_expect_notice(w, 1, &other, LB_NOTICE_WORKER_LOST);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	unblock(w, was);
	walk_pass(w, 2);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	walk_destroy(w);
}

WALK(nor_those_who_are_to_be_told_at_the_end)
{
	struct walk *w = walk_of_two_ports("", "stop_timeout_ms: 50\n");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 2});
	eth_tx_burst_t was = block(w);
	struct packet sent, waiting;

	v->answers = false;
	ask_on_both(w, &sent);
	ask_on_both(w, &waiting);
	lb_stop_begin(w->lb);
	walk_pass(w, 100);
	walk_expect_eq(walk_count(w, 1), 2);
	walk_expect_drops(w, {LB_DROP_STOPPING, 1}, {LB_DROP_STOP_TIMEOUT, 1});
	unblock(w, was);
	walk_pass(w, 50);
	walk_expect(lb_stop_over(w->lb));
	walk_expect_drops(w, {LB_DROP_STOPPING, 1}, {LB_DROP_STOP_TIMEOUT, 1});
	walk_destroy(w);
}

/* --- frames in several buffers -------------------------------------------------------------------
 */

/* Some drivers deliver a long frame in several buffers, asked or not. A sender of such frames may
 * have put the rest behind an honest packet. */
static void send_chained(struct walk *w, unsigned int port, const struct packet *packet)
{
	uint8_t frame[PACKET_MAX];
	uint32_t length = packet_build(packet, frame);
	struct rte_mempool *pool = w->lb->lcore[0]->packets;
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool), *rest = rte_pktmbuf_alloc(pool);

	walk_need(m != NULL && rest != NULL);
	memcpy(rte_pktmbuf_append(m, length), frame, length);
	memset(rte_pktmbuf_append(rest, 600), 0x77, 600);
	walk_need(nic_receive(&w->nic[port], 0, &m, 1));
	walk_need(rte_pktmbuf_chain(m, rest) == 0);
}

WALK(of_a_frame_in_several_buffers_the_first_counts)
{
	static const struct walk_row rows[] = {
		{.name = "request", .in = {.family = 4, .payload = 100}},
		{.name = "IPv6", .in = {.family = 6, .payload = 100}},
		{.name = "too long",
		 .in = {.family = 4, .payload = 1000, .length = 600},
		 .out = WALK_NOTICE,
		 .code = LB_NOTICE_TOO_LARGE,
		 .dropped = true,
		 .drop = LB_DROP_TRUNCATED},
	};
	/* An ARP request for 198.51.100.1. */
	static const struct packet arp = {.to = TO_BROADCAST,
					  .ether_type = 0x0806,
					  .body = "0001080006040001020000000007c0000207000000000000"
						  "c6336401"};
	struct walk *w = walk_create(NULL);
	struct walk_frame f;

	walk_worker(w, NULL);
	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		struct packet whole = rows[i].in;

		whole.length = 0;
		walk_context("%s", rows[i].name);
		send_chained(w, 0, &rows[i].in);
		walk_settle(w);
		if (rows[i].out == WALK_NOTICE)
			walk_expect_notice(w, 0, &whole, rows[i].code);
		else
			walk_expect_echo(w, 0, &rows[i].in);
		if (rows[i].dropped)
			walk_expect_drops(w, {rows[i].drop, 1});
	}
	walk_context("%s", "");
	send_chained(w, 0, &arp);
	walk_settle(w);
	walk_expect(walk_take(w, 0, &f) && f.kind == WALK_ARP);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

/* --- a tag that the port took off ----------------------------------------------------------------
 */

WALK(a_ping_whose_tag_the_port_took_off_is_answered_with_it)
{
	struct packet ping = {.family = 4, .icmp = true, .icmp_type = 8, .payload = 40};
	struct walk *w = walk_create(NULL);
	uint8_t frame[PACKET_MAX];
	uint32_t length = packet_build(&ping, frame);
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->lb->lcore[0]->packets);
	struct walk_frame f;

	walk_need(m != NULL);
	memcpy(rte_pktmbuf_append(m, length), frame, length);
	walk_need(nic_receive(&w->nic[0], 0, &m, 1));
	m->vlan_tci = 77;
	m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	walk_settle(w);
	walk_need(walk_take(w, 0, &f));
	walk_expect_eq(f.kind, WALK_ICMP);
	walk_expect(f.tagged && f.tci == 77);
	walk_expect(f.sums_hold);
	walk_destroy(w);
}

/* --- a port whose driver wants the control thread, as memif's does ------------------------------
 */

static void expect_attended(struct walk *w, bool over)
{
	walk_expect(lb_attend(w->lb) == over, "it is %s", over ? "not over" : "over");
	walk_expect(w->lb->port[1].receives == NULL, "the port rests on");
}

/* It may be in the middle of the rings of a memif. The control thread goes on, and other lcores go
 * on with their memifs, until it does. */
WALK(an_lcore_that_stands_still_while_a_stranger_speaks_to_a_memif)
{
	struct walk *w = walk_create(NULL);
	struct port *memif = &w->lb->port[1];
	int ends[2];
	char byte = 1;

	walk_need(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
	walk_need(eal_interrupt_hold() && memif_watch(&memif->news));
	memif->attended = true;
	expect_attended(w, true);
	walk_need(write(ends[0], &byte, 1) == 1);
	rte_rcu_qsbr_thread_register(w->lb->qsbr, 0);
	rte_rcu_qsbr_thread_online(w->lb->qsbr, 0);
	for (unsigned int i = 0; i < 10; i++)
		expect_attended(w, false);
	/* it goes on, and stands still again */
	rte_rcu_qsbr_quiescent(w->lb->qsbr, 0);
	expect_attended(w, false);
	walk_expect(memif_has_news(memif->news));
	rte_rcu_qsbr_thread_offline(w->lb->qsbr, 0);
	expect_attended(w, false); /* nobody reads it */
	walk_need(read(ends[1], &byte, 1) == 1);
	expect_attended(w, true);
	rte_rcu_qsbr_thread_unregister(w->lb->qsbr, 0);
	memif->attended = false;
	close(memif->news);
	close(ends[0]);
	close(ends[1]);
	walk_destroy(w);
}
