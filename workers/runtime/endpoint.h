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

/*
 * Convert an endpoint whose host is an IPv4 address or an IPv6 address in brackets. 0, or -EINVAL
 * for anything else, names included.
 */
int endpoint_socket(const struct endpoint *endpoint, struct sockaddr_storage *address,
		    socklen_t *length);

#endif
