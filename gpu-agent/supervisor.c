/* SPDX-License-Identifier: BSD-3-Clause */
#include "supervisor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include <rte_log.h>

#include "agent.h"
#include "runtime/clock.h"
#include "runtime/log_sink.h"
#include "runtime/notify.h"
#include "runtime/port.h"

/* ms before a worker that ended by a fault is restarted: the first wait, and the longest one. The
 * wait doubles with every fault. */
#define AGAIN_MS     100
#define AGAIN_MAX_MS 10000
/* A worker that was ready for this many ms starts over with AGAIN_MS. */
#define WELL_MS 10000
/* ms that a worker has to find a hang of its own loop, and log it, before it is killed. */
#define GRACE_MS 1000
/* ms; drains end by themselves (session.c: LEAVE_MS), and a worker that takes longer is killed. */
#define LEAVE_MS 35000
/* ms; replaces LEAVE_MS after a second request to stop. */
#define AT_ONCE_MS 2000
/* ms to count the GPUs, which may have to load the driver. */
#define COUNT_MS 60000

#define EXIT_USAGE      2 /* bad options: a restart does not help */
#define EXTRA_ARGUMENTS 16
/* Environment variables by which a worker knows its supervisor. */
#define CLAIMED "DOORBELL_CLAIMED_DEVICE"
#define WORKER  "DOORBELL_WORKER"

struct child {
	struct supervisor *supervisor;
	char name[AGENT_NAME_MAX], address[INET6_ADDRSTRLEN + 4];
	int number; /* number of its GPU, or its own */
	char *device;
	pid_t pid; /* 0: not running */
	bool ready, left;
	uint64_t ready_since; /* ms */
	uint64_t silent_at;   /* ms; when it will have been silent for too long */
	unsigned int again_ms;
	struct event *again, *silence;
};

struct supervisor {
	const struct agent_options *options;
	const struct notify *notify;
	char **argv;
	int argc, stop_fd, notify_fd;
	char notify_name[128];
	struct event_base *base;
	struct event *ended, *said, *stop, *kill, *pulse;
	unsigned int n, stops;
	bool ever_ready; /* since the start */
	int status;
	struct child child[AGENT_WORKERS_MAX];
};

#define REPORT(level, format, ...) log_sink_print(RTE_LOG_##level, "agent: " format, ##__VA_ARGS__)

