/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated workers: each registers as an agent does, has the memory that a ring needs, and
 * is an RC queue pair per lcore on the fabric. It checks what it is given against the contract of
 * ring.h, and the row fails when something is wrong. Its fields,
 * set between turns, say what it leaves out or does wrong.
 */
#ifndef WALK_WORKER_H
#define WALK_WORKER_H

#include "rdma/responder.h"
#include "ring.h"
#include "walk.h"

struct walk_worker_params {
	const char *name;                /* NULL: gpu0, gpu1 ... */
	const char *model;               /* NULL: echo */
	uint32_t slots;                  /* 0: 16 */
	uint32_t max_request, max_reply; /* 0: what fits the default MTU of clients ports */
	uint32_t max_batch;              /* 0: 8 */
	uint32_t weight;                 /* 0: 1 */
	uint32_t heartbeat_ms;           /* 0: 10 */
	uint32_t max_run_ms;
	uint32_t max_chunks; /* of a reply; 0: not told */
	uint64_t room;       /* bytes for requests that are longer than a tile */
	uint32_t path_mtu;   /* 0: 1024 */
	uint32_t psn;        /* 0: one that wraps soon */
	const char *address; /* NULL: one of its own in the fabric's subnet */
};

/* A request that the worker has not answered yet. */
struct walk_request {
	unsigned int lcore;
	uint32_t slot, length, reply;
	uint64_t sequence;
	uint16_t service;
	uint64_t flow;
	uint32_t deadline_us, sent_us, flags, crc32;
	uint64_t since;  /* TSC */
	uint32_t chunks; /* of the answer, so far */
	const uint8_t *bytes;
	bool cancelled; /* its cancel word is set */
};

/* One queue pair and ring. */
struct walk_link {
	struct lb_link_info info;
	struct responder responder;
	struct roce_path path, forged; /* back to the load balancer; from another address */
	uint32_t psn;                  /* of its next WRITE */
	uint64_t sequence;             /* of the last descriptor */
	uint8_t *memory;               /* descriptors, cancel words, payloads */
	uint32_t *written;             /* by slot: bytes written there since the last request */
	bool *taken;                   /* by slot: announced and not answered */
	uint64_t message_va;
	uint32_t n_message;
	/* what came from the load balancer */
	uint32_t acked; /* PSN of the last acknowledgement */
	uint64_t acks, naks, cnps;
	uint8_t nak; /* syndrome of the last */
};

struct walk_worker {
	struct walk *walk;
	char name[WORKER_NAME_MAX];
	struct lb_address address;
	uint8_t mac[6];
	struct lb_registration registration;
	uint32_t path_mtu;
	struct walk_link link[LB_LCORES_MAX];
	unsigned int n_requests;
	struct walk_request *request; /* oldest first; room for one per slot of each link */
	uint64_t answered;            /* requests */
	uint64_t beat_at;             /* TSC: the next heartbeat */
	/* Behaviour that rows may switch off. All true at first. */
	bool resolves;     /* answers ARP and neighbour solicitations */
	bool acknowledges; /* WRITEs */
	bool answers;      /* every request, with its own bytes */
	bool beats;        /* heartbeats */
	/* Misbehaviour that rows may switch on; zero at first. */
	bool gone;         /* takes nothing and does nothing: killed, or its cable was cut */
	uint32_t delay_ms; /* answers a request only after this time */
	uint8_t nak;       /* answers WRITEs with this syndrome instead of an acknowledgement */
	uint32_t lose;     /* loses as many of the next packets that come to it */
	uint8_t status;    /* of its answers: enum ring_status */
	uint64_t run_ns;   /* run time that its batches report */
	uint32_t backlog;  /* requests that it says it has */
	bool by_deadline;  /* its heartbeats say that it runs them by their deadlines */
	uint16_t queue;    /* of the fabric port: added to the one of the link's lcore */
	uint64_t strays; /* packets for queue pairs that it does not have, and other unexpected ones
			  */
};

/*
 * Register a worker and let it become active. Ends the program when it does not. NULL for <params>:
 * all as said there.
 */
struct walk_worker *walk_worker(struct walk *w, const struct walk_worker_params *params);
/* Only registers. NULL when it is refused, with the sentence in w->error. */
struct walk_worker *walk_worker_register(struct walk *w, const struct walk_worker_params *params);
/* The same for any registration; <v> has its name and model, at least. */
struct walk_worker *walk_worker_register_as(struct walk *w, const struct lb_registration *r);
/* A registration as walk_worker_register() makes it, to change. */
void walk_worker_registration(struct walk *w, const struct walk_worker_params *params,
			      struct lb_registration *r);
/* Sends ready, heartbeats and ticks until it is active. False: it is not active within 100 ms. */
bool walk_worker_start(struct walk_worker *v);
/* Returns the load balancer's record of it, or NULL when it was removed. */
struct worker *walk_worker_of(const struct walk_worker *v);
struct lb_link_stats walk_worker_stats(const struct walk_worker *v);
void walk_worker_free(struct walk_worker *v);

/* --- by hand -----------------------------------------------------------------------------------
 */

/* An answer, or one chunk of it. Zeros are the truth; the rest are lies. */
struct walk_reply {
	uint8_t status;
	const void *bytes; /* NULL: the request's own */
	uint32_t n_bytes;
	bool more; /* chunks follow */
	/* lies: added to, or combined by exclusive or with, what would be right */
	int32_t psn;
	uint32_t qpn, rkey, imm, header_length;
	uint64_t va, sequence;
	bool no_imm, bad_icrc, forged_source;
	uint8_t opcode; /* instead of the right one */
	uint32_t cut;   /* bytes that are missing from the end of the header and bytes */
	uint64_t seen_ns, start_ns, done_ns; /* all 0: plausible ones */
};

/* Answers request <i> of those that it has. The last chunk takes it off the list. */
void walk_answer(struct walk_worker *v, unsigned int i, const struct walk_reply *reply);
/* Answers all requests that it has, with their own bytes and its status. */
void walk_answer_all(struct walk_worker *v);
void walk_beat(struct walk_worker *v);
/* Sends an acknowledgement or NAK, with a PSN relative to what its link expects next. */
void walk_acknowledge(struct walk_worker *v, unsigned int lcore, int32_t psn, uint8_t syndrome);
/* Sends a congestion notification. */
void walk_notify(struct walk_worker *v, unsigned int lcore);

/* --- for walk.c --------------------------------------------------------------------------------
 */

/* Takes a frame that came out of a fabric port. True: it was for this worker. */
bool walk_worker_take(struct walk_worker *v, unsigned int port, const uint8_t *frame,
		      uint32_t length);
/* Acknowledges, sends heartbeats, and answers what is due. */
void walk_worker_act(struct walk_worker *v);

#endif
