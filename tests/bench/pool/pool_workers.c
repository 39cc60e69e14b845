/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/pool_workers.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <rte_eal.h>

#include "protocol/client.h"
#include "runtime/option_table.h"
#include "rnic/soft_rnic.h"
#include "runtime/cpus.h"
#include "runtime/eal_end.h"

#define POLL_MS 20
/* ms; a loop that hangs is an event of the bench, and the process goes on: hundreds of other
 * workers are in it. */
#define HANG_MS 600000

/* --- options -------------------------------------------------------------------------------------
 */

static int complain(const char *what)
{
	fprintf(stderr, "bench-pool-workers: %s\n", what);
	return 2;
}

static int check(struct pool_options *o)
{
	if ((o->events != 0 || o->roll) && o->control == NULL)
		return complain("--events and --roll begin when all are active: give --control");
	return 0;
}

#define AT(field) OPTION_AT(struct pool_options, field)

static const char *const run_times[] = {"fixed", "exponential", NULL};

static const struct option_row pool_rows[] = {
	{"lb", OPTION_ENDPOINT, AT(agent.lb), NULL, "where to register", .required = true},
	{"device", OPTION_TEXT, AT(agent.device), NULL, "DPDK device of all", .required = true},
	{"address", OPTION_CALL, AT(agent), "IP/PREFIX", "RoCEv2 address of all",
	 .take = agent_prefix_take, .required = true},
	{"workers", OPTION_NUMBER, AT(workers), NULL, "how many", 1, POOL_WORKERS_MAX},
	{"slots", OPTION_POWER_OF_TWO, AT(agent.slots), NULL, "per link, a power of two", 2, 32768},
	{"max-batch", OPTION_NUMBER, AT(agent.max_batch), NULL, "requests", 1, 65536},
	{"max-request", OPTION_NUMBER, AT(max_request), NULL, "bytes", 64, 65536},
	{"batch-us", OPTION_REAL, AT(batch_us), NULL, "time of a batch", 0, 10000000},
	{"each-us", OPTION_REAL, AT(each_us), NULL, "and of each request in it", 0, 10000000},
	{"run-times", OPTION_WORD, AT(exponential), NULL, "of batches", .words = run_times},
	{"slow", OPTION_NUMBER, AT(slow), NULL, "so many of them, the first", 0, POOL_WORKERS_MAX},
	{"slow-factor", OPTION_REAL, AT(slow_factor), NULL, "take so much longer", 0, 1000},
	{"heartbeat-ms", OPTION_NUMBER, AT(agent.heartbeat_ms), NULL, "of each", 10, 60000},
	{"mtu", OPTION_NUMBER, AT(agent.mtu), NULL, "IP", 576, 9216},
	{"memory-mb", OPTION_NUMBER, AT(agent.memory_mb), NULL, "packet memory", 64, 65536},
	{"control", OPTION_TEXT, AT(control), NULL, "control socket of the load balancer"},
	{"service", OPTION_TEXT, AT(service), NULL, "whose workers they are"},
	{"events", OPTION_NUMBER, AT(events), NULL, "that happen to them", 0, 1000000},
	{"seconds", OPTION_SECONDS, AT(seconds), NULL, "in which they do"},
	{"hang", OPTION_FLAG, AT(hang), NULL, "loops that stop are among them"},
	{"roll", OPTION_FLAG, AT(roll), NULL, "restart each, one by one"},
	{"seed", OPTION_NUMBER, AT(seed), NULL, "of what happens"},
	{0},
};

static const struct option_table pool_table = {
	.program = "bench-pool-workers",
	.usage =
		"bench-pool-workers --lb HOST:PORT --device DEVARGS --address IP/PREFIX [...]\n"
		"Registers many workers, named p0, p1 ..., that echo and take as long as is said.\n"
		"With --control, tells when all are active. With --events, things happen to them\n"
		"then; with --roll, each is restarted in turn. Ends with SIGTERM. Prints JSON "
		"lines.",
	.rows = pool_rows,
};

/* 0 to go on, 1 after --help, 2 after a usage error. */
static int parse(int argc, char **argv, struct pool_options *o)
{
	int ret = options_parse(&pool_table, argc, argv, o, NULL);

	if (ret != 0)
		return ret > 0 ? 1 : 2;
	return check(o);
}

