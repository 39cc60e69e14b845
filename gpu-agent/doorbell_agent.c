/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Composes the agent: loads the model, starts the RNIC, and starts the sessions with the load
 * balancer; after that this thread sleeps. Main thread, except doorbell_agent_stop().
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include "agent.h"
#include "canary.h"
#include "loop/link_memory.h"
#include "dial.h"
#include "doorbell_agent.h"
#include "labels.h"
#include "loop/graph_model.h"
#include "runtime/cpus.h"
#include "runtime/eal_end.h"
#include "runtime/kernel_port.h"
#include "runtime/log_sink.h"
#include "runtime/notify.h"
#include "rnic/soft_rnic.h"
#include "supervisor.h"
#include "rnic/verbs_rnic.h"

/* Start the EAL. lcore 0 is this thread, lcore 1 the RNIC; both may run on all CPUs. */
static int agent_start_eal(const struct agent_options *o, char *program)
{
	char cpus[CPUS_TEXT_MAX], lcores[CPUS_TEXT_MAX + 32], memory[16], level[64], *arguments[16];
	int argc = 0;

	snprintf(lcores, sizeof(lcores), "--lcores=(0-1)@(%s)", cpus_allowed(cpus));
	snprintf(memory, sizeof(memory), "%u", o->memory_mb);
	snprintf(level, sizeof(level), "--log-level=doorbell.*:%s",
		 log_level_name((int)RTE_LOG_ERR + o->log_level));
	arguments[argc++] = program;
	arguments[argc++] = lcores;
	/* The verbs engine has no packets, so it needs no hugepages. */
	if (o->hugepages && !o->verbs) {
		arguments[argc++] = "--in-memory";
	} else {
		arguments[argc++] = "--no-huge";
		arguments[argc++] = "--no-shconf";
	}
	arguments[argc++] = "-m";
	arguments[argc++] = memory;
	/* The name of a PCI device is its address, which has colons; no other device is probed. */
	if (!o->verbs && strchr(o->device, ':') != NULL && strncmp(o->device, "net_", 4) != 0) {
		arguments[argc++] = "--allow";
		arguments[argc++] = (char *)o->device;
	} else {
		arguments[argc++] = "--no-pci";
	}
	arguments[argc++] = "--no-telemetry";
	arguments[argc++] = "--log-level=lib.*:warning";
	arguments[argc++] = "--log-level=pmd.*:warning";
	arguments[argc++] = level;
	arguments[argc] = NULL;
	return rte_eal_init(argc, arguments) < 0 ? -rte_errno : 0;
}

/* --- workers: one, or several in one process ------------------------------------------------ */

struct workers {
	unsigned int n, left;
	bool failed;
	struct event_base *base;
	int stop_fd;
	struct notify notify;
	struct event *pulse, *reminder;
	struct graph_model *graph; /* the model; NULL: a plug-in */
	struct agent_setup setup[AGENT_WORKERS_MAX];
	struct agent_session *session[AGENT_WORKERS_MAX];
};

int agent_gpu_list(const char *text, int n_gpus, int out[AGENT_WORKERS_MAX])
{
	char *end;
	int n = 0;

	for (;; text = end + 1) {
		long gpu = strtol(text, &end, 10);

		if (end == text || gpu >= n_gpus || n == AGENT_WORKERS_MAX) {
			log_sink_print(
				RTE_LOG_ERR,
				"doorbell-agent: --gpu: there is no GPU '%.*s' here; they are 0 to "
				"%d",
				(int)strcspn(text, ","), text, n_gpus - 1);
			return -1;
		}
		for (int i = 0; i < n; i++)
			if (out[i] == gpu) {
				log_sink_print(
					RTE_LOG_ERR,
					"doorbell-agent: --gpu: GPU %ld is given twice; give "
					"it once",
					gpu);
				return -1;
			}
		out[n++] = gpu;
		if (*end == '\0')
			return n;
	}
}

/* Choose the GPUs that run <model>, and log the choice. Returns their number, 0 when the CPU runs
 * it, or -1 after an error was logged. */
