/* SPDX-License-Identifier: BSD-3-Clause */
#include "tls/helper.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_log.h>
#include <rte_ring.h>

#include "runtime/clock.h"
#include "runtime/sleeper.h"

RTE_LOG_REGISTER(tls_log, doorbell.tls, INFO)

#define GRAVES         4096       /* sessions that wait to be freed */
#define HELPER_SLEEP   1000000000 /* ns; it is woken */
#define SESSIONS_BURST 64
#define HELPER_LOG_MS  10000 /* between two lines: strangers can make handshakes fail */

struct tls_line {
	struct tls_helper *helper;
	struct rte_ring *back;
	struct sleeper *sleeper;
	struct tls_job *memory, *free;
	struct tls_session *unburied; /* for want of room in the ring */
};

struct tls_helper {
	pthread_t thread;
	struct sleeper sleeper;
	struct rte_ring *orders, *graves;
	int stop;             /* atomic */
	bool joined;          /* the thread has ended */
	pthread_mutex_t lock; /* of <certificates> */
	struct tls_certificates *certificates;
	/* the thread's: when a failure was logged last, and those that were not since then */
	uint64_t logged_ms;
	uint64_t unlogged;
};

/* --- the helper --------------------------------------------------------------------------------
 */

/* The service's context, held. NULL: it has none. */
static struct tls_context *helper_context(struct tls_helper *helper, uint16_t service)
{
	struct tls_context *context = NULL;

	pthread_mutex_lock(&helper->lock);
	if (helper->certificates != NULL)
		context = helper->certificates->context[service];
	if (context != NULL)
		tls_context_hold(context);
	pthread_mutex_unlock(&helper->lock);
	return context;
}

static void helper_fail(struct tls_job *job, const char *reason)
{
	job->progress = TLS_FAILED;
	job->n_output = 0;
	snprintf(job->reason, sizeof(job->reason), "%s", reason);
}

static void helper_log_failure(struct tls_helper *helper, const struct tls_job *job)
{
	uint64_t now_ms = clock_now_ms();
	char name[TLS_NAME_MAX] = "";

	if (helper->logged_ms != 0 && now_ms - helper->logged_ms < HELPER_LOG_MS) {
		helper->unlogged++;
		return;
	}
	pthread_mutex_lock(&helper->lock);
	if (helper->certificates != NULL)
		memcpy(name, helper->certificates->name[job->service], sizeof(name));
	pthread_mutex_unlock(&helper->lock);
	rte_log(RTE_LOG_NOTICE, tls_log,
		"tls: service=%s event=handshake_failed reason=\"%s\" others=%lu\n", name,
		job->reason, helper->unlogged);
	helper->logged_ms = now_ms;
	helper->unlogged = 0;
}

static void helper_begin(struct tls_helper *helper, struct tls_job *job)
{
	struct tls_context *context = helper_context(helper, job->service);

	if (context == NULL)
		return helper_fail(job, "the service has no certificate");
	job->handshake = tls_handshake_create(context);
	tls_context_free(context);
	if (job->handshake == NULL)
		helper_fail(job, "no memory");
}

static void helper_step(struct tls_helper *helper, struct tls_job *job)
{
	struct tls_handshake *h;

	if (job->handshake == NULL)
		helper_begin(helper, job);
	h = job->handshake;
	if (h == NULL)
		return;
	job->progress = tls_handshake_step(h, job->bytes, job->n);
	job->output = tls_handshake_output(h, &job->n_output);
	job->left = tls_handshake_left(h);
	if (job->progress == TLS_FAILED)
		snprintf(job->reason, sizeof(job->reason), "%s", tls_handshake_reason(h));
	if (job->progress != TLS_DONE)
		return;
	job->session = tls_handshake_session(h);
	if (job->session == NULL)
		helper_fail(job, "no memory");
}