static int start_eal(const struct pool_options *o)
{
	char cpus[CPUS_TEXT_MAX], lcores[CPUS_TEXT_MAX + 32], memory[16];
	char *argument[] = {"bench-pool-workers",
			    lcores,
			    "-m",
			    memory,
			    "--no-huge",
			    "--no-shconf",
			    "--no-pci",
			    "--no-telemetry",
			    "--log-level=lib.*:warning",
			    "--log-level=pmd.*:error",
			    "--log-level=doorbell.*:warning",
			    NULL};

	snprintf(lcores, sizeof(lcores), "--lcores=(0-1)@(%s)", cpus_allowed(cpus));
	snprintf(memory, sizeof(memory), "%u", o->agent.memory_mb);
	return rte_eal_init(11, argument) < 0 ? -1 : 0;
}

/* --- workers -------------------------------------------------------------------------------------
 */

static double seconds_since(const struct pool *pool)
{
	return (double)(clock_now_ns() - pool->start_ns) / 1e9;
}

void pool_say(const struct pool *pool, const char *event, const struct pool_worker *worker)
{
	printf("{\"at_s\": %.3f, \"event\": \"%s\"", seconds_since(pool), event);
	if (worker != NULL)
		printf(", \"worker\": \"%s\"", worker->setup.name);
	printf("}\n");
	fflush(stdout);
}

/* Runs outside the session's own call. */
static void bury(evutil_socket_t fd, short what, void *context)
{
	struct pool_worker *worker = context;

	agent_session_destroy(worker->session);
	worker->session = NULL;
	worker->state = POOL_AWAY;
	pool_churn_left(worker);
}

static void on_ended(void *context, bool failed)
{
	struct pool_worker *worker = context;

	event_base_once(worker->pool->base, -1, EV_TIMEOUT, bury, worker, NULL);
}

int pool_join(struct pool_worker *worker)
{
	worker->session =
		agent_session_create(worker->pool->base, &worker->setup, on_ended, worker);
	worker->state = worker->session != NULL ? POOL_SERVING : POOL_AWAY;
	return worker->session != NULL ? 0 : -ENOMEM;
}

void pool_leave(struct pool_worker *worker)
{
	worker->state = POOL_LEAVING;
	agent_session_leave(worker->session);
}

void pool_kill(struct pool_worker *worker)
{
	agent_session_destroy(worker->session);
	worker->session = NULL;
	worker->state = POOL_AWAY;
}

static const struct agent_model echo = {.abi = AGENT_MODEL_ABI, .name = "echo"};

static void init_worker(struct pool *pool, uint64_t i)
{
	const struct pool_options *o = &pool->options;
	struct pool_worker *worker = &pool->worker[i];
	double factor = i < o->slow ? o->slow_factor : 1;

	*worker = (struct pool_worker){
		.pool = pool,
		.setup =
			{
				.rnic = pool->rnic,
				.options = &o->agent,
				.loop = &pool_loop,
				.model = {.model = &echo,
					  .state = &worker->model,
					  .shape = {.max_request = (uint32_t)o->max_request,
						    .max_reply = (uint32_t)o->max_request,
						    .max_batch = o->agent.max_batch}},
			},
		.model = {.batch_us = o->batch_us * factor,
			  .each_us = o->each_us * factor,
			  .exponential = o->exponential},
	};
	draw_init(&worker->model.draw, o->seed, 1 + i);
	snprintf(worker->setup.name, sizeof(worker->setup.name), "p%lu", i);
}

/* --- until all are active ------------------------------------------------------------------------
 */

struct watch {
	struct pool *pool;
	struct control_client *client;
	struct event *timer;
};

/* Returns the number of active workers, or -1 when it is not known. */
static json_int_t active(struct watch *watch)
{
	json_int_t n = -1;
	char error[256];
	int code;
	json_t *result =
		control_client_call(watch->client, "services.show",
				    json_pack("{s:s}", "name", watch->pool->options.service), &code,
				    error, sizeof(error));

	if (result == NULL)
		fprintf(stderr, "bench-pool-workers: %s\n", error);
	json_unpack(result, "{s:{s:I}}", "service", "workers", &n);
	json_decref(result);
	return n;
}

