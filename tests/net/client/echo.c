/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "cli/bench/pattern.h"
#include "sizes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct echo {
	struct sizes sizes;
	uint8_t expected[LOAD_DATAGRAM_MAX];
};

static size_t echo_length(void *context, uint32_t index)
{
	const struct echo *echo = context;

	return sizes_at(&echo->sizes, index);
}

static void echo_build(void *context, uint64_t id, uint8_t *request)
{
	pattern_fill(id, request, echo_length(context, (uint32_t)id));
}

/* The first 8 bytes of a request with an id are the id, and were compared to find it. */
static bool echo_check(void *context, uint64_t id, const uint8_t *reply, size_t length)
{
	struct echo *echo = context;
	size_t skip = length >= LOAD_ID_MIN ? 8 : 0;

	if (length != echo_length(context, (uint32_t)id))
		return false;
	pattern_fill(id, echo->expected, length);
	return memcmp(reply + skip, echo->expected + skip, length - skip) == 0;
}

static const char *const outcomes[] = {
	[RECORD_UNSENT] = "unsent", [RECORD_SENT] = "sent", [RECORD_ANSWERED] = "answered",
	[RECORD_WRONG] = "wrong",   [RECORD_LOST] = "lost", [RECORD_REFUSED] = "refused",
};

/* Writes a line per request: its id, how it ended, and for an answer the us that it took. */
static int records_write(const char *path, const struct tally *tally, uint32_t tag)
{
	FILE *stream = fopen(path, "we");
	int ret;

	if (stream == NULL) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -errno;
	}
	for (size_t i = 0; i < tally->n_records; i++) {
		const struct record *record = &tally->records[i];
		bool answered = record->state == RECORD_ANSWERED;

		if (record->state != RECORD_UNSENT)
			fprintf(stream, "%016" PRIx64 " %s %" PRIu64 "\n", (uint64_t)tag << 32 | i,
				outcomes[record->state], answered ? record->ns / 1000 : 0);
	}
	ret = ferror(stream) ? -EIO : 0;
	fclose(stream);
	return ret;
}

struct echo_options {
	struct run_options run; /* first: run_rows */
	uint64_t requests, min, max;
	const char *records;
};

#define AT(field) OPTION_AT(struct echo_options, field)

static const struct option_row echo_rows[] = {
	{"requests", OPTION_NUMBER, AT(requests), NULL, "requests per socket", 1, UINT32_MAX},
	{"duration-s", OPTION_SECONDS, AT(run.load.duration_s), NULL,
	 "send for so long instead of a number of requests"},
	{"min-size", OPTION_NUMBER, AT(min), NULL, "smallest request, bytes", 1, LOAD_DATAGRAM_MAX},
	{"max-size", OPTION_NUMBER, AT(max), NULL, "largest request, bytes", 1, LOAD_DATAGRAM_MAX},
	{"records", OPTION_TEXT, AT(records), "FILE",
	 "write to this file what became of each request"},
	{0},
};

static const struct option_table echo_table = {
	.program = "doorbell-client echo",
	.usage = "doorbell-client echo --to ADDR:PORT [option ...]\n"
		 "Exits 1 if a reply was lost or wrong, 2 if the run could not be made.",
	.rows = echo_rows,
	.shared = run_rows,
};

int command_echo(int argc, char **argv)
{
	static struct echo echo;
	struct echo_options o = {.run.load = {.sockets = 64, .window = 4, .timeout_ms = 2000},
				 .requests = 1000,
				 .min = 1,
				 .max = 1472};
	const struct load_work work = {&echo, echo_length, echo_build, echo_check};
	struct load_options *load = &o.run.load;
	uint32_t tag = load_tag();
	struct tally tally;
	int ret = options_parse(&echo_table, argc, argv, &o, NULL);

	if (ret != 0)
		return ret > 0 ? COMMAND_OK : COMMAND_ERROR;
	if (o.min > o.max || o.requests > UINT32_MAX / load->sockets) {
		fprintf(stderr, o.min > o.max ? "--min-size is larger than --max-size\n"
					      : "more than 2^32 requests in a run\n");
		return COMMAND_ERROR;
	}
	load->requests = load->duration_s > 0 ? 0 : o.requests * load->sockets;
	sizes_init(&echo.sizes, (uint32_t)o.min, (uint32_t)o.max);
	if (load_run(load, &work, tag, &tally) != 0)
		return COMMAND_ERROR;
	if (o.records != NULL && records_write(o.records, &tally, tag) != 0) {
		tally_fini(&tally);
		return COMMAND_ERROR;
	}
	return run_report(&o.run, &tally, NULL);
}
