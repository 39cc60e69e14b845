/* SPDX-License-Identifier: BSD-3-Clause */
/* "HOST:PORT" as options and the control protocol take it: "192.0.2.1:9000", "[2001:db8::1]:9000",
 * and, where names are resolved, "front.example:4790". */
#ifndef RUNTIME_ENDPOINT_H
#define RUNTIME_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ENDPOINT_HOST_MAX 256

struct endpoint {
	char host[ENDPOINT_HOST_MAX]; /* without brackets; "": not given */
	char port_text[6];
	uint16_t port; /* 1 to 65535 */
	bool bracketed;
};

/* Parse <text>. 0, or -EINVAL with <endpoint> cleared: no host or port, or colons in a host without
 * brackets. */
int endpoint_parse(const char *text, struct endpoint *endpoint);

/* An endpoint as sockets take it. */
struct endpoint_address {
	struct sockaddr_storage socket;
	socklen_t length; /* 0: not given */
};

#define ENDPOINT_ADDRESS_FORM "ADDR:PORT; write 192.0.2.1:9000 or [2001:db8::1]:9000"

/*
 * Parse <text>, whose host must be an IPv4 address or an IPv6 address in brackets. 0, or -EINVAL
 * for anything else, names included.
 */
int endpoint_address_parse(const char *text, struct endpoint_address *address);

/* The port in host order that the socket <fd> is bound to; 0 when <fd> is no IP socket or is not
 * bound. */
uint16_t endpoint_port_of(int fd);

#endif
