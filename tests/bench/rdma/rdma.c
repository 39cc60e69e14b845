/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma: the cost of the RoCEv2 endpoint, in cycles, over memif to the software RNIC, and over links
 * that lose packets. This is the parent: what is measured and when. See README.md.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include "rdma/rdma.h"
#include "rdma/rdma_report.h"
#include "rdma/requester.h"
#include "wire/wire_cpus.h"

#define RUNS_DEFAULT  9
#define TRIES_DEFAULT 4
#define MEASURE_MS    400
#define OUTSTANDING   256
#define SMOKE_MS      50
/* 2 MiB each: the two processes over the wire, with some to spare. */
#define PAGES         160
#define ARGUMENTS_MAX 16

const uint8_t rdma_sender_mac[6] = {0x02, 0, 0, 0, 0, 0x01};
const uint8_t rdma_receiver_mac[6] = {0x02, 0, 0, 0, 0, 0xf1};

struct value {
	double value;
	char name[REPORT_NAME_MAX];
};

void rdma_tell(int socket, double value, const char *format, ...)
{
	struct value v = {.value = value};
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(v.name, sizeof(v.name), format, arguments);
	va_end(arguments);
	if (send(socket, &v, sizeof(v), MSG_NOSIGNAL) != sizeof(v))
		wire_die("nobody listens");
}

static void run_part(struct report *report, const char *name,
		     void (*run)(const void *argument, int socket), const void *argument)
{
	struct wire_child child;
	struct value v;

	wire_child_start(&child, name, run, argument);
	while (recv(child.socket, &v, sizeof(v), 0) == sizeof(v))
		report_add(report, v.value, "%s", v.name);
	wire_child_end(&child);
}

/* --- what all parts need -------------------------------------------------------------------------
 */

void rdma_start_eal(const struct rdma_options *o, const char *name, uint16_t cpu,
		    uint16_t worker_cpu, unsigned int mb)
{
	char prefix[64], lcores[1024], memory[16];
	char *argv[ARGUMENTS_MAX + 1] = {(char *)(uintptr_t)name,
					 prefix,
					 "--no-pci",
					 "--no-telemetry",
					 "--single-file-segments",
					 "--log-level=lib.*:warning",
					 "--log-level=pmd.*:warning",
					 "--lcores",
					 lcores,
					 "-m",
					 memory};
	int argc = 11;
	size_t n;
	cpu_set_t set;

	snprintf(prefix, sizeof(prefix), "--file-prefix=bench-%s", name);
	snprintf(memory, sizeof(memory), "%u", mb);
	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	n = snprintf(lcores, sizeof(lcores), "0@(");
	for (int i = 0, some = 0; i < CPU_SETSIZE && n < sizeof(lcores) - 32; i++)
		if (cpu == RDMA_NO_CPU ? CPU_ISSET(i, &set) : i == cpu)
			n += snprintf(lcores + n, sizeof(lcores) - n, "%s%d", some++ ? "," : "", i);
	n += snprintf(lcores + n, sizeof(lcores) - n, ")");
	if (worker_cpu != RDMA_NO_CPU)
		snprintf(lcores + n, sizeof(lcores) - n, ",1@%u", worker_cpu);
	argv[argc++] = o->hugepages ? "--in-memory" : "--no-huge";
	if (!o->hugepages)
		argv[argc++] = "--no-shconf";
	if (rte_eal_init(argc, argv) < 0)
		wire_die("the EAL did not start");
}

struct rte_mempool *rdma_pool(const char *name, unsigned int n, uint16_t room)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create(name, n, 256, 0, room, SOCKET_ID_ANY);

	if (pool == NULL)
		wire_die("no memory for packets");
	return pool;
}

/* --- options -------------------------------------------------------------------------------------
 */

static bool usage(FILE *to)
{
	fputs("usage: rdma [--runs N] [--ms N] [--tries N] [--only cycles|wire|loss] [--verify]\n"
	      "            [--outstanding N] [--sender-cpu N] [--receiver-cpu N] [--smoke] "
	      "[--no-huge] [--json "
	      "FILE]\n"
	      "            [--commit TEXT] [--machine TEXT] [--print-pages]\n",
	      to);
	return false;
}

