/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST   4096 /* flights; a power of two */
#define STATES_FIRST 65536
#define PER_BYTE     4

enum state {
	STATE_SENT,
	STATE_DONE, /* answered, with right or wrong bytes */
	STATE_LOST,
	STATE_REFUSED,
};

int ledger_init(struct ledger *ledger, uint32_t tag)
{
	*ledger = (struct ledger){
		.tag = tag, .room = ROOM_FIRST, .states_room = STATES_FIRST * PER_BYTE};
	ledger->flights = calloc(ROOM_FIRST, sizeof(*ledger->flights));
	ledger->states = calloc(STATES_FIRST, 1);
	if (ledger->flights != NULL && ledger->states != NULL)
		return 0;
	ledger_fini(ledger);
	return -ENOMEM;
}

void ledger_fini(struct ledger *ledger)
{
	free(ledger->flights);
	free(ledger->states);
}

static enum state state_of(const struct ledger *ledger, uint64_t index)
{
	return ledger->states[index / PER_BYTE] >> index % PER_BYTE * 2 & 3;
}

/* Set a state once: from STATE_SENT only, which is zero. */
static void state_set(struct ledger *ledger, uint64_t index, enum state state)
{
	ledger->states[index / PER_BYTE] |= (uint8_t)(state << index % PER_BYTE * 2);
}

static struct flight *flight_of(const struct ledger *ledger, uint64_t index)
{
	return &ledger->flights[index & (ledger->room - 1)];
}

static int flights_grow(struct ledger *ledger)
{
	uint64_t room = ledger->room * 2;
	struct flight *grown = calloc(room, sizeof(*grown));

	if (grown == NULL)
		return -ENOMEM;
	for (uint64_t i = ledger->oldest; i < ledger->next; i++)
		grown[i & (room - 1)] = *flight_of(ledger, i);
	free(ledger->flights);
	ledger->flights = grown;
	ledger->room = room;
	return 0;
}

static int states_grow(struct ledger *ledger)
{
	size_t bytes = ledger->states_room / PER_BYTE;
	uint8_t *grown = realloc(ledger->states, bytes * 2);

	if (grown == NULL)
		return -ENOMEM;
	memset(grown + bytes, 0, bytes);
	ledger->states = grown;
	ledger->states_room *= 2;
	return 0;
}

uint64_t ledger_next_id(const struct ledger *ledger)
{
	return (uint64_t)ledger->tag << 32 | (uint32_t)ledger->next;
}

int ledger_sent(struct ledger *ledger, const struct flight *flight)
{
	if (ledger->next > UINT32_MAX)
		return -EOVERFLOW;
	if ((ledger->next - ledger->oldest == ledger->room && flights_grow(ledger) != 0) ||
	    (ledger->next == ledger->states_room && states_grow(ledger) != 0))
		return -ENOMEM;
	*flight_of(ledger, ledger->next++) = *flight;
	ledger->outstanding++;
	ledger->counts.sent++;
	return 0;
}

bool ledger_knows(const struct ledger *ledger, uint64_t id)
{
	return id >> 32 == ledger->tag && (uint32_t)id < ledger->next;
}

const struct flight *ledger_find(const struct ledger *ledger, uint64_t id)
{
	uint32_t index = (uint32_t)id;

	if (!ledger_knows(ledger, id) || state_of(ledger, index) != STATE_SENT)
		return NULL;
	return flight_of(ledger, index);
}

/* End request <index>, which is outstanding. */
static void ledger_end_request(struct ledger *ledger, uint64_t index, enum state state,
			       struct flight *flight)
{
	*flight = *flight_of(ledger, index);
	state_set(ledger, index, state);
	ledger->outstanding--;
	while (ledger->oldest < ledger->next && state_of(ledger, ledger->oldest) != STATE_SENT)
		ledger->oldest++;
}

static enum ledger_verdict settle_first(struct ledger *ledger, uint64_t index,
					enum notice_code code, bool right, struct flight *flight)
{
	if (code != NOTICE_NONE) {
		ledger_end_request(ledger, index, STATE_REFUSED, flight);
		ledger->counts.refused++;
		return LEDGER_REFUSED;
	}
	ledger_end_request(ledger, index, STATE_DONE, flight);
	if (right) {
		ledger->counts.answered++;
		return LEDGER_ANSWERED;
	}
	ledger->counts.wrong++;
	return LEDGER_WRONG;
}

enum ledger_verdict ledger_settle(struct ledger *ledger, uint64_t id, enum notice_code code,
				  bool right, struct flight *flight)
{
	if (code != NOTICE_NONE)
		ledger->counts.notices[code]++;
	if (!ledger_knows(ledger, id)) {
		ledger->counts.strangers++;
		return LEDGER_STRANGER;
	}
	switch (state_of(ledger, (uint32_t)id)) {
	case STATE_SENT:
		return settle_first(ledger, (uint32_t)id, code, right, flight);
	case STATE_LOST:
		ledger->counts.late++;
		return LEDGER_LATE;
	default:
		ledger->counts.duplicates++;
		return LEDGER_DUPLICATE;
	}
}

bool ledger_expire(struct ledger *ledger, uint64_t before_ns, struct flight *flight)
{
	if (ledger->oldest == ledger->next ||
	    flight_of(ledger, ledger->oldest)->sent_ns >= before_ns)
		return false;
	ledger_end_request(ledger, ledger->oldest, STATE_LOST, flight);
	ledger->counts.lost++;
	return true;
}

void ledger_counts_add(struct ledger_counts *to, const struct ledger_counts *from)
{
	to->sent += from->sent;
	to->answered += from->answered;
	to->wrong += from->wrong;
	to->refused += from->refused;
	to->lost += from->lost;
	to->late += from->late;
	to->duplicates += from->duplicates;
	to->strangers += from->strangers;
	for (int i = 0; i < NOTICE_CODES; i++)
		to->notices[i] += from->notices[i];
}
