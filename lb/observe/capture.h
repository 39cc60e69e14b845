/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capture: copies of the packets that a port receives and sends, written as a pcapng file to the
 * requester's socket. One at a time. Off, it costs nothing; on, an lcore copies the packets that
 * match the filter into a ring of fixed size. Packets that do not fit are counted; only the file
 * lacks them.
 */
#ifndef LB_CAPTURE_H
#define LB_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "observe/capture_ring.h"
#include "config/config.h"

struct lb;

#define CAPTURE_SNAPLEN_MIN 14 /* an Ethernet header */
#define CAPTURE_SNAPLEN_MAX UINT16_MAX
#define CAPTURE_PROGRAM_MAX 24576 /* characters */
#define CAPTURE_FILTER_MAX  1024
#define CAPTURE_FILE_MAX    256

struct capture_params {
	char port[LB_NAME_MAX];
	unsigned int directions;           /* CAPTURE_IN, CAPTURE_OUT or both */
	char filter[CAPTURE_FILTER_MAX];   /* the expression, for the file; empty: none */
	char program[CAPTURE_PROGRAM_MAX]; /* libpcap's program for it (capture_filter.h) */
	char file[CAPTURE_FILE_MAX];       /* the file's name, for logs and errors only */
	uint32_t snaplen;                  /* bytes of each packet at most */
	uint64_t count;                    /* packets, 0: no limit */
	uint32_t seconds;                  /* 0: no limit */
};

/* Whether a capture runs, or why it ended. */
#define CAPTURE_STATE_LIST(X)                                                                      \
	X(WAITING, "waiting") /* for the socket */                                                 \
	X(RUNNING, "running")                                                                      \
	X(COUNT, "count")               /* it has as many packets as were asked for */             \
	X(TIME, "time")                 /* its time is over */                                     \
	X(STOPPED, "stopped")           /* its client stopped it, or disconnected */               \
	X(DISCONNECTED, "disconnected") /* the reader of the socket has gone */

enum capture_state {
#define CAPTURE_STATE_ENUM(symbol, name) CAPTURE_##symbol,
	CAPTURE_STATE_LIST(CAPTURE_STATE_ENUM)
#undef CAPTURE_STATE_ENUM
		CAPTURE_STATES,
};

const char *lb_capture_state_name(enum capture_state state);

struct capture_status {
	enum capture_state state;
	bool done;         /* nothing more is written */
	uint64_t captured; /* packets written */
	uint64_t bytes;    /* of the file */
	uint64_t filtered; /* packets that did not match the filter */
	uint64_t dropped;  /* packets that matched, and did not fit the ring */
};

/* --- control thread -------------------------------------------------------------------------- */

/*
 * Prepare a capture. -ENOENT (no such port), -EINVAL (the filter), -ENOTSUP (an RDMA device),
 * -EBUSY (another one runs) or -ENOMEM, with a sentence in <error>. It begins with
 * lb_capture_begin(), and is abandoned if that is not called within LB_CAPTURE_WAIT_MS.
 */
#define LB_CAPTURE_WAIT_MS 10000u
int lb_capture_start(struct lb *lb, const struct capture_params *params, uint32_t *id, char *error,
		     size_t size);
/* Begin to write to the connected socket <fd>, which stays the caller's. 0, -ENOENT: it has ended,
 * or another -errno: it ends now, and the log has the reason. */
int lb_capture_begin(struct lb *lb, uint32_t id, int fd);
/* Read the capture's counters, also after its end. -ENOENT: another was started since. */
int lb_capture_read(const struct lb *lb, uint32_t id, struct capture_status *out);
/* Stop copying packets; those in the rings are still written. No effect after its end. */
void lb_capture_stop(struct lb *lb, uint32_t id);

/* --- private to lb/ -------------------------------------------------------------------------- */

/* Every tick: end the capture when it is due. */
void capture_tick(struct lb *lb);
/* Before the ports are closed: end the capture and free it. */
void capture_destroy(struct lb *lb);

#endif
