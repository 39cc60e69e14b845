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
#include "ring.h"
#include "tcp/connection.h"
#include "walk/loop.h"
#include "walk/tcp_walk.h"

#define RUNS_DEFAULT 9
/* Batches per scenario and repetition: 512 turns of each step. */
#define BATCHES    4
#define IDLE_POLLS 4000
/* The clock's start. */
#define START_MS 1000
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
	struct tcp_walk tcp;
	uint32_t connections;
	struct turns turns[STEPS];
	uint32_t next_new; /* of the connections that come and go */
};

/* The load balancer's clock; constant during a turn. */
static uint64_t bench_clock;

static void tick(const struct rig *rig)
{
	bench_clock += rig->lb->tsc_per_ms / TCP_WALK_TURNS_PER_MS + 1;
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
		batch_run(&b->tcp.walk, &load);
	b->tcp.walk.replies.n = 0;
	return add_turns(report, &b->tcp.walk.requests, "udp_1448b_request_cycles");
}

/* UDP: a request and its reply. */
static double measure_udp(struct tcp_bench *b, struct report *report, bool by_nic)
{
	struct load load = {RIG_ONE_WORKER, b->connections, TCP_WALK_PAYLOAD, .nic_checks = by_nic};
	const char *checked = by_nic ? "_nic_checks" : "";
	char name[REPORT_NAME_MAX];
	double cycles;

	for (unsigned int i = 0; i < BATCHES; i++)
		batch_run(&b->tcp.walk, &load);
	snprintf(name, sizeof(name), "udp_request_cycles%s", checked);
	cycles = add_turns(report, &b->tcp.walk.requests, name);
	snprintf(name, sizeof(name), "udp_reply_cycles%s", checked);
	return cycles + add_turns(report, &b->tcp.walk.replies, name);
}

/*
 * TCP: a request and its reply. The request acknowledges the reply before it, which came four
 * batches ago.
 */
static double measure_requests(struct tcp_bench *b, struct report *report, uint32_t among,
			       const char *what, const char *checked)
{
	static uint32_t flow[BATCHES][RIG_BATCH];
	char name[REPORT_NAME_MAX];
	double cycles;

	for (unsigned int i = 0; i < BATCHES; i++) {
		tcp_clients_draw(b->tcp.clients, among, flow[i]);
		tcp_walk_requests(&b->tcp, flow[i], &b->tcp.untimed);
		tcp_walk_replies(&b->tcp, &b->tcp.untimed);
	}
	for (unsigned int i = 0; i < BATCHES; i++) {
		tcp_walk_requests(&b->tcp, flow[i], &b->turns[STEP_REQUEST]);
		tcp_walk_replies(&b->tcp, &b->turns[STEP_REPLY]);
	}
	for (unsigned int i = 0; i < BATCHES; i++)
		tcp_walk_acknowledge(&b->tcp, flow[i], &b->turns[STEP_REPLY_ACK]);
	snprintf(name, sizeof(name), "%s_request_cycles%s", what, checked);
	cycles = add_turns(report, &b->turns[STEP_REQUEST], name);
	snprintf(name, sizeof(name), "%s_reply_cycles%s", what, checked);
	cycles += add_turns(report, &b->turns[STEP_REPLY], name);
	snprintf(name, sizeof(name), "%s_ack_cycles%s", what, checked);
	add_turns(report, &b->turns[STEP_REPLY_ACK], name);
	return cycles;
}

static double measure_tcp(struct tcp_bench *b, struct report *report, bool by_nic)
{
	tcp_walk_checksums(&b->tcp, by_nic);
	return measure_requests(b, report, b->connections, "tcp", by_nic ? "_nic_checks" : "");
}

/* The same by KServe's protocol over HTTP/1.1, by that of `length` of as many connections. */
static double measure_kserve(struct tcp_bench *b, struct report *report)
{
	double length, kserve;

	tcp_walk_checksums(&b->tcp, true);
	length = measure_requests(b, report, TCP_WALK_KSERVE, "length_16k", "_nic_checks");
	tcp_walk_speak(&b->tcp, TCP_KSERVE);
	kserve = measure_requests(b, report, TCP_WALK_KSERVE, "kserve_16k", "_nic_checks");
	tcp_walk_speak(&b->tcp, TCP_LENGTH);
	return kserve / length;
}

