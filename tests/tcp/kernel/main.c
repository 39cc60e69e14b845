/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lb/tcp against the kernel's TCP, without NICs:
 *
 *   tcp-wire serve --tun NAME          a server by lb/tcp behind the TUN device
 *   tcp-wire relay --tun NAME --tun2 NAME    packets between two devices
 *   tcp-wire peer --address A          a server by the kernel's sockets
 *   tcp-wire ask --address A           a client by the kernel's sockets
 *
 * serve and relay lose, delay, reorder, copy and corrupt packets as told.
 */
#include <err.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lossy.h"
#include "sockets.h"
#include "tcp/congestion.h"
#include "tun_server.h"

struct wire_options {
	const char *tun, *tun2, *ns, *ns2, *address;
	uint16_t port;
	uint32_t grant;
	bool cookies;
	struct lossy_params lossy;
	struct tcp_settings settings;
	struct sockets_load load;
};

struct wire {
	struct lossy lossy;
	int tun[2];
	uint64_t now_us;
};

static volatile sig_atomic_t ending;

static void on_signal(int signal)
{
	ending = 1;
}

static void deliver(struct wire *w, struct tun_server *server)
{
	struct lossy_packet *p;

	while ((p = lossy_arrived(&w->lossy, w->now_us)) != NULL) {
		if (p->to >= 0)
			(void)!write(p->to, p->bytes, p->length);
		else
			tun_server_receive(server, w->now_us, p->bytes, p->length);
		free(p);
	}
}

/* -1 stands for the server. */
static void read_all(struct wire *w, unsigned int direction, int from, int to)
{
	uint8_t bytes[LOSSY_PACKET_MAX];
	ssize_t n;

	for (unsigned int i = 0; i < 64 && (n = read(from, bytes, sizeof(bytes))) > 0; i++)
		lossy_send(&w->lossy, w->now_us, direction, to, bytes, (uint32_t)n);
}

static void wait_for_packets(const struct wire *w, int n, uint64_t until_us)
{
	struct pollfd fds[2] = {{w->tun[0], POLLIN, 0}, {w->tun[1], POLLIN, 0}};
	uint64_t now = lossy_now_us();
	struct timespec t = {0};

	if (until_us > now) {
		t.tv_sec = (time_t)((until_us - now) / 1000000);
		t.tv_nsec = (long)((until_us - now) % 1000000) * 1000;
	}
	ppoll(fds, n, &t, NULL);
}

static void send_to_clients(void *context, const uint8_t *ip, uint32_t length)
{
	struct wire *w = context;

	lossy_send(&w->lossy, w->now_us, 1, w->tun[0], ip, length);
}

static void print_counters(const struct tun_server *s)
{
	const struct tcp_counters *counters = tun_server_counters(s);

	printf("{\"wrong\": %lu, \"bad_checksums\": %lu, \"open\": %u",
	       (unsigned long)tun_server_wrong(s), (unsigned long)tun_server_bad_sums(s),
	       tun_server_open(s));
#define PRINT_COUNTER(name, text) printf(", \"" #name "\": %lu", (unsigned long)counters->name);
	TCP_COUNTER_LIST(PRINT_COUNTER)
#undef PRINT_COUNTER
	for (unsigned int i = 1; i < TCP_REFUSALS; i++)
		printf(", \"refused_%s\": %lu", tcp_refusal_name(i),
		       (unsigned long)counters->refused[i]);
	puts("}");
}

static int run_serve(const struct wire_options *o)
{
	struct wire w = {.tun = {lossy_open_tun(o->ns, o->tun), -1}};
	struct tun_server *s =
		tun_server_create(&o->settings, o->port, o->grant, o->cookies, send_to_clients, &w);
	uint64_t until, due;

	lossy_init(&w.lossy, &o->lossy);
	puts("ready");
	fflush(stdout);
	while (!ending) {
		w.now_us = lossy_now_us();
		read_all(&w, 0, w.tun[0], -1);
		deliver(&w, s);
		until = tun_server_poll(s, w.now_us);
		due = lossy_due_us(&w.lossy);
		wait_for_packets(&w, 1, due < until ? due : until);
	}
	print_counters(s);
	return tun_server_wrong(s) != 0;
}

static int run_relay(const struct wire_options *o)
{
	struct wire w = {.tun = {lossy_open_tun(o->ns, o->tun), lossy_open_tun(o->ns2, o->tun2)}};
	uint64_t due;

	lossy_init(&w.lossy, &o->lossy);
	puts("ready");
	fflush(stdout);
	while (!ending) {
		w.now_us = lossy_now_us();
		read_all(&w, 0, w.tun[0], w.tun[1]);
		read_all(&w, 1, w.tun[1], w.tun[0]);
		deliver(&w, NULL);
		due = lossy_due_us(&w.lossy);
		wait_for_packets(&w, 2, due < w.now_us + 1000000 ? due : w.now_us + 1000000);
	}
	return 0;
}

