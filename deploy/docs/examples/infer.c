/* SPDX-License-Identifier: BSD-3-Clause */
/* infer [HOST:PORT]: asks the service digits-tagged which digit a picture shows */
#include <doorbell_client.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	static const char rows[] = "005d910000dfaf5003f20b8004c008800580098004b01c7002e5ac00006da000";
	unsigned char picture[8 + 64] = "my bytes", reply[256]; /* any 8 bytes, then 64 pixels */
	char error[DOORBELL_ERROR_SIZE];
	const char *to = argc > 1 ? argv[1] : "10.200.0.100:8501";
	struct doorbell_client *client = doorbell_client_open(to, NULL, error);
	/* At most half a second; asked again when it was lost, as asking twice does no harm. */
	struct doorbell_request r = {.data = picture, .length = sizeof(picture), .deadline_ms = 500,
				     .reply = reply, .reply_size = sizeof(reply),
				     .retries = 3, .idempotent = true};

	for (int i = 0; i < 64; i++) /* 0 (white) to 16 */
		picture[8 + i] = rows[i] <= '9' ? rows[i] - '0' : rows[i] - 'a' + 10;
	if (client == NULL)
		return fprintf(stderr, "%s\n", error), 1;
	if (doorbell_client_call(client, &r) != DOORBELL_OK)
		return fprintf(stderr, "no reply: %s\n", doorbell_client_text(r.status)), 1;
	printf("this picture shows a %d\n", reply[8]);
	doorbell_client_close(client);
	return 0;
}
