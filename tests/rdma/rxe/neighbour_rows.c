/* SPDX-License-Identifier: BSD-3-Clause */
/* How the peer's kernel finds our MAC address: by ARP and neighbour discovery. */
#include <errno.h>

#include "rig.h"

static const char *plain(const struct rig *rig)
{
	return rig->way->family == 4 ? rig->way->ours + 7 : rig->way->ours;
}

static void forget(struct rig *rig)
{
	peer_ask(rig, "sh ip -%u neigh del %s dev eth0 2>/dev/null", rig->way->family, plain(rig));
	rig->asked = 0;
}

static void expect_write(struct rig *rig, struct rig_qp *qp)
{
	rig_write(rig, qp, 0, 64, 1, 0, REQUESTER_ACK_REQUEST);
	rig_expect_acked(rig, qp);
}

/* The call waits for the answer, which we give meanwhile; with Linux 6.1 it takes a second even so.
 */
static void asks_at_rtr(struct rig *rig)
{
	struct rig_qp *qp;

	forget(rig);
	qp = rig_connect(rig, &rig_defaults);
	RIG_EXPECT(rig, rig->asked >= 1, "it did not ask");
	expect_write(rig, qp);
}

static void unanswered(struct rig *rig)
{
	struct rig_qp *qp;
	int error;

	forget(rig);
	qp = rig_create(rig, &rig_defaults);
	rig->ignore_neighbours = true;
	error = peer_try(rig, "rtr %u %u %s %u %u %u 12", qp->peer, rig->way->gid_index,
			 rig->way->ours, qp->number, qp->first_psn, rig->way->mtu);
	RIG_EXPECT(rig, error == ETIMEDOUT, "error %d", error);
	RIG_EXPECT(rig, rig->asked >= 1, "it did not ask");
}

static void permanent(struct rig *rig)
{
	const uint8_t *m = rig->port.mac;
	struct rig_qp *qp;

	forget(rig);
	peer_ask(rig,
		 "sh ip -%u neigh replace %s lladdr %02x:%02x:%02x:%02x:%02x:%02x dev eth0 nud "
		 "permanent",
		 rig->way->family, plain(rig), m[0], m[1], m[2], m[3], m[4], m[5]);
	rig->ignore_neighbours = true;
	qp = rig_connect(rig, &rig_defaults);
	expect_write(rig, qp);
	RIG_EXPECT(rig, rig->asked == 0, "it asked %u times", rig->asked);
	forget(rig);
}

/* In mid-stream the peer's answers need our address again. */
static void asks_again(struct rig *rig)
{
	struct rig_qp *qp = rig_connect(rig, &rig_defaults);

	expect_write(rig, qp);
	forget(rig);
	expect_write(rig, qp);
	RIG_EXPECT(rig, rig->asked >= 1, "it did not ask");
}

/* Acknowledgements wait for an answer to ARP; then they arrive, or our timeout fetches them. */
static void unanswered_for_a_while(struct rig *rig)
{
	struct rig_qp_options o = rig_defaults;
	struct rig_qp *qp;

	o.timeout = 15; /* 134 ms, often: longer than the kernel's three questions */
	o.retries = 50;
	qp = rig_connect(rig, &o);
	expect_write(rig, qp);
	rig->ignore_neighbours = true;
	forget(rig);
	rig_write(rig, qp, 256, 64, 2, 0, REQUESTER_ACK_REQUEST);
	RIG_EXPECT(rig, RIG_AWAIT(rig, rig->asked >= 2), "it asked %u times", rig->asked);
	RIG_EXPECT(rig, requester_unacked(&qp->requester) == 1, "acknowledged nevertheless");
	rig->ignore_neighbours = false;
	rig_expect_acked(rig, qp);
	RIG_EXPECT(rig, peer_has(rig, qp->va + 256, 64, 2), "other bytes");
}

const struct row neighbour_rows[] = {
	{"the peer asks for our address at RTR", asks_at_rtr, ROW_ONCE},
	{"RTR without an answer times out", unanswered, ROW_ONCE},
	{"a permanent neighbour is not asked for", permanent, ROW_ONCE},
	{"the peer asks again in mid-stream", asks_again, ROW_ONCE},
	{"no answer for a while in mid-stream", unanswered_for_a_while, ROW_ONCE},
	{NULL, NULL},
};
