/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "runtime/option_table.h"
#include "stream.h"

struct options {
	struct stream_ask ask;
	struct stream_serve serve;
	struct stream_relay relay;
	struct stream_flood flood;
	struct stream_hold hold;
};

static int take_watched(void *whole, const char *text, char *error, size_t size)
{
	struct stream_ask *o = &((struct options *)whole)->ask;
	int pid = 0;

	if (o->n_watched == STREAM_WATCHED_MAX || sscanf(text, "%d", &pid) != 1 || pid <= 0) {
		snprintf(error, size, "is not the id of a process, or too many");
		return -1;
	}
	o->watched[o->n_watched++] = pid;
	return 0;
}

#define ASK(field)   OPTION_AT(struct options, ask.field)
#define SERVE(field) OPTION_AT(struct options, serve.field)
#define RELAY(field) OPTION_AT(struct options, relay.field)
#define FLOOD(field) OPTION_AT(struct options, flood.field)
#define HOLD(field)  OPTION_AT(struct options, hold.field)

static const char *const modes[] = {"echo", "up", "down", NULL};

static const struct option_row ask_rows[] = {
	{"address", OPTION_TEXT, ASK(address), "ADDRESS", "server"},
	{"port", OPTION_NUMBER, ASK(port), NULL, "of the server", 1, 65535},
	{"connections", OPTION_NUMBER, ASK(connections), NULL, "in all", 1, 65536},
	{"pipeline", OPTION_NUMBER, ASK(pipeline), NULL, "requests open on each", 1, 64},
	{"requests", OPTION_NUMBER, ASK(requests), NULL, "in all; 0: by time", 0, 1000000000},
	{"seconds", OPTION_SECONDS, ASK(seconds), NULL, "that are measured"},
	{"warm-up", OPTION_REAL, ASK(warm_up_s), "SECONDS", "before them", 0, 60},
	{"min", OPTION_NUMBER, ASK(min), NULL, "bytes, log-uniform", 1, STREAM_SIZE_MAX},
	{"max", OPTION_NUMBER, ASK(max), NULL, "bytes, log-uniform", 1, STREAM_SIZE_MAX},
	{"mode", OPTION_WORD, ASK(mode), NULL, "which side has that size", .words = modes},
	{"seed", OPTION_NUMBER, ASK(seed), NULL, "of sizes and bytes", 0, 0},
	{"limit-s", OPTION_NUMBER, ASK(limit_s), NULL, "what takes longer is lost", 1, 86400},
	{"watch", OPTION_CALL, OPTION_WHOLE(struct options), "PID",
	 "report the CPU time of this process", .take = take_watched},
	{0},
};

static const struct option_row serve_rows[] = {
	{"address", OPTION_TEXT, SERVE(address), "ADDRESS", "to listen at"},
	{"port", OPTION_NUMBER, SERVE(port), NULL, "to listen at", 1, 65535},
	{"threads", OPTION_NUMBER, SERVE(threads), NULL, "a listener each", 1, 64},
	{"drawn", OPTION_FLAG, SERVE(drawn), NULL, "requests say what they want"},
	{0},
};

static const struct option_row relay_rows[] = {
	{"near", OPTION_TEXT, RELAY(device[0]), "DEVICE", "on the clients' side"},
	{"far", OPTION_TEXT, RELAY(device[1]), "DEVICE", "on the servers' side"},
	{"lose", OPTION_REAL, RELAY(lose), "PERCENT", "of the TCP packets", 0, 100},
	{"reorder", OPTION_REAL, RELAY(reorder), "PERCENT", "come late", 0, 100},
	{"copy", OPTION_REAL, RELAY(copy), "PERCENT", "come twice", 0, 100},
	{"corrupt", OPTION_REAL, RELAY(corrupt), "PERCENT", "have a wrong bit", 0, 100},
	{"delay-us", OPTION_NUMBER, RELAY(delay_us), NULL, "each way", 0, 10000000},
	{"jitter-us", OPTION_NUMBER, RELAY(jitter_us), NULL, "at most, of late ones", 0, 10000000},
	{"seed", OPTION_NUMBER, RELAY(seed), NULL, "of the packets' fates", 0, 0},
	{0},
};

