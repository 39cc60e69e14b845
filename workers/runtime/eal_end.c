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

static bool interrupt_wait(struct interrupt_call *c)
{
	struct timespec until = clock_after_ms(CLOCK_MONOTONIC, INTERRUPT_THREAD_MS);
	int ret;

	do
		ret = sem_clockwait(&c->done, CLOCK_MONOTONIC, &until);
	while (ret != 0 && errno == EINTR);
	return ret == 0;
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
