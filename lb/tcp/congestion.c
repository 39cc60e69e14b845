/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/congestion.h"

#include <string.h>

const struct tcp_congestion *tcp_congestion_find(const char *name)
{
	static const struct tcp_congestion *const all[] = {&tcp_cubic, &tcp_reno, &tcp_dctcp};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}

uint32_t tcp_slow_start(struct tcp_connection *c, uint32_t bytes)
{
	uint32_t grow;

	if (c->cwnd >= c->ssthresh)
		return bytes;
	grow = bytes < c->ssthresh - c->cwnd ? bytes : c->ssthresh - c->cwnd;
	c->cwnd += grow;
	return bytes - grow;
}
