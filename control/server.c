/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners, limits, and the delivery of worker events to the agents that own the workers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include <rte_log.h>

#include "config/address.h"
#include "runtime/endpoint.h"
#include "server/handshake.h"
#include "view/http.h"
#include "server.h"
#include "server/stream.h"

RTE_LOG_REGISTER(control_log, doorbell.control, INFO);

#define BACKLOG 1024 /* connections waiting; this many agents may come back at once */

static const struct {
	unsigned int max;
	const char *name;
} roles[CONTROL_ROLES] = {
	[CONTROL_OPERATOR] = {64, "operators"},
	[CONTROL_READER] = {64, "readers"},
	[CONTROL_AGENT] = {2048, "agents"},
};

#define FILES_SPARE 256 /* descriptors for everything that is not a connection */

/* The usual soft limit of 1024 is below our own limits. The administrator's hard limit stays. */
static void raise_file_limit(void)
{
	rlim_t want = FILES_SPARE + roles[CONTROL_OPERATOR].max + roles[CONTROL_READER].max +
		      roles[CONTROL_AGENT].max;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want)
		return;
	limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < want)
		rte_log(RTE_LOG_WARNING, control_log,
			"control: event=few_files have=%llu want=%llu\n",
			(unsigned long long)limit.rlim_cur, (unsigned long long)want);
}

/* Keepalive probes find a host that vanished within some 10 s, also when nothing is being sent. */
static void watch_peer(int fd)
{
	static const struct {
		int level, option, value;
	} settings[] = {
		{SOL_SOCKET, SO_KEEPALIVE, 1},          {IPPROTO_TCP, TCP_KEEPIDLE, 4},
		{IPPROTO_TCP, TCP_KEEPINTVL, 2},        {IPPROTO_TCP, TCP_KEEPCNT, 3},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, 10000}, {IPPROTO_TCP, TCP_NODELAY, 1},
	};

	for (size_t i = 0; i < CONTROL_COUNT_OF(settings); i++)
		setsockopt(fd, settings[i].level, settings[i].option, &settings[i].value,
			   sizeof(settings[i].value));
}

static void peer_name(const struct sockaddr *address, char *buf, size_t size)
{
	char text[INET6_ADDRSTRLEN] = "?";

	if (address->sa_family == AF_INET) {
		const struct sockaddr_in *in4 = (const void *)address;

		inet_ntop(AF_INET, &in4->sin_addr, text, sizeof(text));
		snprintf(buf, size, "%s:%u", text, ntohs(in4->sin_port));
	} else if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)address;

		inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
		snprintf(buf, size, "[%s]:%u", text, ntohs(in6->sin6_port));
	} else {
		snprintf(buf, size, "operator");
	}
}

static void server_serve(struct control_server *server, struct bufferevent *bev,
			 enum control_role role, const char *peer, char *names)
{
	bool full = server->n_streams[role] >= roles[role].max;
	struct control_stream *s = control_stream_create(server, bev, role, peer, names);
	char message[80];

	if (s != NULL && role == CONTROL_AGENT)
		watch_peer(bufferevent_getfd(bev));
	if (s == NULL || !full)
		return;
	rte_log(RTE_LOG_DEBUG, control_log, "control: event=turned_away peer=%s\n", peer);
	snprintf(message, sizeof(message), "too many connections: %u %s are the limit",
		 roles[role].max, roles[role].name);
	control_stream_send(s, control_error_reply(CONTROL_ERROR_STATE, message));
	control_stream_finish(s);
}

/* Take over the connection of an agent whose handshake succeeded. */
static void on_admit(void *context, struct bufferevent *bev, const char *peer, char *names)
{
	server_serve(context, bev, CONTROL_AGENT, peer, names);
}

static void server_on_accept(struct evconnlistener *listener, evutil_socket_t fd,
			     struct sockaddr *address, int length, void *context)
{
	struct control_server *server = context;
	enum control_role role = listener == server->listener[CONTROL_AGENT]    ? CONTROL_AGENT
				 : listener == server->listener[CONTROL_READER] ? CONTROL_READER
										: CONTROL_OPERATOR;
	struct bufferevent *bev;
	char peer[80];

	peer_name(address, peer, sizeof(peer));
	if (role == CONTROL_AGENT && server->handshakes != NULL) {
		control_handshake_start(server->handshakes, fd, address, peer);
		return;
	}
	bev = bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (bev != NULL)
		server_serve(server, bev, role, peer, NULL);
	else
		close(fd);
}

/* Out of descriptors: accepting again at once would spin until some are free. */
static void server_on_accept_error(struct evconnlistener *listener, void *context)
{
	const struct timeval pause = {.tv_sec = 1};
	struct control_server *server = context;

	rte_log(RTE_LOG_WARNING, control_log, "control: event=accept_failed reason=\"%s\"\n",
		strerror(errno));
	evconnlistener_disable(listener);
	event_add(server->retry, &pause);
}

