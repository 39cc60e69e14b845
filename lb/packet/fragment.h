/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reassembles IP fragments of both families. Pure and bounded: in datagrams, datagrams per source,
 * bytes and fragments per datagram, and time. Datagrams beyond a bound are forgotten, and every
 * fragment that is lost with them is counted. Fragments are copied.
 *
 * One lcore owns a table. Tables with the same seed agree on fragment_hash().
 */
#ifndef LB_FRAGMENT_H
#define LB_FRAGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/parse.h"

/* A source's datagrams share one set of FRAGMENT_WAYS places, and take at most half of it. */
#define FRAGMENT_SETS       16
#define FRAGMENT_WAYS       16
#define FRAGMENT_PER_SOURCE 8
/* Fragments of one datagram: enough for 9,000 bytes over a link with an MTU of 576. */
#define FRAGMENT_PIECES_MAX 32
/* From the first fragment that came; RFC 8200 (4.5) allows 60 s, longer than any request waits. */
#define FRAGMENT_TIMEOUT_MS 1000
/* Bytes of headers: Ethernet with a VLAN tag, IPv4 with all its options. */
#define FRAGMENT_HEAD_MAX (18 + 60)

/* One fragment as it lies in its frame. */
struct fragment {
	struct in6_addr src, dst; /* IPv4 mapped */
	uint32_t id;
	uint8_t protocol, family;
	uint16_t zone;
	uint16_t port, vlan; /* that it came by: the caller's port number, TCI */
	bool more;
	uint16_t offset, length; /* of <data> in the datagram, bytes */
	const uint8_t *data;
	const uint8_t *head; /* Ethernet and IP header */
	uint8_t ip_offset, head_length;
};

struct fragment_params {
	uint16_t bytes; /* of the longest datagram, without IP headers */
	uint64_t seed[2];
};

struct fragment_table;

/* Create a table. NULL with errno. */
struct fragment_table *fragment_table_create(const struct fragment_params *params);
void fragment_table_destroy(struct fragment_table *table);

/* Describe a frame that parse_frame() called a fragment. The caller sets the port. */
void fragment_read(const uint8_t *frame, const struct parsed *parsed, const struct flow_key *key,
		   struct fragment *out);

/* Keyed hash of the fields that all fragments of a datagram share. */
uint32_t fragment_hash(const struct fragment_table *table, const struct fragment *f);

/*
 * Add a fragment. True when it was the last one missing: fragment_take() returns the datagram.
 * Fragments that will never be part of a datagram are counted in <drop>, which has LB_DROPS
 * counters, now or later.
 */
bool fragment_add(struct fragment_table *table, const struct fragment *f, uint32_t now_ms,
		  uint64_t *drop);

/* The first fragment of a datagram: its headers, and the first bytes of UDP. */
struct fragment_first {
	struct in6_addr src, dst;
	uint8_t protocol, family;
	uint16_t zone, port, vlan;
	const uint8_t *head, *data; /* valid until the next fragment_add() */
	uint8_t ip_offset;
	uint16_t length; /* of <data> */
};

/*
 * True, once per datagram, when the last fragment_add() showed that a datagram is too large and its
 * first fragment has come, which is in <first> then.
 */
bool fragment_too_large(const struct fragment_table *table, struct fragment_first *first);

/* Bytes of the frame that the last fragment_add() completed. */
uint32_t fragment_frame_length(const struct fragment_table *table);
/* The port and VLAN that the frame's first fragment came by, whose headers the frame has. */
void fragment_origin(const struct fragment_table *table, uint16_t *port, uint16_t *vlan);
/*
 * Write that frame as if it had never been fragmented: the first fragment's headers, with lengths
 * and IP checksum adjusted. Returns the number of its fragments. <frame> may be NULL when there is
 * no room for it.
 */
unsigned int fragment_take(struct fragment_table *table, uint8_t *frame);

/* Forget datagrams that waited too long. Costs one load while none waits. */
void fragment_expire(struct fragment_table *table, uint32_t now_ms, uint64_t *drop);

/* The number of incomplete datagrams, and of the fragments held for them. */
unsigned int fragment_waiting(const struct fragment_table *table);
unsigned int fragment_held(const struct fragment_table *table);

#endif
