/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/eal_end.h"

#include <errno.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_interrupts.h>

#include "runtime/clock.h"

struct interrupt_call {
	void (*call)(void *argument);
	void *argument;
	struct rte_intr_handle *handle; /* in memory that is not the EAL's */
	int fd;
	sem_t done;
};

static void interrupt_called(void *argument)
{
	struct interrupt_call *c = argument;
	uint64_t n;

	if (read(c->fd, &n, sizeof(n)) != sizeof(n))
		return;
	c->call(c->argument);
	sem_post(&c->done);
}

static bool wait_for(sem_t *semaphore, unsigned int ms)
{
	struct timespec until = clock_after_ms(CLOCK_MONOTONIC, ms);
	int ret;

	do
		ret = sem_clockwait(semaphore, CLOCK_MONOTONIC, &until);
	while (ret != 0 && errno == EINTR);
	return ret == 0;
}

/*
 * The thread waits in a handler of ours, whose descriptor is always ready: it comes to it in each
 * of its rounds, and what else is ready is handled between one <go> and the next <came>.
 */
static struct {
	struct rte_intr_handle *handle;
	int fd;
	sem_t came, go;
	bool holds, away; /* <away>: the thread has not come since the last <go> */
} gate;

static void stand_at_gate(void *argument)
{
	sem_post(&gate.came);
	while (sem_wait(&gate.go) != 0 && errno == EINTR)
		;
}

bool eal_interrupt_hold(void)
{
	if (gate.holds)
		return true;
	sem_init(&gate.came, 0, 0);
	sem_init(&gate.go, 0, 0);
	gate.fd = eventfd(1, EFD_CLOEXEC);
	gate.handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	gate.holds = gate.fd >= 0 && gate.handle != NULL &&
		     rte_intr_fd_set(gate.handle, gate.fd) == 0 &&
		     rte_intr_type_set(gate.handle, RTE_INTR_HANDLE_EXT) == 0 &&
		     rte_intr_callback_register(gate.handle, stand_at_gate, NULL) == 0;
	gate.away = !wait_for(&gate.came, INTERRUPT_THREAD_MS);
	return gate.holds && !gate.away;
}

bool eal_interrupt_round(unsigned int ms)
{
	if (!gate.away)
		sem_post(&gate.go);
	gate.away = !wait_for(&gate.came, ms);
	return !gate.away;
}

static bool interrupt_wait(struct interrupt_call *c)
{
	if (!gate.holds)
		return wait_for(&c->done, INTERRUPT_THREAD_MS);
	/* The first round may be for what it has fetched, the second to learn of the handler. */
	while (sem_trywait(&c->done) != 0)
		if (!eal_interrupt_round(INTERRUPT_THREAD_MS))
			return sem_trywait(&c->done) == 0;
	return true;
}

/*
 * A handler of our own. It is new, so the thread asks the kernel for events anew before it sees
 * this one. An alarm, which runs on that thread, too, may run in the middle of events fetched
 * before.
 */
bool eal_interrupt_call(void (*call)(void *argument), void *argument)
{
	struct interrupt_call *c = calloc(1, sizeof(*c));
	bool registered, called;

	if (c == NULL)
		return false;
	c->call = call;
	c->argument = argument;
	sem_init(&c->done, 0, 0);
	c->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	c->handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	registered = c->fd >= 0 && c->handle != NULL && rte_intr_fd_set(c->handle, c->fd) == 0 &&
		     rte_intr_type_set(c->handle, RTE_INTR_HANDLE_EXT) == 0 &&
		     rte_intr_callback_register(c->handle, interrupt_called, c) == 0;
	called = registered && interrupt_wait(c);
	/* One that cannot be taken back is being made. If it does not end, nothing of it is freed.
	 */
	if (registered && !called &&
	    rte_intr_callback_unregister(c->handle, interrupt_called, c) <= 0) {
		called = interrupt_wait(c);
		if (!called)
			return false;
	}
	if (called)
		rte_intr_callback_unregister_sync(c->handle, interrupt_called, c);
	rte_intr_instance_free(c->handle);
	close(c->fd);
	sem_destroy(&c->done);
	free(c);
	return called;
}

static struct interrupt_call halt; /* static, as the thread keeps it */

static void halt_interrupt_thread(void *argument)
{
	sem_post(&halt.done);
	/* It does not come to the gate any more. */
	if (gate.holds)
		sem_post(&gate.came);
	for (;;)
		pause();
}

void eal_end(void)
{
	sem_init(&halt.done, 0, 0);
	halt.fd = eventfd(1, EFD_CLOEXEC);
	halt.handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (halt.fd >= 0 && halt.handle != NULL && rte_intr_fd_set(halt.handle, halt.fd) == 0 &&
	    rte_intr_type_set(halt.handle, RTE_INTR_HANDLE_EXT) == 0 &&
	    rte_intr_callback_register(halt.handle, halt_interrupt_thread, NULL) == 0 &&
	    interrupt_wait(&halt))
		rte_eal_cleanup();
}
