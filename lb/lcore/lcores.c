/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/lcores.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "lcore/lcore.h"

/* ms without the end of a turn: even an idle lcore ends some twenty a second. */
#define STANDS_MS 1000u
/* ms after which what it has not received counts for nobody: an idle one ends a turn each 50 ms. */
#define STOOD_MS 150u
/* A tick that comes later than this, ms, says nothing: perhaps all threads stood still. */
#define TICK_LATE_MS 500u
/* ms after which it does not matter any more that one stood still. */
#define FORGET_MS 3600000u
/* So many calls, and things to free, may wait until commands are refused, and until nothing more is
 * replaced. One change may replace hundreds. */
#define CALLS_MANY (MAILBOX_SIZE / 4)
#define FREES_MANY 128u
#define FREES_MAX  256u

/* Something to free, in the order in which it was replaced. */
struct lcores_free {
	struct lcores_free *next;
	void (*destroy)(void *what);
	void *what;
	uint32_t call[LB_LCORES_MAX]; /* each lcore is to have made this call */
	uint64_t token;               /* QSBR's: and to end its turn since; 0: not yet */
};

static uint32_t lcores_now_ms(const struct lb *lb)
{
	return lb_tsc_to_ms(lb, lb_tsc(lb));
}

/* --- who goes on ----------------------------------------------------------------------------- */

uint32_t lb_lcore_stands_ms(const struct lb *lb, unsigned int lcore)
{
	return lb->seen[lcore].stands_ms;
}

bool lb_all_stand(const struct lb *lb)
{
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		if (lb->seen[i].stands_ms == 0)
			return false;
	return true;
}

/* The lcore writes this word while it is read here, by design. */
static __attribute__((no_sanitize("thread"))) uint64_t polls_of(const struct lcore *lc)
{
	return lc->stats.polls;
}

/* <skipped>: ms that do not count. */
static void look_at(struct lb *lb, unsigned int lcore, uint32_t now_ms, uint32_t skipped)
{
	uint64_t polls = polls_of(lb->lcore[lcore]);
	struct lcore_seen *t = &lb->seen[lcore];
	uint32_t before = t->stands_ms;

	t->since_ms += skipped;
	/* One that never began is not looked at: tests have such. */
	if (polls != t->polls ||
	    !__atomic_load_n(&lb->lcore[lcore]->mailbox.open, __ATOMIC_RELAXED)) {
		t->polls = polls;
		t->since_ms = now_ms;
	}
	t->stands_ms = now_ms - t->since_ms;
	if (t->stands_ms >= STOOD_MS)
		t->until_ms = now_ms | 1;
	if (t->stands_ms < STANDS_MS)
		t->stands_ms = 0;
	/* Long before the clock wraps. */
	if (t->until_ms != 0 && now_ms - t->until_ms < UINT32_MAX / 2 &&
	    now_ms - t->until_ms > FORGET_MS)
		t->until_ms = 0;
	if (before == 0 && t->stands_ms > 0)
		LB_LOG(WARNING,
		       "event=lcore_stands lcore=%u cpu=%u ms=%u it has not ended its turn: its "
		       "clients and what is changed wait for it",
		       lcore, lb->config.lcore_cpu[lcore], t->stands_ms);
	else if (before > 0 && t->stands_ms == 0)
		LB_LOG(NOTICE, "event=lcore_goes_on lcore=%u cpu=%u after_ms=%u", lcore,
		       lb->config.lcore_cpu[lcore], before);
}

static int refuse(const struct lb *lb, unsigned int lcore, const char *what, char *error,
		  size_t size)
{
	uint32_t ms = lcores_now_ms(lb) - lb->seen[lcore].since_ms;

	snprintf(error, size,
		 "lcore %u (CPU %u) has stood still for %u ms, and %s; try again when it goes on, "
		 "or "
		 "restart the load balancer",
		 lcore, lb->config.lcore_cpu[lcore], ms, what);
	return -EBUSY;
}

int lcores_refuse(const struct lb *lb, char *error, size_t size)
{
	uint32_t now_ms = lcores_now_ms(lb);
	unsigned int slowest = 0;

	for (unsigned int i = 1; i < lb->n_lcores; i++)
		if (now_ms - lb->seen[i].since_ms > now_ms - lb->seen[slowest].since_ms)
			slowest = i;
	return refuse(lb, slowest, "too many changes wait for it", error, size);
}

int lcores_check(const struct lb *lb, char *error, size_t size)
{
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		if (mailbox_waiting(&lb->lcore[i]->mailbox) >= CALLS_MANY)
			return refuse(lb, i, "too many changes wait for it", error, size);
	return lb->n_to_free < FREES_MANY ? 0 : lcores_refuse(lb, error, size);
}

int lcores_check_all(const struct lb *lb, char *error, size_t size)
{
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		if (lb->seen[i].stands_ms > 0)
			return refuse(lb, i, "nothing reaches it", error, size);
	return lcores_check(lb, error, size);
}

/* --- calls ----------------------------------------------------------------------------------- */

unsigned int lcores_any(const struct lb *lb)
{
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		if (lb->seen[i].stands_ms == 0 && !lb->seen[i].late)
			return i;
	return 0;
}

