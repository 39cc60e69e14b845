/* SPDX-License-Identifier: BSD-3-Clause */
/* bench: the load generator is in bench/. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench/bench.h"
#include "cli/cli.h"
#include "cli/bench/local_address.h"

/* Found beside this program, or else in PATH. */
#define DPDK_PROGRAM "doorbell-bench"

/*
 * Replace this program by the one that has DPDK, with the same options; returns only when that
 * fails.
 */
static int become_dpdk(char **argv)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(DPDK_PROGRAM));
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash != NULL) {
		strcpy(slash + 1, DPDK_PROGRAM);
		execv(path, argv);
	}
	execvp(DPDK_PROGRAM, argv);
	return cli_usage_error("--dpdk: no program " DPDK_PROGRAM
			       " beside this one or in $PATH: %s; "
			       "install it, or leave --dpdk away to use kernel sockets",
			       strerror(errno));
}

/* The services of this machine's load balancer, or NULL when there is none that we may ask. */
static json_t *services_here(void)
{
	char error[512];
	int code;
	struct control_client *client =
		control_client_connect(cli_default_socket(), error, sizeof(error));
	json_t *result = NULL;

	if (client == NULL)
		return NULL;
	result = control_client_call(client, "services.list", NULL, &code, error, sizeof(error));
	control_client_close(client);
	return result;
}

/* The services of the load balancer at a target. */
struct served {
	bool address;  /* a service at any port */
	bool udp, tcp; /* a service at the target's own */
};

static struct served find_services(const json_t *services, const struct endpoint_address *to)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&to->socket;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&to->socket;
	bool four = to->socket.ss_family == AF_INET;
	uint16_t port = ntohs(four ? v4->sin_port : v6->sin6_port);
	struct served found = {0};
	char text[INET6_ADDRSTRLEN];
	const json_t *service;
	size_t i;

	if (four)
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
	json_array_foreach (json_object_get(services, "services"), i, service) {
		const char *address = json_string_value(json_object_get(service, "vip"));
		const char *protocol = json_string_value(json_object_get(service, "protocol"));

		if (address == NULL || strcmp(address, text) != 0)
			continue;
		found.address = true;
		if (json_integer_value(json_object_get(service, "port")) != port)
			continue;
		if (protocol != NULL && strcmp(protocol, "tcp") == 0)
			found.tcp = true;
		else
			found.udp = true;
	}
	return found;
}

/* A wrong digit in --to must not put a stranger's machine under load. */
static int check_targets(const struct bench_options *options)
{
	json_t *services;
	int ret = 0;

	if (options->remote)
		return 0;
	services = services_here();
	for (unsigned int i = 0; i < options->mix.n_targets && ret == 0; i++) {
		const struct mix_target *target = &options->mix.target[i];
		struct served found = find_services(services, &target->to);

		if (found.tcp && !found.udp && !options->tcp)
			ret = cli_usage_error("bench: --to %s is a tcp service; give --tcp, and "
					      "its --framing",
					      target->name);
		else if (found.udp && !found.tcp && options->tcp)
			ret = cli_usage_error("bench: --to %s is a udp service; leave --tcp away",
					      target->name);
		else if (!found.address && !local_address_is(&target->to))
			ret = cli_usage_error(
				"bench: --to %s is neither this machine's nor a service of %s; add "
				"--remote to send load to another machine, or set DOORBELL_SOCKET "
				"to the control socket of the load balancer that serves it",
				target->name,
				services != NULL ? "the load balancer here"
						 : "a load balancer here (none answers)");
	}
	json_decref(services);
	return ret;
}

int cli_bench(int argc, char **argv)
{
	struct bench_options options;
	int ret = bench_options_read(argc, argv, &options);

	if (ret != 0)
		return ret > 0 ? EXIT_SUCCESS : EXIT_USAGE;
	ret = check_targets(&options);
	if (ret != 0)
		return ret;
	if (options.dpdk != NULL)
		return become_dpdk(argv);
	return bench_run(&options, options.tcp ? &transport_tcp : &transport_udp);
}
