/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: TSC cycles of the TCP endpoint on the walk, beside the UDP walk's in the same run, with as
 * many connections as flows; what a connection costs from its SYN to its end; what a million idle
 * ones cost. See README.md.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include "common/options.h"
#include "edge/edge.h"
#include "lb.h"
#include "tcp/connection.h"
#include "walk/loop.h"
#include "walk/tcp_clients.h"
#include "walk/tcp_large.h"
#include "walk/walk_batch.h"

#define RUNS_DEFAULT 9
/* Batches per scenario and repetition: 512 turns of each step. */
#define BATCHES 4
#define PAYLOAD 1024
/* Bytes of the answer to a large request. */
#define LARGE_REPLY 64
/* Time between two turns, about that of a turn with 32 packets. */
#define TURNS_PER_MS 100
#define IDLE_POLLS   4000
/* Connections beside the idle ones: those that come and go. */
#define SPARE (2 * RIG_BATCH)

enum step {
	STEP_SYN,
	STEP_ACK,
	STEP_REQUEST,
	STEP_REPLY,
	STEP_REPLY_ACK,
	STEP_FIN,
	STEP_END,
	STEP_SEGMENT,
	STEPS
};

static const char *const step_name[STEPS] = {
	[STEP_SYN] = "syn",     [STEP_ACK] = "handshake",   [STEP_REQUEST] = "request",
	[STEP_REPLY] = "reply", [STEP_REPLY_ACK] = "ack",   [STEP_FIN] = "fin",
	[STEP_END] = "end",     [STEP_SEGMENT] = "segment",
};

struct tcp_bench {
	struct bench walk; /* the UDP side, and what both share */
	struct tcp_clients clients;
	struct tcp_large large;
	uint32_t connections;
	struct turns turns[STEPS], untimed;
	uint32_t next_new; /* of the connections that come and go */
};

/* The load balancer's clock; constant during a turn. */
static uint64_t bench_clock;

static void tick(const struct rig *rig)
{
	bench_clock += rig->lb->tsc_per_ms / TURNS_PER_MS + 1;
}

/* --- batches ------------------------------------------------------------------------------------
 */

static void turn(struct tcp_bench *b, struct turns *turns)
{
	if (turns->n == TURNS_MAX)
		turns->n = 0; /* nobody wants these */
	tick(&b->walk.rig);
	turns_turn(turns, b->walk.rig.lc);
}

static void settle(struct tcp_bench *b)
{
	struct bench *w = &b->walk;

	while (peer_owes_acks(&w->peer)) {
		peer_acknowledge(&w->peer);
		turn(b, &b->untimed);
		peer_receive(&w->peer);
	}
}

/* Sends a segment for each of <flow>, and takes what comes of it. */
static struct tcp_taken send_segments(struct tcp_bench *b, enum tcp_segment kind,
				      const uint32_t *flow, struct turns *turns)
{
	struct bench *w = &b->walk;
	struct tcp_taken taken = {0};

	tcp_clients_prepare(&b->clients, kind, flow, PAYLOAD);
	peer_expect(&w->peer);
	for (unsigned int i = 0; i < RIG_BATCH; i += LB_BURST) {
		nic_deliver(&w->rig.clients, w->clients.packet + i, LB_BURST);
		peer_acknowledge(&w->peer);
		turn(b, turns);
		peer_receive(&w->peer);
		tcp_clients_take(&b->clients, NULL, PAYLOAD, &taken);
	}
	settle(b);
	return taken;
}

static void expect(const char *what, unsigned int got, unsigned int expected)
{
	if (got != expected)
		rig_die("%u %s, expected %u", got, what, expected);
}

static void send_requests(struct tcp_bench *b, const uint32_t *flow, struct turns *turns)
{
	send_segments(b, TCP_SEGMENT_REQUEST, flow, turns);
	expect("requests reached the workers", b->walk.peer.n_requests, RIG_BATCH);
}

