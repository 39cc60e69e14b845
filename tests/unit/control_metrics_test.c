/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics' text: values of samples, output in parts, and the rules of the format. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control_fake_lb.h"
#include "edge/view.h"
#include "server/rpc.h"
#include "view/view.h"

static struct lb *lb;
static struct window *window;
static struct view view;

static void set_up(void)
{
	struct latency *l;

	fake_eal();
	lb = fake_lb_create();
	window = window_create();
	view = (struct view){.lb = lb, .window = window, .start_ms = clock_now_ms()};
	l = fake_lb_latency(lb);
	l->bucket[LATENCY_RUN][latency_bucket(20000)] = 30;
	l->bucket[LATENCY_RUN][latency_bucket(3000000)] = 70;
	l->sum_ns[LATENCY_RUN] = 210600000;
}

static void tear_down(void)
{
	window_destroy(window);
	fake_lb_destroy(lb);
}

TestSuite(control_metrics, .init = set_up, .fini = tear_down, .timeout = 60);

/* Returns all of it, written in slices of <budget_us>; the caller frees it. */
static char *write_all(uint64_t budget_us, unsigned int *slices)
{
	struct metrics_walk walk = {0};
	struct text all = {0};

	*slices = 0;
	while (!walk.done) {
		struct text text = {0};

		view_metrics(&view, &walk, budget_us, &text);
		cr_assert_gt(text.n, 0, "a scrape would end here");
		text_add(&all, text.data, text.n);
		text_free(&text);
		++*slices;
	}
	text_add(&all, "", 1);
	cr_assert(!all.failed);
	return all.data;
}

static void expect_line(const char *line)
{
	unsigned int slices;
	char *text = write_all(UINT32_MAX, &slices), *found = strstr(text, line);

	cr_expect(found && (found == text || found[-1] == '\n'), "no line %s", line);
	free(text);
}

Test(control_metrics, counters_of_lcores_services_and_workers_are_there)
{
	fake_lb_worker(lb, "gpu0");
	expect_line("doorbell_lcore_received_packets_total{lcore=\"1\"} 2469134\n");
	expect_line("doorbell_service_requests_total{service=\"vision\"} 11\n");
	expect_line("doorbell_worker_requests_total{worker=\"gpu0\"} 110\n");
	expect_line("doorbell_worker_credits{worker=\"gpu0\"} 118\n");
	expect_line("doorbell_flows_capacity{lcore=\"0\"} 4096\n");
	expect_line("doorbell_stage_items_total{lcore=\"0\",stage=\"ingress\"} 100\n");
	expect_line("# UNIT doorbell_lcore_received_bytes bytes\n");
}

/* As an agent reports it: each size of batch has a sample, and what a driver does not tell has
 * none. */
Test(control_metrics, sizes_of_batches_and_gpus_are_there)
{
	struct worker *w = fake_lb_worker(lb, "gpu0");
	unsigned int slices;
	char *text;

	w->report = (struct worker_report){
		.n_sizes = 2,
		.size = {{1, 40, 32000}, {8, 5, 8000000}},
		.has_gpu = true,
		.gpu = {.utilization = 93,
			.memory_used = 5,
			.memory_total = 80,
			.temperature = 71,
			.power_mw = 700500,
			.ecc_corrected = 3,
			.ecc_uncorrected = -1,
			.xids = 1,
			.notice = "Xid 79"},
	};
	expect_line("doorbell_worker_batches_total{worker=\"gpu0\",rows=\"1\"} 40\n");
	expect_line("doorbell_worker_batches_total{worker=\"gpu0\",rows=\"8\"} 5\n");
	expect_line("doorbell_worker_batches_run_seconds_total{worker=\"gpu0\",rows=\"8\"} 8\n");
	expect_line("doorbell_worker_gpu_busy_ratio{worker=\"gpu0\"} 0.93\n");
	expect_line("doorbell_worker_gpu_memory_bytes{worker=\"gpu0\"} 80\n");
	expect_line("doorbell_worker_gpu_temperature_celsius{worker=\"gpu0\"} 71\n");
	expect_line("doorbell_worker_gpu_power_watts{worker=\"gpu0\"} 700.5\n");
	expect_line("doorbell_worker_gpu_ecc_corrected_total{worker=\"gpu0\"} 3\n");
	expect_line("doorbell_worker_gpu_xids_total{worker=\"gpu0\"} 1\n");
	expect_line("doorbell_worker_gpu_notice{worker=\"gpu0\"} 1\n");
	text = write_all(UINT32_MAX, &slices);
	cr_expect_null(strstr(text, "gpu_ecc_uncorrected_total{"));
	free(text);
}

