/* SPDX-License-Identifier: BSD-3-Clause */
/* The HTTP server as browsers, Prometheus and worse see it: the bytes of requests and replies. */
#include <strings.h>
#include <sys/resource.h>

#include "control_fixture.h"
#include "server/rpc.h"

static struct fixture f;

/* The fixture's server with HTTP on a port of its own. */
static void start(unsigned int workers)
{
	memset(&f, 0, sizeof(f));
	control_fixture_start(&f);
	cr_assert_not_null(f.server, "%s", f.error);
	control_server_destroy(f.server);
	lb_address_parse("127.0.0.1", &fake_lb_config(f.lb)->http_address);
	f.server = control_server_create(f.lb, f.base, f.error, sizeof(f.error));
	cr_assert_not_null(f.server, "%s", f.error);
	cr_assert_neq(control_server_http_port(f.server), 0);
	for (unsigned int i = 0; i < workers; i++) {
		char name[16];

		snprintf(name, sizeof(name), "gpu%u", i);
		fake_lb_worker(f.lb, name);
	}
}

static void stop(void)
{
	control_fixture_stop(&f);
}

TestSuite(control_http, .timeout = 60);

/* Number of libevent's allocations that are not freed. */
static long allocated;

static void *counted_malloc(size_t size)
{
	void *memory = malloc(size);

	allocated += memory != NULL;
	return memory;
}

static void *counted_realloc(void *memory, size_t size)
{
	void *moved = realloc(memory, size);

	allocated += memory == NULL && moved != NULL;
	return moved;
}

static void counted_free(void *memory)
{
	allocated -= memory != NULL;
	free(memory);
}

static int connect_http(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons(control_server_http_port(f.server))};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Returns all bytes until the server ends the connection. The caller frees them. */
static char *hear(int fd)
{
	size_t n = 0, size = 1 << 16;
	char *text = malloc(size);
	ssize_t got;

	do {
		fixture_turn_until(&f, fd);
		if (size - n < 4096)
			text = realloc(text, size *= 2);
		got = read(fd, text + n, size - n - 1);
		n += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	text[n] = '\0';
	close(fd);
	return text;
}

static char *ask(const char *request)
{
	int fd = connect_http();

	say(fd, request);
	return hear(fd);
}

struct row {
	const char *request, *expect, *not_there;
};

#define END " HTTP/1.1\r\nHost: 127.0.0.1:9180\r\nConnection: close\r\n\r\n"

#define ACCEPT(types)                                                                              \
	" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: " types "\r\n\r\n"

static const struct row rows[] = {
	{"GET /healthz" END, "200 OK", NULL},
	{"GET /healthz" END, "\r\n\r\nok\n", NULL},
	{"GET /healthz?x=1" END, "200 OK", NULL},
	{"HEAD /healthz" END, "Content-Length: 3\r\n", "\r\n\r\nok"},
	{"GET /" END, "Content-Type: text/html", NULL},
	{"GET /" END, "Content-Security-Policy: default-src 'none'; script-src 'sha256-", NULL},
	{"GET /" END, "<title>Doorbell</title>", "unsafe-inline"},
	{"GET /" END, "X-Frame-Options: DENY", "unsafe-eval"},
	{"GET /api/status.json" END, "Content-Type: application/json", NULL},
	{"GET /api/status.json" END, "\"name\":\"chat\"", NULL},
	{"HEAD /api/status.json" END, "200 OK", "chat"},
	{"GET /metrics" END, "text/plain; version=0.0.4; charset=utf-8", "# EOF"},
	{"GET /metrics" ACCEPT("application/openmetrics-text"),
	 "application/openmetrics-text; version=1.0.0; charset=utf-8", NULL},
	{"GET /metrics" ACCEPT("application/openmetrics-text;version=1.0.0;q=0.5,"
			       "application/openmetrics-text;version=0.0.1;q=0.4,"
			       "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"),
	 "# EOF\n", NULL},
	{"GET /metrics" ACCEPT("text/plain;q=0.9, application/openmetrics-text; q=0.1"),
	 "text/plain; version=0.0.4", "# EOF"},
	{"GET /metrics" ACCEPT("application/openmetrics-text;q=0"), "text/plain; version=0.0.4",
	 "# EOF"},
	{"GET /metrics" ACCEPT("application/openmetrics-textual"), "text/plain; version=0.0.4",
	 "# EOF"},
	{"GET /metrics" ACCEPT("*/*"), "# TYPE doorbell_worker_requests_total counter\n", "# UNIT"},
	{"GET /metrics" END, "# TYPE doorbell_worker_info gauge\ndoorbell_worker_info{",
	 "stateset"},
	{"GET /readyz" END, "200 OK", "503"},
	{"GET /readyz" END, "\r\n\r\nready\n", NULL},
	{"GET /livez" END, "\r\n\r\nok\n", NULL},
	{"GET /metrics" END, "doorbell_worker_requests_total{worker=\"gpu0\"} 110", NULL},
	{"HEAD /metrics" END, "200 OK", "doorbell_worker"},
	{"GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text\r\n\r\n", "# EOF\n",
	 "chunked"},
	{"GET /../../etc/passwd" END, "404 Not Found", "root:"},
	{"GET /%2e%2e/etc/passwd" END, "404 Not Found", "root:"},
	{"GET //etc/passwd" END, "404 Not Found", "root:"},
	{"GET /<script>" END, "40", "<script>"},
	{"POST /metrics" END, "405 Method Not Allowed", "doorbell_"},
	{"DELETE /" END, "Allow: GET, HEAD", NULL},
	{"OPTIONS /api/status.json" END, "405 ", "chat"},
	{"NONSENSE / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", "40", "<title>"},
	{"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "403 Forbidden",
	 "<title>"},
	{"GET /api/status.json HTTP/1.1\r\nHost: 127.0.0.1.evil.example:9180\r\n"
	 "Connection: close\r\n\r\n",
	 "403 Forbidden", "chat"},
	{"GET /healthz HTTP/1.1\r\nHost: localhost:9180\r\nConnection: close\r\n\r\n", "200 OK",
	 NULL},
	{"GET /healthz HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n", "200 OK", NULL},
	{"GET http://evil.example/metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: "
	 "close\r\n\r\n",
	 "403", "doorbell_"},
};

Test(control_http, requests_get_what_they_should)
{
	start(2);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *reply = ask(rows[i].request);

		cr_expect_not_null(strstr(reply, rows[i].expect), "%s: %.200s", rows[i].request,
				   reply);
		if (rows[i].not_there)
			cr_expect_null(strstr(reply, rows[i].not_there), "%s: %.200s",
				       rows[i].request, reply);
		free(reply);
	}
	stop();
}

