/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-controller serve: the controller; bench-controller work: a worker of it.
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

static int peer_take_model(void *context, const char *text, char *error, size_t size)
{
	struct peer_serve_options *o = context;
	struct plan_model m = {0};
	uint32_t port;
	int end = 0;

	if (o->models == PLAN_MODELS_MAX ||
	    sscanf(text, "%u,%u,%u,%u%n", &port, &m.base_us, &m.each_us, &m.max_batch, &end) != 4 ||
	    text[end] != '\0' || port == 0 || port > UINT16_MAX || m.base_us > US_MAX ||
	    m.each_us > US_MAX || m.max_batch == 0 || m.max_batch > WIRE_BATCH_MAX) {
		snprintf(error, size, "is not PORT,BASE-US,EACH-US,MAX-BATCH, or one too many");
		return -EINVAL;
	}
	o->port[o->models] = port;
	o->model[o->models++] = m;
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
	fprintf(stderr, "bench-controller serve|work; see --help of each\n");
	return 2;
}
