/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu_hogs.h"

#define BYTES (64u << 20)

struct hog {
	pthread_t thread;
	struct gpu_hogs *all;
	int core;
};

struct gpu_hogs {
	cpu_set_t before;    /* the caller's cores */
	int stop, n_running; /* atomic */
	int n;
	struct hog hog[CPU_SETSIZE];
};

static void *hog_run(void *argument)
{
	struct hog *hog = argument;
	uint8_t *from = malloc(BYTES), *to = malloc(BYTES);
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(hog->core, &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	if (from != NULL && to != NULL) {
		memset(from, hog->core, BYTES);
		memset(to, 0, BYTES);
		__atomic_fetch_add(&hog->all->n_running, 1, __ATOMIC_RELEASE);
		while (!__atomic_load_n(&hog->all->stop, __ATOMIC_RELAXED))
			memcpy(to, from, BYTES);
	}
	free(from);
	free(to);
	return NULL;
}

struct gpu_hogs *gpu_hogs_start(void)
{
	struct gpu_hogs *h = calloc(1, sizeof(*h));
	int own = sched_getcpu();
	cpu_set_t one;

	if (h == NULL)
		return NULL;
	sched_getaffinity(0, sizeof(h->before), &h->before);
	for (int core = 0; core < CPU_SETSIZE; core++) {
		if (core == own || !CPU_ISSET(core, &h->before))
			continue;
		h->hog[h->n] = (struct hog){.all = h, .core = core};
		if (pthread_create(&h->hog[h->n].thread, NULL, hog_run, &h->hog[h->n]) != 0)
			break;
		h->n++;
	}
	CPU_ZERO(&one);
	CPU_SET(own, &one);
	sched_setaffinity(0, sizeof(one), &one);
	while (__atomic_load_n(&h->n_running, __ATOMIC_ACQUIRE) < h->n)
		sched_yield();
	return h;
}

void gpu_hogs_stop(struct gpu_hogs *h)
{
	__atomic_store_n(&h->stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < h->n; i++)
		pthread_join(h->hog[i].thread, NULL);
	sched_setaffinity(0, sizeof(h->before), &h->before);
	free(h);
}
