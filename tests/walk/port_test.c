/* SPDX-License-Identifier: BSD-3-Clause */
/* What ports can and cannot do, and what the control thread sees of them. */
#include <pthread.h>
#include <time.h>

#include "checksum.h"
#include "worker.h"

static const struct packet ask4 = {.family = 4, .payload = 100};
static const struct packet ask6 = {.family = 6, .payload = 100};

/* A port that says of a packet: its bytes are right, and its checksum is not. */
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

/* The port's share of the work: the UDP checksum goes on from what the field has. */
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
	uint64_t values; /* seen (atomic) */
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

/* Both threads must run at once for it, which a busy machine may not let them for long. */
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
