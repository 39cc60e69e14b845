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

#include "config/address.h"
#include "assign.h"
#include "schedule/pick.h"

#define LB_PORTS_MAX    16
#define LB_SERVICES_MAX 256
#define LB_MODELS_MAX   32 /* services of framing kserve with one address and port */
#define LB_LCORES_MAX   64
#define LB_NAME_MAX     64
#define LB_ZONES_MAX    64
#define LB_VLANS_MAX    64 /* VLAN ids that one zone may list */
#define LB_FILE_MAX     256
#define LB_LABEL_MAX    100 /* KEY=VALUE with its zero, as long as a worker's label can be */

struct lb_port_config {
	char name[LB_NAME_MAX]; /* its name in the CLI, logs and metrics */
	char device[256];       /* "kernel0,iface=eth1", "0000:3b:00.0", or DPDK devargs */
	bool clients;           /* services answer on this port */
	bool fabric;            /* workers are reached through this port */
	bool verbs;             /* fabric only: <device> is an RDMA device, not a DPDK one */
	uint16_t mtu;           /* bytes of IP packet; default 1500 */
	uint16_t rx_descriptors, tx_descriptors; /* default 1024 */
	/* At most one per lcore. 0, the default: one per lcore where the device has as many; one of
	 * a memif, which does not tell how many the other end has. */
	uint16_t queues;
	bool trusted;  /* with both roles: clients here do not forge workers' packets; default false
			*/
	bool offloads; /* use the port's checksum offloads where it has them; default true */
	bool tso;      /* and with them, let it cut TCP segments if it can; default true */
	/* fabric only */
	struct lb_address address; /* the load balancer's own RoCEv2 address on this port */
	uint8_t prefix;            /* prefix length of <address>, bits */
	struct lb_address gateway; /* family 0 when not set */
};

/* Ports and VLANs that together form one client network; see zone.h. */
struct lb_zone_config {
	char name[LB_NAME_MAX];
	unsigned int n_ports;
	char port[LB_PORTS_MAX][LB_NAME_MAX]; /* names of ports with the role clients */
	/* VLAN ids (0 = untagged) that form the zone. None: each VLAN id is a zone of its own. */
	unsigned int n_vlans;
	uint16_t vlan[LB_VLANS_MAX];
};

enum lb_affinity { LB_AFFINITY_FLOW, LB_AFFINITY_REQUEST, LB_AFFINITY_STICKY };
/* DATAGRAM: udp only; LENGTH and KSERVE: tcp only, see framing/stream.h; TAGGED: both. */
enum lb_framing { LB_FRAMING_DATAGRAM, LB_FRAMING_TAGGED, LB_FRAMING_LENGTH, LB_FRAMING_KSERVE };
enum lb_congestion { LB_CONGESTION_CUBIC, LB_CONGESTION_RENO, LB_CONGESTION_DCTCP };

