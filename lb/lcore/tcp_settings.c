/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/tcp_settings.h"

#include "config/memory.h"
#include "tcp/congestion.h"
#include "tcp/time_wait.h"

#define HEADERS_IPV4 40 /* bytes of IP and TCP headers without options */
#define HEADERS_IPV6 60
#define SCALE_MIN    7
#define SCALE_MAX    14 /* RFC 7323, 2.3 */

_Static_assert(sizeof(struct tcp_connection) <= LB_TCP_CONNECTION_BYTES - 128 &&
		       sizeof(struct tcp_active) <= LB_TCP_ACTIVE_BYTES &&
		       sizeof(struct tcp_chunk) <= LB_TCP_CHUNK_BYTES &&
		       TCP_CHUNK_SENT == LB_TCP_CHUNK_SEGMENTS &&
		       sizeof(struct tcp_held) <= LB_TCP_HELD_BYTES &&
		       sizeof(struct tcp_time_wait) <= LB_TCP_TIME_WAIT_BYTES - 64,
	       "what memory.c reckons with; 128 bytes for a framing, 64 for addresses");

static const struct tcp_congestion *const congestions[] = {
	[LB_CONGESTION_CUBIC] = &tcp_cubic,
	[LB_CONGESTION_RENO] = &tcp_reno,
	[LB_CONGESTION_DCTCP] = &tcp_dctcp,
};

static uint8_t scale_for(uint32_t window)
{
	uint8_t scale = SCALE_MIN;

	while (scale < SCALE_MAX && (uint32_t)UINT16_MAX << scale < window)
		scale++;
	return scale;
}

struct tcp_settings lb_tcp_settings(const struct lb_config *config,
				    const struct lb_service_config *service)
{
	const struct lb_tcp_config *tcp = &config->tcp;
	uint16_t mss = lb_config_clients_mtu(config) -
		       (service->vip.family == 4 ? HEADERS_IPV4 : HEADERS_IPV6);

	return (struct tcp_settings){
		.rto_min_ms = tcp->rto_min_ms,
		.rto_max_ms = tcp->rto_max_ms,
		.ack_delay_ms = tcp->ack_delay_ms,
		.give_up_ms = tcp->give_up_ms,
		.keepalive_ms = tcp->keepalive_ms,
		.keepalive_interval_ms = tcp->keepalive_interval_ms,
		.fin_wait_ms = tcp->fin_wait_ms,
		.mss = tcp->mss != 0 && tcp->mss < mss ? tcp->mss : mss,
		.scale = scale_for(tcp->window),
		.keepalive_probes = tcp->keepalive_probes,
		.syn_retries = tcp->syn_retries,
		.initial_segments = tcp->initial_segments,
		.sack = true,
		.timestamps = true,
		.ecn = service->ecn,
		.congestion = congestions[service->congestion],
	};
}
