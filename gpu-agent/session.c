/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The session with the load balancer: hello, register, ready; again from the start whenever the
 * connection, the lease or a link is lost. JSON-RPC 2.0, one message per line over TCP;
 * control/protocol/control.h lists the methods. Main thread.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/util.h>
#include <jansson.h>

#include <rte_log.h>

#include "agent.h"
#include "description_json.h"
#include "report_json.h"
#include "dial.h"
#include "labels.h"
#include "lookup.h"
#include "protocol/control.h"
#include "protocol/worker_state.h"
#include "rdma/roce_wire.h"
#include "repeat.h"
#include "runtime/clock.h"

RTE_LOG_REGISTER(agent_logtype, doorbell.agent, INFO)

#define LOG(level, format, ...)                                                                    \
	rte_log(RTE_LOG_##level, agent_logtype, "agent: " format "\n", ##__VA_ARGS__)

#define PROTOCOL     3
#define LINE_MAX_LEN 65536
/*
 * ms between tries. After a failure the first try comes soon, later ones after ever longer waits up
 * to RETRY_MS: a load balancer that is back must neither wait long for its workers nor be overrun
 * by them. A refusal is retried too: the load balancer may still know our earlier registration, or
 * the operator may fix it there.
 */
#define AGAIN_MS   50
#define RETRY_MS   250
#define REFUSED_MS 2000
/* After serving for this many ms the next wait is AGAIN_MS again. */
#define SERVED_MS 1000
/* ms; a drain that takes longer is cut short. */
#define LEAVE_MS 30000
/* ms between checks of the links and the loop. */
#define CHECK_MS 50
/* ms between two looks at the GPU's figures and errors. */
#define GPU_MS 1000
/* ms; hello, registration and ready must all be answered within this. */
#define PATIENCE_MS 5000
/* ms per address. TCP repeats a lost SYN only after one second, then after two: a new connection is
 * faster. */
#define CONNECT_MS 300
/* ms; after this without an answer, the addresses of the last lookup are used. */
#define LOOKUP_MS 1000
/* ms for a TLS handshake, when hundreds of agents connect at once. */
#define SECURE_MS  5000
#define MAX_RUN_MS 600000
/* Renewals per lease: one may be lost. */
#define RENEWALS     3
#define LEASE_MIN_MS 100

enum step {
	STEP_IDLE,
	STEP_LOOKING_UP,
	STEP_CONNECTING,
	STEP_SECURING,
	STEP_ATTACH, /* asks for the registration of an earlier connection */
	STEP_HELLO,
	STEP_REGISTER,
	STEP_READY,
	STEP_SERVING
};

struct agent_session {
	struct event_base *base;
	const struct agent_setup *setup;
	void (*ended)(void *context, bool failed);
	void *ended_context;
	uint64_t instance;
	struct bufferevent *connection;
	struct agent_lookup *lookup; /* running; it may take longer than several tries */
	struct lookup_addresses known;
	unsigned int at, tried; /* in <known>: index of the next; number tried */
	bool refused;           /* all that were tried: nobody listens there */
	/* The load balancer does not listen any more: it has ended, and what its worker still has
	 * goes nowhere. A network that is cut is silent instead. */
	bool lb_gone;
	uint64_t left_beats; /* heartbeats of the loop when we were asked to leave */
	struct event *retry, *check, *give_up, *renew;
	struct event *patience; /* limits the wait for an answer until we serve */
	enum step step;
	bool leaving;
	/* The worker goes on serving while its registration has no connection. */
	bool detached;
	int number, generation; /* of the registration */
	int request_id;
	unsigned int again_ms; /* wait after the next failure */
	uint64_t serving_since;
	bool served;             /* this worker has served: its counters are worth a log line */
	bool active;             /* the load balancer has said so of this worker */
	unsigned int failed_links; /* of this worker, that the log has */
	uint32_t lease_ms;       /* the registration ends when it is not renewed for this long */
	unsigned int unanswered; /* renewals without an answer */
	struct agent_worker *worker;
	uint64_t beats;         /* heartbeats of the loop at the last check */
	uint64_t checked_ms;    /* time of the last check */
	unsigned int silent_ms; /* ms since the last new one */
	uint64_t halted_ms;     /* longest halt of the whole process during this registration */
	struct worker_gpu gpu;  /* as it was last read, if <setup> has its health */
	uint64_t gpu_read_ms;   /* when that was */
	struct agent_hello hello;
	uint32_t max_run_ms;   /* as given, or as measured if that was more */
	struct repeat failure; /* why it does not serve; logged at growing intervals */
	struct repeat refusal; /* why a renewal, or its report, was refused; as <failure> */
	bool unreported;       /* an older load balancer refused a renewal for its report */
};

static void session_start_try(struct agent_session *s);
static void take_addresses(struct agent_session *s, const char *why_none);

static void session_set_timer(struct event *timer, unsigned int ms)
{
	struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	evtimer_add(timer, &t);
}

/* ms for which the process has been halted since the last check. */
static uint64_t halted_ms(const struct agent_session *s)
{
	uint64_t since = clock_now_ms() - s->checked_ms;

	return s->checked_ms != 0 && since > CHECK_MS ? since - CHECK_MS : 0;
}

static void note_halt(struct agent_session *s)
{
	if (halted_ms(s) > s->halted_ms)
		s->halted_ms = halted_ms(s);
}

/*
 * Learn the longest batch. A batch that takes longer than the load balancer waits for a heartbeat
 * looks like a hung loop there. So the next registration tells how long batches were, with a
 * margin.
 */
static void learn_run_time(struct agent_session *s)
{
	struct agent_loop_stats stats;
	uint64_t ms;

	if (s->worker == NULL)
		return;
	agent_worker_stats_read(s->worker, &stats);
	ms = stats.longest_run_ns / 1000000;
	/* A halt of the process also halts a batch; it does not count as run time. */
	note_halt(s);
	ms = ms > s->halted_ms ? (ms - s->halted_ms) * 2 : 0;
	if (ms <= s->max_run_ms || ms < s->hello.worker_timeout_ms / 2)
		return;
	s->max_run_ms = ms < MAX_RUN_MS ? ms : MAX_RUN_MS;
	LOG(WARNING,
	    "worker=%s longest_batch_ms=%lu max_run_ms=%u: the load balancer takes such "
	    "a silence for a failure; give --max-run-ms, or lower --max-batch",
	    s->setup->name, (unsigned long)(ms / 2), s->max_run_ms);
}

/* Destroy the worker, and log what this registration did. */
static void end_worker(struct agent_session *s)
{
	struct agent_loop_stats stats;

	if (s->worker == NULL)
		return;
	agent_worker_stats_read(s->worker, &stats);
	agent_worker_destroy(s->worker);
	s->worker = NULL;
	s->active = false;
	s->failed_links = 0;
	if (!s->served)
		return;
	s->served = false;
	LOG(INFO,
	    "worker=%s ran requests=%lu batches=%lu errors=%lu expired=%lu cancelled=%lu bad=%lu",
	    s->setup->name, (unsigned long)stats.requests, (unsigned long)stats.batches,
	    (unsigned long)stats.errors, (unsigned long)stats.expired,
	    (unsigned long)stats.cancelled, (unsigned long)stats.bad);
}

/*
 * ms to wait before the next try: doubles with every failure in a row, up to <most>. Half of it is
 * random, as hundreds of agents lose one load balancer at the same instant.
 */
static unsigned int wait_ms(struct agent_session *s, unsigned int most)
{
	unsigned int ms, lot = 0;

	if (s->step == STEP_SERVING && clock_now_ms() - s->serving_since >= SERVED_MS)
		s->again_ms = AGAIN_MS;
	ms = s->again_ms < most ? s->again_ms : most;
	s->again_ms = 2 * s->again_ms < REFUSED_MS ? 2 * s->again_ms : REFUSED_MS;
	if (getrandom(&lot, sizeof(lot), GRND_NONBLOCK) < 0)
		lot = (unsigned int)s->instance;
	return ms / 2 + lot % (ms / 2 + 1);
}

/* Close the connection, and stop its timers. */
static void close_connection(struct agent_session *s)
{
	if (s->connection != NULL)
		bufferevent_free(s->connection);
	s->connection = NULL;
	evtimer_del(s->retry);
	evtimer_del(s->patience);
	evtimer_del(s->renew);
	s->step = STEP_IDLE;
}

/* End this registration: connection, worker and all timers. */
static void session_reset(struct agent_session *s)
{
	close_connection(s);
	s->detached = false;
	learn_run_time(s);
	end_worker(s);
	evtimer_del(s->check);
	evtimer_del(s->give_up);
}

/* End the session, and report it to its owner once. */
static void session_end(struct agent_session *s, bool failed)
{
	void (*ended)(void *context, bool failed) = s->ended;

	s->ended = NULL;
	s->leaving = true;
	session_reset(s);
	if (ended != NULL)
		ended(s->ended_context, failed);
}

/* Log why the worker does not serve: once, then with a count at growing intervals. */
static void log_failure(struct agent_session *s, const char *reason)
{
	const char *what = s->detached ? "serving_without_control" : "not_serving";
	uint64_t now = clock_now_ms();

	if (!repeat_is_due(&s->failure, reason, now))
		return;
	if (s->failure.times == 1)
		LOG(WARNING, "worker=%s %s=\"%s\"", s->setup->name, what, reason);
	else
		LOG(WARNING, "worker=%s %s=\"%s\" times=%lu for_s=%lu", s->setup->name, what,
		    reason, (unsigned long)s->failure.times,
		    (unsigned long)((now - s->failure.first_ms) / 1000));
}

/* Log <reason>, and try again after a wait of at most <most_ms>. */
static void session_fail(struct agent_session *s, unsigned int most_ms, const char *reason)
{
	unsigned int again_ms = wait_ms(s, most_ms);

	/* An address that answers but refuses us may be the wrong one: the next try takes the next
	 * address. */
	if (s->step > STEP_CONNECTING && s->step < STEP_SERVING)
		s->at++;
	log_failure(s, reason);
	if (s->leaving && !s->detached)
		return session_end(s, false);
	if (s->detached)
		close_connection(s);
	else
		session_reset(s);
	session_set_timer(s->retry, again_ms);
}

/* Give up the worker, and register again without it. */
static void session_fail_worker(struct agent_session *s, unsigned int most_ms, const char *reason)
{
	s->detached = false;
	session_fail(s, most_ms, reason);
}

/*
 * The connection is lost. A worker that serves does not need it: the load balancer keeps the worker
 * as long as it hears the loop's heartbeats, and we attach to it over another connection.
 */
static void session_lose_connection(struct agent_session *s, const char *reason)
{
	/* One that is detached stays so if this connection was lost before its agent.attach was
	 * answered. */
	s->detached |= s->step == STEP_SERVING;
	session_fail(s, RETRY_MS, reason);
}

/* A line is not of the protocol. A worker that serves goes on: the connection is bad, or the
 * load balancer's control thread, and the next agent.attach tells. */
static void session_refuse_line(struct agent_session *s, const char *reason)
{
	if (s->step == STEP_SERVING)
		session_lose_connection(s, reason);
	else
		session_fail(s, REFUSED_MS, reason);
}

/* --- sending -------------------------------------------------------------------------------- */

static void send_request(struct agent_session *s, const char *method, json_t *params)
{
	json_t *message = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", ++s->request_id,
				    "method", method, "params", params);
	char *text = message == NULL ? NULL : json_dumps(message, JSON_COMPACT);

	json_decref(message);
	if (text == NULL)
		return session_lose_connection(s, "no memory for a request");
	evbuffer_add_printf(bufferevent_get_output(s->connection), "%s\n", text);
	free(text);
}

