/* SPDX-License-Identifier: BSD-3-Clause */
/* The lcore that owns a flow: by the NIC's hash, computed as NICs compute it, or by one of ours. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

#include <rte_hash_crc.h>
#include <rte_thash.h>

#include "packet/owner.h"

/* The key and the rows that NIC vendors verify with (Microsoft's "Verifying the RSS hash"). */
static const uint8_t published_key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const struct {
	int family;
	const char *source;
	uint16_t source_port;
	const char *destination;
	uint16_t destination_port;
	uint32_t addresses, all;
} rows[] = {
	{4, "66.9.149.187", 2794, "161.142.100.80", 1766, 0x323e8fc2, 0x51ccc178},
	{4, "199.92.111.2", 14230, "65.69.140.83", 4739, 0xd718262a, 0xc626b0ea},
	{4, "24.19.198.95", 12898, "12.22.207.184", 38024, 0xd2d0a5de, 0x5c2b394a},
	{6, "3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2cc18cd5, 0x40207d3d},
	{6, "3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0f0c461c, 0xdde51bbf},
};

static struct flow_key key_of(unsigned int row)
{
	struct flow_key key = {
		.family = rows[row].family,
		.protocol = IPPROTO_UDP,
		.src_port = htons(rows[row].source_port),
		.dst_port = htons(rows[row].destination_port),
	};

	if (key.family == 4) {
		key.src.s6_addr32[2] = key.dst.s6_addr32[2] = htonl(0xffff);
		inet_pton(AF_INET, rows[row].source, &key.src.s6_addr32[3]);
		inet_pton(AF_INET, rows[row].destination, &key.dst.s6_addr32[3]);
	} else {
		inet_pton(AF_INET6, rows[row].source, &key.src);
		inet_pton(AF_INET6, rows[row].destination, &key.dst);
	}
	return key;
}

/* Queue numbers that tell which entry they were read from. */
static struct port_rss rss_of(bool ports)
{
	struct port_rss rss = {.known = true,
			       .ip4 = true,
			       .ip6 = true,
			       .ports4 = ports,
			       .ports6 = ports,
			       .key_length = 40,
			       .entries = PORT_RSS_ENTRIES_MAX};

	memcpy(rss.key, published_key, sizeof(published_key));
	for (unsigned int i = 0; i < PORT_RSS_ENTRIES_MAX; i++)
		rss.queue[i] = i + 1000;
	return rss;
}

Test(lb_owner, finds_the_queue_as_the_published_rows_do)
{
	struct port_rss all = rss_of(true), addresses = rss_of(false);

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct flow_key key = key_of(i);

		cr_expect_eq(owner_queue_by_rss(&all, &key), 1000 + (rows[i].all & 511), "row %u",
			     i);
		cr_expect_eq(owner_queue_by_rss(&addresses, &key), 1000 + (rows[i].addresses & 511),
			     "row %u", i);
	}
}

Test(lb_owner, takes_the_first_queue_for_what_the_nic_does_not_hash)
{
	struct port_rss rss = rss_of(true);
	struct flow_key key = key_of(3);

	rss.ip6 = rss.ports6 = false;
	cr_expect_eq(owner_queue_by_rss(&rss, &key), 1000);
	key = key_of(0);
	cr_expect_eq(owner_queue_by_rss(&rss, &key), 1000 + (rows[0].all & 511));
}

Test(lb_owner, hashes_any_bytes_as_dpdk_does)
{
	uint32_t words[9], swapped[9];

	for (unsigned int round = 0; round < 1000; round++) {
		for (unsigned int i = 0; i < 9; i++) {
			words[i] = (round * 9 + i) * 0x9e3779b1u;
			swapped[i] = ntohl(words[i]);
		}
		cr_assert_eq(owner_toeplitz(published_key, (const uint8_t *)words, 36),
			     rte_softrss(swapped, 9, published_key));
	}
}

/* Hashes of the flows of one lcore must still differ in the bits that its flow table uses. */
Test(lb_owner, shares_hashes_evenly_and_leaves_their_bits_mixed)
{
	for (unsigned int n = 1; n <= 64; n++) {
		unsigned int count[64] = {0}, high[64] = {0}, low[64] = {0};

		for (uint32_t i = 0; i < 64000; i++) {
			uint32_t hash = (uint32_t)rte_hash_crc_4byte(i, n);
			unsigned int owner = owner_by_hash(hash, n);

			cr_assert_lt(owner, n);
			count[owner]++;
			high[owner] += hash >> 31;
			low[owner] += hash & 1;
		}
		for (unsigned int i = 0; i < n; i++) {
			cr_expect(count[i] > 64000 / n * 8 / 10 && count[i] < 64000 / n * 12 / 10,
				  "%u of %u: %u", i, n, count[i]);
			cr_expect(high[i] > count[i] * 4 / 10 && high[i] < count[i] * 6 / 10);
			cr_expect(low[i] > count[i] * 4 / 10 && low[i] < count[i] * 6 / 10);
		}
	}
}

/* Packets from every port found go to the queue asked for, and the port is not always the same. */
Test(lb_owner, finds_a_source_port_for_a_queue)
{
	struct port_rss rss = rss_of(true);
	uint16_t seen = 0;

	for (unsigned int i = 0; i < PORT_RSS_ENTRIES_MAX; i++)
		rss.queue[i] = i % 3;
	for (unsigned int i = 0; i < 3 * 64; i++) {
		struct flow_key key = key_of(i % (sizeof(rows) / sizeof(rows[0])));
		uint16_t source;

		key.dst_port = htons(4791);
		source = owner_source_port(&rss, &key, i % 3, i * 0x9e3779b1u);
		cr_assert_geq(source, 0xc000);
		cr_expect_neq(source, seen);
		seen = source;
		key.src_port = htons(source);
		cr_expect_eq(owner_queue_by_rss(&rss, &key), i % 3, "source port %u", source);
	}
}

Test(lb_owner, finds_no_source_port_where_ports_do_not_matter)
{
	struct port_rss rss = rss_of(false);
	struct flow_key key = key_of(0);

	cr_expect_eq(owner_source_port(&rss, &key, rss.queue[0], 7), 0);
	rss = rss_of(true);
	cr_expect_eq(owner_source_port(&rss, &key, 5, 7), 0, "no such queue");
	rss.known = false;
	cr_expect_eq(owner_source_port(&rss, &key, rss.queue[0], 7), 0);
}
