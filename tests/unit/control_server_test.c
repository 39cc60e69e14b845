/* SPDX-License-Identifier: BSD-3-Clause */
/* The server over real sockets. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

#include "protocol/client.h"
#include "control_fixture.h"
#include "server/rpc.h"

#define VERSION_CALL "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"version\"}"
#define LINK(n)                                                                                    \
	"{\"lcore\":" n                                                                            \
	",\"qpn\":17,\"psn\":5,\"rkey\":99,\"descriptors\":4096,\"payloads\":8192,"                \
	"\"cancels\":12288,\"stride\":2048,\"room\":0,\"entry\":64}"
#define REGISTER_CALL                                                                              \
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"agent.register\",\"params\":{\"version\":3,"   \
	"\"name\":\"gpu1\",\"model\":\"llama\",\"instance\":\"00000000deadbeef\",\"slots\":64,"    \
	"\"max_request\":1472,\"max_reply\":1472,\"max_batch\":8,\"weight\":1,"                    \
	"\"heartbeat_ms\":50,\"address\":\"10.9.0.2\",\"path_mtu\":4096,"                          \
	"\"links\":[" LINK("0") "," LINK("1") "]}}"

static struct fixture f;

static void set_up(void)
{
	control_fixture_start(&f);
	cr_assert_not_null(f.server, "%s", f.error);
}

/* Called last in each test, not as .fini: a failure in .fini, such as a leak, does not count. */
static void tear_down(void)
{
	control_fixture_stop(&f);
}

TestSuite(control_server, .init = set_up);

static int registered_agent(void)
{
	int fd = fixture_connect_agent(&f);

	fixture_send(fd, REGISTER_CALL);
	fixture_expect(&f, fd, "\"worker\":0");
	return fd;
}

Test(control_server, makes_its_folder_and_a_socket_for_the_group_only)
{
	struct stat st;

	cr_assert_eq(stat(f.socket, &st), 0);
	cr_assert(S_ISSOCK(st.st_mode));
	cr_assert_eq(st.st_mode & 0777, 0660);
	tear_down();
}

Test(control_server, leaves_the_socket_of_another_one_alone)
{
	char error[512];

	cr_assert_null(control_server_create(f.lb, f.base, error, sizeof(error)));
	cr_assert_not_null(strstr(error, "another doorbell-lb runs"), "%s", error);
	close(fixture_connect_unix(&f));
	tear_down();
}

Test(control_server, takes_over_a_socket_that_nobody_answers_on)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	control_server_destroy(f.server);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", f.socket);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	f.server = control_server_create(f.lb, f.base, f.error, sizeof(f.error));
	cr_assert_not_null(f.server, "%s", f.error);
	tear_down();
}

Test(control_server, does_not_remove_a_file_that_is_no_socket)
{
	FILE *file;

	control_server_destroy(f.server);
	file = fopen(f.socket, "w");
	fclose(file);
	f.server = control_server_create(f.lb, f.base, f.error, sizeof(f.error));
	cr_assert_null(f.server);
	cr_assert_not_null(strstr(f.error, "is not a socket"), "%s", f.error);
	tear_down();
}

Test(control_server, says_which_port_is_taken)
{
	char error[512];

	snprintf(fake_lb_config(f.lb)->control_socket, 108, "%s/other.sock", f.folder);
	fake_lb_config(f.lb)->agents_port = control_server_agents_port(f.server);
	cr_assert_null(control_server_create(f.lb, f.base, error, sizeof(error)));
	cr_assert_not_null(strstr(error, "for agents on 127.0.0.1 port"), "%s", error);
	cr_assert_not_null(strstr(error, "Address already in use"), "%s", error);
	snprintf(fake_lb_config(f.lb)->control_socket, 108, "%s", f.socket);
	tear_down();
}

Test(control_server, answers_lines_in_order_also_when_the_peer_has_stopped_sending)
{
	int fd = fixture_connect_unix(&f);

	for (int i = 0; i < 50; i++)
		fixture_send(fd, i % 2 ? VERSION_CALL : "nonsense");
	shutdown(fd, SHUT_WR);
	for (int i = 0; i < 50; i++)
		fixture_expect(&f, fd, i % 2 ? "\"protocol\":3" : "-32700");
	fixture_expect_end(&f, fd);
	close(fd);
	tear_down();
}

