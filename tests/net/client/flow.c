/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLOW_BUFFER (1 << 20) /* asked of the kernel, which may give less */

uint64_t load_id(const struct load *load, uint32_t index)
{
	return (uint64_t)load->tag << 32 | index;
}

int flow_init(struct flow *flow, const struct load_options *options, uint32_t number)
{
	flow->fd = -1;
	flow->number = number;
	flow->next = number;
	flow->outstanding = calloc(options->window, sizeof(*flow->outstanding));
	return flow->outstanding != NULL ? 0 : -ENOMEM;
}

int flow_open(struct flow *flow, const struct load_options *options, uint32_t number)
{
	const struct endpoint_address *to = &options->to;
	int buffer = FLOW_BUFFER;
	int ret = flow_init(flow, options, number);

	if (ret != 0)
		return ret;
	flow->fd = socket(to->socket.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (flow->fd < 0)
		return -errno;
	setsockopt(flow->fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	setsockopt(flow->fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	if (connect(flow->fd, (const struct sockaddr *)&to->socket, to->length) != 0)
		return -errno;
	return 0;
}

void flow_close(struct flow *flow)
{
	if (flow->fd >= 0)
		close(flow->fd);
	free(flow->outstanding);
}

int flow_sent(struct load *load, struct flow *flow, uint32_t index, uint64_t now)
{
	struct record *record = tally_record(load->tally, index);

	if (record == NULL)
		return -ENOMEM;
	*record = (struct record){.ns = now, .flow = flow->number, .state = RECORD_SENT};
	flow->outstanding[flow->n_outstanding++] = index;
	if (flow->last_reply_ns == 0)
		flow->last_reply_ns = now;
	load->n_outstanding++;
	load->tally->requests++;
	return 0;
}

/* Takes <index> off the list; false if it is not on it. */
static bool outstanding_remove(struct load *load, struct flow *flow, uint32_t index)
{
	for (uint32_t i = 0; i < flow->n_outstanding; i++) {
		if (flow->outstanding[i] != index)
			continue;
		flow->n_outstanding--;
		memmove(&flow->outstanding[i], &flow->outstanding[i + 1],
			(flow->n_outstanding - i) * sizeof(*flow->outstanding));
		load->n_outstanding--;
		if (flow->has_short)
			flow->recent[flow->n_recent++ % FLOW_RECENT] = index;
		flow->has_short = false;
		return true;
	}
	return false;
}

/*
 * A notice has no id: it counts for the oldest request without an answer, or, if none is
 * outstanding, for one that was given up.
 */
static void notice_settle(struct load *load, struct flow *flow)
{
	uint32_t oldest;

	if (flow->n_outstanding != 0) {
		oldest = flow->outstanding[0];
		outstanding_remove(load, flow, oldest);
		load->tally->records[oldest].state = RECORD_REFUSED;
		load->tally->refused++;
	} else if (flow->lost != 0) {
		flow->lost--;
		load->tally->lost--;
		load->tally->refused++;
	}
}

/* Takes the reply to a request that has not been answered yet. */
static int reply_take(struct load *load, struct flow *flow, uint32_t index, bool right,
		      uint64_t now)
{
	struct record *record = &load->tally->records[index];

	outstanding_remove(load, flow, index);
	if (right)
		return tally_answer(load->tally, record, now);
	load->tally->wrong++;
	record->state = RECORD_WRONG;
	return 0;
}

/* The datagram answers request <index>, which was sent on this flow. */
static int reply_settle(struct load *load, struct flow *flow, uint32_t index,
			const uint8_t *datagram, size_t length, uint64_t now)
{
	struct tally *tally = load->tally;
	bool right = load->work->check(load->work->context, load_id(load, index), datagram, length);
	int ret;

	switch (tally->records[index].state) {
	case RECORD_SENT:
		return reply_take(load, flow, index, right, now);
	case RECORD_REFUSED:
		/* The notice was for another request. */
		tally->refused--;
		ret = reply_take(load, flow, index, right, now);
		notice_settle(load, flow);
		return ret;
	case RECORD_LOST:
		tally->late++;
		break;
	case RECORD_ANSWERED:
	case RECORD_WRONG:
		tally->duplicates++;
		break;
	case RECORD_UNSENT:
		tally->wrong++;
		return 0;
	}
	tally->wrong += !right;
	return 0;
}

static uint64_t little_endian_u64(const uint8_t *bytes)
{
	uint64_t value = 0;

	for (int i = 7; i >= 0; i--)
		value = value << 8 | bytes[i];
	return value;
}

/* Finds the index in the datagram's id, if that is one of this run, sent on this flow. */
static bool index_by_id(const struct load *load, const struct flow *flow, const uint8_t *datagram,
			size_t length, uint32_t *index)
{
	uint64_t id = length >= LOAD_ID_MIN ? little_endian_u64(datagram) : 0;

	*index = (uint32_t)id;
	return length >= LOAD_ID_MIN && id >> 32 == load->tag && *index < load->tally->n_records &&
	       load->tally->records[*index].state != RECORD_UNSENT &&
	       load->tally->records[*index].flow == flow->number;
}

/* Finds the index of a short request that the datagram answers. */
static bool index_by_bytes(const struct load *load, const struct flow *flow,
			   const uint8_t *datagram, size_t length, uint32_t *index)
{
	const struct load_work *work = load->work;
	uint64_t oldest = flow->n_recent > FLOW_RECENT ? flow->n_recent - FLOW_RECENT : 0;

	*index = flow->outstanding[0];
	if (flow->has_short && work->check(work->context, load_id(load, *index), datagram, length))
		return true;
	for (uint64_t i = flow->n_recent; i > oldest; i--) {
		*index = flow->recent[(i - 1) % FLOW_RECENT];
		if (work->check(work->context, load_id(load, *index), datagram, length))
			return true;
	}
	*index = flow->outstanding[0];
	return flow->has_short;
}

int flow_received(struct load *load, struct flow *flow, const uint8_t *datagram, size_t length,
		  uint64_t now)
{
	enum notice_code code = notice_parse(datagram, length);
	uint64_t gap = now - flow->last_reply_ns;
	uint32_t index;

	if (code != NOTICE_NONE) {
		load->tally->notices[code]++;
		notice_settle(load, flow);
		return 0;
	}
	if (gap > load->tally->gap_ns[flow->number])
		load->tally->gap_ns[flow->number] = gap;
	flow->last_reply_ns = now;
	if (index_by_id(load, flow, datagram, length, &index) ||
	    index_by_bytes(load, flow, datagram, length, &index))
		return reply_settle(load, flow, index, datagram, length, now);
	load->tally->wrong++;
	return 0;
}

void flow_expire(struct load *load, struct flow *flow, uint64_t before)
{
	while (flow->n_outstanding != 0) {
		uint32_t oldest = flow->outstanding[0];
		struct record *record = &load->tally->records[oldest];

		if (record->ns > before)
			return;
		outstanding_remove(load, flow, oldest);
		record->state = RECORD_LOST;
		load->tally->lost++;
		flow->lost++;
	}
}