struct lb_service_config {
	char name[LB_NAME_MAX];
	struct lb_address vip;
	uint16_t port;           /* host order */
	uint8_t protocol;        /* IPPROTO_UDP, the default, or IPPROTO_TCP */
	enum lb_framing framing; /* default datagram; of tcp: length */
	char model[WORKER_NAME_MAX];
	enum pick_policy policy; /* default least-outstanding */
	bool assigned_only;      /* only workers assigned to it serve it; default false: all workers
				    of its model do */
	/*
	 * When fewer than <min_workers> workers are active, up to <spares> unassigned workers of
	 * the model step in. Only with assigned_only; default 0.
	 */
	uint32_t min_workers, spares;
	enum assign_placement placement; /* of spares, by the label host; default spread */
	uint32_t slow_start_ms;          /* until a new worker has its full weight; default 0 */
	enum lb_affinity affinity;       /* default request */
	/*
	 * Affinity sticky: a worker is saturated when it has no free slot, or when its outstanding
	 * requests exceed a batch and this percentage of the mean. 100 to 100000, default 125; 0:
	 * only when it has no free slot.
	 */
	uint32_t sticky_load_percent;
	/*
	 * Labels by which workers are in one place; empty, the default: place does not matter. At
	 * most one of them is set. See DECISIONS.md and workers/schedule/groups.h.
	 */
	char near[32], spread[32];
	/*
	 * Payload bytes. Of udp the default and limit is one datagram: the smallest MTU of the
	 * clients ports, less headers: 28 bytes for an IPv4 VIP, 48 for IPv6, and 24 more with
	 * framing tagged; 1472 for IPv4 at MTU 1500. Of tcp up to WORKER_BYTES_MAX, by default
	 * 1 MiB; a reply is no larger than lb_tcp_client_share().
	 */
	uint32_t max_request, max_reply;
	/*
	 * Requests that may wait for a credit, per lcore. Default 1024, or, if that is less, the
	 * largest power of two that each service without this key can have of
	 * memory.queue_packets.
	 */
	uint32_t queue;
	uint32_t queue_timeout_ms;   /* default 1000 */
	uint32_t request_timeout_ms; /* from sending to the last reply chunk; default 10000 */
	/* Of udp. Both are at least queue_timeout_ms + request_timeout_ms. */
	uint32_t flow_timeout_ms; /* clients that sent again after an answer; default 30000 */
	uint32_t
		one_way_timeout_ms; /* all others; default 5000, or that sum and a second if more */
	bool payload_crc;           /* descriptors carry a CRC-32 of the payload; default false */
	uint8_t congestion;         /* of tcp, enum lb_congestion; default cubic */
	bool ecn;                   /* of tcp, of connections that open from now on; default true */
	/* Of tcp, PEM files: connections that open from now on have TLS. Both, or none: "". */
	char tls_certificate[LB_FILE_MAX], tls_key[LB_FILE_MAX];
	/*
	 * From the request's arrival to its reply. A request that cannot be answered in time is
	 * refused early. 0, the default: no deadline. A tagged request may bring its own.
	 */
	uint32_t deadline_ms;
	uint8_t priority; /* 1 (first) to 4 (last), the most urgent a request may ask; default 2 */
	/*
	 * How often a request may be sent to another worker when its own is lost or suspect;
	 * default 0. Only for models that may run a request twice.
	 */
	uint8_t replay;
	/*
	 * Length of the request of zero bytes that a new worker must answer first; 0, the default:
	 * none.
	 */
	uint32_t probe_bytes;
	/* Not a key: the file no longer has this service, but it still has requests or flows. */
	bool leaving;
};

/*
 * Connections of services with protocol tcp. Keys without a unit in their name count things, or
 * bytes where it says so. All but <connections> and <buffer_mb> can change at run time.
 */
struct lb_tcp_config {
	uint32_t connections; /* at a time, all lcores together; default 65536 */
	/* Share of <connections> for one client, on each lcore: an IPv4 address, or an IPv6 /64.
	 * Default 50; 100: no limit. */
	uint8_t connections_percent;
	uint32_t backlog;     /* half-open ones, per service and lcore, until SYNs are answered by
				 cookies; default 1024 */
	uint32_t buffer_mb;   /* MiB of packet buffers for bytes held in both directions, all lcores
				 together; default 256 */
	uint32_t window;      /* bytes offered to one connection at most; default 1 MiB */
	/* Share of <buffer_mb> for one client: an IPv4 address, or an IPv6 /64. Default 25. */
	uint8_t client_percent;
	uint32_t unfinished; /* requests of one client that hold a slot before they are complete;
				default 64 */
	/* Bytes per second at which an unfinished request must come on average, or lose its slot;
	 * default 16 KiB; 0: at any rate. */
	uint32_t min_rate;
	uint32_t pipeline;              /* open requests of one connection; default 64 */
	uint32_t keepalive_ms;          /* of silence until a probe; default 60000 */
	uint32_t keepalive_interval_ms; /* between probes; default 10000 */
	uint8_t keepalive_probes;       /* without an answer end the connection; default 3 */
	/* A connection without an open request for this long is closed. 0, the default: never. */
	uint32_t idle_ms;
	/* Of silence in a reply in pieces until its client gets a sign that it goes on (framing
	 * kserve, streams of events); default 15000; 0: it gets none. */
	uint32_t stream_heartbeat_ms;
	uint32_t handshake_ms;    /* for a handshake of TLS; default 10000 */
	uint32_t fin_wait_ms;     /* for the client's FIN after ours; default 10000 */
	uint32_t time_wait_ms;    /* that an ended connection is remembered; default 60000 */
	uint32_t give_up_ms;      /* without an acknowledgement; default 60000 */
	uint8_t syn_retries;      /* SYN-ACKs sent again; default 3 */
	uint32_t rto_min_ms;      /* smallest retransmission timeout; default 200 */
	uint32_t rto_max_ms;      /* largest; default 60000 */
	uint32_t ack_delay_ms;    /* that an acknowledgement waits for a reply; default 10 */
	uint8_t initial_segments; /* of the congestion window; default 10 */
	/* Bytes of payload, without options, of the largest segment we take. 0, the default: what
	 * the smallest MTU of the clients ports leaves. */
	uint16_t mss;
	/* Not a key: there is a tcp service, or was one since the start, so there is memory for
	 * connections. */
	bool used;
	/* Not a key: the same for TLS. */
	bool secured;
};

