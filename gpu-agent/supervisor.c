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

/* A worker that ended by a fault is back this soon, and ever later while it goes on to. */
#define AGAIN_MS     100
#define AGAIN_MAX_MS 10000
/* Who was ready for so long starts over with the soonest. */
#define WELL_MS 10000
/* A worker finds out by itself that its loop hangs, and says why: this much before we end it. */
#define GRACE_MS 1000
/* Drains end by themselves (session.c: LEAVE_MS); what does not is killed. */
#define LEAVE_MS 35000
/* The second time they are to end at once. */
#define AT_ONCE_MS 2000
/* The driver may have to be loaded for that. */
#define COUNT_MS 60000

#define EXIT_USAGE      2 /* no other start helps */
#define EXTRA_ARGUMENTS 16
#define NUMBER_MARK     "{n}"
/* What workers know of us, in their environment. */
#define CLAIMED "DOORBELL_CLAIMED_DEVICE"
#define WORKER  "DOORBELL_WORKER"

struct child {
	struct supervisor *supervisor;
	char name[AGENT_NAME_MAX], address[INET6_ADDRSTRLEN + 4];
	int number; /* of its GPU, or of the worker */
	char *device;
	pid_t pid; /* 0: not running */
	bool ready, left;
	uint64_t ready_since,
		silent_at; /* ms; the second: when it will have been silent too long */
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
	bool anybody_ready; /* ever */
	int status;
	struct child child[AGENT_WORKERS_MAX];
};

#define SAY(level, format, ...) log_sink_say(RTE_LOG_##level, "agent: " format, ##__VA_ARGS__)

static void set_timer(struct event *timer, uint64_t ms)
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
 * A process that has asked the driver cannot fork safely any more, and may hang in it: so a child
 * asks. How many, or -1 after a complaint.
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
		SAY(ERR, "--gpu all: %s", strerror(errno));
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
		snprintf(answer.why, sizeof(answer.why), "the driver ended who asked");
	close(ends[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (answer.n > 0)
		return answer.n;
	SAY(ERR, "--gpu all: %s", answer.why);
	return -1;
}

/* The numbers of the workers. How many, or -1 after a complaint. */
static int list(const struct agent_options *o, int *numbers)
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

/* The address <n> behind --address, with its prefix length. False when the subnet ends before. */
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
	/* IPv4's last address of a subnet is all of its hosts'. */
	for (unsigned int i = bits; i < 128; i++)
		last &= (address.addr.s6_addr[i / 8] & 0x80 >> i % 8) != 0;
	if (n > 0 && last && o->address.family == 4)
		return false;
	agent_address_format(&address, text, size);
	length = strlen(text);
	snprintf(text + length, size - length, "/%u", o->prefix);
	return true;
}

/* --device with the worker's number in it. NULL when memory is out. */
static char *device_of(const struct agent_options *o, int number)
{
	const char *mark = strstr(o->device, NUMBER_MARK);
	char *text = NULL;

	if (mark == NULL)
		return strdup(o->device);
	return asprintf(&text, "%.*s%d%s", (int)(mark - o->device), o->device, number,
			mark + strlen(NUMBER_MARK)) < 0
		       ? NULL
		       : text;
}

/* Packet sockets are shared by interface, RDMA devices by nature; whatever else is one process's.
 */
static bool can_be_shared(const struct agent_options *o)
{
	return o->verbs || strncmp(o->device, "net_af_packet", 13) == 0 ||
	       strstr(o->device, NUMBER_MARK) != NULL;
}

static bool make_children(struct supervisor *s)
{
	const struct agent_options *o = s->options;
	bool own_address = !o->verbs || strstr(o->device, NUMBER_MARK) != NULL;
	int numbers[AGENT_WORKERS_MAX], n;

	if (!can_be_shared(o)) {
		SAY(ERR,
		    "--device %s can be one process's only: give each worker its own "
		    "with " NUMBER_MARK
		    " in place of its number, or all of them one with --one-process",
		    o->device);
		return false;
	}
	n = list(o, numbers);
	for (int i = 0; i < n; i++) {
		struct child *c = &s->child[i];

		c->supervisor = s;
		c->number = numbers[i];
		c->again_ms = AGAIN_MS;
		agent_worker_name(c->name, o->name, o->workers > 1 ? "cpu" : "gpu", numbers[i]);
		c->device = device_of(o, numbers[i]);
		if (c->device == NULL)
			return false;
		if (!address_behind(o, own_address ? (unsigned int)i : 0, c->address,
				    sizeof(c->address))) {
			SAY(ERR,
			    "--address: %d workers take as many addresses in a row, and the subnet "
			    "ends before; begin with a lower one, or give --one-process",
			    n);
			return false;
		}
		s->n++;
	}
	return n > 0;
}

