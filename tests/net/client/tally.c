/* SPDX-License-Identifier: BSD-3-Clause */
#include "tally.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_FIRST  4096
#define TIMELINE_FIRST 128

int tally_init(struct tally *tally, size_t n_flows)
{
	memset(tally, 0, sizeof(*tally));
	tally->gap_ns = calloc(n_flows, sizeof(*tally->gap_ns));
	tally->n_flows = n_flows;
	return tally->gap_ns != NULL ? 0 : -ENOMEM;
}

void tally_fini(struct tally *tally)
{
	free(tally->records);
	free(tally->timeline);
	free(tally->gap_ns);
}

/* Makes room for <index> in an array of <n> zeroed elements. */
static int array_grow(void **array, size_t *n, size_t index, size_t element, size_t first)
{
	size_t more = *n != 0 ? *n : first;
	uint8_t *grown;

	while (more <= index)
		more *= 2;
	grown = reallocarray(*array, more, element);
	if (grown == NULL)
		return -ENOMEM;
	memset(grown + *n * element, 0, (more - *n) * element);
	*array = grown;
	*n = more;
	return 0;
}

struct record *tally_record(struct tally *tally, size_t index)
{
	if (index >= tally->n_records &&
	    array_grow((void **)&tally->records, &tally->n_records, index, sizeof(*tally->records),
		       RECORDS_FIRST) != 0)
		return NULL;
	return &tally->records[index];
}

int tally_answer(struct tally *tally, struct record *record, uint64_t now)
{
	size_t step = (now - tally->start_ns) / TALLY_STEP_NS;

	if (step >= tally->n_timeline &&
	    array_grow((void **)&tally->timeline, &tally->n_timeline, step,
		       sizeof(*tally->timeline), TIMELINE_FIRST) != 0)
		return -ENOMEM;
	tally->timeline[step]++;
	tally->answered++;
	tally->end_ns = now;
	record->ns = now - record->ns;
	record->state = RECORD_ANSWERED;
	return 0;
}

int tally_add(struct tally *tally, const struct tally *other)
{
	size_t n = tally->n_records;

	if (other->n_records > 0) {
		if (tally_record(tally, n + other->n_records - 1) == NULL)
			return -ENOMEM;
		memcpy(&tally->records[n], other->records,
		       other->n_records * sizeof(*other->records));
	}
	for (int code = 0; code < NOTICE_CODES; code++)
		tally->notices[code] += other->notices[code];
	tally->requests += other->requests;
	tally->answered += other->answered;
	tally->lost += other->lost;
	tally->refused += other->refused;
	tally->wrong += other->wrong;
	tally->duplicates += other->duplicates;
	tally->late += other->late;
	tally->unreachable += other->unreachable;
	if (other->start_ns < tally->start_ns)
		tally->start_ns = other->start_ns;
	if (other->end_ns > tally->end_ns)
		tally->end_ns = other->end_ns;
	return 0;
}

double tally_seconds(const struct tally *tally)
{
	return (double)(tally->end_ns - tally->start_ns) / 1e9;
}

uint64_t tally_notices(const struct tally *tally)
{
	uint64_t sum = 0;

	for (int code = 0; code < NOTICE_CODES; code++)
		sum += tally->notices[code];
	return sum;
}

uint64_t tally_longest_gap_ns(const struct tally *tally)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < tally->n_flows; i++)
		if (tally->gap_ns[i] > longest)
			longest = tally->gap_ns[i];
	return longest;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t *tally_latencies(const struct tally *tally)
{
	uint64_t *latencies = malloc((tally->answered + 1) * sizeof(*latencies));
	size_t n = 0;

	if (latencies == NULL)
		return NULL;
	for (size_t i = 0; i < tally->n_records; i++)
		if (tally->records[i].state == RECORD_ANSWERED)
			latencies[n++] = tally->records[i].ns;
	qsort(latencies, n, sizeof(*latencies), by_value);
	return latencies;
}

double tally_percentile_us(const uint64_t *sorted, size_t n, double of)
{
	size_t rank = (size_t)((double)n * of);

	if (n == 0)
		return 0;
	/* Nearest rank: the smallest value that at least this fraction does not exceed. */
	if ((double)rank < (double)n * of)
		rank++;
	return (double)sorted[rank > 0 ? rank - 1 : 0] / 1e3;
}