struct lb_config {
	unsigned int n_ports;
	struct lb_port_config port[LB_PORTS_MAX];
	unsigned int n_zones;
	struct lb_zone_config zone[LB_ZONES_MAX];
	/*
	 * After reading: in the file's order. In a running load balancer the index is the service's
	 * number, which never changes, so entries in between may be free (all zero). See
	 * lb_service_used().
	 */
	unsigned int n_services;
	struct lb_service_config service[LB_SERVICES_MAX];
	/* The load balancer's own labels, KEY=VALUE, for <near>; host is the host's name if it is
	 * not given. See lb_config_label(). */
	unsigned int n_labels;
	char label[WORKER_LABELS_MAX][LB_LABEL_MAX];
	unsigned int n_lcores;
	uint16_t lcore_cpu[LB_LCORES_MAX]; /* CPU of each data-plane core */
	uint32_t stop_timeout_ms; /* to finish admitted requests after a stop; default 10000 */
	bool idle_sleep; /* idle lcores yield, then sleep; default true. false = busy polling */
	uint32_t flows;  /* capacity, all lcores together; default 1048576 */
	/* Requests from lower ports are refused: services there (echo, DNS) answer any datagram. */
	uint16_t min_source_port;      /* default 1024; 1: no port is refused */
	uint32_t new_flows_per_source; /* per second and lcore, see conntrack.h; default 0: no limit
					*/
	/* Notices about requests that were not admitted, per second and lcore; default 100. */
	uint32_t notices_per_source;
	uint32_t reclaim_after_ms;        /* see conntrack.h; default 1000 */
	char cluster_secret[LB_FILE_MAX]; /* file; empty: a random seed, see cluster_secret.h */
	uint8_t flow_table;               /* enum conntrack_table; default CONNTRACK_TABLE_TAGS */
	uint32_t memory_mb;               /* EAL memory; 0 = sized from flows and ports */
	/*
	 * Packet buffers of one lcore, beside those that ports receive into. <queue_packets> hold
	 * waiting requests: at least the sum of the services' queues. <window_packets> hold packets
	 * that workers have not acknowledged: all links' windows together.
	 */
	uint32_t queue_packets, window_packets; /* default 8192 each */
	bool hugepages;                         /* default true; false = --no-huge */
	/* Operators' settings for workers; default /var/lib/doorbell/state.json; empty: not kept.
	 */
	char state_file[LB_FILE_MAX];
	char control_socket[108]; /* default /run/doorbell/control.sock */
	/* Groups whose members may open the sockets; empty, the default: only root may. */
	char control_group[32], control_read_only_group[32];
	char control_read_only_socket[108]; /* for methods that only read; empty: none */
	struct lb_address agents_address;   /* where agents register (TCP); default 0.0.0.0 */
	uint16_t agents_port;               /* default 4790 */
	struct lb_address http_address;     /* status page, metrics; default 127.0.0.1; 0: off */
	uint16_t http_port;                 /* default 9180 */
	uint32_t worker_timeout_ms;         /* no heartbeat for this long: dead; default 500 */
	/* No heartbeat for this long: suspect, gets no new requests; default 50; 0: never. */
	uint32_t suspect_ms;
	/* A worker that fails this share of its requests is ejected; default 50; 0: never. */
	uint8_t eject_error_percent;
	/* A worker that takes this many times the median is ejected; 0, the default: never. */
	uint16_t eject_latency_factor;
	uint32_t eject_ms;      /* duration of the first ejection; default 5000 */
	uint32_t slow_start_ms; /* a new worker's weight grows for this time; 0, the default: full
				   weight at once */
	uint32_t replay_mb;     /* MiB of packets kept for replays, all lcores; default 16 */
	uint8_t ack_timeout;    /* RoCE: 4.096 us x 2^n; default 14 (67 ms) */
	uint8_t retry_count;    /* RoCE: default 7 */
	uint8_t rnr_retry;      /* RoCE: default 7, without limit */
	/*
	 * When another MAC address claims a worker's IP address: how long the old one is given to
	 * answer, and so to deny it; default 100.
	 */
	uint32_t neighbour_probe_ms;
	bool dcqcn;         /* react to congestion on the fabric; default true */
	char log_level[16]; /* error, warning, notice, info, debug; default info */
	uint8_t log_format; /* enum log_format of log_line.h; default text */
	/* The access log's file; empty, the default: there is none. A line for one request of so
	 * many; default 1. */
	char access_log[LB_FILE_MAX];
	uint32_t access_log_one_in;