static void send_replies(struct tcp_bench *b, struct turns *turns)
{
	const struct load load = {.payload = PAYLOAD};
	struct bench *w = &b->walk;
	struct tcp_taken taken = {0};

	peer_prepare_replies(&w->peer, &load);
	for (unsigned int i = 0; i < RIG_BATCH; i += LB_BURST) {
		nic_deliver(&w->rig.fabric, w->peer.reply + i, LB_BURST);
		turn(b, turns);
		peer_receive(&w->peer);
		tcp_clients_take(&b->clients, w->peer.reply_at + i, PAYLOAD, &taken);
	}
	expect("replies reached the clients", taken.replies, RIG_BATCH);
	expect("segments came with them", taken.packets, RIG_BATCH);
	if (!peer_all_acked(&w->peer))
		rig_die("replies were not acknowledged");
}

static void open_connections(struct tcp_bench *b, const uint32_t *flow, struct turns *syn,
			     struct turns *ack)
{
	struct tcp_taken taken = send_segments(b, TCP_SEGMENT_SYN, flow, syn);

	expect("SYNs were answered", taken.syns, RIG_BATCH);
	taken = send_segments(b, TCP_SEGMENT_ACK, flow, ack);
	expect("segments answer an acknowledgement", taken.packets, 0);
}

static void acknowledge(struct tcp_bench *b, const uint32_t *flow, struct turns *turns)
{
	expect("segments answer an acknowledgement",
	       send_segments(b, TCP_SEGMENT_ACK, flow, turns).packets, 0);
}

static void close_connections(struct tcp_bench *b, const uint32_t *flow, struct turns *fin,
			      struct turns *end)
{
	struct tcp_taken taken = send_segments(b, TCP_SEGMENT_FIN, flow, fin);

	expect("connections were closed", taken.fins, RIG_BATCH);
	taken = send_segments(b, TCP_SEGMENT_ACK, flow, end);
	expect("segments answer an acknowledgement", taken.packets, 0);
}

static void checksums(struct tcp_bench *b, bool by_nic)
{
	b->clients.sums = !by_nic;
	b->walk.rig.clients.ol_flags =
		by_nic ? RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD : 0;
}

/* Fails if anything was lost, copied, or sent twice, in any measurement. */
static void check(const struct tcp_bench *b)
{
	const struct lb_lcore_stats *s = &b->walk.rig.lc->stats;
	const struct tcp_counters *t = edge_counters(b->walk.rig.lc);

	for (unsigned int i = 0; i < LB_DROPS; i++)
		if (s->drop[i] != 0)
			rig_die("%lu packets were dropped: %s", s->drop[i], lb_drop_name(i));
	if (s->payload_copies != 0 || s->notices != 0 || s->requests != s->replies)
		rig_die("%lu payloads were copied, %lu notices sent; %lu requests, %lu replies",
			s->payload_copies, s->notices, s->requests, s->replies);
	if (t->retransmits != 0 || t->duplicates_in != 0 || t->no_memory != 0 || t->challenges != 0)
		rig_die("%lu segments were sent again, %lu came again, %lu had no memory",
			t->retransmits, t->duplicates_in, t->no_memory);
}

/* --- scenarios ----------------------------------------------------------------------------------
 */

static double add_turns(struct report *report, struct turns *turns, const char *name)
{
	struct cost cost = turns_cost(turns, LB_BURST);

	report_add(report, cost.total, "%s", name);
	report_add(report, cost.disturbed, "disturbed_turns");
	return cost.total;
}

/* UDP: requests of the size of a large one's segments. */
static double measure_udp_segments(struct tcp_bench *b, struct report *report)
{
	struct load load = {RIG_ONE_WORKER, b->connections, LARGE_SEGMENT, .nic_checks = true};

	for (unsigned int i = 0; i < BATCHES; i++)
		batch_run(&b->walk, &load);
	b->walk.replies.n = 0;
	return add_turns(report, &b->walk.requests, "udp_1448b_request_cycles");
}

/* UDP: a request and its reply. */
static double measure_udp(struct tcp_bench *b, struct report *report, bool by_nic)
{
	struct load load = {RIG_ONE_WORKER, b->connections, PAYLOAD, .nic_checks = by_nic};
	const char *checked = by_nic ? "_nic_checks" : "";
	char name[REPORT_NAME_MAX];
	double cycles;

	for (unsigned int i = 0; i < BATCHES; i++)
		batch_run(&b->walk, &load);
	snprintf(name, sizeof(name), "udp_request_cycles%s", checked);
	cycles = add_turns(report, &b->walk.requests, name);
	snprintf(name, sizeof(name), "udp_reply_cycles%s", checked);
	return cycles + add_turns(report, &b->walk.replies, name);
}

