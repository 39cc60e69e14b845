/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of workers: acknowledgements, NAKs, valid replies and false ones. */
#include "worker.h"

static const struct packet ask = {.family = 4, .payload = 100};

/* A worker that has one request and does nothing by itself. */
static struct walk_worker *with_a_request(struct walk *w)
{
	struct walk_worker *v = walk_worker(w, NULL);

	v->answers = false;
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_need(v->n_requests == 1);
	return v;
}

/* --- replies that lie ---------------------------------------------------------------------------
 */

struct lie {
	const char *name;
	struct walk_reply reply;
	enum lb_drop drop;
	bool fatal; /* the queue pair goes into error, and the worker is removed */
	bool over;  /* the request is over: its slot is free */
};

static const struct lie lies[] = {
	{"wrong rkey", {.rkey = 1}, LB_DROP_ROCE_ACCESS, .fatal = true},
	{"far outside of the region", {.va = 1ull << 40}, LB_DROP_ROCE_ACCESS, .fatal = true},
	{"in front of the region", {.va = -65536ull}, LB_DROP_ROCE_ACCESS, .fatal = true},
	{"not where a slot begins", {.va = 8}, LB_DROP_ROCE_ACCESS, .fatal = true},
	{"the slot of another request", {.va = 2048ull * LINK_CHUNKS_MAX}, LB_DROP_REPLY_MALFORMED},
	{"the immediate names another slot", {.imm = 1}, LB_DROP_REPLY_MALFORMED},
	{"the immediate names a slot that is not", {.imm = 0x80000}, LB_DROP_REPLY_MALFORMED},
	{"no immediate", {.no_imm = true}, LB_DROP_REPLY_UNANNOUNCED},
	{"a header of another length", {.header_length = 1}, LB_DROP_REPLY_MALFORMED},
	{"a header cut short", {.cut = 110}, LB_DROP_REPLY_MALFORMED},
	{"nothing at all", {.cut = 140}, LB_DROP_REPLY_MALFORMED},
	{"another request's sequence", {.sequence = 2}, LB_DROP_REPLY_STALE},
	{"a PSN ahead", {.psn = 5}, LB_DROP_ROCE_PSN_AHEAD},
	{"a PSN seen before", {.psn = -1}, LB_DROP_ROCE_PSN_DUPLICATE},
	{"a wrong ICRC", {.bad_icrc = true}, LB_DROP_ROCE_ICRC},
	{"another source address", {.forged_source = true}, LB_DROP_ROCE_SOURCE},
	{"a queue pair that is not", {.qpn = 0x55}, LB_DROP_ROCE_QPN},
	{"the middle of a message",
	 {.opcode = ROCE_WRITE_MIDDLE},
	 LB_DROP_ROCE_OPCODE,
	 .fatal = true},
	{"the end of a message", {.opcode = ROCE_WRITE_LAST}, LB_DROP_ROCE_OPCODE, .fatal = true},
	{"a first packet that is too short",
	 {.opcode = ROCE_WRITE_FIRST},
	 LB_DROP_ROCE_OPCODE,
	 .fatal = true},
	{"a SEND, which nobody serves", {.opcode = 0x04}, LB_DROP_ROCE_OPCODE, .fatal = true},
	{"an RDMA READ", {.opcode = 0x0c}, LB_DROP_ROCE_OPCODE, .fatal = true},
	{"an opcode of another transport", {.opcode = 0x64}, LB_DROP_ROCE_OPCODE},
};

static void one_lie(const struct lie *lie)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = with_a_request(w);
	struct worker *worker;

	walk_context("%s", lie->name);
	v->beats = false;
	walk_answer(v, 0, &lie->reply);
	walk_turn(w);
	walk_expect_drops(w, {lie->drop, 1});
	walk_expect_silence(w, 0);
	walk_turn(w);
	walk_tick(w);
	worker = walk_worker_of(v);
	walk_expect((worker == NULL) == lie->fatal);
	if (worker != NULL)
		walk_expect_eq(walk_worker_stats(v).outstanding, 1);
	walk_turn(w);
	/* In both cases the client hears of its request, at the latest when its time is over. */
	walk_pass(w, lie->fatal ? 2 : 10100);
	walk_expect_notice(w, 0, &ask,
			   lie->fatal                  ? LB_NOTICE_WORKER_LOST
			   : walk_worker_of(v) == NULL ? LB_NOTICE_WORKER_LOST
						       : LB_NOTICE_TIMEOUT);
	walk_destroy(w);
}

WALK(replies_that_lie_reach_no_client)
{
	for (size_t i = 0; i < RTE_DIM(lies); i++)
		one_lie(&lies[i]);
}
