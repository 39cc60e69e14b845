/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that makes handshakes against an lcore that gives it work, takes it back in the middle
 * and buries keys, while the control thread replaces certificates. ThreadSanitizer reports what
 * passes from one thread to another without their rings; OpenSSL itself it does not see.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "walk.h"

#define FIXTURE_NEED(condition) walk_need(condition)
#include "secure_fixture.h"
#include "tls_client.h"

#include "tls/helper.h"

/* One: of two threads that write to a ring of DPDK 22.11 the second publishes what the first wrote,
 * by its order of stores on x86, which ThreadSanitizer does not know. */
#define LCORES     1
#define GUESTS     8  /* handshakes of an lcore at a time */
#define HANDSHAKES 32 /* of an lcore: each takes some 0.1 s of a busy machine */

/* A client. Its job is its lcore's, or away; NULL: it has none. */
struct guest {
	struct tls_client client;
	struct tls_session *session;
	unsigned int number; /* of its handshake: the last two bits say how it ends */
	bool open;
};

struct player {
	pthread_t thread;
	struct sleeper sleeper;
	struct tls_line *line;
	struct guest guest[GUESTS];
	unsigned int begun, ended, opened, abandoned, rekeyed, failed;
	unsigned int away; /* jobs */
};

static unsigned int finished;         /* atomic: players */
static struct sleeper control_thread; /* woken by the end of each handshake */

const char *__tsan_default_options(void);

/* The order of OpenSSL's own locks is looked at for seconds, and is not ours. */
const char *__tsan_default_options(void)
{
	return "detect_deadlocks=0";
}

/* Every fourth is taken back in the middle, every fourth has new keys, which only TLS 1.3 has. */
static bool is_abandoned(const struct guest *g)
{
	return g->number % 4 == 3;
}

static bool is_rekeyed(const struct guest *g)
{
	return g->number % 4 == 2;
}

static void submit(struct player *p, struct tls_job *job, enum tls_order order)
{
	job->order = order;
	p->away++;
	tls_submit(job);
}

/* The client's next bytes go to the helper. */
static void step(struct player *p, struct guest *g, struct tls_job *job)
{
	SSL_do_handshake(g->client.ssl);
	job->n = tls_client_take(&g->client, job->bytes, sizeof(job->bytes));
	if (job->n > 0)
		return submit(p, job, TLS_STEP);
	p->failed++; /* the client has failed */
	submit(p, job, TLS_ABANDON);
}

static void begin(struct player *p, struct guest *g)
{
	struct tls_job *job = tls_job_get(p->line);

	if (job == NULL)
		return; /* those that come back are put back */
	g->number = p->begun++;
	g->open = true;
	tls_client_open(&g->client, g->number / 2 % 2 ? TLS1_3_VERSION : TLS1_2_VERSION, NULL,
			NULL, NULL);
	job->owner = (uint32_t)(g - p->guest);
	job->service = 0;
	step(p, g, job);
}

static void end(struct player *p, struct guest *g)
{
	tls_client_close(&g->client);
	if (g->session != NULL)
		tls_bury(p->line, g->session);
	*g = (struct guest){0};
	p->ended++;
	sleeper_wake(&control_thread);
}

/* A record each way, by the keys that the helper made. */
static void talk(struct guest *g)
{
	uint8_t bytes[128] = "a record", wire[256], got[256];
	struct tls_step step;
	uint32_t n, at = 0;

	n = tls_write_small(g->session, TLS_DATA, bytes, sizeof(bytes), wire);
	tls_client_give(&g->client, wire, n);
	walk_need(SSL_read(g->client.ssl, got, sizeof(got)) == sizeof(bytes));
	walk_need(SSL_write(g->client.ssl, bytes, sizeof(bytes)) == sizeof(bytes));
	n = tls_client_take(&g->client, wire, sizeof(wire));
	step = tls_read(g->session, wire, n, got, sizeof(got));
	at += step.taken;
	walk_need(step.result == TLS_READ_RECORD && at == n);
}

static void opened(struct player *p, struct guest *g, struct tls_job *job)
{
	struct tls_job *again;

	p->opened++;
	g->session = job->session;
	SSL_do_handshake(g->client.ssl); /* TLS 1.2: our Finished */
	talk(g);
	job->owner = GUESTS; /* nobody's: its handshake goes */
	submit(p, job, TLS_ABANDON);
	again = is_rekeyed(g) ? tls_job_get(p->line) : NULL;
	if (again == NULL)
		return end(p, g);
	again->owner = (uint32_t)(g - p->guest);
	again->session = g->session;
	again->rekey_in = again->rekey_out = true;
	submit(p, again, TLS_REKEY);
}