/*
 * TCP: a request and its reply. The request acknowledges the reply before it, which came four
 * batches ago.
 */
static double measure_tcp(struct tcp_bench *b, struct report *report, bool by_nic)
{
	static uint32_t flow[BATCHES][RIG_BATCH];
	const char *checked = by_nic ? "_nic_checks" : "";
	char name[REPORT_NAME_MAX];
	double cycles;

	checksums(b, by_nic);
	for (unsigned int i = 0; i < BATCHES; i++) {
		tcp_clients_draw(&b->clients, b->connections, flow[i]);
		send_requests(b, flow[i], &b->untimed);
		send_replies(b, &b->untimed);
	}
	for (unsigned int i = 0; i < BATCHES; i++) {
		send_requests(b, flow[i], &b->turns[STEP_REQUEST]);
		send_replies(b, &b->turns[STEP_REPLY]);
	}
	for (unsigned int i = 0; i < BATCHES; i++)
		acknowledge(b, flow[i], &b->turns[STEP_REPLY_ACK]);
	snprintf(name, sizeof(name), "tcp_request_cycles%s", checked);
	cycles = add_turns(report, &b->turns[STEP_REQUEST], name);
	snprintf(name, sizeof(name), "tcp_reply_cycles%s", checked);
	cycles += add_turns(report, &b->turns[STEP_REPLY], name);
	snprintf(name, sizeof(name), "tcp_ack_cycles%s", checked);
	add_turns(report, &b->turns[STEP_REPLY_ACK], name);
	return cycles;
}

/* TCP: the same of connections at rest, which acknowledge each reply by a segment of its own. */
static double measure_tcp_acks(struct tcp_bench *b, struct report *report)
{
	static const enum step steps[] = {STEP_REQUEST, STEP_REPLY, STEP_REPLY_ACK};
	static uint32_t flow[RIG_BATCH];
	char name[REPORT_NAME_MAX];
	double cycles = 0;

	checksums(b, true);
	for (unsigned int i = 0; i < BATCHES; i++) {
		tcp_clients_draw(&b->clients, b->connections, flow);
		send_requests(b, flow, &b->turns[STEP_REQUEST]);
		send_replies(b, &b->turns[STEP_REPLY]);
		acknowledge(b, flow, &b->turns[STEP_REPLY_ACK]);
	}
	for (unsigned int i = 0; i < RTE_DIM(steps); i++) {
		snprintf(name, sizeof(name), "rest_%s_cycles_nic_checks", step_name[steps[i]]);
		cycles += add_turns(report, &b->turns[steps[i]], name);
	}
	return cycles;
}

/* A connection from its SYN to its end, with one request. */
static double measure_connect(struct tcp_bench *b, struct report *report)
{
	static const enum step steps[] = {STEP_SYN,   STEP_ACK, STEP_REQUEST,
					  STEP_REPLY, STEP_FIN, STEP_END};
	static uint32_t flow[RIG_BATCH];
	char name[REPORT_NAME_MAX];
	double cycles = 0, part;

	checksums(b, true);
	for (unsigned int i = 0; i < BATCHES; i++) {
		for (unsigned int k = 0; k < RIG_BATCH; k++)
			flow[k] = b->connections + b->next_new + k;
		b->next_new = (b->next_new + RIG_BATCH) % SPARE;
		open_connections(b, flow, &b->turns[STEP_SYN], &b->turns[STEP_ACK]);
		send_requests(b, flow, &b->turns[STEP_REQUEST]);
		send_replies(b, &b->turns[STEP_REPLY]);
		close_connections(b, flow, &b->turns[STEP_FIN], &b->turns[STEP_END]);
	}
	for (unsigned int i = 0; i < RTE_DIM(steps); i++) {
		snprintf(name, sizeof(name), "connect_%s_cycles", step_name[steps[i]]);
		part = add_turns(report, &b->turns[steps[i]], name);
		cycles += part;
	}
	return cycles;
}

