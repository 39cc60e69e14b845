/* SPDX-License-Identifier: BSD-3-Clause */
/* Do the limits of TCP connections fit each other, the flow table and the memory? */
#include <inttypes.h>

#include "cli/doctor/check.h"

/* Windows that an lcore's share of the buffers should hold: fewer, and a few clients stop all. */
#define TCP_WINDOWS_MIN 8
/* A connection is a flow, and is one in TIME-WAIT after its end. */
#define TCP_FLOWS_EACH 2

static void tcp_check_flows(struct doctor *d, const struct plan_tcp *tcp)
{
	if (tcp->flows >= tcp->connections)
		return;
	doctor_report(d, DOCTOR_WARNING,
		      "flows: %u is less than tcp.connections, %u: each connection is a flow, so new "
		      "ones are refused before that limit",
		      tcp->flows, tcp->connections);
	doctor_fix(d, "flows: %" PRIu64 ", which has room for those in TIME-WAIT, too; or lower "
		      "tcp.connections",
		   (uint64_t)tcp->connections * TCP_FLOWS_EACH);
}

static void tcp_check_buffers(struct doctor *d, const struct plan_tcp *tcp)
{
	uint64_t share = ((uint64_t)tcp->buffer_mb << 20) / tcp->lcores;
	uint64_t windows = share / tcp->window;
	uint64_t need_mb = ((uint64_t)tcp->window * TCP_WINDOWS_MIN * tcp->lcores + (1 << 20) - 1) >> 20;

	if (windows >= TCP_WINDOWS_MIN || tcp->connections / tcp->lcores <= windows)
		return;
	doctor_report(d, DOCTOR_WARNING,
		      "tcp.buffer_mb: each of %u lcores has %" PRIu64 " KiB, which %" PRIu64
		      " connections fill with a tcp.window of %u KiB; all others wait then",
		      tcp->lcores, share / 1024, windows, tcp->window / 1024);
	doctor_fix(d, "tcp.buffer_mb: %" PRIu64 ", or a smaller tcp.window", need_mb);
}

static void tcp_check_memory(struct doctor *d, const struct plan_tcp *tcp)
{
	if (tcp->set_mb == 0 || tcp->set_mb >= tcp->needed_mb)
		return;
	doctor_report(d, DOCTOR_WARNING,
		      "memory.mb: %u is less than the %u MiB that everything may need, %u MiB of "
		      "them for TCP connections: the start may fail",
		      tcp->set_mb, tcp->needed_mb, tcp->memory_mb);
	doctor_fix(d, "leave memory.mb out, or set it to %u; or lower tcp.connections or "
		      "tcp.buffer_mb",
		   tcp->needed_mb);
}

void check_tcp(struct doctor *d)
{
	const struct plan_tcp *tcp = &d->plan.tcp;

	if (!tcp->used) {
		doctor_report(d, DOCTOR_NA, "no service has protocol tcp");
		return;
	}
	tcp_check_flows(d, tcp);
	tcp_check_buffers(d, tcp);
	tcp_check_memory(d, tcp);
	if (d->n == 0)
		doctor_report(d, DOCTOR_OK,
			      "%u at a time take %u MiB; %u MiB of them hold bytes, %" PRIu64
			      " bytes for each if all are busy",
			      tcp->connections, tcp->memory_mb, tcp->buffer_mb,
			      ((uint64_t)tcp->buffer_mb << 20) / tcp->connections);
}