double tally_rps(const struct tally *tally)
{
	double seconds = tally_seconds(tally);

	return seconds > 0 ? (double)tally->answered / seconds : 0;
}

static json_t *timeline_json(const struct tally *tally)
{
	size_t steps = (tally->end_ns - tally->start_ns) / TALLY_STEP_NS + 1;
	json_t *array = json_array();

	for (size_t i = 0; i < steps; i++)
		json_array_append_new(
			array,
			json_integer(i < tally->n_timeline ? (json_int_t)tally->timeline[i] : 0));
	return array;
}

static json_t *gaps_json(const struct tally *tally)
{
	json_t *array = json_array();

	for (size_t i = 0; i < tally->n_flows; i++)
		json_array_append_new(array, json_real((double)tally->gap_ns[i] / 1e6));
	return array;
}

static json_t *notices_json(const struct tally *tally)
{
	json_t *object = json_object();

	for (int code = NOTICE_NONE + 1; code < NOTICE_CODES; code++)
		json_object_set_new(object, notice_name(code),
				    json_integer((json_int_t)tally->notices[code]));
	return object;
}

json_t *tally_json(const struct tally *tally)
{
	uint64_t *sorted = tally_latencies(tally);
	json_t *object;

	if (sorted == NULL)
		return NULL;
	object = json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:f, s:f, s:f, s:f, s:f,"
		" s:o, s:i, s:o}",
		"requests", (json_int_t)tally->requests, "answered", (json_int_t)tally->answered,
		"lost", (json_int_t)tally->lost, "refused", (json_int_t)tally->refused, "wrong",
		(json_int_t)tally->wrong, "duplicates", (json_int_t)tally->duplicates, "late",
		(json_int_t)tally->late, "unreachable", (json_int_t)tally->unreachable, "notices",
		(json_int_t)tally_notices(tally), "notices_by_code", notices_json(tally), "p50_us",
		tally_percentile_us(sorted, tally->answered, 0.5), "p99_us",
		tally_percentile_us(sorted, tally->answered, 0.99), "p999_us",
		tally_percentile_us(sorted, tally->answered, 0.999), "rps", tally_rps(tally),
		"seconds", tally_seconds(tally), "longest_gap_ms",
		(double)tally_longest_gap_ns(tally) / 1e6, "gap_ms_by_socket", gaps_json(tally),
		"timeline_step_ms", (int)(TALLY_STEP_NS / 1000000), "timeline",
		timeline_json(tally));
	free(sorted);
	return object;
}

static void notices_print(const struct tally *tally)
{
	printf("notices     %" PRIu64, tally_notices(tally));
	for (int code = NOTICE_NONE + 1; code < NOTICE_CODES; code++)
		if (tally->notices[code] != 0)
			printf("  %s %" PRIu64, notice_name(code), tally->notices[code]);
	printf("\n");
}

void tally_print(const struct tally *tally)
{
	uint64_t *sorted = tally_latencies(tally);

	printf("requests    %" PRIu64 "  answered %" PRIu64 "  lost %" PRIu64 "  refused %" PRIu64
	       "  wrong %" PRIu64 "  duplicates %" PRIu64 "  late %" PRIu64 "\n",
	       tally->requests, tally->answered, tally->lost, tally->refused, tally->wrong,
	       tally->duplicates, tally->late);
	if (tally_notices(tally) != 0)
		notices_print(tally);
	if (tally->unreachable != 0)
		printf("unreachable %" PRIu64 " errors came back from the network\n",
		       tally->unreachable);
	if (sorted != NULL)
		printf("latency     p50 %.1f us  p99 %.1f us  p99.9 %.1f us\n",
		       tally_percentile_us(sorted, tally->answered, 0.5),
		       tally_percentile_us(sorted, tally->answered, 0.99),
		       tally_percentile_us(sorted, tally->answered, 0.999));
	printf("rate        %.0f replies/s over %.3f s\n", tally_rps(tally), tally_seconds(tally));
	printf("gap         %.1f ms was the longest time without a reply on a socket\n",
	       (double)tally_longest_gap_ns(tally) / 1e6);
	free(sorted);
}
