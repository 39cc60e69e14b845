/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <time.h>

uint64_t stream_hash(uint64_t before, const void *at, size_t n)
{
	const uint8_t *bytes = at;
	uint64_t word;

	for (; n > 0; bytes += sizeof(word)) {
		size_t part = n < sizeof(word) ? n : sizeof(word);

		word = 0;
		memcpy(&word, bytes, part);
		before = (before ^ word) * 0x9e3779b97f4a7c15;
		before ^= before >> 29;
		n -= part;
	}
	return before;
}

uint64_t stream_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

socklen_t stream_address(const char *text, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *four = (struct sockaddr_in *)out;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		return sizeof(*four);
	}
	if (inet_pton(AF_INET6, text, &six->sin6_addr) != 1)
		errx(2, "%s: no address", text);
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	return sizeof(*six);
}

void stream_prepare(int fd)
{
	static const char name[] = "cubic";
	int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		err(1, "TCP_NODELAY");
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name) - 1) != 0)
		err(1, "congestion control %s", name);
}
