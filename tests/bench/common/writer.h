/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The far end of a link, played by a bench: it WRITEs with immediate to a responder, and tells its
 * MAC address to who asks. Owner: one thread.
 */
#ifndef BENCH_WRITER_H
#define BENCH_WRITER_H

#include <rte_mbuf.h>

#include "rdma/path.h"

struct writer {
	struct roce_path path;
	uint32_t psn;  /* of the next WRITE */
	uint32_t rkey; /* of the memory that it writes to */
};

/* A path as all benches have it: IPv4, from <source> to <destination> ("10.9.0.1"). */
struct roce_path_spec writer_path(const char *source, const uint8_t source_mac[6],
				  const char *destination, const uint8_t destination_mac[6],
				  uint32_t qpn, uint32_t mtu);

/*
 * A WRITE ONLY WITH IMMEDIATE around <length> bytes, in an empty <m>. Returns where the bytes go;
 * the caller fills them before writer_end(), which adds the ICRC.
 */
uint8_t *writer_begin(struct writer *w, struct rte_mbuf *m, uint64_t va, uint32_t length,
		      uint32_t imm);
void writer_end(const struct writer *w, struct rte_mbuf *m);

static inline bool writer_is_arp(const uint8_t *frame)
{
	return frame[12] == 0x08 && frame[13] == 0x06;
}

/*
 * Build the answer to an ARP frame into <to>, which may be where the frame is. Returns its length;
 * 0 when nothing was asked, -EBADMSG when it is no ARP packet.
 */
int writer_answer_arp(const uint8_t *frame, const uint8_t mac[6], uint8_t *to);

#endif
