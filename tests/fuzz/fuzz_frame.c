/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as a frame that comes to the load generator's DPDK port. What is taken lies within the
 * frame, and the ledger ends each request once, for any mix of notices and replies.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/ledger.h"
#include "cli/bench/port_frame.h"

#define FLOWS 4
#define SENT  16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void settle(const uint8_t *bytes, uint32_t length)
{
	enum notice_code code = notice_parse(bytes, length);
	struct ledger ledger;
	struct flight flight = {0};
	uint64_t id;

	if (length < (code != NOTICE_NONE ? NOTICE_SIZE : sizeof(id)) ||
	    ledger_init(&ledger, 0x01020304) != 0)
		return;
	for (int i = 0; i < SENT; i++)
		require(ledger_sent(&ledger, &flight) == 0, "no memory");
	memcpy(&id, bytes + (code != NOTICE_NONE ? NOTICE_ID_AT : 0), sizeof(id));
	for (int i = 0; i < 3; i++)
		ledger_settle(&ledger, id, code, true, &flight);
	require(ledger.counts.answered + ledger.counts.refused + ledger.outstanding == SENT,
		"a request ended twice");
	ledger_fini(&ledger);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame_peer peer = {.port = htons(9000)};
	struct transport_datagram datagram;
	uint8_t *frame;
	uint32_t ours;

	if (size > 9216)
		return 0;
	/* A heap block of the exact size, so that a read beyond it is seen; aligned as packets are.
	 */
	frame = malloc(size > 0 ? size : 1);
	require(frame != NULL, "no memory");
	memcpy(frame, data, size);
	inet_pton(AF_INET, "192.0.2.7", &ours);
	inet_pton(AF_INET, "192.0.2.100", &peer.address);
	if (frame_take(frame, (uint32_t)size, FLOWS, ours, &peer, 1, &datagram)) {
		require(datagram.flow < FLOWS, "no such flow");
		require(datagram.bytes >= frame && datagram.bytes + datagram.length <= frame + size,
			"outside");
		settle(datagram.bytes, datagram.length);
	}
	settle(frame, (uint32_t)size);
	free(frame);
	return 0;
}
