/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages between the controller and its workers, by TCP, on one machine. */
#ifndef PREDICTABLE_WIRE_H
#define PREDICTABLE_WIRE_H

#include <stdint.h>

#define WIRE_BATCH_MAX 64

/* Run a batch: the requests' bytes follow. Actions run in the order in which they come. */
struct wire_action {
	uint64_t number;
	uint32_t base_us, each_us; /* of the batch's model */
	uint32_t reply;            /* bytes of a reply at most */
	uint32_t n;
	uint32_t length[WIRE_BATCH_MAX];
};

/* The batch has run: the replies' bytes follow. */
struct wire_result {
	uint64_t number;
	uint32_t n;
	uint32_t waited_us; /* from when the action was there until it began */
	uint32_t length[WIRE_BATCH_MAX];
};

#endif