static bool take_option(struct rdma_options *o, int c)
{
	switch (c) {
	case 'r':
		o->runs = strtoul(optarg, NULL, 10);
		return true;
	case 's':
		o->measure_ms = strtoul(optarg, NULL, 10);
		return true;
	case 't':
		o->tries = strtoul(optarg, NULL, 10);
		return true;
	case 'w':
		o->outstanding = strtoul(optarg, NULL, 10);
		return true;
	case 'o':
		o->only = optarg;
		return true;
	case 'v':
		return o->verify = true;
	case 'a':
		o->sender_cpu = strtoul(optarg, NULL, 10);
		return true;
	case 'b':
		o->receiver_cpu = strtoul(optarg, NULL, 10);
		return true;
	case 'k':
		o->measure_ms = SMOKE_MS;
		o->runs = o->tries = 1;
		return o->verify = o->smoke = true;
	case 'n':
		o->hugepages = false;
		return true;
	case 'j':
		o->json = optarg;
		return true;
	case 'c':
		o->commit = optarg;
		return true;
	case 'm':
		o->machine = optarg;
		return true;
	case 'p':
		return o->print_pages = true;
	default:
		return false;
	}
}

/* The requester counts as an lcore of a load balancer, the receiver as its generator. */
static void choose_cpus(struct rdma_options *o)
{
	struct wire_options cpus = {.lcores = 1, .threads = 1};

	cpus.lb_cpu[0] = o->sender_cpu;
	cpus.gen_cpu[0] = o->receiver_cpu;
	if (!wire_cpus_choose(&cpus))
		fputs("one CPU for two threads: the figures mean nothing\n", stderr);
	o->sender_cpu = cpus.lb_cpu[0];
	o->receiver_cpu = cpus.gen_cpu[0];
}

static bool is_part(const char *name)
{
	return strcmp(name, "cycles") == 0 || strcmp(name, "wire") == 0 ||
	       strcmp(name, "loss") == 0;
}

static bool read_options(struct rdma_options *o, int argc, char **argv)
{
	static const struct option table[] = {
		{"runs", required_argument, NULL, 'r'},
		{"ms", required_argument, NULL, 's'},
		{"tries", required_argument, NULL, 't'},
		{"outstanding", required_argument, NULL, 'w'},
		{"only", required_argument, NULL, 'o'},
		{"verify", no_argument, NULL, 'v'},
		{"sender-cpu", required_argument, NULL, 'a'},
		{"receiver-cpu", required_argument, NULL, 'b'},
		{"smoke", no_argument, NULL, 'k'},
		{"no-huge", no_argument, NULL, 'n'},
		{"json", required_argument, NULL, 'j'},
		{"commit", required_argument, NULL, 'c'},
		{"machine", required_argument, NULL, 'm'},
		{"print-pages", no_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{NULL},
	};
	static char machine[256];
	int c;

	wire_cpus_machine(machine, sizeof(machine));
	*o = (struct rdma_options){
		.commit = "unknown",
		.machine = machine,
		.runs = RUNS_DEFAULT,
		.tries = TRIES_DEFAULT,
		.measure_ms = MEASURE_MS,
		.outstanding = OUTSTANDING,
		.hugepages = true,
		.sender_cpu = RDMA_NO_CPU,
		.receiver_cpu = RDMA_NO_CPU,
	};
	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1)
		if (!take_option(o, c))
			return usage(c == 'h' ? stdout : stderr);
	if (optind != argc || o->runs == 0 || o->runs > REPORT_RUNS_MAX || o->tries == 0 ||
	    o->measure_ms == 0 || o->outstanding == 0 || o->outstanding > REQUESTER_WINDOW ||
	    (o->only != NULL && !is_part(o->only)))
		return usage(stderr);
	choose_cpus(o);
	snprintf(o->socket, sizeof(o->socket), "doorbell-rdma-%d", (int)getpid());
	return true;
}

static bool wants(const struct rdma_options *o, const char *part)
{
	return o->only == NULL || strcmp(o->only, part) == 0;
}

static void measure(const struct rdma_options *o, struct report *report)
{
	struct rdma_wire soft = {.o = o}, acks = {.o = o, .acks_only = true};

	if (wants(o, "cycles"))
		run_part(report, "cycles", rdma_cycles_main, o);
	/* Two fresh processes each time: where their memory lies is part of the spread. */
	for (unsigned int run = 0; wants(o, "wire") && run < o->runs; run++) {
		run_part(report, "requester", rdma_wire_main, &soft);
		run_part(report, "requester", rdma_wire_main, &acks);
	}
	if (wants(o, "loss"))
		run_part(report, "loss", rdma_loss_main, o);
}

int main(int argc, char **argv)
{
	static struct report report;
	struct rdma_options o;
	int ret;

	wire_name("rdma");
	if (!read_options(&o, argc, argv))
		return 2;
	if (o.print_pages)
		return printf("%u\n", PAGES) < 0;
	measure(&o, &report);
	ret = rdma_report(&report, &o);
	report_fini(&report);
	return ret < 0;
}
