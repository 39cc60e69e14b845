/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program that is to run on this machine, as the checks see it. plan.c makes it from the load
 * balancer's configuration or the agent's options, and is the only file here that knows either.
 * Private to this folder and its unit tests.
 */
#ifndef DOCTOR_PLAN_H
#define DOCTOR_PLAN_H

#include <net/if.h>

#include "config/config.h"
#include "cli/doctor/doctor.h"
#include "runtime/endpoint.h"

#define PLAN_RDMA_MAX LB_PORTS_MAX
#define PLAN_PCI_MAX  16

enum plan_kind {
	PLAN_PCI,
	PLAN_AF_PACKET,
	PLAN_AF_XDP,
	PLAN_KERNEL, /* AF_XDP where it can be, else AF_PACKET */
	PLAN_VIRTUAL, /* no hardware and no kernel interface: memif, ring, vhost ... */
};

struct plan_port {
	char key[40];  /* where it is configured: "ports[1]", "--device" */
	char name[64]; /* name in messages */
	char device[256];
	enum plan_kind kind;
	char interface[IF_NAMESIZE]; /* for AF_PACKET, AF_XDP and both */
	char pci[PLAN_PCI_MAX];      /* address with its domain */
	char mtu_key[48];
	uint16_t mtu;
	bool fabric;
	struct lb_address address; /* on the fabric; family 0 when unknown */
};

/* An RDMA device that the program will open. */
struct plan_rdma {
	char key[40];
	char name[64];
	struct lb_address address;
	uint16_t mtu;
};

/* The load balancer's TCP connections, all lcores together. */
struct plan_tcp {
	bool used; /* a service has protocol tcp */
	uint32_t connections, buffer_mb, window;
	uint32_t flows, lcores;
	uint32_t memory_mb; /* that connections take, part of <needed_mb> */
	uint32_t needed_mb; /* of everything */
	uint32_t set_mb;    /* memory.mb; 0: not set */
};

/* A service with TLS, and its files. */
struct plan_secured {
	char service[LB_NAME_MAX];
	char certificate[LB_FILE_MAX], key[LB_FILE_MAX];
};

struct doctor_plan {
	enum doctor_side side;
	bool known; /* a configuration, or a device of the agent, was given and could be read */
	char error[512]; /* why it could not be read */
	unsigned int n_ports;
	struct plan_port port[LB_PORTS_MAX];
	unsigned int n_rdma;
	struct plan_rdma rdma[PLAN_RDMA_MAX];
	unsigned int n_cpus; /* CPUs of data-plane cores */
	uint16_t cpu[LB_LCORES_MAX];
	uint32_t memory_mb;
	const char *memory_keys; /* to lower where that is too much */
	struct plan_tcp tcp;
	bool hugepages;
	char control_socket[108];
	struct lb_address agents_address;
	uint16_t agents_port;
	/* files that protect agents' connections; empty: not given */
	char tls_certificate[LB_FILE_MAX], tls_key[LB_FILE_MAX], tls_ca[LB_FILE_MAX];
	char token_file[LB_FILE_MAX];
	char state_file[LB_FILE_MAX];
	char strangers[512]; /* why the daemon would not start without these files, or "" */
	unsigned int n_secured;
	struct plan_secured secured[LB_SERVICES_MAX];
	unsigned int n_vips;
	struct lb_address vip[LB_SERVICES_MAX];
	/* of an agent */
	uint32_t gpu_memory_mb; /* that must be free on its GPU; 0: any */
	struct endpoint lb;
	struct lb_address address, lb_fabric_address;
};

void plan_make(struct doctor_plan *plan, const struct doctor_question *question);

/* Sort a device string into <port>: kind, interface, PCI address. */
void plan_device(struct plan_port *port, const char *device);

/*
 * The number that devargs give <key>, else <otherwise>: plan_devarg("net_x,qpairs=2", "qpairs", 1).
 */
unsigned long plan_devarg(const char *device, const char *key, unsigned long otherwise);

#endif