static int run_ask(const struct wire_options *o)
{
	struct sockets_result r;
	int ret = sockets_ask(&o->load, &r);

	printf("{\"answered\": %lu, \"wrong\": %lu, \"failed\": %lu, \"seconds\": %.3f, "
	       "\"mbit_up\": %.2f, \"mbit_down\": %.2f, \"longest_stall_ms\": %.1f, "
	       "\"sack\": %s, \"timestamps\": %s, \"scaling\": %s, \"retransmits\": %u}\n",
	       (unsigned long)r.answered, (unsigned long)r.wrong, (unsigned long)r.failed,
	       r.seconds, (double)r.bytes_up * 8e-6 / r.seconds,
	       (double)r.bytes_down * 8e-6 / r.seconds, r.longest_stall_ms,
	       r.sack ? "true" : "false", r.timestamps ? "true" : "false",
	       r.scaling ? "true" : "false", r.retransmits);
	return ret;
}

static void set_option(struct wire_options *o, const char *name, const char *value)
{
	double number = value == NULL ? 0 : strtod(value, NULL);
	const struct {
		const char *name;
		double *real;
		uint32_t *whole;
		const char **text;
	} rows[] = {
		{"lose", &o->lossy.lose, NULL, NULL},
		{"reorder", &o->lossy.reorder, NULL, NULL},
		{"copy", &o->lossy.copy, NULL, NULL},
		{"corrupt", &o->lossy.corrupt, NULL, NULL},
		{"delay-us", NULL, &o->lossy.delay_us, NULL},
		{"jitter-us", NULL, &o->lossy.jitter_us, NULL},
		{"grant", NULL, &o->grant, NULL},
		{"connections", NULL, &o->load.connections, NULL},
		{"pipeline", NULL, &o->load.pipeline, NULL},
		{"min", NULL, &o->load.min, NULL},
		{"max", NULL, &o->load.max, NULL},
		{"limit-s", NULL, &o->load.limit_s, NULL},
		{"tun", NULL, NULL, &o->tun},
		{"tun2", NULL, NULL, &o->tun2},
		{"ns", NULL, NULL, &o->ns},
		{"ns2", NULL, NULL, &o->ns2},
		{"address", NULL, NULL, &o->address},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		if (rows[i].real != NULL)
			*rows[i].real = number;
		else if (rows[i].whole != NULL)
			*rows[i].whole = (uint32_t)number;
		else
			*rows[i].text = value;
		return;
	}
	if (strcmp(name, "port") == 0)
		o->port = (uint16_t)number;
	else if (strcmp(name, "seed") == 0)
		o->lossy.seed = o->load.seed = (uint64_t)number;
	else if (strcmp(name, "requests") == 0)
		o->load.requests = (uint64_t)number;
	else if (strcmp(name, "mss") == 0)
		o->settings.mss = (uint16_t)number;
	else if (strcmp(name, "congestion") == 0)
		o->settings.congestion = tcp_congestion_find(value);
	else if (strcmp(name, "up") == 0)
		o->load.up = true;
	else if (strcmp(name, "down") == 0)
		o->load.down = true;
	else if (strcmp(name, "reconnect") == 0)
		o->load.reconnect = true;
	else if (strcmp(name, "cookies") == 0)
		o->cookies = true;
	else
		errx(2, "--%s: no such option", name);
}

int main(int argc, char **argv)
{
	struct wire_options o = {
		.ns = "",
		.ns2 = "",
		.port = 7000,
		.grant = 1 << 20,
		.settings = tcp_settings_default,
		.load = {.connections = 1,
			 .pipeline = 1,
			 .requests = 1000,
			 .min = 1,
			 .max = 1 << 20,
			 .seed = 1,
			 .limit_s = 60},
	};
	struct sigaction action = {.sa_handler = on_signal};

	if (argc < 2)
		errx(2, "usage: tcp-wire serve|relay|peer|ask [--option=value ...]");
	for (int i = 2; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (strncmp(argv[i], "--", 2) != 0)
			errx(2, "%s: no option", argv[i]);
		if (value != NULL)
			*value++ = '\0';
		set_option(&o, argv[i] + 2, value);
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	o.load.address = o.address;
	o.load.port = o.port;
	if (strcmp(argv[1], "serve") == 0)
		return run_serve(&o);
	if (strcmp(argv[1], "relay") == 0)
		return run_relay(&o);
	if (strcmp(argv[1], "ask") == 0)
		return run_ask(&o);
	if (strcmp(argv[1], "peer") != 0)
		errx(2, "%s: no such command", argv[1]);
	signal(SIGTERM, SIG_DFL);
	sockets_serve(o.address, o.port);
	return 0;
}