static void send_hello(struct agent_session *s)
{
	char address[INET6_ADDRSTRLEN];

	s->step = STEP_HELLO;
	send_request(s, "agent.hello",
		     json_pack("{s:i, s:s, s:I, s:s}", "version", PROTOCOL, "model",
			       s->setup->model.model->name, "min_request",
			       (json_int_t)s->setup->model.shape.min_request, "address",
			       agent_address_format(&s->setup->options->address, address,
						    sizeof(address))));
}

static void send_attach(struct agent_session *s)
{
	char instance[17];

	s->step = STEP_ATTACH;
	snprintf(instance, sizeof(instance), "%016lx", s->instance);
	send_request(s, "agent.attach",
		     json_pack("{s:i, s:s, s:s, s:i, s:i}", "version", PROTOCOL, "name",
			       s->setup->name, "instance", instance, "worker", s->number,
			       "generation", s->generation));
}

static json_t *links_json(const struct agent_session *s)
{
	json_t *links = json_array();

	for (unsigned int i = 0; i < agent_worker_links(s->worker); i++) {
		struct agent_link_offer o = agent_worker_offer(s->worker, i);

		json_array_append_new(
			links,
			json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i}", "lcore",
				  (int)i, "qpn", (json_int_t)o.qpn, "psn", (json_int_t)o.psn,
				  "rkey", (json_int_t)o.rkey, "descriptors",
				  (json_int_t)o.descriptors, "payloads", (json_int_t)o.payloads,
				  "cancels", (json_int_t)o.cancels, "stride", (json_int_t)o.stride,
				  "room", (json_int_t)o.room, "entry", RING_ENTRY));
	}
	return links;
}

