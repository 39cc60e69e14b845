/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the tests of a worker's loop: a list of tests, run one after the other on a rig, and
 * the words that they are written in. A test that fails returns at once.
 */
#ifndef GPU_LOOP_TESTS_H
#define GPU_LOOP_TESTS_H

#include <stdio.h>

#include "loop/cuda/gpu_list.h"
#include "rig.h"

#define SLOTS 16
/* Longer than any machine halts a thread. */
#define PATIENCE   30000000000ull
#define FOREVER_MS 600000
/* A test for which a thread must go on within some ms is made so often, as a busy machine may halt
 * it each time but one. A loop that does not what it should fails all of them. */
#define TRIES 10

extern int gpu; /* number of the device; -1: the CPU */
extern unsigned int failures;
extern const char *skipped; /* the reason why the current test cannot run */

/* The queues are an RNIC's, and not in this process's memory. */
bool with_rnic(void);

struct loop_test {
	const char *name;
	void (*run)(struct rig *rig);
};

#define LOOP_TEST(name)                                                                            \
	{                                                                                          \
#name, name                                                                        \
	}

#define REQUIRE(condition, ...)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("    line %d: ", __LINE__);                                         \
			printf(__VA_ARGS__);                                                       \
			putchar('\n');                                                             \
			failures++;                                                                \
			return;                                                                    \
		}                                                                                  \
	} while (0)

/* Starts the loop; fields that are 0 get what most tests want. False: the test has failed. */
bool begin(struct rig *rig, struct rig_params p);
/* The next reply of the link, within PATIENCE. */
bool await(struct rig *rig, uint32_t link, struct rig_reply *r);
/* Wait until a heartbeat tells of <n> requests. False: a reply came, or nothing within PATIENCE. */
bool await_backlog(struct rig *rig, uint32_t link, uint32_t n);
/* Does no reply come within <ms>? */
bool silent(struct rig *rig, uint32_t link, unsigned int ms);
void pause_us(uint32_t us);
struct agent_loop_stats stats_of(struct rig *rig);

/* The loop counts after it has posted: wait until <field> has come to <n>, and check that it stays.
 */
#define COUNTED(field, n)                                                                          \
	do {                                                                                       \
		uint64_t end_ = clock_now_ns() + PATIENCE;                                         \
                                                                                                   \
		while (stats_of(rig).field < (n) && clock_now_ns() < end_)                         \
			;                                                                          \
		REQUIRE(stats_of(rig).field == (n), "the loop counted %lu " #field,                \
			(unsigned long)stats_of(rig).field);                                       \
	} while (0)

/*
 * Runs the tests, or the one that is called <only>, on the loop of <device> (cpu or cuda; with
 * -verbs, -proxy or -memory behind it, on a NIC of rig_verbs.h) with the
 * plug-ins of <models>. Returns the program's exit status: 77 where there is no GPU.
 */
int loop_tests_run(const char *device, const char *models, const char *only,
		   const struct loop_test *tests, size_t n);

#endif
