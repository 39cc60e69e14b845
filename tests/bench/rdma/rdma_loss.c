/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The goodput of a link that loses packets both ways, relative to one that does not: in process and
 * in made-up time, so that it depends on the endpoint's rules and not on the machine.
 */
#include "rdma/rdma.h"
#include "stream.h"
#include "common/wire_child.h"

#define MEMORY_MB      64
#define PACKETS        2047
#define MESSAGES       100000
#define SMOKE_MESSAGES 10000
#define LINE_RATE      12500000000ull /* 100 Gbit/s */
#define LINK_NS        2000           /* one way */
#define POLL_NS        1000000        /* the load balancer's housekeeping */
#define ACK_TIMEOUT    14             /* 67 ms: the load balancer's default */

static const struct {
	const char *name;
	double drop;
} scenarios[] = {
	{"loss_0_01pct", 0.0001},
	{"loss_0_1pct", 0.001},
	{"loss_1pct", 0.01},
};

static double run(struct stream_params *p, double drop, uint64_t seed, struct stream_result *r)
{
	p->there.drop = p->home.drop = drop;
	p->there.seed = 2 * seed;
	p->home.seed = 2 * seed + 1;
	if (stream_run(p, r) < 0)
		wire_die("the stream broke at a loss of %g", drop);
	return stream_goodput(p, r);
}

void rdma_loss_main(const void *options, int socket)
{
	const struct rdma_options *o = options;
	struct stream_params p = {
		.there = {.bytes_per_s = LINE_RATE, .delay_ns = LINK_NS},
		.home = {.bytes_per_s = LINE_RATE, .delay_ns = LINK_NS},
		.messages = o->smoke ? SMOKE_MESSAGES : MESSAGES,
		.length = RDMA_PATH_MTU,
		.ack_every = RDMA_BURST,
		.ack_timeout = ACK_TIMEOUT,
		.poll_ns = POLL_NS,
	};
	struct stream_result r;

	rdma_start_eal(o, "rdma-loss", o->sender_cpu, RDMA_NO_CPU, MEMORY_MB);
	p.packets = rdma_pool("packets", PACKETS, RTE_PKTMBUF_HEADROOM + RDMA_PATH_MTU + 64);
	p.small = rdma_pool("small", 511, RTE_PKTMBUF_HEADROOM + 64);
	for (unsigned int i = 0; i < o->runs; i++) {
		double best = run(&p, 0, i, &r);

		rdma_tell(socket, best / 1e9, "goodput_gbps_loss_0");
		for (unsigned int k = 0; k < RTE_DIM(scenarios); k++) {
			double goodput = run(&p, scenarios[k].drop, i, &r);

			rdma_tell(socket, goodput / best, "goodput_ratio_%s", scenarios[k].name);
			rdma_tell(socket, (double)r.wasted / RTE_MAX(r.naks, 1ul),
				  "wasted_per_nak_%s", scenarios[k].name);
			rdma_tell(socket, (double)r.timeouts, "timeouts_%s", scenarios[k].name);
		}
	}
}
