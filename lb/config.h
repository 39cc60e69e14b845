/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration file: YAML in, struct lb_config out, errors that name file, line, key and fix.
 * Pure but for reading the file; no DPDK.
 */
#ifndef LB_CONFIG_H
#define LB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "assign.h"
#include "workers.h"

#define LB_PORTS_MAX    16
#define LB_SERVICES_MAX 256
#define LB_LCORES_MAX   64
#define LB_NAME_MAX     64
#define LB_FILE_MAX     256

struct lb_port_config {
	char name[LB_NAME_MAX]; /* what people call it */
	char device[256];       /* DPDK devargs: "net_af_packet0,iface=eth1" or "0000:3b:00.0" */
	bool clients;           /* services answer here */
	bool fabric;            /* workers are reached here */
	bool verbs;             /* fabric only: <device> is an RDMA device, not a DPDK one */
	uint16_t mtu;           /* bytes of IP packet; default 1500 */
	uint16_t rx_descriptors, tx_descriptors; /* default 1024 */
	/* fabric only */
	struct lb_address address; /* the load balancer's own RoCEv2 address on this port */
	uint8_t prefix;            /* its length */
	struct lb_address gateway; /* family 0 when not set */
};

enum lb_affinity { LB_AFFINITY_FLOW, LB_AFFINITY_REQUEST, LB_AFFINITY_STICKY };
enum lb_framing { LB_FRAMING_DATAGRAM, LB_FRAMING_TAGGED };

struct lb_service_config {
	char name[LB_NAME_MAX];
	struct lb_address vip;
	uint16_t port;           /* host order */
	uint8_t protocol;        /* IPPROTO_UDP */
	enum lb_framing framing; /* default datagram */
	char model[WORKER_NAME_MAX];
	enum pick_policy policy; /* default least-outstanding */
	bool assigned_only;      /* only workers assigned to it serve it; default false: all of its
				    model */
	/*
	 * With fewer active workers, up to <spares> others of its model that nobody has assigned
	 * step in; both only when assigned_only, default 0.
	 */
	uint32_t min_workers, spares;
	enum assign_placement placement; /* of spares, by the label host; default spread */
	uint32_t slow_start_ms;          /* until a new worker has its full weight; default 0 */
	enum lb_affinity affinity;       /* default request */
	/*
	 * Affinity sticky: a worker that owes more than a batch and more than so many percent of
	 * the mean is saturated. 100 to 100000, default 125; 0: only when it has no free slot.
	 */
	uint32_t sticky_load_percent;
	/*
	 * Bytes of one datagram. Default and limit: what fits the smallest MTU of the clients
	 * ports, less 28 bytes of headers for an IPv4 address and 48 for IPv6, and 24 more when
	 * tagged; 1472 for IPv4 at MTU 1500.
	 */
	uint32_t max_request, max_reply;
	uint32_t queue; /* requests that may wait for a credit, per lcore; default 1024 */
	uint32_t queue_timeout_ms;   /* default 1000 */
	uint32_t request_timeout_ms; /* from sending to the last reply chunk; default 10000 */
	/* neither shorter than queue_timeout_ms + request_timeout_ms */
	uint32_t flow_timeout_ms;    /* answered clients that spoke again; default 30000 */
	uint32_t one_way_timeout_ms; /* all others; default 5000, or a second more than that sum */
	bool payload_crc;            /* descriptors carry a CRC-32 of the payload; default false */
	/*
	 * From the request's arrival to its reply; what cannot make it is refused early. 0, the
	 * default: none. A tagged request may bring its own.
	 */
	uint32_t deadline_ms;
	uint8_t priority; /* 1 (first) to 4, and no request is more urgent; default 2 */
	/*
	 * How often a request may be sent to another worker when its own is lost or suspect;
	 * default 0. Only for models that may run a request twice.
	 */
	uint8_t replay;
	uint32_t probe_bytes; /* of zeros, that a new worker must answer first; 0, the default: none
			       */
	/* not in the file: it was taken out of it, and has requests and flows still */
	bool leaving;
};

