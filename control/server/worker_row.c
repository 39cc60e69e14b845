/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/sha.h>

#include "server/row.h"
#include "server/rpc.h"

#define BYTES_PER_MBIT 125000

static const struct writer_counter summary_counters[] = {
	WRITER_COUNTER(lb_link_stats, outstanding), WRITER_COUNTER(lb_link_stats, credits),
	WRITER_COUNTER(lb_link_stats, requests),    WRITER_COUNTER(lb_link_stats, replies),
	WRITER_COUNTER(lb_link_stats, errors),      WRITER_COUNTER(lb_link_stats, lost),
	WRITER_COUNTER(lb_link_stats, backlog),
};

static const struct writer_counter page_counters[] = {
	WRITER_COUNTER(lb_link_stats, packets_sent),
	WRITER_COUNTER(lb_link_stats, packets_received),
	WRITER_COUNTER(lb_link_stats, acks_received),
	WRITER_COUNTER(lb_link_stats, naks_received),
	WRITER_COUNTER(lb_link_stats, naks_sent),
	WRITER_COUNTER(lb_link_stats, rnr_naks_received),
	WRITER_COUNTER(lb_link_stats, duplicates),
	WRITER_COUNTER(lb_link_stats, out_of_order),
	WRITER_COUNTER(lb_link_stats, ecn_marked),
	WRITER_COUNTER(lb_link_stats, cnps_sent),
	WRITER_COUNTER(lb_link_stats, cnps_received),
	WRITER_COUNTER(lb_link_stats, heartbeats),
	WRITER_COUNTER(lb_link_stats, unacked),
	WRITER_COUNTER(lb_link_stats, room),
	WRITER_COUNTER(lb_link_stats, room_used),
};

/* Both clocks count ms; lb_now_ms() has the low half. */
int64_t control_heartbeat_age(const struct lb *lb, const struct worker *worker)
{
	int32_t age = (int32_t)(lb_now_ms(lb) - (uint32_t)worker->heartbeat_ms);

	if (worker->heartbeat_ms == 0)
		return -1;
	return age > 0 ? age : 0;
}

static void worker_row_write_heartbeat(struct json_writer *w, const struct lb *lb,
				       const struct worker *worker)
{
	int64_t age = control_heartbeat_age(lb, worker);

	if (age < 0)
		writer_null(w, "heartbeat_age_ms");
	else
		writer_integer(w, "heartbeat_age_ms", (uint64_t)age);
}

void worker_row_write_summary(struct json_writer *w, struct lb *lb, const struct worker *worker,
			      const struct lb_link_stats *stats)
{
	writer_string(w, "name", worker->spec.name);
	writer_string(w, "model", worker->spec.model);
	writer_string(w, "state", control_worker_state_name(lb, worker));
	writer_string(w, "reason", worker->reason);
	writer_integer(w, "weight", worker->spec.weight);
	writer_counters(w, summary_counters, CONTROL_COUNT_OF(summary_counters), stats);
	worker_row_write_heartbeat(w, lb, worker);
}

void worker_row_write_labels(struct json_writer *w, const struct worker *worker)
{
	writer_open_object(w, "labels");
	for (unsigned int i = 0; i < worker->spec.n_labels; i++)
		writer_string(w, worker->spec.label[i].key, worker->spec.label[i].value);
	writer_close_object(w);
}

void worker_row_write_services(struct json_writer *w, const struct lb *lb,
			       const struct worker *worker)
{
	const struct lb_config *config = lb_config_get(lb);

	writer_open_array(w, "services");
	for (unsigned int i = 0; i < config->n_services; i++)
		if (lb_worker_serves(lb, worker, i))
			writer_string(w, NULL, config->service[i].name);
	writer_close_array(w);
}

/*
 * Write a number that tells two starts of an agent apart. The instance itself stays secret: an
 * agent takes over its registration with it, and a user who lists workers must not be able to do
 * that.
 */
static void worker_row_write_instance(struct json_writer *w, const struct worker_spec *spec)
{
	uint64_t instance = htobe64(spec->instance), first;
	unsigned char digest[SHA256_DIGEST_LENGTH];
	char text[17];

	SHA256((const unsigned char *)&instance, sizeof(instance), digest);
	memcpy(&first, digest, sizeof(first));
	snprintf(text, sizeof(text), "%016" PRIx64, be64toh(first));
	writer_string(w, "instance", text);
}

