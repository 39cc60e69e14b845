/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a bad link, for tests: frames go in, and come out late, twice, out of order,
 * damaged, marked, or not at all. Pure and seeded: the same frames at the same times with the same
 * seed have the same fate. Time is the caller's, in ns, and may be made up.
 */
#ifndef TESTS_RDMA_FAULTS_H
#define TESTS_RDMA_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* A reordered frame comes this much later than it would have, so that others overtake it. */
#define FAULTS_REORDER_NS 100000

struct faults_params {
	/* probabilities, per frame */
	double drop, duplicate, reorder, corrupt;
	uint64_t delay_ns;   /* of every frame */
	uint64_t reorder_ns; /* 0: FAULTS_REORDER_NS */
	/* a switch in the middle; 0: there is none */
	uint64_t bytes_per_s;
	uint64_t mark_bytes;  /* a frame that finds this much waiting gets CE, if its sender knows
				 ECN */
	uint64_t queue_bytes; /* a frame that finds this much waiting is dropped */
	uint64_t seed;
};

struct faults_stats {
	uint64_t in, out;
	uint64_t dropped, duplicated, reordered, corrupted;
	uint64_t marked, overflowed;
	uint64_t queue_max; /* bytes that waited in the switch at most */
};

struct faults;

/* Returns NULL when memory is out. */
struct faults *faults_create(const struct faults_params *params);
void faults_destroy(struct faults *f);

/* A frame goes in; its bytes are copied. <now> never goes back. */
void faults_put(struct faults *f, const uint8_t *frame, uint32_t length, uint64_t now);
/* Takes the next frame that is out by <now>, at most <size> bytes of it; 0 when there is none. */
uint32_t faults_take(struct faults *f, uint64_t now, uint8_t *frame, uint32_t size);
/* Returns when the next frame comes out; UINT64_MAX when none is inside. */
uint64_t faults_deadline(const struct faults *f);

/* From now on every frame is lost, those inside too; false ends that. */
void faults_cut(struct faults *f, bool cut);

const struct faults_stats *faults_stats(const struct faults *f);

#endif