static json_t *registration_json(const struct agent_session *s)
{
	const struct agent_options *o = s->setup->options;
	const struct agent_model_shape *shape = &s->setup->model.shape;
	char address[INET6_ADDRSTRLEN], instance[17];

	snprintf(instance, sizeof(instance), "%016lx", s->instance);
	return json_pack(
		"{s:I, s:o, s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, "
		"s:I, s:o}",
		"min_request", (json_int_t)shape->min_request, "labels",
		agent_labels_json(o, &s->setup->places), "version", PROTOCOL, "name",
		s->setup->name, "model", s->setup->model.model->name, "instance", instance, "slots",
		(json_int_t)o->slots, "max_request", (json_int_t)shape->max_request, "max_reply",
		(json_int_t)agent_worker_max_reply(s->worker), "max_batch",
		(json_int_t)shape->max_batch, "weight", (json_int_t)o->weight, "heartbeat_ms",
		(json_int_t)o->heartbeat_ms, "max_run_ms", (json_int_t)s->max_run_ms, "address",
		agent_address_format(&o->address, address, sizeof(address)), "path_mtu",
		(json_int_t)s->setup->rnic->path_mtu, "links", links_json(s));
}

static void send_register(struct agent_session *s)
{
	const struct loaded_model *model = &s->setup->model;
	json_t *params = registration_json(s);

	s->step = STEP_REGISTER;
	if (model->described && s->hello.describe)
		json_object_set_new(params, "description", description_json(&model->description));
	if (model->shape.max_pieces > 1)
		json_object_set_new(params, "max_chunks", json_integer(model->shape.max_pieces));
	send_request(s, "agent.register", params);
}

