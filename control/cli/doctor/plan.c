/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/control.h"
#include "config/device.h"
#include "config/memory.h"
#include "cli/doctor/plan.h"

/* Defaults of doorbell-agent; see gpu-agent/options.c. */
#define AGENT_MTU       1500
#define AGENT_MEMORY_MB 128

static bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

unsigned long plan_devarg(const char *device, const char *key, unsigned long otherwise)
{
	size_t n = strlen(key);

	for (const char *at = strchr(device, ','); at != NULL; at = strchr(at + 1, ','))
		if (strncmp(at + 1, key, n) == 0 && at[1 + n] == '=' && at[2 + n] >= '0' &&
		    at[2 + n] <= '9')
			return strtoul(at + 2 + n, NULL, 10);
	return otherwise;
}

static void plan_copy_text(char *to, size_t size, const char *from, size_t n)
{
	n = n < size ? n : size - 1;
	memcpy(to, from, n);
	to[n] = '\0';
}

void plan_device(struct plan_port *port, const char *device)
{
	const char *at = strstr(device, "iface=");
	int n = (int)strcspn(device, ",");

	plan_copy_text(port->device, sizeof(port->device), device, strlen(device));
	port->kind = starts(device, "net_af_packet") || starts(device, "eth_af_packet")
			     ? PLAN_AF_PACKET
		     : starts(device, "net_af_xdp") ? PLAN_AF_XDP
		     : starts(device, "kernel")     ? PLAN_KERNEL
						    : PLAN_VIRTUAL;
	if (lb_device_is_pci(device)) {
		port->kind = PLAN_PCI;
		snprintf(port->pci, sizeof(port->pci), "%s%.*s", n < 10 ? "0000:" : "", n, device);
	} else if (port->kind != PLAN_VIRTUAL && at != NULL) {
		plan_copy_text(port->interface, sizeof(port->interface), at + 6,
			       strcspn(at + 6, ","));
	}
}

static void take_rdma(struct doctor_plan *plan, const char *key, const char *device,
		      const struct lb_address *address, uint32_t mtu)
{
	struct plan_rdma *rdma = &plan->rdma[plan->n_rdma++];

	snprintf(rdma->key, sizeof(rdma->key), "%s", key);
	snprintf(rdma->name, sizeof(rdma->name), "%s", device);
	rdma->address = *address;
	rdma->mtu = (uint16_t)mtu;
}

static void take_tcp(struct plan_tcp *tcp, const struct lb_config *config)
{
	struct lb_config *without = malloc(sizeof(*without)); /* large for a stack */

	*tcp = (struct plan_tcp){
		.used = config->tcp.used && without != NULL,
		.connections = config->tcp.connections,
		.buffer_mb = config->tcp.buffer_mb,
		.window = config->tcp.window,
		.flows = config->flows,
		.lcores = config->n_lcores,
		.set_mb = config->memory_mb,
	};
	if (tcp->used) {
		*without = *config;
		without->memory_mb = 0;
		tcp->needed_mb = lb_memory_mb(without);
		without->tcp.used = false;
		tcp->memory_mb = tcp->needed_mb - lb_memory_mb(without);
	}
	free(without);
}

static void take_services(struct doctor_plan *plan, const struct lb_config *config)
{
	for (unsigned int i = 0; i < config->n_services; i++) {
		const struct lb_service_config *from = &config->service[i];
		struct plan_secured *s = &plan->secured[plan->n_secured];

		plan->vip[plan->n_vips++] = from->vip;
		if (!lb_service_has_tls(from))
			continue;
		memcpy(s->service, from->name, sizeof(s->service));
		memcpy(s->certificate, from->tls_certificate, sizeof(s->certificate));
		memcpy(s->key, from->tls_key, sizeof(s->key));
		plan->n_secured++;
	}
}

