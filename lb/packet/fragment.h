/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP fragments to whole datagrams, of both families. Pure and bounded: so many datagrams at a time,
 * so many of one source, so many bytes and pieces each, so long. What does not fit these is
 * forgotten, and every packet that is lost with it is counted. Pieces are copied.
 *
 * Owner: one lcore per table. Tables with the same seed agree on fragment_hash().
 */
#ifndef LB_FRAGMENT_H
#define LB_FRAGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/parse.h"

/* A source's datagrams share a set of that many places, and take at most half of it. */
#define FRAGMENT_SETS       16
#define FRAGMENT_WAYS       16
#define FRAGMENT_PER_SOURCE 8
/* More than 9,000 bytes take over links of 576. */
#define FRAGMENT_PIECES_MAX 32
/* From the first piece that came; RFC 8200 (4.5) allows 60 s, which no request waits for. */
#define FRAGMENT_TIMEOUT_MS 1000
/* Ethernet with a VLAN tag, IPv4 with all its options. */
#define FRAGMENT_HEAD_MAX (18 + 60)

/* One fragment as it lies in its frame. */
struct fragment {
	struct in6_addr src, dst; /* IPv4 mapped */
	uint32_t id;
	uint8_t protocol, family;
	uint16_t zone;
	uint16_t port, vlan; /* that it came by: caller's number, TCI */
	bool more;
	uint16_t offset, length; /* bytes of <data>, and where they belong */
	const uint8_t *data;
	const uint8_t *head; /* Ethernet and IP header */
	uint8_t ip_offset, head_length;
};

struct fragment_params {
	uint16_t bytes; /* of the longest datagram, headers of IP left out */
	uint64_t seed[2];
};

struct fragment_table;

/* NULL with errno. */
struct fragment_table *fragment_table_create(const struct fragment_params *params);
void fragment_table_destroy(struct fragment_table *table);

/* What parse_frame() called a fragment. The port is set by the caller. */
void fragment_read(const uint8_t *frame, const struct parsed *parsed, const struct flow_key *key,
		   struct fragment *out);

/* Keyed hash of what the fragments of a datagram have in common. */
uint32_t fragment_hash(const struct fragment_table *table, const struct fragment *f);

/*
 * One fragment came. True when it was its datagram's last missing one: fragment_take() has it.
 * Each fragment that will never be part of one is counted in <drop>, which has LB_DROPS counters,
 * now or later.
 */
bool fragment_add(struct fragment_table *table, const struct fragment *f, uint32_t now_ms,
		  uint64_t *drop);

/* The first piece of a datagram: its headers, and the first bytes of UDP. */
struct fragment_first {
	struct in6_addr src, dst;
	uint8_t protocol, family;
	uint16_t zone, port, vlan;
	const uint8_t *head, *data; /* until the next fragment_add() */
	uint8_t ip_offset;
	uint16_t length; /* of <data> */
};

/*
 * The last fragment_add() showed that a datagram is too large, and its first piece is there: once
 * for each. False: it did not.
 */
bool fragment_too_large(const struct fragment_table *table, struct fragment_first *first);

/* Bytes of the frame that the last fragment_add() completed. */
uint32_t fragment_frame_length(const struct fragment_table *table);
/* The port and VLAN that the first fragment of that frame came by, as its headers are the frame's.
 */
void fragment_origin(const struct fragment_table *table, uint16_t *port, uint16_t *vlan);
/*
 * Write that frame, as if it had never been in pieces: the first fragment's headers, lengths and
 * check sum of IP adjusted. Returns the number of fragments it came in. <frame> may be NULL when
 * there is no room for it.
 */
unsigned int fragment_take(struct fragment_table *table, uint8_t *frame);

/* Forget what waited too long. Costs a load while nothing waits. */
void fragment_expire(struct fragment_table *table, uint32_t now_ms, uint64_t *drop);

/* Datagrams that wait for more, and the fragments that they consist of. */
unsigned int fragment_waiting(const struct fragment_table *table);
unsigned int fragment_held(const struct fragment_table *table);

#endif
