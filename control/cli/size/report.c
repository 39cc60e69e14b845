/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/size/size.h"

#include <inttypes.h>
#include <string.h>

static const char *const term_texts[SIZE_TERMS] = {
	[SIZE_TERM_NETWORK] = "the network's round trip",
	[SIZE_TERM_LINKS] = "links",
	[SIZE_TERM_SLOT] = "waiting in the load balancer for a slot",
	[SIZE_TERM_WORKER] = "waiting in the worker for the GPU",
	[SIZE_TERM_RUN] = "running the model",
};

/* Format a time: "850 us", "12.3 ms", "4.56 s". */
static const char *time_text(double us, char *buf, size_t size)
{
	if (us < 1000)
		snprintf(buf, size, "%.1f us", us);
	else if (us < 1e6)
		snprintf(buf, size, "%.2f ms", us / 1e3);
	else
		snprintf(buf, size, "%.2f s", us / 1e6);
	return buf;
}

static double sum_of(const double *term)
{
	double sum = 0;

	for (int t = 0; t < SIZE_TERMS; t++)
		sum += term[t];
	return sum;
}

static void print_workers(const struct size_question *q, const struct size_answer *a, FILE *out)
{
	fprintf(out, "workers     %" PRIu64 ", busy %.1f %% of the time", a->workers,
		a->result.busy * 100);
	if (q->workers == 0 && a->workers > a->workers_least)
		fprintf(out, "; %" PRIu64 " would keep up, not keep the limit", a->workers_least);
	fputc('\n', out);
	if (a->result.unstable)
		fprintf(out,
			"            overloaded: their queues grow as long as this lasts; they "
			"need "
			"%" PRIu64 " at least\n",
			a->workers_least);
}

static void print_latency(const struct size_question *q, const struct size_answer *a, FILE *out)
{
	char p50[32], p99[32], limit[32];

	fprintf(out, "latency     p50 %s  p99 %s", time_text(a->p50_us, p50, sizeof(p50)),
		time_text(a->p99_us, p99, sizeof(p99)));
	if (q->p99_us != 0)
		fprintf(out, "  of %s allowed%s", time_text(q->p99_us, limit, sizeof(limit)),
			a->found ? "" : ": TOO MUCH");
	fputc('\n', out);
	if (!a->found && q->p99_us != 0 && q->p99_us < q->rtt_us + size_run_us(q, 1))
		fprintf(out,
			"            a single request takes %s, however many workers there are\n",
			time_text(q->rtt_us + size_run_us(q, 1), p50, sizeof(p50)));
}

static void print_terms(const struct size_answer *a, FILE *out)
{
	double sum = sum_of(a->result.tail_us);
	char text[32];

	fprintf(out, "at the p99 ");
	for (int t = 0; t < SIZE_TERMS; t++)
		fprintf(out, " %s %s%s", size_term_name(t),
			time_text(a->result.tail_us[t], text, sizeof(text)),
			t < SIZE_TERMS - 1 ? "," : "\n");
	fprintf(out, "            most of it (%.0f %%) is %s\n",
		sum > 0 ? a->result.tail_us[a->dominant] / sum * 100 : 0, term_texts[a->dominant]);
}

static void print_links(const struct size_question *q, const struct size_answer *a, FILE *out)
{
	double client = q->rate * size_client_bytes(q, q->request_bytes) * 8 / 1e9;
	double fabric = q->rate * size_fabric_request_bytes(q) * 8 / 1e9;

	fprintf(out,
		"links       clients %" PRIu64 " of %g Gbit/s (%.2f Gbit/s of requests), fabric "
		"%" PRIu64 " of %g (%.2f)\n",
		a->client_links, q->client_gbps, client, a->fabric_links, q->fabric_gbps, fabric);
	fprintf(out,
		"window      %.1f KiB in flight fill a fabric link at this round trip; %" PRIu64
		" slots of %" PRIu64 " bytes are %.1f KiB\n",
		size_window_bytes(q->fabric_gbps, q->rtt_us) / 1024, q->slots * q->lcores,
		q->request_bytes, (double)(q->slots * q->lcores * q->request_bytes) / 1024);
}

static void print_slots(const struct size_question *q, const struct size_answer *a, FILE *out)
{
	double held = q->rtt_us / 2 + size_run_us(q, (double)q->max_batch);

	fprintf(out,
		"slots       %" PRIu64 " per worker and core are enough (--slots %" PRIu64
		"); that many allow %.0f requests/s per worker\n",
		a->slots_needed, q->slots, size_slot_rate(q, held));
}

static void print_cost(const struct size_question *q, FILE *out)
{
	double cost = size_cost(q), rtt = size_cost_rtt_us(q);
	char text[32];

	fprintf(out, "cost        remoting adds %.2f %% to a request alone, %g %% allowed: %s",
		cost * 100, q->epsilon * 100, cost <= q->epsilon ? "kept" : "NOT KEPT");
	if (cost > q->epsilon && rtt > 0)
		fprintf(out, "; a round trip of %s would", time_text(rtt, text, sizeof(text)));
	else if (cost > q->epsilon)
		fprintf(out, "; no round trip would, the links alone take longer");
	fputc('\n', out);
}

void size_print(const struct size_question *q, const struct size_answer *a, FILE *out)
{
	char text[32];

	print_workers(q, a, out);
	print_latency(q, a, out);
	print_terms(a, out);
	fprintf(out, "batches     %.2f of %" PRIu64 " on average; a full one takes %s\n",
		a->result.mean_batch, q->max_batch,
		time_text(size_run_us(q, (double)q->max_batch), text, sizeof(text)));
	print_slots(q, a, out);
	print_links(q, a, out);
	print_cost(q, out);
}

static json_t *terms_json(const double *term)
{
	json_t *object = json_object();

	for (int t = 0; t < SIZE_TERMS; t++)
		json_object_set_new(object, size_term_name(t), json_real(term[t]));
	return object;
}

json_t *size_json(const struct size_question *q, const struct size_answer *a)
{
	json_t *object =
		json_pack("{s:I, s:I, s:b, s:b, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:s}", "workers",
			  (json_int_t)a->workers, "workers_least", (json_int_t)a->workers_least,
			  "limit_kept", a->found, "overloaded", a->result.unstable, "load",
			  size_load(q, a->workers), "busy", a->result.busy, "mean_batch",
			  a->result.mean_batch, "slots_needed", (json_int_t)a->slots_needed,
			  "most_outstanding", (json_int_t)a->result.most_outstanding,
			  "client_links", (json_int_t)a->client_links, "fabric_links",
			  (json_int_t)a->fabric_links, "dominant", size_term_name(a->dominant));

	json_object_set_new(object, "latency", histogram_json(&a->result.latency, false));
	json_object_set_new(object, "mean_terms_us", terms_json(a->result.mean_us));
	json_object_set_new(object, "p99_terms_us", terms_json(a->result.tail_us));
	json_object_set_new(object, "capacity_rps", json_real(size_capacity(q)));
	json_object_set_new(object, "window_bytes",
			    json_real(size_window_bytes(q->fabric_gbps, q->rtt_us)));
	json_object_set_new(object, "cost", json_real(size_cost(q)));
	json_object_set_new(object, "cost_kept", json_boolean(size_cost(q) <= q->epsilon));
	json_object_set_new(object, "cost_rtt_us", json_real(size_cost_rtt_us(q)));
	return object;
}