#define CAPTURE(id, method, params)                                                                \
	"{\"jsonrpc\":\"2.0\"," id "\"method\":\"capture." method "\",\"params\":" params "}"

Test(control_server, a_capture_goes_raw_to_another_connection_and_ends_with_its_own)
{
	int fd = fixture_connect_unix(&f), data = fixture_connect_unix(&f);
	char bytes[16] = "", *line = NULL;

	fixture_send(fd, CAPTURE("\"id\":1,", "start", "{\"port\":\"clients\"}"));
	fixture_expect(&f, fd, "\"capture\":1");
	fixture_send(data, CAPTURE("", "data", "{\"capture\":1}"));
	fixture_turn_until(&f, data);
	cr_expect_eq(recv(data, bytes, sizeof(bytes), MSG_WAITALL), 7);
	cr_expect_str_eq(bytes, "packets");
	close(data);
	fixture_send(fd, CAPTURE("\"id\":1,", "start", "{\"port\":\"clients\"}"));
	fixture_expect(&f, fd, "\"capture\":2");
	close(fd);
	fd = fixture_connect_unix(&f);
	do {
		free(line);
		fixture_send(fd, CAPTURE("\"id\":1,", "read", "{\"capture\":2}"));
		line = fixture_line(&f, fd);
	} while (!strstr(line, "stopped"));
	free(line);
	close(fd);
	/* The capture is gone, so no data is to come. */
	data = fixture_connect_unix(&f);
	fixture_send(data, CAPTURE("\"id\":1,", "data", "{\"capture\":1}"));
	fixture_expect_end(&f, data);
	close(data);
	tear_down();
}

Test(control_server, a_capture_goes_to_nobody_who_did_not_name_it)
{
	int fd = fixture_connect_unix(&f);

	fixture_send(fd, CAPTURE("\"id\":1,", "start", "{\"port\":\"clients\"}"));
	fixture_expect(&f, fd, "\"capture\":1");
	fixture_send(fd, CAPTURE("", "data", "{\"capture\":7}"));
	fixture_expect_end(&f, fd);
	close(fd);
	tear_down();
}

/* Returns the rate of lcore 0; -1 while it is null. */
static json_int_t new_flows_per_s(int fd)
{
	json_int_t rate = -1;
	json_t *reply;
	char *line;

	fixture_send(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"stats.show\"}");
	line = fixture_line(&f, fd);
	reply = json_loads(line, 0, NULL);
	cr_assert_not_null(reply, "%s", line);
	json_unpack(reply, "{s:{s:[{s:I}]}}", "result", "lcores", "new_flows_per_s", &rate);
	json_decref(reply);
	free(line);
	return rate;
}

Test(control_server, knows_the_rate_of_new_flows_after_a_second)
{
	int fd = fixture_connect_unix(&f);
	json_int_t rate;

	for (uint32_t n = 0; n < 3000; n++)
		fake_lb_flow(f.lb, 0, n, 0, NULL);
	while ((rate = new_flows_per_s(fd)) < 0)
		event_base_loop(f.base, EVLOOP_ONCE);
	/* over a second: timers may be a few ms early, and other processes may delay us */
	cr_assert(rate > 0 && rate <= 3100, "%lld", (long long)rate);
	close(fd);
	tear_down();
}

Test(control_server, takes_a_line_of_the_limit_and_closes_on_a_longer_one)
{
	int fd = fixture_connect_unix(&f);
	char *line = malloc(CONTROL_LINE_MAX + 2);

	memset(line, ' ', CONTROL_LINE_MAX);
	memcpy(line, VERSION_CALL, strlen(VERSION_CALL));
	line[CONTROL_LINE_MAX] = '\0';
	fixture_send(fd, line);
	fixture_expect(&f, fd, "\"protocol\":3");
	strcpy(line + CONTROL_LINE_MAX, " ");
	fixture_send(fd, line);
	fixture_expect(&f, fd, "line longer than 65536 bytes");
	fixture_expect_end(&f, fd);
	free(line);
	close(fd);
	tear_down();
}

