/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of a run: text, JSON, and the file with the latency distribution. */
#include "cli/bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_LOST  1
#define EXIT_ERROR 2
/*
 * Share of the median latency. When the generator was later than this, its delay distorts the
 * figures.
 */
#define LAG_TOLERATED 0.05

struct sums {
	struct ledger_counts counts;
	struct histogram latency, lag, by_target[MIX_TARGETS];
	uint64_t due, unsent, counted, answered_counted, unreachable;
	uint64_t counted_of[MIX_TARGETS], in_time[MIX_TARGETS], all_in_time;
	double seconds; /* duration of sending, without warm-up */
	double offered, achieved;
};

static int sums_init(struct sums *sums, unsigned int n_targets)
{
	int ret;

	memset(sums, 0, sizeof(*sums));
	ret = histogram_init(&sums->latency);
	if (ret == 0)
		ret = histogram_init(&sums->lag);
	for (unsigned int i = 0; i < n_targets && ret == 0; i++)
		ret = histogram_init(&sums->by_target[i]);
	return ret;
}

static void sums_fini(struct sums *sums)
{
	histogram_fini(&sums->latency);
	histogram_fini(&sums->lag);
	for (unsigned int i = 0; i < MIX_TARGETS; i++)
		histogram_fini(&sums->by_target[i]);
}

static void sums_add(struct sums *sums, const struct bench_thread *thread, unsigned int n_targets)
{
	ledger_counts_add(&sums->counts, &thread->ledger.counts);
	histogram_merge(&sums->lag, &thread->lag);
	for (unsigned int i = 0; i < n_targets; i++) {
		histogram_merge(&sums->latency, &thread->latency[i]);
		histogram_merge(&sums->by_target[i], &thread->latency[i]);
		sums->counted_of[i] += thread->counted_of[i];
		sums->in_time[i] += thread->in_time[i];
		sums->all_in_time += thread->in_time[i];
	}
	sums->due += thread->due;
	sums->unsent += thread->unsent;
	sums->counted += thread->counted;
	sums->answered_counted += thread->answered_counted;
	sums->unreachable += thread->unreachable;
}

/*
 * Rates of the run. A run that ended by time lasted its whole duration; a run that ended by its
 * count lasted until its last answer.
 */
static void sums_rates(struct sums *sums, const struct bench_options *o,
		       const struct bench_thread *threads, unsigned int n)
{
	uint64_t first = UINT64_MAX, last = 0;

	sums->seconds = o->duration_s;
	for (unsigned int i = 0; i < n && o->requests != 0; i++) {
		if (threads[i].counted == 0)
			continue;
		if (threads[i].first_ns < first)
			first = threads[i].first_ns;
		if (threads[i].last_answer_ns > last)
			last = threads[i].last_answer_ns;
	}
	if (last > first && (double)(last - first) / 1e9 < sums->seconds)
		sums->seconds = (double)(last - first) / 1e9;
	sums->offered = (double)sums->counted / sums->seconds;
	sums->achieved = (double)sums->answered_counted / sums->seconds;
}

static bool lag_matters(const struct sums *sums)
{
	return sums->latency.count != 0 &&
	       (double)histogram_value_ns(&sums->lag, 0.99) >
		       LAG_TOLERATED * (double)histogram_value_ns(&sums->latency, 0.5);
}

/* --- text ------------------------------------------------------------------------------------- */

static double us(const struct histogram *histogram, double of)
{
	return (double)histogram_value_ns(histogram, of) / 1e3;
}

static void print_latency(FILE *out, const char *what, const char *none, const struct histogram *h)
{
	if (h->count == 0) {
		fprintf(out, "%-11s -  %s\n", what, none);
		return;
	}
	fprintf(out,
		"%-11s p50 %.1f us  p90 %.1f us  p99 %.1f us  p99.9 %.1f us  max %.1f us  mean "
		"%.1f us\n",
		what, us(h, 0.5), us(h, 0.9), us(h, 0.99), us(h, 0.999), us(h, 1),
		histogram_mean_ns(h) / 1e3);
}

static void print_notices(FILE *out, const struct ledger_counts *counts)
{
	bool any = false;

	for (int code = NOTICE_NONE + 1; code < NOTICE_CODES; code++) {
		if (counts->notices[code] == 0)
			continue;
		fprintf(out, "%s%s %" PRIu64, any ? "  " : "notices     ", notice_name(code),
			counts->notices[code]);
		any = true;
	}
	if (any)
		fputc('\n', out);
}