static void expect_a_sign(struct child *c)
{
	const struct agent_options *o = c->supervisor->options;
	uint64_t ms = c->ready ? o->hang_ms + o->max_run_ms + GRACE_MS : o->start_ms;

	c->silent_at = clock_now_ms() + ms;
	set_timer(c->silence, ms);
}

/* --- starting ----------------------------------------------------------------------------------
 */

/* What was given, and behind it what is this worker's: the last one counts. */
static void arguments(const struct child *c, char **out, char *number)
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

/* In the new process; does not return. */
static void become(const struct child *c, pid_t parent)
{
	const struct supervisor *s = c->supervisor;
	char **argv = calloc((size_t)s->argc + EXTRA_ARGUMENTS, sizeof(*argv)), number[16],
	     watchdog[32];

	if (argv == NULL)
		_exit(EXIT_FAILURE);
	/* Without us nobody would start it again, or end it. It may have happened already. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	/* A terminal's Ctrl-C is for us, who pass it on: twice would end it at once. */
	setpgid(0, 0);
	arguments(c, argv, number);
	snprintf(watchdog, sizeof(watchdog), "%llu",
		 (s->options->hang_ms + s->options->max_run_ms) * 1000ull);
	setenv("NOTIFY_SOCKET", s->notify_name, 1);
	setenv("WATCHDOG_USEC", watchdog, 1);
	setenv(WORKER, c->name, 1);
	execv("/proc/self/exe", argv);
	dprintf(STDERR_FILENO, "doorbell-agent: cannot start itself: %s\n", strerror(errno));
	_exit(EXIT_FAILURE);
}

static void start(struct child *c)
{
	pid_t self = getpid();

	c->ready = false;
	c->pid = fork();
	if (c->pid == 0)
		become(c, self);
	if (c->pid > 0) {
		SAY(INFO, "worker=%s pid=%d address=%s started", c->name, c->pid, c->address);
		expect_a_sign(c);
		return;
	}
	c->pid = 0;
	SAY(ERR, "worker=%s no process for it: %s", c->name, strerror(errno));
	set_timer(c->again, AGAIN_MAX_MS);
}

static void on_again(evutil_socket_t fd, short what, void *context)
{
	start(context);
}

/* --- watching ----------------------------------------------------------------------------------
 */

static void say_status(const struct supervisor *s)
{
	unsigned int ready = 0;

	for (unsigned int i = 0; i < s->n; i++)
		ready += s->child[i].ready;
	/* It serves as soon as one of them does; who is missing is in the status. */
	notify_send(s->notify, "%sSTATUS=model %s, %u of %u workers up",
		    s->anybody_ready ? "READY=1\n" : "", s->options->model, ready, s->n);
}

static void on_silence(evutil_socket_t fd, short what, void *context)
{
	struct child *c = context;

	/* We may have stood still ourselves, and our workers with us. */
	if (clock_now_ms() > c->silent_at + GRACE_MS) {
		expect_a_sign(c);
		return;
	}
	if (c->ready)
		SAY(ERR, "worker=%s pid=%d gives no sign of life: killed", c->name, c->pid);
	else
		SAY(ERR,
		    "worker=%s pid=%d is not up after %u ms: killed; give --start-ms if its model "
		    "takes longer to load",
		    c->name, c->pid, c->supervisor->options->start_ms);
	kill(c->pid, SIGKILL);
}

static void took_sign(struct child *c, const char *text)
{
	if (strncmp(text, "READY=1", 7) == 0 && !c->ready) {
		c->ready = true;
		c->ready_since = clock_now_ms();
		c->supervisor->anybody_ready = true;
		say_status(c->supervisor);
	}
	if (c->ready)
		expect_a_sign(c);
}

/* A datagram of one of ours; the kernel says whose. */
static void on_said(evutil_socket_t fd, short what, void *context)
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
			took_sign(&s->child[i], text);
}

static void describe(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "signal=%d name=\"%s\"", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, size, "exit_status=%d", WEXITSTATUS(status));
}

/* No worker has ever come up, and each has tried: it is not a fault that passes. */
static bool hopeless(const struct supervisor *s)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->child[i].again_ms == AGAIN_MS && !s->child[i].left)
			return false;
	return !s->anybody_ready;
}

static void leave(struct supervisor *s)
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
	set_timer(s->kill, s->stops == 1 ? LEAVE_MS : AT_ONCE_MS);
}

