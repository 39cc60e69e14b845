/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * e2e: a client of a real doorbell-lb with a real doorbell-agent behind it, over memif. The daemons
 * are started by e2e.sh; this is the client's program. A thread per queue of its port. See
 * README.md.
 */
#ifndef BENCH_E2E_H
#define BENCH_E2E_H

#include <netinet/in.h>

#include <rte_mbuf.h>

#include "load.h"
#include "runtime/port.h"

#define E2E_BURST       32
#define E2E_THREADS_MAX 16
#define E2E_WINDOW_MAX  1024 /* of a thread: as many as a memif ring has places */
#define E2E_REQUEST_MAX 9188 /* one datagram at the load balancer's largest MTU */

struct e2e_options {
	/* sockets: flows; window: requests without a reply, over all flows */
	struct load_options load;
	uint64_t threads; /* each has a queue of the port, and its share of flows, window and
			     requests */
	uint64_t size; /* bytes of an echo request */
	uint64_t runs;
	const char *device;
	const char *data;            /* digits instead of echo */
	const char *model, *weights; /* NULL: only the form of answers can be checked */
	const char *json, *commit, *machine;
	bool no_huge;
	bool yield; /* too few CPUs: yield ours when there is no work */
};

/* --- e2e_net.c: frames ---------------------------------------------------------------------------
 */

/* A thread has a copy of its own. */
struct e2e_net {
	struct port port;
	uint16_t queue;
	uint32_t first_flow; /* of the thread's */
	struct rte_mempool *received, *requests;
	struct in6_addr vip; /* as ::ffff:a.b.c.d */
	uint16_t service;    /* UDP port, network order */
	bool resolved;
	uint8_t lb_mac[6];
};

/* A datagram that came for a flow. */
struct e2e_datagram {
	uint32_t flow;
	const uint8_t *bytes;
	uint32_t length;
};

/* Opens the EAL and the port, and resolves the service's MAC address; does not return without them.
 */
void e2e_net_open(struct e2e_net *net, const struct e2e_options *o);
void e2e_net_close(struct e2e_net *net);
/* Returns the place of a request's payload in an empty mbuf. */
uint8_t *e2e_net_payload(struct rte_mbuf *m);
/* Writes headers and checksums around a payload of <length>. */
void e2e_net_finish(const struct e2e_net *net, struct rte_mbuf *m, uint32_t flow, uint32_t length);
/* Returns 1 for a datagram of the service to one of <flows>, 0 for other frames that are all right
 * (ARP is answered), -EBADMSG for a frame that must not come. */
int e2e_net_take(struct e2e_net *net, const struct rte_mbuf *m, uint32_t flows,
		 struct e2e_datagram *datagram);

/* --- e2e_work.c: what is asked -------------------------------------------------------------------
 */

/* Makes echo requests of <o>'s size, or digits. Does not return when they cannot be made. */
struct load_work e2e_work(const struct e2e_options *o);
/* With digits: the share of the held-out pictures that were recognised. */
double e2e_work_accuracy(void);

/* --- e2e_load.c: the closed loop -------------------------------------------------------------- */

/*
 * Sends <requests>, keeps the window full, and accounts for each in <tally>, which the caller
 * finishes. Does not return when replies stop.
 */
void e2e_load_run(struct e2e_net *net, const struct e2e_options *o, const struct load_work *work,
		  uint64_t requests, struct tally *tally);

#endif
