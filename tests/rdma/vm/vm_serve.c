/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "vm_exec.h"

/* One command on one connection, in a process of its own. */
struct session {
	int connection;
	int input; /* -1: closed */
	int output, errors;
	int process; /* a descriptor that is readable when the command has ended */
	pid_t pid;
	/* bytes that the command has not read yet; before that no more are taken from the
	 * connection */
	uint32_t pending, pending_at;
	bool input_ended;
	uint8_t pending_bytes[VM_EXEC_FRAME_MAX];
};

static void command_exec(const char *command, int input, int output, int errors)
{
	setsid();
	signal(SIGPIPE, SIG_DFL);
	dup2(input, 0);
	dup2(output, 1);
	dup2(errors, 2);
	syscall(SYS_close_range, 3, ~0u, 0);
	execl("/bin/sh", "sh", "-c", command, NULL);
	_exit(127);
}

static int command_start(struct session *s, const char *command)
{
	int in[2], out[2], err[2];

	if (pipe(in) < 0 || pipe(out) < 0 || pipe(err) < 0)
		return -1;
	s->pid = fork();
	if (s->pid < 0)
		return -1;
	if (s->pid == 0)
		command_exec(command, in[0], out[1], err[1]);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	s->input = in[1];
	s->output = out[0];
	s->errors = err[0];
	fcntl(s->input, F_SETFL, O_NONBLOCK);
	fcntl(s->output, F_SETFL, O_NONBLOCK);
	fcntl(s->errors, F_SETFL, O_NONBLOCK);
	s->process = syscall(SYS_pidfd_open, s->pid, 0);
	return s->process;
}

/* Passes on the bytes there are; returns 0 at their end, -1 when the client has gone, else 1. */
static int output_forward(struct session *s, int *fd, enum frame_type type)
{
	uint8_t bytes[VM_EXEC_FRAME_MAX];
	ssize_t n;

	while (*fd >= 0) {
		n = read(*fd, bytes, sizeof(bytes));
		if (n < 0)
			return 1;
		if (n == 0) {
			close(*fd);
			*fd = -1;
			return 0;
		}
		if (frame_send(s->connection, type, bytes, n) < 0)
			return -1;
	}
	return 0;
}

static void input_close(struct session *s)
{
	if (s->input >= 0)
		close(s->input);
	s->input = -1;
	s->pending = 0;
}

static void input_forward(struct session *s)
{
	ssize_t n = write(s->input, s->pending_bytes + s->pending_at, s->pending);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0) { /* the command does not read it */
		input_close(s);
		return;
	}
	s->pending -= n;
	s->pending_at += n;
	if (s->pending == 0 && s->input_ended)
		input_close(s);
}

/* Takes a frame from the client; -1 when it has gone. */
static int client_receive(struct session *s)
{
	uint32_t length;

	switch (frame_receive(s->connection, s->pending_bytes, &length)) {
	case FRAME_INPUT:
		s->pending = s->input < 0 ? 0 : length;
		s->pending_at = 0;
		if (length == 0)
			input_close(s);
		return 0;
	case FRAME_SIGNAL:
		if (length == 1)
			kill(-s->pid, s->pending_bytes[0]);
		return 0;
	default:
		return -1;
	}
}

/* Runs until the command has ended; -1 when the client went before. */
static int session_pump(struct session *s)
{
	for (;;) {
		struct pollfd fds[] = {
			{.fd = s->process, .events = POLLIN},
			{.fd = s->output, .events = POLLIN},
			{.fd = s->errors, .events = POLLIN},
			{.fd = s->connection, .events = s->pending ? POLLRDHUP : POLLIN},
			{.fd = s->pending ? s->input : -1, .events = POLLOUT},
		};

		if (poll(fds, 5, -1) < 0)
			return -1;
		if (fds[4].revents)
			input_forward(s);
		if (fds[3].revents && (s->pending || client_receive(s) < 0))
			return -1;
		if (output_forward(s, &s->output, FRAME_OUTPUT) < 0 ||
		    output_forward(s, &s->errors, FRAME_ERRORS) < 0)
			return -1;
		/* Bytes that the command wrote before it ended are read in this iteration or now.
		 * Processes that it left running may keep the pipes open: do not wait for them. */
		if (fds[0].revents) {
			output_forward(s, &s->output, FRAME_OUTPUT);
			output_forward(s, &s->errors, FRAME_ERRORS);
			return 0;
		}
	}
}

static void session_run(int connection)
{
	static struct session s;
	char *command;
	uint32_t length;
	uint8_t code;
	int status;

	s.connection = connection;
	command = calloc(1, VM_EXEC_FRAME_MAX + 1);
	if (command == NULL || frame_receive(connection, command, &length) != FRAME_COMMAND)
		return;
	if (command_start(&s, command) < 0) {
		perror("vm-exec");
		return;
	}
	if (session_pump(&s) < 0)
		kill(-s.pid, SIGKILL);
	if (waitpid(s.pid, &status, 0) < 0)
		return;
	code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	frame_send(connection, FRAME_EXIT, &code, 1);
}

static int listen_on_control(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(VM_EXEC_PORT)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, 64) < 0)
		return -1;
	return fd;
}

int vm_exec_serve(void)
{
	int fd = listen_on_control(), connection, on = 1;

	if (fd < 0) {
		perror("vm-exec");
		return 1;
	}
	/* Process 1 inherits orphans and must not leave them as zombies. */
	signal(SIGCHLD, SIG_IGN);
	printf("vm: ready\n");
	fflush(stdout);
	for (;;) {
		connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (connection < 0)
			continue;
		setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (fork() == 0) {
			signal(SIGCHLD, SIG_DFL);
			session_run(connection);
			_exit(0);
		}
		close(connection);
	}
}