/* Small answers to the large requests, and their acknowledgements. */
static void answer_large(struct tcp_bench *b)
{
	const struct load load = {.reply = LARGE_REPLY};
	struct bench *w = &b->walk;
	struct tcp_taken taken = {0};
	struct rte_mbuf *ack[LARGE_CLIENTS];

	peer_prepare_replies(&w->peer, &load);
	nic_deliver(&w->rig.fabric, w->peer.reply, LARGE_CLIENTS);
	turn(b, &b->untimed);
	peer_receive(&w->peer);
	tcp_clients_take(&b->clients, w->peer.reply_at, LARGE_REPLY, &taken);
	expect("replies to large requests reached the clients", taken.replies, LARGE_CLIENTS);
	rig_alloc(&w->rig, ack, LARGE_CLIENTS);
	for (unsigned int i = 0; i < LARGE_CLIENTS; i++)
		tcp_clients_write(&b->clients, TCP_SEGMENT_ACK, b->large.flow[i], 0, ack[i]);
	nic_deliver(&w->rig.clients, ack, LARGE_CLIENTS);
	turn(b, &b->untimed);
	settle(b);
}

/* One request of 1 MiB by each of a few connections; see tcp_large_deliver(). */
static void send_large(struct tcp_bench *b, bool late)
{
	static uint32_t flow[RIG_BATCH];
	const uint64_t *out_of_order = &edge_counters(b->walk.rig.lc)->out_of_order;
	uint64_t before = *out_of_order;
	struct bench *w = &b->walk;
	struct tcp_taken taken = {0};

	tcp_clients_draw(&b->clients, b->connections, flow);
	b->clients.ahead = true;
	tcp_large_prepare(&b->large, flow);
	peer_expect(&w->peer);
	for (unsigned int i = 0; i < LARGE_TURNS + late; i++) {
		unsigned int n = tcp_large_deliver(&b->large, i, late);

		peer_acknowledge(&w->peer);
		turn(b, n == LARGE_TURN ? &b->turns[STEP_SEGMENT] : &b->untimed);
		peer_receive(&w->peer);
		tcp_clients_take(&b->clients, NULL, 0, &taken);
	}
	settle(b);
	b->clients.ahead = false;
	tcp_large_check(&b->large);
	expect("segments came out of order", (unsigned int)(*out_of_order - before),
	       late ? (LARGE_TURNS - 1) * (LARGE_TURN - LARGE_CLIENTS) : 0);
	answer_large(b);
}

/* TCP: a segment of 1,448 bytes of a large request, with its WRITE; in order, and one of five not.
 */
static double measure_segments(struct tcp_bench *b, struct report *report)
{
	uint64_t copies = b->walk.rig.lc->stats.payload_copies;
	struct cost cost;
	double cycles;

	checksums(b, true);
	for (unsigned int i = 0; i < BATCHES; i++)
		send_large(b, false);
	cost = turns_cost(&b->turns[STEP_SEGMENT], LARGE_TURN);
	report_add(report, cycles = cost.total, "tcp_1448b_segment_cycles");
	report_add(report, cost.disturbed, "disturbed_turns");
	send_large(b, true);
	cost = turns_cost(&b->turns[STEP_SEGMENT], LARGE_TURN);
	report_add(report, cost.total, "tcp_1448b_segment_late_cycles");
	report_add(report, b->walk.rig.lc->stats.payload_copies - copies, "payload_copies");
	return cycles;
}

/* Cycles of a turn in which nothing comes. */
static void measure_idle(struct tcp_bench *b, struct report *report, const char *name)
{
	for (unsigned int i = 0; i < IDLE_POLLS; i++)
		turn(b, &b->untimed);
	b->untimed.n = 0;
	for (unsigned int i = 0; i < IDLE_POLLS; i++)
		turn(b, &b->untimed);
	report_add(report, turns_cost(&b->untimed, 1).total, "%s", name);
}