static void on_retry(evutil_socket_t fd, short what, void *context)
{
	struct control_server *server = context;

	for (unsigned int i = 0; i < CONTROL_ROLES; i++)
		if (server->listener[i] != NULL)
			evconnlistener_enable(server->listener[i]);
}

static void on_remind(evutil_socket_t fd, short what, void *context)
{
	struct control_server *server = context;

	if (server->handshakes != NULL)
		control_handshakes_remind(server->handshakes, lb_config_get(server->lb));
}

static void on_worker_event(struct worker *worker, void *context)
{
	struct control_server *server = context;
	struct control_stream *s;

	LIST_FOREACH (s, &server->streams, next) {
		if (s->c.worker != worker)
			continue;
		control_stream_send(s, control_worker_event(&s->c));
		control_stream_deadline(s);
		return;
	}
}

static struct evconnlistener *listen_on(struct control_server *server, int fd, char *error,
					size_t error_size)
{
	struct evconnlistener *listener =
		evconnlistener_new(server->base, server_on_accept, server,
				   LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, BACKLOG, fd);

	if (listener != NULL) {
		evconnlistener_set_error_cb(listener, server_on_accept_error);
		return listener;
	}
	snprintf(error, error_size, "cannot listen for control connections: %s", strerror(errno));
	close(fd);
	return NULL;
}

/* Note the file's identity: another process may have the path by the time we remove the socket. */
static void remember_socket(struct control_server *server, enum control_role role, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0) {
		server->socket[role].dev = st.st_dev;
		server->socket[role].ino = st.st_ino;
	}
}

static void remove_socket(const struct control_server *server, enum control_role role,
			  const char *path)
{
	struct stat st;

	if (server->socket[role].ino && stat(path, &st) == 0 &&
	    st.st_dev == server->socket[role].dev && st.st_ino == server->socket[role].ino)
		unlink(path);
}

static int open_unix(struct control_server *server, enum control_role role, const char *path,
		     const char *group, char *error, size_t error_size)
{
	int fd = control_listen_unix(path, group, error, error_size);

	if (fd < 0)
		return fd;
	remember_socket(server, role, path);
	server->listener[role] = listen_on(server, fd, error, error_size);
	if (server->listener[role] != NULL)
		return 0;
	/* The file, at which nobody listens, would stand in the way of the next try. */
	unlink(path);
	return -EIO;
}

/*
 * Programs that tidy up folders remove sockets that look old, and with it nobody could reach this
 * process any more: make the file again. One that is another process' stays.
 */
static void restore_socket(struct control_server *server, enum control_role role, const char *path,
			   const char *group)
{
	struct evconnlistener *old = server->listener[role];
	char error[512];
	struct stat st;

	if (old == NULL || stat(path, &st) == 0 || errno != ENOENT)
		return;
	if (open_unix(server, role, path, group, error, sizeof(error)) == 0) {
		evconnlistener_free(old);
		server->socket[role].lost = false;
		rte_log(RTE_LOG_WARNING, control_log,
			"control: event=socket_restored socket=%s reason=\"its file was "
			"removed\"\n",
			path);
		return;
	}
	server->listener[role] = old;
	if (!server->socket[role].lost)
		rte_log(RTE_LOG_ERR, control_log, "control: event=socket_lost reason=\"%s\"\n",
			error);
	server->socket[role].lost = true;
}

static void on_sample(evutil_socket_t fd, short what, void *context)
{
	struct control_server *server = context;
	const struct lb_config *config = lb_config_get(server->lb);
	uint64_t now = clock_now_ms();

	window_sample(server->window, server->lb, now);
	restore_socket(server, CONTROL_OPERATOR, config->control_socket, config->control_group);
	restore_socket(server, CONTROL_READER, config->control_read_only_socket,
		       config->control_read_only_group);
}

static int open_listeners(struct control_server *server, char *error, size_t error_size)
{
	const struct lb_config *config = lb_config_get(server->lb);
	struct evconnlistener **listener = server->listener;
	int fd, rc;

	if (control_handshakes_wanted(config)) {
		server->handshakes =
			control_handshakes_create(server->base, config, on_admit, server,
						  &server->refusals, error, error_size);
		if (server->handshakes == NULL)
			return -EINVAL;
	}
	rc = open_unix(server, CONTROL_OPERATOR, config->control_socket, config->control_group,
		       error, error_size);
	if (rc == 0 && config->control_read_only_socket[0])
		rc = open_unix(server, CONTROL_READER, config->control_read_only_socket,
			       config->control_read_only_group, error, error_size);
	if (rc != 0)
		return rc;
	fd = control_listen_tcp(&config->agents_address, config->agents_port, error, error_size);
	if (fd < 0)
		return fd;
	listener[CONTROL_AGENT] = listen_on(server, fd, error, error_size);
	return listener[CONTROL_AGENT] != NULL ? 0 : -EIO;
}

