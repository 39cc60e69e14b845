/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "config/address.h"
#include "edge/view.h"
#include "observe/capture.h"
#include "conntrack_fixture.h"
#include "control_fake_lb.h"
#include "reload/reload.h"
#include "observe/flow_trace.h"

#define LCORES 2

struct lb {
	bool halted, stopping;
	uint64_t polls;
	struct lb_config config;
	struct worker_pool *pool;
	struct worker_settings *settings;
	struct conntrack *ct[LCORES];
	uint32_t now_ms;
	lb_worker_event event;
	void *context;
	unsigned int outstanding[WORKERS_MAX];
	bool released[WORKERS_MAX][3]; /* by service */
	struct lb_address address[WORKERS_MAX];
	char removed[WORKER_REASON_MAX];
	struct latency latency; /* of every service and worker */
	uint64_t counted;
};

void fake_eal(void)
{
	fixture_eal();
}

void fake_eal_sized(unsigned int megabytes)
{
	fixture_eal_sized(megabytes);
}

static void add_service(struct lb_config *config, const char *name, const char *vip, uint16_t port,
			const char *model)
{
	struct lb_service_config *s = &config->service[config->n_services++];

	snprintf(s->name, sizeof(s->name), "%s", name);
	snprintf(s->model, sizeof(s->model), "%s", model);
	lb_address_parse(vip, &s->vip);
	s->port = port;
	s->protocol = IPPROTO_UDP;
	s->policy = PICK_LEAST_OUTSTANDING;
	s->affinity = LB_AFFINITY_REQUEST;
	s->max_request = s->max_reply = 1472;
	s->queue = 1024;
}

struct lb *fake_lb_create(void)
{
	return fake_lb_create_sized(FAKE_FLOWS);
}

struct lb *fake_lb_create_sized(uint32_t flows)
{
	static const char *const names[LCORES] = {"fake0", "fake1"};
	struct lb *lb = calloc(1, sizeof(*lb));

	if (!lb)
		abort();
	lb->now_ms = 100000;
	lb->polls = 999;
	lb->config.n_lcores = LCORES;
	lb->config.lcore_cpu[0] = 2;
	lb->config.lcore_cpu[1] = 3;
	lb_address_parse("127.0.0.1", &lb->config.agents_address);
	strcpy(lb->config.port[lb->config.n_ports++].name, "front");
	strcpy(lb->config.port[lb->config.n_ports++].name, "fabric");
	lb->config.lease_ms = 5000;
	add_service(&lb->config, "chat", "192.0.2.1", 8000, "llama");
	add_service(&lb->config, "vision", "2001:db8::1", 8001, "vit");
	add_service(&lb->config, "frames", "192.0.2.1", 8002, "vit");
	lb->config.service[2].protocol = IPPROTO_TCP;
	lb->config.service[2].framing = LB_FRAMING_LENGTH;
	lb->config.service[2].ecn = true;
	lb->pool = workers_pool_create();
	lb->settings = workers_settings_create();
	for (unsigned int i = 0; i < LCORES; i++) {
		lb->ct[i] = fixture_table(names[i], flows);
		if (!lb->ct[i])
			abort();
	}
	return lb;
}

void fake_lb_destroy(struct lb *lb)
{
	for (unsigned int i = 0; i < LCORES; i++)
		conntrack_destroy(lb->ct[i]);
	workers_pool_destroy(lb->pool);
	workers_settings_destroy(lb->settings);
	free(lb);
}

void fake_lb_halt(struct lb *lb)
{
	lb->halted = true;
}

void fake_lb_stopping(struct lb *lb)
{
	lb->stopping = true;
}

bool lb_is_stopping(const struct lb *lb)
{
	return lb->stopping;
}

struct lb_config *fake_lb_config(struct lb *lb)
{
	return &lb->config;
}

void fake_lb_count(struct lb *lb, uint64_t requests)
{
	lb->counted = requests;
}

struct latency *fake_lb_latency(struct lb *lb)
{
	return &lb->latency;
}

void fake_lb_at(struct lb *lb, uint32_t now_ms)
{
	lb->now_ms = now_ms;
}

