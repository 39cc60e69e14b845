/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filters of flows: names and addresses become numbers once, and flows are compared with those.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "runtime/endpoint.h"
#include "server/flows.h"

static bool client_read(const char *text, struct flow_filter *filter)
{
	char address[LB_ADDRESS_TEXT + 4];
	char *slash, *end;
	unsigned long bits, most;

	snprintf(address, sizeof(address), "%s", text);
	slash = strchr(address, '/');
	if (slash != NULL)
		*slash++ = '\0';
	if (lb_address_parse(address, &filter->client) != 0)
		return false;
	most = filter->client.family == 4 ? 32 : 128;
	bits = most;
	if (slash != NULL) {
		if (*slash < '0' || *slash > '9')
			return false;
		bits = strtoul(slash, &end, 10);
		if (*end != '\0' || bits > most)
			return false;
	}
	filter->prefix = (unsigned int)(128 - most + bits);
	return true;
}

/* "10.200.0.2:4000" or "[2001:db8::1]:4000" */
static bool end_read(const char *text, struct lb_address *address, uint16_t *port)
{
	struct endpoint end;

	if (endpoint_parse(text, &end) != 0 || lb_address_parse(end.host, address) != 0)
		return false;
	*port = end.port;
	return address->family == (end.bracketed ? 6 : 4);
}

bool flow_ends_read(struct control_call *call, char *text, struct trace_flow *flow)
{
	char *comma = strchr(text, ',');

	memset(flow, 0, sizeof(*flow));
	if (comma != NULL)
		*comma = '\0';
	if (end_read(text, &flow->client, &flow->client_port) &&
	    (comma == NULL || end_read(comma + 1, &flow->vip, &flow->vip_port)))
		return true;
	control_fail(call, CONTROL_ERROR_PARAMS,
		     "params.flow: give the client's ADDRESS:PORT, and the service's behind a "
		     "comma if you like, such as 10.200.0.2:4000,10.200.0.100:8500 or "
		     "[2001:db8::2]:4000");
	return false;
}

static bool service_read(struct control_call *call, const char *name, struct flow_filter *filter)
{
	int service = control_service_find(lb_config_get(call->c->lb), name);

	if (service < 0) {
		control_fail(call, CONTROL_ERROR_NOT_FOUND,
			     "no service '%s'; services.list has them all", name);
		return false;
	}
	filter->by_service = true;
	filter->service = (uint16_t)service;
	return true;
}

static bool worker_read(struct control_call *call, const char *name, struct flow_filter *filter)
{
	const struct worker *worker = workers_find(lb_pool(call->c->lb), name);

	if (worker == NULL) {
		control_fail(call, CONTROL_ERROR_NOT_FOUND,
			     "no worker '%s'; workers.list has them all", name);
		return false;
	}
	filter->by_worker = true;
	filter->worker = worker->number;
	filter->worker_generation = worker->generation;
	return true;
}

static bool zone_read(struct control_call *call, const char *name, struct flow_filter *filter)
{
	if (!zone_find(lb_config_get(call->c->lb), name, &filter->zone)) {
		control_fail(call, CONTROL_ERROR_NOT_FOUND,
			     "no zone '%s'; give one of the configuration's zones, or a port, with "
			     "a dot and a VLAN id behind it for a VLAN",
			     name);
		return false;
	}
	filter->by_zone = true;
	return true;
}

static bool state_read(struct control_call *call, const char *name, struct flow_filter *filter)
{
	char known[256];
	size_t at = 0;

	for (unsigned int state = FLOW_FREE + 1; state < FLOW_STATES; state++) {
		if (strcmp(conntrack_state_name(state), name) == 0) {
			filter->state = state;
			return true;
		}
		if (at < sizeof(known))
			at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s",
					       at ? ", " : "", conntrack_state_name(state));
	}
	control_fail(call, CONTROL_ERROR_PARAMS, "params.state: no state '%s'; states are: %s",
		     name, known);
	return false;
}

bool flow_filter_read(struct control_call *call, const struct flow_query *query,
		      struct flow_filter *filter)
{
	*filter = (struct flow_filter){.min_bytes = query->min_bytes,
				       .min_idle_ms = query->min_idle_s * 1000,
				       .now_ms = lb_now_ms(call->c->lb)};
	if (query->service[0] && !service_read(call, query->service, filter))
		return false;
	if (query->worker[0] && !worker_read(call, query->worker, filter))
		return false;
	if (query->zone[0] && !zone_read(call, query->zone, filter))
		return false;
	if (query->state[0] && !state_read(call, query->state, filter))
		return false;
	if (query->client[0] && !client_read(query->client, filter)) {
		control_fail(call, CONTROL_ERROR_PARAMS,
			     "params.client: cannot use '%s'; give an address or address/prefix",
			     query->client);
		return false;
	}
	filter->any = !filter->by_service && !filter->by_worker && !filter->by_zone &&
		      !filter->state &&
		      !filter->client.family && !filter->min_bytes && !filter->min_idle_ms;
	return true;
}

static bool prefix_matches(const uint8_t *a, const uint8_t *b, unsigned int bits)
{
	unsigned int whole = bits / 8;
	uint8_t mask = (uint8_t)(0xff00 >> bits % 8);

	if (memcmp(a, b, whole) != 0)
		return false;
	return bits % 8 == 0 || ((a[whole] ^ b[whole]) & mask) == 0;
}

/* The owner's clock may have moved on since the control thread read it. */
static bool is_idle(const struct flow_filter *filter, const struct flow_info *flow)
{
	int32_t idle_ms = (int32_t)(filter->now_ms - flow->last_seen);

	return idle_ms >= 0 && (uint32_t)idle_ms >= filter->min_idle_ms;
}

bool flow_filter_matches(const struct flow_filter *filter, const struct flow_info *flow)
{
	if (filter->any)
		return true;
	if (filter->by_service && flow->service != filter->service)
		return false;
	if (filter->by_worker && (flow->worker != filter->worker ||
				  flow->worker_generation != filter->worker_generation))
		return false;
	if (filter->by_zone && flow->key.zone != filter->zone)
		return false;
	if (filter->state && flow->state != filter->state)
		return false;
	if (flow->bytes_in + flow->bytes_out < filter->min_bytes)
		return false;
	if (filter->min_idle_ms && !is_idle(filter, flow))
		return false;
	if (filter->client.family == 0)
		return true;
	return flow->key.family == filter->client.family &&
	       prefix_matches(flow->key.src.s6_addr, filter->client.addr.s6_addr, filter->prefix);
}
