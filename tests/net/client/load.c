/* SPDX-License-Identifier: BSD-3-Clause */
#include "load.h"
#include "flow.h"
#include "runtime/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX      256
#define EXPIRE_EVERY_NS 10000000ull
/* A paced run that fell further behind than this does not catch up: it would send a burst. */
#define PACE_DEBT_NS 100000000ull
#define SECOND_NS    1000000000ull

struct runner {
	struct load load;
	int epoll;
	uint64_t
		stop_ns; /* no request is sent from then on; UINT64_MAX if only the count ends it */
	uint64_t pace_ns; /* between two requests, 0 without a rate */
	uint64_t next_send_ns;
	uint64_t next_expire_ns;
	uint64_t next_progress_ns;
	uint32_t cursor; /* the flow whose turn to send it is */
	uint8_t datagram[LOAD_DATAGRAM_MAX + 1];
};

static volatile sig_atomic_t told_to_stop;

static void stop_sending(int number)
{
	told_to_stop = 1;
}

uint32_t load_tag(void)
{
	uint32_t tag;

	if (getrandom(&tag, sizeof(tag), 0) != sizeof(tag))
		tag = (uint32_t)clock_now_ns();
	return tag;
}

/* Errors that report the state of the network or the peer, not a wrong call. */
static bool error_is_unreachable(int error)
{
	return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH ||
	       error == EHOSTDOWN || error == EPROTO;
}

static int flow_watch(struct runner *runner, struct flow *flow, int operation)
{
	struct epoll_event event = {
		.events = EPOLLIN | (flow->blocked ? EPOLLOUT : 0),
		.data.u32 = flow->number,
	};

	return epoll_ctl(runner->epoll, operation, flow->fd, &event) == 0 ? 0 : -errno;
}

static bool flow_has_next(const struct runner *runner, const struct flow *flow)
{
	uint64_t requests = runner->load.options->requests;

	return flow->next <= UINT32_MAX && (requests == 0 || flow->next < requests);
}

static bool flow_may_send(struct runner *runner, const struct flow *flow)
{
	const struct load_work *work = runner->load.work;

	if (flow->blocked || flow->has_short || !flow_has_next(runner, flow) ||
	    flow->n_outstanding == runner->load.options->window)
		return false;
	return flow->n_outstanding == 0 ||
	       work->length(work->context, (uint32_t)flow->next) >= LOAD_ID_MIN;
}

/* Returns 1 if the request left, 0 if the socket is full, or -errno. */
static int datagram_send(struct runner *runner, struct flow *flow, size_t length)
{
	/* A send may report the error of an earlier datagram; try again. */
	for (int attempt = 0; attempt < 3; attempt++) {
		if (send(flow->fd, runner->datagram, length, 0) >= 0)
			return 1;
		if (errno == EAGAIN || errno == ENOBUFS) {
			flow->blocked = true;
			return flow_watch(runner, flow, EPOLL_CTL_MOD);
		}
		if (!error_is_unreachable(errno) && errno != EINTR) {
			fprintf(stderr, "cannot send %zu bytes: %s\n", length, strerror(errno));
			return -errno;
		}
		runner->load.tally->unreachable += errno != EINTR;
	}
	return 1; /* it did not leave, and is lost when its time is up */
}

static int request_send(struct runner *runner, struct flow *flow)
{
	struct load *load = &runner->load;
	uint32_t index = (uint32_t)flow->next;
	uint64_t id = load_id(load, index);
	size_t length = load->work->length(load->work->context, index);
	uint64_t now;
	int ret;

	load->work->build(load->work->context, id, runner->datagram);
	for (int i = 0; length >= LOAD_ID_MIN && i < 8; i++)
		runner->datagram[i] = (uint8_t)(id >> 8 * i);
	now = clock_now_ns();
	ret = datagram_send(runner, flow, length);
	if (ret <= 0)
		return ret;
	flow->next += load->options->sockets;
	ret = flow_sent(load, flow, index, now);
	flow->has_short = length < LOAD_ID_MIN;
	return ret != 0 ? ret : 1;
}

