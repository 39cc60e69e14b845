/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread of a run: it sends requests that are due, settles replies, and sleeps in between. */
#include "cli/bench/bench.h"

#include "cli/bench/pattern.h"
#include "runtime/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define NAP_MAX_NS 5000000ull /* bound on how late the end or a lost request is noticed */
#define BLOCKED_NS 50000ull   /* time after which a full socket is tried again */

struct engine {
	struct bench_thread *thread;
	const struct bench_options *options;
	struct transport *transport;
	struct arrivals arrivals;
	struct draw draw;
	uint32_t flows, next_flow[MIX_TARGETS];
	uint32_t *turn; /* flows that may send, in order; one entry per free place in a window */
	uint64_t turn_head, turn_tail, turn_room;
	uint64_t counted_ns, stop_ns; /* ends of the warm-up and of sending */
	uint64_t requests;            /* that this thread may send in all */
	unsigned int n_staged;        /* built, not sent yet */
	struct flight staged[TRANSPORT_BURST];
	struct transport_datagram datagram[TRANSPORT_BURST];
	uint8_t *room; /* payloads of the staged requests */
	uint32_t room_each;
	uint8_t *expected;
	struct order order;
	bool orders; /* <order> is used: replies do not tell which request they answer */
};

/* --- bytes ------------------------------------------------------------------------------------ */

static void id_write(uint64_t id, uint8_t *bytes)
{
	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(id >> 8 * i);
}

static uint64_t id_read(const uint8_t *bytes)
{
	uint64_t id = 0;

	for (int i = 7; i >= 0; i--)
		id = id << 8 | bytes[i];
	return id;
}

