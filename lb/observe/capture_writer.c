/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/capture_writer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "runtime/clock.h"

#define BUFFER     (256u << 10)
#define PACKET_MAX (UINT16_MAX + PCAPNG_PACKET_OVERHEAD)
#define PAUSE_US   1000 /* between checks of empty rings */
#define POLL_MS    20
#define STUCK_MS   10000 /* after the end, give up on a reader that takes nothing for this time */
#define NICE       10
/* Younger packets wait: another lcore may still publish an older one. */
#define HOLD_BACK_MS 2

static bool writer_is_set(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void writer_set(bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

/* Wait until the socket has room. False: give up. */
static bool wait_for_room(struct capture_writer *w)
{
	struct pollfd poller = {.fd = w->fd, .events = POLLOUT};

	if (writer_is_set(&w->hurry))
		return false;
	if (poll(&poller, 1, POLL_MS) != 0 || !writer_is_set(&w->ending)) {
		w->stuck_ms = 0;
		return true;
	}
	w->stuck_ms += POLL_MS;
	return w->stuck_ms < STUCK_MS;
}

static void writer_flush(struct capture_writer *w)
{
	size_t at = 0;

	while (at < w->n && !w->failed) {
		ssize_t sent = send(w->fd, w->buf + at, w->n - at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent >= 0)
			at += (size_t)sent;
		else if (errno != EINTR && (errno != EAGAIN || !wait_for_room(w)))
			writer_set(&w->failed);
	}
	__atomic_store_n(&w->bytes, w->bytes + at, __ATOMIC_RELAXED);
	w->n = 0;
}

/* The tap with the oldest packet up to <until>, or NULL. */
static struct capture_tap *oldest_tap(struct capture_writer *w, uint64_t until)
{
	struct capture_tap *first = NULL;

	for (unsigned int i = 0; i < w->n_taps; i++) {
		const struct capture_packet *packet = capture_ring_peek(&w->tap[i].ring);

		if (packet == NULL || packet->tsc > until)
			continue;
		until = packet->tsc;
		first = &w->tap[i];
	}
	return first;
}

static void write_packet(struct capture_writer *w, const struct capture_packet *packet)
{
	if (w->failed || w->full)
		return; /* from now on the rings are only emptied, until the control thread ends the
			   capture */
	if (BUFFER - w->n < PACKET_MAX)
		writer_flush(w);
	w->n += pcapng_packet(w->buf + w->n, BUFFER - w->n, packet);
	__atomic_store_n(&w->packets, w->packets + 1, __ATOMIC_RELAXED);
	if (w->packets == w->count)
		writer_set(&w->full);
}

/* Write all packets up to <until>. True if there was one. */
static bool write_until(struct capture_writer *w, uint64_t until)
{
	struct capture_tap *tap;
	bool any = false;

	while ((tap = oldest_tap(w, until)) != NULL) {
		write_packet(w, capture_ring_peek(&tap->ring));
		capture_ring_drop(&tap->ring);
		any = true;
	}
	writer_flush(w);
	return any;
}

static void write_statistics(struct capture_writer *w)
{
	struct pcapng_statistics s = {.start_ns = w->start_ns, .end_ns = clock_wall_ns()};

	for (unsigned int i = 0; i < w->n_taps; i++) {
		s.dropped += w->tap[i].dropped;
		s.received += w->tap[i].dropped + w->tap[i].filtered;
	}
	s.received += w->packets;
	s.accepted = w->packets + s.dropped;
	w->n += pcapng_statistics(w->buf, BUFFER, &s);
	writer_flush(w);
}

static void *writer_run(void *argument)
{
	struct capture_writer *w = argument;
	const struct timespec pause = {.tv_nsec = PAUSE_US * 1000};
	bool last;

	/* This changes only this thread: all other threads that want the CPU go first. */
	setpriority(PRIO_PROCESS, 0, NICE);
	w->start_ns = clock_wall_ns();
	w->n = pcapng_section(w->buf, BUFFER, "doorbell-lb " DOORBELL_VERSION);
	w->n += pcapng_interface(w->buf + w->n, BUFFER - w->n, &w->interface);
	writer_flush(w);
	do {
		last = writer_is_set(&w->ending);
		if (!write_until(w,
				 last ? UINT64_MAX : rte_rdtsc() - HOLD_BACK_MS * w->tsc_per_ms) &&
		    !last)
			nanosleep(&pause, NULL);
	} while (!last);
	write_statistics(w);
	shutdown(w->fd, SHUT_WR);
	close(w->fd);
	writer_set(&w->done);
	return NULL;
}

int capture_writer_start(struct capture_writer *w)
{
	sigset_t all, before;
	int ret;

	w->buf = malloc(BUFFER);
	if (w->buf == NULL)
		return -ENOMEM;
	/* Signals are for the control thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = -pthread_create(&w->thread, NULL, writer_run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret == 0) {
		pthread_setname_np(w->thread, "capture");
		return 0;
	}
	free(w->buf);
	w->buf = NULL;
	return ret;
}

void capture_writer_end(struct capture_writer *w)
{
	writer_set(&w->ending);
}

void capture_writer_join(struct capture_writer *w)
{
	writer_set(&w->hurry);
	writer_set(&w->ending);
	pthread_join(w->thread, NULL);
	free(w->buf);
	w->buf = NULL;
}
