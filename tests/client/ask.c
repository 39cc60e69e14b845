/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client-ask ADDRESS PROTOCOL FRAMING [NAME=VALUE ...] -- REQUEST...: submits the requests
 * together, in an event loop, and prints a line for each: status, number of tries, and the reply.
 * For client_test.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doorbell_client.h"

#define ROOM (4 << 20)

struct setting {
	const char *name;
	uint32_t *value;
};

static struct doorbell_options options;
static struct doorbell_request model;
static uint32_t idempotent, sequential, reply_size = ROOM;

static void set(const char *word)
{
	static const struct setting settings[] = {
		{"in_flight", &options.in_flight},   {"silence_ms", &options.silence_ms},
		{"backoff_ms", &options.backoff_ms}, {"deadline_ms", &model.deadline_ms},
		{"retries", &model.retries},         {"try_ms", &model.try_ms},
		{"idempotent", &idempotent},         {"sequential", &sequential},
		{"reply_size", &reply_size},
	};
	size_t length = strcspn(word, "=");

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (strlen(settings[i].name) == length &&
		    strncmp(word, settings[i].name, length) == 0) {
			*settings[i].value = (uint32_t)strtoul(word + length + 1, NULL, 10);
			return;
		}
	}
	fprintf(stderr, "client-ask: there is no option %s\n", word);
	exit(2);
}

static void run_together(struct doorbell_client *client, struct doorbell_request *r, int n)
{
	struct pollfd p;
	int wait, over = 0;

	for (int i = 0; i < n; i++)
		doorbell_client_submit(client, &r[i]);
	while (over < n) {
		wait = doorbell_client_wants(client, &p);
		poll(&p, 1, wait);
		doorbell_client_process(client);
		while (doorbell_client_finished(client) != NULL)
			over++;
	}
}

/* A long reply by its size and FNV-1a. */
static void show(const struct doorbell_request *r)
{
	uint64_t value = 0xcbf29ce484222325;
	size_t length = r->status == DOORBELL_OK ? r->reply_length : 0;

	for (size_t i = 0; i < length; i++)
		value = (value ^ ((const uint8_t *)r->reply)[i]) * 0x100000001b3;
	if (length > 100)
		printf("%zu bytes %016llx\n", length, (unsigned long long)value);
	else
		printf("%.*s\n", (int)length, (const char *)r->reply);
}

int main(int argc, char **argv)
{
	char error[DOORBELL_ERROR_SIZE];
	struct doorbell_client *client;
	struct doorbell_request *r;
	int at = 4, n;

	for (; at < argc && strcmp(argv[at], "--") != 0; at++)
		set(argv[at]);
	n = argc - at - 1;
	if (n < 1)
		return 2;
	options.protocol = strcmp(argv[2], "tcp") == 0 ? DOORBELL_TCP : DOORBELL_UDP;
	if (strcmp(argv[3], "tagged") != 0)
		options.framing =
			options.protocol == DOORBELL_TCP ? DOORBELL_LENGTH : DOORBELL_DATAGRAM;
	client = doorbell_client_open(argv[1], &options, error);
	if (client == NULL)
		return fprintf(stderr, "client-ask: %s\n", error), 2;
	r = calloc((size_t)n, sizeof(*r));
	for (int i = 0; i < n; i++) {
		r[i] = model;
		r[i].idempotent = idempotent != 0;
		r[i].data = argv[at + 1 + i];
		r[i].length = strlen(argv[at + 1 + i]);
		r[i].reply = malloc(ROOM);
		r[i].reply_size = reply_size;
		if (sequential)
			doorbell_client_call(client, &r[i]);
	}
	if (!sequential)
		run_together(client, r, n);
	for (int i = 0; i < n; i++) {
		printf("%s %u ", doorbell_client_text(r[i].status), r[i].tries);
		show(&r[i]);
		free(r[i].reply);
	}
	doorbell_client_close(client);
	free(r);
	return 0;
}
