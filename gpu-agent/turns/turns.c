/* SPDX-License-Identifier: BSD-3-Clause */
#include "turns/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/clock.h"

/*
 * Bytes of the file that are locked: the holder of the first has the turn; a process has the place
 * in the file whose byte it holds.
 */
enum { TURN = 0, PLACES = 16 };

/* One that has said nothing for so long has gone, or runs nothing. */
#define TURNS_GONE_NS UINT64_C(10000000000)

/* The file. All words are written with relaxed stores: a reader that sees half of an offer is wrong
 * by one turn. */
struct turns_file {
	uint32_t bell; /* rings when a turn ends: a futex */
	uint32_t pad;
	uint64_t until_ns; /* when the turn ends that one has */
	struct turns_offer offer[TURNS_MEMBERS];
};

/* --- who is first ------------------------------------------------------------------------------
 */

/* Was it within the last <ns>? The file may be older than the machine's clock. */
static bool turns_is_recent(uint64_t then, uint64_t ns, uint64_t now)
{
	return then < now + TURNS_FRESH_NS && then + ns > now;
}

static bool turns_counts(const struct turns_offer *o, uint64_t now)
{
	return o->said_ns != 0 && turns_is_recent(o->said_ns, TURNS_FRESH_NS, now);
}

/* Are all that wait in time, in whatever order they run? */
static bool turns_are_easy(const struct turns_offer *offer, unsigned int n, uint64_t begin,
			   uint64_t now)
{
	uint64_t due = UINT64_MAX, end = begin;

	for (unsigned int i = 0; i < n; i++) {
		if (!turns_counts(&offer[i], now))
			continue;
		end += offer[i].work_ns;
		if (offer[i].due_ns != 0 && offer[i].due_ns < due)
			due = offer[i].due_ns;
	}
	return end <= due;
}

static bool turns_is_before(const struct turns_offer *a, const struct turns_offer *b, bool easy)
{
	if (a->due_ns == 0 || b->due_ns == 0)
		return a->asked_ns < b->asked_ns;
	if (easy)
		return a->due_ns < b->due_ns;
	return a->worth > b->worth;
}

/* The first of those with a deadline, or of those without; -1: there are none. */
static int turns_first_of(const struct turns_offer *offer, unsigned int n, uint64_t now,
			  bool deadline, bool easy)
{
	int first = -1;

	for (unsigned int i = 0; i < n; i++)
		if (turns_counts(&offer[i], now) && (offer[i].due_ns != 0) == deadline &&
		    (first < 0 || turns_is_before(&offer[i], &offer[first], easy)))
			first = (int)i;
	return first;
}

static uint64_t turns_longest_of(const struct turns_offer *offer, unsigned int n, uint64_t now)
{
	uint64_t longest = UINT64_C(1000000);

	for (unsigned int i = 0; i < n; i++)
		if (offer[i].run_ns > longest &&
		    turns_is_recent(offer[i].alive_ns, TURNS_GONE_NS, now))
			longest = offer[i].run_ns;
	return longest;
}

/* The one that has waited longest, if that is too long; or -1. */
static int turns_neglected(const struct turns_offer *offer, unsigned int n, uint64_t now)
{
	uint64_t patience = TURNS_PATIENCE * turns_longest_of(offer, n, now);
	int first = -1;

	for (unsigned int i = 0; i < n; i++)
		if (turns_counts(&offer[i], now) && offer[i].asked_ns + patience < now &&
		    (first < 0 || offer[i].asked_ns < offer[first].asked_ns))
			first = (int)i;
	return first;
}

int turns_first(const struct turns_offer *offer, unsigned int n, uint64_t begin, uint64_t now)
{
	int first = turns_neglected(offer, n, now), other;

	if (first >= 0)
		return first;
	first = turns_first_of(offer, n, now, true, turns_are_easy(offer, n, begin, now));
	other = turns_first_of(offer, n, now, false, false);
	if (first < 0 || other < 0)
		return first < 0 ? other : first;
	return offer[other].asked_ns < offer[first].asked_ns ? other : first;
}

/* --- the file ----------------------------------------------------------------------------------
 */

/* Locks of an open file, which belong to no thread and end when it is closed. */
static int turns_lock(const struct turns *t, int command, short type, off_t which)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = which, .l_len = 1};
	int ret;

	do
		ret = fcntl(t->fd, command, &lock);
	while (ret != 0 && errno == EINTR);
	return ret != 0 ? -errno : 0;
}

/* One that may write to the file can keep the turn for ever, or make it shorter, which ends all
 * that have mapped it. */
static bool turns_are_ours(const struct stat *is)
{
	return S_ISREG(is->st_mode) && (is->st_mode & S_IWOTH) == 0 &&
	       (is->st_uid == geteuid() || is->st_uid == 0);
}

/* Never made smaller: others may have mapped it. 0, or -errno with a reason. */
static int turns_map(struct turns *t, const char **why)
{
	struct stat is;
	void *at;

	if (fstat(t->fd, &is) != 0)
		return -errno;
	if (!turns_are_ours(&is)) {
		*why = "other users may write to it; give one that belongs to the agents' user, "
		       "or to root";
		return -EPERM;
	}
	if (is.st_size < (off_t)sizeof(struct turns_file) &&
	    ftruncate(t->fd, sizeof(struct turns_file)) != 0)
		return -errno;
	at = mmap(NULL, sizeof(struct turns_file), PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	t->file = at;
	return 0;
}

int turns_open(struct turns *t, const char *path, char *error, size_t size)
{
	const char *why = NULL;
	int ret;

	*t = (struct turns){.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), .member = -1};
	ret = t->fd < 0 ? -errno : turns_map(t, &why);
	if (ret < 0) {
		snprintf(error, size, "--turns %s: %s", path, why != NULL ? why : strerror(-ret));
		if (t->fd >= 0)
			close(t->fd);
		return ret;
	}
	for (int i = 0; i < TURNS_MEMBERS && t->member < 0; i++)
		if (turns_lock(t, F_OFD_SETLK, F_WRLCK, PLACES + i) == 0)
			t->member = i;
	if (t->member >= 0)
		t->file->offer[t->member] = (struct turns_offer){0};
	return 0;
}

