/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long one turn of an lcore takes at most while a client of the framing kserve does what costs
 * most. By itself it prints the CPU time of the longest turn of each kind, the least of some
 * rounds, as a machine has other work. Under `valgrind --tool=callgrind` each turn's instructions
 * are counted, and written by callgrind; text_turns.py starts it so. See README.md.
 *
 *   walk-text-turns [ROUNDS [WORD ...]]      kinds whose names have one of the words
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <valgrind/callgrind.h>

#include "edge/edge.h"
#include "text_turns.h"

#define TURN_BYTES 16000u
#define STREAM_MAX (4u << 20)

struct bytes {
	uint32_t n;
	char at[STREAM_MAX];
};

static struct bytes stream;
static const char *kind_name;
static uint64_t longest; /* ns */

void text_put(const void *bytes, uint32_t n)
{
	walk_need(stream.n + n <= STREAM_MAX, "too long");
	memcpy(stream.at + stream.n, bytes, n);
	stream.n += n;
}

const void *text_sent(void)
{
	return stream.at;
}

uint32_t text_length(void)
{
	return stream.n;
}

void text_put_text(const struct text *t)
{
	text_put(t->at, t->n);
}

void text_put_frame(uint8_t type, uint8_t flags, uint32_t id, const void *bytes, uint32_t n)
{
	static struct text t;

	t.n = 0;
	text_frame(&t, type, flags, id, bytes, n);
	text_put_text(&t);
}

void text_begin_http2(void)
{
	static struct text t;

	text_preface(&t);
	text_put_text(&t);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void text_turn(struct walk *w)
{
	uint64_t begin;

	CALLGRIND_ZERO_STATS;
	begin = cpu_ns();
	walk_turn_lcore(w, 0);
	longest = RTE_MAX(longest, cpu_ns() - begin);
	CALLGRIND_DUMP_STATS_AT(kind_name);
	walk_wire(w);
}

void text_turn_all(struct walk *w)
{
	do
		text_turn(w);
	while (edge_deadline(w->lb->lcore[0]) <= w->lb->lcore[0]->now);
}

void text_turns_pass(struct walk *w, struct http_client *any, unsigned int turns)
{
	for (unsigned int i = 0; i < turns; i++) {
		text_turn_all(w);
		http_take_all(any);
		walk_jump_us(w, 100);
	}
}

/* One client sends what it has, a turn's bytes at a time, and not more than it is offered. */
static void send_stream(struct walk *w)
{
	struct http_client *c = http_dial(w, 3000);

	for (uint32_t at = 0, idle = 0; idle < 20 && !c->reset && !c->fin;) {
		for (uint32_t n = 0; n < TURN_BYTES && at < stream.n && idle == 0; n += 1000) {
			http_put(c, stream.at + at, RTE_MIN(1000u, stream.n - at));
			at += RTE_MIN(1000u, stream.n - at);
		}
		text_turn_all(w);
		c->n = 0;
		http_take_all(c);
		http_acknowledge(c);
		walk_jump_us(w, 100);
		idle += at >= stream.n;
	}
	http_abort(c);
}

/* The worker has answered most of them: those that found it busy were refused. */
static void expect_answered(struct walk *w, const struct text_kind *k)
{
	uint64_t rows = (uint64_t)k->requests * k->rows;

	walk_expect(w->worker[0]->answered >= rows / 2, "%lu of %lu rows", w->worker[0]->answered,
		    rows);
}

/* us of the longest turn. */
static double kind_run(const struct text_kind *k)
{
	struct walk *w = walk_create(k->params);

	kind_name = k->name;
	walk_context("%s", k->name);
	longest = 0;
	stream.n = 0;
	k->worker(w, k);
	if (k->make != NULL)
		k->make(k);
	CALLGRIND_START_INSTRUMENTATION;
	if (k->run != NULL)
		k->run(w);
	else
		send_stream(w);
	CALLGRIND_STOP_INSTRUMENTATION;
	if (k->requests > 0)
		expect_answered(w, k);
	walk_destroy(w);
	return (double)longest / 1000;
}

static bool is_named(const struct text_kind *k, int argc, char **argv)
{
	bool named = argc < 3;

	for (int i = 2; i < argc; i++)
		named |= strstr(k->name, argv[i]) != NULL;
	return named;
}

static void kind_measure(const struct text_kind *k, int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? (unsigned int)atoi(argv[1]) : 5;
	double least = 1e9;

	if (!is_named(k, argc, argv))
		return;
	for (unsigned int i = 0; i < rounds; i++) {
		double us = kind_run(k);

		least = RTE_MIN(least, us);
	}
	if (!RUNNING_ON_VALGRIND)
		printf("%-46s %6.1f us\n", k->name, least);
	fflush(stdout);
}

static const struct {
	const struct text_kind *kinds;
	const unsigned int *n;
} parts[] = {{text_kinds, &n_text_kinds},
	     {text_bytes, &n_text_bytes},
	     {text_ends, &n_text_ends},
	     {text_acks, &n_text_acks}};

const struct text_kind *text_kind_find(const char *name)
{
	for (unsigned int i = 0; i < RTE_DIM(parts); i++)
		for (unsigned int k = 0; k < *parts[i].n; k++)
			if (strcmp(parts[i].kinds[k].name, name) == 0)
				return &parts[i].kinds[k];
	walk_need(false, "there is no kind '%s'", name);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct text_kind *k;

	walk_start_eal();
	for (unsigned int i = 0; i < RTE_DIM(parts); i++)
		for (unsigned int n = 0; n < *parts[i].n; n++)
			kind_measure(&parts[i].kinds[n], argc, argv);
	while ((k = text_tls_next()) != NULL)
		kind_measure(k, argc, argv);
	return walk_failures() > 0;
}