Test(control_server, stops_reading_from_a_peer_that_does_not_read)
{
	int fd = fixture_connect_unix(&f);
	struct pollfd poller = {.fd = fd, .events = POLLOUT};
	unsigned long sent = 0, idle = 0;
	const char call[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"stats.show\","
			    "\"params\":{\"all\":true}}\n";

	/* until no more bytes are taken, though the server had many turns to take them */
	while (idle < 2000 && sent < 100000000) {
		event_base_loop(f.base, EVLOOP_NONBLOCK);
		idle++;
		if (poll(&poller, 1, 0) > 0 &&
		    send(fd, call, sizeof(call) - 1, MSG_DONTWAIT) == sizeof(call) - 1) {
			sent++;
			idle = 0;
		}
	}
	cr_assert_lt(sent, 100000, "%lu calls were taken", sent);
	/* and goes on where it was when the peer reads */
	for (unsigned long i = 0; i < sent; i++)
		fixture_expect(&f, fd, "\"reasons\"");
	close(fd);
	tear_down();
}

Test(control_server, gives_up_a_peer_that_lets_16_mib_pile_up)
{
	int agent = registered_agent();
	struct worker *worker = workers_find(lb_pool(f.lb), "gpu1");

	lb_worker_drain(f.lb, worker);
	/* each is a notification of some 90 bytes that the agent does not read */
	for (int i = 0; i < 1000000 && workers_get(lb_pool(f.lb), 0); i++) {
		fake_lb_outstanding(f.lb, worker, 0);
		if (i % 100 == 0)
			event_base_loop(f.base, EVLOOP_NONBLOCK);
	}
	cr_assert_null(workers_get(lb_pool(f.lb), 0));
	cr_assert_str_eq(fake_lb_removed(f.lb), "connection closed");
	close(agent);
	tear_down();
}

Test(control_server, turns_away_the_65th_operator)
{
	int fds[65];

	for (int i = 0; i < 64; i++) {
		fds[i] = fixture_connect_unix(&f);
		fixture_send(fds[i], VERSION_CALL);
		fixture_expect(&f, fds[i], "\"protocol\":3");
	}
	fds[64] = fixture_connect_unix(&f);
	fixture_expect(&f, fds[64], "too many connections: 64 operators are the limit");
	fixture_expect_end(&f, fds[64]);
	for (int i = 0; i < 65; i++)
		close(fds[i]);
	tear_down();
}

Test(control_server, tells_an_agent_what_becomes_of_its_worker)
{
	int agent = registered_agent(), operator= fixture_connect_unix(&f);
	struct worker *worker = workers_find(lb_pool(f.lb), "gpu1");

	cr_assert_not_null(worker);
	fake_lb_heartbeat(f.lb, worker);
	fixture_expect(&f, agent, "{\"state\":\"active\",\"reason\":\"\"}");
	fake_lb_outstanding(f.lb, worker, 2);
	fixture_send(operator, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"workers.drain\","
			       "\"params\":{\"name\":\"gpu1\"}}");
	fixture_expect(&f, operator, "\"state\":\"draining\"");
	fixture_expect(&f, agent, "\"state\":\"draining\"");
	fake_lb_outstanding(f.lb, worker, 0);
	fixture_expect(&f, agent, "\"state\":\"drained\"");
	close(operator);
	close(agent);
	tear_down();
}

Test(control_server, removes_the_worker_when_its_agent_hangs_up)
{
	int agent = registered_agent(), operator;

	close(agent);
	operator= fixture_connect_unix(&f);
	for (bool gone = false; !gone;) {
		char *line;

		fixture_send(operator,
			     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"workers.list\"}");
		line = fixture_line(&f, operator);
		gone = strstr(line, "\"workers\":[]") != NULL;
		free(line);
	}
	cr_assert_str_eq(fake_lb_removed(f.lb), "connection closed");
	close(operator);
	tear_down();
}

Test(control_server, lets_an_agent_register_again_after_its_worker_died)
{
	int agent = registered_agent();

	fake_lb_kill(f.lb, workers_find(lb_pool(f.lb), "gpu1"));
	fixture_expect(&f, agent, "\"state\":\"gone\",\"reason\":\"no heartbeat for 500 ms\"");
	fixture_send(agent, REGISTER_CALL);
	fixture_expect(&f, agent, "\"worker\":0");
	close(agent);
	tear_down();
}

/* ms; CONTROL_HELLO_S as this test is built. */
#define HELLO_MS 500

Test(control_server, closes_an_agent_that_says_nothing_in_time)
{
	int agent = registered_agent(), silent, slow;
	uint64_t start_ms;

	control_server_limits(f.server, 0, HELLO_MS);
	start_ms = clock_now_ms();
	silent = fixture_connect_agent(&f);
	slow = fixture_connect_agent(&f);
	cr_assert_eq(write(slow, "{", 1), 1);
	fixture_expect_end(&f, silent);
	fixture_expect_end(&f, slow);
	cr_assert_geq(clock_now_ms() - start_ms, HELLO_MS * 9 / 10); /* coarse clocks */
	cr_assert_not_null(workers_find(lb_pool(f.lb), "gpu1"), "a registered agent may be silent");
	close(silent);
	close(slow);
	close(agent);
	tear_down();
}

Test(control_server, removes_workers_and_socket_when_it_ends)
{
	int agent = registered_agent();

	control_server_destroy(f.server);
	f.server = NULL;
	cr_assert_null(workers_find(lb_pool(f.lb), "gpu1"));
	cr_assert_neq(access(f.socket, F_OK), 0);
	close(agent);
	tear_down();
}

struct client_run {
	json_t *version, *missing;
	int code, fd;
	char error[512];
	bool done;
};

static void *run_client(void *context)
{
	struct client_run *run = context;
	struct control_client *client =
		control_client_connect(f.socket, run->error, sizeof(run->error));
	int code;

	run->version =
		control_client_call(client, "version", NULL, &code, run->error, sizeof(run->error));
	run->missing = control_client_call(client, "workers.show", json_pack("{s:s}", "name", "x"),
					   &run->code, run->error, sizeof(run->error));
	control_client_close(client);
	__atomic_store_n(&run->done, true, __ATOMIC_RELEASE);
	return NULL;
}

Test(control_server, serves_the_client_library)
{
	struct client_run run = {0};
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, run_client, &run), 0);
	while (!__atomic_load_n(&run.done, __ATOMIC_ACQUIRE))
		event_base_loop(f.base, EVLOOP_NONBLOCK);
	pthread_join(thread, NULL);
	cr_assert_str_eq(json_string_value(json_object_get(run.version, "version")),
			 DOORBELL_VERSION);
	cr_assert_null(run.missing);
	cr_assert_eq(run.code, CONTROL_ERROR_NOT_FOUND);
	cr_assert_str_eq(run.error, "no worker 'x'; workers.list has them all");
	json_decref(run.version);
	tear_down();
}

