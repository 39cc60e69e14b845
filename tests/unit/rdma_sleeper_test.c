/* SPDX-License-Identifier: BSD-3-Clause */
/* The back-off of idle threads: alone on its CPU, and beside a busy thread. */
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/sleeper.h"

Test(rdma_sleeper, spins_then_yields_then_sleeps)
{
	struct sleeper s;

	cr_assert_eq(sleeper_init(&s), 0);
	cr_expect_eq(sleeper_step(&s, 0), SLEEPER_SPIN);
	cr_expect_eq(sleeper_step(&s, SLEEPER_SPINS - 1), SLEEPER_SPIN);
	cr_expect_eq(sleeper_step(&s, SLEEPER_SPINS), SLEEPER_YIELD);
	cr_expect_eq(sleeper_step(&s, SLEEPER_SPINS + SLEEPER_YIELDS - 1), SLEEPER_YIELD);
	cr_expect_eq(sleeper_step(&s, SLEEPER_SPINS + SLEEPER_YIELDS), SLEEPER_SLEEP);
	cr_expect_eq(sleeper_step(&s, UINT32_MAX), SLEEPER_SLEEP);
	sleeper_fini(&s);
}

/* A child process that uses this thread's CPU all the time. */
static pid_t neighbour(void)
{
	cpu_set_t one;
	pid_t pid;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	while (pid == 0)
		;
	return pid;
}

Test(rdma_sleeper, yields_no_more_once_a_yield_has_met_somebody, .timeout = 60)
{
	pid_t pid = neighbour();
	unsigned int yields = 0;
	struct sleeper s;

	cr_assert_eq(sleeper_init(&s), 0);
	/* The first may come before the child runs. */
	while (sleeper_step(&s, SLEEPER_SPINS + yields) == SLEEPER_YIELD) {
		sleeper_yield(&s);
		yields++;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_expect_lt(yields, SLEEPER_YIELDS / 4, "%u yields", yields);
	cr_expect_gt(s.crowded_until, 0);
	cr_expect_eq(sleeper_step(&s, 0), SLEEPER_SPIN);
	/* Not for ever. */
	s.crowded_until = 1;
	cr_expect_eq(sleeper_step(&s, SLEEPER_SPINS), SLEEPER_YIELD);
	sleeper_fini(&s);
}
