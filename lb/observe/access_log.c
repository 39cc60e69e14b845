/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <rte_random.h>
#include <rte_ring_elem.h>

#include "lcore/lb_private.h"
#include "observe/access_line.h"

#define RECORDS  8192u        /* of a ring: 10 ms at 800,000 requests per second */
#define PAUSE_MS 10           /* between looks at empty rings */
#define BUFFER   (256u << 10) /* bytes of lines that are written together */
#define NICE     10

_Static_assert(sizeof(struct access_record) % 4 == 0, "an element of a ring");

struct access_log {
	/* not changed until the thread has ended */
	unsigned int lcores;
	struct rte_ring *ring[LB_LCORES_MAX];
	size_t ring_bytes;
	pthread_t thread;
	/* atomic, written by the control thread */
	uint32_t one_in;
	bool reopens, ends;
	/* the thread's own */
	int fd;
	bool failing;   /* the last write was refused, which was said */
	uint64_t lost;  /* lines since then */
	uint32_t lines; /* in <buffer> */
	size_t n;
	char path[LB_FILE_MAX];
	char buffer[BUFFER];
};

/* --- the file ----------------------------------------------------------------------------------
 */

/* Not blocking: opening a pipe that has no reader fails. */
static int log_open_file(const char *path)
{
	return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);
}

static void log_take_new_file(struct access_log *log)
{
	int fd = log_open_file(log->path);

	if (fd < 0) {
		LB_LOG(ERR, "access log kept open: path=%s reason=\"%s\"", log->path,
		       strerror(errno));
		return;
	}
	close(log->fd);
	log->fd = fd;
	LB_LOG(INFO, "access log opened anew path=%s", log->path);
}