static void supervisor_set_timer(struct event *timer, uint64_t ms)
{
	struct timeval t = {.tv_sec = (time_t)(ms / 1000),
			    .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	evtimer_add(timer, &t);
}

bool agent_supervisor_wanted(const struct agent_options *o)
{
	return o->processes &&
	       (o->workers > 1 || strcmp(o->gpus, "all") == 0 || strchr(o->gpus, ',') != NULL);
}

const char *agent_supervised_name(void)
{
	return getenv(WORKER);
}

bool agent_supervisor_claimed(const char *device)
{
	const char *claimed = getenv(CLAIMED);

	return claimed != NULL && strcmp(claimed, device) == 0;
}

/* --- which workers -----------------------------------------------------------------------------
 */

/*
 * Count the GPUs. A child process asks the driver, because a process that has used it cannot fork
 * safely any more, and the driver may hang. -1 after an error was logged.
 */
static int count_gpus(void)
{
	struct pollfd readable = {.events = POLLIN};
	struct {
		int n;
		char why[252];
	} answer = {.n = 0, .why = "the driver does not answer"};
	int ends[2];
	pid_t pid;

	if (pipe(ends) < 0 || (pid = fork()) < 0) {
		REPORT(ERR, "--gpu all: %s", strerror(errno));
		return -1;
	}
	if (pid == 0) {
		answer.n = agent_gpus(answer.why, sizeof(answer.why));
		_exit(write(ends[1], &answer, sizeof(answer)) != sizeof(answer));
	}
	close(ends[1]);
	readable.fd = ends[0];
	if (poll(&readable, 1, COUNT_MS) == 1 &&
	    read(ends[0], &answer, sizeof(answer)) != sizeof(answer))
		snprintf(answer.why, sizeof(answer.why),
			 "the process that asked the driver has ended without an answer");
	close(ends[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (answer.n > 0)
		return answer.n;
	REPORT(ERR, "--gpu all: %s", answer.why);
	return -1;
}

/* Fill <numbers> with those of the workers. Returns how many there are, or -1 after an error was
 * logged. */
static int list_workers(const struct agent_options *o, int *numbers)
{
	int n = (int)o->workers;

	if (o->workers == 1 && strcmp(o->gpus, "all") != 0)
		return agent_gpu_list(o->gpus, INT_MAX, numbers);
	if (o->workers == 1)
		n = count_gpus();
	if (n > AGENT_WORKERS_MAX)
		n = AGENT_WORKERS_MAX;
	for (int i = 0; i < n; i++)
		numbers[i] = i;
	return n;
}

/* Write the address <n> after --address, with its prefix length. False when the subnet ends before
 * it. */
static bool address_behind(const struct agent_options *o, unsigned int n, char *text, size_t size)
{
	unsigned int bits = o->address.family == 4 ? 96u + o->prefix : o->prefix, carry = n;
	struct rnic_address address = o->address;
	bool last = true;
	size_t length;

	for (int i = 15; i >= 0; i--) {
		carry += address.addr.s6_addr[i];
		address.addr.s6_addr[i] = (uint8_t)carry;
		carry >>= 8;
	}
	for (unsigned int i = 0; i < bits; i++)
		if ((address.addr.s6_addr[i / 8] ^ o->address.addr.s6_addr[i / 8]) & 0x80 >> i % 8)
			return false;
	/* The last IPv4 address of a subnet is its broadcast address. */
	for (unsigned int i = bits; i < 128; i++)
		last &= (address.addr.s6_addr[i / 8] & 0x80 >> i % 8) != 0;
	if (n > 0 && last && o->address.family == 4)
		return false;
	agent_address_format(&address, text, size);
	length = strlen(text);
	snprintf(text + length, size - length, "/%u", o->prefix);
	return true;
}

/* Fill the worker's number into --address. False when that is no address for it. */
static bool address_of(const struct agent_options *o, int number, char *text, size_t size)
{
	struct agent_options parsed;
	char *filled = agent_number_fill(o->address_marked, number), error[128];
	bool good = filled != NULL &&
		    agent_prefix_take(&parsed, filled, error, sizeof(error)) == 0 &&
		    (size_t)snprintf(text, size, "%s", filled) < size;

	free(filled);
	return good;
}

/* True when several processes can use --device. Packet sockets share an interface, and RDMA devices
 * are shared anyway; any other device belongs to one process. */
static bool can_be_shared(const struct agent_options *o)
{
	return o->verbs || strncmp(o->device, "net_af_packet", 13) == 0 ||
	       strstr(o->device, AGENT_NUMBER_MARK) != NULL;
}

static bool make_children(struct supervisor *s)
{
	const struct agent_options *o = s->options;
	bool own_address = !o->verbs || strstr(o->device, AGENT_NUMBER_MARK) != NULL;
	bool marked = o->address_marked != NULL;
	int numbers[AGENT_WORKERS_MAX], n;

	if (!can_be_shared(o)) {
		REPORT(ERR,
		       "--device %s can belong to one process only: give each worker its own "
		       "with " AGENT_NUMBER_MARK " in place of its number, or use --one-process",
		       o->device);
		return false;
	}
	n = list_workers(o, numbers);
	for (int i = 0; i < n; i++) {
		struct child *c = &s->child[i];

		c->supervisor = s;
		c->number = numbers[i];
		c->again_ms = AGAIN_MS;
		agent_worker_name(c->name, o->name, o->workers > 1 ? "cpu" : "gpu", numbers[i]);
		c->device = agent_number_fill(o->device, numbers[i]);
		if (c->device == NULL)
			return false;
		if (marked && !address_of(o, numbers[i], c->address, sizeof(c->address))) {
			REPORT(ERR, "--address %s: with %d in it, it is no address of a worker",
			       o->address_marked, numbers[i]);
			return false;
		}
		if (!marked && !address_behind(o, own_address ? (unsigned int)i : 0, c->address,
					       sizeof(c->address))) {
			REPORT(ERR,
			       "--address: %d workers need as many consecutive addresses, and the "
			       "subnet "
			       "ends before that; begin with a lower one, or give --one-process",
			       n);
			return false;
		}
		s->n++;
	}
	return n > 0;
}

static void child_watch(struct child *c)
{
	const struct agent_options *o = c->supervisor->options;
	uint64_t ms = c->ready ? o->hang_ms + o->max_run_ms + GRACE_MS : o->start_ms;

	c->silent_at = clock_now_ms() + ms;
	supervisor_set_timer(c->silence, ms);
}

/* --- starting ----------------------------------------------------------------------------------
 */

/* Build the child's argument list: the original one, then what differs for this worker. When an
 * option occurs twice, the last one counts. */
static void child_arguments(const struct child *c, char **out, char *number)
{
	const struct supervisor *s = c->supervisor;
	int n = s->argc;

	memcpy(out, s->argv, (size_t)n * sizeof(*out));
	sprintf(number, "%d", c->number);
	out[n++] = (char *)"--gpu";
	out[n++] = s->options->workers > 1 ? (char *)"none" : number;
	out[n++] = (char *)"--workers";
	out[n++] = (char *)"1";
	out[n++] = (char *)"--name";
	out[n++] = (char *)c->name;
	out[n++] = (char *)"--address";
	out[n++] = (char *)c->address;
	out[n++] = (char *)"--device";
	out[n++] = c->device;
	out[n] = NULL;
}

/* Become the worker, in the new process. Does not return. */
static void child_exec(const struct child *c, pid_t parent)
{
	const struct supervisor *s = c->supervisor;
	char **argv = calloc((size_t)s->argc + EXTRA_ARGUMENTS, sizeof(*argv)), number[16],
	     watchdog[32];

	if (argv == NULL)
		_exit(EXIT_FAILURE);
	/* Without its supervisor a worker would have no restart and no end. The parent may be gone
	 * already. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	/* Ctrl-C in a terminal must reach the supervisor only, which passes it on: a second one
	 * would end the worker at once. */
	setpgid(0, 0);
	child_arguments(c, argv, number);
	snprintf(watchdog, sizeof(watchdog), "%llu",
		 (s->options->hang_ms + s->options->max_run_ms) * 1000ull);
	setenv("NOTIFY_SOCKET", s->notify_name, 1);
	setenv("WATCHDOG_USEC", watchdog, 1);
	setenv(WORKER, c->name, 1);
	execv("/proc/self/exe", argv);
	dprintf(STDERR_FILENO, "doorbell-agent: cannot start itself: %s\n", strerror(errno));
	_exit(EXIT_FAILURE);
}

static void child_start(struct child *c)
{
	pid_t self = getpid();

	c->ready = false;
	c->pid = fork();
	if (c->pid == 0)
		child_exec(c, self);
	if (c->pid > 0) {
		REPORT(INFO, "worker=%s pid=%d address=%s started", c->name, c->pid, c->address);
		child_watch(c);
		return;
	}
	c->pid = 0;
	REPORT(ERR, "worker=%s cannot start its process: %s", c->name, strerror(errno));
	supervisor_set_timer(c->again, AGAIN_MAX_MS);
}

static void child_on_again(evutil_socket_t fd, short what, void *context)
{
	child_start(context);
}

/* --- watching ----------------------------------------------------------------------------------
 */

static void send_status(const struct supervisor *s)
{
	unsigned int ready = 0;

	for (unsigned int i = 0; i < s->n; i++)
		ready += s->child[i].ready;
	/* The service is ready as soon as one worker is; the status says how many are. */
	notify_send(s->notify, "%sSTATUS=model %s, %u of %u workers up",
		    s->ever_ready ? "READY=1\n" : "", s->options->model, ready, s->n);
}

static void child_on_silence(evutil_socket_t fd, short what, void *context)
{
	struct child *c = context;

	/* This process may have been halted itself, and its workers with it. */
	if (clock_now_ms() > c->silent_at + GRACE_MS) {
		child_watch(c);
		return;
	}
	if (c->ready)
		REPORT(ERR, "worker=%s pid=%d gives no sign of life: killed", c->name, c->pid);
	else
		REPORT(ERR,
		       "worker=%s pid=%d is not up after %u ms: killed; give --start-ms if its "
		       "model "
		       "takes longer to load",
		       c->name, c->pid, c->supervisor->options->start_ms);
	kill(c->pid, SIGKILL);
}

static void child_took_sign(struct child *c, const char *text)
{
	if (strncmp(text, "READY=1", 7) == 0 && !c->ready) {
		c->ready = true;
		c->ready_since = clock_now_ms();
		c->supervisor->ever_ready = true;
		send_status(c->supervisor);
	}
	if (c->ready)
		child_watch(c);
}

/* Read a worker's datagram; the kernel adds its process id. */
static void on_notification(evutil_socket_t fd, short what, void *context)
{
	struct supervisor *s = context;
	char text[1024], control[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec part = {.iov_base = text, .iov_len = sizeof(text) - 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
	struct ucred who;

	if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
		return;
	text[n] = '\0';
	memcpy(&who, CMSG_DATA(c), sizeof(who));
	for (unsigned int i = 0; i < s->n; i++)
		if (who.pid > 0 && s->child[i].pid == who.pid)
			child_took_sign(&s->child[i], text);
}

static void describe_exit(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "signal=%d name=\"%s\"", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, size, "exit_status=%d", WEXITSTATUS(status));
}

/* True when every worker has failed at least once, and none has ever been ready. Then restarts do
 * not help. */
static bool no_worker_ever_ready(const struct supervisor *s)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->child[i].again_ms == AGAIN_MS && !s->child[i].left)
			return false;
	return !s->ever_ready;
}

static void supervisor_stop_children(struct supervisor *s)
{
	s->stops++;
	for (unsigned int i = 0; i < s->n; i++) {
		struct child *c = &s->child[i];

		evtimer_del(c->again);
		evtimer_del(c->silence);
		if (c->pid > 0)
			kill(c->pid, SIGTERM);
	}
	if (s->stops == 1)
		notify_send(s->notify, "STOPPING=1");
	supervisor_set_timer(s->kill, s->stops == 1 ? LEAVE_MS : AT_ONCE_MS);
}

static void child_ended(struct child *c, int status)
{
	struct supervisor *s = c->supervisor;
	bool good = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
	bool was_well = c->ready && clock_now_ms() - c->ready_since >= WELL_MS;
	unsigned int wait_ms;
	char how[96];
	pid_t pid = c->pid;

	c->pid = 0;
	c->ready = false;
	evtimer_del(c->silence);
	describe_exit(status, how, sizeof(how));
	if (good || s->stops > 0) {
		c->left = true;
		if (!good)
			s->status = EXIT_FAILURE;
		REPORT(NOTICE, "worker=%s pid=%d %s: has left", c->name, pid, how);
		return;
	}
	if (was_well)
		c->again_ms = AGAIN_MS;
	wait_ms = c->again_ms;
	c->again_ms = 2 * c->again_ms < AGAIN_MAX_MS ? 2 * c->again_ms : AGAIN_MAX_MS;
	send_status(s);
	if ((WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USAGE) || no_worker_ever_ready(s)) {
		s->status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
		REPORT(ERR, "worker=%s pid=%d %s: no worker has come up, so the agent ends",
		       c->name, pid, how);
		c->left = true;
		supervisor_stop_children(s);
		return;
	}
	REPORT(ERR, "worker=%s pid=%d %s again_ms=%u: ended by a fault, starting it again", c->name,
	       pid, how, wait_ms);
	supervisor_set_timer(c->again, wait_ms);
}

static void on_child_ended(evutil_socket_t number, short what, void *context)
{
	struct supervisor *s = context;
	bool all_left = true;

	for (unsigned int i = 0; i < s->n; i++) {
		struct child *c = &s->child[i];
		int status;

		if (c->pid > 0 && waitpid(c->pid, &status, WNOHANG) == c->pid)
			child_ended(c, status);
	}
	for (unsigned int i = 0; i < s->n; i++)
		all_left &= s->child[i].left || (s->stops > 0 && s->child[i].pid == 0);
	if (all_left)
		event_base_loopbreak(s->base);
}

static void supervisor_on_stop(evutil_socket_t fd, short what, void *context)
{
	uint64_t times;

	if (read(fd, &times, sizeof(times)) != sizeof(times))
		return;
	for (; times > 0; times--)
		supervisor_stop_children(context);
	/* All workers may be waiting for their restart: then no process ends any more. */
	on_child_ended(SIGCHLD, EV_SIGNAL, context);
}

static void on_kill(evutil_socket_t fd, short what, void *context)
{
	struct supervisor *s = context;

	for (unsigned int i = 0; i < s->n; i++)
		if (s->child[i].pid > 0) {
			REPORT(ERR, "worker=%s pid=%d does not leave: killed", s->child[i].name,
			       s->child[i].pid);
			kill(s->child[i].pid, SIGKILL);
		}
}

static void supervisor_on_pulse(evutil_socket_t fd, short what, void *context)
{
	const struct supervisor *s = context;

	notify_send(s->notify, "WATCHDOG=1");
	supervisor_set_timer(s->pulse, s->notify->watchdog_us / 4000);
}

/* --- run ---------------------------------------------------------------------------------------
 */

/* Open an abstract socket, which also reports the senders' process ids. */
static int open_notify_socket(struct supervisor *s)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t size = sizeof(address.sun_family);
	const int on = 1;

	s->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->notify_fd < 0 ||
	    setsockopt(s->notify_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    bind(s->notify_fd, (struct sockaddr *)&address, size) < 0)
		return -errno;
	size = sizeof(address);
	if (getsockname(s->notify_fd, (struct sockaddr *)&address, &size) < 0)
		return -errno;
	snprintf(s->notify_name, sizeof(s->notify_name), "@%.*s",
		 (int)(size - offsetof(struct sockaddr_un, sun_path) - 1), address.sun_path + 1);
	return 0;
}

static bool make_events(struct supervisor *s)
{
	bool made;

	s->base = event_base_new();
	if (s->base == NULL)
		return false;
	s->ended = evsignal_new(s->base, SIGCHLD, on_child_ended, s);
	s->said = event_new(s->base, s->notify_fd, EV_READ | EV_PERSIST, on_notification, s);
	s->stop = event_new(s->base, s->stop_fd, EV_READ | EV_PERSIST, supervisor_on_stop, s);
	s->kill = evtimer_new(s->base, on_kill, s);
	s->pulse = evtimer_new(s->base, supervisor_on_pulse, s);
	made = s->ended != NULL && s->said != NULL && s->stop != NULL && s->kill != NULL &&
	       s->pulse != NULL;
	for (unsigned int i = 0; i < s->n; i++) {
		s->child[i].again = evtimer_new(s->base, child_on_again, &s->child[i]);
		s->child[i].silence = evtimer_new(s->base, child_on_silence, &s->child[i]);
		made &= s->child[i].again != NULL && s->child[i].silence != NULL;
	}
	return made && event_add(s->ended, NULL) == 0 && event_add(s->said, NULL) == 0 &&
	       event_add(s->stop, NULL) == 0;
}

static void free_event(struct event *event)
{
	if (event != NULL)
		event_free(event);
}

static void supervisor_destroy(struct supervisor *s)
{
	for (unsigned int i = 0; i < s->n; i++) {
		free_event(s->child[i].again);
		free_event(s->child[i].silence);
		free(s->child[i].device);
	}
	free_event(s->ended);
	free_event(s->said);
	free_event(s->stop);
	free_event(s->kill);
	free_event(s->pulse);
	if (s->base != NULL)
		event_base_free(s->base);
	if (s->notify_fd >= 0)
		close(s->notify_fd);
}

/* Claim the device that the workers share once, in this process, which lives on while they restart.
 */
static bool claim_device(const struct agent_options *o)
{
	struct port port;
	char error[512];

	unsetenv(CLAIMED);
	if (o->verbs || strstr(o->device, AGENT_NUMBER_MARK) != NULL)
		return true;
	if (port_claim(&port, o->device, error, sizeof(error)) < 0) {
		log_sink_print(RTE_LOG_ERR, "doorbell-agent: %s", error);
		return false;
	}
	setenv(CLAIMED, o->device, 1);
	return true;
}

static struct supervisor the_supervisor; /* large for a stack; one per process */

int agent_supervisor_run(int argc, char **argv, const struct agent_options *o,
			 const struct notify *notify, int stop_fd)
{
	struct supervisor *s = &the_supervisor;
	int ret;

	*s = (struct supervisor){.options = o,
				 .notify = notify,
				 .argc = argc,
				 .argv = argv,
				 .stop_fd = stop_fd,
				 .notify_fd = -1,
				 .status = EXIT_FAILURE};
	ret = open_notify_socket(s);
	if (ret < 0)
		REPORT(ERR, "cannot open a socket for the workers' notifications: %s",
		       strerror(-ret));
	if (ret == 0 && claim_device(o) && make_children(s) && make_events(s)) {
		s->status = EXIT_SUCCESS;
		for (unsigned int i = 0; i < s->n; i++)
			child_start(&s->child[i]);
		if (notify->watchdog_us > 0)
			supervisor_on_pulse(-1, 0, s);
		event_base_dispatch(s->base);
	}
	supervisor_destroy(s);
	return s->status;
}