static void helper_rekey(struct tls_job *job)
{
	struct tls_session *s = job->session;
	bool made = true;

	if (job->rekey_in)
		made = tls_session_update(s, &s->in);
	if (job->rekey_out)
		made &= tls_session_update(s, &s->out);
	job->progress = made ? TLS_DONE : TLS_FAILED;
}

static void helper_do(struct tls_helper *helper, struct tls_job *job)
{
	switch ((enum tls_order)job->order) {
	case TLS_STEP:
		helper_step(helper, job);
		if (job->progress == TLS_FAILED)
			helper_log_failure(helper, job);
		break;
	case TLS_ABANDON:
		tls_handshake_free(job->handshake);
		job->handshake = NULL;
		job->n_output = 0;
		break;
	case TLS_REKEY:
		helper_rekey(job);
		break;
	}
	/* It has room for all jobs of the line. */
	rte_ring_sp_enqueue(job->line->back, job);
	sleeper_wake(job->line->sleeper);
}

/* True: there was something to do. */
static bool helper_turn(struct tls_helper *helper)
{
	struct tls_session *session[SESSIONS_BURST];
	struct tls_job *job;
	unsigned int n =
		rte_ring_sc_dequeue_burst(helper->graves, (void **)session, SESSIONS_BURST, NULL);
	bool any = n > 0;

	while (n > 0)
		tls_session_free(session[--n]);
	if (rte_ring_sc_dequeue(helper->orders, (void **)&job) != 0)
		return any;
	helper_do(helper, job);
	return true;
}

static void *helper_run(void *context)
{
	struct tls_helper *helper = context;

	while (!__atomic_load_n(&helper->stop, __ATOMIC_ACQUIRE)) {
		if (helper_turn(helper))
			continue;
		sleeper_prepare(&helper->sleeper);
		if (rte_ring_empty(helper->orders) && rte_ring_empty(helper->graves) &&
		    !__atomic_load_n(&helper->stop, __ATOMIC_ACQUIRE))
			sleeper_wait(&helper->sleeper, HELPER_SLEEP);
		else
			sleeper_cancel(&helper->sleeper);
	}
	while (helper_turn(helper))
		;
	return NULL;
}