/* False: the file takes no more now. */
static bool log_write(const struct access_log *log)
{
	size_t at = 0;

	while (at < log->n) {
		ssize_t n = write(log->fd, log->buffer + at, log->n - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

/* A full disk loses lines, and is told once. */
static void log_flush(struct access_log *log)
{
	bool written = log->n == 0 || log_write(log);

	if (!written) {
		if (!log->failing)
			LB_LOG(ERR, "access log not written: path=%s reason=\"%s\"", log->path,
			       strerror(errno));
		log->failing = true;
		log->lost += log->lines;
	} else if (log->failing && log->n > 0) {
		LB_LOG(NOTICE, "access log written again path=%s lost=%lu", log->path, log->lost);
		log->failing = false;
		log->lost = 0;
	}
	log->n = 0;
	log->lines = 0;
}

/* --- the thread --------------------------------------------------------------------------------
 */

/* Writes what a ring has. False: it was empty. */
static bool log_drain(struct access_log *log, struct rte_ring *ring)
{
	struct access_record record;
	bool any = false;

	while (rte_ring_sc_dequeue_elem(ring, &record, sizeof(record)) == 0) {
		if (BUFFER - log->n < ACCESS_LINE_MAX)
			log_flush(log);
		log->n += access_line_write(&record, log->buffer + log->n);
		log->lines++;
		any = true;
	}
	return any;
}

static void *log_run(void *argument)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
	struct access_log *log = argument;
	bool last, any;

	/* This changes only this thread: all other threads that want the CPU go first. */
	setpriority(PRIO_PROCESS, 0, NICE);
	do {
		last = __atomic_load_n(&log->ends, __ATOMIC_ACQUIRE);
		any = false;
		for (unsigned int i = 0; i < log->lcores; i++)
			any |= log_drain(log, log->ring[i]);
		log_flush(log);
		if (__atomic_exchange_n(&log->reopens, false, __ATOMIC_ACQ_REL))
			log_take_new_file(log);
		if (!any && !last)
			nanosleep(&pause, NULL);
	} while (!last);
	return NULL;
}

static int log_start(struct access_log *log)
{
	sigset_t all, before;
	int ret;

	/* Signals are for the control thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = -pthread_create(&log->thread, NULL, log_run, log);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret == 0)
		pthread_setname_np(log->thread, "access-log");
	return ret;
}

/* --- rings --------------------------------------------------------------------------------------
 */

/* All pages are there at once: an lcore must not wait for a page fault. */
static struct rte_ring *log_make_ring(const struct access_log *log, unsigned int lcore)
{
	struct rte_ring *ring = mmap(NULL, log->ring_bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	char name[RTE_RING_NAMESIZE];

	if (ring == MAP_FAILED)
		return NULL;
	snprintf(name, sizeof(name), "access_%u", lcore);
	if (rte_ring_init(ring, name, RECORDS, RING_F_SP_ENQ | RING_F_SC_DEQ) == 0)
		return ring;
	munmap(ring, log->ring_bytes);
	return NULL;
}

static void log_free(struct access_log *log)
{
	for (unsigned int i = 0; i < log->lcores; i++)
		if (log->ring[i] != NULL)
			munmap(log->ring[i], log->ring_bytes);
	if (log->fd >= 0)
		close(log->fd);
	free(log);
}

/* --- the control thread's -----------------------------------------------------------------------
 */

static void log_say_cannot_open(const char *path, int code, char *error, size_t error_size)
{
	snprintf(error, error_size, "log.access: cannot open %s: %s", path, strerror(code));
}

int access_log_check(const char *path, char *error, size_t error_size)
{
	char folder[LB_FILE_MAX];
	int ret = 0;

	if (access(path, W_OK) == 0)
		return 0;
	ret = -errno;
	if (ret == -ENOENT) {
		snprintf(folder, sizeof(folder), "%.*s/", (int)(strrchr(path, '/') - path), path);
		ret = access(folder, W_OK | X_OK) == 0 ? 0 : -errno;
	}
	if (ret < 0)
		log_say_cannot_open(path, -ret, error, error_size);
	return ret;
}

struct access_log *access_log_open(const char *path, unsigned int lcores, uint32_t one_in,
				   char *error, size_t error_size)
{
	struct access_log *log = calloc(1, sizeof(*log));

	if (log == NULL) {
		snprintf(error, error_size, "no memory for the access log");
		return NULL;
	}
	log->lcores = lcores;
	log->one_in = one_in;
	log->ring_bytes = (size_t)rte_ring_get_memsize_elem(sizeof(struct access_record), RECORDS);
	snprintf(log->path, sizeof(log->path), "%s", path);
	log->fd = log_open_file(path);
	if (log->fd < 0) {
		log_say_cannot_open(path, errno, error, error_size);
		goto fail;
	}
	for (unsigned int i = 0; i < lcores; i++) {
		log->ring[i] = log_make_ring(log, i);
		if (log->ring[i] == NULL) {
			snprintf(error, error_size, "no memory for the access log");
			goto fail;
		}
	}
	if (log_start(log) == 0)
		return log;
	snprintf(error, error_size, "no thread for the access log");
fail:
	log_free(log);
	return NULL;
}

void access_log_reopen(struct access_log *log)
{
	__atomic_store_n(&log->reopens, true, __ATOMIC_RELEASE);
}

void access_log_set_one_in(struct access_log *log, uint32_t one_in)
{
	__atomic_store_n(&log->one_in, one_in, __ATOMIC_RELAXED);
}

void access_log_close(struct access_log *log)
{
	if (log == NULL)
		return;
	__atomic_store_n(&log->ends, true, __ATOMIC_RELEASE);
	pthread_join(log->thread, NULL);
	log_free(log);
}

/* --- lcores -------------------------------------------------------------------------------------
 */

bool access_log_wants(const struct access_log *log)
{
	uint32_t one_in = __atomic_load_n(&log->one_in, __ATOMIC_RELAXED);

	return one_in == 1 || rte_rand_max(one_in) == 0;
}

bool access_log_put(struct access_log *log, unsigned int lcore, const struct access_record *record)
{
	return rte_ring_sp_enqueue_elem(log->ring[lcore], (void *)(uintptr_t)record,
					sizeof(*record)) == 0;
}
