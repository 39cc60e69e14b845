/* SPDX-License-Identifier: BSD-3-Clause */
#include "predictable/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/clock.h"

/* ns before the end at which a sleeper wakes: schedulers wake late. */
#define WAKE_NS 60000

int device_open(struct device *device, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), ret = 0;
	void *at;

	if (fd < 0)
		return -errno;
	at = ftruncate(fd, sizeof(struct device_words)) != 0
		     ? MAP_FAILED
		     : mmap(NULL, sizeof(struct device_words), PROT_READ | PROT_WRITE, MAP_SHARED,
			    fd, 0);
	if (at == MAP_FAILED)
		ret = -errno;
	else
		device->shared = at;
	close(fd);
	return ret;
}

void device_close(struct device *device)
{
	munmap(device->shared, sizeof(struct device_words));
}

uint64_t device_run(struct device *device, uint32_t base_us, uint32_t each_us, uint32_t n)
{
	struct device_words *w = device->shared;
	uint64_t takes_ns = device_batch_ns(base_us, each_us, n);
	uint64_t was = __atomic_load_n(&w->free_ns, __ATOMIC_RELAXED), end;

	do {
		uint64_t now = clock_now_ns();

		end = (was > now ? was : now) + takes_ns;
	} while (!__atomic_compare_exchange_n(&w->free_ns, &was, end, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	__atomic_fetch_add(&w->busy_ns, takes_ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&w->batches, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&w->requests, n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&w->base_ns, base_us * UINT64_C(1000), __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&w->last_us, each_us, __ATOMIC_RELAXED) != each_us)
		__atomic_fetch_add(&w->switches, 1, __ATOMIC_RELAXED);
	return end;
}

void device_wait(uint64_t until_ns)
{
	uint64_t wake = until_ns - WAKE_NS;
	struct timespec at = {(time_t)(wake / 1000000000), (long)(wake % 1000000000)};

	/* The kernel's default timer slack would wake it 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	if (clock_now_ns() < wake)
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
			;
	while (clock_now_ns() < until_ns)
		;
}
