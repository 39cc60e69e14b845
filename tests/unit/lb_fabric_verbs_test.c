/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies that an RDMA device has put into the load balancer's memory; the device is played here.
 */
#include "lcore/lcore.h"
#include "ports/verbs_port_private.h"
#include "rdma_fixture.h"
#include "walk/fabric_verbs.h"

#define WORKER 5
#define SLOTS  4
#define CHUNK  32768
#define CHUNKS 2 /* that a slot has places for */
#define SERIAL 77

struct rig {
	struct fixture *f;
	struct lb *lb;
	struct lcore *lc;
	struct verbs_port *port;
	struct link *link;
	struct verbs_qp qp;
	struct ibv_qp device_qp;
	struct ibv_cq cq;
	struct ibv_context context;
	uint8_t region[SLOTS * CHUNKS * CHUNK];
};

/* Completions that the device has for us. */
static struct ibv_wc completion[8];
static int completions;

static int poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int n = RTE_MIN(completions, max);

	memcpy(wc, completion, n * sizeof(*wc));
	completions -= n;
	return n;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return 0;
}

static struct rig *rig_create(void)
{
	struct lb_link_spec remote = {.qpn = 0x11, .rkey = FIXTURE_RKEY, .stride = 2048};
	struct rig *r = calloc(1, sizeof(*r));
	struct link_params params = {
		.worker = WORKER,
		.remote = &remote,
		.slots = SLOTS,
		.reply_stride = CHUNKS * CHUNK,
		.chunk = CHUNK,
		.path = vector_spec(4, false, 1024),
		.descriptor_room = 2048,
	};

	r->f = fixture_create(4, 1024, 0, true);
	params.tx = &r->f->tx;
	params.held = &r->f->held;
	params.indirect_pool = r->f->small;
	r->lb = calloc(1, sizeof(*r->lb));
	r->lc = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*r->lc));
	memset(r->lc, 0, sizeof(*r->lc));
	r->port = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*r->port) + sizeof(r->port->lcore[0]));
	memset(r->port, 0, sizeof(*r->port) + sizeof(r->port->lcore[0]));
	r->lc->lb = r->lb;
	r->lc->packets = r->f->packets;
	r->lb->verbs[0] = r->port;
	r->context.ops.poll_cq = poll_cq;
	r->context.ops.post_recv = post_recv;
	r->cq.context = r->device_qp.context = &r->context;
	r->port->lcore[0].completions.cq = &r->cq;
	r->qp = (struct verbs_qp){
		.qp = &r->device_qp, .tag = TAG(SERIAL, WORKER), .region = r->region};
	r->link = link_create(&params);
	cr_assert(r->link);
	r->link->qp = &r->qp;
	r->link->copied = rte_zmalloc(NULL, SLOTS * sizeof(*r->link->copied), 0);
	r->lc->link[WORKER] = r->link;
	completions = 0;
	return r;
}

static void rig_destroy(struct rig *r)
{
	rte_pktmbuf_free_bulk(r->port->lcore[0].spare, r->port->lcore[0].n_spare);
	link_destroy(r->link);
	fixture_destroy(r->f);
	free(r->port);
	free(r->lc);
	free(r->lb);
	free(r);
}

static void complete(uint32_t imm, uint32_t length)
{
	completion[completions++] = (struct ibv_wc){
		.wr_id = (uint64_t)TAG(SERIAL, WORKER) << 32 | UINT32_C(0x80000000),
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.imm_data = rte_cpu_to_be_32(imm),
		.byte_len = length,
	};
}

/* The worker WRITEs chunk <k> of the reply to <slot> where the contract says. */
static void chunk_comes(struct rig *r, uint32_t slot, uint32_t k, const char *text, bool more)
{
	uint8_t *place = r->region + slot * CHUNKS * CHUNK + k * CHUNK;

	if (place + CHUNK <= r->region + sizeof(r->region))
		memcpy(place, text, strlen(text));
	complete(ring_imm(slot, RING_OK, more), strlen(text));
}