struct flow *fake_lb_flow(struct lb *lb, unsigned int lcore, uint32_t n, uint16_t service,
			  const struct worker *worker)
{
	struct flow_key key = fixture_key(n);
	struct flow *flow =
		conntrack_flow_insert(lb->ct[lcore], &key, conntrack_hash(lb->ct[lcore], &key),
				      FLOW_UDP_ONE_WAY, service, lb->now_ms);

	flow->worker = worker ? worker->number : WORKER_NONE;
	flow->worker_generation = worker ? worker->generation : 0;
	return flow;
}

static void tell(struct lb *lb, struct worker *worker)
{
	if (lb->event)
		lb->event(worker, lb->context);
}

struct worker *fake_lb_worker(struct lb *lb, const char *name)
{
	struct worker_spec spec = {.model = "llama",
				   .instance = 0x1234,
				   .slots = 64,
				   .max_request = 1472,
				   .max_reply = 1472,
				   .max_batch = 8,
				   .weight = 1,
				   .heartbeat_ms = 50};
	char error[256];
	struct worker *worker;

	snprintf(spec.name, sizeof(spec.name), "%s", name);
	worker = workers_register(lb->pool, &spec, error, sizeof(error));
	if (worker)
		fake_lb_heartbeat(lb, worker);
	return worker;
}

struct worker *fake_lb_described(struct lb *lb, const char *name, const char *model,
				 const char *version)
{
	struct model_description d = {.platform = "test",
				      .batch = true,
				      .n_inputs = 1,
				      .n_outputs = 1,
				      .input = {{"x", DATATYPE_FP32, 2, {-1, 4}}},
				      .output = {{"y", DATATYPE_FP32, 2, {-1, 4}}}};
	struct worker_spec spec = {.instance = 0x1234,
				   .slots = 64,
				   .min_request = 16,
				   .max_request = 16,
				   .max_reply = 16,
				   .max_batch = 8,
				   .weight = 1,
				   .heartbeat_ms = 50,
				   .description = &d};
	char error[256];
	struct worker *worker;

	snprintf(d.version, sizeof(d.version), "%s", version);
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	snprintf(spec.model, sizeof(spec.model), "%s", model);
	worker = workers_register(lb->pool, &spec, error, sizeof(error));
	if (worker)
		fake_lb_heartbeat(lb, worker);
	return worker;
}

void fake_lb_heartbeat(struct lb *lb, struct worker *worker)
{
	worker->heartbeat_ms = lb->now_ms;
	if (worker->state != WORKER_JOINING)
		return;
	worker->state = WORKER_ACTIVE;
	worker->reason[0] = '\0';
	tell(lb, worker);
}

void fake_lb_outstanding(struct lb *lb, struct worker *worker, unsigned int n)
{
	lb->outstanding[worker->number] = n;
	if (n == 0 && worker->state == WORKER_DRAINING) {
		snprintf(worker->reason, sizeof(worker->reason), "drained");
		tell(lb, worker);
	}
}

void fake_lb_kill(struct lb *lb, struct worker *worker)
{
	lb_worker_remove(lb, worker, "no heartbeat for 500 ms");
}

const char *fake_lb_removed(const struct lb *lb)
{
	return lb->removed;
}

/* --- the calls of lb.h that control makes --------------------------------------------------- */

const struct lb_config *lb_config_get(const struct lb *lb)
{
	return &lb->config;
}

struct worker_pool *lb_pool(struct lb *lb)
{
	return lb->pool;
}

void lb_on_worker_event(struct lb *lb, lb_worker_event event, void *context)
{
	lb->event = event;
	lb->context = context;
}

static bool is_served(const struct lb *lb, const char *model)
{
	for (unsigned int i = 0; i < lb->config.n_services; i++)
		if (strcmp(lb->config.service[i].model, model) == 0)
			return true;
	return false;
}

int lb_hello(struct lb *lb, const char *model, const struct lb_address *agent,
	     struct lb_hello *hello, char *error, size_t error_size)
{
	if (!is_served(lb, model)) {
		snprintf(error, error_size, "no service has the model '%s'; add one", model);
		return -ENOENT;
	}
	hello->n_lcores = LCORES;
	hello->path_mtu = 1024;
	hello->address = *agent;
	hello->max_request = hello->max_reply = 1472;
	hello->worker_timeout_ms = 500;
	hello->ack_timeout = 14;
	hello->retry_count = 7;
	return 0;
}

