/* SPDX-License-Identifier: BSD-3-Clause */
/* Facade of the stand-in's files, private to them. */
#ifndef STANDIN_PRIVATE_H
#define STANDIN_PRIVATE_H

#include <pthread.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "standin.h"

#define STANDIN_QPS 1024
#define STANDIN_MRS 4096
#define WQEBB       64u

/* A register of the device: 8 bytes that a doorbell is stored to. */
struct standin_register {
	volatile uint64_t *at;
	bool used;
};

struct standin_td {
	struct ibv_td base;
	struct standin_register *reg;
};

/* A protection domain, or one with a thread domain over another one. */
struct standin_pd {
	struct ibv_pd base;
	struct standin_td *td;
};

struct standin_mr {
	struct ibv_mr base;
	uint64_t iova;
	int access;
	bool used; /* this place of the table is taken */
};

struct standin_cq {
	struct ibv_cq base;
	pthread_mutex_t lock; /* of everything below: poller and NIC */
	uint8_t *buffer;
	uint32_t size;    /* of an entry */
	uint32_t *record; /* doorbell record: consumer index, arm */
	uint32_t count;
	uint32_t producer; /* the NIC's */
	uint32_t consumer; /* ibv_poll_cq()'s */
	bool armed;
	uint32_t armed_at; /* consumer index when it was armed */
	bool lost;
};

struct standin_qp {
	struct ibv_qp base;
	uint8_t *buffer; /* receive queue, then send queue */
	uint8_t *sq;
	uint32_t count;   /* WQEBBs of the send queue */
	uint32_t *record; /* doorbell record: receive counter, send counter */
	struct standin_register *reg;
	bool by_owner; /* its owner posts by hand */
	bool shown;    /* a query has told that it failed */
	/* the NIC's */
	uint64_t rung;
	uint16_t producer, next;
	/* ibv_post_send()'s */
	uint16_t posted, completed;
	uint64_t *wr_id;
	uint32_t receives; /* atomic: ibv_post_recv(), less those that a message has taken */
	/* the connection */
	uint32_t peer_qpn, psn, peer_psn, path_mtu;
	uint8_t ack_timeout, retry_count;
	uint16_t udp_source;
	union ibv_gid peer;
	struct standin_mr *region; /* the last that peers may write to when it was created */
	void *net;                 /* the network's own */
};

/* A WQE in host order, its bytes checked against the memory regions. */
struct standin_work {
	uint64_t remote, local;
	uint32_t rkey, length, imm;
	uint16_t index;
	uint8_t opcode;
	bool with_imm, signal;
};

/* The network that WRITEs go to. All calls are made with the lock held. */
struct standin_net {
	/* Both ends of a connection are queue pairs of this device, which may be opened twice. */
	bool pairs;
	/* The device is opened. <address> and <interface> become those of its only GID. 0 or errno.
	 */
	int (*open)(union ibv_gid *address, uint32_t *interface);
	void (*close)(void);
	/* A queue pair is made; *<qpn> is its number, and may be changed. 0 or errno. NULL: nothing
	 * to do. */
	int (*create)(struct standin_qp *qp, uint32_t *qpn);
	int (*connect)(struct standin_qp *qp);
	void (*disconnect)(struct standin_qp *qp);
	/* Send. False: no room; the NIC tries again. standin_done() tells of its end. */
	bool (*send)(struct standin_qp *qp, const struct standin_work *work);
	/* Do what is due. */
	unsigned int (*poll)(struct standin_qp *qp);
};

extern const struct standin_net standin_net;

struct standin {
	pthread_mutex_t lock; /* of everything here and of all queue pairs' NIC side */
	pthread_t thread;
	bool running;
	unsigned int users; /* opens without a close */
	int stop;           /* atomic */
	union ibv_gid gid;
	uint32_t interface;
	struct verbs_context context;
	int events[2]; /* pipe of asynchronous events */
	unsigned int objects, n_mrs, n_registers;
	bool removed;
	struct standin_qp *qp[STANDIN_QPS];
	struct standin_mr mr[STANDIN_MRS];
	uint32_t next_qpn, next_key;
	struct standin_mr *newest; /* that peers may write to */
};

extern struct standin standin;

/* device.c */
void standin_lock(void);
void standin_unlock(void);
/* One line on stderr; the device is being closed. */
void standin_say_counters(void);
void standin_event(enum ibv_event_type type, void *about);
struct ibv_pd *standin_alloc_parent_domain(struct ibv_context *context,
					   struct ibv_parent_domain_init_attr *attr);
struct standin_mr *standin_mr_find(uint32_t key);
/* queues.c */
uint32_t *standin_record(void);
void standin_record_free(uint32_t *record);
struct standin_qp *standin_qp_find(uint32_t qpn);
struct ibv_qp *standin_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_td *standin_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int standin_dealloc_td(struct ibv_td *td);
struct standin_register *standin_shared_register(void);
/* Raise the completion channel of a queue. */
void standin_raise(struct standin_cq *cq);
/* posting.c */
int standin_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int standin_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int standin_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int standin_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* nic.c */
void *standin_nic(void *unused);
/* The network is done with the WQE at <index>, and with all before it; or it has failed. */
void standin_done(struct standin_qp *qp, const struct standin_work *work, uint8_t syndrome);
void standin_fail(struct standin_qp *qp);
/* A message with immediate has come to <qp>, which has a receive for it. */
void standin_received(struct standin_qp *qp, uint32_t imm, uint32_t length);
/* The DMA: the program may keep its memory on a GPU. */
void standin_copy_bytes(void *to, const void *from, size_t size);
/* Write to memory of the program in order, the last word last, as DMA places it. */
void standin_place(uint8_t *to, const uint8_t *from, size_t length);

/* The calls' own objects. */
#define STANDIN_OF(type, pointer) ((struct type *)(pointer))

#endif
