/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capture: copies of what a port receives and sends, as a pcapng file that goes to whoever asked
 * for it over a socket. One at a time. Off, it costs nothing; on, an lcore copies what the filter
 * takes into a ring of fixed size, and what does not fit is counted and lost to the file only.
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
	char filter[CAPTURE_FILTER_MAX];   /* as people wrote it, for the file; empty: none */
	char program[CAPTURE_PROGRAM_MAX]; /* what libpcap made of it (capture_filter.h) */
	char file[CAPTURE_FILE_MAX];       /* where it goes, for people */
	uint32_t snaplen;                  /* bytes of each packet at most */
	uint64_t count;                    /* packets, 0: any number */
	uint32_t seconds;                  /* 0: any time */
};

/* Why it is over, or not. */
#define CAPTURE_STATE_LIST(X)                                                                      \
	X(WAITING, "waiting") /* for the socket */                                                 \
	X(RUNNING, "running")                                                                      \
	X(COUNT, "count")               /* it has as many packets as were asked for */             \
	X(TIME, "time")                 /* the time is over */                                     \
	X(STOPPED, "stopped")           /* somebody ended it, or went away */                      \
	X(DISCONNECTED, "disconnected") /* nobody takes what is written */

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
	uint64_t filtered; /* packets that the filter did not take */
	uint64_t dropped;  /* that it did, and for which there was no room */
};

/* --- control thread -------------------------------------------------------------------------- */

/*
 * Make everything that it takes. -ENOENT (no such port), -EINVAL (the filter), -ENOTSUP, -EBUSY
 * (there is another) or -ENOMEM, with a sentence in <error>. It begins with lb_capture_begin() and
 * ends by itself, or when that does not come within LB_CAPTURE_WAIT_MS.
 */
#define LB_CAPTURE_WAIT_MS 10000u
int lb_capture_start(struct lb *lb, const struct capture_params *params, uint32_t *id, char *error,
		     size_t size);
/* Write it to the connected socket <fd>, which stays the caller's. -ENOENT: it has ended. Others:
 * it ends now, and the log has the reason. */
int lb_capture_begin(struct lb *lb, uint32_t id, int fd);
/* Also for a while after its end. -ENOENT: another was started since. */
int lb_capture_read(const struct lb *lb, uint32_t id, struct capture_status *out);
/* Take no more packets; what was taken is written still. Nothing if it has ended. */
void lb_capture_stop(struct lb *lb, uint32_t id);

/* --- private to lb/ -------------------------------------------------------------------------- */

/* Every tick: ends what is to end. */
void capture_tick(struct lb *lb);
/* The ports are about to go. */
void capture_destroy(struct lb *lb);

#endif
