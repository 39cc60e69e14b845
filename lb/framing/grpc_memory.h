/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of an lcore for sessions of HTTP/2, of a fixed size, with an account for each session. The
 * library that reads and writes frames asks for pieces of many sizes; no session can have more than
 * its budget, and all of a client no more than a quarter of the memory. Pieces of up to 4 KiB come
 * from pages of one size each, larger ones, of which a session needs one for a frame, are all as
 * large as the largest. Belongs to its lcore.
 */
#ifndef LB_GRPC_MEMORY_H
#define LB_GRPC_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/queue.h>

#define GRPC_MEMORY_CLASSES 7     /* 64 bytes to 4 KiB, by powers of two */
#define GRPC_MEMORY_LARGE   17408 /* a frame of 16 KiB, its header, and the library's own */

struct grpc_page;
struct grpc_piece;
TAILQ_HEAD(grpc_pages, grpc_page);

struct grpc_memory {
	struct grpc_pages free_pages, partly[GRPC_MEMORY_CLASSES];
	struct grpc_piece *free_large;
	uint32_t budget; /* bytes of one session */
	uint32_t client_budget; /* bytes of all sessions of one client */
	uint8_t *first_page, *pages_end;
};

/* A session's part of it. */
struct grpc_account {
	struct grpc_memory *memory;
	uint32_t used; /* bytes */
	uint32_t *client_used; /* of all sessions of its client; NULL: they are not counted */
};

/* Bytes for so many sessions, which have <usual> bytes of small pieces each. */
size_t grpc_memory_bytes(uint32_t sessions, uint32_t usual);
/* <budget>: bytes that one may have. <at>: aligned to 64. */
void grpc_memory_init(struct grpc_memory *m, uint32_t sessions, uint32_t usual, uint32_t budget,
		      void *at);

/* As malloc() and its kin, with the account in front. NULL: the session or the lcore has no more.
 */
void *grpc_memory_take(size_t size, void *account);
void *grpc_memory_take_zeroed(size_t n, size_t size, void *account);
void *grpc_memory_change(void *at, size_t size, void *account);
void grpc_memory_give(void *at, void *account);

#endif