/* --- receiving ------------------------------------------------------------------------------ */

static void take_hello(struct agent_session *s, json_t *result)
{
	const char *address = "";
	int lcores = 0, path_mtu = 0, request = 0, reply = 0, timeout = 0, ack = 0, retry = 0;
	char why[256], reason[384];

	if (json_unpack(result, "{s:i, s:i, s:s, s:i, s:i, s:i, s:i, s:i}", "n_lcores", &lcores,
			"path_mtu", &path_mtu, "address", &address, "max_request", &request,
			"max_reply", &reply, "worker_timeout_ms", &timeout, "ack_timeout", &ack,
			"retry_count", &retry) < 0 ||
	    lcores < 1 || lcores > AGENT_LINKS_MAX || ack < 0 || ack > 31 || retry < 0 ||
	    retry > 7 || !agent_address_parse(address, &s->hello.address))
		return session_fail(s, REFUSED_MS,
				    "the load balancer's hello is not understood; do both "
				    "sides have the same version?");
	s->hello.n_lcores = lcores;
	s->hello.path_mtu = path_mtu;
	s->hello.max_request = request;
	s->hello.max_reply = reply;
	s->hello.worker_timeout_ms = timeout;
	s->hello.ack_timeout = ack;
	s->hello.retry_count = retry;
	s->hello.describe = json_is_true(json_object_get(result, "describe"));
	s->hello.report = json_is_true(json_object_get(result, "report"));
	s->unreported = false;
	s->worker = agent_worker_create(s->setup, &s->hello, why, sizeof(why));
	if (s->worker == NULL && why[0] != '\0') {
		snprintf(reason, sizeof(reason), "cannot create %d rings of %u slots: %s", lcores,
			 s->setup->options->slots, why);
		return session_fail(s, REFUSED_MS, reason);
	}
	if (s->worker == NULL) {
		snprintf(reason, sizeof(reason), "cannot create %d rings of %u slots: %s; %s",
			 lcores, s->setup->options->slots, strerror(errno),
			 errno == ENODEV ? "start the agent again when the RDMA device works"
					 : "lower --slots if they are too many");
		return session_fail(s, REFUSED_MS, reason);
	}
	send_register(s);
}

/* Read the load balancer's half of every link; each lcore must occur once. */
static bool read_answers(const struct agent_session *s, json_t *links,
			 struct agent_link_answer *answers)
{
	uint64_t seen = 0;
	size_t i;
	json_t *row;

	if (json_array_size(links) != agent_worker_links(s->worker))
		return false;
	json_array_foreach (links, i, row) {
		json_int_t lcore, qpn, psn, rkey, address, chunk, source = 0;

		if (json_unpack(row, "{s:I, s:I, s:I, s:I, s:I, s:I, s?I}", "lcore", &lcore, "qpn",
				&qpn, "psn", &psn, "reply_rkey", &rkey, "reply_address", &address,
				"chunk", &chunk, "udp_source", &source) < 0 ||
		    chunk < (json_int_t)sizeof(struct ring_reply) +
				    agent_worker_max_reply(s->worker) ||
		    (source != 0 && (source < ROCE_SOURCE_MIN || source > UINT16_MAX)) ||
		    lcore < 0 || lcore >= (json_int_t)agent_worker_links(s->worker) ||
		    seen & 1ull << lcore)
			return false;
		seen |= 1ull << lcore;
		answers[i] = (struct agent_link_answer){
			.lcore = lcore,
			.qpn = qpn,
			.psn = psn,
			.reply_rkey = rkey,
			.reply_address = address,
			.chunk = chunk,
			.udp_source = source,
		};
	}
	return true;
}

static void take_registration(struct agent_session *s, json_t *result)
{
	struct agent_link_answer answers[AGENT_LINKS_MAX];
	json_t *links = NULL;
	char why[384] = "", reason[512];
	int path_mtu = 0, lease_ms = 0, ret;

	if (json_unpack(result, "{s:i, s:i, s:i, s:i, s:o}", "worker", &s->number, "generation",
			&s->generation, "path_mtu", &path_mtu, "lease_ms", &lease_ms, "links",
			&links) < 0 ||
	    lease_ms < LEASE_MIN_MS || !read_answers(s, links, answers))
		return session_fail(s, REFUSED_MS,
				    "the load balancer's answer to the registration is not "
				    "understood; do both sides have the same version?");
	ret = agent_worker_start(s->worker, answers, path_mtu, why, sizeof(why));
	if (ret == -EDQUOT) {
		/* It would take as much the next time. */
		LOG(ERR, "worker=%s --gpu-memory-mb %u: %s", s->setup->name,
		    s->setup->options->gpu_memory_mb, why);
		return session_end(s, true);
	}
	if (ret < 0) {
		snprintf(reason, sizeof(reason), "the links cannot be set up: %s", why);
		return session_fail(s, REFUSED_MS, reason);
	}
	s->lease_ms = lease_ms;
	s->step = STEP_READY;
	send_request(s, "agent.ready", json_object());
}

