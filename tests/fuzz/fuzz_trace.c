/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces of CUDA calls: what is accepted can be computed with, and an error is one line. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/size/calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct calls_network network = {
		.rtt_us = 10, .gbps = 100, .send_us = 1, .queues = true, .outstanding = 3};
	struct calls_cost cost;
	struct trace trace;
	char error[128] = "";

	if (trace_parse(&trace, (const char *)data, size, error, sizeof(error)) != 0) {
		must(error[0] != '\0' && memchr(error, '\0', sizeof(error)) != NULL);
		for (const char *c = error; *c != '\0'; c++)
			must(*c >= ' ' && *c <= '~');
		must(trace.call == NULL && trace.n == 0);
		return 0;
	}
	must(trace.n > 0);
	for (size_t i = 0; i < trace.n; i++) {
		const struct trace_call *c = &trace.call[i];

		must((unsigned int)c->kind < TRACE_KINDS);
		must(c->gap_us >= 0 && c->gap_us <= TRACE_US_MAX && c->call_us >= 0 &&
		     c->call_us <= TRACE_US_MAX && c->gpu_us >= 0 && c->gpu_us <= TRACE_US_MAX);
		must(c->sent <= TRACE_LOAD_MAX && c->received <= TRACE_LOAD_MAX);
	}
	must(size_calls_cost(&trace, &network, &cost) == 0);
	must(isfinite(cost.local_us) && isfinite(cost.remote_us) &&
	     isfinite(cost.cost) == (cost.local_us > 0));
	trace_fini(&trace);
	return 0;
}
