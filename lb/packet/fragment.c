/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>

#include "packet/checksum.h"
#include "packet/fragment.h"

#define NO_DATAGRAM UINT32_MAX

/* All datagrams of a source are in one set: four cache lines. */
struct set {
	uint32_t tag[FRAGMENT_WAYS];    /* hash of the datagram's name; 0 = free */
	uint32_t source[FRAGMENT_WAYS]; /* hash of its source */
	uint32_t since[FRAGMENT_WAYS];  /* ms */
	uint32_t number[FRAGMENT_WAYS]; /* sequence number, as many begin within one ms */
};

struct datagram {
	struct in6_addr src, dst;
	uint32_t id;
	uint8_t protocol, family;
	uint16_t zone;
	uint8_t n;         /* fragments that came */
	uint8_t rejected;  /* LB_DROP_NONE, or why it will never be complete */
	uint16_t total;    /* bytes; 0 until the last fragment came */
	uint16_t received; /* bytes */
	uint16_t first;    /* bytes of the first fragment, 0 until it came */
	uint16_t start[FRAGMENT_PIECES_MAX], end[FRAGMENT_PIECES_MAX];
	uint16_t port, vlan; /* that the first fragment came by */
	uint8_t ip_offset, head_length;
	uint8_t head[FRAGMENT_HEAD_MAX];
};

struct fragment_table {
	uint64_t secret[2];
	uint16_t bytes;
	unsigned int waiting, held;
	uint32_t begun;
	uint32_t whole; /* index of the datagram to take, or NO_DATAGRAM */
	bool too_large; /* <first> is of a datagram that the last fragment made too large */
	struct fragment_first first;
	struct set set[FRAGMENT_SETS];
	struct datagram datagram[FRAGMENT_SETS * FRAGMENT_WAYS];
	uint8_t data[]; /* <bytes> for each */
};

struct fragment_table *fragment_table_create(const struct fragment_params *params)
{
	size_t bytes = (size_t)params->bytes * FRAGMENT_SETS * FRAGMENT_WAYS;
	struct fragment_table *t = calloc(1, sizeof(*t) + bytes);

	if (t == NULL)
		return NULL;
	t->bytes = params->bytes;
	memcpy(t->secret, params->seed, sizeof(t->secret));
	t->whole = NO_DATAGRAM;
	return t;
}

void fragment_table_destroy(struct fragment_table *table)
{
	free(table);
}

static uint16_t fragment_get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

void fragment_read(const uint8_t *frame, const struct parsed *parsed, const struct flow_key *key,
		   struct fragment *out)
{
	const uint8_t *ip = frame + parsed->ip_offset, *extension = ip + 40;
	bool v4 = parsed->family == FLOW_IPV4;
	uint16_t word = fragment_get16(v4 ? ip + 6 : extension + 2);

	*out = (struct fragment){
		.src = key->src,
		.dst = key->dst,
		.protocol = key->protocol,
		.family = parsed->family,
		.zone = key->zone,
		.vlan = parsed->vlan,
		/* The offset is in units of eight bytes; in IPv6 its field is shifted already. */
		.more = v4 ? word & 0x2000 : word & 1,
		.offset = v4 ? word << 3 : word & ~7,
		.length = parsed->l4_length,
		.data = frame + parsed->l4_offset,
		.head = frame,
		.ip_offset = parsed->ip_offset,
		.head_length = v4 ? parsed->l4_offset : parsed->ip_offset + 40,
	};
	if (v4)
		out->id = fragment_get16(ip + 4);
	else
		memcpy(&out->id, extension + 4, 4);
}

/* Hash by a folded 128-bit product: a sender that lacks the secret cannot choose its place. */
static uint64_t hash_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_address(const struct fragment_table *t, const struct in6_addr *a, uint64_t sum)
{
	uint64_t word[2];

	memcpy(word, a, sizeof(word));
	return hash_fold(word[0] ^ t->secret[0] ^ sum, word[1] ^ t->secret[1]);
}