struct lb_config {
	unsigned int n_ports;
	struct lb_port_config port[LB_PORTS_MAX];
	/*
	 * As read: in the file's order. In a running load balancer a service's place is its number,
	 * which it keeps: places between others may be free, all zero. See lb_service_used().
	 */
	unsigned int n_services;
	struct lb_service_config service[LB_SERVICES_MAX];
	unsigned int n_lcores;
	uint16_t lcore_cpu[LB_LCORES_MAX]; /* CPU of each data-plane core */
	bool idle_sleep; /* idle lcores yield, then sleep; default true. false = busy polling */
	uint32_t flows;  /* capacity, all lcores together; default 1048576 */
	uint32_t new_flows_per_source;    /* per second and lcore, see conntrack.h; default 0 */
	uint32_t reclaim_after_ms;        /* see conntrack.h; default 1000 */
	uint8_t flow_table;               /* enum conntrack_table; default CONNTRACK_TABLE_TAGS */
	uint32_t memory_mb;               /* EAL memory; 0 = sized from flows and ports */
	bool hugepages;                   /* default true; false = --no-huge */
	char control_socket[108];         /* default /run/doorbell/control.sock */
	struct lb_address agents_address; /* where agents register (TCP); default 0.0.0.0 */
	uint16_t agents_port;             /* default 4790 */
	struct lb_address http_address;   /* status page, metrics; default 127.0.0.1; 0: off */
	uint16_t http_port;               /* default 9180 */
	uint32_t worker_timeout_ms;       /* no heartbeat for this long = dead; default 500 */
	uint32_t suspect_ms; /* no heartbeat for this long = gets no new requests; default 50; 0:
				never */
	/* Workers that fail this share of requests are out for a while; default 50; 0: never. */
	uint8_t eject_error_percent;
	/* So are those that take this many times the median; 0, the default: never. */
	uint16_t eject_latency_factor;
	uint32_t eject_ms;      /* for how long the first time; default 5000 */
	uint32_t slow_start_ms; /* a new worker gets its weight bit by bit; 0, the default: at once
				 */
	uint32_t replay_mb;     /* of payloads kept for a replay, all lcores; default 16 */
	uint8_t ack_timeout;    /* RoCE: 4.096 us x 2^n; default 14 (67 ms) */
	uint8_t retry_count;    /* RoCE: default 7 */
	uint8_t rnr_retry;      /* RoCE: default 7, which is for ever */
	bool dcqcn;             /* react to congestion on the fabric; default true */
	char log_level[16];     /* error, warning, notice, info, debug; default info */
	uint8_t log_format;     /* enum log_format of log_line.h; default text */

	/* agents: TLS 1.3 with the first three or with the token; all empty: not protected */
	char agents_certificate[LB_FILE_MAX], agents_key[LB_FILE_MAX], agents_ca[LB_FILE_MAX];
	char agents_token[LB_FILE_MAX];
	uint32_t lease_ms; /* an agent that does not renew for this long is gone; default 5000 */
};

/* Is this a service, or a free place between others? */
static inline bool lb_service_used(const struct lb_service_config *service)
{
	return service->vip.family != 0;
}

/* Does it take new requests? */
static inline bool lb_service_serves(const struct lb_service_config *service)
{
	return lb_service_used(service) && !service->leaving;
}

/*
 * Read and check <path>. Returns 0, or -errno with one line in <error>:
 * "lb.yaml:12: services[1].port: '70000' is not a port; use 1 to 65535".
 * <config> is complete only after 0; the caller owns it and there is nothing in it to free.
 */
int lb_config_load(const char *path, struct lb_config *config, char *error, size_t error_size);

/* The same from memory; <name> is what errors call it. For tests and the fuzzer. */
int lb_config_parse(const char *name, const char *text, size_t length, struct lb_config *config,
		    char *error, size_t error_size);

#endif