static int helper_start(struct tls_helper *helper)
{
	sigset_t all, before;
	int ret;

	/* Signals are for the control thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&helper->thread, NULL, helper_run, helper);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret == 0)
		pthread_setname_np(helper->thread, "tls");
	return -ret;
}

struct tls_helper *tls_helper_create(void)
{
	struct tls_helper *helper = calloc(1, sizeof(*helper));

	if (helper == NULL)
		return NULL;
	helper->joined = true;
	pthread_mutex_init(&helper->lock, NULL);
	if (sleeper_init(&helper->sleeper) < 0) {
		free(helper);
		return NULL;
	}
	helper->orders =
		rte_ring_create("tls_orders", rte_align32pow2(TLS_LINES_MAX * TLS_JOBS + 1),
				SOCKET_ID_ANY, RING_F_SC_DEQ);
	helper->graves = rte_ring_create("tls_graves", GRAVES, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (helper->orders != NULL && helper->graves != NULL && helper_start(helper) == 0) {
		helper->joined = false;
		return helper;
	}
	tls_helper_destroy(helper);
	return NULL;
}

void tls_helper_stop(struct tls_helper *helper)
{
	if (helper == NULL || helper->joined)
		return;
	__atomic_store_n(&helper->stop, 1, __ATOMIC_RELEASE);
	sleeper_wake(&helper->sleeper);
	pthread_join(helper->thread, NULL);
	helper->joined = true;
}

void tls_helper_destroy(struct tls_helper *helper)
{
	if (helper == NULL)
		return;
	tls_helper_stop(helper);
	rte_ring_free(helper->orders);
	rte_ring_free(helper->graves);
	sleeper_fini(&helper->sleeper);
	tls_certificates_free(helper->certificates);
	pthread_mutex_destroy(&helper->lock);
	free(helper);
}

struct tls_certificates *tls_helper_use(struct tls_helper *helper,
					struct tls_certificates *certificates)
{
	struct tls_certificates *before;

	pthread_mutex_lock(&helper->lock);
	before = helper->certificates;
	helper->certificates = certificates;
	pthread_mutex_unlock(&helper->lock);
	return before;
}

void tls_certificates_free(struct tls_certificates *certificates)
{
	for (unsigned int i = 0; certificates != NULL && i < TLS_SERVICES_MAX; i++)
		tls_context_free(certificates->context[i]);
	free(certificates);
}

/* --- lines -------------------------------------------------------------------------------------
 */

struct tls_line *tls_line_create(struct tls_helper *helper, unsigned int index,
				 struct sleeper *sleeper)
{
	struct tls_line *line = calloc(1, sizeof(*line));
	char name[RTE_RING_NAMESIZE];

	if (line == NULL)
		return NULL;
	snprintf(name, sizeof(name), "tls_%u", index);
	line->helper = helper;
	line->sleeper = sleeper;
	line->back = rte_ring_create(name, rte_align32pow2(TLS_JOBS + 1), SOCKET_ID_ANY,
				     RING_F_SP_ENQ | RING_F_SC_DEQ);
	line->memory = calloc(TLS_JOBS, sizeof(*line->memory));
	for (unsigned int i = 0; line->memory != NULL && i < TLS_JOBS; i++) {
		line->memory[i].line = line;
		line->memory[i].next = line->free;
		line->free = &line->memory[i];
	}
	if (line->back != NULL && line->memory != NULL)
		return line;
	tls_line_destroy(line);
	return NULL;
}

void tls_line_destroy(struct tls_line *line)
{
	struct tls_session *session;
	struct tls_job *job;

	if (line == NULL)
		return;
	while (line->back != NULL && (job = tls_take(line)) != NULL)
		if (job->order == TLS_STEP && job->progress == TLS_DONE)
			tls_session_free(job->session);
	for (unsigned int i = 0; line->memory != NULL && i < TLS_JOBS; i++)
		tls_handshake_free(line->memory[i].handshake);
	while ((session = line->unburied) != NULL) {
		line->unburied = session->next;
		tls_session_free(session);
	}
	rte_ring_free(line->back);
	free(line->memory);
	free(line);
}

struct tls_job *tls_job_get(struct tls_line *line)
{
	struct tls_job *job = line->free;

	if (job == NULL)
		return NULL;
	line->free = job->next;
	job->n = job->n_output = job->left = 0;
	job->session = NULL;
	job->rekey_in = job->rekey_out = false;
	return job;
}

void tls_job_put(struct tls_job *job)
{
	job->next = job->line->free;
	job->line->free = job;
}

void tls_submit(struct tls_job *job)
{
	/* It has room for all jobs of all lines. */
	rte_ring_mp_enqueue(job->line->helper->orders, job);
	sleeper_wake(&job->line->helper->sleeper);
}

struct tls_job *tls_take(struct tls_line *line)
{
	struct tls_job *job;

	return rte_ring_sc_dequeue(line->back, (void **)&job) == 0 ? job : NULL;
}

unsigned int tls_line_back(const struct tls_line *line)
{
	return rte_ring_count(line->back);
}

void tls_bury(struct tls_line *line, struct tls_session *session)
{
	if (line->helper->joined) {
		tls_session_free(session);
	} else if (rte_ring_mp_enqueue(line->helper->graves, session) == 0) {
		sleeper_wake(&line->helper->sleeper);
	} else {
		session->next = line->unburied;
		line->unburied = session;
	}
}

void tls_line_housekeeping(struct tls_line *line)
{
	while (line->unburied != NULL) {
		struct tls_session *next = line->unburied->next;

		if (rte_ring_mp_enqueue(line->helper->graves, line->unburied) != 0)
			return;
		line->unburied = next;
		sleeper_wake(&line->helper->sleeper);
	}
}