static void measure_all(struct tcp_bench *b, struct report *report)
{
	double udp, udp_software, tcp, connect;
	double hz = b->walk.rig.lb->tsc_per_ms * 1000.0;

	udp = measure_udp(b, report, true);
	tcp = measure_tcp(b, report, true);
	report_add(report, tcp / udp, "tcp_over_udp_1kib");
	tcp = measure_tcp_acks(b, report);
	report_add(report, tcp / udp, "tcp_over_udp_1kib_with_acks");
	connect = measure_connect(b, report);
	report_add(report, connect / udp, "connect_over_udp");
	report_add(report, hz / connect, "new_connections_per_s");
	udp = measure_udp_segments(b, report);
	report_add(report, measure_segments(b, report) / udp, "segment_over_udp_1448b");
	udp_software = measure_udp(b, report, false);
	tcp = measure_tcp(b, report, false);
	report_add(report, tcp / udp_software, "tcp_over_udp_1kib_software_sums");
}

/* --- the beginning ------------------------------------------------------------------------------
 */

static struct rig_options options_for(uint32_t connections, bool hugepages)
{
	return (struct rig_options){
		.hugepages = hugepages,
		.flows = 2 * connections + SPARE + RIG_FLOWS_MANY + RIG_BATCH,
		.mb = 1024 + (uint32_t)((uint64_t)connections * 1600 >> 20),
		.received = (BATCHES + 3) * RIG_BATCH,
		.connections = connections + SPARE,
	};
}

/* Bytes that the process has taken from the EAL's heap and from libc's. */
static double memory_in_use(void)
{
	struct rte_malloc_socket_stats heap;
	struct mallinfo2 libc = mallinfo2();
	double bytes = (double)libc.uordblks + (double)libc.hblkhd;

	for (unsigned int i = 0; i < RTE_MAX_NUMA_NODES; i++)
		if (rte_malloc_get_socket_stats(i, &heap) == 0)
			bytes += (double)heap.heap_allocsz_bytes;
	return bytes;
}

static double memory_of_rig(uint32_t flows, uint32_t connections, bool hugepages)
{
	struct rig_options o = options_for(flows, hugepages);
	static struct rig rig;

	o.connections = connections;
	if (rig_create(&rig, &o) < 0)
		rig_die("no load balancer for %u connections", connections);
	return memory_in_use();
}

/* The same in a process of its own: an EAL begins once. */
static double memory_with(uint32_t flows, uint32_t connections, bool hugepages)
{
	double bytes = 0;
	int to[2], status;
	pid_t child;

	if (pipe(to) < 0 || (child = fork()) < 0)
		rig_die("no process to measure memory in");
	if (child == 0) {
		bytes = memory_of_rig(flows, connections, hugepages);
		_exit(write(to[1], &bytes, sizeof(bytes)) == sizeof(bytes) ? 0 : 1);
	}
	if (waitpid(child, &status, 0) < 0 || status != 0 ||
	    read(to[0], &bytes, sizeof(bytes)) != sizeof(bytes))
		rig_die("memory was not measured");
	close(to[0]);
	close(to[1]);
	return bytes;
}

/* MiB per million connections, all that the configuration sets aside for them; not their flows. */
static void measure_memory(struct report *report, uint32_t connections, bool hugepages)
{
	double bytes = memory_with(connections, connections, hugepages) -
		       memory_with(connections, 1, hugepages);

	report_add(report, bytes / (connections - 1) * 1e6 / (1 << 20), "idle_mib_1m");
}

static void start(struct tcp_bench *b, bool hugepages)
{
	struct rig_options o = options_for(b->connections, hugepages);
	struct bench *w = &b->walk;

	if (rig_create(&w->rig, &o) < 0)
		exit(EXIT_FAILURE);
	/* Half a millisecond off, so that no rounding matters. */
	bench_clock =
		w->rig.lb->tsc_start + 1000 * w->rig.lb->tsc_per_ms + w->rig.lb->tsc_per_ms / 2;
	w->rig.lb->clock = &bench_clock;
	w->between = tick;
	clients_init(&w->clients, &w->rig);
	peer_join(&w->peer, &w->rig, &w->clients);
	tcp_clients_init(&b->clients, &w->rig, &w->clients, b->connections + SPARE);
	tcp_large_init(&b->large, &b->clients, &w->peer);
}

