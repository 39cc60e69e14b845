/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-controller serve: the controller; bench-controller work: a worker of it; bench-controller
 * ideal: what could be had.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictable/peer.h"
#include "predictable/wire.h"
#include "runtime/option_table.h"

#define BYTES_MAX (64u << 20)
#define US_MAX    10000000

/* PORT,BASE-US,EACH-US,MAX-BATCH, of the model after <models>. */
static int peer_read_model(const char *text, uint32_t models, uint32_t *port, struct plan_model *m,
			   char *error, size_t size)
{
	int end = 0;

	*m = (struct plan_model){0};
	if (models < PLAN_MODELS_MAX &&
	    sscanf(text, "%u,%u,%u,%u%n", port, &m->base_us, &m->each_us, &m->max_batch, &end) ==
		    4 &&
	    text[end] == '\0' && *port != 0 && *port <= UINT16_MAX && m->base_us <= US_MAX &&
	    m->each_us <= US_MAX && m->max_batch != 0 && m->max_batch <= WIRE_BATCH_MAX)
		return 0;
	snprintf(error, size, "is not PORT,BASE-US,EACH-US,MAX-BATCH, or one too many");
	return -EINVAL;
}

static int peer_take_model(void *context, const char *text, char *error, size_t size)
{
	struct peer_serve_options *o = context;
	struct plan_model m;
	uint32_t port;

	if (peer_read_model(text, o->models, &port, &m, error, size) != 0)
		return -EINVAL;
	o->port[o->models] = port;
	o->model[o->models++] = m;
	return 0;
}

static int peer_take_ideal_model(void *context, const char *text, char *error, size_t size)
{
	struct peer_ideal_options *o = context;
	struct plan_model m;
	uint32_t port;

	if (peer_read_model(text, o->models, &port, &m, error, size) != 0)
		return -EINVAL;
	o->model[o->models++] = m;
	return 0;
}

static int peer_take_deadline(void *context, const char *text, char *error, size_t size)
{
	struct peer_ideal_options *o = context;
	double ms;
	char *end;

	ms = strtod(text, &end);
	if (o->deadlines == PLAN_MODELS_MAX || *end != '\0' || !(ms > 0 && ms < US_MAX)) {
		snprintf(error, size, "is no number of ms, or one too many");
		return -EINVAL;
	}
	o->deadline_ns[o->deadlines++] = (uint64_t)(ms * 1e6);
	return 0;
}

static int peer_take_worker(void *context, const char *text, char *error, size_t size)
{
	struct peer_serve_options *o = context;

	if (o->workers == PLAN_DEVICES_MAX ||
	    endpoint_address_parse(text, &o->worker[o->workers]) != 0) {
		snprintf(error, size, "is not " ENDPOINT_ADDRESS_FORM ", or one too many");
		return -EINVAL;
	}
	o->workers++;
	return 0;
}

#define SERVE(field) OPTION_AT(struct peer_serve_options, field)
#define WORK(field)  OPTION_AT(struct peer_work_options, field)

static const struct option_row serve_rows[] = {
	{"model", OPTION_CALL, OPTION_WHOLE(struct peer_serve_options), "PORT,BASE,EACH,BATCH",
	 "where its clients connect, us per batch and per request, requests of a batch; per model",
	 .take = peer_take_model, .required = true},
	{"worker", OPTION_CALL, OPTION_WHOLE(struct peer_serve_options), "ADDR:PORT", "per worker",
	 .take = peer_take_worker, .required = true},
	{"max-request", OPTION_NUMBER, SERVE(max_request), "BYTES", "of a request at most", 1,
	 BYTES_MAX},
	{"reply", OPTION_NUMBER, SERVE(reply), "BYTES", "of a reply at most", 1, BYTES_MAX},
	{"ahead-us", OPTION_NUMBER, SERVE(ahead_us), "US",
	 "an action is sent so long before its device is free", 0, US_MAX},
	{"margin-us", OPTION_NUMBER, SERVE(margin_us), "US",
	 "a batch must end so long before its deadline", 0, US_MAX},
	{"price", OPTION_REAL, SERVE(price), "N", "requests that a second of a device is worth", 0,
	 1000000},
	{"no-admission", OPTION_FLAG_OFF, SERVE(admits), NULL,
	 "refuse only what cannot be in time any more"},
	{0},
};
static const struct option_table serve_table = {
	.program = "bench-controller serve", .usage = "The controller.", .rows = serve_rows};

static const struct option_row work_rows[] = {
	{"port", OPTION_NUMBER, WORK(port), "N", "where the controller connects", 1, UINT16_MAX,
	 .required = true},
	{"device", OPTION_TEXT, WORK(device), "FILE", "the device", .required = true},
	{0},
};
static const struct option_table work_table = {
	.program = "bench-controller work", .usage = "A worker.", .rows = work_rows};

#define IDEAL(field) OPTION_AT(struct peer_ideal_options, field)

static const struct option_row ideal_rows[] = {
	{"model", OPTION_CALL, OPTION_WHOLE(struct peer_ideal_options), "PORT,BASE,EACH,BATCH",
	 "as of serve; per model", .take = peer_take_ideal_model, .required = true},
	{"deadline-ms", OPTION_CALL, OPTION_WHOLE(struct peer_ideal_options), "MS", "per model",
	 .take = peer_take_deadline, .required = true},
	{"devices", OPTION_NUMBER, IDEAL(devices), "N", "devices", 1, PLAN_DEVICES_MAX,
	 .required = true},
	{"rate", OPTION_REAL, IDEAL(rate), "N", "requests per second", 1, 1000000,
	 .required = true},
	{"seconds", OPTION_REAL, IDEAL(seconds), "S", "that are measured", 0, 3600,
	 .required = true},
	{"warmup-ms", OPTION_NUMBER, IDEAL(warmup_ms), "MS", "before them", 0, US_MAX},
	{"seed", OPTION_NUMBER, IDEAL(seed), "N", "of doorbell bench", .required = true},
	{0},
};
static const struct option_table ideal_table = {
	.program = "bench-controller ideal", .usage = "What could be had.", .rows = ideal_rows};

void peer_keep_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 32 << 20);
}

int main(int argc, char **argv)
{
	struct peer_serve_options serve = {.max_request = BYTES_MAX,
					   .reply = BYTES_MAX,
					   .ahead_us = 500,
					   .margin_us = 1000,
					   .price = 300,
					   .admits = true};
	struct peer_work_options work = {0};
	struct peer_ideal_options ideal = {0};
	const char *what = argc > 1 ? argv[1] : "";
	int ret;

	if (strcmp(what, "serve") == 0) {
		ret = options_parse(&serve_table, argc - 1, argv + 1, &serve, NULL);
		return ret != 0 ? ret < 0 : peer_serve(&serve);
	}
	if (strcmp(what, "work") == 0) {
		ret = options_parse(&work_table, argc - 1, argv + 1, &work, NULL);
		return ret != 0 ? ret < 0 : peer_work(&work);
	}
	if (strcmp(what, "ideal") == 0) {
		ret = options_parse(&ideal_table, argc - 1, argv + 1, &ideal, NULL);
		return ret != 0 ? ret < 0 : peer_ideal(&ideal);
	}
	fprintf(stderr, "bench-controller serve|work|ideal; see --help of each\n");
	return 2;
}