void turns_close(struct turns *t)
{
	if (t->member >= 0)
		t->file->offer[t->member] = (struct turns_offer){0};
	munmap(t->file, sizeof(struct turns_file));
	close(t->fd);
}

static void turns_say(struct turns *t)
{
	struct turns_offer *to;

	if (t->member < 0)
		return;
	to = &t->file->offer[t->member];
	__atomic_store_n(&to->asked_ns, t->own.asked_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&to->due_ns, t->own.due_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&to->work_ns, t->own.work_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&to->run_ns, t->own.run_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&to->alive_ns, t->own.alive_ns, __ATOMIC_RELAXED);
	__atomic_store(&to->worth, &t->own.worth, __ATOMIC_RELAXED);
	__atomic_store_n(&to->said_ns, t->own.said_ns, __ATOMIC_RELEASE);
}

/* All offers, as they are now. */
static void turns_read(const struct turns *t, struct turns_offer offer[TURNS_MEMBERS])
{
	for (unsigned int i = 0; i < TURNS_MEMBERS; i++) {
		const struct turns_offer *from = &t->file->offer[i];

		offer[i].said_ns = __atomic_load_n(&from->said_ns, __ATOMIC_ACQUIRE);
		offer[i].asked_ns = __atomic_load_n(&from->asked_ns, __ATOMIC_RELAXED);
		offer[i].due_ns = __atomic_load_n(&from->due_ns, __ATOMIC_RELAXED);
		offer[i].work_ns = __atomic_load_n(&from->work_ns, __ATOMIC_RELAXED);
		offer[i].run_ns = __atomic_load_n(&from->run_ns, __ATOMIC_RELAXED);
		offer[i].alive_ns = __atomic_load_n(&from->alive_ns, __ATOMIC_RELAXED);
		__atomic_load(&from->worth, &offer[i].worth, __ATOMIC_RELAXED);
	}
}

void turns_want(struct turns *t, const struct turns_offer *offer, uint64_t now)
{
	uint64_t asked = t->own.said_ns != 0 ? t->own.asked_ns : now;

	t->own = *offer;
	t->own.asked_ns = asked;
	t->own.said_ns = t->own.alive_ns = now;
	t->heard = __atomic_load_n(&t->file->bell, __ATOMIC_ACQUIRE);
	turns_say(t);
}

void turns_want_no_more(struct turns *t, uint64_t now)
{
	t->own.said_ns = 0;
	t->own.alive_ns = now;
	t->heard = __atomic_load_n(&t->file->bell, __ATOMIC_ACQUIRE);
	turns_say(t);
}

uint64_t turns_ends(const struct turns *t, uint64_t now)
{
	uint64_t until = __atomic_load_n(&t->file->until_ns, __ATOMIC_RELAXED);

	return until > now && until < now + turns_longest(t, now) ? until : now;
}

uint64_t turns_longest(const struct turns *t, uint64_t now)
{
	struct turns_offer offer[TURNS_MEMBERS];

	turns_read(t, offer);
	return turns_longest_of(offer, TURNS_MEMBERS, now);
}

int turns_try(struct turns *t, uint64_t now)
{
	struct turns_offer offer[TURNS_MEMBERS];
	int first, ret;

	turns_read(t, offer);
	first = turns_first(offer, TURNS_MEMBERS, turns_ends(t, now), now);
	if (t->member >= 0 && first >= 0 && first != t->member)
		return 0;
	ret = turns_lock(t, F_OFD_SETLK, F_WRLCK, TURN);
	if (ret == -EAGAIN || ret == -EACCES)
		return 0;
	if (ret < 0)
		return ret;
	turns_want_no_more(t, now);
	return 1;
}

void turns_sleep(const struct turns *t, uint64_t ns)
{
	const struct timespec at_most = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	syscall(SYS_futex, &t->file->bell, FUTEX_WAIT, t->heard, &at_most, NULL, 0);
}

int turns_ask(struct turns *t, uint64_t run_ns, uint64_t now)
{
	const struct turns_offer offer = {.run_ns = run_ns};

	turns_want(t, &offer, now);
	return turns_try(t, now);
}

int turns_take(struct turns *t, uint64_t run_ns)
{
	int ret;

	while ((ret = turns_ask(t, run_ns, clock_now_ns())) == 0)
		turns_sleep(t, TURNS_SAY_NS);
	return ret < 0 ? ret : 0;
}

void turns_until(struct turns *t, uint64_t ns)
{
	__atomic_store_n(&t->file->until_ns, ns, __ATOMIC_RELAXED);
}

void turns_give(struct turns *t)
{
	turns_until(t, 0);
	turns_lock(t, F_OFD_SETLK, F_UNLCK, TURN);
	__atomic_add_fetch(&t->file->bell, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &t->file->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

bool turns_are_wanted(const struct turns *t)
{
	struct turns_offer offer[TURNS_MEMBERS];
	uint64_t now = clock_now_ns();

	turns_read(t, offer);
	for (int i = 0; i < TURNS_MEMBERS; i++)
		if (i != t->member && turns_counts(&offer[i], now))
			return true;
	return false;
}
