/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_hash.h>
#include <rte_malloc.h>

#include "packet/checksum.h"
#include "common/floor.h"
#include "common/swap.h"

#define ROUNDS 1024
#define LINES  8192
/* A page and a cache line: neighbours are in different pages and in different sets of the cache. */
#define SCATTER (4096 + 64)
/* Bytes from packet to packet, so that packets do not meet in the same cache sets. */
#define APART 1344
/* IP, UDP, BTH and RETH: what the ICRC covers besides the payload. */
#define ROCE_HEADERS (20 + 8 + ROCE_BTH_LENGTH + ROCE_RETH_LENGTH)

static void hash_fill(struct floors *f)
{
	struct rte_hash_parameters p = {
		.name = "floor",
		.entries = RTE_MAX(rte_align32pow2(RIG_FLOWS) + 1, RIG_FLOWS),
		.key_len = sizeof(f->keys[0]),
		.socket_id = SOCKET_ID_ANY,
	};

	f->hash = rte_hash_create(&p);
	f->keys = rte_zmalloc("keys", RIG_FLOWS * sizeof(f->keys[0]), 64);
	if (f->hash == NULL || f->keys == NULL)
		rig_die("no memory for the table to compare with");
	for (uint64_t i = 0; i < RIG_FLOWS; i++) {
		memcpy(f->keys[i], &i, sizeof(i));
		if (rte_hash_add_key_data(f->hash, f->keys[i], (void *)(uintptr_t)i) < 0)
			rig_die("the table to compare with is full");
	}
}

void floors_init(struct floors *f)
{
	memset(f, 0, sizeof(*f));
	hash_fill(f);
	f->bytes = rte_zmalloc("bytes", LB_BURST * APART, 64);
	f->lines = rte_zmalloc("lines", (size_t)LINES * SCATTER, 64);
	f->service = latency_create(1, sizeof(*f->service));
	if (f->bytes == NULL || f->lines == NULL || f->service == NULL)
		rig_die("no memory");
	for (unsigned int i = 0; i < FLOOR_LINKS; i++) {
		f->link[i] = latency_create(1, LATENCY_LINK_SIZE);
		if (f->link[i] == NULL)
			rig_die("no memory");
	}
	for (uint32_t i = 0; i < LB_BURST * APART; i++)
		f->bytes[i] = clients_pattern(i);
}

void floors_fini(struct floors *f)
{
	rte_hash_free(f->hash);
	rte_free(f->keys);
	rte_free(f->bytes);
	rte_free(f->lines);
	free(f->service);
	for (unsigned int i = 0; i < FLOOR_LINKS; i++)
		free(f->link[i]);
}

static void forward_burst(uint16_t port)
{
	struct rte_mbuf *packet[LB_BURST];
	unsigned int n = rte_eth_rx_burst(port, 0, packet, LB_BURST);

	swap_burst(packet, n);
	if (rte_eth_tx_burst(port, 0, packet, n) != LB_BURST)
		rig_die("forwarding lost packets");
}

void floor_forward(struct clients *c, struct load *load, struct turns *turns)
{
	struct rte_mbuf *packet[NIC_SIZE];
	const struct nic *nic = &c->rig->clients;

	clients_prepare(c, load);
	for (unsigned int i = 0; i < RIG_BATCH; i += LB_BURST) {
		uint64_t begin;

		nic_deliver(nic, c->packet + i, LB_BURST);
		begin = turns_begin();
		forward_burst(nic->port);
		turns_end(turns, begin);
		rte_pktmbuf_free_bulk(packet, nic_collect(nic, 0, packet, NIC_SIZE));
	}
}

void floor_hash(struct floors *f, struct clients *c, struct turns *turns)
{
	/* Keys come out of packets: in the cache, in one array. */
	uint8_t keys[LB_BURST][16];
	const void *at[LB_BURST];
	hash_sig_t hash[LB_BURST];
	void *data[LB_BURST];

	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t begin, hits = 0;

		for (unsigned int i = 0; i < LB_BURST; i++) {
			memcpy(keys[i], f->keys[clients_random(c, RIG_FLOWS)], sizeof(keys[i]));
			at[i] = keys[i];
			hash[i] = rte_hash_hash(f->hash, keys[i]);
		}
		begin = turns_begin();
		rte_hash_lookup_with_hash_bulk_data(f->hash, at, hash, LB_BURST, &hits, data);
		turns_end(turns, begin);
		if (hits != UINT32_MAX)
			rig_die("a key is missing from the table to compare with");
	}
}

void floor_icrc(struct floors *f, uint32_t payload, struct turns *turns)
{
	uint32_t crc = 0;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t begin = turns_begin();

		for (unsigned int i = 0; i < LB_BURST; i++)
			crc ^= roce_icrc(ROCE_ICRC_SEED, f->bytes + (size_t)i * APART,
					 ROCE_HEADERS + payload);
		turns_end(turns, begin);
	}
	f->bytes[LB_BURST * APART - 1] = crc; /* uses the result, so that the compiler keeps it */
}

void floor_checksum(struct floors *f, uint32_t payload, struct turns *turns)
{
	uint64_t sum = 0;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t begin = turns_begin();

		for (unsigned int i = 0; i < LB_BURST; i++)
			sum += checksum_add(f->bytes + (size_t)i * APART, 8 + payload);
		turns_end(turns, begin);
	}
	f->bytes[LB_BURST * APART - 1] = sum;
}

void floor_latency(struct floors *f, struct clients *c, struct turns *turns)
{
	struct latency_sample s[LB_BURST];

	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t begin;

		for (unsigned int i = 0; i < LB_BURST; i++)
			s[i] = (struct latency_sample){
				.total_ns = 40000 + clients_random(c, 100000),
				.wait_ns = clients_random(c, 10000),
				.run_ns = clients_random(c, 20000),
				.reply_ns = 3000,
				.reply_bucket = latency_bucket(3000),
				.split = 1,
			};
		begin = turns_begin();
		for (unsigned int i = 0; i < LB_BURST; i++)
			latency_add(f->service, f->link[i % FLOOR_LINKS], &s[i]);
		turns_end(turns, begin);
	}
}

void floor_lines(struct floors *f, struct clients *c, bool scattered, struct turns *turns)
{
	const size_t stride = scattered ? SCATTER : RTE_CACHE_LINE_SIZE;
	const uint8_t *line[LB_BURST];

	for (unsigned int i = 0; i < LINES; i++)
		rte_prefetch0(f->lines + i * stride);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t begin;

		for (unsigned int i = 0; i < LB_BURST; i++)
			line[i] = f->lines + clients_random(c, LINES) * stride;
		begin = turns_begin();
		for (unsigned int i = 0; i < LB_BURST; i++)
			rte_prefetch0(line[i]);
		turns_end(turns, begin);
	}
}