static int choose_gpus(const struct agent_options *o, const struct loaded_model *model, int *gpus)
{
	bool automatic = strcmp(o->gpus, "auto") == 0;
	char why[256] = "--gpu none";
	int n_gpus;

	if (strcmp(o->gpus, "none") == 0)
		goto on_cpu;
	n_gpus = agent_gpus(why, sizeof(why));
	if (!agent_model_has_cuda_side(model->model)) {
		snprintf(why, sizeof(why), "model '%s' has no CUDA side%s", model->model->name,
			 model->model->capture == NULL ? "" : " for replies in pieces (ABI 5)");
		n_gpus = 0;
	}
	if (n_gpus == 0 && !automatic) {
		log_sink_print(RTE_LOG_ERR, "doorbell-agent: --gpu %s: %s", o->gpus, why);
		return -1;
	}
	if (n_gpus == 0)
		goto on_cpu;
	if (strcmp(o->gpus, "all") == 0) {
		n_gpus = n_gpus < AGENT_WORKERS_MAX ? n_gpus : AGENT_WORKERS_MAX;
		for (int i = 0; i < n_gpus; i++)
			gpus[i] = i;
		return n_gpus;
	}
	return agent_gpu_list(automatic ? "0" : o->gpus, n_gpus, gpus);

on_cpu:
	rte_log(RTE_LOG_NOTICE, agent_logtype, "agent: worker=%s loop=cpu reason=\"%s\"\n", o->name,
		why);
	return 0;
}

static void unload_models(struct workers *w)
{
	for (unsigned int i = 0; i < w->n; i++) {
		agent_model_unload(&w->setup[i].model);
		gpu_health_close(w->setup[i].health);
		w->setup[i].health = NULL;
	}
}

/* Watch the worker's GPU, where NVIDIA's management library is there. */
static void watch_gpu(struct agent_setup *setup)
{
	char bus[32] = "", why[256];

	agent_gpu_bus(setup->gpu, bus, sizeof(bus));
	setup->health = gpu_health_open(NVML_LIBRARY, bus, why, sizeof(why));
	if (setup->health == NULL)
		rte_log(RTE_LOG_NOTICE, agent_logtype,
			"agent: worker=%s gpu_health=unknown reason=\"%s\"\n", setup->name, why);
}

void agent_worker_name(char name[AGENT_NAME_MAX], const char *host, const char *kind, int number)
{
	snprintf(name, AGENT_NAME_MAX, "%.48s-%s%d", host, kind, number);
}

/* Add a worker, with a model loaded for it alone. <gpu> -1: on a CPU. False after an error was
 * logged. */
static bool add_worker(struct workers *w, const struct agent_options *o, int gpu, bool numbered)
{
	struct agent_setup *setup = &w->setup[w->n];
	char error[512], name[128];
	uint32_t least_mb;
	int ret;

	if (!gpu_budget_begin(&setup->budget, gpu < 0 ? 0 : o->gpu_memory_mb, gpu, error,
			      sizeof(error))) {
		log_sink_print(RTE_LOG_ERR, "doorbell-agent: --gpu-memory-mb %u: %s",
			       o->gpu_memory_mb, error);
		return false;
	}
	if (w->graph != NULL)
		ret = agent_model_open(&setup->model, &w->graph->model, w->graph->arguments,
				       o->max_batch, error, sizeof(error));
	else
		ret = agent_model_load(&setup->model, o->model, o->model_arguments, o->max_batch,
				       error, sizeof(error));
	if (ret < 0) {
		log_sink_print(RTE_LOG_ERR, "doorbell-agent: %s", error);
		return false;
	}
	w->n++;
	least_mb = link_memory_least_mb(setup->model.shape.max_request);
	if (o->payload_mb != 0 && o->payload_mb < least_mb) {
		log_sink_print(RTE_LOG_ERR,
			       "doorbell-agent: --payload-mb: %u MB do not hold one request of the "
			       "model, which takes up to %u bytes; use %u or more",
			       o->payload_mb, setup->model.shape.max_request, least_mb);
		return false;
	}
	setup->options = o;
	setup->loop = gpu < 0 ? &agent_loop_cpu : &agent_loop_cuda;
	setup->gpu = gpu;
	agent_places_find(&setup->places, o, gpu);
	if (setup->model.shape.max_batch > setup->loop->batch_max) {
		rte_log(RTE_LOG_NOTICE, agent_logtype,
			"agent: worker=%s max_batch=%u: this loop takes %u at most, and uses "
			"that\n",
			o->name, setup->model.shape.max_batch, setup->loop->batch_max);
		agent_model_limit(&setup->model, setup->loop->batch_max);
	}
	if (!o->batch_sizes)
		agent_model_keep_one_size(&setup->model);
	snprintf(setup->name, sizeof(setup->name), "%s", o->name);
	if (numbered && gpu >= 0)
		agent_worker_name(setup->name, o->name, "gpu", gpu);
	else if (numbered)
		agent_worker_name(setup->name, o->name, "cpu", (int)w->n - 1);
	if (gpu >= 0) {
		agent_gpu_name(gpu, name, sizeof(name));
		rte_log(RTE_LOG_NOTICE, agent_logtype,
			"agent: worker=%s loop=cuda gpu=%d name=\"%s\"\n", setup->name, gpu, name);
		watch_gpu(setup);
	}
	return true;
}

