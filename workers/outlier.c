/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdlib.h>

#include "outlier.h"

static uint64_t window_mean(const struct outlier_window *w)
{
	return w->replies == 0 ? 0 : w->total_ns / w->replies;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool has_enough_replies(const struct outlier_rules *rules, const struct outlier_window *w)
{
	return w->replies >= rules->replies_min && w->replies > 0;
}

static uint64_t error_permille(const struct outlier_window *w)
{
	return w->replies == 0 ? 0 : w->errors * 1000 / w->replies;
}

/* The lower median over workers with enough replies; UINT64_MAX when fewer than two have them. */
static uint64_t window_median(const struct outlier_rules *rules, const struct outlier_window *w,
			      unsigned int n, uint64_t (*value)(const struct outlier_window *w))
{
	uint64_t *values = calloc(n, sizeof(*values)), middle = UINT64_MAX;
	unsigned int m = 0;

	for (unsigned int i = 0; values != NULL && i < n; i++)
		if (has_enough_replies(rules, &w[i]))
			values[m++] = value(&w[i]);
	if (m >= 2) {
		qsort(values, m, sizeof(*values), by_value);
		middle = values[(m - 1) / 2];
	}
	free(values);
	return middle;
}

struct medians {
	uint64_t mean, error_permille;
};

static enum outlier_verdict outlier_verdict_of(const struct outlier_rules *rules,
					       const struct outlier_window *w,
					       const struct medians *others)
{
	if (!has_enough_replies(rules, w))
		return OUTLIER_NONE;
	if (rules->error_percent != 0 && error_permille(w) > rules->error_percent * 10 &&
	    others->error_permille < rules->error_percent * 5)
		return OUTLIER_ERRORS;
	if (rules->latency_factor != 0 && others->mean != UINT64_MAX &&
	    window_mean(w) > others->mean * rules->latency_factor)
		return OUTLIER_LATENCY;
	return OUTLIER_NONE;
}

/* True when <a> is worse: errors are worse than latency, then more errors, then longer replies. */
static bool is_worse(const struct outlier_window *a, enum outlier_verdict va,
		     const struct outlier_window *b, enum outlier_verdict vb)
{
	if (va != vb)
		return va == OUTLIER_ERRORS;
	if (va == OUTLIER_ERRORS)
		return error_permille(a) > error_permille(b);
	return window_mean(a) > window_mean(b);
}

/* Withdraw the mildest verdict. */
static void outlier_pardon(const struct outlier_window *window, unsigned int n,
			   enum outlier_verdict *verdict)
{
	int mildest = -1;

	for (unsigned int i = 0; i < n; i++)
		if (verdict[i] != OUTLIER_NONE &&
		    (mildest < 0 ||
		     is_worse(&window[mildest], verdict[mildest], &window[i], verdict[i])))
			mildest = i;
	if (mildest >= 0)
		verdict[mildest] = OUTLIER_NONE;
}

void outlier_judge(const struct outlier_rules *rules, const struct outlier_window *window,
		   unsigned int n, unsigned int out, enum outlier_verdict *verdict)
{
	const struct medians others = {
		.mean = window_median(rules, window, n, window_mean),
		.error_permille = window_median(rules, window, n, error_permille),
	};
	unsigned int guilty = 0, most = (n + out) / 2;

	for (unsigned int i = 0; i < n; i++) {
		verdict[i] = outlier_verdict_of(rules, &window[i], &others);
		guilty += verdict[i] != OUTLIER_NONE;
	}
	most = most > out ? most - out : 0;
	for (; guilty > most; guilty--)
		outlier_pardon(window, n, verdict);
}