Test(control_http, a_connection_carries_many_requests)
{
	static const char request[] = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
	int fd;
	char byte;

	start(0);
	fd = connect_http();
	for (int i = 0; i < 100; i++) {
		unsigned int at = 0;

		say(fd, request);
		while (at < 3) {
			fixture_turn_until(&f, fd);
			cr_assert_eq(read(fd, &byte, 1), 1);
			at = byte == "ok\n"[at] ? at + 1 : 0;
		}
	}
	close(fd);
	stop();
}

Test(control_http, the_status_is_written_a_few_times_a_second_however_many_ask)
{
	uint64_t began, written = 1;
	char *former, *reply;

	start(2);
	began = clock_now_ms();
	former = ask("GET /api/status.json" END);
	for (int i = 0; i < 200; i++) {
		reply = ask("GET /api/status.json" END);
		/* the page has the time since the start, in ms */
		written += strcmp(strstr(reply, "uptime_ms"), strstr(former, "uptime_ms")) != 0;
		free(former);
		former = reply;
	}
	free(former);
	cr_expect_leq(written, 1 + (clock_now_ms() - began) / 200, "%lu times", written);
	stop();
}

Test(control_http, endless_headers_end_the_connection)
{
	char line[128], *reply;
	int fd;

	start(0);
	fd = connect_http();
	say(fd, "GET / HTTP/1.1\r\n");
	memset(line, 'a', sizeof(line));
	line[1] = ':';
	memcpy(line + sizeof(line) - 3, "\r\n", 3);
	for (int i = 0; i < 100; i++) {
		if (send(fd, line, strlen(line), MSG_NOSIGNAL) <= 0)
			break;
		event_base_loop(f.base, EVLOOP_NONBLOCK);
	}
	reply = hear(fd);
	cr_expect_null(strstr(reply, "<title>"));
	free(reply);
	stop();
}

Test(control_http, a_large_body_is_not_taken)
{
	char *reply;

	start(0);
	reply = ask("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\n");
	cr_expect_not_null(strstr(reply, "413"), "%.100s", reply);
	free(reply);
	stop();
}