/* Opens every flow and every connection, and checks every byte both ways. Not measured. */
static void warm_up(struct tcp_bench *b)
{
	struct load load = {RIG_ONE_WORKER, b->connections, 256, .in_turn = true};
	static struct report unused;
	static uint32_t flow[RIG_BATCH];

	for (uint32_t sent = 0; sent < 2 * b->connections; sent += RIG_BATCH) {
		batch_run(&b->walk, &load);
		b->walk.requests.n = b->walk.replies.n = 0;
	}
	checksums(b, true);
	for (uint32_t opened = 0; opened < b->connections; opened += RIG_BATCH) {
		for (unsigned int i = 0; i < RIG_BATCH; i++)
			flow[i] = opened + i;
		open_connections(b, flow, &b->untimed, &b->untimed);
	}
	b->clients.verify = b->walk.peer.verify = true;
	measure_all(b, &unused);
	b->clients.verify = b->walk.peer.verify = false;
	report_fini(&unused);
	check(b);
}

/* --- the report ---------------------------------------------------------------------------------
 */

static void print_line(const struct report *report, const char *text, const char *name,
		       unsigned int decimals)
{
	printf("%-58s %10.*f %10.*f %10.*f\n", text, decimals, report_median(report, name),
	       decimals, report_percentile(report, name, 10), decimals,
	       report_percentile(report, name, 90));
}

static void print_report(const struct report *report, uint32_t connections)
{
	printf("%u connections, and as many UDP flows; cycles of the TSC\n", connections);
	printf("%-58s %10s %10s %10s\n", "", "median", "p10", "p90");
	for (unsigned int i = 0; i < report->n; i++)
		if (strstr(report->series[i]->name, "_cycles") != NULL)
			print_line(report, report->series[i]->name, report->series[i]->name, 0);
	putchar('\n');
	print_line(report, "request and reply of 1 KiB, over UDP's", "tcp_over_udp_1kib", 2);
	print_line(report, "the same, checksums in software", "tcp_over_udp_1kib_software_sums", 2);
	print_line(report, "the same with an ACK, of connections at rest",
		   "tcp_over_udp_1kib_with_acks", 2);
	print_line(report, "connect, request, reply, close, over UDP's", "connect_over_udp", 2);
	print_line(report, "such connections per second", "new_connections_per_s", 0);
	print_line(report, "segment of a 1 MiB request, over a UDP request of 1,448 bytes",
		   "segment_over_udp_1448b", 2);
	print_line(report, "payloads copied, every fifth segment a turn late", "payload_copies", 0);
	print_line(report, "MiB per million connections, beside their flows", "idle_mib_1m", 0);
	print_line(report, "turns left out as disturbed", "disturbed_turns", 0);
}

static int measure(struct tcp_bench *b, struct report *report, const struct bench_options *o)
{
	struct report_origin origin;
	int ret;

	measure_idle(b, report, "idle_poll_cycles_no_connection");
	warm_up(b);
	report_add(report, b->connections, "connections");
	for (unsigned int run = 0; run < o->runs; run++) {
		measure_all(b, report);
		measure_idle(b, report, "idle_poll_cycles");
		check(b);
	}
	origin = bench_origin(o, "tcp", rte_eal_has_hugepages());
	print_report(report, b->connections);
	ret = bench_write(o, report, &origin);
	report_fini(report);
	return ret;
}

int main(int argc, char **argv)
{
	static struct tcp_bench b; /* too large for a stack */
	static struct report report;
	struct bench_options o;
	int ret;

	if (!bench_options_read(&o, argc, argv, "tcp", "16k|1m", RUNS_DEFAULT))
		return 2;
	/* Whole batches: 1,003,520, or 16,384. */
	b.connections = (o.only != NULL && strcmp(o.only, "16k") == 0 ? 4 : 245) * RIG_BATCH;
	measure_memory(&report, b.connections, o.hugepages);
	start(&b, o.hugepages);
	ret = measure(&b, &report, &o);
	tcp_clients_fini(&b.clients);
	rig_destroy(&b.walk.rig);
	rte_eal_cleanup();
	return ret < 0;
}
