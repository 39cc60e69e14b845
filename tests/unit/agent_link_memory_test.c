/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a link: how large its room is, and that its parts do not overlap. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <unistd.h>

#include "loop/link_memory.h"
#include "ring.h"

#define MIB ((uint64_t)1 << 20)

/* A host with pages of this size; 0: those that it has. */
static long page_bytes;

long sysconf(int name)
{
	long (*host)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");

	return name == _SC_PAGESIZE && page_bytes != 0 ? page_bytes : host(name);
}

Test(agent_link_memory, room_is_for_requests_that_are_longer_than_a_tile)
{
	static const struct {
		uint32_t slots, max_request, mb;
		uint64_t room;
		uint32_t least_mb;
	} rows[] = {
		{256, 1, 0, 0, 0},
		{256, 16384, 0, 0, 0},
		{256, 16384, 64, 0, 0},
		{256, 16385, 0, 256 * 20480, 1},
		{2, 16385, 0, 2 * 20480, 1}, /* no more than the slots can use */
		{256, 1 << 20, 0, 32 * MIB, 1},
		{256, 1 << 20, 1, MIB, 1},
		{256, (1 << 20) + 1, 2, 2 * MIB, 2},
		{256, 1 << 20, 64, 64 * MIB, 1},
		{8, 1 << 20, 64, 8 * MIB, 1},
		{32768, 16 << 20, 4096, 4096 * MIB, 16}, /* what a load balancer keeps account of */
		{32768, 16 << 20, 0, 64 * MIB, 16},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t room = link_memory_room(rows[i].slots, rows[i].max_request, rows[i].mb);

		cr_expect_eq(room, rows[i].room, "row %zu: %lu", i, (unsigned long)room);
		cr_expect_eq(room % RING_PAGE, 0, "row %zu", i);
		cr_expect_eq(link_memory_least_mb(rows[i].max_request), rows[i].least_mb, "row %zu",
			     i);
	}
}

Test(agent_link_memory, parts_lie_behind_each_other)
{
	static const struct {
		uint32_t slots, max_request, stride;
		uint64_t room;
	} rows[] = {{4, 100, 128, 0}, {64, 16384, 16384, 0}, {8, 20000, 16384, 40960}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct link_memory m;
		uint64_t tiles = (uint64_t)rows[i].slots * rows[i].stride;

		cr_assert_eq(link_memory_create(&m, rows[i].slots, rows[i].max_request, 100,
						rows[i].room),
			     0);
		cr_expect_eq(m.stride, rows[i].stride);
		cr_expect_geq(m.payloads, m.descriptors + rows[i].slots * 64);
		cr_expect_eq(m.payloads % 4096, 0);
		cr_expect_geq(m.room_at, tiles);
		cr_expect_eq(m.room, rows[i].room);
		cr_expect_geq(m.cancels, m.payloads + (m.room > 0 ? m.room_at + m.room : tiles));
		cr_expect_leq(m.cancels + rows[i].slots * 8, m.writable.va + m.writable.length);
		cr_expect_geq(m.replies, m.writable.va + m.writable.length);
		cr_expect_eq((m.replies + sizeof(struct ring_reply)) % RING_ALIGNMENT, 0);
		link_memory_destroy(&m);
	}
}

/* A GPU maps each part by itself, in whole pages: no two parts may share one. */
Test(agent_link_memory, parts_share_no_page_of_64_kib)
{
	struct link_memory m;

	page_bytes = 65536;
	cr_assert_eq(link_memory_create(&m, 64, 1000, 100, 0), 0);
	cr_expect_geq(m.payloads - m.descriptors, 65536);
	cr_expect_eq((m.payloads - m.descriptors) % 65536, 0);
	cr_expect_eq((m.cancels - m.descriptors) % 65536, 0);
	cr_expect_eq((m.sendable.va - m.descriptors) % 65536, 0);
	cr_expect_eq(m.size % 65536, 0);
	link_memory_destroy(&m);
}

Test(agent_link_memory, a_gpu_that_is_not_there_has_no_memory)
{
	struct link_memory m;
	char why[160] = "";

	cr_assert_lt(link_memory_create_on_gpu(&m, 1000, 64, 1000, 100, 0, why, sizeof(why)), 0);
	cr_expect_neq(why[0], '\0');
	link_memory_destroy(&m);
}
