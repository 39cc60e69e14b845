/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/responder.h"

void responder_init(struct responder *r, const struct rdma_region *region, uint32_t mtu,
		    uint32_t psn)
{
	*r = (struct responder){.region = *region, .mtu = mtu, .epsn = psn & ROCE_PSN_MASK};
}

static void responder_note_ack(struct responder *r, uint32_t psn, uint8_t syndrome)
{
	r->ack_due = true;
	r->ack_psn = psn;
	r->ack_syndrome = syndrome;
}

static enum responder_verdict responder_refuse(struct responder *r, const struct roce_packet *p,
					       uint8_t nak, enum responder_verdict verdict)
{
	__atomic_store_n(&r->error, true, __ATOMIC_RELAXED);
	r->stats.naks++;
	responder_note_ack(r, p->psn, nak);
	return verdict;
}

static bool responder_in_region(const struct rdma_region *region, uint64_t va, uint32_t length)
{
	uint64_t offset = va - region->va;

	if (va < region->va || offset > region->length || length > region->length - offset)
		return false;
	return region->stride == 0 ||
	       ((offset & (region->stride - 1)) == 0 && length <= region->stride);
}

/* True when opcode, payload length and pad fit the message so far (IBTA volume 1, 9.7.4.1.2). */
static bool responder_in_sequence(const struct responder *r, const struct roce_packet *p,
				  uint8_t has)
{
	uint32_t left = has & ROCE_IS_FIRST ? p->length : r->left;

	if (r->in_message == ((has & ROCE_IS_FIRST) != 0))
		return false;
	if (has & ROCE_IS_LAST) {
		/* The last of several packets has at least one byte. */
		return p->payload_length == left && p->payload_length <= r->mtu &&
		       p->pad == (-left & 3) && (has & ROCE_IS_FIRST || left > 0);
	}
	return p->payload_length == r->mtu && p->pad == 0 && left > r->mtu;
}

enum responder_verdict responder_receive(struct responder *r, const struct roce_packet *p,
					 struct responder_placement *placement)
{
	uint8_t has = roce_opcode_traits(p->opcode);
	int32_t distance = roce_psn_diff(p->psn, r->epsn);

	if (r->error)
		return RESPONDER_DEAD;
	if (distance < 0) {
		r->stats.duplicates++;
		/* A pending NAK takes precedence over a repeated ACK. */
		if (!r->ack_due || ROCE_AETH_KIND(r->ack_syndrome) == ROCE_AETH_ACK)
			responder_note_ack(r, roce_psn_add(r->epsn, ROCE_PSN_MASK),
					   ROCE_CREDITS_UNUSED);
		return RESPONDER_DUPLICATE;
	}
	if (distance > 0) {
		r->stats.ahead++;
		if (!r->nak_sent) {
			r->nak_sent = true;
			r->stats.naks++;
			responder_note_ack(r, r->epsn, ROCE_NAK_SEQUENCE);
		}
		return RESPONDER_AHEAD;
	}
	/* An opcode that is not served is refused like a bad order (IBTA volume 1, 9.7.4.1.2). */
	if (!(has & ROCE_IS_WRITE) || !responder_in_sequence(r, p, has))
		return responder_refuse(r, p, ROCE_NAK_INVALID_REQUEST, RESPONDER_INVALID);
	if (has & ROCE_IS_FIRST) {
		/* The longest message has 2^31 bytes (IBTA volume 1, 9.7.2.3). */
		if (p->length > ROCE_MESSAGE_MAX)
			return responder_refuse(r, p, ROCE_NAK_INVALID_REQUEST, RESPONDER_INVALID);
		/* A WRITE of 0 bytes touches no memory: its rkey and address are not checked. */
		if (p->length > 0 && (p->rkey != r->region.rkey ||
				      !responder_in_region(&r->region, p->va, p->length)))
			return responder_refuse(r, p, ROCE_NAK_REMOTE_ACCESS, RESPONDER_ACCESS);
		r->va = p->va;
		r->left = p->length;
	}
	*placement = (struct responder_placement){
		.va = r->va,
		.first = has & ROCE_IS_FIRST,
		.last = has & ROCE_IS_LAST,
		.has_imm = has & ROCE_HAS_IMM,
		.imm = p->imm,
	};
	r->va += p->payload_length;
	r->left -= p->payload_length;
	r->in_message = !(has & ROCE_IS_LAST);
	r->epsn = roce_psn_add(r->epsn, 1);
	r->nak_sent = false;
	r->stats.packets++;
	if (has & ROCE_IS_LAST) {
		r->msn = roce_psn_add(r->msn, 1);
		r->stats.messages++;
	}
	if (p->ack_request)
		responder_note_ack(r, p->psn, ROCE_CREDITS_UNUSED);
	return RESPONDER_ACCEPT;
}

bool responder_ack_due(struct responder *r, uint32_t *psn, uint8_t *syndrome, uint32_t *msn)
{
	if (!r->ack_due)
		return false;
	r->ack_due = false;
	r->stats.acks++;
	*psn = r->ack_psn;
	*syndrome = r->ack_syndrome;
	*msn = r->msn;
	return true;
}

void responder_notify_every(struct responder *r, uint64_t interval)
{
	r->notify_interval = interval;
}

void responder_marked(struct responder *r, uint64_t now)
{
	r->stats.marked++;
	if (r->notify_interval == 0 || r->error ||
	    (r->stats.notifications > 0 && (int64_t)(now - r->notify_after) < 0))
		return;
	r->notify_after = now + r->notify_interval;
	r->stats.notifications++;
	r->notification_due = true;
}

bool responder_notification_due(struct responder *r)
{
	bool due = r->notification_due;

	r->notification_due = false;
	return due;
}
