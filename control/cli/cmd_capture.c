/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

#define POLL_MS 100
#define CHUNK   (256u << 10)

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	interrupted = 1;
}

static bool to_stdout(const struct cli *cli)
{
	return strcmp(cli->file, "-") == 0;
}

/* The file's path for people; the daemon only repeats it, and takes no control characters. */
static json_t *file_for_people(const struct cli *cli)
{
	char *folder = to_stdout(cli) || *cli->file == '/' ? NULL : getcwd(NULL, 0), place[256];

	snprintf(place, sizeof(place), "%s%s%s", folder != NULL ? folder : "",
		 folder != NULL ? "/" : "", to_stdout(cli) ? "a pipe" : cli->file);
	free(folder);
	for (char *c = place; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return json_string(place);
}

static void capture_add_number(json_t *params, const char *name, uint64_t value)
{
	if (value > 0)
		json_object_set_new(params, name, json_integer((json_int_t)value));
}

/* Returns NULL after an error message. */
static json_t *make_params(struct cli *cli)
{
	json_t *params = json_pack("{s:s, s:s*, s:o}", "port", cli->port, "direction",
				   cli->direction, "file", file_for_people(cli));
	char error[512], *program;

	capture_add_number(params, "snaplen", cli->snaplen);
	capture_add_number(params, "count", cli->limit);
	capture_add_number(params, "seconds", cli->seconds);
	if (cli->filter == NULL)
		return params;
	program = cli_capture_filter(cli->filter, error, sizeof(error));
	if (program == NULL) {
		cli_error("--filter: %s", error);
		json_decref(params);
		return NULL;
	}
	json_object_set_new(params, "filter", json_string(cli->filter));
	json_object_set_new(params, "program", json_string(program));
	free(program);
	return params;
}

/* Open the file for this user alone; never overwrite another. Returns -1 after an error message. */
static int open_file(const struct cli *cli)
{
	int fd;

	if (to_stdout(cli))
		return STDOUT_FILENO;
	fd = open(cli->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		cli_error("--file: %s exists; remove it, or give another name", cli->file);
	else if (fd < 0)
		cli_error("--file: cannot make %s: %s", cli->file, strerror(errno));
	return fd;
}

static int capture_write_all(const struct cli *cli, int out, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t written = write(out, data, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return cli_error("cannot write %s: %s; its end is missing", cli->file,
					 strerror(errno));
		data += written;
		n -= (size_t)written;
	}
	return 0;
}

/* Ask the daemon to end the capture, once; the rest of the file still comes. */
static int ask_to_stop(struct cli *cli, json_int_t capture, bool *asked)
{
	json_t *result;

	if (!interrupted || *asked)
		return 0;
	*asked = true;
	result = cli_call(cli, "capture.stop", json_pack("{s:I}", "capture", capture));
	json_decref(result);
	return result != NULL ? 0 : 1;
}

/* Copy from the socket to the file until the capture is over. Returns an exit status. */
static int capture_copy(struct cli *cli, json_int_t capture, int in, int out)
{
	char *data = malloc(CHUNK);
	bool asked = false, began = false;
	int rc = data != NULL ? 0 : cli_error("out of memory");

	while (rc == 0) {
		struct pollfd poller = {.fd = in, .events = POLLIN};
		ssize_t n;

		rc = ask_to_stop(cli, capture, &asked);
		if (rc != 0 || poll(&poller, 1, POLL_MS) <= 0)
			continue;
		n = read(in, data, CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (!began && !cli->json)
			fprintf(stderr, "doorbell: capturing port %s; control-C ends\n", cli->port);
		began = true;
		rc = capture_write_all(cli, out, data, (size_t)n);
	}
	free(data);
	return rc;
}

static const char *state_of(const json_t *status)
{
	const char *state = json_string_value(json_object_get(status, "state"));

	return state != NULL ? state : "unknown";
}

static int print_end(struct cli *cli, json_t *status)
{
	FILE *out = to_stdout(cli) ? stderr : cli->out;

	if (cli->json) {
		json_object_del(status, "done");
		json_object_set_new(status, "port", json_string(cli->port));
		json_object_set_new(status, "file", file_for_people(cli));
		return cli_print_json(cli, status);
	}
	fprintf(out,
		"%lld packets captured, %lld not taken by the filter, %lld dropped; %lld bytes in "
		"%s (%s)\n",
		(long long)json_integer_value(json_object_get(status, "captured")),
		(long long)json_integer_value(json_object_get(status, "filtered")),
		(long long)json_integer_value(json_object_get(status, "dropped")),
		(long long)json_integer_value(json_object_get(status, "bytes")), cli->file,
		state_of(status));
	return 0;
}

/* Print the capture's end. The file has ended; the daemon knows at its next look at the capture. */
static int tell_end(struct cli *cli, json_int_t capture)
{
	json_t *status;
	bool done;
	int rc;

	for (;;) {
		status = cli_call(cli, "capture.read", json_pack("{s:I}", "capture", capture));
		if (status == NULL)
			return 1;
		done = json_is_true(json_object_get(status, "done"));
		if (done)
			break;
		json_decref(status);
		if (control_client_wait(cli->client, POLL_MS / 5))
			return cli_error("lost doorbell-lb: it closed the connection");
	}
	rc = print_end(cli, status);
	if (strcmp(state_of(status), "disconnected") == 0)
		rc = cli_error("%s is not whole: doorbell-lb could not send it, or nothing read it "
			       "for 10 s; its log has the reason",
			       cli->file);
	json_decref(status);
	return rc;
}

static int capture_take(struct cli *cli, json_int_t capture)
{
	char error[512];
	int out = open_file(cli), in, rc;

	if (out < 0)
		return 1;
	in = control_client_stream(cli->socket, "capture.data",
				   json_pack("{s:I}", "capture", capture), error, sizeof(error));
	if (in < 0)
		rc = cli_daemon_error(error);
	else
		rc = capture_copy(cli, capture, in, out);
	if (in >= 0)
		close(in);
	if (out != STDOUT_FILENO && close(out) != 0 && rc == 0)
		rc = cli_error("cannot write %s: %s", cli->file, strerror(errno));
	return rc == 0 ? tell_end(cli, capture) : rc;
}

static int check_use(const struct cli *cli)
{
	if (cli->port == NULL)
		return cli_usage_error("capture: which port? give --port NAME");
	if (cli->file == NULL)
		return cli_usage_error("capture: where to? give --file FILE");
	if (*cli->file == '\0')
		return cli_usage_error("--file: give a name");
	if (to_stdout(cli) && cli->json)
		return cli_usage_error("--json: the packets are in its place; give --file a name");
	if (to_stdout(cli) && isatty(STDOUT_FILENO))
		return cli_usage_error("--file -: not to a terminal; give it to a program with |");
	return 0;
}

int cli_capture(struct cli *cli)
{
	/* The first signal ends waiting, but not a call; the second ends the process. */
	struct sigaction action = {.sa_handler = on_interrupt,
				   .sa_flags = SA_RESTART | SA_RESETHAND};
	json_t *params, *result;
	json_int_t capture;
	int rc = check_use(cli);

	if (rc != 0)
		return rc;
	params = make_params(cli);
	result = params != NULL ? cli_call(cli, "capture.start", params) : NULL;
	if (result == NULL)
		return 1;
	capture = json_integer_value(json_object_get(result, "capture"));
	json_decref(result);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	return capture_take(cli, capture);
}