Test(control_metrics, drops_are_summed_over_lcores_and_every_reason_has_a_sample)
{
	unsigned int slices;
	char *text = write_all(UINT32_MAX, &slices), part[96];

	expect_line("doorbell_drops_total{reason=\"ip_checksum\"} 10\n");
	for (unsigned int i = 0; i < LB_DROPS; i++) {
		snprintf(part, sizeof(part), "doorbell_drops_total{reason=\"%s\"} ",
			 lb_drop_name(i));
		cr_expect_not_null(strstr(text, part), "%s", part);
	}
	free(text);
}

Test(control_metrics, every_event_and_refusal_of_tcp_has_a_sample)
{
	unsigned int slices;
	char *text = write_all(UINT32_MAX, &slices), part[96];

	expect_line("doorbell_tcp_connections{lcore=\"1\"} 42\n");
	expect_line("doorbell_tcp_connections_limit{lcore=\"0\"} 1000\n");
	expect_line("doorbell_tcp_segments_in_total{lcore=\"0\"} 100\n");
	expect_line("doorbell_tcp_segments_out_total{lcore=\"1\"} 101\n");
#define EXPECT_EVENT(name, text_of)                                                                \
	cr_expect_not_null(strstr(text, "doorbell_tcp_" #name "_total{lcore=\"0\"} "), #name);
	TCP_COUNTER_LIST(EXPECT_EVENT)
#undef EXPECT_EVENT
	expect_line("doorbell_tls_handshakes{lcore=\"1\"} 5\n");
#define EXPECT_EVENT(name, text_of)                                                                \
	cr_expect_not_null(strstr(text, "doorbell_tls_" #name "_total{lcore=\"0\"} "), #name);
	TLS_COUNTER_LIST(EXPECT_EVENT)
#undef EXPECT_EVENT
	for (unsigned int i = TCP_REFUSAL_NONE + 1; i < TCP_REFUSALS; i++) {
		snprintf(part, sizeof(part), "doorbell_tcp_refused_segments_total{reason=\"%s\"} ",
			 tcp_refusal_name(i));
		cr_expect_not_null(strstr(text, part), "%s", part);
	}
	cr_expect_null(strstr(text, "reason=\"none\""));
	free(text);
}

Test(control_metrics, every_notice_code_that_clients_may_see_has_a_name)
{
	expect_line("doorbell_port_up{port=\"front\"} 1\n");
	expect_line("doorbell_port_up{port=\"fabric\"} 0\n");
	expect_line("doorbell_notices_total{code=\"busy\"} 14\n");
	expect_line("doorbell_notices_total{code=\"cancelled\"} 2\n");
	/* the fake load balancer sent each code that fits */
	expect_line("doorbell_notices_total{code=\"15\"} 2\n");
	for (unsigned int i = LB_NOTICE_BUSY; i <= LB_NOTICE_TOO_LARGE; i++) {
		char part[64];
		unsigned int slices;
		char *text = write_all(UINT32_MAX, &slices);

		snprintf(part, sizeof(part), "doorbell_notices_total{code=\"%u\"}", i);
		cr_expect_null(strstr(text, part), "code %u has no name", i);
		free(text);
	}
}

Test(control_metrics, histograms_count_what_is_below_each_bound)
{
	fake_lb_worker(lb, "gpu0");
	expect_line(
		"doorbell_service_gpu_run_seconds_bucket{service=\"chat\",le=\"1.6384e-05\"} 0\n");
	expect_line(
		"doorbell_service_gpu_run_seconds_bucket{service=\"chat\",le=\"2.048e-05\"} 30\n");
	expect_line("doorbell_service_gpu_run_seconds_bucket{service=\"chat\",le=\"+Inf\"} 100\n");
	expect_line("doorbell_service_gpu_run_seconds_count{service=\"chat\"} 100\n");
	expect_line("doorbell_service_gpu_run_seconds_sum{service=\"chat\"} 0.2106\n");
	expect_line(
		"doorbell_worker_gpu_run_seconds_bucket{worker=\"gpu0\",le=\"0.002097152\"} 30\n");
	expect_line(
		"doorbell_worker_gpu_run_seconds_bucket{worker=\"gpu0\",le=\"0.004194304\"} 100\n");
}

Test(control_metrics, a_worker_is_in_one_state)
{
	fake_lb_worker(lb, "gpu0");
	expect_line("doorbell_worker_state{worker=\"gpu0\",doorbell_worker_state=\"active\"} 1\n");
	expect_line(
		"doorbell_worker_state{worker=\"gpu0\",doorbell_worker_state=\"draining\"} 0\n");
	expect_line("doorbell_workers{state=\"active\"} 1\n");
	expect_line("doorbell_worker_info{worker=\"gpu0\",model=\"llama\",slots=\"64\",max_batch="
		    "\"8\"} 1\n");
}

Test(control_metrics, a_worker_s_place_is_in_its_labels)
{
	struct worker *w = fake_lb_worker(lb, "gpu0");
	static const char *const labels[][2] = {
		{"host", "gpu7"}, {"rack", "3"}, {"nvlink", "gpu7/switch"}};

	for (unsigned int i = 0; i < 3; i++) {
		strcpy(w->spec.label[i].key, labels[i][0]);
		strcpy(w->spec.label[i].value, labels[i][1]);
	}
	w->spec.n_labels = 3;
	expect_line("doorbell_worker_info{worker=\"gpu0\",model=\"llama\",slots=\"64\",max_batch="
		    "\"8\",host=\"gpu7\",nvlink=\"gpu7/switch\"} 1\n");
}

Test(control_metrics, what_would_end_a_label_is_escaped)
{
	snprintf(fake_lb_config(lb)->service[0].name, LB_NAME_MAX, "a\"b\\c");
	expect_line("doorbell_service_requests_total{service=\"a\\\"b\\\\c\"} 10\n");
}

Test(control_metrics, writing_in_pieces_writes_the_same)
{
	unsigned int slices, one;
	char *whole, *pieces, *a, *b;

	for (unsigned int i = 0; i < 50; i++) {
		char name[16];

		snprintf(name, sizeof(name), "gpu%u", i);
		fake_lb_worker(lb, name);
	}
	fake_lb_halt(lb); /* the counters stand still */
	whole = write_all(UINT32_MAX, &one);
	pieces = write_all(0, &slices);
	cr_expect_eq(one, 1);
	cr_expect_gt(slices, 50);
	/* all but the time, which goes on */
	a = strstr(whole, "# TYPE doorbell_lcore_received_packets");
	b = strstr(pieces, "# TYPE doorbell_lcore_received_packets");
	cr_assert(a && b);
	cr_expect_str_eq(a, b);
	free(whole);
	free(pieces);
}

Test(control_metrics, the_text_is_clean_to_the_lint)
{
	char path[] = "/tmp/doorbell-metrics-XXXXXX", command[512];
	int fd = mkstemp(path);
	unsigned int slices;
	char *text;

	snprintf(fake_lb_config(lb)->service[0].name, LB_NAME_MAX, "a\"b\\c");
	fake_lb_worker(lb, "gpu0");
	lb_worker_drain(lb, fake_lb_worker(lb, "gpu1"));
	window_sample(window, lb, 1000);
	window_sample(window, lb, 2000);
	text = write_all(0, &slices);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	snprintf(command, sizeof(command), "python3 " OPENMETRICS_LINT " %s", path);
	cr_expect_eq(system(command), 0);
	unlink(path);
	free(text);
}

static unsigned int n_seen;

static void names_are_exported(const char *metrics, char *dashboard)
{
	char *save = NULL;

	for (char *word = strtok_r(dashboard, " \t\n\"'(){}[],+-*/<>=!:;|\\", &save); word;
	     word = strtok_r(NULL, " \t\n\"'(){}[],+-*/<>=!:;|\\", &save)) {
		char sample[128];

		if (strncmp(word, "doorbell_", 9) != 0)
			continue;
		n_seen++;
		snprintf(sample, sizeof(sample), "\n%s{", word);
		if (strstr(metrics, sample))
			continue;
		snprintf(sample, sizeof(sample), "\n%s ", word);
		cr_expect_not_null(strstr(metrics, sample), "%s is not exported", word);
	}
}

Test(control_metrics, every_metric_that_the_dashboard_draws_is_exported)
{
	unsigned int slices;
	FILE *file = fopen(GRAFANA_DASHBOARD, "r");
	char *text, *dashboard = calloc(1, 1 << 20);
	json_t *parsed;

	cr_assert_not_null(file);
	cr_assert_gt(fread(dashboard, 1, (1 << 20) - 1, file), 1000);
	fclose(file);
	parsed = json_loads(dashboard, 0, NULL);
	cr_expect_not_null(parsed, "not JSON");
	json_decref(parsed);
	fake_lb_worker(lb, "gpu0");
	text = write_all(UINT32_MAX, &slices);
	names_are_exported(text, dashboard);
	cr_expect_gt(n_seen, 20);
	free(text);
	free(dashboard);
}

Test(control_metrics, a_worker_that_has_not_beaten_has_no_age_of_a_heartbeat)
{
	struct worker *worker = fake_lb_worker(lb, "gpu0");
	unsigned int slices;
	char *text;

	expect_line("doorbell_worker_heartbeat_age_seconds{worker=\"gpu0\"} 0\n");
	worker->heartbeat_ms = 0;
	text = write_all(UINT32_MAX, &slices);
	cr_expect_null(strstr(text, "doorbell_worker_heartbeat_age_seconds{"));
	free(text);
}

/* Returns the first reason why it is not ready, or NULL. The caller frees it. */
static char *not_ready(void)
{
	struct text reasons = {0};

	if (view_ready(&view, &reasons)) {
		cr_expect_eq(reasons.n, 0);
		return NULL;
	}
	text_add(&reasons, "", 1);
	return reasons.data;
}

Test(control_metrics, it_is_ready_while_lcores_turn_and_a_service_has_a_worker)
{
	struct worker *worker;
	char *reason = not_ready();

	cr_assert_str_eq(reason, "no service has an active worker\n");
	free(reason);
	worker = fake_lb_worker(lb, "gpu0");
	cr_expect_null(not_ready());
	window_sample(window, lb, 1000);
	window_sample(window, lb, 2000);
	cr_expect_null(not_ready());
	fake_lb_halt(lb);
	window_sample(window, lb, 3000);
	reason = not_ready();
	cr_assert_not_null(reason);
	cr_expect_not_null(strstr(reason, "lcore 1 has not polled for a second\n"));
	free(reason);
	fake_lb_stopping(lb);
	reason = not_ready();
	cr_assert_not_null(reason);
	cr_expect_eq(strncmp(reason, "it is stopping\n", 15), 0);
	free(reason);
	fake_lb_kill(lb, worker);
}

Test(control_metrics, the_end_of_the_certificate_is_there_where_one_is)
{
	time_t end = 1795327200;
	unsigned int slices;
	char *text = write_all(UINT32_MAX, &slices);

	cr_expect_null(strstr(text, "\ndoorbell_tls_not_after_seconds "));
	free(text);
	view.tls_not_after = &end;
	expect_line("doorbell_tls_not_after_seconds 1795327200\n");
}

Test(control_metrics, refused_registrations_are_counted)
{
	struct refusals refusals = {0};

	expect_line("doorbell_registrations_refused_total 0\n");
	view.refusals = &refusals;
	refusals_note(&refusals, "10.0.0.5:1", "gpu0", "chat", "no service", 1);
	refusals_note(&refusals, "10.0.0.5:2", "gpu0", "chat", "no service", 2);
	expect_line("doorbell_registrations_refused_total 2\n");
}