static void on_poll(evutil_socket_t fd, short what, void *context)
{
	struct timeval again = {.tv_usec = POLL_MS * 1000};
	struct watch *watch = context;
	struct pool *pool = watch->pool;
	json_int_t n = active(watch);

	if (n < 0)
		return (void)event_base_loopbreak(pool->base);
	if (n < (json_int_t)pool->options.workers)
		return (void)evtimer_add(watch->timer, &again);
	pool->registered_ns = clock_now_ns();
	printf("{\"at_s\": %.3f, \"event\": \"active\", \"workers\": %lu}\n", seconds_since(pool),
	       pool->options.workers);
	fflush(stdout);
	pool_churn_start(pool);
}

static bool watch_start(struct watch *watch, struct pool *pool)
{
	char error[256];

	watch->pool = pool;
	if (pool->options.control == NULL)
		return true;
	watch->client = control_client_connect(pool->options.control, error, sizeof(error));
	if (watch->client == NULL) {
		complain(error);
		return false;
	}
	watch->timer = evtimer_new(pool->base, on_poll, watch);
	on_poll(-1, 0, watch);
	return true;
}

static void watch_end(struct watch *watch)
{
	if (watch->timer != NULL)
		event_free(watch->timer);
	control_client_close(watch->client);
}

/* --- the program ---------------------------------------------------------------------------------
 */

static void on_signal(evutil_socket_t fd, short what, void *context)
{
	event_base_loopbreak(context);
}

static void sum_up(const struct pool *pool)
{
	printf("{\"at_s\": %.3f, \"event\": \"end\", \"register_s\": %.3f, \"joins\": %lu, "
	       "\"leaves\": %lu, \"kills\": %lu, \"hangs\": %lu}\n",
	       seconds_since(pool),
	       pool->registered_ns != 0 ? (double)(pool->registered_ns - pool->start_ns) / 1e9 : 0,
	       pool->joins, pool->leaves, pool->kills, pool->hangs);
}

static int serve(struct pool *pool)
{
	struct event *end = evsignal_new(pool->base, SIGTERM, on_signal, pool->base);
	struct watch watch = {0};
	int ret = 0;

	event_add(end, NULL);
	pool->start_ns = clock_now_ns();
	for (uint64_t i = 0; i < pool->options.workers && ret == 0; i++) {
		init_worker(pool, i);
		ret = pool_join(&pool->worker[i]);
	}
	if (ret == 0 && watch_start(&watch, pool))
		event_base_dispatch(pool->base);
	else
		ret = -EIO;
	watch_end(&watch);
	for (uint64_t i = 0; i < pool->options.workers; i++)
		agent_session_destroy(pool->worker[i].session);
	if (pool->next_event != NULL)
		event_free(pool->next_event);
	event_free(end);
	sum_up(pool);
	return ret == 0 && (pool->options.control == NULL || pool->registered_ns != 0) ? 0 : 1;
}

int main(int argc, char **argv)
{
	static struct pool pool = {
		.options = {.agent = {.slots = 32,
				      .max_batch = 8,
				      .heartbeat_ms = 100,
				      .hang_ms = HANG_MS,
				      .weight = 1,
				      .mtu = 1500,
				      .memory_mb = 256,
				      .idle_sleep = true},
			    .workers = 512,
			    .max_request = 1472,
			    .each_us = 1000,
			    .slow_factor = 5,
			    .seconds = 60,
			    .service = "echo"},
	};
	struct pool_options *o = &pool.options;
	int ret = parse(argc, argv, o);
	char error[512];

	if (ret != 0)
		return ret == 1 ? 0 : ret;
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); /* naps of the loops' thread are short */
	if (start_eal(o) < 0)
		return complain("the EAL did not start (reason above)");
	pool.rnic = soft_rnic_create(&(struct soft_rnic_params){.device = o->agent.device,
								.mtu = (uint16_t)o->agent.mtu,
								.address = o->agent.address,
								.prefix = o->agent.prefix,
								.idle_sleep = true},
				     error, sizeof(error));
	if (pool.rnic == NULL)
		return complain(error);
	pool.base = event_base_new();
	if (pool.base == NULL || pool_loop_open() != 0)
		return complain("no memory or no thread");
	ret = serve(&pool);
	pool_loop_close();
	event_base_free(pool.base);
	pool.rnic->ops->close(pool.rnic);
	eal_end();
	return ret;
}
