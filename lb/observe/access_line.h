/* SPDX-License-Identifier: BSD-3-Clause */
/* A request as the access log has it, and its line: a JSON object. Pure; no DPDK. */
#ifndef ACCESS_LINE_H
#define ACCESS_LINE_H

#include "config/config.h"
#include "kserve/datatype.h"

struct access_record {
	uint64_t ns;                  /* since 1970: when it was answered */
	uint64_t bytes_in, bytes_out; /* of the bodies, or messages */
	/* us from its head until the answer was written; until a worker got it, and from then until
	 * that answered */
	uint64_t total_us, queue_us, worker_us;
	struct lb_address client;
	uint16_t port;   /* the client's */
	uint16_t status; /* of HTTP, or of gRPC */
	bool is_grpc;
	bool had_worker; /* <queue_us> and <worker_us> are known */
	bool has_id;
	uint8_t id_length;
	const char *call; /* a constant; NULL: the request named none that there is */
	char service[LB_NAME_MAX];
	char model[KSERVE_NAME_MAX]; /* empty: the request found none */
	char id[KSERVE_ID_MAX];
};

/* Room for any line: names and the id take six characters per byte at most. */
#define ACCESS_LINE_MAX (6 * (LB_NAME_MAX + KSERVE_NAME_MAX + KSERVE_ID_MAX) + 512)

/* Writes the line with its end to <at>, which has ACCESS_LINE_MAX bytes. Returns its length. */
uint32_t access_line_write(const struct access_record *record, char *at);

#endif