/* Begin to serve: from now on the registration must be renewed. */
static void session_serve(struct agent_session *s)
{
	s->step = STEP_SERVING;
	s->serving_since = clock_now_ms();
	s->unanswered = 0;
	session_set_timer(s->renew, s->lease_ms / RENEWALS);
	evtimer_del(s->patience);
	s->failure = (struct repeat){0};
	s->served = true;
}

/* Attached: the load balancer still has the worker. */
static void take_attached(struct agent_session *s, json_t *result)
{
	int lease_ms = 0;

	if (json_unpack(result, "{s:i}", "lease_ms", &lease_ms) < 0 || lease_ms < LEASE_MIN_MS)
		return session_fail_worker(
			s, REFUSED_MS,
			"the load balancer's answer is not understood; do both sides "
			"have the same version?");
	s->lease_ms = lease_ms;
	s->detached = false;
	session_serve(s);
	LOG(NOTICE, "worker=%s control is back, and the worker has served all the time",
	    s->setup->name);
	if (s->leaving)
		send_request(s, "agent.drain", json_object());
}

/* Register anew: the load balancer was restarted, or has removed the worker. The connection serves
 * for that. */
static void register_again(struct agent_session *s, const char *reason)
{
	if (s->leaving)
		return session_end(s, false);
	LOG(WARNING, "worker=%s not_serving=\"%s; registering again\"", s->setup->name, reason);
	s->detached = false;
	evtimer_del(s->check);
	learn_run_time(s);
	end_worker(s);
	send_hello(s);
}

static void take_ready(struct agent_session *s)
{
	session_serve(s);
	s->silent_ms = 0;
	s->checked_ms = clock_now_ms();
	s->halted_ms = 0;
	session_set_timer(s->check, CHECK_MS);
	LOG(NOTICE, "worker=%s model=%s registered links=%u slots=%u", s->setup->name,
	    s->setup->model.model->name, agent_worker_links(s->worker), s->setup->options->slots);
	if (s->leaving)
		send_request(s, "agent.drain", json_object());
}

static void take_state(struct agent_session *s, json_t *params)
{
	const char *state = "", *reason = "";

	json_unpack(params, "{s:s, s?s}", "state", &state, "reason", &reason);
	LOG(NOTICE, "worker=%s state=%s reason=\"%s\"", s->setup->name, state, reason);
	s->active |= control_state_find(state) == CONTROL_STATE_ACTIVE;
	if (control_state_find(state) == CONTROL_STATE_DRAINED && s->leaving) {
		/* Every request is answered, and no more will come. When an operator drained the
		 * worker, it waits: it may be resumed. */
		session_end(s, false);
	} else if (control_state_find(state) == CONTROL_STATE_GONE) {
		session_fail(s, RETRY_MS, reason);
	}
}

static void log_refusal(struct agent_session *s, const char *what, const char *why)
{
	if (repeat_is_due(&s->refusal, why, clock_now_ms()))
		LOG(WARNING, "worker=%s %s=\"%s\" times=%lu: it serves on", s->setup->name, what,
		    why, (unsigned long)s->refusal.times);
}

/* The answer to agent.renew or agent.drain. */
static void take_renewed(struct agent_session *s, const json_t *result)
{
	const char *refused = json_string_value(json_object_get(result, "refused"));

	s->unanswered = 0;
	if (refused != NULL)
		log_refusal(s, "report_refused", refused);
}

/*
 * An error in answer to agent.renew or agent.drain. True if the worker serves on: the load balancer
 * has no memory just now, or is an older one that refuses a renewal for its report, and gets none
 * from now on. All others say that it does not have the worker.
 */
static bool survive_error(struct agent_session *s, json_int_t code, const char *text)
{
	if (s->step != STEP_SERVING ||
	    (code != CONTROL_ERROR_PARAMS && code != CONTROL_ERROR_INTERNAL))
		return false;
	s->unanswered = 0;
	s->unreported |= code == CONTROL_ERROR_PARAMS;
	log_refusal(s, code == CONTROL_ERROR_PARAMS ? "report_refused" : "not_renewed", text);
	return true;
}

static void take_error(struct agent_session *s, json_t *error)
{
	const char *text = "no reason given";
	json_int_t code = 0;
	char reason[512];

	json_unpack(error, "{s?I, s?s}", "code", &code, "message", &text);
	if (survive_error(s, code, text))
		return;
	if (s->step == STEP_ATTACH && code != CONTROL_ERROR_INTERNAL)
		return register_again(s, text);
	snprintf(reason, sizeof(reason), "refused by the load balancer: %s", text);
	session_fail(s, REFUSED_MS, reason);
}

static void take_result(struct agent_session *s, json_t *result)
{
	switch (s->step) {
	case STEP_ATTACH:
		return take_attached(s, result);
	case STEP_HELLO:
		return take_hello(s, result);
	case STEP_REGISTER:
		return take_registration(s, result);
	case STEP_READY:
		return take_ready(s);
	default:
		return take_renewed(s, result);
	}
}