/* Sends what windows and rate allow, one request per flow and round. */
static int requests_send(struct runner *runner, uint64_t now)
{
	uint32_t sockets = (uint32_t)runner->load.options->sockets;

	if (runner->pace_ns != 0 && now > runner->next_send_ns + PACE_DEBT_NS)
		runner->next_send_ns = now;
	for (uint32_t idle = 0; idle < sockets && now < runner->stop_ns;) {
		struct flow *flow = &runner->load.flows[runner->cursor];
		int ret = 0;

		if (runner->pace_ns != 0 && runner->next_send_ns > now)
			return 0;
		if (flow_may_send(runner, flow))
			ret = request_send(runner, flow);
		if (ret < 0)
			return ret;
		idle = ret > 0 ? 0 : idle + 1;
		runner->next_send_ns += ret > 0 ? runner->pace_ns : 0;
		runner->cursor = (runner->cursor + 1) % sockets;
	}
	return 0;
}

static int flow_drain(struct runner *runner, struct flow *flow)
{
	for (;;) {
		ssize_t length = recv(flow->fd, runner->datagram, sizeof(runner->datagram), 0);
		int ret;

		if (length < 0 && errno == EAGAIN)
			return 0;
		if (length < 0 && error_is_unreachable(errno)) {
			runner->load.tally->unreachable++;
			continue;
		}
		if (length < 0 && errno != EINTR) {
			fprintf(stderr, "cannot receive: %s\n", strerror(errno));
			return -errno;
		}
		if (length < 0)
			continue;
		ret = flow_received(&runner->load, flow, runner->datagram, (size_t)length,
				    clock_now_ns());
		if (ret != 0)
			return ret;
	}
}

static void progress_print(const struct runner *runner, uint64_t now)
{
	const struct tally *tally = runner->load.tally;

	fprintf(stderr,
		"%6.1f s  answered %" PRIu64 "  outstanding %" PRIu64 "  lost %" PRIu64
		"  refused %" PRIu64 "  wrong %" PRIu64 "\n",
		(double)(now - tally->start_ns) / 1e9, tally->answered, runner->load.n_outstanding,
		tally->lost, tally->refused, tally->wrong);
}

static void expire(struct runner *runner, uint64_t now)
{
	uint64_t timeout = runner->load.options->timeout_ms * 1000000;

	if (now < runner->next_expire_ns)
		return;
	runner->next_expire_ns = now + EXPIRE_EVERY_NS;
	for (uint32_t i = 0; i < runner->load.options->sockets; i++)
		flow_expire(&runner->load, &runner->load.flows[i], now - timeout);
	if (runner->load.options->progress && now >= runner->next_progress_ns) {
		runner->next_progress_ns += SECOND_NS;
		progress_print(runner, now);
	}
}

static bool all_sent(const struct runner *runner, uint64_t now)
{
	if (now >= runner->stop_ns)
		return true;
	for (uint32_t i = 0; i < runner->load.options->sockets; i++)
		if (flow_has_next(runner, &runner->load.flows[i]))
			return false;
	return true;
}

/* Sleeps until a datagram comes or a timer is due. */
static int events_wait(struct runner *runner, uint64_t now)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t until = runner->next_expire_ns;
	struct timespec timeout = {0};
	int n, ret = 0;

	if (runner->pace_ns != 0 && runner->next_send_ns > now && runner->next_send_ns < until)
		until = runner->next_send_ns;
	if (until > now)
		timeout.tv_nsec = (long)(until - now);
	n = epoll_pwait2(runner->epoll, events, EVENTS_MAX, &timeout, NULL);
	if (n < 0 && errno != EINTR) {
		fprintf(stderr, "cannot wait: %s\n", strerror(errno));
		return -errno;
	}
	for (int i = 0; i < n && ret == 0; i++) {
		struct flow *flow = &runner->load.flows[events[i].data.u32];

		ret = flow_drain(runner, flow);
		if (ret == 0 && flow->blocked && (events[i].events & EPOLLOUT) != 0) {
			flow->blocked = false;
			ret = flow_watch(runner, flow, EPOLL_CTL_MOD);
		}
	}
	return ret;
}

