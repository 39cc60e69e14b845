/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma: the cost of the RoCEv2 endpoint, in cycles, over memif to the software RNIC, and over links
 * that lose packets. This is the parent, which decides what to measure and when. See README.md.
 */
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
#include "runtime/cpus.h"
#include "runtime/option_table.h"
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
	char cpus[CPUS_TEXT_MAX], prefix[64], lcores[CPUS_TEXT_MAX + 32], memory[16];
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

	snprintf(prefix, sizeof(prefix), "--file-prefix=bench-%s", name);
	snprintf(memory, sizeof(memory), "%u", mb);
	n = cpu == RDMA_NO_CPU ? snprintf(lcores, sizeof(lcores), "0@(%s)", cpus_allowed(cpus))
			       : snprintf(lcores, sizeof(lcores), "0@(%u)", cpu);
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

static int take_smoke(void *options, const char *text, char *error, size_t size)
{
	struct rdma_options *o = options;

	o->measure_ms = SMOKE_MS;
	o->runs = o->tries = 1;
	o->verify = o->smoke = true;
	return 0;
}

#define AT(field) OPTION_AT(struct rdma_options, field)

static const struct option_row rows[] = {
	{"only", OPTION_TEXT, AT(only), "cycles|wire|loss", "measure only this part"},
	{"runs", OPTION_NUMBER, AT(runs), NULL, "figures are their medians", 1, REPORT_RUNS_MAX},
	{"tries", OPTION_NUMBER, AT(tries), NULL, "to get a span undisturbed", 1},
	{"ms", OPTION_NUMBER, AT(measure_ms), NULL, "length of a span", 1},
	{"outstanding", OPTION_NUMBER, AT(outstanding), NULL, "WRITEs without an acknowledgement",
	 1, REQUESTER_WINDOW},
	{"verify", OPTION_FLAG, AT(verify), NULL, "check every byte, in time that is measured"},
	{"sender-cpu", OPTION_NUMBER, AT(sender_cpu), NULL, "of the requester [chosen]"},
	{"receiver-cpu", OPTION_NUMBER, AT(receiver_cpu), NULL, "of the software RNIC [chosen]"},
	{"smoke", OPTION_CALL, OPTION_WHOLE(struct rdma_options), "",
	 "a short run that shows that it works", .take = take_smoke, .optional = true},
	{"no-huge", OPTION_FLAG_OFF, AT(hugepages), NULL, "4 KiB pages"},
	{"json", OPTION_TEXT, AT(json), "FILE", "write the figures to it"},
	{"commit", OPTION_TEXT, AT(commit), NULL, "what was measured"},
	{"machine", OPTION_TEXT, AT(machine), NULL, "and where"},
	{"print-pages", OPTION_FLAG, AT(print_pages), NULL, "print how many hugepages it takes"},
	{0},
};

static const struct option_table table = {
	.program = "rdma", .usage = "rdma [option ...]", .rows = rows};

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
	static char machine[256];

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
	if (options_parse(&table, argc, argv, o, NULL) != 0)
		return false;
	if (o->only != NULL && !is_part(o->only)) {
		fprintf(stderr, "rdma: --only: '%s' is none of cycles, wire, loss\n", o->only);
		return false;
	}
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
	/* Two fresh processes each time: the place of their memory is part of the spread. */
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
