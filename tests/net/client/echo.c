/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "cli/bench/pattern.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ECHO_USAGE                                                                                 \
	"doorbell-client echo --to ADDR:PORT [option ...]\n"                                       \
	"Exits 1 if a reply was lost or wrong, 2 if the run could not be made."

struct echo {
	struct pattern_sizes sizes;
	uint8_t expected[LOAD_DATAGRAM_MAX];
};

static size_t echo_length(void *context, uint32_t index)
{
	const struct echo *echo = context;

	return pattern_size(&echo->sizes, index);
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

int command_echo(int argc, char **argv)
{
	static struct echo echo;
	uint64_t requests = 1000, min = 1, max = 1472;
	uint32_t tag = load_tag();
	const char *records = NULL;
	struct run_options run = {.load = {.sockets = 64, .window = 4, .timeout_ms = 2000}};
	const struct load_work work = {&echo, echo_length, echo_build, echo_check};
	const struct option_row table[] = {
		RUN_OPTIONS(run),
		{"requests", OPTION_NUMBER, &requests, 1, UINT32_MAX, "requests per socket"},
		{"duration-s", OPTION_SECONDS, &run.load.duration_s, 0, 0,
		 "send for so long instead of a number of requests"},
		{"min-size", OPTION_NUMBER, &min, 1, LOAD_DATAGRAM_MAX, "smallest request, bytes"},
		{"max-size", OPTION_NUMBER, &max, 1, LOAD_DATAGRAM_MAX, "largest request, bytes"},
		{"records", OPTION_TEXT, &records, 0, 0,
		 "write to this file what became of each request"},
		{0},
	};
	struct tally tally;
	int status;

	if (run_options_parse(argc, argv, ECHO_USAGE, table, &run, &status) != 0)
		return status;
	if (min > max || requests > UINT32_MAX / run.load.sockets) {
		fprintf(stderr, min > max ? "--min-size is larger than --max-size\n"
					  : "more than 2^32 requests in a run\n");
		return COMMAND_ERROR;
	}
	run.load.requests = run.load.duration_s > 0 ? 0 : requests * run.load.sockets;
	pattern_sizes_init(&echo.sizes, (uint32_t)min, (uint32_t)max);
	if (load_run(&run.load, &work, tag, &tally) != 0)
		return COMMAND_ERROR;
	if (records != NULL && records_write(records, &tally, tag) != 0) {
		tally_fini(&tally);
		return COMMAND_ERROR;
	}
	return run_report(&run, &tally, NULL);
}