static void take_line(struct agent_session *s, const char *line, size_t length)
{
	json_t *message = json_loadb(line, length, 0, NULL), *error, *result;
	const char *method = "";

	if (message == NULL)
		return session_refuse_line(s, "the load balancer sent a line that is not JSON; is "
					      "--lb its port for agents?");
	error = json_object_get(message, "error");
	result = json_object_get(message, "result");
	json_unpack(message, "{s?s}", "method", &method);
	if (error != NULL)
		take_error(s, error);
	else if (strcmp(method, "worker.state") == 0)
		take_state(s, json_object_get(message, "params"));
	else if (result != NULL)
		take_result(s, result);
	json_decref(message);
}

static void session_on_read(struct bufferevent *connection, void *context)
{
	struct agent_session *s = context;
	struct evbuffer *input = bufferevent_get_input(connection);
	size_t length;
	char *line;

	/* A line may end the connection, and with it the buffer. */
	while (s->connection == connection &&
	       (line = evbuffer_readln(input, &length, EVBUFFER_EOL_LF)) != NULL) {
		take_line(s, line, length);
		free(line);
	}
	if (s->connection == connection && evbuffer_get_length(input) > LINE_MAX_LEN)
		session_refuse_line(s,
				    "the load balancer sent a line longer than 64 KiB; is --lb its "
				    "port for agents?");
}

static void session_on_event(struct bufferevent *connection, short what, void *context);
static void try_next(struct agent_session *s, int error, const char *why_not_last);

/* TCP is connected: start TLS. */
static void start_tls(struct agent_session *s)
{
	char reason[512];

	s->step = STEP_SECURING;
	s->connection = agent_dial_secure(s->base, s->connection, s->setup->options, reason,
					  sizeof(reason));
	if (s->connection == NULL)
		return session_fail(s, REFUSED_MS, reason);
	bufferevent_setcb(s->connection, session_on_read, NULL, session_on_event, s);
	bufferevent_enable(s->connection, EV_READ | EV_WRITE);
	session_set_timer(s->patience, SECURE_MS);
}

static void take_connection(struct agent_session *s)
{
	s->lb_gone = false;
	if (s->step == STEP_CONNECTING && agent_dial_wants_tls(s->setup->options))
		return start_tls(s);
	if (!agent_dial_proven(s->connection))
		return session_fail(s, REFUSED_MS, "the load balancer did not prove its identity");
	session_set_timer(s->patience, PATIENCE_MS);
	if (s->detached)
		send_attach(s);
	else
		send_hello(s);
}

/* The load balancer, or TLS, has ended the connection: find the reason. */
static void report_lost_connection(struct agent_session *s, struct bufferevent *connection)
{
	char why[256], reason[384];

	/* A refusal of our certificate arrives after the handshake, in place of an answer. */
	if (s->step <= STEP_HELLO && agent_dial_reason(connection, why, sizeof(why))) {
		snprintf(reason, sizeof(reason), "TLS: %s", why);
		return session_fail(s, REFUSED_MS, reason);
	}
	if (s->step == STEP_HELLO && !agent_dial_wants_tls(s->setup->options))
		return session_fail(
			s, REFUSED_MS,
			"the load balancer closed the connection without an answer; does it "
			"want TLS (--tls-certificate or --token-file)?");
	session_lose_connection(s, "the load balancer closed the connection; trying again");
}

static void session_on_event(struct bufferevent *connection, short what, void *context)
{
	struct agent_session *s = context;

	if (what & BEV_EVENT_CONNECTED)
		return take_connection(s);
	if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)))
		return;
	if (s->step == STEP_CONNECTING)
		return try_next(s, EVUTIL_SOCKET_ERROR(),
				evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
	report_lost_connection(s, connection);
}

/* --- connecting ------------------------------------------------------------------------------ */