Test(control_http, connections_beyond_the_limit_wait_until_others_end)
{
	static const char request[] = "GET /healthz" END;
	struct pollfd late;
	int idle[64];
	char *reply;

	start(0);
	for (int i = 0; i < 64; i++) {
		idle[i] = connect_http();
		for (int k = 0; k < 3; k++)
			event_base_loop(f.base, EVLOOP_NONBLOCK);
	}
	late = (struct pollfd){.fd = connect_http(), .events = POLLIN};
	say(late.fd, request);
	for (int i = 0; i < 50; i++)
		event_base_loop(f.base, EVLOOP_NONBLOCK);
	cr_expect_eq(poll(&late, 1, 0), 0, "the 65th connection was served");
	close(idle[5]);
	reply = hear(late.fd);
	cr_expect_not_null(strstr(reply, "200 OK"));
	free(reply);
	for (int i = 0; i < 64; i++)
		if (i != 5)
			close(idle[i]);
	stop();
}

Test(control_http, without_descriptors_the_listener_pauses_instead_of_spinning)
{
	const struct timeval time = {.tv_usec = 300000};
	struct rlimit before, none;
	unsigned int turns = 0;
	int fd, spare;
	char *reply;

	start(0);
	fd = connect_http();
	say(fd, "GET /healthz" END);
	spare = dup(0);
	close(spare);
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = (rlim_t)spare; /* the lowest free number is too high */
	setrlimit(RLIMIT_NOFILE, &none);
	event_base_loopexit(f.base, &time);
	do {
		event_base_loop(f.base, EVLOOP_ONCE);
		turns++;
	} while (!event_base_got_exit(f.base));
	setrlimit(RLIMIT_NOFILE, &before); /* reporting a failure needs descriptors, too */
	/* One that spins has thousands. */
	cr_expect_lt(turns, 100, "%u turns in 300 ms without descriptors", turns);
	reply = hear(fd);
	cr_expect_not_null(strstr(reply, "200 OK"), "nobody was accepted afterwards");
	free(reply);
	stop();
}

/* Begins a scrape: a part of it is read, and the sockets have no room for the rest. */
static int begin_scrape(void)
{
	const int little = 4096;
	char part[1000];
	int fd = connect_http();

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
	say(fd, "GET /metrics" END);
	fixture_turn_until(&f, fd);
	cr_assert_gt(read(fd, part, sizeof(part)), 0);
	return fd;
}

Test(control_http, a_scrape_that_is_broken_off_leaves_nothing_behind)
{
	event_set_mem_functions(counted_malloc, counted_realloc, counted_free);
	start(300);
	for (int i = 0; i < 20; i++) {
		close(begin_scrape());
		for (int k = 0; k < i; k++)
			event_base_loop(f.base, EVLOOP_NONBLOCK);
	}
	stop();
	libevent_global_shutdown();
	cr_expect_eq(allocated, 0, "%ld pieces of memory", allocated);
}

Test(control_http, the_server_may_end_in_the_middle_of_a_scrape)
{
	int fd;

	event_set_mem_functions(counted_malloc, counted_realloc, counted_free);
	start(300);
	fd = begin_scrape();
	stop();
	close(fd);
	libevent_global_shutdown();
	cr_expect_eq(allocated, 0, "%ld pieces of memory", allocated);
}

Test(control_http, a_port_that_is_taken_is_no_reason_to_stop)
{
	struct control_server *other;
	struct lb *lb;

	start(0);
	lb = fake_lb_create_sized(64);
	*fake_lb_config(lb) = *fake_lb_config(f.lb);
	fake_lb_config(lb)->http_port = control_server_http_port(f.server);
	snprintf(fake_lb_config(lb)->control_socket, 100, "%s/other.sock", f.folder);
	other = control_server_create(lb, f.base, f.error, sizeof(f.error));
	cr_assert_not_null(other, "%s", f.error);
	cr_expect_eq(control_server_http_port(other), 0);
	control_server_destroy(other);
	lb_on_worker_event(f.lb, NULL, NULL);
	fake_lb_destroy(lb);
	stop();
}

Test(control_http, off_means_that_nobody_listens)
{
	memset(&f, 0, sizeof(f));
	control_fixture_start(&f);
	cr_expect_eq(control_server_http_port(f.server), 0);
	stop();
}
