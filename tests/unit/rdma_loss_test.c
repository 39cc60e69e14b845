/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requester against responder over links that lose, repeat, reorder and damage packets both ways.
 * Every message must arrive exactly once, in order, byte for byte. A failure repeats: all is
 * seeded.
 */
#include "rdma_peers.h"

/* Wraps during the test. */
#define FIRST_PSN 0xfff000

/* Sends 5000 messages over a link with these faults in either direction. */
static void run(struct faults_params there, struct faults_params home, bool copies)
{
	struct peers_params params = {
		.there = there, .home = home, .psn = FIRST_PSN, .messages = 5000, .copies = copies};
	struct peers *p = peers_create(&params);

	peers_run(p);
	cr_expect_eq(p->f->rq.stats.copies > 0, copies);
	cr_expect_lt(p->f->rq.next_psn, 0x100000, "the PSN has wrapped");
	if (there.drop > 0)
		cr_expect_gt(p->f->rq.stats.resent, 0);
	peers_destroy(p);
}

static const struct faults_params sunny = {.delay_ns = 2000, .seed = 1};
static const struct faults_params lossy = {.delay_ns = 2000, .drop = 0.03, .seed = 2};
static const struct faults_params echo = {.delay_ns = 2000, .duplicate = 0.1, .seed = 3};
static const struct faults_params shuffled = {.reorder = 0.05, .reorder_ns = 5000, .seed = 4};
static const struct faults_params noisy = {.delay_ns = 2000, .corrupt = 0.03, .seed = 5};
static const struct faults_params deaf = {.delay_ns = 2000, .drop = 0.5, .seed = 6};
static const struct faults_params storm = {.delay_ns = 2000,
					   .drop = 0.05,
					   .duplicate = 0.05,
					   .reorder = 0.05,
					   .reorder_ns = 5000,
					   .corrupt = 0.01,
					   .seed = 7};

Test(rdma_loss, delivers_over_a_good_link)
{
	run(sunny, sunny, false);
}

Test(rdma_loss, delivers_over_a_link_that_loses)
{
	run(lossy, lossy, false);
}

Test(rdma_loss, delivers_over_a_link_that_repeats)
{
	run(echo, echo, false);
}

Test(rdma_loss, delivers_over_a_link_that_reorders)
{
	run(shuffled, shuffled, false);
}

Test(rdma_loss, delivers_over_a_link_that_damages)
{
	run(noisy, noisy, false);
}

Test(rdma_loss, delivers_when_half_of_all_acknowledgements_and_naks_are_lost)
{
	run(lossy, deaf, false);
}

Test(rdma_loss, delivers_over_a_link_that_does_it_all)
{
	run(storm, storm, false);
}

Test(rdma_loss, delivers_copies_over_a_link_that_does_it_all)
{
	run(storm, storm, true);
}

static void run_shape(uint8_t family, uint32_t mtu, bool copies)
{
	struct peers_params params = {.there = storm,
				      .home = storm,
				      .family = family,
				      .mtu = mtu,
				      .psn = 0xffffc0,
				      .messages = 200,
				      .copies = copies};
	struct peers *p;

	params.there.seed = mtu + family;
	p = peers_create(&params);
	peers_run(p);
	cr_expect_gt(p->f->rq.stats.resent, 0, "IPv%u, MTU %u", family, mtu);
	cr_expect_lt(p->f->rq.next_psn, 0x100000, "IPv%u, MTU %u: no wrap", family, mtu);
	peers_destroy(p);
}

Test(rdma_loss, delivers_at_every_mtu_over_both_protocols_in_chains_and_copies)
{
	for (uint32_t mtu = ROCE_MTU_MIN; mtu <= ROCE_MTU_MAX; mtu *= 2)
		for (unsigned int copies = 0; copies < 2; copies++) {
			run_shape(4, mtu, copies);
			run_shape(6, mtu, copies);
		}
}

/* The cable is out for some time in the middle. */
Test(rdma_loss, goes_on_after_the_cable_was_out)
{
	struct peers_params params = {
		.there = sunny, .home = sunny, .psn = FIRST_PSN, .messages = 3000};
	struct peers *p = peers_create(&params);
	uint64_t until;

	while (p->received < 1000)
		peers_turn(p);
	until = p->ns + 300000000;
	faults_cut(p->there, true);
	faults_cut(p->home, true);
	while (p->ns < until)
		peers_turn(p);
	cr_expect_lt(p->received, 3000);
	faults_cut(p->there, false);
	faults_cut(p->home, false);
	peers_run(p);
	cr_expect_gt(p->f->rq.stats.timeouts, 0);
	peers_destroy(p);
}
