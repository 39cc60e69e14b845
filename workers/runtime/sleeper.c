/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/sleeper.h"

int sleeper_init(struct sleeper *s)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	*s = (struct sleeper){.n = 1, .fds = {{.fd = fd, .events = POLLIN}}};
	return 0;
}

void sleeper_fini(struct sleeper *s)
{
	if (s->n > 0)
		close(s->fds[0].fd);
	s->n = 0;
}

int sleeper_add(struct sleeper *s, int fd)
{
	if (s->n == SLEEPER_FDS_MAX)
		return -ENOSPC;
	s->fds[s->n++] = (struct pollfd){.fd = fd, .events = POLLIN};
	return 0;
}

void sleeper_prepare(struct sleeper *s)
{
	/* With full barriers on both sides, either the waker sees the flag or our last check for
	 * work sees the waker's work. */
	__atomic_store_n(&s->asleep, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void sleeper_cancel(struct sleeper *s)
{
	__atomic_store_n(&s->asleep, 0, __ATOMIC_RELAXED);
}

/* Read socket errors, which an interface that goes down leaves; unread they end every sleep. */
static void clear_errors(struct sleeper *s)
{
	socklen_t size = sizeof(int);
	int error;

	for (unsigned int i = 1; i < s->n; i++)
		if (s->fds[i].revents & POLLERR)
			getsockopt(s->fds[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
}

void sleeper_wait(struct sleeper *s, uint64_t ns)
{
	struct timespec limit;
	uint64_t events;

	if (s->blind && ns > SLEEPER_BLIND_NS)
		ns = SLEEPER_BLIND_NS;
	limit.tv_sec = ns / 1000000000;
	limit.tv_nsec = ns % 1000000000;
	if (ppoll(s->fds, s->n, &limit, NULL) > 0) {
		if (s->fds[0].revents != 0)
			(void)!read(s->fds[0].fd, &events, sizeof(events));
		clear_errors(s);
	}
	__atomic_store_n(&s->asleep, 0, __ATOMIC_RELAXED);
}

void sleeper_wake(struct sleeper *s)
{
	uint64_t one = 1;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* Only the thread that clears the flag makes the system call, so there is one per sleep. */
	if (__atomic_load_n(&s->asleep, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&s->asleep, 0, __ATOMIC_SEQ_CST))
		(void)!write(s->fds[0].fd, &one, sizeof(one));
}

enum sleeper_step sleeper_step(const struct sleeper *s, unsigned int idle_polls)
{
	if (idle_polls < SLEEPER_SPINS)
		return SLEEPER_SPIN;
	if (idle_polls >= SLEEPER_SPINS + SLEEPER_YIELDS || clock_now_ns() < s->crowded_until)
		return SLEEPER_SLEEP;
	return SLEEPER_YIELD;
}

void sleeper_yield(struct sleeper *s)
{
	uint64_t before = clock_now_ns(), after;

	sched_yield();
	after = clock_now_ns();
	if (after - before > SLEEPER_CROWDED_NS)
		s->crowded_until = after + SLEEPER_SHUN_NS;
}