	/* Agents use TLS 1.3 with the first three or with the token; all empty: no protection. */
	char agents_certificate[LB_FILE_MAX], agents_key[LB_FILE_MAX], agents_ca[LB_FILE_MAX];
	char agents_token[LB_FILE_MAX];
	bool agents_plain; /* other hosts' agents may register without either; default false */
	struct lb_tcp_config tcp;
	uint32_t lease_ms; /* an agent that does not renew for this long is lost; default 5000 */
	/* At most this share of a model's workers is suspect for a closed connection; default 50.
	 */
	uint8_t control_loss_max_percent;
};

/*
 * True when agents may register without authentication and the file does not allow it explicitly.
 * <why> then names the keys and the fix.
 */
bool lb_config_lets_strangers_in(const struct lb_config *config, char *why, size_t size);

/* True for a service, false for a free entry between others. */
static inline bool lb_service_used(const struct lb_service_config *service)
{
	return service->vip.family != 0;
}

/* True when new connections to the service have TLS. */
static inline bool lb_service_has_tls(const struct lb_service_config *service)
{
	return service->tls_certificate[0] != '\0';
}

/* True when the service takes new requests. */
static inline bool lb_service_serves(const struct lb_service_config *service)
{
	return lb_service_used(service) && !service->leaving;
}

/*
 * Read and check the file <path>. Returns 0, or -errno with one line in <error>:
 * "lb.yaml:12: services[1].port: '70000' is not a port; use 1 to 65535".
 * <config> is complete only after 0; the caller owns it and has nothing in it to free.
 */
int lb_config_load(const char *path, struct lb_config *config, char *error, size_t error_size);

/* The same for a text in memory; errors call it <name>. For tests and the fuzzer. */
int lb_config_parse(const char *name, const char *text, size_t length, struct lb_config *config,
		    char *error, size_t error_size);

/* The smallest MTU of the clients ports, bytes of IP packet. */
uint16_t lb_config_clients_mtu(const struct lb_config *config);

/* Bytes that one client's connections on one lcore may hold: its share of tcp.buffer_mb. */
uint64_t lb_tcp_client_share(const struct lb_config *config);

#endif