static void print_text(FILE *out, const struct bench_options *o, const struct sums *sums)
{
	const struct ledger_counts *c = &sums->counts;
	const char *none;

	fprintf(out,
		"requests    %" PRIu64 "  answered %" PRIu64 "  lost %" PRIu64 "  refused %" PRIu64
		"  wrong %" PRIu64 "  duplicates %" PRIu64 "  late %" PRIu64 "\n",
		c->sent, c->answered, c->lost, c->refused, c->wrong + c->strangers, c->duplicates,
		c->late);
	print_notices(out, c);
	if (sums->unreachable != 0)
		fprintf(out, "unreachable %" PRIu64 " errors came back from the network\n",
			sums->unreachable);
	fprintf(out, "rate        %.1f/s sent, %.1f/s answered, over %.3f s\n", sums->offered,
		sums->achieved, sums->seconds);
	none = c->answered == 0 ? "no request was answered"
				: "no request was answered after the warm-up";
	print_latency(out, "latency", none, &sums->latency);
	for (unsigned int i = 0; i < o->mix.n_targets && o->mix.n_targets > 1; i++)
		print_latency(out, o->mix.target[i].name, none, &sums->by_target[i]);
	if (mix_has_deadlines(&o->mix))
		fprintf(out, "in time     %" PRIu64 " of %" PRIu64 "\n", sums->all_in_time,
			sums->counted);
	if (o->rate == 0)
		return;
	print_latency(out, "sent late", "no request was sent after the warm-up", &sums->lag);
	if (lag_matters(sums))
		fprintf(out, "            which the latencies above contain; give --threads or "
			     "--spin to be earlier\n");
	if (sums->unsent != 0)
		fprintf(out,
			"unsent      %" PRIu64 " of %" PRIu64 " that were due: too much for this "
			"generator; give --threads, or a lower --rate\n",
			sums->unsent, sums->due);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *notices_json(const struct ledger_counts *counts)
{
	json_t *object = json_object();

	for (int code = NOTICE_NONE + 1; code < NOTICE_CODES; code++)
		json_object_set_new(object, notice_name(code),
				    json_integer((json_int_t)counts->notices[code]));
	return object;
}

static json_t *targets_json(const struct bench_options *o, const struct sums *sums)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < o->mix.n_targets; i++)
		json_array_append_new(
			array, json_pack("{s:s, s:f, s:f, s:I, s:I, s:o}", "to",
					 o->mix.target[i].name, "share", o->mix.target[i].share,
					 "deadline_ms", (double)o->mix.target[i].deadline_ns / 1e6,
					 "counted", (json_int_t)sums->counted_of[i], "in_time",
					 (json_int_t)sums->in_time[i], "latency",
					 histogram_json(&sums->by_target[i], false)));
	return array;
}

static json_t *report_json(const struct bench_options *o, const struct sums *sums)
{
	const struct ledger_counts *c = &sums->counts;
	json_t *object = json_pack("{s:s, s:f, s:I, s:I, s:I, s:I, s:f, s:I}", "loop",
				   o->rate != 0 ? "open" : "closed", "rate", o->rate, "window",
				   (json_int_t)o->window, "flows", (json_int_t)o->flows, "threads",
				   (json_int_t)o->threads, "seed", (json_int_t)o->seed, "seconds",
				   sums->seconds, "due", (json_int_t)sums->due);
	json_t *counts =
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "requests",
			  (json_int_t)c->sent, "answered", (json_int_t)c->answered, "lost",
			  (json_int_t)c->lost, "refused", (json_int_t)c->refused, "wrong",
			  (json_int_t)(c->wrong + c->strangers), "duplicates",
			  (json_int_t)c->duplicates, "late", (json_int_t)c->late, "unsent",
			  (json_int_t)sums->unsent, "unreachable", (json_int_t)sums->unreachable,
			  "counted", (json_int_t)sums->counted, "notices_by_code", notices_json(c));

	json_object_set_new(object, "protocol", json_string(o->tcp ? "tcp" : "udp"));
	json_object_set_new(object, "verify", json_string(bench_verify_name(o->compare)));
	json_object_update(object, counts);
	json_decref(counts);
	json_object_set_new(object, "offered_rps", json_real(sums->offered));
	json_object_set_new(object, "answered_rps", json_real(sums->achieved));
	json_object_set_new(object, "in_time", json_integer((json_int_t)sums->all_in_time));
	json_object_set_new(object, "latency", histogram_json(&sums->latency, true));
	json_object_set_new(object, "sent_late", histogram_json(&sums->lag, false));
	json_object_set_new(object, "targets", targets_json(o, sums));
	return object;
}

static int print_json(FILE *out, const struct bench_options *o, const struct sums *sums)
{
	json_t *object = report_json(o, sums);
	int ret = json_dumpf(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));

	fputc('\n', out);
	json_decref(object);
	return ret == 0 ? 0 : -EIO;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int write_hgrm(const char *path, const struct histogram *latency)
{
	FILE *file = fopen(path, "w");
	int ret = 0;

	if (file == NULL)
		return -errno;
	histogram_print(latency, file);
	if (ferror(file))
		ret = -EIO;
	if (fclose(file) != 0)
		ret = -errno;
	return ret;
}

static int status_of(const struct bench_options *o, const struct sums *sums)
{
	const struct ledger_counts *c = &sums->counts;
	bool failed = c->lost > o->allow_lost || c->wrong != 0 || c->strangers != 0 ||
		      c->duplicates != 0 || sums->unsent != 0 || c->sent == 0;

	return failed ? EXIT_LOST : EXIT_SUCCESS;
}

int bench_report(const struct bench_options *options, struct bench_thread *threads, unsigned int n,
		 FILE *out)
{
	struct sums sums;
	int ret = sums_init(&sums, options->mix.n_targets), status;

	if (ret == 0) {
		for (unsigned int i = 0; i < n; i++)
			sums_add(&sums, &threads[i], options->mix.n_targets);
		sums_rates(&sums, options, threads, n);
		if (options->json)
			ret = print_json(out, options, &sums);
		else
			print_text(out, options, &sums);
	}
	if (ret == 0 && options->hgrm != NULL) {
		ret = write_hgrm(options->hgrm, &sums.latency);
		if (ret < 0)
			fprintf(stderr, "doorbell bench: --hgrm %s: %s\n", options->hgrm,
				strerror(-ret));
	} else if (ret < 0) {
		fprintf(stderr, "doorbell bench: %s\n", strerror(-ret));
	}
	status = status_of(options, &sums);
	sums_fini(&sums);
	return ret == 0 ? status : EXIT_ERROR;
}
