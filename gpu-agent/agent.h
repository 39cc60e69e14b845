/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The facade of gpu-agent/, private to it: declares what options.c, doorbell_agent.c, worker.c and
 * session.c define. Main thread throughout.
 */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/health.h"
#include "gpu/nvml.h"
#include "gpu/places.h"
#include "gpu_budget.h"
#include "loop/cuda/gpu_list.h"
#include "loop/loop.h"
#include "loop/model_load.h"
#include "rnic/rnic.h"
#include "runtime/endpoint.h"

#define AGENT_NAME_MAX    64
#define AGENT_WORKERS_MAX 64 /* workers of one agent */

extern int agent_logtype;

#define AGENT_LABELS_MAX 16

/* Where rings and payloads lie. AUTO: in the GPU's memory if the RDMA device takes it. */
enum agent_memory { AGENT_MEMORY_AUTO, AGENT_MEMORY_GPU, AGENT_MEMORY_HOST };

/* Of a device of the software RNIC. */
#define AGENT_QUEUES_MAX 16
/* In --device and --address of several workers: each one's number. */
#define AGENT_NUMBER_MARK "{n}"
/* <text> with the number in the place of every mark; the caller frees it. NULL: out of memory. */
char *agent_number_fill(const char *text, int number);

struct agent_options {
	struct endpoint lb; /* the load balancer's address for agents */
	char name[AGENT_NAME_MAX];
	const char *model, *model_arguments;
	bool verbs; /* an RDMA device is the RNIC; otherwise the software RNIC on a DPDK device */
	const char *device;
	struct rnic_address address, gateway;
	uint8_t prefix;
	const char *address_marked; /* --address, where it has AGENT_NUMBER_MARK; else NULL */
	/* The supervisor has claimed the interface of <device> for all its workers. */
	bool device_claimed;
	uint32_t mtu, slots, max_batch, batch_timeout_us, heartbeat_ms, max_run_ms, weight,
		memory_mb, payload_mb, traffic_class, queues;
	bool hugepages;
	bool idle_sleep;
	bool canary;       /* the model answers once before the worker registers */
	bool batch_sizes;  /* those that the model offers; else max_batch alone */
	const char *turns; /* file of those that run their models in turn; NULL: none */
	int memory;        /* enum agent_memory */
	bool may_post; /* the loop may ring an RDMA device itself, where the device allows it */
	bool dcqcn;
	const char *label[AGENT_LABELS_MAX]; /* key=value */
	unsigned int n_labels;
	uint32_t gpu_memory_mb; /* that a worker may take on its GPU; 0: no limit */
	const char *gpus;  /* auto, none, all, or a list of numbers */
	uint32_t workers;  /* number of workers on CPUs */
	bool processes;    /* several workers have a process each, under a supervisor */
	uint32_t hang_ms;  /* a loop or process that gives no sign of life for this long is ended */
	uint32_t start_ms; /* a supervised worker that is not up after this long is ended */
	int log_level;     /* 0: errors, to 4: debug */
	int log_format;    /* enum log_format */
	/* TLS by the first three, or by the token; NULL: not given */
	const char *tls_certificate, *tls_key, *tls_ca, *token_file;
	const char *tls_name; /* expected in the load balancer's certificate; NULL: <lb.host> */
};

/* Parse the command line into <o>. 0 to go on, 1 to exit with success, 2 after a usage error was
 * printed. */
int agent_options_parse(int argc, char **argv, struct agent_options *o);

/* Parse "10.201.0.11" or "fd00::11" into <out>. False when it is not an IP address. */
bool agent_address_parse(const char *text, struct rnic_address *out);
/* Take "10.201.0.11/24" into the <options>, a struct agent_options: OPTION_CALL's take(). */
int agent_prefix_take(void *options, const char *text, char *error, size_t size);
const char *agent_address_format(const struct rnic_address *address, char *text, size_t size);

/* --- doorbell_agent.c --------------------------------------------------------------------------
 */

/*
 * Parse "0,2" into <numbers>, each from 0 to <n_gpus> - 1. Returns how many there are, or -1 after
 * an error was logged.
 */
