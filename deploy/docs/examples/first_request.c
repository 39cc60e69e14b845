/* SPDX-License-Identifier: BSD-3-Clause */
/* first_request [ADDRESS]: asks the service digits which digit a picture shows */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

int main(int argc, char **argv)
{
	static const char rows[] = "005d910000dfaf5003f20b8004c008800580098004b01c7002e5ac00006da000";
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(8500)};
	unsigned char request[8 + 64] = "my id 01", answer[2048]; /* any 8 bytes, then 64 pixels */
	int sock = socket(AF_INET, SOCK_DGRAM, 0);

	for (int i = 0; i < 64; i++) /* 0 (white) to 16 */
		request[8 + i] = rows[i] <= '9' ? rows[i] - '0' : rows[i] - 'a' + 10;
	inet_pton(AF_INET, argc > 1 ? argv[1] : "10.200.0.100", &to.sin_addr);
	/* UDP: a lost datagram gets no answer */
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 2}, sizeof(struct timeval));
	connect(sock, (struct sockaddr *)&to, sizeof(to));
	if (send(sock, request, sizeof(request), 0) < 0)
		return perror("send"), 1;
	ssize_t length = recv(sock, answer, sizeof(answer), 0);
	if (length < 9)
		return perror("no answer"), 1;
	if (length == 16 && memcmp(answer, "\xdb" "DBN", 4) == 0) /* a notice instead of a reply */
		return fprintf(stderr, "no reply: notice code %d\n", answer[5]), 1;
	printf("this picture shows a %d\n", answer[8]);
	return 0;
}