/* True when an answer to the next call is worth waiting for. */
static bool is_prompt(struct lb *lb, unsigned int lcore)
{
	struct lcore_seen *t = &lb->seen[lcore];

	t->late = t->late && mailbox_waiting(&lb->lcore[lcore]->mailbox) > 0;
	return !t->late && t->stands_ms == 0;
}

bool lcores_post(struct lb *lb, unsigned int lcore, mailbox_call call, void *argument, size_t bytes)
{
	return mailbox_post(&lb->lcore[lcore]->mailbox, call, lb->lcore[lcore], argument, bytes) ==
	       0;
}

bool lcores_tell(struct lb *lb, unsigned int lcore, mailbox_call call, void *argument, size_t bytes)
{
	struct mailbox *mailbox = &lb->lcore[lcore]->mailbox;
	bool prompt = is_prompt(lb, lcore), made;

	if (!lcores_post(lb, lcore, call, argument, bytes))
		return false;
	made = mailbox_await(mailbox, mailbox_last(mailbox), prompt ? LCORES_WAIT_US : 0);
	lb->seen[lcore].late = !made;
	return made;
}

bool lcores_ask(struct lb *lb, unsigned int lcore, mailbox_call call, void *argument, size_t bytes)
{
	bool made;

	/* The caller would not wait for the answer. */
	if (!is_prompt(lb, lcore))
		return false;
	made = mailbox_ask(&lb->lcore[lcore]->mailbox, call, lb->lcore[lcore], argument, bytes,
			   LCORES_WAIT_US);
	lb->seen[lcore].late = !made;
	return made;
}

/* --- freeing --------------------------------------------------------------------------------- */

static bool are_made(const struct lb *lb, const struct lcores_free *f)
{
	for (unsigned int i = 0; i < lb->n_lcores && lb->lcore[i] != NULL; i++)
		if (!mailbox_made(&lb->lcore[i]->mailbox, f->call[i]))
			return false;
	return true;
}

/*
 * An lcore makes calls in the middle of a turn, and to the end of it may have what it had at its
 * begin: the turn is looked for only when the calls are made.
 */
static void ask_for_turns(struct lb *lb)
{
	uint64_t token = 0;

	for (struct lcores_free *f = lb->to_free; f != NULL; f = f->next) {
		if (f->token != 0)
			continue;
		if (!are_made(lb, f))
			return;
		if (token == 0)
			token = rte_rcu_qsbr_start(lb->qsbr);
		f->token = token;
	}
}

static bool have_passed(const struct lb *lb, const struct lcores_free *f)
{
	return f->token != 0 && rte_rcu_qsbr_check(lb->qsbr, f->token, false) == 1;
}

static void free_first(struct lb *lb)
{
	struct lcores_free *f = lb->to_free;

	lb->to_free = f->next;
	if (lb->to_free == NULL)
		lb->to_free_end = NULL;
	lb->n_to_free--;
	f->destroy(f->what);
	free(f);
}

static bool free_passed(struct lb *lb)
{
	ask_for_turns(lb);
	while (lb->to_free != NULL && have_passed(lb, lb->to_free))
		free_first(lb);
	return lb->to_free == NULL;
}

void lcores_free_later(struct lb *lb, void (*destroy)(void *what), void *what)
{
	struct lcores_free *f;

	if (what == NULL)
		return;
	f = calloc(1, sizeof(*f));
	if (f == NULL) {
		LB_LOG(ERR, "no memory to note what is to be freed: it is not");
		return;
	}
	f->destroy = destroy;
	f->what = what;
	for (unsigned int i = 0; i < lb->n_lcores && lb->lcore[i] != NULL; i++)
		f->call[i] = mailbox_last(&lb->lcore[i]->mailbox);
	if (lb->to_free_end != NULL)
		lb->to_free_end->next = f;
	else
		lb->to_free = f;
	lb->to_free_end = f;
	lb->n_to_free++;
	ask_for_turns(lb);
}

static void free_nothing(void *what)
{
}

/* One that did not pass in time is not waited for again before it does. */
bool lcores_settle(struct lb *lb)
{
	uint64_t end = rte_rdtsc() + LCORES_WAIT_US * (lb->tsc_per_ms / 1000);
	bool all = free_passed(lb);

	while (!all && !lb->unsettled && rte_rdtsc() < end) {
		sched_yield(); /* an lcore may want this CPU */
		all = free_passed(lb);
	}
	lb->unsettled = !all;
	return all;
}

bool lcores_pass(struct lb *lb)
{
	lcores_free_later(lb, free_nothing, lb);
	return lcores_settle(lb);
}

bool lcores_has_room(const struct lb *lb)
{
	return lb->n_to_free < FREES_MAX;
}

void lcores_end(struct lb *lb)
{
	while (lb->to_free != NULL)
		free_first(lb);
}

void lcores_tick(struct lb *lb)
{
	uint32_t now_ms = lcores_now_ms(lb), gap = now_ms - lb->lcores_ms;

	lb->lcores_ms = now_ms;
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		look_at(lb, i, now_ms, gap > TICK_LATE_MS ? gap : 0);
	lb->unsettled = !free_passed(lb);
}