int lb_request_check(const struct lb *lb, const char *model, uint32_t min_request, char *error,
		     size_t error_size)
{
	if (min_request <= 1472)
		return 0;
	snprintf(error, error_size, "min_request: %u are more than 1472", min_request);
	return -EINVAL;
}

int lb_registration_check(const struct lb *lb, const struct lb_registration *registration,
			  char *error, size_t error_size)
{
	if (!workers_spec_is_valid(&registration->worker, error, error_size) ||
	    !workers_spec_agrees(lb->pool, &registration->worker, error, error_size))
		return -EINVAL;
	if (registration->n_links == LCORES)
		return 0;
	snprintf(error, error_size, "%u links; give one for each of the %d lcores",
		 registration->n_links, LCORES);
	return -EINVAL;
}

struct worker *lb_worker_register(struct lb *lb, const struct lb_registration *registration,
				  struct lb_link_info *info, uint32_t *path_mtu, char *error,
				  size_t error_size)
{
	struct worker *worker;

	if (lb_registration_check(lb, registration, error, error_size) < 0)
		return NULL;
	worker = workers_register(lb->pool, &registration->worker, error, error_size);
	if (!worker)
		return NULL;
	for (uint16_t i = 0; i < LCORES; i++)
		info[i] = (struct lb_link_info){.lcore = i,
						.qpn = 0x100u + i,
						.psn = 7,
						.reply_rkey = 0xabcd,
						.reply_address = 0x10000000,
						.reply_stride = 2048,
						.chunk = 2048};
	*path_mtu = registration->path_mtu < 1024 ? registration->path_mtu : 1024;
	lb->outstanding[worker->number] = 0;
	lb->address[worker->number] = registration->address;
	tell(lb, worker);
	return worker;
}

const struct lb_address *lb_worker_address(const struct lb *lb, const struct worker *worker)
{
	return &lb->address[worker->number];
}

void lb_worker_ready(struct lb *lb, struct worker *worker)
{
	worker->ready = true;
	snprintf(worker->reason, sizeof(worker->reason), "waits for a heartbeat");
	tell(lb, worker);
}

void lb_worker_drain(struct lb *lb, struct worker *worker)
{
	worker->state = WORKER_DRAINING;
	snprintf(worker->reason, sizeof(worker->reason), "asked to drain");
	tell(lb, worker);
}

/* As the load balancer does without pins: all workers of a model serve. */
bool lb_worker_serves(const struct lb *lb, const struct worker *worker, unsigned int service)
{
	return worker->state == WORKER_ACTIVE &&
	       strcmp(worker->spec.model, lb->config.service[service].model) == 0 &&
	       !lb->released[worker->number][service];
}

unsigned int lb_service_workers(const struct lb *lb, unsigned int service, unsigned int *spares)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < WORKERS_MAX; i++) {
		const struct worker *worker = workers_get(lb->pool, i);

		n += worker && lb_worker_serves(lb, worker, service);
	}
	if (spares)
		*spares = 0;
	return n;
}

int lb_worker_assign(struct lb *lb, const struct worker *worker, const unsigned int *service,
		     unsigned int n, char *error, size_t error_size)
{
	for (unsigned int i = 0; i < n; i++) {
		if (strcmp(worker->spec.model, lb->config.service[service[i]].model) != 0) {
			snprintf(error, error_size, "another model");
			return -EINVAL;
		}
	}
	for (unsigned int i = 0; i < n; i++)
		lb->released[worker->number][service[i]] = false;
	return 0;
}

int lb_worker_release(struct lb *lb, const struct worker *worker, const unsigned int *service,
		      unsigned int n, char *error, size_t error_size)
{
	for (unsigned int i = 0; i < n; i++)
		lb->released[worker->number][service[i]] = true;
	return 0;
}

const struct worker_settings *lb_settings(const struct lb *lb)
{
	return lb->settings;
}

