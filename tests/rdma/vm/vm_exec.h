/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a test runs commands in a virtual machine: a TCP connection per command, on a network card of
 * its own. Both directions carry frames: a type, a length (network order), and as many bytes.
 *
 *   client: FRAME_COMMAND, then FRAME_INPUT ... (an empty one ends it), FRAME_SIGNAL any time
 *   server: FRAME_OUTPUT, FRAME_ERRORS ..., and one FRAME_EXIT
 *
 * A connection that ends early ends the command.
 */
#ifndef VM_EXEC_H
#define VM_EXEC_H

#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>

#define VM_EXEC_PORT      7000
#define VM_EXEC_FRAME_MAX 65536
#define VM_EXEC_CARD      "control" /* on the host, and in the guest */

enum frame_type {
	FRAME_COMMAND = 1, /* for /bin/sh -c */
	FRAME_INPUT,
	FRAME_SIGNAL, /* one byte: its number, for the command's process group */
	FRAME_OUTPUT,
	FRAME_ERRORS,
	FRAME_EXIT, /* one byte: the status as a shell gives it */
};

struct frame_header {
	uint8_t type;
	uint32_t length;
} __attribute__((packed));

/* Both: 0, or -1 when the connection is over. */
int frame_send(int fd, enum frame_type type, const void *bytes, size_t length);
/* Returns the type; <bytes> has VM_EXEC_FRAME_MAX. */
int frame_receive(int fd, void *bytes, uint32_t *length);

/* Writes all of it, also if write() takes it in pieces. */
int write_all(int fd, const void *bytes, size_t length);

int vm_exec_serve(void);
int vm_exec_run(const char *address, const char *command);
/* <from> and <to>: an ADDRESS:PORT (IPv4) or the path of a UNIX socket. */
int vm_exec_relay(const char *from, const char *to);

#endif