/* TCP: the same of connections at rest, which acknowledge each reply by a segment of its own. */
static double measure_tcp_acks(struct tcp_bench *b, struct report *report)
{
	static const enum step steps[] = {STEP_REQUEST, STEP_REPLY, STEP_REPLY_ACK};
	static uint32_t flow[RIG_BATCH];
	char name[REPORT_NAME_MAX];
	double cycles = 0;

	tcp_walk_checksums(&b->tcp, true);
	for (unsigned int i = 0; i < BATCHES; i++) {
		tcp_clients_draw(b->tcp.clients, b->connections, flow);
		tcp_walk_requests(&b->tcp, flow, &b->turns[STEP_REQUEST]);
		tcp_walk_replies(&b->tcp, &b->turns[STEP_REPLY]);
		tcp_walk_acknowledge(&b->tcp, flow, &b->turns[STEP_REPLY_ACK]);
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

	tcp_walk_checksums(&b->tcp, true);
	for (unsigned int i = 0; i < BATCHES; i++) {
		for (unsigned int k = 0; k < RIG_BATCH; k++)
			flow[k] = b->connections + b->next_new + k;
		b->next_new = (b->next_new + RIG_BATCH) % SPARE;
		tcp_walk_open(&b->tcp, flow, &b->turns[STEP_SYN], &b->turns[STEP_ACK]);
		tcp_walk_requests(&b->tcp, flow, &b->turns[STEP_REQUEST]);
		tcp_walk_replies(&b->tcp, &b->turns[STEP_REPLY]);
		tcp_walk_close(&b->tcp, flow, &b->turns[STEP_FIN], &b->turns[STEP_END]);
	}
	for (unsigned int i = 0; i < RTE_DIM(steps); i++) {
		snprintf(name, sizeof(name), "connect_%s_cycles", step_name[steps[i]]);
		part = add_turns(report, &b->turns[steps[i]], name);
		cycles += part;
	}
	return cycles;
}

static void send_large(struct tcp_bench *b, bool late)
{
	tcp_walk_large(&b->tcp, TCP_LENGTH, RIG_STREAM_MAX, b->connections, late,
		       &b->turns[STEP_SEGMENT]);
	tcp_walk_answer_large(&b->tcp);
}

/* Payloads copied of large requests by KServe's protocol, of which every fifth segment is late. */
static void measure_kserve_copies(struct tcp_bench *b, struct report *report)
{
	static const uint32_t sizes[] = {RING_STRIDE_MAX + 1, 65536 + 200, 602112, RIG_STREAM_MAX};
	static const char *const names[] = {[TCP_KSERVE] = "kserve_payload_copies_http",
					    [TCP_GRPC] = "kserve_payload_copies_grpc"};
	const uint64_t *copies = &b->tcp.walk.rig.lc->stats.payload_copies;
	uint64_t all = *copies, before;

	for (enum tcp_framing framing = TCP_KSERVE; framing <= TCP_GRPC; framing++) {
		before = *copies;
		for (unsigned int i = 0; i < RTE_DIM(sizes); i++) {
			tcp_walk_large(&b->tcp, framing, sizes[i], TCP_WALK_KSERVE, true,
				       &b->tcp.untimed);
			tcp_walk_answer_large(&b->tcp);
		}
		report_add(report, *copies - before, "%s", names[framing]);
	}
	report_add(report, *copies - all, "kserve_payload_copies");
}

/* TCP: a segment of 1,448 bytes of a large request, with its WRITE; in order, and one of five not.
 */
static double measure_segments(struct tcp_bench *b, struct report *report)
{
	uint64_t copies = b->tcp.walk.rig.lc->stats.payload_copies;
	struct cost cost;
	double cycles;

	tcp_walk_checksums(&b->tcp, true);
	for (unsigned int i = 0; i < BATCHES; i++)
		send_large(b, false);
	cost = turns_cost(&b->turns[STEP_SEGMENT], LARGE_TURN);
	report_add(report, cycles = cost.total, "tcp_1448b_segment_cycles");
	report_add(report, cost.disturbed, "disturbed_turns");
	send_large(b, true);
	cost = turns_cost(&b->turns[STEP_SEGMENT], LARGE_TURN);
	report_add(report, cost.total, "tcp_1448b_segment_late_cycles");
	report_add(report, b->tcp.walk.rig.lc->stats.payload_copies - copies, "payload_copies");
	return cycles;
}

/* Cycles of a turn in which nothing comes. */
static void measure_idle(struct tcp_bench *b, struct report *report, const char *name)
{
	for (unsigned int i = 0; i < IDLE_POLLS; i++)
		tcp_walk_turn(&b->tcp, &b->tcp.untimed);
	b->tcp.untimed.n = 0;
	for (unsigned int i = 0; i < IDLE_POLLS; i++)
		tcp_walk_turn(&b->tcp, &b->tcp.untimed);
	report_add(report, turns_cost(&b->tcp.untimed, 1).total, "%s", name);
}

static void measure_all(struct tcp_bench *b, struct report *report)
{
	double udp, udp_software, tcp, connect;
	double hz = b->tcp.walk.rig.lb->tsc_per_ms * 1000.0;

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
	report_add(report, measure_kserve(b, report), "kserve_over_length_1kib");
	measure_kserve_copies(b, report);
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
		.flows = 2 * connections + SPARE + RIG_FLOWS_MANY + 2 * RIG_BATCH + TCP_WALK_KSERVE,
		.mb = 1024 + (uint32_t)((uint64_t)connections * 1600 >> 20),
		.received = (BATCHES + 3) * RIG_BATCH,
		.connections = connections + SPARE, /* of `length` */
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

	b->tcp.walk.between = tick;
	tcp_walk_start(&b->tcp, &o, b->connections + SPARE, &bench_clock, START_MS);
}

/* Opens every flow and every connection, and checks every byte both ways. Not measured. */
static void warm_up(struct tcp_bench *b)
{
	struct load load = {RIG_ONE_WORKER, b->connections, 256, .in_turn = true};
	static struct report unused;

	for (uint32_t sent = 0; sent < 2 * b->connections; sent += RIG_BATCH) {
		batch_run(&b->tcp.walk, &load);
		b->tcp.walk.requests.n = b->tcp.walk.replies.n = 0;
	}
	tcp_walk_open_length(&b->tcp, b->connections);
	tcp_walk_open_kserve(&b->tcp);
	b->tcp.length.verify = b->tcp.kserve.verify = b->tcp.walk.peer.verify = true;
	measure_all(b, &unused);
	b->tcp.length.verify = b->tcp.kserve.verify = b->tcp.walk.peer.verify = false;
	report_fini(&unused);
	tcp_walk_check(&b->tcp);
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
	print_line(report, "request and reply of 1 KiB by KServe, over framing length's",
		   "kserve_over_length_1kib", 2);
	print_line(report, "payloads of KServe copied, every fifth segment a turn late",
		   "kserve_payload_copies", 0);
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
		tcp_walk_check(&b->tcp);
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
	tcp_walk_fini(&b.tcp);
	rte_eal_cleanup();
	return ret < 0;
}
