/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that are never admitted because they are too large or malformed: their clients get a
 * notice, but no source gets more of them than notices_per_source allows, and no notice is longer
 * than the datagram that it answers. So the notices cannot flood the owner of a forged address.
 */
#include "walk/refuse.h"

#include "framing/framing.h"
#include "lcore/lcore.h"
#include "packet/parse.h"
#include "packet/request.h"
#include "source.h"
#include "walk/egress.h"

bool refuse_may_notify(struct lcore *lc, const struct in6_addr *source, uint16_t zone)
{
	if (source_limit_take(lc->notices, source, zone, lc->now_ms))
		return true;
	lc->stats.drop[LB_DROP_NOTICE_LIMIT]++;
	return false;
}

/* The tag of the notice: the request's id, or its first 8 bytes. */
static uint64_t refuse_tag(const struct lb_service_config *config, const uint8_t *payload,
			   uint32_t length)
{
	struct lb_request request;

	if (config->framing == LB_FRAMING_TAGGED &&
	    lb_request_parse(payload, length, &request) == 0)
		return request.id;
	return framing_first_bytes(payload, length);
}

void refuse_stranger(struct lcore *lc, const struct flow_key *key, const struct client_path *path,
		     const uint8_t *payload, uint32_t length)
{
	uint16_t service = service_lookup(&lc->services->table, key);
	const struct lb_service_config *config;

	if (service >= SERVICE_NOT_OURS || path->hops <= 1 || key->src_port == 0 ||
	    ntohs(key->src_port) < lc->lb->config.min_source_port ||
	    lb_owns_address(lc->lb, &key->src))
		return;
	config = lcore_service_config(lc, service);
	lc->service[service].stats.drops++;
	if (length < LB_NOTICE_LENGTH || framing_is_notice(payload, LB_NOTICE_LENGTH) ||
	    !refuse_may_notify(lc, &key->src, key->zone))
		return;
	egress_notice_stranger(lc, service, key, path, LB_NOTICE_TOO_LARGE,
			       refuse_tag(config, payload, length));
}

void refuse_cut(struct lcore *lc, const struct rte_mbuf *m, struct parsed *p, uint16_t port)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct client_path path = {.port = port, .vlan = p->vlan};
	struct flow_key key;

	if (!parse_cut(frame, m->data_len, p, &key))
		return;
	memcpy(path.mac, frame + 6, sizeof(path.mac));
	path.hops = p->hops;
	key.zone = lcore_zone(lc->lb, port, p->vlan);
	refuse_stranger(lc, &key, &path, frame + p->payload_offset, p->payload_length);
}