int lb_settings_drain(struct lb *lb, const char *name, bool drain, char *error, size_t error_size)
{
	struct worker *worker = workers_find(lb->pool, name);
	int ret = workers_settings_drain(lb->settings, name, drain);

	if (ret < 0)
		snprintf(error, error_size, "no room");
	if (ret < 0 || !worker)
		return ret;
	worker->drain = drain;
	if (drain && worker->state != WORKER_DRAINING) {
		worker->state = WORKER_DRAINING;
		snprintf(worker->reason, sizeof(worker->reason), "an operator drains it");
		tell(lb, worker);
	} else if (!drain && worker->state == WORKER_DRAINING) {
		worker->state = WORKER_ACTIVE;
		worker->reason[0] = '\0';
		tell(lb, worker);
	}
	return 0;
}

int lb_settings_replace(struct lb *lb, struct worker *old, const struct worker *successor,
			bool partly, char *error, size_t error_size)
{
	int ret = lb_settings_drain(lb, old->spec.name, true, error, error_size);

	/* One without requests in hand is drained at once. */
	if (ret == 0 && lb->outstanding[old->number] > 0) {
		workers_settings_drain(lb->settings, old->spec.name, false);
		ret = workers_settings_replace(lb->settings, old->spec.name, successor->spec.name,
					       partly);
	}
	return ret;
}

int lb_replace_gap(struct lb *lb, struct worker *old, struct worker *successor)
{
	for (unsigned int i = 0; i < lb->config.n_services; i++)
		if (strcmp(lb->config.service[i].model, old->spec.model) == 0 &&
		    !lb->released[old->number][i] && lb->released[successor->number][i])
			return (int)i;
	return -1;
}

int lb_settings_weight(struct lb *lb, const char *name, uint32_t weight, char *error,
		       size_t error_size)
{
	struct worker *worker = workers_find(lb->pool, name);

	if (worker)
		worker->spec.weight = weight ? weight : worker->own_weight;
	return workers_settings_weight(lb->settings, name, weight);
}

int lb_settings_forget(struct lb *lb, const char *name, char *error, size_t error_size)
{
	if (!workers_settings_find(lb->settings, name)) {
		snprintf(error, error_size, "nothing is set for a worker '%s'", name);
		return -ENOENT;
	}
	lb_settings_drain(lb, name, false, error, error_size);
	lb_settings_weight(lb, name, 0, error, error_size);
	workers_settings_forget(lb->settings, name);
	return 0;
}

uint64_t lb_worker_lost(const struct lb *lb, const struct worker *worker)
{
	return lb->outstanding[worker->number];
}

bool lb_worker_drained(struct lb *lb, const struct worker *worker)
{
	return worker->state == WORKER_DRAINING && lb->outstanding[worker->number] == 0;
}

void lb_worker_remove(struct lb *lb, struct worker *worker, const char *reason)
{
	snprintf(lb->removed, sizeof(lb->removed), "%s", reason);
	snprintf(worker->reason, sizeof(worker->reason), "%s", reason);
	workers_remove(lb->pool, worker);
	tell(lb, worker);
}

void lb_worker_control_lost(struct lb *lb, struct worker *worker, bool closed)
{
	if (worker->state != WORKER_ACTIVE) {
		lb_worker_remove(lb, worker, "connection closed");
		return;
	}
	worker->uncontrolled = true;
	snprintf(worker->reason, sizeof(worker->reason), "control connection lost%s",
		 closed ? ", closed" : "");
}

void lb_worker_control_back(struct lb *lb, struct worker *worker)
{
	worker->uncontrolled = false;
	worker->reason[0] = '\0';
}

bool lb_port_up(const struct lb *lb, unsigned int port)
{
	return port == 0;
}

unsigned int lb_lcores(const struct lb *lb)
{
	return LCORES;
}

void lb_lcore_stats_read(const struct lb *lb, unsigned int lcore, struct lb_lcore_stats *out)
{
	memset(out, 0, sizeof(*out));
	out->packets_in = 1234567 * (lcore + 1);
	out->bytes_in = 3565158;
	/* The lcores poll between any two reads, unless they are halted. */
	out->polls = lb->halted ? lb->polls : ++((struct lb *)lb)->polls;
	out->idle_polls = out->polls / 4;
	out->stage_cycles[LB_STAGE_INGRESS] = 4400;
	out->stage_items[LB_STAGE_INGRESS] = 100;
	out->drop[LB_DROP_IP_CHECKSUM] = 5;
	for (unsigned int i = LB_NOTICE_BUSY; i < LB_NOTICE_CODES; i++)
		out->notice[i] = i == LB_NOTICE_BUSY ? 7 : 1;
	out->requests = lb->counted;
}

