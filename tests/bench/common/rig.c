/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "ports/eal.h"
#include "common/rig.h"
#include "lb.h"
#include "walk/loop.h"

#define POOL_CACHE 256
/* Packets for ACKs, and those that mempool caches keep. */
#define POOL_SPARE 1024

/*
 * All else is the daemon's default. Timeouts are long because the bench stands still between turns,
 * and because it does not measure failures.
 */
static const char config_text[] =
	"ports:\n"
	"  - {name: clients, device: net_ring_clients, roles: [clients]}\n"
	"  - {name: fabric, device: net_ring_fabric, roles: [fabric], mtu: 4200,\n"
	"     address: " RIG_LB_FABRIC "/24}\n"
	"services:\n"
	"  - {name: one, address: " RIG_VIP ", port: %d, model: one, flow_timeout_ms: %u,\n"
	"     one_way_timeout_ms: %u, request_timeout_ms: %u, queue_timeout_ms: 100}\n"
	"  - {name: many, address: " RIG_VIP ", port: %d, model: many, flow_timeout_ms: 3600000,\n"
	"     one_way_timeout_ms: 3600000, request_timeout_ms: 600000}\n"
	"%s"
	"lcores: [%d]\n"
	"flows: %u\n"
	"memory: {hugepages: %s, mb: %u}\n"
	"workers: {timeout_ms: 3600000}\n"
	"fabric: {ack_timeout: 22}\n"
	"log_level: warning\n"
	"%s";

/* A batch of connections may be half-open at once, and four batches of replies unacknowledged. */
static const char stream_service[] =
	"  - {name: %s, protocol: tcp, framing: %s, address: " RIG_VIP ", port: %d, model: one,\n"
	"     max_request: %d, max_reply: %d, request_timeout_ms: 600000, queue_timeout_ms: 100}\n";
static const char stream_section[] = "tcp: {connections: %u, backlog: %d, buffer_mb: 256, client_percent: 100, connections_percent: 100}\n";

void rig_die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("bench: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(EXIT_FAILURE);
}

/* One CPU runs everything: the EAL's lcore thread only sleeps. */
static int stay_on_this_cpu(void)
{
	int cpu = sched_getcpu();
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? cpu : 0;
}

/* The parts of the configuration that only a bench of TCP has. */
static void write_stream(const struct rig_options *o, char service[512], char section[128])
{
	int length;

	service[0] = section[0] = '\0';
	if (o->connections == 0)
		return;
	length = snprintf(service, 512, stream_service, "stream", "length",
			  RIG_SERVICE_UDP + RIG_STREAM, RIG_STREAM_MAX, RIG_BYTES_MAX);
	snprintf(service + length, 512 - length, stream_service, "kserve", "kserve",
		 RIG_SERVICE_UDP + RIG_KSERVE, RIG_STREAM_MAX, RIG_BYTES_MAX);
	snprintf(section, 128, stream_section, o->connections, 2 * RIG_BATCH);
}

static int read_config(struct lb_config *config, const struct rig_options *o)
{
	uint32_t timeout = o->timeout_ms != 0 ? o->timeout_ms : 3600000;
	char text[3072], service[512], section[128], error[512];
	int length, ret;

	write_stream(o, service, section);
	length = snprintf(text, sizeof(text), config_text, RIG_SERVICE_UDP, timeout, timeout,
			  RTE_MIN(timeout - 100, 600000u), RIG_SERVICE_UDP + RIG_MANY_WORKERS,
			  service, stay_on_this_cpu(), o->flows != 0 ? o->flows : 1048576,
			  o->hugepages ? "true" : "false", o->mb != 0 ? o->mb : 1792, section);
	ret = lb_config_parse("bench", text, length, config, error, sizeof(error));
	if (ret < 0)
		fprintf(stderr, "%s\n", error);
	return ret;
}

/* Buffers as large as those that the load balancer's own ports receive into. */
static int create_pool(struct rig *rig, uint32_t packets)
{
	rig->lc = rig->lb->lcore[0];
	rig->received = rte_pktmbuf_pool_create("received", packets + POOL_SPARE, POOL_CACHE, 0,
						rte_pktmbuf_data_room_size(rig->lc->packets),
						SOCKET_ID_ANY);
	return rig->received == NULL ? -ENOMEM : 0;
}

/* Drops the announcements that the load balancer sends at its first tick. */
static void forget_announcements(struct rig *rig)
{
	const struct nic *const nics[] = {&rig->clients, &rig->fabric};
	struct rte_mbuf *packet[LB_SERVICES_MAX + 1];

	lb_tick(rig->lb);
	lb_poll(rig->lb->lcore[0]);
	for (unsigned int i = 0; i < RTE_DIM(nics); i++)
		rte_pktmbuf_free_bulk(packet, nic_collect(nics[i], 0, packet, RTE_DIM(packet)));
}

int rig_create(struct rig *rig, const struct rig_options *options)
{
	struct lb_config *config = calloc(1, sizeof(*config));
	int ret = config == NULL ? -ENOMEM : read_config(config, options);
	char error[512] = "";

	memset(rig, 0, sizeof(*rig));
	if (ret == 0)
		ret = lb_eal_init(config, "walk", error, sizeof(error));
	if (ret == 0)
		ret = nic_create(&rig->clients, "clients", 1);
	if (ret == 0)
		ret = nic_create(&rig->fabric, "fabric", 1);
	if (ret == 0) {
		rig->lb = lb_create(config);
		ret = rig->lb == NULL ? -ENOMEM : 0;
	}
	/* Rings verify no checksums; the flags set in a packet count all the same. */
	for (unsigned int i = 0; ret == 0 && i < config->n_ports; i++)
		rig->lb->port[i].rx_checksums =
			RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	free(config);
	if (ret == 0)
		forget_announcements(rig);
	if (ret == 0)
		ret = create_pool(rig, options->received != 0 ? options->received : RIG_BATCH);
	if (ret < 0) {
		fprintf(stderr, "cannot set up the load balancer: %s\n",
			error[0] != '\0' ? error : strerror(-ret));
		return ret;
	}
	return 0;
}

void rig_destroy(struct rig *rig)
{
	lb_destroy(rig->lb);
	rte_mempool_free(rig->received);
	nic_destroy(&rig->clients);
	nic_destroy(&rig->fabric);
}

void nic_deliver(const struct nic *nic, struct rte_mbuf *const packet[], unsigned int n)
{
	if (!nic_receive(nic, 0, packet, n))
		rig_die("a port's queue is full");
}

void rig_alloc(const struct rig *rig, struct rte_mbuf *packet[], unsigned int n)
{
	if (rte_pktmbuf_alloc_bulk(rig->received, packet, n) != 0)
		rig_die("packet memory is out");
}
