/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that only the load balancer can tell in advance: SipHash-2-4 under its secret. Pure. */
#ifndef LB_TCP_SECRET_H
#define LB_TCP_SECRET_H

#include <netinet/in.h>
#include <stdint.h>

struct tcp_secret {
	uint64_t key[2]; /* random */
};

/* The two ends of a connection. Zeroed before it is filled: all of it is hashed. */
struct tcp_ends {
	struct in6_addr client, server;    /* IPv4: mapped */
	uint16_t client_port, server_port; /* network order */
	uint32_t zone;
};

/* Different values for different <purpose>. */
enum tcp_purpose {
	TCP_PURPOSE_SEQUENCE,
	TCP_PURPOSE_TIMESTAMP,
	TCP_PURPOSE_COOKIE, /* with the minute, and the client's number, above it */
	TCP_PURPOSE_COOKIE_TIME,
};

uint64_t tcp_secret_hash(const struct tcp_secret *secret, const struct tcp_ends *ends,
			 uint64_t purpose);

/* SipHash-2-4 of <n> words, which are bytes in memory order on a little-endian machine. */
uint64_t tcp_siphash(const uint64_t key[2], const uint64_t *word, unsigned int n, uint64_t last);

/* RFC 9293, 3.4.1: a clock of 4 us plus a secret of the two ends. */
uint32_t tcp_secret_sequence(const struct tcp_secret *secret, const struct tcp_ends *ends,
			     uint32_t now_us);

/* The offset that timestamps to this client have from our clock (RFC 7323, 7.1). */
uint32_t tcp_secret_timestamp(const struct tcp_secret *secret, const struct tcp_ends *ends);

#endif
