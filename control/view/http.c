/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include <rte_log.h>

#include "config/address.h"
#include "runtime/endpoint.h"
#include "view/http.h"
#include "page.h"
#include "server/rpc.h"
#include "view/view.h"

RTE_LOG_REGISTER(control_http_log, doorbell.http, INFO);

#define CONNECTIONS_MAX 64
#define HEADERS_MAX     8192
#define BODY_MAX        1024
#define STALL_S         10 /* time limit without a byte of progress */
#define REQUEST_S       30 /* time limit of a request, from the connection or the last reply */
#define REPLY_S         60 /* time limit of a whole reply */
#define SLICE_US        1000
#define SWEEP_MS        100
#define STATUS_MS       200 /* age at which the status is written again */
#define PAUSE_S         1   /* from a failed accept() to the next one */

/*
 * One accepted socket. libevent's HTTP server does not tell when it is done with a connection. So
 * this holds a reference to the bufferevent, and ten times a second a sweep looks whether it still
 * has callbacks: without them the server has let go of it.
 */
struct connection {
	struct bufferevent *bev;
	uint64_t deadline_ms;
	LIST_ENTRY(connection) next;
};

/* One reply to /metrics that is being sent. */
struct scrape {
	struct control_http *http;
	struct evhttp_request *request;
	struct metrics_walk walk;
	LIST_ENTRY(scrape) next;
};

struct control_http {
	struct view view;
	struct evhttp *server;
	struct evhttp_bound_socket *bound;
	struct event *sweeper;
	struct event *again; /* accepts again after a pause */
	bool loopback;
	unsigned int n_connections;
	LIST_HEAD(, connection) connections;
	LIST_HEAD(, scrape) scrapes;
	struct text status;
	uint64_t status_ms; /* when it was written */
	LIST_ENTRY(control_http) next;
};

/* All servers: libevent reports a listener's errors with a context of its own. */
static LIST_HEAD(, control_http) servers = LIST_HEAD_INITIALIZER(servers);

/* --- connections ------------------------------------------------------------------------------ */

static struct evconnlistener *listener_of(const struct control_http *http)
{
	return evhttp_bound_socket_get_listener(http->bound);
}

static bool is_served(const struct connection *c)
{
	bufferevent_event_cb on_event = NULL;

	bufferevent_getcb(c->bev, NULL, NULL, &on_event, NULL);
	return on_event != NULL;
}

static void http_forget(struct control_http *http, struct connection *c)
{
	LIST_REMOVE(c, next);
	bufferevent_decref(c->bev);
	free(c);
	if (http->n_connections-- == CONNECTIONS_MAX && http->bound != NULL &&
	    !event_pending(http->again, EV_TIMEOUT, NULL))
		evconnlistener_enable(listener_of(http));
}

/* Out of descriptors: accepting again at once would spin until some are free. */
static void http_on_accept_error(struct evconnlistener *listener, void *context)
{
	const struct timeval pause = {.tv_sec = PAUSE_S};
	int error = EVUTIL_SOCKET_ERROR();
	struct control_http *http;

	LIST_FOREACH (http, &servers, next)
		if (http->bound != NULL && listener_of(http) == listener)
			break;
	if (http == NULL)
		return;
	rte_log(RTE_LOG_WARNING, control_http_log, "http: event=accept_failed reason=\"%s\"\n",
		strerror(error));
	evconnlistener_disable(listener);
	event_add(http->again, &pause);
}

static void on_again(evutil_socket_t fd, short what, void *context)
{
	struct control_http *http = context;

	if (http->n_connections < CONNECTIONS_MAX)
		evconnlistener_enable(listener_of(http));
}

/* Forget connections that ended, and end those that take too long. */
static void on_sweep(evutil_socket_t fd, short what, void *context)
{
	struct control_http *http = context;
	uint64_t now = clock_now_ms();
	struct connection *c, *next;

	for (c = LIST_FIRST(&http->connections); c != NULL; c = next) {
		next = LIST_NEXT(c, next);
		if (!is_served(c))
			http_forget(http, c);
		else if (now > c->deadline_ms)
			shutdown(bufferevent_getfd(c->bev), SHUT_RDWR); /* libevent notices */
	}
	if (http->n_connections == 0)
		event_del(http->sweeper);
}

static void set_deadline(struct connection *c, unsigned int seconds)
{
	c->deadline_ms = clock_now_ms() + seconds * 1000;
}

/* Called for each connection that is accepted; on NULL libevent makes the bufferevent itself. */
static struct bufferevent *http_on_accept(struct event_base *base, void *context)
{
	const struct timeval period = {.tv_usec = SWEEP_MS * 1000};
	struct control_http *http = context;
	struct connection *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	if (c->bev == NULL) {
		free(c);
		return NULL;
	}
	bufferevent_incref(c->bev);
	LIST_INSERT_HEAD(&http->connections, c, next);
	set_deadline(c, REQUEST_S);
	if (http->n_connections++ == 0)
		event_add(http->sweeper, &period);
	if (http->n_connections == CONNECTIONS_MAX)
		evconnlistener_disable(listener_of(http));
	return c->bev;
}

