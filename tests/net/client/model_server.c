/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doorbell-model-server: answers UDP requests with a model plug-in, without a load balancer: the
 * peer of the client's own tests, and the figure to compare a load balancer with. It can misbehave
 * in the ways that the client must notice.
 */
#include "notice_build.h"
#include "runtime/endpoint.h"
#include "runtime/option_table.h"
#include "plugin.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVER_DATAGRAM 65536
#define SERVER_BUFFER   (8 << 20)

struct server_options {
	struct endpoint_address listen;
	const char *model;
	const char *arguments;
	uint64_t drop;      /* no reply */
	uint64_t duplicate; /* two replies */
	uint64_t corrupt;   /* one bit of the reply's last byte is wrong */
	uint64_t refuse;    /* a busy notice instead of a reply */
};

/* One request from one client. */
struct exchange {
	struct sockaddr_storage from;
	socklen_t from_length;
	_Alignas(64) uint8_t request[SERVER_DATAGRAM];
	uint8_t *reply;
	size_t reply_length;
};

static bool strikes(uint64_t every, uint64_t count)
{
	return every != 0 && count % every == 0;
}

static void answer(int fd, const struct exchange *exchange)
{
	/* A reply that cannot be sent is lost, as anywhere on its way. */
	(void)sendto(fd, exchange->reply, exchange->reply_length, 0,
		     (const struct sockaddr *)&exchange->from, exchange->from_length);
}

static void serve_one(int fd, const struct plugin *plugin, const struct server_options *options,
		      struct exchange *exchange, size_t length, uint64_t count)
{
	struct agent_model_item item = {
		.request = exchange->request,
		.request_length = (uint32_t)length,
		.reply = exchange->reply,
	};

	if (strikes(options->drop, count))
		return;
	if (length <= plugin->shape.max_request)
		plugin->model->run(plugin->state, &item, 1);
	else
		item.status = -EMSGSIZE;
	exchange->reply_length = item.reply_length;
	if (item.status != 0 || strikes(options->refuse, count)) {
		notice_build(item.status != 0 ? NOTICE_MODEL_ERROR : NOTICE_BUSY, exchange->request,
			     length, exchange->reply);
		exchange->reply_length = NOTICE_SIZE;
	} else if (strikes(options->corrupt, count) && item.reply_length != 0) {
		exchange->reply[item.reply_length - 1] ^= 1;
	}
	answer(fd, exchange);
	if (strikes(options->duplicate, count))
		answer(fd, exchange);
}

static int serve(int fd, const struct plugin *plugin, const struct server_options *options)
{
	struct exchange *exchange = aligned_alloc(64, (sizeof(*exchange) + 63) & ~(size_t)63);
	size_t room = plugin->shape.max_reply > NOTICE_SIZE ? plugin->shape.max_reply : NOTICE_SIZE;

	if (exchange == NULL || (exchange->reply = malloc(room)) == NULL)
		return -ENOMEM;
	for (uint64_t count = 1;; count++) {
		ssize_t length;

		exchange->from_length = sizeof(exchange->from);
		length = recvfrom(fd, exchange->request, sizeof(exchange->request), 0,
				  (struct sockaddr *)&exchange->from, &exchange->from_length);
		if (length < 0 && errno != EINTR && errno != ECONNREFUSED)
			return -errno;
		if (length >= 0)
			serve_one(fd, plugin, options, exchange, (size_t)length, count);
	}
}

static int listen_on(const struct endpoint_address *address)
{
	int fd = socket(address->socket.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int buffer = SERVER_BUFFER;

	if (fd < 0)
		return -errno;
	/* The first option goes beyond the system's limit, where that is allowed. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)) != 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	if (bind(fd, (const struct sockaddr *)&address->socket, address->length) != 0) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return fd;
}

#define AT(field) OPTION_AT(struct server_options, field)

static const struct option_row server_rows[] = {
	{"listen", OPTION_ADDRESS, AT(listen), NULL, "where to take requests", .required = true},
	{"model", OPTION_TEXT, AT(model), "FILE", "the plug-in", .required = true},
	{"model-args", OPTION_TEXT, AT(arguments), "K=V,...", "arguments of the plug-in"},
	{"drop", OPTION_NUMBER, AT(drop), NULL, "no reply"},
	{"duplicate", OPTION_NUMBER, AT(duplicate), NULL, "two replies"},
	{"corrupt", OPTION_NUMBER, AT(corrupt), NULL, "a wrong bit"},
	{"refuse", OPTION_NUMBER, AT(refuse), NULL, "a busy notice instead"},
	{0},
};

static const struct option_table server_table = {
	.program = "doorbell-model-server",
	.usage = "doorbell-model-server --listen ADDR:PORT --model PLUGIN.so [option ...]\n"
		 "Faults are off by default; N means: for every Nth request.",
	.rows = server_rows,
};

int main(int argc, char **argv)
{
	struct server_options options = {.arguments = ""};
	struct plugin plugin;
	int fd, ret;

	ret = options_parse(&server_table, argc, argv, &options, NULL);
	if (ret != 0)
		return ret == 1 ? 0 : 2;
	if (plugin_open(&plugin, options.model, options.arguments, 1) != 0)
		return 2;
	fd = listen_on(&options.listen);
	if (fd >= 0) {
		/* The caller waits for this line before it sends requests. */
		puts("ready");
		fflush(stdout);
	}
	ret = fd < 0 ? fd : serve(fd, &plugin, &options);
	fprintf(stderr, "cannot serve: %s\n", strerror(-ret));
	return 2;
}
