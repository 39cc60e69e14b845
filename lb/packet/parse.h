/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parses a frame's headers into a flow key, or the reason to drop it. Pure: bytes in, verdict out.
 * It knows neither services nor queue pairs, and never reads past the frame.
 */
#ifndef LB_PARSE_H
#define LB_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include <stddef.h>
#include <string.h>

#include "conntrack.h"
#include "packet/client_path.h"
#include "packet/drop.h"
#include "packet/fetch.h"

enum parse_kind {
	PARSE_UDP,  /* key and payload are set */
	PARSE_TCP,  /* key is set; payload is the segment's, behind its header */
	PARSE_ROCE, /* UDP to port 4791: payload is BTH to ICRC */
	PARSE_ARP,
	PARSE_ND,
	PARSE_ICMP_ECHO,  /* an echo request, checksum verified */
	PARSE_ICMP_ERROR, /* about a packet to <key>'s source, UDP or TCP; <reason> is the counter
			   */
	PARSE_FRAGMENT,   /* of UDP or ICMP; L4 is the fragment's part, see fragment_read() */
	PARSE_DROP,       /* see reason */
};

/* Checksums that the NIC has verified already. */
#define PARSE_IP_CHECKED 0x1u
#define PARSE_L4_CHECKED 0x2u

struct parsed {
	uint8_t kind;      /* enum parse_kind */
	uint8_t reason;    /* enum lb_drop, for PARSE_DROP and PARSE_ICMP_ERROR */
	uint8_t family;    /* enum flow_family */
	uint8_t ip_offset; /* 14, or 18 behind a VLAN tag */
	uint8_t hops;      /* TTL or hop limit */
	uint8_t port;      /* the caller's */
	uint16_t vlan;     /* TCI, 0 = untagged */
	uint16_t l4_offset;
	uint16_t l4_length; /* bytes from the L4 header on, without link padding */
	uint16_t payload_offset;
	uint16_t payload_length;
};
_Static_assert(sizeof(struct parsed) == 16, "zeroed by one store");

_Static_assert(offsetof(struct parsed, port) == offsetof(struct parsed, hops) + 1 &&
		       offsetof(struct parsed, vlan) == offsetof(struct parsed, hops) + 2 &&
		       offsetof(struct client_path, port) ==
			       offsetof(struct client_path, hops) + 1 &&
		       offsetof(struct client_path, vlan) == offsetof(struct client_path, hops) + 2,
	       "copied as one word");

/* The way back to the sender of <frame>. */
static inline void parsed_path(const struct parsed *p, const uint8_t *frame,
			       struct client_path *path)
{
	/* 8 bytes are one load and one store: the source MAC address and 2 bytes more. */
	memcpy(path, frame + 6, 8);
	memcpy(&path->hops, &p->hops, 4);
}

/*
 * Parse a frame. <mac> is the port's own address. <key> is complete for PARSE_UDP, PARSE_TCP
 * and PARSE_ROCE.
 * For PARSE_ICMP_ERROR it is the client's flow that the error is about. For PARSE_FRAGMENT it lacks
 * the ports. The caller, which knows the port, sets the zone.
 */
void parse_frame(const uint8_t *frame, uint32_t length, const uint8_t mac[6], uint32_t checked,
		 struct parsed *out, struct flow_key *key);

/* The same; meanwhile prefetches the lines of <fetch>, one by one as far as there is work to hide
 * them behind. */
void parse_frame_fetching(const uint8_t *frame, uint32_t length, const uint8_t mac[6],
			  uint32_t checked, struct fetch fetch, struct parsed *out,
			  struct flow_key *key);

/*
 * For a frame that parse_frame() dropped as TRUNCATED or UDP_LENGTH: true when its headers are
 * complete and valid, so that only bytes of the UDP payload are missing. Then <key>, hops and the
 * part of the payload that came are set. <reason> stays.
 */
bool parse_cut(const uint8_t *frame, uint32_t length, struct parsed *p, struct flow_key *key);

/* The packet that a PARSE_ICMP_ERROR is about. */
struct parsed_error {
	uint32_t mtu; /* of the path, if it was too big; 0: not said */
	uint32_t seq; /* the number of a segment */
};
void parse_error(const uint8_t *frame, const struct parsed *p, struct parsed_error *out);

/*
 * For a frame that parse_frame() dropped as UDP_CHECKSUM or TCP_CHECKSUM: true when its sender left
 * the checksum to hardware, which means that the field has the sum of the pseudo header. Then the
 * checksum is right afterwards.
 */
bool parse_finish_checksum(uint8_t *frame, const struct parsed *p);

/*
 * Read only the flow key and the VLAN's TCI. Right for frames that parse_frame() calls PARSE_UDP or
 * PARSE_TCP; for those that it drops the result may be anything.
 */
bool parse_flow(const uint8_t *frame, uint32_t length, struct flow_key *key, uint16_t *vlan);

#endif
