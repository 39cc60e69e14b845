/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/eal_end.h"

#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_interrupts.h>

/* Static: the interrupt thread may be on its way out of sem_post() when the main thread has gone
 * on. */
static sem_t halted;

static void halt_interrupt_thread(void *argument)
{
	sem_post(&halted);
	for (;;)
		pause();
}

/*
 * A handler of our own, in memory that is not the EAL's. Not an alarm, though alarms run on that
 * thread, too: the EAL's clean-up waits for their end. Nothing is freed, as the thread keeps it.
 */
static bool add_handler(int fd)
{
	struct rte_intr_handle *handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);

	return handle != NULL && rte_intr_fd_set(handle, fd) == 0 &&
	       rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) == 0 &&
	       rte_intr_callback_register(handle, halt_interrupt_thread, NULL) == 0;
}

void eal_end(void)
{
	int fd = eventfd(1, EFD_CLOEXEC);

	sem_init(&halted, 0, 0);
	/* It fails only where memory or descriptors are short; then the risk stays. */
	if (fd >= 0 && add_handler(fd))
		while (sem_wait(&halted) != 0 && errno == EINTR)
			;
	rte_eal_cleanup();
}