/* Decide where the rings of a worker lie. False after an error was logged. */
static bool choose_memory(struct agent_setup *setup)
{
	const struct agent_options *o = setup->options;
	bool on_gpu = setup->loop == &agent_loop_cuda;
	char *why = setup->memory_why;

	setup->memory_on_gpu = o->verbs && on_gpu && o->memory != AGENT_MEMORY_HOST;
	if (!on_gpu && o->memory == AGENT_MEMORY_GPU) {
		log_sink_print(
			RTE_LOG_ERR,
			"doorbell-agent: --memory gpu: the model runs on a CPU; leave it out");
		return false;
	}
	if (!setup->memory_on_gpu ||
	    gpu_memory_is_ordered(setup->gpu, why, sizeof(setup->memory_why))) {
		why[0] = '\0';
		return true;
	}
	if (o->memory == AGENT_MEMORY_GPU) {
		log_sink_print(RTE_LOG_ERR, "doorbell-agent: --memory gpu: %s; use --memory host",
			       why);
		return false;
	}
	setup->memory_on_gpu = false;
	return true;
}

/* A plug-in may be for GPUs only. False after an error was logged. */
static bool runs_here(const struct agent_setup *setup)
{
	const struct agent_model *model = setup->model.model;

	if (agent_model_has_cpu_side(model))
		return true;
	log_sink_print(
		RTE_LOG_ERR,
		"doorbell-agent: --model: model '%s' has no run(), which a CPU needs; give it one, "
		"or a GPU: the line above says why none runs it",
		model->name);
	return false;
}

static bool choose_memories(struct workers *w)
{
	for (unsigned int i = 0; i < w->n; i++)
		if (!choose_memory(&w->setup[i]))
			return false;
	return true;
}

/* Add all workers that the options ask for. False after an error was logged. */
static bool make_workers(struct workers *w, const struct agent_options *o)
{
	int gpus[AGENT_WORKERS_MAX], n;

	if (w->graph != NULL && strcmp(o->gpus, "auto") != 0) {
		log_sink_print(RTE_LOG_ERR,
			       "doorbell-agent: --gpu: the graph can run on its GPU %d only; leave "
			       "--gpu out",
			       w->graph->graph.gpu);
		return false;
	}
	if (w->graph != NULL && o->workers > 1) {
		log_sink_print(
			RTE_LOG_ERR,
			"doorbell-agent: --workers: a graph is served by one worker; leave it out");
		return false;
	}
	if (w->graph != NULL)
		return add_worker(w, o, w->graph->graph.gpu, false);
	if (!add_worker(w, o, -1, o->workers > 1))
		return false;
	n = o->workers > 1 ? 0 : choose_gpus(o, &w->setup[0].model, gpus);
	if (n < 0)
		return false;
	if (n == 0 && !runs_here(&w->setup[0]))
		return false;
	if (n == 0 && o->gpu_memory_mb != 0) {
		log_sink_print(
			RTE_LOG_ERR,
			"doorbell-agent: --gpu-memory-mb: the model runs on CPUs here; leave "
			"it out");
		return false;
	}
	if (n == 0) {
		while (w->n < o->workers)
			if (!add_worker(w, o, -1, true))
				return false;
		return true;
	}
	/* The first model was loaded only to see whether it has a CUDA side. */
	unload_models(w);
	w->n = 0;
	for (int i = 0; i < n; i++)
		if (!add_worker(w, o, gpus[i], n > 1))
			return false;
	return true;
}

