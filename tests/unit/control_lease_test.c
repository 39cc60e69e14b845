/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's lease: how long its agent holds it, and which agent may take the name over. */
#include "protocol/control.h"
#include "control_fixture.h"
#include "server/rpc.h"

#define LEASE_MS 400

#define LINK(n)                                                                                    \
	"{\"lcore\":" n ",\"qpn\":17,\"psn\":5,\"rkey\":99,\"descriptors\":4096,\"payloads\":8192,"   \
	"\"cancels\":12288,\"stride\":2048,\"room\":0,\"entry\":64}"
#define CALL(method) "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"" method "\"}"

static struct fixture f;

static void set_up(void)
{
	control_fixture_prepare(&f);
	fake_lb_config(f.lb)->lease_ms = LEASE_MS;
	f.server = control_server_create(f.lb, f.base, f.error, sizeof(f.error));
	cr_assert_not_null(f.server, "%s", f.error);
}

/* Called last in each test, not as .fini: a failure in .fini, such as a leak, does not count. */
static void tear_down(void)
{
	control_fixture_stop(&f);
}

TestSuite(control_lease, .init = set_up);

static void send_links(int fd, const char *instance, const char *links)
{
	char line[1024];

	snprintf(line, sizeof(line),
		 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"agent.register\",\"params\":"
		 "{\"version\":3,\"name\":\"gpu1\",\"model\":\"llama\",\"instance\":\"%s\","
		 "\"slots\":64,\"max_request\":1472,\"max_reply\":1472,\"max_batch\":8,"
		 "\"weight\":1,\"heartbeat_ms\":50,\"address\":\"10.9.0.2\",\"path_mtu\":4096,"
		 "\"links\":[%s]}}",
		 instance, links);
	fixture_send(fd, line);
}

static void send_register(int fd, const char *instance)
{
	send_links(fd, instance, LINK("0") "," LINK("1"));
}

#define ONE "0000000000000001"
#define TWO "0000000000000002"

/* An agent whose worker is active. */
static int serving(const char *instance)
{
	int fd = fixture_connect_agent(&f);

	send_register(fd, instance);
	fixture_expect(&f, fd, "\"links\":");
	fixture_send(fd, CALL("agent.ready"));
	fixture_expect(&f, fd, "waits for a heartbeat");
	fixture_expect(&f, fd, "\"result\":{}");
	fake_lb_heartbeat(f.lb, workers_find(lb_pool(f.lb), "gpu1"));
	fixture_expect(&f, fd, "\"state\":\"active\"");
	return fd;
}

static void turn_for(unsigned int ms)
{
	struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	event_base_loopexit(f.base, &limit);
	event_base_dispatch(f.base);
}

static const struct worker *gpu1(void)
{
	const struct worker *worker = workers_find(lb_pool(f.lb), "gpu1");

	cr_assert_not_null(worker, "gpu1 was removed");
	return worker;
}

/* True if the lease is kept, or if a halted machine renewed nothing for a whole lease since
 * <said_ms>. */
static bool is_kept(uint64_t said_ms)
{
	return !gpu1()->uncontrolled || clock_now_ms() - said_ms >= LEASE_MS;
}

Test(control_lease, an_agent_that_does_not_renew_is_not_heard_until_it_does)
{
	uint64_t said_ms = clock_now_ms();
	int fd = serving(ONE);

	turn_for(LEASE_MS / 2);
	cr_assert(is_kept(said_ms));
	turn_for(LEASE_MS);
	cr_assert(gpu1()->uncontrolled);
	cr_assert_str_eq(gpu1()->reason, "control connection lost");
	cr_assert_eq(gpu1()->state, WORKER_ACTIVE);
	fixture_send(fd, CALL("agent.renew"));
	fixture_expect(&f, fd, "\"result\":{\"lease_ms\":400}");
	cr_assert_not(gpu1()->uncontrolled);
	turn_for(2 * LEASE_MS);
	cr_assert(gpu1()->uncontrolled, "its lease ran again");
	close(fd);
	tear_down();
}

