/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/detached.h"

#include <pthread.h>
#include <signal.h>

int detached_start(void *(*run)(void *context), void *context)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	/* a thread begins with its starter's mask */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&thread, &attributes, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -ret;
}
