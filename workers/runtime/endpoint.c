/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool endpoint_port_parse(const char *text, struct endpoint *e)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long port;

	if (digits == 0 || digits >= sizeof(e->port_text) || text[digits] != '\0')
		return false;
	port = strtoul(text, NULL, 10);
	if (port < 1 || port > UINT16_MAX)
		return false;
	e->port = (uint16_t)port;
	snprintf(e->port_text, sizeof(e->port_text), "%lu", port);
	return true;
}

static bool endpoint_host_parse(const char *text, size_t length, struct endpoint *e)
{
	e->bracketed = length > 2 && text[0] == '[' && text[length - 1] == ']';
	if (e->bracketed) {
		text++;
		length -= 2;
	}
	if (length == 0 || length >= sizeof(e->host) ||
	    (!e->bracketed && memchr(text, ':', length) != NULL))
		return false;
	memcpy(e->host, text, length);
	e->host[length] = '\0';
	return true;
}

int endpoint_parse(const char *text, struct endpoint *endpoint)
{
	const char *colon = strrchr(text, ':');
	struct endpoint e = {.port = 0};

	memset(endpoint, 0, sizeof(*endpoint));
	if (colon == NULL || !endpoint_port_parse(colon + 1, &e) ||
	    !endpoint_host_parse(text, (size_t)(colon - text), &e))
		return -EINVAL;
	*endpoint = e;
	return 0;
}

int endpoint_address_parse(const char *text, struct endpoint_address *address)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&address->socket;
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&address->socket;
	struct endpoint endpoint;

	memset(address, 0, sizeof(*address));
	if (endpoint_parse(text, &endpoint) != 0)
		return -EINVAL;
	if (endpoint.bracketed) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(endpoint.port);
		address->length = sizeof(*v6);
		return inet_pton(AF_INET6, endpoint.host, &v6->sin6_addr) == 1 ? 0 : -EINVAL;
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons(endpoint.port);
	address->length = sizeof(*v4);
	return inet_pton(AF_INET, endpoint.host, &v4->sin_addr) == 1 ? 0 : -EINVAL;
}

uint16_t endpoint_port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} address = {.any.sa_family = AF_UNSPEC};
	socklen_t length = sizeof(address);

	if (getsockname(fd, &address.any, &length) != 0)
		return 0;
	switch (address.any.sa_family) {
	case AF_INET:
		return ntohs(address.in.sin_port);
	case AF_INET6:
		return ntohs(address.in6.sin6_port);
	default:
		return 0;
	}
}
