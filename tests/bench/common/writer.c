/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>

#include "runtime/neigh.h"
#include "common/writer.h"

#define ARP_LENGTH 28

/* IPv4 as ::ffff:a.b.c.d */
static struct in6_addr address(const char *text)
{
	struct in6_addr a = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	inet_pton(AF_INET, text, a.s6_addr + 12);
	return a;
}

struct roce_path_spec writer_path(const char *source, const uint8_t source_mac[6],
				  const char *destination, const uint8_t destination_mac[6],
				  uint32_t qpn, uint32_t mtu)
{
	struct roce_path_spec path = {
		.family = 4,
		.source = address(source),
		.destination = address(destination),
		.udp_source = 0xd000,
		.tos = ROCE_TOS_DEFAULT,
		.migrated = true,
		.qpn = qpn,
		.mtu = mtu,
	};

	memcpy(path.source_mac, source_mac, 6);
	memcpy(path.destination_mac, destination_mac, 6);
	return path;
}

uint8_t *writer_begin(struct writer *w, struct rte_mbuf *m, uint64_t va, uint32_t length,
		      uint32_t imm)
{
	uint8_t *at = rte_pktmbuf_mtod(m, uint8_t *);
	struct roce_header h = {
		.opcode = ROCE_WRITE_ONLY_IMM,
		.pad = -length & 3,
		.ack_request = true,
		.psn = w->psn,
		.body = ROCE_RETH_LENGTH + ROCE_IMM_LENGTH + length + (-length & 3),
	};
	struct roce_reth reth = {
		.va = htobe64(va), .rkey = htobe32(w->rkey), .length = htobe32(length)};
	uint32_t be_imm = htobe32(imm);

	roce_header_write(at, &w->path, &h);
	memcpy(at + w->path.length, &reth, sizeof(reth));
	memcpy(at + w->path.length + sizeof(reth), &be_imm, sizeof(be_imm));
	m->data_len = m->pkt_len = w->path.length + h.body + ROCE_ICRC_LENGTH;
	w->psn = roce_psn_add(w->psn, 1);
	return at + w->path.length + sizeof(reth) + sizeof(be_imm);
}

void writer_end(const struct writer *w, struct rte_mbuf *m)
{
	uint8_t *at = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t end = m->data_len - ROCE_ICRC_LENGTH, crc;

	crc = htole32(roce_icrc(ROCE_ICRC_SEED, at + ROCE_ETHER_LENGTH, end - ROCE_ETHER_LENGTH));
	memcpy(at + end, &crc, sizeof(crc));
	roce_header_unmask(at, &w->path);
}

int writer_answer_arp(const uint8_t *frame, const uint8_t mac[6], uint8_t *to)
{
	struct neigh_message question;

	if (!neigh_parse(0x0806, frame + ROCE_ETHER_LENGTH, ARP_LENGTH, &question))
		return -EBADMSG;
	if (question.kind != NEIGH_REQUEST || neigh_gives_mac(&question))
		return 0;
	return (int)neigh_reply_build(to, &question, mac);
}