/* --- stopping ----------------------------------------------------------------------------------
 */

static int stop_fd = -1; /* atomic */
static int stops;        /* atomic: requests to stop that were not handled yet */

void doorbell_agent_stop(void)
{
	const uint64_t one = 1;
	int before = errno, fd;
	ssize_t written = 0;

	__atomic_add_fetch(&stops, 1, __ATOMIC_SEQ_CST);
	fd = __atomic_load_n(&stop_fd, __ATOMIC_SEQ_CST);
	if (fd >= 0)
		written = write(fd, &one, sizeof(one));
	(void)written; /* fails only when the counter is full of earlier requests */
	errno = before;
}

static void agent_on_stop(evutil_socket_t fd, short what, void *context)
{
	struct workers *w = context;
	uint64_t ignored;

	if (read(fd, &ignored, sizeof(ignored)) < 0)
		return;
	/* The second request ends them at once. */
	for (int n = __atomic_exchange_n(&stops, 0, __ATOMIC_SEQ_CST); n > 0; n--)
		for (unsigned int i = 0; i < w->n; i++)
			agent_session_leave(w->session[i]);
}

/*
 * A worker has ended. If it failed for good, only a new process helps: the others drain, and the
 * service manager or supervisor starts all of them again.
 */
static void on_worker_ended(void *context, bool failed)
{
	struct workers *w = context;

	w->left--;
	if (failed && !w->failed) {
		w->failed = true;
		for (unsigned int i = 0; i < w->n; i++)
			if (w->session[i] != NULL)
				agent_session_leave(w->session[i]);
	}
	if (w->left == 0)
		event_base_loopbreak(w->base);
}

/* Tell the watchdog that this thread runs. A loop that hangs is found by its session. */
static void agent_on_pulse(evutil_socket_t fd, short what, void *context)
{
	const struct workers *w = context;
	uint64_t us = w->notify.watchdog_us / 4;
	struct timeval t = {.tv_sec = (time_t)(us / 1000000),
			    .tv_usec = (suseconds_t)(us % 1000000)};

	notify_send(&w->notify, "WATCHDOG=1");
	evtimer_add(w->pulse, &t);
}

/* Once a day: warn before the certificate ends. */
static void on_certificate_check(evutil_socket_t fd, short what, void *context)
{
	const struct timeval day = {.tv_sec = 86400};
	struct workers *w = context;
	char why[512];

	if (agent_dial_ends_soon(w->setup[0].options, why, sizeof(why)))
		rte_log(RTE_LOG_WARNING, agent_logtype,
			"agent: worker=%s event=certificate_validity reason=\"the certificate "
			"%s\"\n",
			w->setup[0].name, why);
	evtimer_add(w->reminder, &day);
}

/* Run all sessions until every worker has left. Returns the exit status. */
static int serve_until_left(struct workers *w, struct rnic *rnic)
{
	struct event *stop = NULL;
	bool ready = true;

	w->base = event_base_new();
	w->left = w->n;
	for (unsigned int i = 0; ready && w->base != NULL && i < w->n; i++) {
		w->setup[i].rnic = rnic;
		w->session[i] = agent_session_create(w->base, &w->setup[i], on_worker_ended, w);
		ready = w->session[i] != NULL;
	}
	if (w->base != NULL && ready) {
		stop = event_new(w->base, w->stop_fd, EV_READ | EV_PERSIST, agent_on_stop, w);
		w->pulse = evtimer_new(w->base, agent_on_pulse, w);
		w->reminder = evtimer_new(w->base, on_certificate_check, w);
	}
	ready = stop != NULL && w->pulse != NULL && w->reminder != NULL;
	if (ready) {
		event_add(stop, NULL);
		/* Ready, though it may still take long to find the load balancer. */
		notify_send(&w->notify, "READY=1\nSTATUS=model %s, %u worker%s",
			    w->setup[0].model.model->name, w->n, w->n == 1 ? "" : "s");
		if (w->notify.watchdog_us > 0)
			agent_on_pulse(-1, 0, w);
		on_certificate_check(-1, 0, w);
		event_base_dispatch(w->base);
		notify_send(&w->notify, "STOPPING=1");
	}
	if (stop != NULL)
		event_free(stop);
	if (w->pulse != NULL)
		event_free(w->pulse);
	if (w->reminder != NULL)
		event_free(w->reminder);
	for (unsigned int i = 0; i < w->n; i++)
		agent_session_destroy(w->session[i]);
	if (w->base != NULL)
		event_base_free(w->base);
	return ready && !w->failed ? EXIT_SUCCESS : EXIT_FAILURE;
}

