/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/eal_end.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_interrupts.h>

#include "runtime/clock.h"
#include "runtime/memif.h"

/* Descriptors that the interrupt thread waits for: one per device, and a few of the EAL's. */
#define WAITS_MAX 256

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
 * of its rounds, and what else is ready is handled between one visit and the next. It goes on when
 * eal_interrupt_round() says so. It also goes on by itself for what is not memif's: an alarm, or
 * another driver's handler, for which some calls of drivers wait on the main thread. Then it does
 * not look at memif's sockets. If the EAL makes its set anew meanwhile, they are in it, but behind
 * the gate: their handlers came later, but for the one that accepts connections and touches no
 * port.
 */
static struct {
	struct rte_intr_handle *handle;
	int fd, go;
	sem_t came;
	bool holds, away; /* <away>: the thread has not come since the last <go> */
	/* the interrupt thread's */
	bool told; /* it was sent by eal_interrupt_round(), which waits for it */
	int epoll; /* its set of descriptors, when it was last looked for */
	int waits[WAITS_MAX];
	int held[WAITS_MAX]; /* memif's, which it does not look at */
	unsigned int n_held;
} gate;

/* The descriptors in the set <epoll>. Their number; 0 where that is none, or one without the gate.
 */
static unsigned int read_waits(int epoll, int fds[WAITS_MAX])
{
	bool has_gate = false;
	unsigned int n = 0;
	char text[128];
	FILE *file;

	snprintf(text, sizeof(text), "/proc/self/fdinfo/%d", epoll);
	file = fopen(text, "re");
	if (file == NULL)
		return 0;
	while (n < WAITS_MAX && fgets(text, sizeof(text), file) != NULL) {
		if (sscanf(text, "tfd: %d", &fds[n]) != 1)
			continue;
		has_gate |= fds[n] == gate.fd;
		n++;
	}
	fclose(file);
	return has_gate ? n : 0;
}

/* Find the set of the interrupt thread. The EAL makes it anew for each new descriptor, mostly with
 * the same number. */
static unsigned int find_waits(int fds[WAITS_MAX])
{
	unsigned int n = read_waits(gate.epoll, fds);
	DIR *dir = n > 0 ? NULL : opendir("/proc/self/fd");
	struct dirent *entry;

	while (n == 0 && dir != NULL && (entry = readdir(dir)) != NULL) {
		char what[32];

		if (readlinkat(dirfd(dir), entry->d_name, what, sizeof(what)) < 22 ||
		    memcmp(what, "anon_inode:[eventpoll]", 22) != 0)
			continue;
		gate.epoll = atoi(entry->d_name);
		n = read_waits(gate.epoll, fds);
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

/* Put back what was taken out; a set that was made meanwhile has it already. */
static void look_at_memifs(void)
{
	for (unsigned int i = 0; i < gate.n_held; i++) {
		struct epoll_event event = {
			.events = EPOLLIN | EPOLLPRI | EPOLLRDHUP,
			.data.fd = gate.held[i],
		};

		if (memif_is_socket(gate.held[i]))
			epoll_ctl(gate.epoll, EPOLL_CTL_ADD, gate.held[i], &event);
	}
	gate.n_held = 0;
}

static void overlook_memifs(const struct pollfd *waits, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (memif_is_socket(waits[i].fd) &&
		    epoll_ctl(gate.epoll, EPOLL_CTL_DEL, waits[i].fd, NULL) == 0)
			gate.held[gate.n_held++] = waits[i].fd;
}

static bool a_memif_has_news(const struct pollfd *waits, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (waits[i].revents != 0 && memif_is_socket(waits[i].fd))
			return true;
	return false;
}

/* Wait until it is told to go on: true; or has something to do that need not wait. */
static bool wait_at_gate(void)
{
	struct pollfd polled[1 + WAITS_MAX] = {{.fd = gate.go, .events = POLLIN}};
	unsigned int n = find_waits(gate.waits);
	uint64_t times;

	if (n > 0 && gate.n_held > 0) {
		look_at_memifs();
		n = find_waits(gate.waits);
	}
	/* More than there is room for: it waits for all of them. */
	if (n == WAITS_MAX)
		n = 0;
	for (unsigned int i = 0; i < n; i++)
		polled[1 + i] = (struct pollfd){
			.fd = gate.waits[i] == gate.fd ? -1 : gate.waits[i],
			.events = POLLIN | POLLPRI | POLLRDHUP,
		};
	for (;;) {
		if (poll(polled, 1 + n, -1) < 0)
			continue;
		if (polled[0].revents != 0)
			return read(gate.go, &times, sizeof(times)) == sizeof(times);
		if (!a_memif_has_news(&polled[1], n))
			break;
		n = 0;
	}
	overlook_memifs(&polled[1], n);
	return false;
}

static void stand_at_gate(void *argument)
{
	if (gate.told)
		sem_post(&gate.came);
	gate.told = wait_at_gate();
}

bool eal_interrupt_hold(void)
{
	if (gate.holds)
		return true;
	sem_init(&gate.came, 0, 0);
	gate.told = true; /* to come for the first time */
	gate.go = eventfd(0, EFD_CLOEXEC);
	gate.fd = eventfd(1, EFD_CLOEXEC);
	gate.handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	gate.holds = gate.fd >= 0 && gate.go >= 0 && gate.handle != NULL &&
		     rte_intr_fd_set(gate.handle, gate.fd) == 0 &&
		     rte_intr_type_set(gate.handle, RTE_INTR_HANDLE_EXT) == 0 &&
		     rte_intr_callback_register(gate.handle, stand_at_gate, NULL) == 0;
	gate.away = !wait_for(&gate.came, INTERRUPT_THREAD_MS);
	return gate.holds && !gate.away;
}

bool eal_interrupt_round(unsigned int ms)
{
	if (!gate.away)
		eventfd_write(gate.go, 1);
	gate.away = !wait_for(&gate.came, ms);
	return !gate.away;
}

/*
 * DPDK's memif speaks to its other end by this, on the interrupt thread: a program's own function
 * has precedence over libc's. The driver waits without end for one that reads nothing. And for one
 * that has gone between its connect() and our accept(), it closes the connection and leaves its
 * handler with the EAL, which ends the process on finding it closed. So to one that has gone
 * everything can be said: the driver learns of it when it reads, and takes its handler back then.
 */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	size_t length = 0;
	ssize_t n;

	if (!rte_thread_is_intr() || !memif_is_socket(fd))
		return syscall(SYS_sendmsg, fd, message, flags);
	n = syscall(SYS_sendmsg, fd, message, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n >= 0 || (errno != EPIPE && errno != ECONNRESET))
		return n;
	for (size_t i = 0; i < message->msg_iovlen; i++)
		length += message->msg_iov[i].iov_len;
	return (ssize_t)length;
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