static struct connection *connection_of(struct control_http *http, struct evhttp_request *request)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(request);
	struct bufferevent *bev = evcon != NULL ? evhttp_connection_get_bufferevent(evcon) : NULL;
	struct connection *c;

	LIST_FOREACH (c, &http->connections, next)
		if (c->bev == bev)
			return c;
	return NULL;
}

/* The reply is out: start the time limit of the next request. */
static void on_complete(struct evhttp_request *request, void *context)
{
	struct connection *c = connection_of(context, request);

	if (c != NULL)
		set_deadline(c, REQUEST_S);
}

/* --- replies ---------------------------------------------------------------------------------- */

static void add_header(struct evhttp_request *request, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

static void add_headers(struct evhttp_request *request, const char *type)
{
	add_header(request, "Content-Type", type);
	add_header(request, "Cache-Control", "no-store");
	add_header(request, "X-Content-Type-Options", "nosniff");
	add_header(request, "Content-Security-Policy", PAGE_POLICY);
	add_header(request, "X-Frame-Options", "DENY");
	add_header(request, "Referrer-Policy", "no-referrer");
}

static bool is_head(struct evhttp_request *request)
{
	return evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
}

static void http_refuse(struct evhttp_request *request, int code, const char *reason,
			const char *text)
{
	struct evbuffer *body = evbuffer_new();

	add_headers(request, "text/plain; charset=utf-8");
	if (code == HTTP_BADMETHOD)
		add_header(request, "Allow", "GET, HEAD");
	if (body != NULL && !is_head(request))
		evbuffer_add_printf(body, "%s\n", text);
	evhttp_send_reply(request, code, reason, body);
	if (body != NULL)
		evbuffer_free(body);
}

static void http_free_text(const void *data, size_t n, void *context)
{
	free(context);
}

/* Send a complete body. HEAD gets its length only. */
static void reply_with(struct evhttp_request *request, const char *type, const void *data, size_t n,
		       evbuffer_ref_cleanup_cb cleanup)
{
	struct evbuffer *body = evbuffer_new();
	char length[24];

	add_headers(request, type);
	snprintf(length, sizeof(length), "%zu", n);
	add_header(request, "Content-Length", length);
	if (body == NULL || is_head(request) ||
	    evbuffer_add_reference(body, data, n, cleanup, (void *)(uintptr_t)data) != 0) {
		if (cleanup != NULL)
			cleanup(data, n, (void *)(uintptr_t)data);
	}
	evhttp_send_reply(request, HTTP_OK, "OK", body);
	if (body != NULL)
		evbuffer_free(body);
}

static void reply_page(struct control_http *http, struct evhttp_request *request)
{
	reply_with(request, "text/html; charset=utf-8", page_html, sizeof(page_html), NULL);
}

/* True to the question "send requests here?"; /livez answers the other one, "is it alive?". */
static void reply_ready(struct control_http *http, struct evhttp_request *request)
{
	static const char ready[] = "ready\n";
	struct text reasons = {0};

	if (view_ready(&http->view, &reasons)) {
		text_free(&reasons);
		reply_with(request, "text/plain; charset=utf-8", ready, sizeof(ready) - 1, NULL);
		return;
	}
	while (reasons.n > 0 && reasons.data[reasons.n - 1] == '\n')
		reasons.n--;
	text_add(&reasons, "", 1);
	http_refuse(request, HTTP_SERVUNAVAIL, "Service Unavailable",
		    reasons.failed ? "not ready" : reasons.data);
	text_free(&reasons);
}

static void reply_health(struct control_http *http, struct evhttp_request *request)
{
	static const char ok[] = "ok\n";

	reply_with(request, "text/plain; charset=utf-8", ok, sizeof(ok) - 1, NULL);
}

/*
 * Write the status again when it is older than STATUS_MS, however many ask: with many workers that
 * takes a while.
 */
static void write_status(struct control_http *http)
{
	uint64_t now = clock_now_ms();

	if (http->status.n > 0 && !http->status.failed && now - http->status_ms < STATUS_MS)
		return;
	text_free(&http->status);
	view_status(&http->view, &http->status);
	http->status_ms = now;
}

static void reply_status(struct control_http *http, struct evhttp_request *request)
{
	struct text text = {0};

	write_status(http);
	text_add(&text, http->status.data, http->status.n);
	if (http->status.failed || text.failed) {
		text_free(&text);
		http_refuse(request, HTTP_INTERNAL, "Internal Server Error", "out of memory");
		return;
	}
	reply_with(request, "application/json", text.data, text.n, http_free_text);
}

/* --- metrics: a slice of them whenever the one before is written ------------------------------ */

static void end_scrape(struct scrape *s)
{
	LIST_REMOVE(s, next);
	free(s);
}

/*
 * The connection closed during a scrape. When the peer ended it, libevent has released the request,
 * which we then free. When our server ends, libevent frees the request with the connection.
 */
static void on_scrape_closed(struct evhttp_connection *evcon, void *context)
{
	struct scrape *s = context;

	if (evhttp_request_get_connection(s->request) == NULL)
		evhttp_request_free(s->request);
	end_scrape(s);
}

static void on_slice_written(struct evhttp_connection *evcon, void *context)
{
	struct scrape *s = context;
	struct evhttp_request *request = s->request;
	struct evbuffer *chunk = evbuffer_new();
	struct text text = {0};

	if (!s->walk.done)
		view_metrics(&s->http->view, &s->walk, SLICE_US, &text);
	else
		text.failed = true; /* nothing more to come */
	if (chunk == NULL || text.failed || text.n == 0 ||
	    evbuffer_add_reference(chunk, text.data, text.n, http_free_text, text.data) != 0) {
		text_free(&text);
		evhttp_connection_set_closecb(evcon, NULL, NULL);
		end_scrape(s);
		evhttp_send_reply_end(request);
	} else {
		evhttp_send_reply_chunk_with_cb(request, chunk, on_slice_written, s);
	}
	if (chunk != NULL)
		evbuffer_free(chunk);
}

/*
 * Preference for <type> in the Accept header (RFC 9110, 12.5.1), 0 to 1000; <general> when the
 * header does not name it.
 */
static unsigned int wants(struct evhttp_request *request, const char *type, unsigned int general)
{
	const char *accept =
		evhttp_find_header(evhttp_request_get_input_headers(request), "Accept");
	size_t n = strlen(type);
	unsigned int most = 0;
	bool named = false;

	for (; accept != NULL && *accept; accept += *accept == ',') {
		size_t length = strcspn(accept += strspn(accept, " \t"), ",");
		const char *q = memmem(accept, length, ";q=", 3);
		double quality;

		if (q == NULL)
			q = memmem(accept, length, "; q=", 4);
		quality = q != NULL ? strtod(strchr(q, '=') + 1, NULL) : 1;
		if (length >= n && strncasecmp(accept, type, n) == 0 &&
		    strchr(";, \t", accept[n]) != NULL && quality >= 0 && quality <= 1) {
			named = true;
			most = RTE_MAX(most, (unsigned int)(quality * 1000));
		}
		accept += length;
	}
	return named ? most : general;
}

static void reply_metrics(struct control_http *http, struct evhttp_request *request)
{
	/* without a preference send Prometheus' text, which every scraper can read */
	bool open = wants(request, "application/openmetrics-text", 0) >
		    RTE_MIN(wants(request, "text/plain", 0), 999u);
	const char *type = open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
				: "text/plain; version=0.0.4; charset=utf-8";
	struct evhttp_connection *evcon = evhttp_request_get_connection(request);
	struct scrape *s = is_head(request) ? NULL : calloc(1, sizeof(*s));

	if (s == NULL) {
		if (!is_head(request)) {
			http_refuse(request, HTTP_INTERNAL, "Internal Server Error",
				    "out of memory");
			return;
		}
		add_headers(request, type);
		evhttp_send_reply(request, HTTP_OK, "OK", NULL);
		return;
	}
	s->http = http;
	s->request = request;
	s->walk.plain = !open;
	LIST_INSERT_HEAD(&http->scrapes, s, next);
	evhttp_connection_set_closecb(evcon, on_scrape_closed, s);
	add_headers(request, type);
	evhttp_send_reply_start(request, HTTP_OK, "OK");
	on_slice_written(evcon, s);
}

/* --- requests --------------------------------------------------------------------------------- */

static const struct {
	const char *path;
	void (*reply)(struct control_http *http, struct evhttp_request *request);
} paths[] = {
	{"/", reply_page},          {"/api/status.json", reply_status}, {"/metrics", reply_metrics},
	{"/healthz", reply_health}, {"/livez", reply_health},           {"/readyz", reply_ready},
};

/*
 * True for "127.0.0.1", "[::1]" or "localhost", with any port or none. True without the header,
 * too, as every browser sends it.
 */
static bool host_is_loopback(struct evhttp_request *request)
{
	const char *host = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
	struct in_addr address;
	char name[64];
	size_t n;

	if (host == NULL || strncmp(host, "[::1]", 5) == 0)
		return true;
	n = strcspn(host, ":");
	if (n >= sizeof(name))
		return false;
	memcpy(name, host, n);
	name[n] = '\0';
	if (strcasecmp(name, "localhost") == 0)
		return true;
	return inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

static void on_request(struct evhttp_request *request, void *context)
{
	struct control_http *http = context;
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	struct connection *c = connection_of(http, request);

	if (c != NULL)
		set_deadline(c, REPLY_S);
	evhttp_request_set_on_complete_cb(request, on_complete, http);
	if (evhttp_request_get_command(request) != EVHTTP_REQ_GET && !is_head(request)) {
		http_refuse(request, HTTP_BADMETHOD, "Method Not Allowed", "GET or HEAD, please");
		return;
	}
	if (http->loopback && !host_is_loopback(request)) {
		http_refuse(request, 403, "Forbidden",
			    "the Host header names no loopback address; use the address itself");
		return;
	}
	for (size_t i = 0; i < CONTROL_COUNT_OF(paths); i++) {
		if (path != NULL && strcmp(path, paths[i].path) == 0) {
			paths[i].reply(http, request);
			return;
		}
	}
	http_refuse(
		request, HTTP_NOTFOUND, "Not Found",
		"not here; there are /, /metrics, /api/status.json, /readyz, /livez and /healthz");
}

static bool http_is_loopback(const struct lb_address *address)
{
	static const struct in6_addr one = IN6ADDR_LOOPBACK_INIT;

	return address->family == 6 ? memcmp(&address->addr, &one, sizeof(one)) == 0
				    : address->addr.s6_addr[12] == 127;
}

static bool listen_at(struct control_http *http, const struct lb_address *address, uint16_t port)
{
	char text[LB_ADDRESS_TEXT];

	lb_address_format(address, text, sizeof(text));
	errno = 0;
	http->bound = evhttp_bind_socket_with_handle(http->server, text, port);
	if (http->bound == NULL) {
		rte_log(RTE_LOG_WARNING, control_http_log,
			"http: event=no_listener address=%s port=%u reason=\"%s; change "
			"control.http, or set it to off\"\n",
			text, port, strerror(errno));
		return false;
	}
	evconnlistener_set_error_cb(listener_of(http), http_on_accept_error);
	rte_log(RTE_LOG_INFO, control_http_log, "http: event=listening address=%s port=%u\n", text,
		control_http_port(http));
	return true;
}

struct control_http *control_http_create(struct lb *lb, const struct window *window,
					 struct event_base *base, uint64_t start_ms,
					 const time_t *tls_not_after,
					 const struct refusals *refusals)
{
	const struct lb_config *config = lb_config_get(lb);
	struct control_http *http;

	if (config->http_address.family == 0)
		return NULL;
	http = calloc(1, sizeof(*http));
	if (http == NULL)
		return NULL;
	http->view = (struct view){.lb = lb,
				   .window = window,
				   .start_ms = start_ms,
				   .tls_not_after = tls_not_after,
				   .refusals = refusals};
	http->loopback = http_is_loopback(&config->http_address);
	LIST_INIT(&http->connections);
	LIST_INIT(&http->scrapes);
	LIST_INSERT_HEAD(&servers, http, next);
	http->server = evhttp_new(base);
	http->sweeper = event_new(base, -1, EV_PERSIST, on_sweep, http);
	http->again = evtimer_new(base, on_again, http);
	if (http->server == NULL || http->sweeper == NULL || http->again == NULL)
		goto fail;
	evhttp_set_bevcb(http->server, http_on_accept, http);
	evhttp_set_gencb(http->server, on_request, http);
	evhttp_set_max_headers_size(http->server, HEADERS_MAX);
	evhttp_set_max_body_size(http->server, BODY_MAX);
	evhttp_set_timeout(http->server, STALL_S);
	/* All methods that libevent knows, so that they are answered with 405 rather than 501. */
	evhttp_set_allowed_methods(http->server, 0xffff);
	if (!listen_at(http, &config->http_address, config->http_port))
		goto fail;
	return http;
fail:
	control_http_destroy(http);
	return NULL;
}

void control_http_destroy(struct control_http *http)
{
	if (http == NULL)
		return;
	LIST_REMOVE(http, next);
	http->bound = NULL; /* the server owns it */
	if (http->server != NULL)
		evhttp_free(http->server);
	while (!LIST_EMPTY(&http->scrapes))
		end_scrape(LIST_FIRST(&http->scrapes));
	while (!LIST_EMPTY(&http->connections))
		http_forget(http, LIST_FIRST(&http->connections));
	if (http->sweeper != NULL)
		event_free(http->sweeper);
	if (http->again != NULL)
		event_free(http->again);
	text_free(&http->status);
	free(http);
}

uint16_t control_http_port(const struct control_http *http)
{
	return http != NULL ? endpoint_port_of(evhttp_bound_socket_get_fd(http->bound)) : 0;
}