void lb_memory_read(const struct lb *lb, unsigned int lcore, struct lb_memory *out)
{
	*out = (struct lb_memory){.packets = 1000 * (lcore + 1), .packets_max = 10000};
}

void lb_service_stats_read(const struct lb *lb, unsigned int service, struct lb_service_stats *out)
{
	memset(out, 0, sizeof(*out));
	out->requests = 10 + service + lb->counted;
}

void lb_service_latency_read(const struct lb *lb, unsigned int service, struct latency *out)
{
	*out = lb->latency;
}

void lb_worker_latency_read(const struct lb *lb, const struct worker *worker, struct latency *out)
{
	memcpy(out, &lb->latency, LATENCY_LINK_SIZE);
}

void lb_worker_stats_read(const struct lb *lb, const struct worker *worker,
			  struct lb_link_stats *out)
{
	memset(out, 0, sizeof(*out));
	out->requests = 110;
	out->replies = 100;
	out->outstanding = lb->outstanding[worker->number];
	out->credits = 118;
	out->wait_ns = 1500000;
	out->run_ns = 40000000;
	out->total_ns = 50000000;
	out->packets_resent = 3;
	out->cnps_received = 17;
	out->rate = 125000000;
}

const struct conntrack *lb_conntrack(const struct lb *lb, unsigned int lcore)
{
	return lb->ct[lcore];
}

uint32_t lb_now_ms(const struct lb *lb)
{
	return lb->now_ms;
}

const char *lb_stage_name(enum lb_stage stage)
{
#define STAGE_NAME(symbol, name) [LB_STAGE_##symbol] = name,
	static const char *const names[LB_STAGES] = {LB_STAGE_LIST(STAGE_NAME)};
#undef STAGE_NAME

	return names[stage];
}

const char *lb_drop_name(enum lb_drop reason)
{
#define DROP_NAME(symbol, name, text) [LB_DROP_##symbol] = name,
	static const char *const names[LB_DROPS] = {LB_DROP_LIST(DROP_NAME)};
#undef DROP_NAME

	return names[reason];
}

const char *lb_drop_text(enum lb_drop reason)
{
#define DROP_TEXT(symbol, name, text) [LB_DROP_##symbol] = text,
	static const char *const texts[LB_DROPS] = {LB_DROP_LIST(DROP_TEXT)};
#undef DROP_TEXT

	return texts[reason];
}

struct conntrack *fake_lb_conntrack(struct lb *lb, unsigned int lcore)
{
	return lb->ct[lcore];
}

/* --- and those of reload.h ---------------------------------------------------------------------
 */

const char *lb_reload_file(const struct lb *lb)
{
	return "/etc/doorbell/fake.yaml";
}

int lb_reload_diff(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
		   char *error, size_t size)
{
	static struct lb_config file;
	int ret = 0;

	/* The daemon's own file equals the running configuration; any other file is read. */
	if (path == NULL)
		return 0;
	ret = lb_config_load(path, &file, error, size);
	if (ret == 0)
		lb_config_diff(&lb->config, &file, visit, context);
	return ret;
}

int lb_reload_check(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
		    char *error, size_t size)
{
	int ret = lb_reload_diff(lb, path, visit, context, error, size);

	if (ret < 0 || path == NULL)
		return ret;
	snprintf(error, size, "flows changed: needs a restart");
	return -EBUSY;
}

int lb_reload_apply(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
		    char *error, size_t size)
{
	return lb_reload_check(lb, path, visit, context, error, size);
}

/* --- and those of flow_trace.h ---------------------------------------------------------------- */

static struct trace_flow traced;
static uint32_t trace_id, trace_left;

const char *lb_trace_step_name(enum trace_step step)
{
	static const char *const names[TRACE_STEPS] = {
#define ROW(symbol, name) [TRACE_##symbol] = name,
		TRACE_STEP_LIST(ROW)
#undef ROW
	};

	return names[step];
}

