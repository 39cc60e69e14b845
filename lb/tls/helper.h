/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that makes handshakes for lcores, which must not wait for a signature: a job goes to the
 * helper by a ring, and comes back by its lcore's. While it is away it is the helper's, else the
 * lcore's. All memory that OpenSSL takes is taken and given back by the helper. It logs why a
 * handshake failed, once per 10 s.
 *
 *   lcore                               helper
 *   tls_submit(STEP, bytes)       →     a step of the handshake
 *   tls_take(): output, progress  ←
 *   tls_bury(session)             →     frees its keys
 */
#ifndef LB_TLS_HELPER_H
#define LB_TLS_HELPER_H

#include "tls/handshake.h"

struct sleeper;
struct tls_helper;
struct tls_line;

#define TLS_SERVICES_MAX 256  /* numbers of services are below */
#define TLS_NAME_MAX     64
#define TLS_LINES_MAX    64   /* lcores */
#define TLS_JOBS         256  /* of one lcore */
#define TLS_JOB_BYTES    4096 /* of the client, in one step */

enum tls_order {
	TLS_STEP,    /* bytes of the client for its handshake, which begins with the first ones */
	TLS_ABANDON, /* the handshake is given up */
	TLS_REKEY,   /* the next keys of <session>, in the directions that are set */
};

struct tls_job {
	struct tls_job *next; /* of those that its lcore does not use */
	struct tls_line *line;
	/* the order, and what belongs to it */
	uint8_t order; /* enum tls_order */
	bool rekey_in, rekey_out;
	uint16_t service;
	uint32_t owner; /* the lcore's own number for it */
	uint32_t n;
	uint8_t bytes[TLS_JOB_BYTES];
	/* the answer */
	uint8_t progress;      /* enum tls_progress */
	uint32_t left;         /* the last bytes of <bytes> are records of after the handshake */
	const uint8_t *output; /* valid until the next order */
	uint32_t n_output;
	struct tls_session *session; /* after TLS_DONE: the lcore's now */
	char reason[96];             /* after TLS_FAILED */
	/* the helper's */
	struct tls_handshake *handshake;
};

/* The contexts of services by number; NULL: it has none. And their names, for the log. */
struct tls_certificates {
	struct tls_context *context[TLS_SERVICES_MAX];
	char name[TLS_SERVICES_MAX][TLS_NAME_MAX];
};

/* NULL: no memory, or no thread. Control thread. */
struct tls_helper *tls_helper_create(void);
/* Ends the thread. Jobs that are away come back; lines are destroyed first or last. */
void tls_helper_stop(struct tls_helper *helper);
void tls_helper_destroy(struct tls_helper *helper);

/* Use these from the next handshake on; takes <certificates>, and returns those before (NULL: there
 * were none), which the caller frees. Control thread. */
struct tls_certificates *tls_helper_use(struct tls_helper *helper,
					struct tls_certificates *certificates);
void tls_certificates_free(struct tls_certificates *certificates);

/* The ring and the jobs of lcore <index>, whose sleeper is woken by answers. NULL: no memory. */
struct tls_line *tls_line_create(struct tls_helper *helper, unsigned int index,
				 struct sleeper *sleeper);
/* All jobs are back, or the helper has stopped. */
void tls_line_destroy(struct tls_line *line);

/* --- the lcore's --------------------------------------------------------------------------------
 */

/* A job; NULL: all are used. */
struct tls_job *tls_job_get(struct tls_line *line);
/* It is back, and has no handshake any more. */
void tls_job_put(struct tls_job *job);
void tls_submit(struct tls_job *job);
/* The next one that is back; NULL: none. */
struct tls_job *tls_take(struct tls_line *line);
/* How many are back. */
unsigned int tls_line_back(const struct tls_line *line);
/* Gives a session back. */
void tls_bury(struct tls_line *line, struct tls_session *session);
/* Tries again what tls_bury() found no room for. */
void tls_line_housekeeping(struct tls_line *line);

#endif