static void try_address(struct agent_session *s)
{
	const struct lookup_address *a = &s->known.address[s->at % s->known.n];
	struct bufferevent *connection = bufferevent_socket_new(s->base, -1, BEV_OPT_CLOSE_ON_FREE);

	s->step = STEP_CONNECTING;
	s->connection = connection;
	session_set_timer(s->patience, CONNECT_MS);
	if (connection == NULL)
		return session_fail(s, RETRY_MS, "no memory for a connection");
	bufferevent_setcb(connection, session_on_read, NULL, session_on_event, s);
	bufferevent_enable(connection, EV_READ | EV_WRITE);
	/* Unless session_on_event() was called during the call, and has replaced the connection. */
	if (bufferevent_socket_connect(connection, (const struct sockaddr *)&a->at, (int)a->size) <
		    0 &&
	    s->connection == connection)
		try_next(s, EVUTIL_SOCKET_ERROR(),
			 evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
}

/* Connect to the addresses just found, or else to those of the last lookup. */
static void take_addresses(struct agent_session *s, const char *why_none)
{
	char reason[384];

	if (s->known.n == 0) {
		snprintf(reason, sizeof(reason),
			 "cannot look up the load balancer '%s': %s; trying again",
			 s->setup->options->lb.host, why_none);
		return session_fail(s, RETRY_MS, reason);
	}
	s->tried = 0;
	s->refused = true;
	try_address(s);
}

/* Try each address once, then wait. */
static void try_next(struct agent_session *s, int error, const char *why_not_last)
{
	const struct agent_options *o = s->setup->options;
	char reason[384];

	bufferevent_free(s->connection);
	s->connection = NULL;
	s->at++;
	s->refused &= error == ECONNREFUSED;
	if (++s->tried < s->known.n)
		return try_address(s);
	s->lb_gone = s->refused;
	snprintf(reason, sizeof(reason),
		 "cannot reach the load balancer at %s:%s (addresses tried: %u): %s; trying again",
		 o->lb.host, o->lb.port_text, s->tried, why_not_last);
	session_fail(s, RETRY_MS, reason);
}

/* --- timers --------------------------------------------------------------------------------- */

static void session_on_retry(evutil_socket_t fd, short what, void *context)
{
	session_start_try(context);
}

/*
 * True when the loop has sent no heartbeat for too long. After a halt of the machine a check comes
 * late though the loop does not hang: so one check counts for two intervals at most.
 */
static bool loop_hangs(struct agent_session *s)
{
	const struct agent_options *o = s->setup->options;
	uint64_t now = clock_now_ms(), since = now - s->checked_ms;
	struct agent_loop_stats stats;

	agent_worker_stats_read(s->worker, &stats);
	s->silent_ms += since < 2 * CHECK_MS ? since : 2 * CHECK_MS;
	note_halt(s);
	s->checked_ms = now;
	if (stats.heartbeats != s->beats)
		s->silent_ms = 0;
	s->beats = stats.heartbeats;
	return s->silent_ms > o->hang_ms + s->max_run_ms;
}

/* Renew the lease, and say what the worker has done. */
static void send_renewal(struct agent_session *s)
{
	json_t *params = json_object();
	struct agent_loop_stats stats;

	if (s->hello.report && !s->unreported) {
		agent_worker_stats_read(s->worker, &stats);
		json_object_set_new(params, "report",
				    report_json(&stats, &s->setup->model.buckets,
						s->setup->health != NULL ? &s->gpu : NULL));
	}
	send_request(s, "agent.renew", params);
}

/*
 * Look at the GPU, once per second. What an operator must know goes to the load balancer at once.
 * True when the GPU cannot be relied on any more: a new process tries it by a first inference.
 */
static bool gpu_is_lost(struct agent_session *s)
{
	char was[WORKER_NOTICE_MAX];
	uint64_t now = clock_now_ms();
	bool well;

	if (s->setup->health == NULL || now - s->gpu_read_ms < GPU_MS)
		return false;
	s->gpu_read_ms = now;
	memcpy(was, s->gpu.notice, sizeof(was));
	well = gpu_health_read(s->setup->health, &s->gpu);
	if (strcmp(was, s->gpu.notice) == 0)
		return !well;
	if (s->gpu.notice[0] != '\0')
		LOG(WARNING, "worker=%s gpu=%d event=gpu_notice notice=\"%s\"", s->setup->name,
		    s->setup->gpu, s->gpu.notice);
	if (s->step == STEP_SERVING && s->connection != NULL)
		send_renewal(s);
	return !well;
}

/*
 * True when a worker that is to end has nothing left to do: its load balancer is gone, and since we
 * were asked to leave the loop has sent a heartbeat, which it does between batches, with nothing in
 * hand.
 */
static bool has_nothing_to_do(const struct agent_session *s)
{
	struct agent_loop_stats stats;

	if (!s->leaving || !s->detached || !s->lb_gone)
		return false;
	agent_worker_stats_read(s->worker, &stats);
	return stats.heartbeats != s->left_beats && stats.backlog == 0;
}

/*
 * Do links that are left serve on? Each is one lcore's, and one that stands still acknowledges
 * nothing. The load balancer ends the registration if that was not the reason: it misses the
 * heartbeats of such a link.
 */
static bool serves_on(struct agent_session *s)
{
	unsigned int all = agent_worker_links(s->worker);
	unsigned int failed = agent_worker_failed_links(s->worker);

	if (!s->active || failed == all)
		return false;
	if (failed != s->failed_links)
		LOG(WARNING,
		    "worker=%s links=%u of=%u have failed: the worker serves on by the others, "
		    "until the load balancer misses its heartbeats",
		    s->setup->name, failed, all);
	s->failed_links = failed;
	return true;
}

static void on_check(evutil_socket_t fd, short what, void *context)
{
	struct agent_session *s = context;
	char why[256];
	bool final;

	if (loop_hangs(s)) {
		LOG(ERR, "worker=%s the loop has sent no heartbeat for %u ms: this process exits",
		    s->setup->name, s->silent_ms);
		/* A thread or a kernel inside a model cannot be stopped. */
		_exit(EXIT_FAILURE);
	}
	if (gpu_is_lost(s)) {
		LOG(ERR, "worker=%s gpu=%d %s: this process exits", s->setup->name, s->setup->gpu,
		    s->gpu.notice);
		return session_end(s, true);
	}
	if (has_nothing_to_do(s)) {
		LOG(NOTICE, "worker=%s leaves: its load balancer is gone, and nothing is in hand",
		    s->setup->name);
		return session_end(s, false);
	}
	if (!agent_worker_failed(s->worker, &final, why, sizeof(why)) || (!final && serves_on(s)))
		return session_set_timer(s->check, CHECK_MS);
	if (!final)
		return session_fail_worker(s, RETRY_MS, why);
	LOG(ERR, "worker=%s %s", s->setup->name, why);
	session_end(s, true);
}

/*
 * Renew the lease. After too many renewals without an answer the registration has ended there:
 * connect again. This counts renewals, not time: after a halt of the machine the load balancer must
 * be asked first.
 */
static void on_renew(evutil_socket_t fd, short what, void *context)
{
	struct agent_session *s = context;

	if (s->unanswered++ >= RENEWALS)
		return session_lose_connection(
			s, "the load balancer has not answered for the time of a lease; trying "
			   "again");
	session_set_timer(s->renew, s->lease_ms / RENEWALS);
	send_renewal(s);
}

static void on_patience(evutil_socket_t fd, short what, void *context)
{
	struct agent_session *s = context;

	if (s->step == STEP_CONNECTING)
		return try_next(s, ETIMEDOUT, "no answer");
	if (s->step == STEP_LOOKING_UP)
		return take_addresses(s, "the name server does not answer");
	session_fail(s, RETRY_MS, "the load balancer does not answer; trying again");
}

static void on_give_up(evutil_socket_t fd, short what, void *context)
{
	struct agent_session *s = context;

	LOG(WARNING, "worker=%s the drain takes too long; leaving now", s->setup->name);
	session_end(s, false);
}

static void on_addresses(void *context, const struct lookup_addresses *found, int error)
{
	struct agent_session *s = context;

	s->lookup = NULL;
	if (error == 0)
		s->known = *found;
	if (s->step == STEP_LOOKING_UP)
		take_addresses(s, gai_strerror(error));
}

static void session_start_try(struct agent_session *s)
{
	const struct agent_options *o = s->setup->options;

	s->step = STEP_LOOKING_UP;
	session_set_timer(s->patience, LOOKUP_MS);
	/* One lookup at a time: this one may have been started by an earlier try. */
	if (s->lookup == NULL)
		s->lookup =
			agent_lookup_start(s->base, o->lb.host, o->lb.port_text, on_addresses, s);
	if (s->lookup == NULL)
		session_fail(s, RETRY_MS,
			     "no memory, or no thread, to look up the load balancer's name");
}

struct agent_session *agent_session_create(struct event_base *base, const struct agent_setup *setup,
					   void (*ended)(void *context, bool failed), void *context)
{
	struct agent_session *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->base = base;
	s->setup = setup;
	s->ended = ended;
	s->ended_context = context;
	s->retry = evtimer_new(base, session_on_retry, s);
	s->check = evtimer_new(base, on_check, s);
	s->give_up = evtimer_new(base, on_give_up, s);
	s->patience = evtimer_new(base, on_patience, s);
	s->renew = evtimer_new(base, on_renew, s);
	s->max_run_ms = setup->options->max_run_ms;
	s->again_ms = AGAIN_MS;
	if (s->patience == NULL || s->renew == NULL || s->retry == NULL || s->check == NULL ||
	    s->give_up == NULL ||
	    getrandom(&s->instance, sizeof(s->instance), 0) != sizeof(s->instance)) {
		agent_session_destroy(s);
		return NULL;
	}
	session_start_try(s);
	return s;
}

void agent_session_destroy(struct agent_session *s)
{
	if (s == NULL)
		return;
	if (s->connection != NULL)
		bufferevent_free(s->connection);
	agent_lookup_cancel(s->lookup);
	end_worker(s);
	if (s->retry != NULL)
		event_free(s->retry);
	if (s->check != NULL)
		event_free(s->check);
	if (s->patience != NULL)
		event_free(s->patience);
	if (s->give_up != NULL)
		event_free(s->give_up);
	if (s->renew != NULL)
		event_free(s->renew);
	free(s);
}

void agent_session_leave(struct agent_session *s)
{
	struct agent_loop_stats stats;

	if (s->leaving || (s->step < STEP_REGISTER && !s->detached)) {
		session_end(s, false);
		return;
	}
	s->leaving = true;
	session_set_timer(s->give_up, LEAVE_MS);
	if (s->worker != NULL) {
		agent_worker_stats_read(s->worker, &stats);
		s->left_beats = stats.heartbeats;
	}
	if (s->step == STEP_SERVING)
		return send_request(s, "agent.drain", json_object());
	/* Between two tries: how the next one ends tells whether there is anything to wait for. */
	if (s->step == STEP_IDLE) {
		evtimer_del(s->retry);
		session_start_try(s);
	}
}
