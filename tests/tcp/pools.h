/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for the pools of a struct tcp_stack. */
#ifndef TESTS_TCP_POOLS_H
#define TESTS_TCP_POOLS_H

#include <stdlib.h>
#include <string.h>

#include "tcp/connection.h"

/* Makes pools of these sizes. The caller frees what is returned. */
static inline void *pools_init(struct tcp_stack *stack, const struct tcp_settings *settings,
			       uint32_t actives, uint32_t chunks, uint32_t helds)
{
	size_t bytes = (tcp_stack_bytes(actives, chunks, helds) + 63) & ~(size_t)63;
	void *memory = aligned_alloc(64, bytes);

	if (memory == NULL)
		abort();
	memset(memory, 0xa5, bytes); /* nothing may rely on what it holds */
	tcp_stack_init(stack, settings, actives, chunks, helds, memory);
	return memory;
}

#endif