/* An IPv6 source counts as its /64: it could use another address of it for every packet. */
static uint32_t hash_source(const struct fragment_table *t, const struct fragment *f)
{
	struct in6_addr net = f->src;

	if (f->family == FLOW_IPV6)
		memset(net.s6_addr + 8, 0, 8);
	return hash_fold(hash_address(t, &net, 0) ^ f->zone, t->secret[1] | 1);
}

uint32_t fragment_hash(const struct fragment_table *table, const struct fragment *f)
{
	uint64_t rest = (uint64_t)f->zone << 48 | (uint64_t)f->id << 16 | (uint64_t)f->family << 8 |
			f->protocol;
	uint64_t sum;

	sum = hash_address(table, &f->src, 0);
	sum = hash_address(table, &f->dst, sum);
	return hash_fold(sum ^ rest, table->secret[1] | 1);
}

static bool datagram_matches(const struct datagram *d, const struct fragment *f)
{
	return d->id == f->id && d->protocol == f->protocol && d->family == f->family &&
	       d->zone == f->zone && memcmp(&d->src, &f->src, sizeof(d->src)) == 0 &&
	       memcmp(&d->dst, &f->dst, sizeof(d->dst)) == 0;
}

static uint32_t index_of(const struct fragment_table *t, const struct set *s, unsigned int way)
{
	return (uint32_t)(s - t->set) * FRAGMENT_WAYS + way;
}

static void datagram_forget(struct fragment_table *t, uint32_t index)
{
	t->held -= t->datagram[index].n;
	t->waiting--;
	t->set[index / FRAGMENT_WAYS].tag[index % FRAGMENT_WAYS] = 0;
}

static uint32_t datagram_find(const struct fragment_table *t, const struct set *s, uint32_t tag,
			      const struct fragment *f)
{
	for (unsigned int way = 0; way < FRAGMENT_WAYS; way++)
		if (s->tag[way] == tag && datagram_matches(&t->datagram[index_of(t, s, way)], f))
			return index_of(t, s, way);
	return NO_DATAGRAM;
}

/*
 * Find a place for a datagram of <source>. A source with its full share loses its own oldest
 * datagram, a full set its oldest: datagrams that complete at all complete soon.
 */
static unsigned int make_place(struct fragment_table *t, struct set *s, uint32_t source,
			       uint64_t *drop)
{
	unsigned int own = 0, own_oldest = 0, oldest = 0, free_way = FRAGMENT_WAYS, way;
	enum lb_drop reason = LB_DROP_FRAGMENT_SOURCE;
	uint32_t own_age = 0, age = 0, waited;

	for (way = 0; way < FRAGMENT_WAYS; way++) {
		if (s->tag[way] == 0) {
			free_way = way;
			continue;
		}
		waited = t->begun - s->number[way];
		if (s->source[way] == source && (own++ == 0 || waited > own_age)) {
			own_oldest = way;
			own_age = waited;
		}
		if (waited >= age) {
			oldest = way;
			age = waited;
		}
	}
	if (own < FRAGMENT_PER_SOURCE && free_way < FRAGMENT_WAYS)
		return free_way;
	way = own_oldest;
	if (own < FRAGMENT_PER_SOURCE) {
		way = oldest;
		reason = LB_DROP_FRAGMENT_FULL;
	}
	drop[reason] += t->datagram[index_of(t, s, way)].n;
	datagram_forget(t, index_of(t, s, way));
	return way;
}

static uint32_t datagram_start(struct fragment_table *t, struct set *s, uint32_t tag,
			       const struct fragment *f, uint32_t source, uint32_t now_ms,
			       uint64_t *drop)
{
	unsigned int way = make_place(t, s, source, drop);
	uint32_t index = index_of(t, s, way);
	struct datagram *d = &t->datagram[index];

	s->tag[way] = tag;
	s->source[way] = source;
	s->since[way] = now_ms;
	s->number[way] = t->begun++;
	d->src = f->src;
	d->dst = f->dst;
	d->id = f->id;
	d->protocol = f->protocol;
	d->family = f->family;
	d->zone = f->zone;
	d->n = 0;
	d->rejected = LB_DROP_NONE;
	d->total = d->received = d->first = 0;
	t->waiting++;
	return index;
}

