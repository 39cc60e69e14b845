/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_ethdev.h>
#include <rte_pause.h>

#include "e2e/e2e.h"
#include "flow.h"
#include "runtime/clock.h"
#include "common/wire_child.h"

#define EXPIRE_EVERY_NS 1000000ull
#define SECOND_NS       1000000000ull
#define BUSY_TURNS      64 /* turns between two readings of the clock while there is work */
/* After as many timeouts without any reply the rest is not tried. */
#define SILENT_TIMEOUTS 4

/* One run. */
struct loop {
	struct e2e_net *net;
	const struct e2e_options *o;
	struct load load;
	uint64_t requests;
	uint32_t next;   /* index of the next request */
	uint32_t oldest; /* index: no request before it is outstanding */
	uint64_t next_expire_ns, next_progress_ns, last_reply_ns;
	unsigned int n_out; /* packets that the ring had no place for */
	struct rte_mbuf *out[E2E_BURST];
};

static struct flow *flow_of(struct loop *l, uint32_t index)
{
	return &l->load.flows[index % l->o->load.sockets];
}

/* Sends the burst. Packets that find no place go first the next time. False when none was sent. */
static bool flush(struct loop *l)
{
	unsigned int sent = rte_eth_tx_burst(l->net->port.id, l->net->queue, l->out, l->n_out);

	l->n_out -= sent;
	for (unsigned int i = 0; sent > 0 && i < l->n_out; i++)
		l->out[i] = l->out[sent + i];
	return sent > 0;
}

static void build(struct loop *l, struct rte_mbuf *m, uint32_t index)
{
	const struct load_work *work = l->load.work;
	uint64_t id = load_id(&l->load, index);
	uint8_t *payload = e2e_net_payload(m);
	size_t length = work->length(work->context, index);

	work->build(work->context, id, payload);
	for (unsigned int i = 0; i < sizeof(id); i++)
		payload[i] = id >> 8 * i;
	e2e_net_finish(l->net, m, flow_of(l, index)->number, length);
}

/* Returns true when a request was sent. A request's time begins when all of its burst are ready. */
static bool send_requests(struct loop *l)
{
	uint64_t room = l->o->load.window - l->load.n_outstanding, now;
	unsigned int n = RTE_MIN(RTE_MIN(room, l->requests - l->next), (uint64_t)E2E_BURST);

	if (l->n_out > 0)
		return flush(l);
	if (n == 0 || rte_pktmbuf_alloc_bulk(l->net->requests, l->out, n) != 0)
		return false;
	for (unsigned int i = 0; i < n; i++)
		build(l, l->out[i], l->next + i);
	now = clock_now_ns();
	for (unsigned int i = 0; i < n; i++)
		if (flow_sent(&l->load, flow_of(l, l->next + i), l->next + i, now) != 0)
			wire_die("no memory for the account of %" PRIu64 " requests", l->requests);
	l->next += n;
	l->n_out = n;
	return flush(l);
}

static void take(struct loop *l, const struct rte_mbuf *m, uint64_t now)
{
	struct e2e_datagram d;
	int ret = e2e_net_take(l->net, m, l->o->load.sockets, &d);

	if (ret < 0)
		l->load.tally->wrong++;
	if (ret <= 0)
		return;
	l->last_reply_ns = now;
	if (flow_received(&l->load, &l->load.flows[d.flow], d.bytes, d.length, now) != 0)
		wire_die("no memory for the account of the replies");
}

static bool take_replies(struct loop *l)
{
	struct rte_mbuf *packet[E2E_BURST];
	unsigned int n = rte_eth_rx_burst(l->net->port.id, l->net->queue, packet, E2E_BURST);
	uint64_t now;

	if (n == 0)
		return false;
	now = clock_now_ns();
	for (unsigned int i = 0; i < n; i++)
		take(l, packet[i], now);
	rte_pktmbuf_free_bulk(packet, n);
	return true;
}

static void progress(struct loop *l, uint64_t now)
{
	const struct tally *t = l->load.tally;

	l->next_progress_ns += SECOND_NS;
	fprintf(stderr, "%6.1f s  answered %" PRIu64 " of %" PRIu64 "  lost %" PRIu64 "\n",
		(now - t->start_ns) / 1e9, t->answered, l->requests, t->lost);
}

/* Gives up the requests that are too old. They are sent in the order of their numbers, so the
 * search for the oldest open one goes on where it ended. */
static void expire(struct loop *l, uint64_t now)
{
	uint64_t timeout = l->o->load.timeout_ms * 1000000, before = now - timeout;
	const struct tally *t = l->load.tally;

	l->next_expire_ns = now + EXPIRE_EVERY_NS;
	if (l->o->load.progress && now >= l->next_progress_ns)
		progress(l, now);
	while (l->oldest < l->next &&
	       (t->records[l->oldest].state != RECORD_SENT || t->records[l->oldest].ns <= before)) {
		if (t->records[l->oldest].state == RECORD_SENT)
			flow_expire(&l->load, flow_of(l, l->oldest), before);
		l->oldest++;
	}
	if (now > l->last_reply_ns + SILENT_TIMEOUTS * timeout)
		wire_die("no reply came for %" PRIu64 " ms: answered %" PRIu64 ", lost %" PRIu64
			 " of %" PRIu64,
			 SILENT_TIMEOUTS * l->o->load.timeout_ms, t->answered, t->lost,
			 l->requests);
}

static void open_flows(struct loop *l)
{
	l->load.flows = calloc(l->o->load.sockets, sizeof(*l->load.flows));
	if (l->load.flows == NULL || tally_init(l->load.tally, l->o->load.sockets) != 0)
		wire_die("no memory for the flows");
	for (uint32_t i = 0; i < l->o->load.sockets; i++)
		if (flow_init(&l->load.flows[i], &l->o->load, i) != 0)
			wire_die("no memory for the flows");
	/* Touch the memory now: first writes while the clock runs would show in the slowest
	 * replies. */
	if (tally_record(l->load.tally, l->requests - 1) == NULL)
		wire_die("no memory for the account of %" PRIu64 " requests", l->requests);
}

static void close_flows(struct loop *l)
{
	rte_pktmbuf_free_bulk(l->out, l->n_out);
	for (uint32_t i = 0; i < l->o->load.sockets; i++)
		flow_close(&l->load.flows[i]);
	free(l->load.flows);
}

static void rest(const struct loop *l)
{
	if (l->o->yield)
		sched_yield();
	else
		rte_pause();
}

void e2e_load_run(struct e2e_net *net, const struct e2e_options *o, const struct load_work *work,
		  uint64_t requests, struct tally *tally)
{
	struct loop l = {
		.net = net,
		.o = o,
		.requests = requests,
		.load = {.options = &o->load, .work = work, .tally = tally, .tag = load_tag()},
	};
	uint64_t now;

	open_flows(&l);
	now = clock_now_ns();
	tally->start_ns = tally->end_ns = l.last_reply_ns = now;
	l.next_expire_ns = l.next_progress_ns = now;
	for (unsigned int turn = 1; l.next < requests || l.load.n_outstanding > 0; turn++) {
		bool busy = take_replies(&l);

		busy |= send_requests(&l);
		if (busy && turn % BUSY_TURNS != 0)
			continue;
		now = clock_now_ns();
		if (now >= l.next_expire_ns)
			expire(&l, now);
		if (!busy)
			rest(&l);
	}
	close_flows(&l);
}
