/* SPDX-License-Identifier: BSD-3-Clause */
/* The number of workers: the fewest with which the simulation keeps the limit. */
#include "cli/size/size.h"

#include <errno.h>
#include <string.h>

static bool keeps_limit(const struct size_question *q, const struct size_result *result)
{
	return !result->unstable &&
	       (q->p99_us == 0 ||
		(double)histogram_value_ns(&result->latency, 0.99) / 1e3 <= q->p99_us);
}

/* Simulate <workers>; the result replaces the one in <answer>. */
static int try(const struct size_question *q, uint64_t workers, struct size_answer *answer)
{
	int ret;

	size_result_fini(&answer->result);
	ret = size_simulate(q, workers, &answer->result);
	answer->workers = workers;
	answer->found = ret == 0 && keeps_limit(q, &answer->result);
	return ret;
}

/* True when one request alone takes longer than the limit: more workers do not help. */
static bool is_hopeless(const struct size_question *q)
{
	return q->p99_us != 0 && q->p99_us < q->rtt_us + size_run_us(q, 1);
}

/* Increase the workers until the limit is kept, then bisect down to the last number that fails. */
static int search(const struct size_question *q, struct size_answer *answer)
{
	uint64_t low = answer->workers_least - 1, high = answer->workers_least, step = 1;
	int ret = try(q, high, answer);

	while (ret == 0 && !answer->found && high < SIZE_WORKERS_MAX && !is_hopeless(q)) {
		low = high;
		high = high + step < SIZE_WORKERS_MAX ? high + step : SIZE_WORKERS_MAX;
		step *= 2;
		ret = try(q, high, answer);
	}
	if (ret != 0 || !answer->found)
		return ret;
	while (ret == 0 && high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		ret = try(q, middle, answer);
		if (answer->found)
			high = middle;
		else
			low = middle;
	}
	return ret == 0 && answer->workers != high ? try(q, high, answer) : ret;
}

static uint64_t power_of_two(uint64_t n)
{
	uint64_t power = 2;

	while (power < n)
		power *= 2;
	return power;
}

static enum size_term largest(const double *term)
{
	enum size_term largest = 0;

	for (int t = 1; t < SIZE_TERMS; t++)
		if (term[t] > term[largest])
			largest = (enum size_term)t;
	return largest;
}

static uint64_t busier(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

int size_answer(const struct size_question *q, struct size_answer *answer)
{
	int ret;

	memset(answer, 0, sizeof(*answer));
	answer->workers_least = size_workers_least(q);
	if (q->workers != 0)
		ret = try(q, q->workers, answer);
	else if (answer->workers_least > SIZE_WORKERS_MAX)
		ret = -ERANGE;
	else
		ret = search(q, answer);
	if (ret != 0)
		return ret;
	answer->p50_us = (double)histogram_value_ns(&answer->result.latency, 0.5) / 1e3;
	answer->p99_us = (double)histogram_value_ns(&answer->result.latency, 0.99) / 1e3;
	answer->slots_needed =
		power_of_two((answer->result.most_outstanding + q->lcores - 1) / q->lcores);
	answer->client_links =
		busier(size_links(q, size_client_bytes(q, q->request_bytes), q->client_gbps),
		       size_links(q, size_client_bytes(q, q->reply_bytes), q->client_gbps));
	answer->fabric_links = busier(size_links(q, size_fabric_request_bytes(q), q->fabric_gbps),
				      size_links(q, size_fabric_reply_bytes(q), q->fabric_gbps));
	answer->dominant = largest(answer->result.tail_us);
	return 0;
}

void size_answer_fini(struct size_answer *answer)
{
	size_result_fini(&answer->result);
}