/*
 * Check a fragment by itself. Only the last one may have any length: the others end at multiples of
 * eight bytes, so that every first one holds the whole UDP header.
 */
static enum lb_drop check_fragment(const struct fragment_table *t, const struct fragment *f)
{
	if (f->length == 0 || (f->more && f->length % 8 != 0))
		return LB_DROP_FRAGMENT_MALFORMED;
	if ((uint32_t)f->offset + f->length > t->bytes)
		return LB_DROP_FRAGMENT_TOO_LARGE;
	return LB_DROP_NONE;
}

/* Check a fragment against those that came before. */
static enum lb_drop check_order(const struct datagram *d, const struct fragment *f)
{
	uint16_t end = f->offset + f->length;

	for (unsigned int i = 0; i < d->n; i++) {
		if (d->start[i] == f->offset && d->end[i] == end)
			return LB_DROP_FRAGMENT_DUPLICATE;
		if (f->offset < d->end[i] && end > d->start[i])
			return LB_DROP_FRAGMENT_OVERLAP;
		if (!f->more && d->end[i] > end)
			return LB_DROP_FRAGMENT_MALFORMED;
	}
	/* past the end, or a second last fragment */
	if (d->total != 0 && (!f->more || end > d->total))
		return LB_DROP_FRAGMENT_MALFORMED;
	if (d->n == FRAGMENT_PIECES_MAX)
		return LB_DROP_FRAGMENT_TOO_MANY;
	return LB_DROP_NONE;
}

/*
 * The datagram will never be complete, and its later fragments are dropped, too (RFC 5722, RFC 8200
 * 4.5): so its place stays taken until the timeout.
 */
static void datagram_reject(struct fragment_table *t, struct datagram *d, enum lb_drop reason,
			    uint64_t *drop)
{
	drop[reason] += d->n;
	t->held -= d->n;
	d->n = 0;
	d->rejected = reason;
}

static void datagram_store(struct fragment_table *t, uint32_t index, const struct fragment *f)
{
	struct datagram *d = &t->datagram[index];

	memcpy(t->data + (size_t)index * t->bytes + f->offset, f->data, f->length);
	d->start[d->n] = f->offset;
	d->end[d->n++] = f->offset + f->length;
	d->received += f->length;
	if (!f->more)
		d->total = f->offset + f->length;
	if (f->offset == 0) {
		d->first = f->length;
		d->port = f->port;
		d->vlan = f->vlan;
		d->ip_offset = f->ip_offset;
		d->head_length = f->head_length;
		memcpy(d->head, f->head, f->head_length);
	}
	t->held++;
}

static void first_from_fragment(struct fragment_table *t, const struct fragment *f)
{
	t->too_large = true;
	t->first = (struct fragment_first){
		.src = f->src,
		.dst = f->dst,
		.protocol = f->protocol,
		.family = f->family,
		.zone = f->zone,
		.port = f->port,
		.vlan = f->vlan,
		.head = f->head,
		.data = f->data,
		.ip_offset = f->ip_offset,
		.length = f->length,
	};
}

/* Its bytes stay in place until another datagram takes the place. */
static void first_from_datagram(struct fragment_table *t, uint32_t index)
{
	const struct datagram *d = &t->datagram[index];

	t->too_large = true;
	t->first = (struct fragment_first){
		.src = d->src,
		.dst = d->dst,
		.protocol = d->protocol,
		.family = d->family,
		.zone = d->zone,
		.port = d->port,
		.vlan = d->vlan,
		.head = d->head,
		.data = t->data + (size_t)index * t->bytes,
		.ip_offset = d->ip_offset,
		.length = d->first,
	};
}

bool fragment_too_large(const struct fragment_table *table, struct fragment_first *first)
{
	if (table->too_large)
		*first = table->first;
	return table->too_large;
}