#define RENEW(report)                                                                              \
	"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"agent.renew\",\"params\":{\"report\":" report  \
	"}}"

/* A report replaces the one before it, unless some of it is wrong. */
Test(control_lease, a_report_is_kept_and_a_wrong_one_is_refused_by_name)
{
	int fd = serving(ONE);

	fixture_send(fd,
		     RENEW("{\"batches\":[{\"rows\":1,\"batches\":7,\"run_us\":700},{\"rows\":8,"
			   "\"batches\":2,\"run_us\":900}],\"gpu\":{\"temperature\":91,"
			   "\"notice\":\"too \\\"hot\\\"\"}}"));
	fixture_expect(&f, fd, "\"result\":{\"lease_ms\":400}");
	cr_expect_eq(gpu1()->report.n_sizes, 2);
	cr_expect_eq(gpu1()->report.size[1].rows, 8);
	cr_expect_eq(gpu1()->report.size[1].run_us, 900);
	cr_expect(gpu1()->report.has_gpu);
	cr_expect_eq(gpu1()->report.gpu.temperature, 91);
	cr_expect_eq(gpu1()->report.gpu.power_mw, -1, "it was not told");
	cr_expect_str_eq(gpu1()->report.gpu.notice, "too 'hot'");
	fixture_send(fd, RENEW("{\"batches\":[{\"rows\":0,\"batches\":7,\"run_us\":1}]}"));
	fixture_expect(&f, fd, "params.report.batches[0].rows: cannot use 0");
	fixture_send(fd, RENEW("{\"batches\":[{\"rows\":8,\"batches\":7,\"run_us\":1},"
			       "{\"rows\":8,\"batches\":7,\"run_us\":1}]}"));
	fixture_expect(&f, fd, "params.report.batches[1].rows: cannot use 8 after 8");
	fixture_send(fd, RENEW("{\"batches\":[1,2,3,4,5,6,7,8,9]}"));
	fixture_expect(&f, fd, "params.report.batches: ");
	fixture_send(fd, RENEW("{\"gpu\":{\"utilization\":101}}"));
	fixture_expect(&f, fd, "params.report.gpu.utilization: cannot use 101");
	cr_expect_eq(gpu1()->report.n_sizes, 2, "the last good one stays");
	/* the lease is renewed all the same */
	turn_for(2 * LEASE_MS);
	cr_assert(gpu1()->uncontrolled);
	fixture_send(fd, RENEW("{\"gpu\":{\"utilization\":101}}"));
	fixture_expect(&f, fd, "\"result\":{\"lease_ms\":400,\"refused\":\"params.report.gpu.");
	cr_expect_not(gpu1()->uncontrolled);
	fixture_send(fd, RENEW("{}"));
	fixture_expect(&f, fd, "\"result\":{\"lease_ms\":400}");
	cr_expect_eq(gpu1()->report.n_sizes, 0);
	close(fd);
	tear_down();
}

#define ATTACH(name, instance, worker, generation)                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"agent.attach\",\"params\":{\"version\":3,"      \
	"\"name\":\"" name "\",\"instance\":\"" instance "\",\"worker\":" worker                     \
	",\"generation\":" generation "}}"

Test(control_lease, a_closed_connection_leaves_the_worker_to_another_of_the_same_agent)
{
	int first = serving(ONE), second = fixture_connect_agent(&f);
	const struct worker *worker = gpu1();

	close(first);
	for (int i = 0; i < 100 && worker->owner; i++)
		turn_for(10);
	cr_assert_null(worker->owner);
	cr_assert_str_eq(worker->reason, "control connection lost, closed");
	fixture_send(second, ATTACH("gpu1", TWO, "0", "1"));
	fixture_expect(&f, second, "does not have that registration any more; register again");
	fixture_send(second, ATTACH("gpu1", ONE, "0", "2"));
	fixture_expect(&f, second, "does not have that registration any more; register again");
	fixture_send(second, ATTACH("gpu1", ONE, "1", "1"));
	fixture_expect(&f, second, "does not have that registration any more; register again");
	fixture_send(second, ATTACH("gpu2", ONE, "0", "1"));
	fixture_expect(&f, second, "does not have that registration any more; register again");
	cr_assert_null(worker->owner);
	fixture_send(second, ATTACH("gpu1", ONE, "0", "1"));
	fixture_expect(&f, second, "{\"lease_ms\":400,\"state\":\"active\"}");
	cr_assert_eq(gpu1(), worker);
	cr_assert_not(worker->uncontrolled);
	fixture_send(second, ATTACH("gpu1", ONE, "0", "1"));
	fixture_expect(&f, second, "this connection has worker 'gpu1' already");
	/* its lease runs over this connection now */
	turn_for(2 * LEASE_MS);
	cr_assert(worker->uncontrolled);
	close(second);
	tear_down();
}