static void take(struct player *p, struct tls_job *job)
{
	struct guest *g = &p->guest[job->owner];

	p->away--;
	if (job->order == TLS_ABANDON) {
		if (job->owner < GUESTS)
			end(p, g);
		return tls_job_put(job);
	}
	if (job->order == TLS_REKEY) {
		p->rekeyed++;
		tls_job_put(job);
		return end(p, g);
	}
	tls_client_give(&g->client, job->output, job->n_output);
	if (job->progress == TLS_DONE)
		return opened(p, g, job);
	if (job->progress == TLS_FAILED)
		p->failed++;
	else if (!is_abandoned(g))
		return step(p, g, job);
	p->abandoned++;
	submit(p, job, TLS_ABANDON);
}

static void *run(void *context)
{
	struct player *p = context;

	while (p->ended < HANDSHAKES || p->away > 0) {
		struct tls_job *job;

		for (unsigned int i = 0; i < GUESTS && p->begun < HANDSHAKES; i++)
			if (!p->guest[i].open)
				begin(p, &p->guest[i]);
		while ((job = tls_take(p->line)) != NULL)
			take(p, job);
		tls_line_housekeeping(p->line);
		sleeper_prepare(&p->sleeper);
		if (tls_line_back(p->line) == 0 && p->away > 0)
			sleeper_wait(&p->sleeper, 1000000000);
		else
			sleeper_cancel(&p->sleeper);
	}
	__atomic_fetch_add(&finished, 1, __ATOMIC_RELEASE);
	sleeper_wake(&control_thread);
	return NULL;
}

static void wait_for_an_end(void)
{
	sleeper_prepare(&control_thread);
	if (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < LCORES)
		sleeper_wait(&control_thread, 1000000000);
	else
		sleeper_cancel(&control_thread);
}

static struct tls_certificates *certificates_of(const struct secure_party *party)
{
	static const struct tls_protocols none;
	struct tls_certificates *all = calloc(1, sizeof(*all));
	char error[512];

	walk_need(all != NULL);
	all->context[0] = tls_context_create(party->certificate_path, party->key_path, &none, error,
					     sizeof(error));
	walk_need(all->context[0] != NULL, "%s", error);
	return all;
}

int main(void)
{
	static struct player player[LCORES];
	unsigned int replaced = 0, done = 0;
	struct secure_party party[2];
	struct secure_fixture files;
	struct tls_helper *helper;

	walk_start_eal();
	walk_need(sleeper_init(&control_thread) == 0);
	secure_fixture_start(&files);
	for (unsigned int i = 0; i < 2; i++)
		party[i] = secure_party_create(&files, NULL, "service", NULL, 30);
	helper = tls_helper_create();
	walk_need(helper != NULL);
	tls_certificates_free(tls_helper_use(helper, certificates_of(&party[0])));
	for (unsigned int i = 0; i < LCORES; i++) {
		struct player *p = &player[i];

		walk_need(sleeper_init(&p->sleeper) == 0);
		p->line = tls_line_create(helper, i, &p->sleeper);
		walk_need(p->line != NULL);
		walk_need(pthread_create(&p->thread, NULL, run, p) == 0);
	}
	while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < LCORES) {
		tls_certificates_free(
			tls_helper_use(helper, certificates_of(&party[++replaced % 2])));
		wait_for_an_end();
	}
	for (unsigned int i = 0; i < LCORES; i++)
		pthread_join(player[i].thread, NULL);
	tls_helper_stop(helper);
	for (unsigned int i = 0; i < LCORES; i++) {
		const struct player *p = &player[i];

		printf("%u handshakes, %u abandoned, %u failed, %u new keys\n", p->opened,
		       p->abandoned, p->failed, p->rekeyed);
		walk_need(p->failed == 0 && p->abandoned > 0 && p->rekeyed > 0);
		done += p->opened;
		tls_line_destroy(p->line);
		sleeper_fini(&player[i].sleeper);
	}
	tls_helper_destroy(helper);
	sleeper_fini(&control_thread);
	printf("%u handshakes, %u times other certificates\n", done, replaced);
	walk_need(replaced > 0);
	for (unsigned int i = 0; i < 2; i++)
		secure_party_free(&party[i]);
	secure_fixture_stop(&files);
	return walk_failures() > 0;
}
