/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop/cpu_link.h"

uint32_t cpu_link_spare(struct agent_link *link, struct agent_loop_stats *stats)
{
	uint32_t needed = link->built + link->staged;

	if (mlx5_room(&link->queue) <= needed)
		cpu_link_reap(link, stats);
	if (link->dead)
		return UINT32_MAX;
	return mlx5_room(&link->queue) > needed ? mlx5_room(&link->queue) - needed : 0;
}

uint32_t cpu_link_take(const struct agent_loop_params *params, struct agent_link *link,
		       uint64_t now_ns, struct intake *request, uint32_t max,
		       struct agent_loop_stats *stats)
{
	const struct intake_ring ring = {
		.payloads = link->payloads,
		.slot_count = link->slot_count,
		.stride = link->stride,
		.room_at = link->room_at,
		.room = link->room,
		.min_request = params->shape.min_request,
		.max_request = params->shape.max_request,
	};
	uint32_t n = 0, spare = cpu_link_spare(link, stats);
	uint64_t most_us = (now_ns - link->empty_ns) / 1000;

	max = spare < max ? spare : max;
	while (n < max) {
		uint32_t index = link->position & (link->slot_count - 1);

		if (!intake_take(&link->descriptors[index], link->position, &ring, now_ns,
				 &request[n]))
			break;
		link->position++;
		if (request[n].slot == UINT32_MAX)
			stats->bad++;
		else
			n++;
	}
	for (uint32_t i = 0; i < n; i++)
		ring_clock_note(&link->clock, request[i].sent_us, now_ns / 1000, most_us);
	for (uint32_t i = 0; i < n; i++)
		request[i].waited_us =
			ring_clock_waited(&link->clock, request[i].sent_us, now_ns / 1000, most_us);
	if (n < max)
		link->empty_ns = now_ns;
	link->staged += n;
	return n;
}

uint32_t cpu_link_unread(struct agent_link *link)
{
	if (link->counted < link->position)
		link->counted = link->position;
	while (link->counted - link->position < link->slot_count &&
	       __atomic_load_n(&link->descriptors[link->counted & (link->slot_count - 1)].sequence,
			       __ATOMIC_RELAXED) == link->counted + 1)
		link->counted++;
	return (uint32_t)(link->counted - link->position);
}

static void cpu_link_count(struct agent_loop_stats *stats, uint8_t status)
{
	stats->requests++;
	stats->errors += status == RING_ERROR;
	stats->expired += status == RING_EXPIRED;
	stats->cancelled += status == RING_CANCELLED;
	stats->bad += status == RING_BAD;
}

struct mlx5_write cpu_link_answer(struct agent_link *link, const struct intake *request,
				  uint32_t length, uint32_t chunk, bool more,
				  struct agent_loop_stats *stats)
{
	if (!more) {
		cpu_link_count(stats, request->status);
		link->staged--;
	}
	return (struct mlx5_write){
		.remote_address = link->remote_address + (uint64_t)request->reply * RING_ALIGNMENT +
				  (uint64_t)chunk * link->chunk,
		.local_address = link->reply_address + (uint64_t)request->slot * link->reply_stride,
		.length = length,
		.rkey = link->remote_rkey,
		.lkey = link->lkey,
		.imm = ring_imm(request->slot, request->status, more),
		.with_imm = true,
		.signal = true,
	};
}

void cpu_link_reap(struct agent_link *link, struct agent_loop_stats *stats)
{
	enum mlx5_poll result;

	do {
		result = mlx5_cq_poll(&link->queue, NULL);
		if (result == MLX5_POLL_ERROR && !link->dead) {
			link->dead = true;
			link->built = 0;
			stats->dead_links++;
		}
	} while (result == MLX5_POLL_DONE);
}

void cpu_link_ring(const struct agent_loop_params *params, struct agent_link *link)
{
	if (link->built == 0)
		return;
	mlx5_ring(&link->queue, link->built);
	link->built = 0;
	if (params->kick != NULL)
		params->kick(params->kick_context);
}
