/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours that hog memory and caches: a thread on each of the CPUs that are named, copying
 * between buffers that no cache holds, until the process is ended. It writes "ready" when all of
 * them copy.
 *
 *   bench-hogs CPU [CPU ...]
 */
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES (64u << 20)

static pthread_barrier_t started;

static void *hog_run(void *argument)
{
	uint8_t *from = malloc(BYTES), *to = malloc(BYTES);
	const char *cpu = argument;
	cpu_set_t one;
	int error;

	CPU_ZERO(&one);
	CPU_SET((unsigned int)atoi(cpu), &one);
	error = pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	if (error != 0 || from == NULL || to == NULL)
		errx(1, "CPU %s: %s", cpu, error != 0 ? strerror(error) : "no memory");
	memset(from, 1, BYTES);
	memset(to, 0, BYTES);
	pthread_barrier_wait(&started);
	for (;;)
		memcpy(to, from, BYTES);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int error = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: bench-hogs CPU [CPU ...]\n");
		return 2;
	}
	pthread_barrier_init(&started, NULL, (unsigned int)argc);
	for (int i = 1; i < argc && error == 0; i++)
		error = pthread_create(&thread, NULL, hog_run, argv[i]);
	if (error != 0)
		errx(1, "no thread: %s", strerror(error));
	pthread_barrier_wait(&started);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