/* Warn at every start about a port that takes agents without certificate or token. */
static void warn_of_strangers(const struct control_server *server)
{
	const struct lb_address *at = &lb_config_get(server->lb)->agents_address;
	bool loopback =
		at->family == 4 ? at->addr.s6_addr[12] == 127 : IN6_IS_ADDR_LOOPBACK(&at->addr);

	if (server->handshakes == NULL && !loopback)
		rte_log(RTE_LOG_WARNING, control_log,
			"control: agents=plain: any host that reaches the agents' port may "
			"register a worker and read requests; set control.tls or "
			"control.token_file\n");
}

static void log_listeners(const struct control_server *server)
{
	const struct lb_config *config = lb_config_get(server->lb);
	char address[LB_ADDRESS_TEXT];

	rte_log(RTE_LOG_INFO, control_log,
		"control: event=listening socket=%s agents_address=%s agents_port=%u\n",
		config->control_socket,
		lb_address_format(&config->agents_address, address, sizeof(address)),
		control_server_agents_port(server));
	warn_of_strangers(server);
}

/* Make all timers; false when one of them cannot be made. */
static bool make_timers(struct control_server *server)
{
	const struct timeval period = {.tv_sec = WINDOW_PERIOD_MS / 1000}, day = {.tv_sec = 86400};

	server->reminder = event_new(server->base, -1, EV_PERSIST, on_remind, server);
	if (server->reminder != NULL)
		event_add(server->reminder, &day);
	server->retry = evtimer_new(server->base, on_retry, server);
	server->sampler = event_new(server->base, -1, EV_PERSIST, on_sample, server);
	if (server->reminder != NULL && server->retry != NULL && server->sampler != NULL &&
	    event_add(server->sampler, &period) == 0)
		return true;
	if (server->reminder != NULL)
		event_free(server->reminder);
	if (server->retry != NULL)
		event_free(server->retry);
	if (server->sampler != NULL)
		event_free(server->sampler);
	return false;
}

struct control_server *control_server_create(struct lb *lb, struct event_base *base, char *error,
					     size_t error_size)
{
	struct control_server *server = calloc(1, sizeof(*server));

	if (server != NULL) {
		server->lb = lb;
		server->base = base;
		server->hello_ms = CONTROL_HELLO_S * 1000;
	}
	if (server != NULL)
		server->window = window_create();
	if (server == NULL || server->window == NULL || !make_timers(server)) {
		snprintf(error, error_size, "out of memory for the control server");
		if (server != NULL)
			window_destroy(server->window);
		free(server);
		return NULL;
	}
	server->start_ms = clock_now_ms();
	window_sample(server->window, lb, server->start_ms);
	LIST_INIT(&server->streams);
	/* libevent writes with writev(), which has no MSG_NOSIGNAL */
	signal(SIGPIPE, SIG_IGN);
	raise_file_limit();
	lb_on_worker_event(lb, on_worker_event, server);
	if (open_listeners(server, error, error_size) != 0) {
		control_server_destroy(server);
		return NULL;
	}
	log_listeners(server);
	server->http = control_http_create(
		lb, server->window, base, server->start_ms,
		server->handshakes != NULL ? control_handshakes_not_after(server->handshakes)
					   : NULL,
		&server->refusals);
	return server;
}

void control_server_destroy(struct control_server *server)
{
	if (server == NULL)
		return;
	control_http_destroy(server->http);
	for (unsigned int i = 0; i < CONTROL_ROLES; i++)
		if (server->listener[i] != NULL)
			evconnlistener_free(server->listener[i]);
	remove_socket(server, CONTROL_OPERATOR, lb_config_get(server->lb)->control_socket);
	remove_socket(server, CONTROL_READER, lb_config_get(server->lb)->control_read_only_socket);
	control_handshakes_destroy(server->handshakes);
	while (!LIST_EMPTY(&server->streams)) {
		LIST_FIRST(&server->streams)->c.ended = true;
		control_stream_destroy(LIST_FIRST(&server->streams));
	}
	lb_on_worker_event(server->lb, NULL, NULL);
	event_free(server->reminder);
	event_free(server->retry);
	event_free(server->sampler);
	window_destroy(server->window);
	free(server);
}

void control_server_limits(struct control_server *server, uint32_t handshake_ms, uint32_t hello_ms)
{
	if (server->handshakes != NULL)
		control_handshakes_limit(server->handshakes, handshake_ms);
	server->hello_ms = hello_ms;
}

bool control_server_has_tls(const struct control_server *server)
{
	return server->handshakes != NULL;
}

int control_server_tls_reload(struct control_server *server, char *error, size_t error_size)
{
	if (server->handshakes == NULL)
		return 0;
	return control_handshakes_reload(server->handshakes, lb_config_get(server->lb), error,
					 error_size);
}

uint16_t control_server_http_port(const struct control_server *server)
{
	return control_http_port(server->http);
}

uint16_t control_server_agents_port(const struct control_server *server)
{
	return endpoint_port_of(evconnlistener_get_fd(server->listener[CONTROL_AGENT]));
}
