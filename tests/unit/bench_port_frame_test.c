/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/port_frame.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

#define FLOWS  10
#define LENGTH 100

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};
static struct frame_peer peer[2];
static uint32_t ours;
static _Alignas(8) uint8_t frame[256];
static struct transport_datagram datagram;

/* A reply of target <t> to <flow>: a request of our own, turned around. */
static uint32_t reply(uint32_t flow, unsigned int t)
{
	struct frame_peer us = {.address = ours,
				.port = htons((uint16_t)(FRAME_FIRST_PORT + flow))};

	memcpy(us.mac, our_mac, 6);
	memset(frame, 0xa5, sizeof(frame));
	/* The source port comes from a flow's number, too. */
	frame_finish(frame, LENGTH, (uint32_t)ntohs(peer[t].port) - FRAME_FIRST_PORT,
		     peer[t].address, peer[t].mac, &us);
	return FRAME_HEADERS + LENGTH;
}

static bool take(uint32_t length)
{
	return frame_take(frame, length, FLOWS, ours, peer, 2, &datagram);
}

static void init(void)
{
	inet_pton(AF_INET, "192.0.2.7", &ours);
	for (int i = 0; i < 2; i++) {
		peer[i] = (struct frame_peer){.port = htons((uint16_t)(9000 + i)), .mac = {2, 1}};
		inet_pton(AF_INET, "198.51.100.1", &peer[i].address);
	}
}

TestSuite(port_frame, .init = init);

Test(port_frame, a_reply_is_of_the_flow_that_it_is_addressed_to)
{
	cr_assert(take(reply(3, 1)));
	cr_assert_eq(datagram.flow, 3);
	cr_assert_eq(datagram.length, LENGTH);
	cr_assert_eq(datagram.bytes, frame + FRAME_HEADERS);
}

Test(port_frame, padding_is_not_payload)
{
	cr_assert(take(reply(2, 0) + 20));
	cr_assert_eq(datagram.length, LENGTH);
}

Test(port_frame, what_is_cut_short_is_not_taken)
{
	uint32_t whole = reply(2, 0);

	for (uint32_t length = 0; length < whole; length++)
		cr_assert_not(take(length), "%u of %u bytes", length, whole);
}

Test(port_frame, only_the_target_of_a_flow_answers_it)
{
	cr_assert_not(take(reply(3, 0)), "flow 3 is towards target 1");
	cr_assert_not(take(reply(FLOWS, 0)), "there is no such flow");
	ours = htonl(0x0a000001);
	cr_assert(take(reply(2, 0)));
	ours = htonl(0x0a000002);
	cr_assert_not(take(FRAME_HEADERS + LENGTH), "another's");
}

/* The NIC checks MAC addresses; all other bytes are covered by a checksum or compared. */
Test(port_frame, no_wrong_bit_behind_the_mac_addresses_is_taken)
{
	uint32_t whole = reply(2, 0);

	for (uint32_t bit = 12 * 8; bit < whole * 8; bit++) {
		frame[bit / 8] ^= 1 << bit % 8;
		cr_assert_not(take(whole), "bit %u of byte %u", bit % 8, bit / 8);
		frame[bit / 8] ^= 1 << bit % 8;
	}
	cr_assert(take(whole));
}