static struct rnic *agent_open_soft(const struct agent_options *o,
				    const struct soft_rnic_params *params, char *error, size_t size)
{
	struct rnic *rnic = soft_rnic_create(params, error, size);
	const char *without_xdp;

	if (rnic == NULL || !kernel_port_is(o->device))
		return rnic;
	rte_log(RTE_LOG_INFO, agent_logtype, "agent: worker=%s device=%s driver=%s\n", o->name,
		o->device, soft_rnic_driver(rnic, &without_xdp));
	if (without_xdp[0] != '\0')
		rte_log(RTE_LOG_NOTICE, agent_logtype,
			"agent: worker=%s uses af_packet, which costs more per packet than AF_XDP: "
			"%s\n",
			o->name, without_xdp);
	return rnic;
}

/* The GPU of every worker must be able to post. */
static bool workers_can_ring(void *context, const struct mlx5_queue *queue, char *why, size_t size)
{
	const struct workers *w = context;

	for (unsigned int i = 0; i < w->n; i++)
		if (w->setup[i].loop->can_ring != NULL &&
		    !w->setup[i].loop->can_ring(w->setup[i].gpu, queue, why, size))
			return false;
	return true;
}

static struct rnic *agent_open_rnic(const struct agent_options *o, struct workers *w, bool on_gpu,
				    char *error, size_t size)
{
	struct verbs_rnic_params verbs = {
		.device = o->device,
		.address = o->address,
		.traffic_class = o->traffic_class,
		.idle_sleep = o->idle_sleep,
		.always_proxy = !o->may_post,
		.can_ring = workers_can_ring,
		.context = w,
	};
	struct soft_rnic_params soft = {
		.device = o->device,
		.mtu = o->mtu,
		.address = o->address,
		.prefix = o->prefix,
		.gateway = o->gateway,
		.idle_sleep = o->idle_sleep,
		.claimed = o->device_claimed,
		.gpu_reads = on_gpu,
		.dcqcn = o->dcqcn,
		.queues = (uint16_t)o->queues,
	};
	char found[384];
	struct rnic *rnic;

	if (!o->verbs)
		return agent_open_soft(o, &soft, error, size);
	rnic = verbs_rnic_create(&verbs, found, sizeof(found), error, size);
	if (rnic != NULL)
		rte_log(RTE_LOG_NOTICE, agent_logtype, "agent: worker=%s %s\n", o->name, found);
	return rnic;
}

/* Each model answers before its worker registers. False after an error was logged; with a model
 * that hangs the process ends. */
static bool try_models(struct workers *w)
{
	char why[512];

	for (unsigned int i = 0; i < w->n; i++) {
		const struct agent_setup *setup = &w->setup[i];
		int ret = agent_canary(setup, why, sizeof(why));

		if (ret < 0) {
			log_sink_print(RTE_LOG_ERR,
				       "doorbell-agent: worker=%s canary: model '%s' does not "
				       "serve: %s",
				       setup->name, setup->model.model->name, why);
			/* It is still in its model, which cannot be closed then: that may hang,
			 * too. */
			if (ret == -ETIMEDOUT)
				_exit(EXIT_FAILURE);
			return false;
		}
		rte_log(RTE_LOG_INFO, agent_logtype, "agent: worker=%s canary=passed%s%s%s\n",
			setup->name, why[0] != '\0' ? " note=\"" : "", why,
			why[0] != '\0' ? "\"" : "");
	}
	return true;
}