static unsigned int signals;

static void count_signal(int number)
{
	__atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED);
}

/* Signals for <thread> until <run> is done, some of which come while it waits for bytes. */
static void disturb(pthread_t thread, const struct client_run *run)
{
	__atomic_store_n(&signals, 0, __ATOMIC_RELAXED);
	for (unsigned int i = 1; i <= 20; i++) {
		pthread_kill(thread, SIGUSR1);
		while (__atomic_load_n(&signals, __ATOMIC_RELAXED) < i &&
		       !__atomic_load_n(&run->done, __ATOMIC_ACQUIRE))
			sched_yield();
		poll(NULL, 0, 1);
	}
}

static void *run_wrapped_client(void *context)
{
	struct client_run *run = context;
	struct control_client *client =
		control_client_wrap(run->fd, run->error, sizeof(run->error));

	run->version = control_client_call(client, "version", NULL, &run->code, run->error,
					   sizeof(run->error));
	control_client_close(client);
	__atomic_store_n(&run->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* As when the terminal halts the doorbell program, and it goes on. */
Test(control_server, client_waits_on_after_a_signal)
{
	const struct sigaction counting = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
	const char *halves[] = {"{\"jsonrpc\":\"2.0\",\"id\":1,", "\"result\":{\"a\":7}}\n"};
	struct client_run run = {0};
	char call[256];
	pthread_t thread;
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	cr_assert_eq(sigaction(SIGUSR1, &counting, NULL), 0);
	run.fd = pair[0];
	cr_assert_eq(pthread_create(&thread, NULL, run_wrapped_client, &run), 0);
	cr_assert_gt(read(pair[1], call, sizeof(call)), 0);
	for (unsigned int i = 0; i < 2; i++) {
		disturb(thread, &run);
		cr_assert_eq(send(pair[1], halves[i], strlen(halves[i]), MSG_NOSIGNAL),
			     (ssize_t)strlen(halves[i]), "it is gone");
	}
	pthread_join(thread, NULL);
	cr_assert_not_null(run.version, "%s", run.error);
	cr_assert_eq(json_integer_value(json_object_get(run.version, "a")), 7);
	json_decref(run.version);
	close(pair[1]);
	tear_down();
}

Test(control_server, client_says_when_the_server_went_away)
{
	char error[512];
	int pair[2], code;
	struct control_client *client;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	client = control_client_wrap(pair[0], error, sizeof(error));
	shutdown(pair[1], SHUT_WR);
	cr_assert_null(control_client_call(client, "version", NULL, &code, error, sizeof(error)));
	cr_assert_str_eq(error, "lost doorbell-lb: it closed the connection");
	cr_assert_eq(code, 0);
	control_client_close(client);
	close(pair[1]);
	cr_assert_null(control_client_connect("/nonexistent/socket", error, sizeof(error)));
	cr_assert_str_eq(error, "cannot reach doorbell-lb at /nonexistent/socket: No such file or "
				"directory; is it running? (--socket to choose another)");
	tear_down();
}

Test(control_sockets, a_read_only_socket_and_groups, .timeout = 60)
{
	struct lb_config *config;
	struct fixture g;
	char read_only[108];
	struct stat st;
	char *reply;
	int fd;

	control_fixture_prepare(&g);
	config = fake_lb_config(g.lb);
	snprintf(read_only, sizeof(read_only), "%.60s/run/read-only.sock", g.folder);
	snprintf(config->control_read_only_socket, sizeof(config->control_read_only_socket), "%s",
		 read_only);
	snprintf(config->control_group, sizeof(config->control_group), "no-such-group");
	g.server = control_server_create(g.lb, g.base, g.error, sizeof(g.error));
	cr_assert_null(g.server);
	cr_expect_not_null(strstr(g.error, "there is no group 'no-such-group'"), "%s", g.error);
	/* The test's own group by number: its user is a member. */
	snprintf(config->control_group, sizeof(config->control_group), "%u", (unsigned)getgid());
	g.server = control_server_create(g.lb, g.base, g.error, sizeof(g.error));
	cr_assert_not_null(g.server, "%s", g.error);
	cr_assert_eq(stat(g.socket, &st), 0);
	cr_expect_eq(st.st_gid, getgid());
	cr_expect_eq(st.st_mode & 07777, 0660);
	cr_assert_eq(stat(read_only, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0660);
	snprintf(g.socket, sizeof(g.socket), "%s", read_only);
	fd = fixture_connect_unix(&g);
	fixture_send(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"workers.list\"}");
	reply = fixture_line(&g, fd);
	cr_expect_not_null(strstr(reply, "\"result\""), "%s", reply);
	free(reply);
	fixture_send(fd, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"workers.drain\"}");
	reply = fixture_line(&g, fd);
	cr_expect_not_null(strstr(reply, "is not for the read-only socket"), "%s", reply);
	free(reply);
	close(fd);
	control_fixture_stop(&g);
	cr_expect_neq(stat(read_only, &st), 0, "the socket is left behind");
}