static void expect_message(struct rig *r, unsigned int i, uint32_t slot, const char *text)
{
	struct rte_mbuf *m = r->lc->fabric.reply[i].message;

	cr_expect_eq(ring_imm_slot(r->lc->fabric.reply[i].imm), slot);
	cr_assert_eq(m->pkt_len, strlen(text), "message %u has %u bytes", i, m->pkt_len);
	cr_expect_arr_eq(rte_pktmbuf_mtod(m, char *), text, strlen(text), "message %u: %.*s", i,
			 (int)m->pkt_len, rte_pktmbuf_mtod(m, char *));
	rte_pktmbuf_free(m);
}

/* With one place for all chunks of a slot, the second would overwrite the first before this poll.
 */
Test(lb_fabric_verbs, chunks_that_came_since_the_last_poll_are_all_read)
{
	struct rig *r = rig_create();

	for (unsigned int turn = 0; turn < 3; turn++) {
		chunk_comes(r, 1, 0, "the first", true);
		chunk_comes(r, 2, 0, "another reply", false);
		chunk_comes(r, 1, 1, "and the last", false);
		cr_assert_eq(fabric_verbs_poll(r->lc, 0), 3);
		cr_assert_eq(r->lc->fabric.n_replies, 3);
		expect_message(r, 0, 1, "the first");
		expect_message(r, 1, 2, "another reply");
		expect_message(r, 2, 1, "and the last");
	}
	rig_destroy(r);
}

/* They would go to their connections again, and their packets were freed. */
Test(lb_fabric_verbs, segments_of_the_port_before_are_forgotten)
{
	struct rig *r = rig_create();

	r->lc->segments.n = 3;
	r->lc->burst.n = 2;
	cr_assert_eq(fabric_verbs_poll(r->lc, 0), 0);
	cr_assert_eq(r->lc->segments.n, 0);
	cr_assert_eq(r->lc->burst.n, 0);
	chunk_comes(r, 1, 0, "a reply", false);
	r->lc->segments.n = 3;
	cr_assert_eq(fabric_verbs_poll(r->lc, 0), 1);
	expect_message(r, 0, 1, "a reply");
	cr_assert_eq(r->lc->segments.n, 0);
	rig_destroy(r);
}

Test(lb_fabric_verbs, a_reply_goes_on_over_several_polls)
{
	struct rig *r = rig_create();

	chunk_comes(r, 3, 0, "one", true);
	fabric_verbs_poll(r->lc, 0);
	cr_assert_eq(r->lc->fabric.n_replies, 1);
	expect_message(r, 0, 3, "one");
	chunk_comes(r, 3, 1, "two", false);
	fabric_verbs_poll(r->lc, 0);
	cr_assert_eq(r->lc->fabric.n_replies, 1);
	expect_message(r, 0, 3, "two");
	rig_destroy(r);
}

Test(lb_fabric_verbs, chunks_without_a_place_are_dropped_and_counted)
{
	struct rig *r = rig_create();

	chunk_comes(r, 0, 0, "one", true);
	chunk_comes(r, 0, 1, "two", true);
	chunk_comes(r, 0, 2, "in the place of slot 1", true);
	fabric_verbs_poll(r->lc, 0);
	cr_assert_eq(r->lc->fabric.n_replies, 2);
	expect_message(r, 0, 0, "one");
	expect_message(r, 1, 0, "two");
	cr_expect_eq(r->lc->stats.drop[LB_DROP_REPLY_MALFORMED], 1);
	rig_destroy(r);
}

/* Longer than a packet of the pool. */
static char long_text[2 * FIXTURE_MESSAGE_MAX + 1000];

static void write_long_text(void)
{
	for (unsigned int i = 0; i < sizeof(long_text) - 1; i++)
		long_text[i] = 'a' + i % 23;
}

