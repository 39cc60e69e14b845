/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker's loop, on the CPU or on a GPU, whose load balancer and NIC are played by the caller: it
 * writes requests into the rings and reads what the loop posts. For tests and benches; needs no
 * DPDK.
 *
 * Owner: one thread.
 */
#ifndef GPU_RIG_H
#define GPU_RIG_H

#include "agent.h"
#include "loop/link_memory.h"
#include "rnic/send_queue.h"

struct rig;
struct rig_reply;

/* The NIC of a rig and the links' memory; NULL in rig_params: a send queue that the caller's thread
 * reads, and host memory. */
struct rig_nic {
	int (*open)(struct rig *rig, char *error, size_t size);
	void (*close)(struct rig *rig);
	/* Make memory and queue of a link, and fill its view with them. 0 or -1. */
	int (*make_link)(struct rig *rig, uint32_t link, uint32_t wqes);
	void (*free_link)(struct rig *rig, uint32_t link);
	/* WRITE to the link's memory, of which link->shadow is the load balancer's copy. */
	void (*write)(struct rig *rig, uint32_t link, uint64_t va, const void *bytes,
		      size_t length);
	/* The next message that the loop has posted, its header and bytes included. */
	bool (*next)(struct rig *rig, uint32_t link, struct rig_reply *out);
	bool (*mute)(struct rig *rig, uint32_t link, bool mute);
	void (*break_link)(struct rig *rig, uint32_t link);
	void (*kick)(void *rig); /* doorbells were rung */
};

struct rig_params {
	const char *models; /* folder of plug-ins */
	const char *model;  /* name of one, unless there is <own> */
	const struct agent_model *own;
	const char *arguments; /* of it */
	uint32_t max_batch, batch_timeout_us, heartbeat_ms, max_reply /* 0: the model's */;
	const char *turns; /* of the CPU's loop */
	uint32_t links, slots, wqes /* per link; 0: twice the slots */;
	int gpu;                          /* -1: the CPU */
	const struct agent_loop_ops *ops; /* NULL: what <gpu> says */
	const struct rig_nic *nic;
};

struct rig_link {
	struct link_memory memory;
	struct send_queue sq;
	uint8_t *shadow;   /* NULL: the caller writes to the memory itself */
	uint64_t remote;   /* where its replies go */
	uint64_t position; /* of the next descriptor */
	uint64_t heartbeats;
	uint32_t backlog; /* as the last heartbeat said */
	bool mute;        /* completes nothing */
	bool holds;       /* all that is submitted, behind <held> where its sequence is not 0 */
	struct ring_descriptor held;
	bool owes;        /* a completion, which lets the loop write over a piece that was taken */
	void *nic;        /* the NIC's own */
};

struct rig {
	struct rig_params params;
	struct loaded_model model;
	const struct agent_loop_ops *ops;
	struct agent_loop *loop;
	struct sleeper sleeper;
	uint32_t n_links, slots;
	struct rig_link link[AGENT_LINKS_MAX];
	struct agent_link view[AGENT_LINKS_MAX];
	const struct rig_nic *nic;
	void *nic_state;
	int gpu;
};

/* A reply that the loop posted, or a piece of one. <bytes> stays until the slot's next request; of
 * a piece until the next call of rig_reply() for its link. */
struct rig_reply {
	struct send_work work;
	uint32_t slot;
	uint8_t status;
	bool more; /* pieces follow */
	const struct ring_reply *header;
	const uint8_t *bytes; /* header->length of them */
};

/* 0, or -1 with a sentence in <error>. */
int rig_start(struct rig *rig, const struct rig_params *params, char *error, size_t size);
void rig_stop(struct rig *rig);
/* As after a lost registration: ends the loop, and starts another one with the same model and new
 * links. */
int rig_restart(struct rig *rig, char *error, size_t size);

/* Bytes of a link's room: enough for all slots. For NICs. */
uint64_t rig_room(const struct rig *rig);
/* Where the reply to <slot> goes. For NICs. */
uint64_t rig_reply_address(const struct rig *rig, uint32_t link, uint32_t slot);

uint8_t *rig_slot(struct rig *rig, uint32_t link, uint32_t slot);
/* Hands the slot's first <length> bytes to the loop; <with> has the descriptor's other fields. A
 * payload that is not 0 there stands instead of the slot's. */
void rig_submit(struct rig *rig, uint32_t link, uint32_t slot, uint32_t length,
		const struct ring_descriptor *with);
/* From now on the loop sees nothing of what is submitted to the link; all of it at once, however
 * long the caller is halted meanwhile, by rig_release(). */
void rig_hold(struct rig *rig, uint32_t link);
void rig_release(struct rig *rig, uint32_t link);
void rig_cancel(struct rig *rig, uint32_t link, uint32_t slot, uint64_t sequence);
/* Takes the next reply of the link and completes it; heartbeats are counted and completed on the
 * way. False: none yet. A WQE that a NIC would refuse ends the program. */
bool rig_reply(struct rig *rig, uint32_t link, struct rig_reply *out);
/* From now on the link completes nothing; or all that it has sent, and what comes. False: its NIC
 * cannot. */
bool rig_mute(struct rig *rig, uint32_t link, bool mute);
/* Ends the link with an error CQE, as a NIC does whose peer is gone. */
void rig_break(struct rig *rig, uint32_t link, uint8_t syndrome);

#endif