Test(control_lease, attaching_takes_the_worker_from_a_connection_that_is_still_open)
{
	int first = serving(ONE), second = fixture_connect_agent(&f);
	uint64_t said_ms = clock_now_ms();

	fixture_send(second, ATTACH("gpu1", ONE, "0", "1"));
	fixture_expect(&f, second, "\"lease_ms\":400");
	fixture_expect_end(&f, first);
	turn_for(50);
	cr_assert(is_kept(said_ms), "it did not go with <first>");
	cr_assert_not_null(gpu1()->owner);
	close(first);
	close(second);
	tear_down();
}

Test(control_lease, renewing_keeps_the_worker_and_nothing_else_does)
{
	uint64_t said_ms = clock_now_ms();
	int fd = serving(ONE);

	for (int i = 0; i < 6; i++) {
		turn_for(LEASE_MS / 2);
		cr_assert(is_kept(said_ms), "after %d renewals", i);
		said_ms = clock_now_ms();
		fixture_send(fd, CALL("agent.renew"));
		fixture_expect(&f, fd, "\"result\":{\"lease_ms\":400}");
	}
	cr_assert(is_kept(said_ms));
	turn_for(LEASE_MS / 2);
	fixture_send(fd, CALL("version"));
	fixture_expect(&f, fd, "\"protocol\"");
	turn_for(LEASE_MS);
	cr_assert(gpu1()->uncontrolled);
	close(fd);
	tear_down();
}

Test(control_lease, begins_when_the_agent_is_ready)
{
	int fd = fixture_connect_agent(&f);

	send_register(fd, ONE);
	fixture_expect(&f, fd, "\"lease_ms\":400");
	turn_for(2 * LEASE_MS);
	cr_assert_not_null(workers_find(lb_pool(f.lb), "gpu1"));
	close(fd);
	tear_down();
}

/* The latest of all timers that are set. */
static int keep_latest(const struct event_base *base, const struct event *event, void *context)
{
	struct timeval at, *latest = context;

	if (event_pending(event, EV_TIMEOUT, &at) && evutil_timercmp(&at, latest, >))
		*latest = at;
	return 0;
}

static struct timeval latest_timer(void)
{
	struct timeval latest = {0};

	event_base_foreach_event(f.base, keep_latest, &latest);
	return latest;
}

#define HELLO                                                                                      \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent.hello\",\"params\":{\"version\":3,"      \
	"\"model\":\"llama\",\"address\":\"10.9.0.2\"}}"

Test(control_lease, lines_win_an_agent_no_time_to_register)
{
	int fd = fixture_connect_agent(&f);
	struct timeval before, after, limit = {.tv_sec = CONTROL_REGISTER_S - 60};

	fixture_send(fd, HELLO);
	fixture_expect(&f, fd, "\"n_lcores\":2");
	before = latest_timer();
	evutil_gettimeofday(&after, NULL);
	evutil_timeradd(&after, &limit, &limit);
	cr_assert(evutil_timercmp(&before, &limit, >), "its time to register runs");
	turn_for(20);
	fixture_send(fd, CALL("version"));
	fixture_expect(&f, fd, "\"protocol\"");
	fixture_send(fd, HELLO);
	fixture_expect(&f, fd, "\"n_lcores\":2");
	after = latest_timer();
	/* libevent's idea of the time of day may move by a little */
	evutil_timersub(&after, &before, &after);
	cr_assert(after.tv_sec < 0 || (after.tv_sec == 0 && after.tv_usec < 10000));
	close(fd);
	tear_down();
}