Test(lb_fabric_verbs, a_message_longer_than_a_packet_becomes_several)
{
	struct rig *r = rig_create();
	struct rte_mbuf *m;
	char copy[sizeof(long_text)];

	write_long_text();
	chunk_comes(r, 2, 0, long_text, false);
	fabric_verbs_poll(r->lc, 0);
	cr_assert_eq(r->lc->fabric.n_replies, 1);
	m = r->lc->fabric.reply[0].message;
	cr_assert_eq(m->pkt_len, strlen(long_text));
	cr_expect_gt(m->nb_segs, 1);
	cr_expect_eq(rte_mbuf_check(m, 1, &(const char *){NULL}), 0);
	cr_expect_arr_eq(rte_pktmbuf_read(m, 0, m->pkt_len, copy), long_text, strlen(long_text));
	rte_pktmbuf_free(m);
	rig_destroy(r);
}

Test(lb_fabric_verbs, a_message_longer_than_its_place_is_dropped_and_counted)
{
	struct rig *r = rig_create();

	complete(ring_imm(1, RING_OK, false), CHUNK + 1);
	complete(ring_imm(1, RING_OK, false), UINT32_MAX);
	chunk_comes(r, 1, 0, "the next", false);
	fabric_verbs_poll(r->lc, 0);
	cr_expect_eq(r->lc->stats.drop[LB_DROP_REPLY_TOO_LARGE], 2);
	cr_assert_eq(r->lc->fabric.n_replies, 1);
	expect_message(r, 0, 1, "the next");
	rig_destroy(r);
}

/* Without an end of its own, the client would wait; with a part of it, it would be wrong. */
Test(lb_fabric_verbs, a_message_that_finds_no_memory_is_a_failure)
{
	struct rig *r = rig_create();
	struct rte_mbuf *taken[4096], *m;
	unsigned int n = 0;

	write_long_text();
	fabric_verbs_poll(r->lc, 0);
	while (n < RTE_DIM(taken) && (taken[n] = rte_pktmbuf_alloc(r->lc->packets)) != NULL)
		n++;
	cr_assert_lt(n, RTE_DIM(taken));
	chunk_comes(r, 2, 0, long_text, true);
	fabric_verbs_poll(r->lc, 0);
	cr_assert_eq(r->lc->fabric.n_replies, 1);
	m = r->lc->fabric.reply[0].message;
	cr_expect_eq(m->pkt_len, sizeof(struct ring_reply));
	cr_expect_eq(m->nb_segs, 1);
	cr_expect_eq(rte_pktmbuf_mtod(m, struct ring_reply *)->length, 0);
	cr_expect_eq(r->lc->fabric.reply[0].imm, ring_imm(2, RING_ERROR, true));
	cr_expect_eq(r->lc->stats.drop[LB_DROP_NO_MBUF], 1);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free_bulk(taken, n);
	/* The chunk after it comes from its own place. */
	chunk_comes(r, 2, 1, "the second", false);
	fabric_verbs_poll(r->lc, 0);
	cr_assert_eq(r->lc->fabric.n_replies, 1);
	expect_message(r, 0, 2, "the second");
	rig_destroy(r);
}

/* A heartbeat's low bits are no slot. */
Test(lb_fabric_verbs, heartbeats_tell_the_backlog_and_take_no_place)
{
	struct rig *r = rig_create();

	/* With the first heartbeat of some the load balancer looks at services, which are none
	 * here. */
	r->link->stats.heartbeats = 1;
	chunk_comes(r, 1, 0, "one", true);
	complete(ring_imm_heartbeat(5), 0);
	chunk_comes(r, 1, 1, "two", false);
	fabric_verbs_poll(r->lc, 0);
	cr_assert_eq(r->lc->fabric.n_replies, 2);
	expect_message(r, 0, 1, "one");
	expect_message(r, 1, 1, "two");
	cr_expect_eq(r->link->backlog, 5);
	cr_expect_eq(r->link->stats.heartbeats, 2);
	rig_destroy(r);
}