/* Objects by size of batch: batches that were run, and the mean run time. */
static void worker_row_write_sizes(struct json_writer *w, const struct worker_report *report)
{
	char rows[16];

	writer_open_object(w, "batches");
	for (uint32_t i = 0; i < report->n_sizes; i++) {
		snprintf(rows, sizeof(rows), "%u", report->size[i].rows);
		writer_integer(w, rows, report->size[i].batches);
	}
	writer_close_object(w);
	writer_open_object(w, "batch_run_us");
	for (uint32_t i = 0; i < report->n_sizes; i++) {
		const struct worker_size *size = &report->size[i];

		snprintf(rows, sizeof(rows), "%u", size->rows);
		if (size->batches > 0)
			writer_integer(w, rows, size->run_us / size->batches);
	}
	writer_close_object(w);
}

static void worker_row_write_known(struct json_writer *w, const char *key, int64_t value)
{
	if (value < 0)
		writer_null(w, key);
	else
		writer_integer(w, key, (uint64_t)value);
}

static void worker_row_write_gpu(struct json_writer *w, const struct worker_report *report)
{
	const struct worker_gpu *gpu = &report->gpu;

	if (!report->has_gpu)
		return writer_null(w, "gpu");
	writer_open_object(w, "gpu");
	worker_row_write_known(w, "utilization", gpu->utilization);
	worker_row_write_known(w, "memory_used", gpu->memory_used);
	worker_row_write_known(w, "memory_total", gpu->memory_total);
	worker_row_write_known(w, "temperature", gpu->temperature);
	worker_row_write_known(w, "power_mw", gpu->power_mw);
	worker_row_write_known(w, "ecc_corrected", gpu->ecc_corrected);
	worker_row_write_known(w, "ecc_uncorrected", gpu->ecc_uncorrected);
	worker_row_write_known(w, "xids", gpu->xids);
	writer_string(w, "notice", gpu->notice);
	writer_close_object(w);
}

static void worker_row_write_page(struct json_writer *w, const struct worker *worker,
				  const struct lb_link_stats *stats)
{
	const struct worker_spec *spec = &worker->spec;

	if (spec->description != NULL)
		writer_string(w, "model_version", spec->description->version);
	else
		writer_null(w, "model_version");
	writer_integer(w, "min_request", spec->min_request);
	writer_integer(w, "number", worker->number);
	writer_integer(w, "generation", worker->generation);
	worker_row_write_instance(w, spec);
	writer_integer(w, "max_request", spec->max_request);
	writer_integer(w, "max_reply", spec->max_reply);
	writer_integer(w, "max_batch", spec->max_batch);
	writer_integer(w, "heartbeat_ms", spec->heartbeat_ms);
	writer_counters(w, page_counters, CONTROL_COUNT_OF(page_counters), stats);
	/* null while there is no rate limit */
	if (stats->rate == 0)
		writer_null(w, "rate_mbit");
	else
		writer_integer(w, "rate_mbit", stats->rate / BYTES_PER_MBIT);
	worker_row_write_sizes(w, &worker->report);
	worker_row_write_gpu(w, &worker->report);
}

void worker_row_write(struct json_writer *w, const char *key, struct lb *lb,
		      const struct worker *worker, enum row_detail detail)
{
	struct lb_link_stats stats;

	lb_worker_stats_read(lb, worker, &stats);
	writer_open_object(w, key);
	worker_row_write_summary(w, lb, worker, &stats);
	writer_integer(w, "slots", worker->spec.slots);
	writer_integer(w, "agent_weight", worker->own_weight);
	writer_boolean(w, "drain", worker->drain);
	/* null while the agent is heard */
	if (worker->uncontrolled)
		writer_integer(w, "control_lost_ms", lb_now_ms(lb) - worker->uncontrolled_ms);
	else
		writer_null(w, "control_lost_ms");
	writer_integer(w, "timeouts", stats.timeouts);
	writer_integer(w, "resent", stats.packets_resent);
	writer_mean(w, "mean_wait_us", stats.wait_ns / 1000, stats.replies);
	writer_mean(w, "mean_run_us", stats.run_ns / 1000, stats.replies);
	writer_mean(w, "mean_total_us", stats.total_ns / 1000, stats.replies);
	worker_row_write_labels(w, worker);
	worker_row_write_services(w, lb, worker);
	if (detail == ROW_PAGE)
		worker_row_write_page(w, worker, &stats);
	writer_close_object(w);
}