Test(control_lease, renewing_without_a_worker_is_an_error)
{
	int fd = fixture_connect_agent(&f);

	fixture_send(fd, CALL("agent.renew"));
	fixture_expect(&f, fd, "this connection has no worker; call agent.register first");
	close(fd);
	tear_down();
}

Test(control_lease, an_agent_takes_over_from_its_own_lost_connection)
{
	int former = serving(ONE), fd;
	uint16_t number = workers_find(lb_pool(f.lb), "gpu1")->number;
	const struct worker *worker;

	/* <former> is open on both sides, as behind a network that has just come back */
	fd = serving(ONE);
	worker = workers_find(lb_pool(f.lb), "gpu1");
	cr_assert_eq(worker->number, number);
	cr_assert_eq(worker->state, WORKER_ACTIVE);
	fixture_expect(&f, former, "{\"state\":\"gone\",\"reason\":\"its agent registers again\"}");
	fixture_expect_end(&f, former);
	turn_for(50);
	cr_assert_not_null(workers_find(lb_pool(f.lb), "gpu1"), "it did not go with <former>");
	close(former);
	close(fd);
	tear_down();
}

Test(control_lease, another_agent_of_the_name_is_refused_while_health_does_not_miss_the_first)
{
	int first = serving(ONE), second = fixture_connect_agent(&f);

	/* the copied time of the last heartbeat proves nothing by itself: it may be old, or in the
	 * future */
	fake_lb_at(f.lb, 100000 + 1000);
	send_register(second, TWO);
	fixture_expect(&f, second, "name 'gpu1' is in use by another live agent");
	fake_lb_at(f.lb, 100000 - 1);
	send_register(second, TWO);
	fixture_expect(&f, second,
		       "name 'gpu1' is in use by another live agent; use another name or "
		       "stop that agent (127.0.0.1:");
	cr_assert_eq(workers_find(lb_pool(f.lb), "gpu1")->spec.instance, 1);
	close(first);
	close(second);
	tear_down();
}

Test(control_lease, another_agent_of_the_name_takes_over_when_heartbeats_are_missing)
{
	int first = serving(ONE), second = fixture_connect_agent(&f);

	workers_find(lb_pool(f.lb), "gpu1")->doubt.silent = true;
	send_register(second, TWO);
	fixture_expect(&f, second, "\"links\":");
	fixture_expect(&f, first, "another agent takes its name, as its loop is silent");
	fixture_expect_end(&f, first);
	cr_assert_eq(workers_find(lb_pool(f.lb), "gpu1")->spec.instance, 2);
	close(first);
	close(second);
	tear_down();
}

Test(control_lease, a_registration_that_cannot_be_ends_no_worker)
{
	int first = serving(ONE), second = fixture_connect_agent(&f);
	const struct worker *worker = workers_find(lb_pool(f.lb), "gpu1");

	send_links(second, ONE, LINK("0"));
	fixture_expect(&f, second, "1 links; give one for each of the 2 lcores");
	cr_assert_eq(workers_find(lb_pool(f.lb), "gpu1"), worker);
	cr_assert_eq(worker->state, WORKER_ACTIVE);
	cr_assert_not_null(worker->owner, "it was taken from its connection");
	close(first);
	close(second);
	tear_down();
}

Test(control_lease, an_agent_that_is_still_joining_keeps_its_name)
{
	int first = fixture_connect_agent(&f), second = fixture_connect_agent(&f);

	send_register(first, ONE);
	fixture_expect(&f, first, "\"links\":");
	fake_lb_at(f.lb, 100000 + 5000);
	send_register(second, TWO);
	fixture_expect(&f, second, "name 'gpu1' is in use by another live agent");
	close(first);
	close(second);
	tear_down();
}
