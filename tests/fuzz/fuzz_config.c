/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads any bytes as a configuration: it is accepted, or refused with a line per fault. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/config_diff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void no_change(void *context, const struct lb_config_change *change)
{
	require(false);
}

/* A configuration has no difference from itself, and its services keep their numbers. */
static void check_reload(const struct lb_config *config)
{
	static struct lb_config next;
	char error[512];

	lb_config_diff(config, config, no_change, NULL);
	require(lb_config_merge(config, config, &next, error, sizeof(error)) == 0);
	require(next.n_services == config->n_services);
	for (unsigned int i = 0; i < next.n_services; i++)
		require(strcmp(next.service[i].name, config->service[i].name) == 0);
}

/* A line names its place in the file and is readable text. Returns its end. */
static const char *check_line(const char *line)
{
	require(strncmp(line, "fuzz.yaml:", 10) == 0);
	for (; *line != '\0' && *line != '\n'; line++)
		require(*line >= ' ' && *line <= '~');
	return line;
}

/* One line per fault, FAULTS_MAX at most; the last one has no line feed. */
static void check_error(const char *error, size_t size)
{
	enum { FAULTS_MAX = 8 };
	unsigned int lines = 1;

	require(strnlen(error, size) < size);
	while (*(error = check_line(error)) == '\n') {
		error++;
		lines++;
	}
	require(lines <= FAULTS_MAX);
}

static void check_udp(const struct lb_service_config *service)
{
	require(service->protocol == IPPROTO_UDP && service->framing != LB_FRAMING_LENGTH);
	require(service->max_request >= 1 && service->max_request <= 9600 - 28);
	require(service->max_reply >= 1 && service->max_reply <= 9600 - 28);
}

static void check_tcp(const struct lb_config *config, const struct lb_service_config *service)
{
	require(config->tcp.used && service->framing != LB_FRAMING_DATAGRAM);
	require(service->max_request >= 1 && service->max_request <= WORKER_BYTES_MAX);
	require(service->max_reply >= 1 && service->max_reply <= lb_tcp_client_share(config));
}

/* Asserts the invariants that the rest of the load balancer relies on. */
static void check_config(const struct lb_config *config)
{
	require(config->n_ports >= 1 && config->n_ports <= LB_PORTS_MAX);
	require(config->n_services >= 1 && config->n_services <= LB_SERVICES_MAX);
	require(config->n_lcores >= 1 && config->n_lcores <= LB_LCORES_MAX);
	for (unsigned int i = 0; i < config->n_ports; i++) {
		const struct lb_port_config *port = &config->port[i];

		require(port->clients || port->fabric);
		require(port->fabric == (port->address.family != 0));
		require(port->mtu >= 576 && port->mtu <= 9600);
	}
	for (unsigned int i = 0; i < config->n_services; i++) {
		const struct lb_service_config *service = &config->service[i];

		require(service->name[0] != '\0' && service->model[0] != '\0');
		require(service->vip.family == 4 || service->vip.family == 6);
		require(service->port != 0);
		if (service->protocol == IPPROTO_TCP)
			check_tcp(config, service);
		else
			check_udp(service);
	}
	require(config->tcp.window <= lb_tcp_client_share(config));
	require(config->agents_port != 0 && config->control_socket[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lb_config config;
	char error[512] = "";
	int rc = lb_config_parse("fuzz.yaml", (const char *)data, size, &config, error,
				 sizeof(error));

	require(rc == 0 || rc == -EINVAL || rc == -EFBIG);
	if (rc == 0) {
		check_config(&config);
		check_reload(&config);
	} else {
		check_error(error, sizeof(error));
	}
	return 0;
}
