/* SPDX-License-Identifier: BSD-3-Clause */
/* infer_tcp HOST:PORT: three requests at once over one TCP connection, in an event loop */
#include <doorbell_client.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	static char bytes[3][20000], replies[3][20000];
	struct doorbell_options options = {.protocol = DOORBELL_TCP, .framing = DOORBELL_TAGGED};
	struct doorbell_request requests[3] = {0}, *r;
	struct doorbell_client *client = doorbell_client_open(argc > 1 ? argv[1] : "", &options, NULL);
	struct pollfd p;

	for (int i = 0; client != NULL && i < 3; i++) {
		requests[i] = (struct doorbell_request){
			.data = bytes[i], .length = sizeof(bytes[i]), .deadline_ms = 2000,
			.reply = replies[i], .reply_size = sizeof(replies[i]), .retries = 3};
		doorbell_client_submit(client, &requests[i]);
	}
	for (int over = 0; client != NULL && over < 3;) {
		int wait = doorbell_client_wants(client, &p); /* beside descriptors of your own */

		poll(&p, 1, wait);
		doorbell_client_process(client);
		for (; (r = doorbell_client_finished(client)) != NULL; over++)
			printf("%s: a reply of %zu bytes\n", doorbell_client_text(r->status), r->reply_length);
	}
	doorbell_client_close(client);
	return client == NULL;
}
