/* SPDX-License-Identifier: BSD-3-Clause */
/* A server of exchange.h whose TCP is lb/tcp: IP packets in, IP packets out. */
#ifndef TESTS_TCP_TUN_SERVER_H
#define TESTS_TCP_TUN_SERVER_H

#include "tcp/connection.h"

struct tun_server;

/* <send> carries a packet to the clients. <port>: where it listens. */
struct tun_server *
tun_server_create(const struct tcp_settings *settings, uint16_t port, uint32_t grant, bool cookies,
		  void (*send)(void *context, const uint8_t *ip, uint32_t length), void *context);
void tun_server_receive(struct tun_server *s, uint64_t now_us, const uint8_t *ip, uint32_t length);

/* Runs timers. Returns when it wants to be called again, us. */
uint64_t tun_server_poll(struct tun_server *s, uint64_t now_us);

const struct tcp_counters *tun_server_counters(const struct tun_server *s);
uint64_t tun_server_wrong(const struct tun_server *s);
uint64_t tun_server_bad_sums(const struct tun_server *s);
uint32_t tun_server_open(const struct tun_server *s);

#endif
