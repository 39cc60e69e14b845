/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fixture of the tests of the requester and of links: EAL, pools, a transmit queue that the test
 * itself empties, so that it sees each mbuf as the port would.
 */
#ifndef RDMA_FIXTURE_H
#define RDMA_FIXTURE_H

#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "rdma/frame.h"
#include "rdma_vectors.h"
#include "rdma/requester.h"

/* Longest message of the tests, and its mbuf: headroom, message, pad and ICRC. */
#define FIXTURE_MESSAGE_MAX 8000
#define FIXTURE_FRAME_MAX   (ROCE_HEADERS_MAX + ROCE_MTU_MAX + ROCE_TRAILER_MAX)
#define FIXTURE_RKEY        0x1234
#define FIXTURE_VA          0x7f0000001000

static inline void fixture_eal(void)
{
	char *argv[] = {"rdma",           "--no-huge", "--no-shconf", "--no-pci",
			"--no-telemetry", "-m",        "64",          NULL};
	static bool up;
	cpu_set_t cpus;

	if (up)
		return;
	up = true;
	/* EAL pins this thread to one CPU, and threads started later inherit that. */
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (rte_eal_init(7, argv) < 0)
		abort();
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

struct fixture {
	struct rte_mempool *packets, *small;
	struct roce_path path;
	struct txq tx;
	uint32_t held; /* packets in windows */
	struct requester rq;
};

static inline struct rte_mempool *fixture_pool(const char *name, unsigned int n, uint16_t room)
{
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create(name, n, 0, 0, RTE_PKTMBUF_HEADROOM + room, SOCKET_ID_ANY);

	cr_assert(pool, "%s", rte_strerror(rte_errno));
	return pool;
}

static inline struct fixture *fixture_create(uint8_t family, uint32_t mtu, uint32_t psn,
					     bool multi_segment)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct requester_params params = {
		.path = &f->path,
		.tx = &f->tx,
		.held = &f->held,
		.multi_segment = multi_segment,
		.psn = psn,
		.ack_timeout = 14,
		.retry_limit = 3,
		.rnr_retry = ROCE_RNR_FOREVER,
	};

	fixture_eal();
	f->packets = fixture_pool("packets", 2047, FIXTURE_MESSAGE_MAX + ROCE_TRAILER_MAX);
	f->small = fixture_pool("small", 4095, 256);
	params.pool = f->small;
	vector_path(&f->path, family, false, mtu);
	requester_init(&f->rq, &params);
	return f;
}

static inline unsigned int fixture_in_use(const struct fixture *f)
{
	return rte_mempool_in_use_count(f->packets) + rte_mempool_in_use_count(f->small);
}

/* The port has sent everything. */
static inline void fixture_sent(struct fixture *f)
{
	rte_pktmbuf_free_bulk(f->tx.packet, f->tx.n);
	f->tx.n = 0;
}

/* Every test ends here: not one mbuf may be left. */
static inline void fixture_destroy(struct fixture *f)
{
	fixture_sent(f);
	requester_fini(&f->rq);
	cr_expect_eq(fixture_in_use(f), 0, "%u mbufs leaked", fixture_in_use(f));
	cr_expect_eq(f->held, 0, "%u packets in no window", f->held);
	rte_mempool_free(f->packets);
	rte_mempool_free(f->small);
	free(f);
}

/* A message whose byte i is i mod 256. */
static inline struct rte_mbuf *fixture_message(struct fixture *f, uint32_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(f->packets);
	uint8_t *at;

	cr_assert(m);
	at = (uint8_t *)rte_pktmbuf_append(m, length);
	cr_assert(at);
	for (uint32_t i = 0; i < length; i++)
		at[i] = i;
	return m;
}

static inline void fixture_write(struct fixture *f, uint32_t length, uint32_t flags)
{
	cr_assert_eq(requester_write(&f->rq, fixture_message(f, length), FIXTURE_VA, FIXTURE_RKEY,
				     0, flags),
		     0);
}

/* Copies the chain's bytes, as the wire carries them, to <out>. Returns how many. */
static inline uint32_t fixture_flatten(const struct rte_mbuf *m, uint8_t *out)
{
	uint32_t n = 0, segments = 0;

	for (const struct rte_mbuf *s = m; s != NULL; s = s->next, segments++) {
		memcpy(out + n, rte_pktmbuf_mtod(s, void *), s->data_len);
		n += s->data_len;
	}
	cr_assert_eq(n, m->pkt_len);
	cr_assert_eq(segments, m->nb_segs);
	return n;
}

/* Packet <i> of the transmit queue as the peer reads it; its ICRC must be right. */
static inline struct roce_packet fixture_packet(const struct fixture *f, unsigned int i,
						uint8_t *frame)
{
	struct roce_packet p;
	struct roce_frame at;
	uint32_t n;

	cr_assert_lt(i, f->tx.n);
	n = fixture_flatten(f->tx.packet[i], frame);
	cr_assert_eq(frame_locate(frame, n, &at), FRAME_ROCE);
	cr_assert_eq(at.bth_offset + at.bth_length, n);
	cr_assert(roce_icrc_ok(frame + at.ip_offset, at.ip_length, at.l3_length - ROCE_ICRC_LENGTH),
		  "packet %u has a wrong ICRC", i);
	cr_assert_eq(roce_parse(frame + at.bth_offset, at.bth_length, &p), ROCE_PARSED);
	p.payload_offset += at.bth_offset;
	return p;
}

/* The transmit queue holds exactly the packets <first>, <first> + 1 ... */
static inline void fixture_expect_psns(const struct fixture *f, uint32_t first, unsigned int n)
{
	uint8_t frame[FIXTURE_FRAME_MAX];

	cr_assert_eq(f->tx.n, n, "%u packets instead of %u", f->tx.n, n);
	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(fixture_packet(f, i, frame).psn, roce_psn_add(first, i));
}

#endif