static int run_workers(struct workers *w, struct agent_options *o, char *program)
{
	struct rnic *rnic = NULL;
	int ret = EXIT_FAILURE;
	char error[512];
	bool on_gpu;

	if (!make_workers(w, o) || !choose_memories(w) || (o->canary && !try_models(w)))
		goto unload;
	/* A GPU's doorbell is a write to memory, which does not wake a thread: the RNIC must poll.
	 */
	on_gpu = w->setup[0].loop == &agent_loop_cuda;
	if (on_gpu)
		o->idle_sleep = false;
	if (agent_start_eal(o, program) < 0) {
		log_sink_print(
			RTE_LOG_ERR, "doorbell-agent: the EAL did not start (reason above); %s",
			o->hugepages ? "are there free hugepages? --no-hugepages does without"
				     : "is there enough memory for --memory-mb?");
		goto unload;
	}
	rnic = agent_open_rnic(o, w, on_gpu, error, sizeof(error));
	if (rnic == NULL)
		log_sink_print(RTE_LOG_ERR, "doorbell-agent: %s", error);
	else
		ret = serve_until_left(w, rnic);
	if (rnic != NULL)
		rnic->ops->close(rnic);
	eal_end();
unload:
	unload_models(w);
	return ret;
}

static int ran; /* atomic: 1 once the agent has run in this process */

/* True in the first run in this process. The EAL cannot start twice. */
static bool first_time(void)
{
	if (__atomic_exchange_n(&ran, 1, __ATOMIC_SEQ_CST) == 0)
		return true;
	log_sink_print(RTE_LOG_ERR,
		       "doorbell-agent: it can run only once per process, and has run already");
	return false;
}

/* Open the descriptor for requests to stop, and put earlier requests into it. Returns the
 * descriptor, or -1 on failure. */
static int watch_stops(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	const uint64_t one = 1;

	__atomic_store_n(&stop_fd, fd, __ATOMIC_SEQ_CST);
	if (fd >= 0 && __atomic_load_n(&stops, __ATOMIC_SEQ_CST) > 0 &&
	    write(fd, &one, sizeof(one)) < 0)
		return -1;
	return fd;
}

/* The workers of the only run of this process; too large for a stack. */
static struct workers workers;
static struct graph_model model;

/* <supervise>: several workers may have a process each. */
static int run_or_supervise(int argc, char **argv, bool supervise,
			    const struct doorbell_graph *graph)
{
	struct agent_options options;
	char error[512];
	int ret;

	ret = agent_options_parse(argc, argv, &options);
	if (ret != 0)
		return ret == 1 ? EXIT_SUCCESS : ret;
	log_sink_open(options.log_format);
	log_sink_worker(agent_supervised_name());
	options.device_claimed = agent_supervisor_claimed(options.device);
	notify_open(&workers.notify);
	if (!first_time())
		return EXIT_FAILURE;
	if (graph != NULL) {
		graph_model_init(&model, options.model, graph);
		workers.graph = &model;
	}
	workers.stop_fd = watch_stops();
	if (workers.stop_fd < 0) {
		log_sink_print(RTE_LOG_ERR, "doorbell-agent: no eventfd: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	if (!agent_dial_check(&options, error, sizeof(error))) {
		log_sink_print(RTE_LOG_ERR, "doorbell-agent: %s", error);
		return EXIT_FAILURE;
	}
	/* The descriptor stays open: doorbell_agent_stop() may be using it in another thread. */
	if (supervise && agent_supervisor_wanted(&options))
		return agent_supervisor_run(argc, argv, &options, &workers.notify, workers.stop_fd);
	return run_workers(&workers, &options, argv[0]);
}

int doorbell_agent_run(int argc, char **argv, const struct doorbell_graph *graph)
{
	return run_or_supervise(argc, argv, false, graph);
}

int agent_main(int argc, char **argv)
{
	return run_or_supervise(argc, argv, true, NULL);
}