bool fragment_add(struct fragment_table *table, const struct fragment *f, uint32_t now_ms,
		  uint64_t *drop)
{
	uint32_t source = hash_source(table, f), tag = fragment_hash(table, f) | 1, index;
	struct set *s = &table->set[source % FRAGMENT_SETS];
	enum lb_drop reason = check_fragment(table, f);
	struct datagram *d;

	table->whole = NO_DATAGRAM;
	table->too_large = false;
	index = datagram_find(table, s, tag, f);
	/*
	 * A datagram that is too large gets a place: its first fragment says which client to
	 * notify.
	 */
	if (index == NO_DATAGRAM && reason != LB_DROP_NONE &&
	    reason != LB_DROP_FRAGMENT_TOO_LARGE) {
		drop[reason]++;
		return false;
	}
	if (index == NO_DATAGRAM)
		index = datagram_start(table, s, tag, f, source, now_ms, drop);
	d = &table->datagram[index];
	if (d->rejected != LB_DROP_NONE) {
		drop[d->rejected]++;
		if (d->rejected == LB_DROP_FRAGMENT_TOO_LARGE && f->offset == 0 && d->first == 0) {
			d->first = f->length;
			first_from_fragment(table, f);
		}
		return false;
	}
	if (reason == LB_DROP_NONE)
		reason = check_order(d, f);
	if (reason != LB_DROP_NONE) {
		drop[reason]++;
		/* Networks do duplicate packets: the first one counts. */
		if (reason == LB_DROP_FRAGMENT_TOO_LARGE && d->first != 0)
			first_from_datagram(table, index);
		if (reason != LB_DROP_FRAGMENT_DUPLICATE)
			datagram_reject(table, d, reason, drop);
		return false;
	}
	datagram_store(table, index, f);
	/* No byte came twice, so their number tells whether it is complete. */
	if (d->total == 0 || d->received < d->total)
		return false;
	table->whole = index;
	return true;
}

uint32_t fragment_frame_length(const struct fragment_table *table)
{
	const struct datagram *d = &table->datagram[table->whole];

	return d->head_length + d->total;
}

void fragment_origin(const struct fragment_table *table, uint16_t *port, uint16_t *vlan)
{
	const struct datagram *d = &table->datagram[table->whole];

	*port = d->port;
	*vlan = d->vlan;
}

/* Make the IP header that of an unfragmented datagram. */
static void unfragment_header(const struct datagram *d, void *ip)
{
	uint32_t length = d->head_length - d->ip_offset; /* of an IPv4 header, with its options */
	struct rte_ipv4_hdr *ip4 = ip;
	struct rte_ipv6_hdr *ip6 = ip;

	if (d->family == FLOW_IPV6) {
		ip6->payload_len = htons(d->total);
		ip6->proto = d->protocol;
		return;
	}
	ip4->total_length = htons(length + d->total);
	ip4->fragment_offset = 0;
	ip4->hdr_checksum = 0;
	ip4->hdr_checksum = ~checksum_fold(checksum_add_few(ip, length));
}

unsigned int fragment_take(struct fragment_table *table, uint8_t *frame)
{
	uint32_t index = table->whole;
	struct datagram *d = &table->datagram[index];
	unsigned int pieces = d->n;

	if (frame != NULL) {
		memcpy(frame, d->head, d->head_length);
		unfragment_header(d, frame + d->ip_offset);
		memcpy(frame + d->head_length, table->data + (size_t)index * table->bytes,
		       d->total);
	}
	datagram_forget(table, index);
	table->whole = NO_DATAGRAM;
	return pieces;
}

void fragment_expire(struct fragment_table *table, uint32_t now_ms, uint64_t *drop)
{
	if (table->waiting == 0)
		return;
	for (uint32_t i = 0; i < FRAGMENT_SETS * FRAGMENT_WAYS; i++) {
		const struct set *s = &table->set[i / FRAGMENT_WAYS];

		if (s->tag[i % FRAGMENT_WAYS] == 0 ||
		    now_ms - s->since[i % FRAGMENT_WAYS] < FRAGMENT_TIMEOUT_MS)
			continue;
		drop[LB_DROP_FRAGMENT_TIMEOUT] += table->datagram[i].n;
		datagram_forget(table, i);
	}
}

unsigned int fragment_waiting(const struct fragment_table *table)
{
	return table->waiting;
}

unsigned int fragment_held(const struct fragment_table *table)
{
	return table->held;
}
