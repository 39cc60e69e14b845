/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/log_limit.h"

#define PERIOD_MS 1000

bool log_limit_passes(struct log_limit *limit, uint64_t now_ms, unsigned long *unlogged)
{
	if (limit->next_ms + LOG_LIMIT_BURST * PERIOD_MS < now_ms)
		limit->next_ms = now_ms - LOG_LIMIT_BURST * PERIOD_MS;
	if (limit->next_ms + PERIOD_MS > now_ms) {
		limit->unlogged++;
		return false;
	}
	limit->next_ms += PERIOD_MS;
	*unlogged = limit->unlogged;
	limit->unlogged = 0;
	return true;
}
