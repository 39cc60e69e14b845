/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "rdma/frame.h"
#include "rdma/requester.h"
#include "rdma/responder.h"
#include "stream.h"

#define TURN_NS   1000
#define BURST     32
#define MTU       4096
#define FRAME_MAX (ROCE_HEADERS_MAX + MTU + ROCE_TRAILER_MAX)
#define VA        0x7f0000000000ull
#define RKEY      0x1234

struct stream {
	const struct stream_params *p;
	struct roce_path path, back;
	struct txq tx;
	uint32_t held;
	struct requester rq;
	struct responder responder;
	struct faults *there, *home;
	uint64_t ns, next_poll;
	uint64_t start, clock; /* TSC cycles, made up */
	uint64_t written, received;
	bool wrong;
	uint8_t frame[FRAME_MAX];
};

static void set_time(struct stream *s, uint64_t ns)
{
	s->ns = ns;
	s->clock = s->start + (uint64_t)((double)ns * (double)rte_get_tsc_hz() / 1e9);
}

static void init_paths(struct stream *s)
{
	struct roce_path_spec spec =
				      {
					      .source_mac = {2, 0, 0, 0, 0, 1},
					      .destination_mac = {2, 0, 0, 0, 0, 2},
					      .family = 4,
					      .udp_source = 0xc001,
					      .qpn = 0x11,
					      .migrated = true,
					      .mtu = MTU,
				      },
			      back = spec;

	memcpy(spec.source.s6_addr + 10, (uint8_t[]){0xff, 0xff, 10, 0, 0, 1}, 6);
	memcpy(spec.destination.s6_addr + 10, (uint8_t[]){0xff, 0xff, 10, 0, 0, 2}, 6);
	back.source = spec.destination;
	back.destination = spec.source;
	roce_path_init(&s->path, &spec);
	roce_path_init(&s->back, &back);
}

static struct stream *create(const struct stream_params *p)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct rdma_region region = {.va = VA, .length = MTU, .rkey = RKEY};
	struct requester_params rq = {
		.path = &s->path,
		.tx = &s->tx,
		.pool = p->small,
		.held = &s->held,
		.clock = &s->clock,
		.multi_segment = true,
		.ack_timeout = p->ack_timeout,
		.retry_limit = 7,
		.rnr_retry = ROCE_RNR_FOREVER,
	};

	if (s == NULL)
		abort(); /* tests only */
	s->p = p;
	s->start = rte_get_tsc_hz();
	set_time(s, 0);
	init_paths(s);
	requester_init(&s->rq, &rq);
	responder_init(&s->responder, &region, MTU, 0);
	s->there = faults_create(&p->there);
	s->home = faults_create(&p->home);
	if (s->there == NULL || s->home == NULL)
		abort();
	return s;
}

static void destroy(struct stream *s)
{
	rte_pktmbuf_free_bulk(s->tx.packet, s->tx.n);
	requester_fini(&s->rq);
	faults_destroy(s->there);
	faults_destroy(s->home);
	free(s);
}

/* --- one turn ------------------------------------------------------------------------------------
 */

static bool write_one(struct stream *s)
{
	uint32_t flags = (s->written + 1) % s->p->ack_every == 0 ? REQUESTER_ACK_REQUEST : 0;
	struct rte_mbuf *m;

	if (!requester_room(&s->rq, 1))
		return false;
	m = rte_pktmbuf_alloc(s->p->packets);
	if (m == NULL)
		return false;
	m->data_len = m->pkt_len = s->p->length;
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), &s->written, sizeof(s->written));
	if (requester_write(&s->rq, m, VA, RKEY, 0, flags) < 0) {
		rte_pktmbuf_free(m);
		return false;
	}
	s->written++;
	return true;
}

static void transmit(struct stream *s)
{
	for (unsigned int i = 0; i < s->tx.n; i++)
		faults_put(s->there, rte_pktmbuf_mtod(s->tx.packet[i], uint8_t *),
			   s->tx.packet[i]->pkt_len, s->ns);
	rte_pktmbuf_free_bulk(s->tx.packet, s->tx.n);
	s->tx.n = 0;
}

/* No frame is damaged here, so ICRCs are not computed. */
static bool parse(const uint8_t *frame, uint32_t length, struct roce_frame *f,
		  struct roce_packet *p)
{
	return frame_locate(frame, length, f) == FRAME_ROCE &&
	       roce_parse(frame + f->bth_offset, f->bth_length, p) == ROCE_PARSED;
}

static void arrive(struct stream *s, uint32_t length)
{
	struct responder_placement at;
	struct roce_packet p;
	struct roce_frame f;

	if (!parse(s->frame, length, &f, &p) ||
	    responder_receive(&s->responder, &p, &at) != RESPONDER_ACCEPT)
		return;
	s->wrong |= memcmp(s->frame + f.bth_offset + p.payload_offset, &s->received,
			   sizeof(s->received)) != 0;
	s->received++;
}

static void answer(struct stream *s)
{
	uint8_t frame[ROCE_ACK_FRAME_MAX], syndrome;
	uint32_t psn, msn;

	if (responder_ack_due(&s->responder, &psn, &syndrome, &msn))
		faults_put(s->home, frame, roce_ack_build(frame, &s->back, psn, syndrome, msn),
			   s->ns);
}

static void deliver(struct stream *s)
{
	struct roce_packet p;
	struct roce_frame f;
	uint32_t length;

	while ((length = faults_take(s->there, s->ns, s->frame, sizeof(s->frame))) > 0)
		arrive(s, length);
	answer(s);
	while ((length = faults_take(s->home, s->ns, s->frame, sizeof(s->frame))) > 0)
		if (parse(s->frame, length, &f, &p))
			requester_ack(&s->rq, p.psn, p.syndrome, s->clock);
}

static void turn(struct stream *s)
{
	uint64_t next = s->ns + TURN_NS, due;
	unsigned int n = 0;

	while (n < BURST && write_one(s))
		n++;
	deliver(s);
	if (s->ns >= s->next_poll) {
		requester_poll(&s->rq, s->clock);
		s->next_poll = s->ns + s->p->poll_ns;
	}
	transmit(s);
	/* Nothing to do until a frame arrives or a timer is due. */
	due = RTE_MIN(RTE_MIN(faults_deadline(s->there), faults_deadline(s->home)), s->next_poll);
	set_time(s, n > 0 ? next : RTE_MAX(next, due));
}

int stream_run(const struct stream_params *params, struct stream_result *result)
{
	struct stream *s = create(params);
	int ret = 0;

	while (s->received < params->messages && !s->wrong && s->rq.error == REQUESTER_OK)
		turn(s);
	if (s->wrong)
		ret = -EBADMSG;
	else if (s->rq.error != REQUESTER_OK)
		ret = -EPIPE;
	*result = (struct stream_result){
		.ns = s->ns,
		.packets = s->rq.stats.packets,
		.resent = s->rq.stats.resent,
		.naks = s->rq.stats.naks,
		.timeouts = s->rq.stats.timeouts,
		.wasted = s->responder.stats.ahead + s->responder.stats.duplicates,
	};
	destroy(s);
	return ret;
}