static void request_build(uint64_t id, uint8_t *bytes, uint32_t size)
{
	pattern_fill(id, bytes, size);
	id_write(id, bytes);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void turn_add(struct engine *e, uint32_t flow)
{
	if (e->turn_room != 0)
		e->turn[e->turn_tail++ % e->turn_room] = flow;
}

/* The next flow of <target>; its flows take turns. */
static uint32_t flow_next(struct engine *e, unsigned int target)
{
	uint32_t n = e->options->mix.n_targets, each = e->flows / n;

	return e->next_flow[target]++ % each * n + target;
}

/* Build a request that is due, in the next id's place. */
static void stage(struct engine *e, uint64_t due_ns, uint32_t flow, unsigned int target)
{
	unsigned int i = e->n_staged++;
	uint64_t id = ledger_next_id(&e->thread->ledger) + i;
	uint32_t size = mix_draw_size(&e->options->mix.target[target], &e->draw);

	e->staged[i] = (struct flight){.due_ns = due_ns,
				       .flow = flow,
				       .size = size,
				       .target = (uint8_t)target,
				       .counted = due_ns >= e->counted_ns};
	e->datagram[i] =
		(struct transport_datagram){flow, size, e->room + (size_t)i * e->room_each};
	if (e->options->mix.target[target].deadline_ns != 0)
		e->datagram[i].deadline_ns = due_ns + e->options->mix.target[target].deadline_ns;
	request_build(id, e->datagram[i].bytes, size);
}

static bool may_send_more(const struct engine *e)
{
	return e->thread->ledger.next + e->n_staged < e->requests;
}

/* Open loop: stage the requests that are due. With a window, only as many as it has room for. */
static void stage_due(struct engine *e, uint64_t now)
{
	uint64_t start = e->thread->start_ns, due;

	while (e->n_staged < TRANSPORT_BURST && may_send_more(e)) {
		unsigned int target;
		uint32_t flow;

		due = start + arrivals_next_ns(&e->arrivals);
		if (due > now || due >= e->stop_ns)
			return;
		if (e->turn_room != 0) {
			if (e->turn_head == e->turn_tail)
				return;
			flow = e->turn[e->turn_head++ % e->turn_room];
			target = flow % e->options->mix.n_targets;
		} else {
			target = mix_draw_target(&e->options->mix, &e->draw);
			flow = flow_next(e, target);
		}
		arrivals_take(&e->arrivals);
		e->thread->due++;
		stage(e, due, flow, target);
	}
}

/* Closed loop: stage requests of the flows that have room in their window. */
static void stage_windows(struct engine *e, uint64_t now)
{
	while (e->n_staged < TRANSPORT_BURST && e->turn_head != e->turn_tail && now < e->stop_ns &&
	       may_send_more(e)) {
		uint32_t flow = e->turn[e->turn_head++ % e->turn_room];

		e->thread->due++;
		stage(e, now, flow, flow % e->options->mix.n_targets);
	}
}

static void count_sent(struct bench_thread *thread, const struct flight *flight)
{
	if (!flight->counted)
		return;
	thread->counted_of[flight->target]++;
	if (thread->counted++ == 0)
		thread->first_ns = flight->due_ns;
	thread->last_ns = flight->due_ns;
	histogram_record(&thread->lag, flight->sent_ns - flight->due_ns);
}

/* Move datagrams that were not sent to the front of the stage, with their ids. */
static void keep_unsent(struct engine *e, unsigned int sent)
{
	unsigned int left = e->n_staged - sent;

	for (unsigned int i = 0; i < left && sent > 0; i++) {
		uint8_t *to = e->room + (size_t)i * e->room_each;

		memcpy(to, e->datagram[sent + i].bytes, e->datagram[sent + i].length);
		e->staged[i] = e->staged[sent + i];
		e->datagram[i] = e->datagram[sent + i];
		e->datagram[i].bytes = to;
	}
	e->n_staged = left;
}

/* Returns 0 or -errno. */
static int send_staged(struct engine *e)
{
	struct bench_thread *thread = e->thread;
	uint64_t now;
	int sent;

	if (e->n_staged == 0)
		return 0;
	now = clock_now_ns();
	sent = thread->ops->send(e->transport, e->datagram, e->n_staged, &thread->unreachable);
	if (sent < 0)
		return sent;
	for (int i = 0; i < sent; i++) {
		uint64_t id = ledger_next_id(&thread->ledger);
		int ret;

		e->staged[i].sent_ns = now;
		ret = ledger_sent(&thread->ledger, &e->staged[i]);
		if (ret < 0)
			return ret;
		count_sent(thread, &e->staged[i]);
		if (e->orders) {
			ret = order_sent(&e->order, &thread->ledger, e->staged[i].flow, id);
			if (ret < 0)
				return ret;
		}
	}
	keep_unsent(e, (unsigned int)sent);
	return 0;
}

/* --- receiving -------------------------------------------------------------------------------- */

static bool is_right(struct engine *e, uint64_t id, const struct transport_datagram *datagram)
{
	const struct flight *flight = ledger_find(&e->thread->ledger, id);

	if (flight == NULL)
		return true; /* no longer outstanding: the ledger judges it */
	if (flight->flow != datagram->flow)
		return false;
	if (e->options->compare == BENCH_VERIFY_ID && datagram->named)
		return datagram->length >= MIX_SIZE_MIN && id_read(datagram->bytes) == id;
	if (e->options->compare != BENCH_VERIFY_ECHO && e->options->compare != BENCH_VERIFY_START)
		return true;
	request_build(id, e->expected, flight->size);
	if (e->options->compare == BENCH_VERIFY_ECHO && datagram->length != flight->size)
		return false;
	return datagram->length >= MIX_SIZE_MIN && datagram->length <= flight->size &&
	       memcmp(datagram->bytes, e->expected, datagram->length) == 0;
}

/*
 * True when <id> is a request of the datagram's flow. A reply of a model that knows no ids looks so
 * by chance once in 2^32.
 */
static bool names_request(const struct engine *e, uint64_t id,
			  const struct transport_datagram *datagram)
{
	const struct flight *flight = ledger_find(&e->thread->ledger, id);

	return ledger_knows(&e->thread->ledger, id) &&
	       (flight == NULL || flight->flow == datagram->flow);
}

/*
 * Find the request that a datagram answers. Where replies may hold anything, a reply without a
 * known id answers the oldest request of its flow. False when there is none; the datagram is then
 * counted.
 */
static bool find_request(struct engine *e, const struct transport_datagram *datagram,
			 enum notice_code code, uint64_t *id)
{
	struct ledger_counts *counts = &e->thread->ledger.counts;
	bool has_id = datagram->length >= MIX_SIZE_MIN;

	if (datagram->named) {
		*id = datagram->id;
		return true;
	}
	if (has_id)
		*id = id_read(datagram->bytes + (code != NOTICE_NONE ? NOTICE_ID_AT : 0));
	if (e->options->compare != BENCH_VERIFY_NONE || (has_id && code != NOTICE_NONE)) {
		counts->strangers += !has_id;
		return has_id;
	}
	if ((has_id && names_request(e, *id, datagram)) ||
	    order_oldest(&e->order, &e->thread->ledger, datagram->flow, id))
		return true;
	if (order_is_late(&e->order, datagram->flow))
		counts->late++;
	else
		counts->duplicates++;
	return false;
}

static void count_answered(struct engine *e, const struct flight *flight, uint64_t now)
{
	uint64_t deadline = e->options->mix.target[flight->target].deadline_ns;
	struct bench_thread *thread = e->thread;

	if (!flight->counted)
		return;
	thread->answered_counted++;
	thread->in_time[flight->target] += deadline != 0 && now - flight->due_ns <= deadline;
	histogram_record(&thread->latency[flight->target], now - flight->due_ns);
}

static void engine_take(struct engine *e, const struct transport_datagram *datagram, uint64_t now)
{
	enum notice_code code = datagram->named ? datagram->notice
						: notice_parse(datagram->bytes, datagram->length);
	struct bench_thread *thread = e->thread;
	struct flight flight;
	uint64_t id;

	if (!find_request(e, datagram, code, &id))
		return;
	switch (ledger_settle(&thread->ledger, id, code, is_right(e, id, datagram), &flight)) {
	case LEDGER_ANSWERED:
		thread->last_answer_ns = now;
		count_answered(e, &flight, now);
		/* fallthrough */
	case LEDGER_WRONG:
	case LEDGER_REFUSED:
		turn_add(e, flight.flow);
		break;
	default:
		break;
	}
}

/* Returns 0 or -errno. */
static int engine_receive(struct engine *e, uint64_t wait_ns)
{
	struct transport_datagram datagram[TRANSPORT_BURST];
	struct bench_thread *thread = e->thread;
	uint64_t now;
	int got = thread->ops->receive(e->transport, datagram, TRANSPORT_BURST, wait_ns,
				       &thread->unreachable);

	if (got <= 0)
		return got;
	now = clock_now_ns();
	for (int i = 0; i < got; i++)
		engine_take(e, &datagram[i], now);
	return 0;
}

static void engine_expire(struct engine *e, uint64_t now)
{
	uint64_t timeout = e->options->timeout_ms * 1000000;
	struct flight flight;

	while (now > timeout && ledger_expire(&e->thread->ledger, now - timeout, &flight)) {
		turn_add(e, flight.flow);
		if (e->orders)
			order_lost(&e->order, flight.flow);
	}
}

/* --- the loop --------------------------------------------------------------------------------- */

static bool is_sending(const struct engine *e, uint64_t now)
{
	return now < e->stop_ns && may_send_more(e);
}

/* ns until the next event that no datagram announces. */
static uint64_t nap_ns(const struct engine *e, uint64_t now)
{
	uint64_t due;

	if (e->options->spin)
		return 0;
	if (e->n_staged != 0)
		return BLOCKED_NS;
	if (e->options->rate == 0 || !is_sending(e, now) ||
	    (e->turn_room != 0 && e->turn_head == e->turn_tail))
		return NAP_MAX_NS;
	due = e->thread->start_ns + arrivals_next_ns(&e->arrivals);
	if (due <= now)
		return 0;
	return due - now < NAP_MAX_NS ? due - now : NAP_MAX_NS;
}

static int turns(struct engine *e)
{
	struct bench_thread *thread = e->thread;
	int ret = 0;

	for (;;) {
		uint64_t now = clock_now_ns();

		if (e->options->rate != 0)
			stage_due(e, now);
		else
			stage_windows(e, now);
		ret = send_staged(e);
		if (ret < 0)
			return ret;
		now = clock_now_ns();
		if (!is_sending(e, now) &&
		    (thread->ledger.outstanding == 0 && (e->n_staged == 0 || now >= e->stop_ns)))
			return 0;
		ret = engine_receive(e, nap_ns(e, now));
		if (ret < 0)
			return ret;
		engine_expire(e, clock_now_ns());
	}
}

/* Count requests that were due but not sent: the generator was too slow, not the service. */
static void count_unsent(struct engine *e)
{
	e->thread->unsent = e->n_staged;
	while (e->options->rate != 0 && e->options->requests == 0 &&
	       e->thread->start_ns + arrivals_next_ns(&e->arrivals) < e->stop_ns) {
		arrivals_take(&e->arrivals);
		e->thread->due++;
		e->thread->unsent++;
	}
}

/* --- setting up ------------------------------------------------------------------------------- */

/* This thread's share of <total>. */
static uint64_t part_of(const struct bench_thread *thread, uint64_t total)
{
	uint64_t n = thread->options->threads;

	return total / n + (thread->number < total % n);
}

static int windows_init(struct engine *e)
{
	uint64_t window = e->options->window;

	if (window == 0)
		return 0;
	e->turn_room = window * e->flows;
	e->turn = calloc(e->turn_room, sizeof(*e->turn));
	if (e->turn == NULL)
		return -ENOMEM;
	for (uint64_t i = 0; i < e->turn_room; i++)
		turn_add(e, (uint32_t)(i % e->flows));
	return 0;
}

/* Set up all of <e>. On failure the thread's <error> has the reason. */
static void engine_init(struct engine *e, struct bench_thread *thread)
{
	const struct bench_options *o = thread->options;
	double rate = o->rate / (double)o->threads;
	struct transport_params params = {.mix = &o->mix,
					  .largest = mix_largest(&o->mix),
					  .tagged = o->tagged,
					  .device = o->dpdk,
					  .address = o->address,
					  .gateway = o->gateway};

	e->thread = thread;
	e->options = o;
	e->orders = o->compare == BENCH_VERIFY_NONE && !thread->ops->names;
	e->flows = (uint32_t)part_of(thread, o->flows) * o->mix.n_targets;
	e->requests = o->requests != 0 ? part_of(thread, o->requests) : UINT64_MAX;
	if (o->rate != 0)
		arrivals_init(&e->arrivals, rate, o->even, o->seed, thread->number);
	draw_init(&e->draw, o->seed, BENCH_THREADS_MAX + thread->number);
	e->room_each = params.largest;
	e->room = malloc((size_t)e->room_each * TRANSPORT_BURST);
	e->expected = malloc(e->room_each);
	if (e->room == NULL || e->expected == NULL || windows_init(e) != 0 ||
	    order_init(&e->order, e->flows) != 0) {
		snprintf(thread->error, sizeof(thread->error), "out of memory");
		return;
	}
	params.flows = e->flows;
	e->transport = thread->ops->open(&params, thread->error, sizeof(thread->error));
}

static void engine_fini(struct engine *e)
{
	if (e->transport != NULL)
		e->thread->ops->close(e->transport);
	free(e->room);
	free(e->expected);
	free(e->turn);
	order_fini(&e->order);
}

static void engine_start(struct engine *e)
{
	const struct bench_options *o = e->options;

	e->counted_ns = e->thread->start_ns + (uint64_t)(o->warmup_s * 1e9);
	e->stop_ns = e->counted_ns + (uint64_t)(o->duration_s * 1e9);
}

void *bench_thread_run(void *context)
{
	struct bench_thread *thread = context;
	struct engine e = {0};
	int ret;

	/* The kernel's default timer slack would wake a sleeper 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	engine_init(&e, thread);
	/*
	 * At the first gate all threads are ready or have failed; then the main thread sets the
	 * start, or 0.
	 */
	pthread_barrier_wait(thread->gate);
	pthread_barrier_wait(thread->gate);
	if (thread->start_ns != 0) {
		engine_start(&e);
		ret = turns(&e);
		if (ret == -EOVERFLOW)
			snprintf(thread->error, sizeof(thread->error),
				 "one thread cannot send more than 2^32 requests; give more "
				 "--threads, or a shorter --duration");
		else if (ret < 0)
			snprintf(thread->error, sizeof(thread->error), "%s", strerror(-ret));
		count_unsent(&e);
	}
	engine_fini(&e);
	return thread;
}
