/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker of the controller: runs actions one after the other, exactly as told. One thread
 * receives and gives the device its work, another waits for its end and sends the results, so that
 * neither keeps the device waiting.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "predictable/device.h"
#include "predictable/peer.h"
#include "predictable/wire.h"
#include "runtime/clock.h"

struct job {
	struct job *next;
	struct wire_action action;
	uint64_t end_ns;
	uint32_t waited_us;
	uint8_t bytes[];
};

struct worker {
	struct device device;
	int fd;
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct job *first, **last;
};

/* False: the other end has closed. */
static bool worker_read(int fd, void *to, size_t n)
{
	uint8_t *at = to;

	while (n > 0) {
		ssize_t got = recv(fd, at, n, MSG_WAITALL);

		if (got == 0 || (got < 0 && errno != EINTR))
			return false;
		if (got > 0) {
			at += got;
			n -= (size_t)got;
		}
	}
	return true;
}

/* Writes all of <n> parts. */
static void worker_write(int fd, struct iovec *part, int n)
{
	while (n > 0) {
		ssize_t sent = writev(fd, part, n);

		if (sent < 0 && errno != EINTR)
			err(1, "the controller");
		for (; sent > 0 && n > 0 && (size_t)sent >= part->iov_len; n--)
			sent -= (ssize_t)(part++)->iov_len;
		if (sent > 0) {
			part->iov_base = (uint8_t *)part->iov_base + sent;
			part->iov_len -= (size_t)sent;
		}
	}
}

static void worker_send(const struct worker *w, const struct job *job)
{
	struct wire_result result = {
		.number = job->action.number, .n = job->action.n, .waited_us = job->waited_us};
	struct iovec part[WIRE_BATCH_MAX + 1] = {{&result, sizeof(result)}};
	const uint8_t *at = job->bytes;

	for (uint32_t i = 0; i < job->action.n; i++) {
		uint32_t length = job->action.length[i];

		result.length[i] = length < job->action.reply ? length : job->action.reply;
		part[i + 1] = (struct iovec){(void *)(uintptr_t)at, result.length[i]};
		at += length;
	}
	worker_write(w->fd, part, (int)job->action.n + 1);
}

static void *worker_sender(void *context)
{
	struct worker *w = context;

	for (;;) {
		struct job *job;

		pthread_mutex_lock(&w->lock);
		while (w->first == NULL)
			pthread_cond_wait(&w->some, &w->lock);
		job = w->first;
		w->first = job->next;
		if (w->first == NULL)
			w->last = &w->first;
		pthread_mutex_unlock(&w->lock);
		device_wait(job->end_ns);
		worker_send(w, job);
		free(job);
	}
	return NULL;
}

/* NULL: the controller has closed. */
static struct job *worker_receive(const struct worker *w)
{
	struct wire_action action;
	struct job *job;
	size_t bytes = 0;

	if (!worker_read(w->fd, &action, sizeof(action)))
		return NULL;
	if (action.n == 0 || action.n > WIRE_BATCH_MAX)
		errx(1, "an action of %u requests", action.n);
	for (uint32_t i = 0; i < action.n; i++)
		bytes += action.length[i];
	job = malloc(sizeof(*job) + bytes);
	if (job == NULL)
		err(1, "memory");
	job->action = action;
	job->next = NULL;
	return worker_read(w->fd, job->bytes, bytes) ? job : NULL;
}

int peer_work(const struct peer_work_options *o)
{
	struct worker w = {.lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct job *job;
	pthread_t sender;

	peer_keep_memory();
	if (device_open(&w.device, o->device) != 0)
		err(1, "%s", o->device);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, 1) != 0)
		err(1, "port %u", o->port);
	w.fd = accept(listener, NULL, NULL);
	if (w.fd < 0)
		err(1, "accept");
	setsockopt(w.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	w.last = &w.first;
	if (pthread_create(&sender, NULL, worker_sender, &w) != 0)
		errx(1, "no thread");
	while ((job = worker_receive(&w)) != NULL) {
		uint64_t takes =
			device_batch_ns(job->action.base_us, job->action.each_us, job->action.n);
		uint64_t now = clock_now_ns();

		job->end_ns = device_run(&w.device, job->action.base_us, job->action.each_us,
					 job->action.n);
		job->waited_us = (uint32_t)((job->end_ns - takes - now) / 1000);
		pthread_mutex_lock(&w.lock);
		*w.last = job;
		w.last = &job->next;
		pthread_cond_signal(&w.some);
		pthread_mutex_unlock(&w.lock);
	}
	return 0;
}