int lb_trace_start(struct lb *lb, const struct trace_flow *flow, uint32_t *id, char *error,
		   size_t size)
{
	traced = *flow;
	trace_left = TRACE_STEPS;
	*id = ++trace_id;
	return 0;
}

/* Each step once, with numbers that no flow has. */
int lb_trace_read(struct lb *lb, uint32_t id, struct trace_event *out, unsigned int n,
		  uint64_t *lost)
{
	unsigned int got = 0;

	if (id != trace_id)
		return -ENOENT;
	for (; trace_left > 0 && got < n; got++, trace_left--)
		out[got] = (struct trace_event){
			.at_ns = 1000,
			.tag = 0xabc,
			.step = TRACE_STEPS - trace_left,
			.a = traced.client_port,
			.b = 65535,
			.c = 65535,
			.d = 1,
		};
	*lost = 0;
	return (int)got;
}

void lb_trace_stop(struct lb *lb, uint32_t id)
{
	trace_id++;
}

/* --- and those of capture.h: a port "clients", whose file is a few bytes ------------------------
 */

static struct capture_status captured;
static uint32_t capture_id;
static bool capture_fails; /* makes the start of a capture fail */

const char *lb_capture_state_name(enum capture_state state)
{
	static const char *const names[CAPTURE_STATES] = {
#define ROW(symbol, name) [CAPTURE_##symbol] = name,
		CAPTURE_STATE_LIST(ROW)
#undef ROW
	};

	return names[state];
}

int lb_capture_start(struct lb *lb, const struct capture_params *params, uint32_t *id, char *error,
		     size_t size)
{
	if (strcmp(params->port, "clients") != 0) {
		snprintf(error, size, "no port '%s'; ports are: clients", params->port);
		return -ENOENT;
	}
	if (params->snaplen == 99) {
		snprintf(error, size, "filter: %s", params->program);
		return -EINVAL;
	}
	if (capture_id != 0 && captured.state < CAPTURE_COUNT) {
		snprintf(error, size, "port clients is being captured");
		return -EBUSY;
	}
	captured = (struct capture_status){.state = CAPTURE_WAITING};
	capture_fails = params->snaplen == 98;
	*id = ++capture_id;
	return 0;
}

int lb_capture_begin(struct lb *lb, uint32_t id, int fd)
{
	if (capture_fails) {
		captured = (struct capture_status){.state = CAPTURE_DISCONNECTED, .done = true};
		return -ENOMEM;
	}
	captured.captured = 3;
	captured.bytes = send(fd, "packets", 7, MSG_NOSIGNAL) == 7 ? 7 : 0;
	shutdown(fd, SHUT_WR);
	captured.state = CAPTURE_COUNT;
	captured.done = true;
	return 0;
}

int lb_capture_read(const struct lb *lb, uint32_t id, struct capture_status *out)
{
	*out = captured;
	return id == capture_id ? 0 : -ENOENT;
}

void lb_capture_stop(struct lb *lb, uint32_t id)
{
	if (id == capture_id && captured.state < CAPTURE_COUNT)
		captured = (struct capture_status){.state = CAPTURE_STOPPED, .done = true};
}

bool lb_connection_read(struct lb *lb, unsigned int lcore, uint64_t handle,
			struct lb_connection *out)
{
	const struct flow *flow = conntrack_flow_get(fake_lb_conntrack(lb, lcore), handle);

	*out = (struct lb_connection){0};
	if (flow == NULL || !flow_state_is_tcp(flow->state))
		return false;
	*out = (struct lb_connection){
		.state = TCP_ESTABLISHED,
		.phase = TCP_PHASE_RECOVERY,
		.cwnd = 14480,
		.srtt_us = 1500,
		.retransmits = 3,
		.held_bytes = 700,
		.requests = 2,
		.mss = 1448,
		.sack = true,
		.secured = true,
		.tls_version = 0x0304,
	};
	return true;
}

bool lb_tcp_stats_read(const struct lb *lb, unsigned int lcore, struct lb_tcp_stats *out)
{
	uint64_t *event = (uint64_t *)&out->events;

	*out = (struct lb_tcp_stats){
		.connections = 41 + lcore, .connections_max = 1000, .handshakes = 5};
	for (unsigned int i = 0; i < sizeof(out->events) / sizeof(*event); i++)
		event[i] = 100 + i;
	return true;
}