static void from_config(struct doctor_plan *plan, const struct lb_config *config)
{
	for (unsigned int i = 0; i < config->n_ports; i++) {
		const struct lb_port_config *from = &config->port[i];
		struct plan_port *port;
		char key[40];

		snprintf(key, sizeof(key), "ports[%u].device", i);
		if (from->verbs) {
			take_rdma(plan, key, from->device, &from->address, from->mtu);
			continue;
		}
		port = &plan->port[plan->n_ports++];
		plan_device(port, from->device);
		snprintf(port->key, sizeof(port->key), "%s", key);
		snprintf(port->name, sizeof(port->name), "%s", from->name);
		snprintf(port->mtu_key, sizeof(port->mtu_key), "ports[%u].mtu", i);
		port->mtu = from->mtu;
		port->fabric = from->fabric;
		port->address = from->address;
	}
	plan->n_cpus = config->n_lcores;
	memcpy(plan->cpu, config->lcore_cpu, sizeof(plan->cpu));
	plan->memory_mb = lb_memory_mb(config);
	plan->memory_keys = lb_memory_keys(config);
	take_tcp(&plan->tcp, config);
	plan->hugepages = config->hugepages;
	snprintf(plan->control_socket, sizeof(plan->control_socket), "%s", config->control_socket);
	plan->agents_address = config->agents_address;
	plan->agents_port = config->agents_port;
	memcpy(plan->tls_certificate, config->agents_certificate, sizeof(plan->tls_certificate));
	memcpy(plan->tls_key, config->agents_key, sizeof(plan->tls_key));
	memcpy(plan->tls_ca, config->agents_ca, sizeof(plan->tls_ca));
	memcpy(plan->token_file, config->agents_token, sizeof(plan->token_file));
	memcpy(plan->state_file, config->state_file, sizeof(plan->state_file));
	lb_config_lets_strangers_in(config, plan->strangers, sizeof(plan->strangers));
	take_services(plan, config);
	plan->known = true;
}

static void make_lb(struct doctor_plan *plan, const struct doctor_question *q)
{
	struct lb_config *config;

	plan->hugepages = true;
	plan->agents_port = 4790;
	if (q->config == NULL)
		return;
	config = malloc(sizeof(*config)); /* large for a stack */
	if (config == NULL)
		snprintf(plan->error, sizeof(plan->error), "no memory for %s", q->config);
	else if (lb_config_load(q->config, config, plan->error, sizeof(plan->error)) == 0)
		from_config(plan, config);
	free(config);
}

/* Read "10.201.0.11/24"; the prefix length is optional. */
static void take_address(struct doctor_plan *plan, const char *option, const char *text,
			 struct lb_address *out)
{
	char host[LB_ADDRESS_TEXT];

	if (text == NULL)
		return;
	snprintf(host, sizeof(host), "%.*s", (int)strcspn(text, "/"), text);
	if (lb_address_parse(host, out) < 0)
		snprintf(plan->error, sizeof(plan->error), "%s: '%s' is no IP address", option,
			 text);
}

static void take_lb(struct doctor_plan *plan, const char *text)
{
	if (text != NULL && endpoint_parse(text, &plan->lb) != 0)
		snprintf(plan->error, sizeof(plan->error),
			 "--lb: give HOST:PORT, such as 10.201.0.254:4790 or [fd00::1]:4790");
}

static void make_agent(struct doctor_plan *plan, const struct doctor_question *q)
{
	bool verbs = q->engine != NULL && strcmp(q->engine, "verbs") == 0;

	plan->memory_mb = q->memory_mb ? q->memory_mb : AGENT_MEMORY_MB;
	plan->gpu_memory_mb = q->gpu_memory_mb;
	/* The verbs engine needs no hugepages, as it has no packet buffers. */
	plan->hugepages = !q->no_hugepages && !verbs;
	take_address(plan, "--address", q->address, &plan->address);
	take_address(plan, "--lb-fabric-address", q->lb_fabric_address, &plan->lb_fabric_address);
	take_lb(plan, q->lb);
	if (q->engine != NULL && !verbs && strcmp(q->engine, "soft") != 0)
		snprintf(plan->error, sizeof(plan->error),
			 "--engine: '%s' is neither soft nor verbs", q->engine);
	if (q->device != NULL && !verbs) {
		struct plan_port *port = &plan->port[plan->n_ports++];

		plan_device(port, q->device);
		snprintf(port->key, sizeof(port->key), "--device");
		snprintf(port->name, sizeof(port->name), "device");
		snprintf(port->mtu_key, sizeof(port->mtu_key), "--mtu");
		port->mtu = q->mtu ? (uint16_t)q->mtu : AGENT_MTU;
		port->fabric = true;
		port->address = plan->address;
	}
	if (q->device != NULL && verbs)
		take_rdma(plan, "--device", q->device, &plan->address, q->mtu);
	plan->known = plan->error[0] == '\0' && q->device != NULL;
}

void plan_make(struct doctor_plan *plan, const struct doctor_question *question)
{
	memset(plan, 0, sizeof(*plan));
	plan->side = question->side;
	if (question->side == DOCTOR_AGENT)
		make_agent(plan, question);
	else
		make_lb(plan, question);
	/* --socket takes precedence over the configuration file. */
	if (question->socket != NULL)
		snprintf(plan->control_socket, sizeof(plan->control_socket), "%s",
			 question->socket);
	else if (question->side != DOCTOR_AGENT && plan->control_socket[0] == '\0')
		snprintf(plan->control_socket, sizeof(plan->control_socket), CONTROL_SOCKET);
}