static void take_end(struct child *c, int status)
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
	describe(status, how, sizeof(how));
	if (good || s->stops > 0) {
		c->left = true;
		if (!good)
			s->status = EXIT_FAILURE;
		SAY(NOTICE, "worker=%s pid=%d %s: has left", c->name, pid, how);
		return;
	}
	if (was_well)
		c->again_ms = AGAIN_MS;
	wait_ms = c->again_ms;
	c->again_ms = 2 * c->again_ms < AGAIN_MAX_MS ? 2 * c->again_ms : AGAIN_MAX_MS;
	say_status(s);
	if ((WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USAGE) || hopeless(s)) {
		s->status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
		SAY(ERR, "worker=%s pid=%d %s: no worker has come up, so the agent ends", c->name,
		    pid, how);
		c->left = true;
		leave(s);
		return;
	}
	SAY(ERR, "worker=%s pid=%d %s again_ms=%u: ended by a fault, is started again", c->name,
	    pid, how, wait_ms);
	set_timer(c->again, wait_ms);
}

static void on_ended(evutil_socket_t number, short what, void *context)
{
	struct supervisor *s = context;
	bool all_left = true;

	for (unsigned int i = 0; i < s->n; i++) {
		struct child *c = &s->child[i];
		int status;

		if (c->pid > 0 && waitpid(c->pid, &status, WNOHANG) == c->pid)
			take_end(c, status);
	}
	for (unsigned int i = 0; i < s->n; i++)
		all_left &= s->child[i].left || (s->stops > 0 && s->child[i].pid == 0);
	if (all_left)
		event_base_loopbreak(s->base);
}

static void on_stop(evutil_socket_t fd, short what, void *context)
{
	uint64_t times;

	if (read(fd, &times, sizeof(times)) != sizeof(times))
		return;
	for (; times > 0; times--)
		leave(context);
	/* They may all have been between two lives. */
	on_ended(SIGCHLD, EV_SIGNAL, context);
}

static void on_kill(evutil_socket_t fd, short what, void *context)
{
	struct supervisor *s = context;

	for (unsigned int i = 0; i < s->n; i++)
		if (s->child[i].pid > 0) {
			SAY(ERR, "worker=%s pid=%d does not leave: killed", s->child[i].name,
			    s->child[i].pid);
			kill(s->child[i].pid, SIGKILL);
		}
}

static void on_pulse(evutil_socket_t fd, short what, void *context)
{
	const struct supervisor *s = context;

	notify_send(s->notify, "WATCHDOG=1");
	set_timer(s->pulse, s->notify->watchdog_us / 4000);
}

/* --- the whole ---------------------------------------------------------------------------------
 */

/* A socket without a file, which only says what the kernel knows of senders. */
static int open_socket(struct supervisor *s)
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
	s->ended = evsignal_new(s->base, SIGCHLD, on_ended, s);
	s->said = event_new(s->base, s->notify_fd, EV_READ | EV_PERSIST, on_said, s);
	s->stop = event_new(s->base, s->stop_fd, EV_READ | EV_PERSIST, on_stop, s);
	s->kill = evtimer_new(s->base, on_kill, s);
	s->pulse = evtimer_new(s->base, on_pulse, s);
	made = s->ended != NULL && s->said != NULL && s->stop != NULL && s->kill != NULL &&
	       s->pulse != NULL;
	for (unsigned int i = 0; i < s->n; i++) {
		s->child[i].again = evtimer_new(s->base, on_again, &s->child[i]);
		s->child[i].silence = evtimer_new(s->base, on_silence, &s->child[i]);
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

static void destroy(struct supervisor *s)
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

/* What the workers share is claimed once, and by us, who are there between two lives of theirs. */
static bool claim(const struct agent_options *o)
{
	struct port port;
	char error[512];

	unsetenv(CLAIMED);
	if (o->verbs || strstr(o->device, NUMBER_MARK) != NULL)
		return true;
	if (port_claim(&port, o->device, error, sizeof(error)) < 0) {
		log_sink_say(RTE_LOG_ERR, "doorbell-agent: %s", error);
		return false;
	}
	setenv(CLAIMED, o->device, 1);
	return true;
}

int agent_supervisor_run(int argc, char **argv, const struct agent_options *o,
			 const struct notify *notify, int stop_fd)
{
	static struct supervisor s; /* large, and there is one */
	int ret;

	s = (struct supervisor){.options = o,
				.notify = notify,
				.argc = argc,
				.argv = argv,
				.stop_fd = stop_fd,
				.notify_fd = -1,
				.status = EXIT_FAILURE};
	ret = open_socket(&s);
	if (ret < 0)
		SAY(ERR, "no socket for the workers' signs of life: %s", strerror(-ret));
	if (ret == 0 && claim(o) && make_children(&s) && make_events(&s)) {
		s.status = EXIT_SUCCESS;
		for (unsigned int i = 0; i < s.n; i++)
			start(&s.child[i]);
		if (notify->watchdog_us > 0)
			on_pulse(-1, 0, &s);
		event_base_dispatch(s.base);
	}
	destroy(&s);
	return s.status;
}
