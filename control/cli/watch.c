/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --watch: runs one command again and again, on a screen or as lines.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

/* Draw over the previous text, as many lines as fit. */
void cli_paint(const char *text)
{
	struct winsize window = {0};
	unsigned int lines = 0;

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
	printf("\033[H");
	for (; *text && (window.ws_row == 0 || lines + 1 < window.ws_row); lines++) {
		int n = (int)strcspn(text, "\n");

		printf("%.*s\033[K\n", n, text);
		text += n + (text[n] == '\n');
	}
	printf("\033[J");
}

/* Print into memory first, so that a screen never shows half of an answer. */
int cli_watch(struct cli *cli, cli_run *run)
{
	bool screen = !cli->json && isatty(STDOUT_FILENO);
	int rc;

	if (screen)
		printf("\033[2J");
	for (;;) {
		char *text = NULL;
		size_t size;

		cli->out = open_memstream(&text, &size);
		if (cli->out == NULL)
			return cli_error("out of memory");
		rc = run(cli);
		fclose(cli->out);
		if (rc == 0 && screen)
			cli_paint(text);
		else if (rc == 0)
			fputs(text, stdout);
		free(text);
		if (rc != 0)
			return rc;
		if (fflush(stdout) != 0)
			return cli_error("cannot write: %s", strerror(errno));
		control_client_wait(cli->client, (int)cli->watch_s * 1000);
	}
}