int agent_gpu_list(const char *text, int n_gpus, int numbers[AGENT_WORKERS_MAX]);

/* Name one of several workers: "host" becomes "host-gpu0" and so on. */
void agent_worker_name(char name[AGENT_NAME_MAX], const char *host, const char *kind, int number);

/* Run the agent without a graph, as a program that may start itself again for every worker. Returns
 * its exit status. */
int agent_main(int argc, char **argv);

/* --- worker.c: the links and the loop of one registration ---------------------------------------
 */

/* The parts of a worker; they outlive it. */
struct agent_setup {
	char name[AGENT_NAME_MAX];
	struct rnic *rnic;
	struct loaded_model model;
	const struct agent_options *options;
	const struct agent_loop_ops *loop;
	int gpu; /* CUDA device number, for a loop on a GPU */
	struct gpu_health *health; /* of that GPU; NULL: none, or nothing can be told of it */
	struct places places;
	struct gpu_budget budget;
	/* Rings and payloads are to be in the GPU's memory; if not, <memory_why> says why, unless
	 * that is plain. */
	bool memory_on_gpu;
	char memory_why[160];
};

struct agent_worker;

/* The load balancer's answer to agent.hello. */
struct agent_hello {
	uint32_t n_lcores;
	uint32_t path_mtu;
	struct rnic_address address;
	uint32_t max_request, max_reply;
	uint32_t worker_timeout_ms;
	uint8_t ack_timeout, retry_count;
	bool describe; /* it takes descriptions; older load balancers do not know them */
	bool report;   /* and reports of what the worker does */
};

/* Our half of a link, which is sent to the load balancer, and the half that the load balancer
 * answers with. */
struct agent_link_offer {
	uint32_t qpn, psn, rkey, stride;
	uint64_t descriptors, payloads, cancels, room;
};
struct agent_link_answer {
	uint32_t lcore, qpn, psn, reply_rkey;
	uint32_t chunk; /* bytes of the longest message of a reply */
	uint64_t reply_address;
	uint16_t udp_source; /* UDP source port that the load balancer wants packets from; 0: any */
};

/* Create memory and queue pairs: one link per lcore of the load balancer. NULL with errno, and with
 * a reason in <why> if one is known beyond that, else "". */
struct agent_worker *agent_worker_create(const struct agent_setup *setup,
					 const struct agent_hello *hello, char *why, size_t size);
/* Bytes of the model's longest reply, or the services' limit if that is less. */
uint32_t agent_worker_max_reply(const struct agent_worker *w);
unsigned int agent_worker_links(const struct agent_worker *w);
struct agent_link_offer agent_worker_offer(const struct agent_worker *w, unsigned int lcore);
/* Connect every link and start the loop. 0, or -errno and <error>. */
int agent_worker_start(struct agent_worker *w, const struct agent_link_answer *answers,
		       uint32_t path_mtu, char *error, size_t size);
/* Stop the loop, free links and memory. */
void agent_worker_destroy(struct agent_worker *w);
/* True when this registration, or one of its links, has failed. <why> gets the reason; <final>:
 * registering again does not help either. */
bool agent_worker_failed(const struct agent_worker *w, bool *final, char *why, size_t size);
/* The number of its links whose queue pairs have failed. */
unsigned int agent_worker_failed_links(const struct agent_worker *w);
void agent_worker_stats_read(const struct agent_worker *w, struct agent_loop_stats *out);

/* --- session.c: the conversation with the load balancer -----------------------------------------
 */

struct agent_session;
struct event_base;

/* Start a session. <setup> outlives it. <ended> is called once the worker has left, or has failed
 * for good. NULL when out of memory. */
struct agent_session *agent_session_create(struct event_base *base, const struct agent_setup *setup,
					   void (*ended)(void *context, bool failed),
					   void *context);
void agent_session_destroy(struct agent_session *s);

/* Drain, then end. A second call ends the session at once. */
void agent_session_leave(struct agent_session *s);

#endif
