/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The far end of a rig's links: a queue pair that WRITEs requests and takes replies, as a load
 * balancer's does. far_standin.c: inside a ConnectX's stand-in; far_rdma.c: on a real RDMA device,
 * the same that the worker uses, which loops packets back.
 *
 * Threads: one, the rig's.
 */
#ifndef GPU_FAR_H
#define GPU_FAR_H

#include "rnic/rnic.h"

struct far;

/* A WRITE with immediate that arrived. */
struct far_message {
	uint64_t address; /* of its bytes, in the far end's memory; 0: the device does not tell */
	uint32_t length, imm;
};

/* The device that the worker uses, and its address. NULL with a sentence in <error>. */
const char *far_device(struct rnic_address *address, char *error, size_t size);
/* DMA on a GPU's memory needs the driver's help, where no device does it. */
void far_serve_gpu(bool on_gpu);

/* Open a far end with <bytes> of memory. NULL. */
struct far *far_open(size_t bytes);
/* Close it; its worker's queue pair is gone. NULL is fine. */
void far_close(struct far *far);
uint32_t far_qpn(const struct far *far);
uint32_t far_rkey(const struct far *far);
uint8_t *far_memory(const struct far *far);
/* Connect to the worker's queue pair. 0 or -errno. */
int far_connect(struct far *far, uint32_t qpn);
/* WRITE to the worker's memory; returns when the worker's device has it. False: it was refused. */
bool far_write(struct far *far, uint32_t rkey, uint64_t va, const void *bytes, size_t length);
/* The next message, in order. False: none yet. */
bool far_next(struct far *far, struct far_message *message);
/* Take what comes, but hold acknowledgements back. False: this device cannot. */
bool far_hold(struct far *far, bool holds);
/* The far end fails. */
void far_break(struct far *far);
/* Complain of what was wrong with the worker's use of the device. False: something. */
bool far_is_content(void);

#endif
