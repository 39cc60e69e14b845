/* SPDX-License-Identifier: BSD-3-Clause */
#include "turns/watch.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/clock.h"

static void watch_look(struct watched *r)
{
	uint64_t to = r->to, now;

	/* A ring holds no more, as nothing is taken from it. */
	while (to - r->from < r->slots &&
	       __atomic_load_n(&r->descriptors[to & (r->slots - 1)].sequence, __ATOMIC_RELAXED) ==
		       to + 1)
		to++;
	if (to == r->to)
		return;
	/* Read after all of them were seen: this thread may be halted before it looks, and a
	 * request that comes meanwhile would seem to have waited for as long. */
	now = clock_now_ns();
	while (r->to < to)
		r->since_ns[r->to++ & (r->slots - 1)] = now;
}

static void *watch_thread(void *argument)
{
	struct watch *w = argument;

	pthread_mutex_lock(&w->lock);
	while (!w->ends) {
		uint64_t now = clock_now_ns(), next = now + WATCH_LOOK_NS;
		const struct timespec until = {(time_t)(next / 1000000000),
					       (long)(next % 1000000000)};

		for (unsigned int i = 0; w->looks && i < w->n; i++)
			watch_look(&w->ring[i]);
		if (w->looks)
			pthread_cond_timedwait(&w->woken, &w->lock, &until);
		else
			pthread_cond_wait(&w->woken, &w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void watch_free(struct watch *w)
{
	for (unsigned int i = 0; i < w->n; i++)
		free(w->ring[i].since_ns);
	free(w->ring);
	pthread_cond_destroy(&w->woken);
	pthread_mutex_destroy(&w->lock);
}

int watch_start(struct watch *w, unsigned int n)
{
	pthread_condattr_t monotonic;
	int ret;

	*w = (struct watch){.n = n, .ring = calloc(n, sizeof(*w->ring))};
	if (w->ring == NULL)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->woken, &monotonic);
	pthread_condattr_destroy(&monotonic);
	ret = pthread_create(&w->thread, NULL, watch_thread, w);
	if (ret == 0) {
		pthread_setname_np(w->thread, "agent-watch");
		return 0;
	}
	watch_free(w);
	return -ret;
}

void watch_stop(struct watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->ends = true;
	pthread_cond_signal(&w->woken);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	watch_free(w);
}

int watch_add(struct watch *w, unsigned int ring, const struct ring_descriptor *descriptors,
	      uint32_t slots)
{
	struct watched *r = &w->ring[ring];

	*r = (struct watched){.descriptors = descriptors,
			      .slots = slots,
			      .since_ns = calloc(slots, sizeof(*r->since_ns))};
	return r->since_ns == NULL ? -ENOMEM : 0;
}

void watch_begin(struct watch *w, const uint64_t position[])
{
	pthread_mutex_lock(&w->lock);
	for (unsigned int i = 0; i < w->n; i++)
		w->ring[i].from = w->ring[i].to = position[i];
	w->looks = true;
	pthread_cond_signal(&w->woken);
	pthread_mutex_unlock(&w->lock);
}

void watch_end(struct watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->looks = false;
	pthread_mutex_unlock(&w->lock);
}

uint64_t watch_since(const struct watch *w, unsigned int ring, uint64_t position, uint64_t now)
{
	const struct watched *r = &w->ring[ring];

	return position >= r->from && position < r->to ? r->since_ns[position & (r->slots - 1)]
						       : now;
}
