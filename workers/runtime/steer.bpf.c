/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * XDP program for AF_XDP ports: redirects packets for addresses of ours to the port's socket,
 * and leaves all others (ssh, other hosts' ARP, BGP) to the kernel. The driver loads it and fills
 * <xsks_map>; xdp.c fills <doorbell_keep>.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define QUEUES_MAX  64
#define ADDRESS_MAX 512

#define ND_SOLICIT 135

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} xsks_map SEC(".maps");

/* IPv4 as ::ffff:a.b.c.d */
struct address {
	__u32 word[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ADDRESS_MAX);
	__type(key, struct address);
	__type(value, __u8);
} doorbell_keep SEC(".maps");

struct vlan_header {
	__be16 tci;
	__be16 type;
};

struct arp {
	__be16 hardware, protocol;
	__u8 hardware_length, protocol_length;
	__be16 operation;
	__u8 sender_mac[6];
	__u8 sender[4];
	__u8 target_mac[6];
	__u8 target[4];
} __attribute__((packed));

struct neighbour_message {
	__u8 type, code;
	__be16 checksum;
	__be32 flags;
	struct address target;
};

static __always_inline int is_kept(const struct address *a)
{
	return bpf_map_lookup_elem(&doorbell_keep, a) != 0;
}

static __always_inline int is_kept4(__u32 ip)
{
	struct address a = {{0, 0, bpf_htonl(0xffff), ip}};

	return is_kept(&a);
}

static __always_inline int ours_arp(const void *at, const void *end)
{
	const struct arp *arp = at;
	__u32 target;

	if ((const void *)(arp + 1) > end)
		return 0;
	__builtin_memcpy(&target, arp->target, sizeof(target));
	return is_kept4(target);
}

static __always_inline int ours_ip6(const void *at, const void *end)
{
	const struct ipv6hdr *ip = at;
	const struct neighbour_message *nd = (const void *)(ip + 1);
	struct address a;

	if ((const void *)(ip + 1) > end)
		return 0;
	__builtin_memcpy(&a, &ip->daddr, sizeof(a));
	if (is_kept(&a))
		return 1;
	/* A solicitation goes to a multicast group; the address that it asks for is inside. */
	if (ip->nexthdr != IPPROTO_ICMPV6 || (const void *)(nd + 1) > end || nd->type != ND_SOLICIT)
		return 0;
	__builtin_memcpy(&a, &nd->target, sizeof(a));
	return is_kept(&a);
}

SEC("xdp")
int doorbell_steer(struct xdp_md *context)
{
	const void *at = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	const struct ethhdr *ether = at;
	const struct iphdr *ip;
	int ours = 0;
	__be16 type;

	if ((const void *)(ether + 1) > end)
		return XDP_PASS;
	type = ether->h_proto;
	at = ether + 1;
	if (type == bpf_htons(ETH_P_8021Q)) {
		const struct vlan_header *vlan = at;

		if ((const void *)(vlan + 1) > end)
			return XDP_PASS;
		type = vlan->type;
		at = vlan + 1;
	}
	if (type == bpf_htons(ETH_P_IP)) {
		ip = at;
		ours = (const void *)(ip + 1) <= end && is_kept4(ip->daddr);
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		ours = ours_ip6(at, end);
	} else if (type == bpf_htons(ETH_P_ARP)) {
		ours = ours_arp(at, end);
	}
	/* XDP_PASS as the fallback: packets of a queue without a socket go to the kernel. */
	return ours ? bpf_redirect_map(&xsks_map, context->rx_queue_index, XDP_PASS) : XDP_PASS;
}

char doorbell_license[] SEC("license") = "Dual BSD/GPL";