/* If the last replies of a timed run stayed away, it ends with a silence: that is a gap, too. */
static void gaps_close(struct runner *runner)
{
	struct tally *tally = runner->load.tally;

	for (uint32_t i = 0; i < tally->n_flows; i++) {
		uint64_t last = runner->load.flows[i].last_reply_ns;

		if (last != 0 && last < runner->stop_ns &&
		    runner->stop_ns - last > tally->gap_ns[i])
			tally->gap_ns[i] = runner->stop_ns - last;
	}
	if (tally->end_ns < runner->stop_ns)
		tally->end_ns = runner->stop_ns;
}

static int runner_loop(struct runner *runner)
{
	uint64_t now = clock_now_ns();
	int ret = 0;

	while (ret == 0 && !(runner->load.n_outstanding == 0 && all_sent(runner, now))) {
		if (told_to_stop && now < runner->stop_ns)
			runner->stop_ns = now;
		ret = requests_send(runner, now);
		if (ret == 0)
			ret = events_wait(runner, clock_now_ns());
		now = clock_now_ns();
		expire(runner, now);
	}
	if (runner->stop_ns != UINT64_MAX)
		gaps_close(runner);
	return ret;
}

/* Every socket is a descriptor: asks for as many as the system's administrator allows. */
static void descriptors_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int runner_open(struct runner *runner)
{
	const struct load_options *options = runner->load.options;
	int ret = 0;

	descriptors_raise();
	runner->epoll = epoll_create1(EPOLL_CLOEXEC);
	runner->load.flows = calloc(options->sockets, sizeof(*runner->load.flows));
	if (runner->epoll < 0 || runner->load.flows == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < options->sockets; i++)
		runner->load.flows[i].fd = -1;
	for (uint32_t i = 0; i < options->sockets && ret == 0; i++) {
		ret = flow_open(&runner->load.flows[i], options, i);
		if (ret == 0)
			ret = flow_watch(runner, &runner->load.flows[i], EPOLL_CTL_ADD);
	}
	return ret;
}

static void runner_close(struct runner *runner)
{
	for (uint32_t i = 0; runner->load.flows != NULL && i < runner->load.options->sockets; i++)
		flow_close(&runner->load.flows[i]);
	free(runner->load.flows);
	if (runner->epoll >= 0)
		close(runner->epoll);
	free(runner);
}

int load_run(const struct load_options *options, const struct load_work *work, uint32_t tag,
	     struct tally *tally)
{
	/* A second signal ends the program. */
	struct sigaction stop = {.sa_handler = stop_sending, .sa_flags = SA_RESETHAND};
	struct runner *runner = calloc(1, sizeof(*runner));
	uint64_t now;
	int ret;

	if (runner == NULL || tally_init(tally, options->sockets) != 0) {
		free(runner);
		return -ENOMEM;
	}
	runner->load = (struct load){.options = options, .work = work, .tally = tally, .tag = tag};
	ret = runner_open(runner);
	if (ret != 0) {
		fprintf(stderr, "cannot open %" PRIu64 " sockets: %s\n", options->sockets,
			strerror(-ret));
		goto close;
	}
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	now = clock_now_ns();
	tally->start_ns = tally->end_ns = now;
	runner->next_send_ns = now;
	runner->next_expire_ns = now;
	runner->next_progress_ns = now + SECOND_NS;
	runner->pace_ns = options->rate != 0 ? SECOND_NS / options->rate : 0;
	runner->stop_ns =
		options->duration_s > 0 ? now + (uint64_t)(options->duration_s * 1e9) : UINT64_MAX;
	ret = runner_loop(runner);
close:
	runner_close(runner);
	if (ret != 0)
		tally_fini(tally);
	return ret;
}