static const struct option_row flood_rows[] = {
	{"device", OPTION_TEXT, FLOOD(device), "DEVICE", "frames go out of it"},
	{"mac", OPTION_TEXT, FLOOD(mac), "MAC", "of the server"},
	{"address", OPTION_TEXT, FLOOD(address), "ADDRESS", "of the server, IPv4"},
	{"port", OPTION_NUMBER, FLOOD(port), NULL, "of the server", 1, 65535},
	{"from", OPTION_TEXT, FLOOD(from), "ADDRESS", "first of the senders, IPv4"},
	{"senders", OPTION_NUMBER, FLOOD(senders), NULL, "addresses", 1, 1 << 24},
	{"rate", OPTION_NUMBER, FLOOD(rate), NULL, "SYNs per second; 0: all that go", 0, 100000000},
	{"seconds", OPTION_REAL, FLOOD(seconds), "SECONDS", "0: until SIGTERM", 0, 86400},
	{"seed", OPTION_NUMBER, FLOOD(seed), NULL, "of addresses and ports", 0, 0},
	{0},
};

static const char *const holds[] = {"drip", "read", NULL};

static const struct option_row hold_rows[] = {
	{"address", OPTION_TEXT, HOLD(address), "ADDRESS", "server"},
	{"port", OPTION_NUMBER, HOLD(port), NULL, "of the server", 1, 65535},
	{"from", OPTION_TEXT, HOLD(from), "ADDRESS", "first of ours"},
	{"senders", OPTION_NUMBER, HOLD(senders), NULL, "addresses of ours", 1, 65536},
	{"connections", OPTION_NUMBER, HOLD(connections), NULL, "in all", 1, 65536},
	{"size", OPTION_NUMBER, HOLD(size), NULL, "bytes of a request", 1, STREAM_SIZE_MAX},
	{"interval-ms", OPTION_NUMBER, HOLD(interval_ms), NULL, "per byte", 1, 60000},
	{"what", OPTION_WORD, HOLD(what), NULL, "bytes sent or read slowly", .words = holds},
	{0},
};

static int run_ask(const struct options *o)
{
	return stream_ask(&o->ask);
}

static int run_serve(const struct options *o)
{
	return stream_serve(&o->serve);
}

static int run_relay(const struct options *o)
{
	return stream_relay(&o->relay);
}

static int run_flood(const struct options *o)
{
	return stream_flood(&o->flood);
}

static int run_hold(const struct options *o)
{
	return stream_hold(&o->hold);
}

static const struct command {
	const char *name;
	const struct option_row *rows;
	int (*run)(const struct options *o);
} commands[] = {
	{"ask", ask_rows, run_ask},       {"serve", serve_rows, run_serve},
	{"relay", relay_rows, run_relay}, {"flood", flood_rows, run_flood},
	{"hold", hold_rows, run_hold},
};

int main(int argc, char **argv)
{
	struct options o = {
		.ask = {.port = 8500,
			.connections = 64,
			.pipeline = 1,
			.seconds = 3,
			.min = 1024,
			.max = 1024,
			.seed = 1,
			.limit_s = 60},
		.serve = {.address = "0.0.0.0", .port = 8500, .threads = 1},
		.relay = {.jitter_us = 20000, .seed = 1},
		.flood = {.port = 8500, .senders = 65536, .seed = 1},
		.hold = {.port = 8500,
			 .senders = 1,
			 .connections = 1000,
			 .size = 1 << 20,
			 .interval_ms = 1000},
	};

	for (unsigned int i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct option_table table = {
			.program = "tcp-stream",
			.usage = "tcp-stream ask|serve|relay|flood|hold [option ...]",
			.rows = commands[i].rows};
		int ret;

		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		ret = options_parse(&table, argc - 1, argv + 1, &o, NULL);
		if (ret != 0)
			return ret < 0 ? 2 : 0;
		return commands[i].run(&o);
	}
	fprintf(stderr, "usage: tcp-stream ask|serve|relay|flood|hold [option ...]\n");
	return 2;
}
