/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "lcore/service.h"

static uint32_t service_slot(const struct service_table *t, const struct in6_addr *a, uint16_t port,
			     uint8_t protocol)
{
	uint64_t words[2];

	memcpy(words, a, sizeof(words));
	words[0] = (words[0] ^ t->seed) * 0x9e3779b97f4a7c15ull;
	words[1] = (words[1] ^ words[0] >> 32 ^ ((uint64_t)port << 8 | protocol)) *
		   0xc2b2ae3d27d4eb4full;
	return (words[1] >> 32 ^ words[0]) & (SERVICE_TABLE_SIZE - 1);
}

/* Find the entry, or the free one where it would go. The table is never full. */
static const struct service_entry *service_find(const struct service_table *t,
						const struct in6_addr *a, uint16_t port,
						uint8_t protocol)
{
	uint32_t i = service_slot(t, a, port, protocol);

	for (;; i = (i + 1) & (SERVICE_TABLE_SIZE - 1)) {
		const struct service_entry *e = &t->entry[i];

		if (!e->used || (e->port == port && e->protocol == protocol &&
				 memcmp(&e->address, a, sizeof(*a)) == 0))
			return e;
	}
}

static void service_add(struct service_table *t, const struct in6_addr *a, uint16_t port,
			uint8_t protocol, uint16_t service)
{
	struct service_entry *e = (struct service_entry *)service_find(t, a, port, protocol);

	*e = (struct service_entry){
		.address = *a, .port = port, .protocol = protocol, .used = 1, .service = service};
}

void service_table_init(struct service_table *table, const struct lb_config *config, uint64_t seed)
{
	_Static_assert(SERVICE_TABLE_SIZE >= 4 * LB_SERVICES_MAX, "half of it stays free");

	memset(table, 0, sizeof(*table));
	table->seed = seed;
	for (unsigned int i = 0; i < config->n_services; i++) {
		const struct lb_service_config *s = &config->service[i];

		if (!lb_service_used(s))
			continue;
		if (!s->leaving &&
		    !service_find(table, &s->vip.addr, htons(s->port), s->protocol)->used)
			service_add(table, &s->vip.addr, htons(s->port), s->protocol, i);
		service_add(table, &s->vip.addr, 0, 0, SERVICE_NONE);
	}
}

/* Adds the service to the ring of <first>. */
static void service_put_beside(struct service_snapshot *snapshot, uint16_t first, uint16_t service)
{
	uint32_t own = snapshot->config[service].max_request,
		 largest = snapshot->max_request[first];
	uint16_t last = first;

	while (snapshot->beside[last] != first)
		last = snapshot->beside[last];
	snapshot->beside[last] = service;
	snapshot->beside[service] = first;
	if (own > largest)
		largest = own;
	for (uint16_t i = service; i != last; i = snapshot->beside[i])
		snapshot->max_request[i] = largest;
	snapshot->max_request[last] = largest;
}

static void service_find_rings(struct service_snapshot *snapshot)
{
	for (unsigned int i = 0; i < snapshot->n; i++) {
		const struct lb_service_config *s = &snapshot->config[i];
		const struct service_entry *e;

		snapshot->beside[i] = (uint16_t)i;
		snapshot->max_request[i] = s->max_request;
		if (!lb_service_serves(s))
			continue;
		e = service_find(&snapshot->table, &s->vip.addr, htons(s->port), s->protocol);
		if (e->service != i)
			service_put_beside(snapshot, e->service, (uint16_t)i);
	}
}

void service_snapshot_init(struct service_snapshot *snapshot, const struct lb_config *config,
			   uint64_t seed)
{
	memset(snapshot->tcp_settings, 0, sizeof(snapshot->tcp_settings));
	for (unsigned int i = 0; i < config->n_services; i++)
		if (config->service[i].protocol == IPPROTO_TCP)
			snapshot->tcp_settings[i] = lb_tcp_settings(config, &config->service[i]);
	snapshot->tcp = config->tcp;
	snapshot->n = config->n_services;
	service_table_init(&snapshot->table, config, seed);
	memcpy(snapshot->config, config->service, sizeof(snapshot->config));
	service_find_rings(snapshot);
}

uint16_t service_lookup(const struct service_table *table, const struct flow_key *key)
{
	const struct service_entry *e =
		service_find(table, &key->dst, key->dst_port, key->protocol);

	if (e->used)
		return e->service;
	return service_find(table, &key->dst, 0, 0)->used ? SERVICE_NONE : SERVICE_NOT_OURS;
}

bool service_has_address(const struct service_table *table, const struct in6_addr *address)
{
	return service_find(table, address, 0, 0)->used;
}
