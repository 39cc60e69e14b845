/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program that is to run on this machine, as the checks see it: made from the load balancer's
 * configuration or the agent's options by plan.c, the only file here that knows either. Private to
 * this folder and its unit tests.
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
	PLAN_VIRTUAL, /* no hardware and no kernel interface: memif, ring, vhost ... */
};

struct plan_port {
	char key[40];  /* where it was said: "ports[1]", "--device" */
	char name[64]; /* what people call it */
	char device[256];
	enum plan_kind kind;
	char interface[IF_NAMESIZE]; /* AF_PACKET and AF_XDP */
	char pci[PLAN_PCI_MAX];      /* with its domain */
	char mtu_key[48];
	uint16_t mtu;
	bool fabric;
	struct lb_address address; /* the fabric's; family 0 when not known */
};

/* An RDMA device that a program is going to open. */
struct plan_rdma {
	char key[40];
	char name[64];
	struct lb_address address;
	uint16_t mtu;
};

struct doctor_plan {
	enum doctor_side side;
	bool known;      /* a configuration, or a device of the agent, was given and understood */
	char error[512]; /* why not, if there was one to understand */
	unsigned int n_ports;
	struct plan_port port[LB_PORTS_MAX];
	unsigned int n_rdma;
	struct plan_rdma rdma[PLAN_RDMA_MAX];
	unsigned int n_cpus; /* of data-plane cores */
	uint16_t cpu[LB_LCORES_MAX];
	uint32_t memory_mb;
	bool hugepages;
	char control_socket[108];
	struct lb_address agents_address;
	uint16_t agents_port;
	/* what agents' connections are protected with; empty: not given */
	char tls_certificate[LB_FILE_MAX], tls_key[LB_FILE_MAX], tls_ca[LB_FILE_MAX];
	char token_file[LB_FILE_MAX];
	char state_file[LB_FILE_MAX];
	char strangers[512]; /* why the daemon would not start without, or empty */
	unsigned int n_vips;
	struct lb_address vip[LB_SERVICES_MAX];
	/* agent */
	struct endpoint lb;
	struct lb_address address, lb_fabric_address;
};

void plan_make(struct doctor_plan *plan, const struct doctor_question *question);

/* Sort a device string into <port>: kind, interface, PCI address. */
void plan_device(struct plan_port *port, const char *device);

/* The number that devargs give <key>, or <otherwise>: plan_devarg("net_x,qpairs=2", "qpairs", 1) */
unsigned long plan_devarg(const char *device, const char *key, unsigned long otherwise);

#endif
