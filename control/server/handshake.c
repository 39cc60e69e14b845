/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>

#include <openssl/err.h>
#include <rte_log.h>

#include "config/config.h"
#include "server/handshake_limit.h"
#include "server/handshake.h"
#include "server/log_limit.h"
#include "server/rpc.h"
#include "secure/secure.h"
#include "server/refusals.h"

extern int control_log;

struct handshake {
	struct control_handshakes *all;
	struct bufferevent *bev;
	struct event *timer;
	struct handshake_source *source;
	char peer[80];
	TAILQ_ENTRY(handshake) next;
};

struct control_handshakes {
	time_t not_after; /* when our certificate ends; 0: none */
	uint32_t limit_ms;
	struct event_base *base;
	SSL_CTX *context;
	control_admit *admit;
	void *admit_context;
	TAILQ_HEAD(handshake_list, handshake) pending; /* the oldest first */
	struct handshake_limit limit;
	struct log_limit logged;
	struct refusals *refusals;
};

static void handshake_log_refusal(struct control_handshakes *h, const char *peer,
				  const char *reason)
{
	unsigned long unlogged;

	refusals_note(h->refusals, peer, NULL, NULL, reason, clock_now_ms());
	if (log_limit_passes(&h->logged, clock_now_ms(), &unlogged))
		rte_log(RTE_LOG_WARNING, control_log,
			"control: event=agent_refused peer=%s unlogged=%lu reason=\"%s\"\n", peer,
			unlogged, reason);
}

/* Leaves <bev> as it is. */
static void handshake_leave(struct handshake *s, enum handshake_end end)
{
	struct control_handshakes *h = s->all;

	TAILQ_REMOVE(&h->pending, s, next);
	handshake_limit_leave(&h->limit, s->source, end, clock_now_ms());
	event_free(s->timer);
	free(s);
}

/*
 * Read what is left: closing a socket with unread bytes resets the connection, and the peer may
 * lose the alert that says why.
 */
static void read_rest(int fd)
{
	char bytes[4096];

	for (int i = 0; i < 4; i++)
		if (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0)
			return;
}

/* False for a peer that sent no hello, such as a port check: it took a place, but no CPU time. */
static bool has_cost(const struct handshake *s)
{
	return SSL_get_state(bufferevent_openssl_get_ssl(s->bev)) != TLS_ST_BEFORE;
}

static void handshake_refuse(struct handshake *s, enum handshake_end end, const char *reason)
{
	struct bufferevent *bev = s->bev;

	handshake_log_refusal(s->all, s->peer, reason);
	read_rest(bufferevent_getfd(bev));
	handshake_leave(s, end);
	bufferevent_free(bev);
}

/* Read the workers that the peer's certificate allows. False after refusing the peer. */
static bool handshake_read_names(struct handshake *s, const SSL *ssl, char **names)
{
	char buffer[SECURE_NAMES_MAX];

	*names = NULL;
	if (secure_context_tokens(SSL_get_SSL_CTX(ssl)) != NULL)
		return true;
	if (!secure_peer_names(ssl, buffer, sizeof(buffer))) {
		handshake_refuse(s, HANDSHAKE_FAILED,
				 "its certificate has more names than fit 1023 bytes");
		return false;
	}
	*names = strdup(buffer);
	if (*names == NULL)
		handshake_refuse(s, HANDSHAKE_GIVEN_UP, "no memory");
	return *names != NULL;
}

static void handshake_done(struct handshake *s)
{
	struct control_handshakes *h = s->all;
	struct bufferevent *bev = s->bev;
	const SSL *ssl = bufferevent_openssl_get_ssl(bev);
	char peer[sizeof(s->peer)], *names;

	if (!secure_proven(ssl)) {
		handshake_refuse(s, HANDSHAKE_FAILED, "the handshake did not prove who it is");
		return;
	}
	if (!handshake_read_names(s, ssl, &names))
		return;
	snprintf(peer, sizeof(peer), "%s", s->peer);
	handshake_leave(s, HANDSHAKE_PROVEN);
	h->admit(h->admit_context, bev, peer, names);
}

static void handshake_on_event(struct bufferevent *bev, short what, void *context)
{
	struct handshake *s = context;
	unsigned long code;
	char reason[256];

	if (what & BEV_EVENT_CONNECTED) {
		handshake_done(s);
		return;
	}
	code = bufferevent_get_openssl_error(bev);
	secure_reason(SECURE_LOAD_BALANCER, bufferevent_openssl_get_ssl(bev), code, reason,
		      sizeof(reason));
	handshake_refuse(s, code != 0 || has_cost(s) ? HANDSHAKE_FAILED : HANDSHAKE_GIVEN_UP,
			 reason);
}

static void handshake_on_timer(evutil_socket_t fd, short what, void *context)
{
	handshake_refuse(context, HANDSHAKE_GIVEN_UP, "the handshake took too long");
}

/* Begin TLS on <fd>; closes <fd> on failure. */
static struct bufferevent *begin_tls(struct control_handshakes *h, int fd)
{
	SSL *ssl = secure_accept(h->context);
	struct bufferevent *bev = NULL;

	if (ssl != NULL)
		bev = bufferevent_openssl_socket_new(h->base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING,
						     BEV_OPT_CLOSE_ON_FREE);
	if (bev == NULL) {
		SSL_free(ssl);
		close(fd);
	}
	return bev;
}

static void handshake_begin(struct control_handshakes *h, int fd, struct handshake_source *source,
			    const char *peer)
{
	const struct timeval limit = {.tv_sec = h->limit_ms / 1000,
				      .tv_usec = h->limit_ms % 1000 * 1000};
	struct handshake *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		close(fd);
		goto leave_limit;
	}
	s->bev = begin_tls(h, fd);
	if (s->bev == NULL)
		goto free_handshake;
	s->timer = evtimer_new(h->base, handshake_on_timer, s);
	if (s->timer == NULL)
		goto free_bev;
	s->all = h;
	s->source = source;
	snprintf(s->peer, sizeof(s->peer), "%s", peer);
	TAILQ_INSERT_TAIL(&h->pending, s, next);
	bufferevent_setcb(s->bev, NULL, NULL, handshake_on_event, s);
	bufferevent_setwatermark(s->bev, EV_READ, 0, CONTROL_LINE_MAX + 1);
	bufferevent_enable(s->bev, EV_READ | EV_WRITE);
	event_add(s->timer, &limit);
	return;

free_bev:
	bufferevent_free(s->bev);
free_handshake:
	free(s);
leave_limit:
	handshake_limit_leave(&h->limit, source, HANDSHAKE_GIVEN_UP, clock_now_ms());
}

/* End the oldest handshake of <loser>: an honest peer is done within milliseconds. */
static void make_room(struct control_handshakes *h, const struct handshake_source *loser)
{
	struct handshake *s;

	TAILQ_FOREACH (s, &h->pending, next)
		if (s->source == loser)
			break;
	if (s != NULL)
		handshake_refuse(s, HANDSHAKE_GIVEN_UP, "others were waiting");
}

void control_handshake_start(struct control_handshakes *h, int fd, const struct sockaddr *address,
			     const char *peer)
{
	struct handshake_source *source, *loser;

	source = handshake_limit_enter(&h->limit, address, clock_now_ms(), &loser);
	if (loser != NULL)
		make_room(h, loser);
	if (source == NULL) {
		handshake_log_refusal(h, peer,
				      "its address has failed too often, or too many under way");
		close(fd);
		return;
	}
	handshake_begin(h, fd, source, peer);
}

static struct secure_files files_of(const struct lb_config *config)
{
	return (struct secure_files){
		.certificate = config->agents_certificate,
		.key = config->agents_key,
		.ca = config->agents_ca,
		.token = config->agents_token,
	};
}

static void log_context(const SSL_CTX *context)
{
	bool none;
	long days = secure_days_left(context, &none);

	if (none)
		rte_log(RTE_LOG_NOTICE, control_log, "control: agents=tls by=token\n");
	else
		rte_log(RTE_LOG_NOTICE, control_log,
			"control: agents=tls by=certificate days_left=%ld\n", days);
}

void control_handshakes_remind(struct control_handshakes *h, const struct lb_config *config)
{
	char why[160];

	if (secure_validity_at(h->context, time(NULL), &h->not_after, why, sizeof(why)) !=
	    SECURE_VALID)
		rte_log(RTE_LOG_WARNING, control_log,
			"control: event=certificate_validity file=%s reason=\"it %s\"\n",
			config->agents_certificate, why);
}

const time_t *control_handshakes_not_after(const struct control_handshakes *h)
{
	return &h->not_after;
}

int control_server_tls_check(const struct lb_config *config, char *why, size_t size)
{
	struct secure_files files = files_of(config);
	enum secure_validity validity;
	time_t not_after;
	SSL_CTX *context;
	char stands[160];

	if (!secure_wanted(&files))
		return 0;
	context = secure_context(SECURE_LOAD_BALANCER, &files, why, size);
	if (context == NULL)
		return -EINVAL;
	validity = secure_validity_at(context, time(NULL), &not_after, stands, sizeof(stands));
	SSL_CTX_free(context);
	if (validity == SECURE_VALID)
		return 0;
	snprintf(why, size, "control.tls.certificate: %.300s %s", config->agents_certificate,
		 stands);
	return validity == SECURE_ENDS_SOON ? 1 : -EINVAL;
}

bool control_handshakes_wanted(const struct lb_config *config)
{
	struct secure_files files = files_of(config);

	return secure_wanted(&files);
}

int control_handshakes_reload(struct control_handshakes *h, const struct lb_config *config,
			      char *error, size_t error_size)
{
	struct secure_files files = files_of(config);
	SSL_CTX *context;

	if (!secure_wanted(&files)) {
		snprintf(error, error_size,
			 "agents' TLS can be changed, but not turned off, while "
			 "running");
		return -EINVAL;
	}
	context = secure_context(SECURE_LOAD_BALANCER, &files, error, error_size);
	if (context == NULL)
		return -EINVAL;
	SSL_CTX_free(h->context);
	h->context = context;
	log_context(context);
	control_handshakes_remind(h, config);
	return 0;
}

void control_handshakes_limit(struct control_handshakes *h, uint32_t ms)
{
	h->limit_ms = ms;
}

struct control_handshakes *control_handshakes_create(struct event_base *base,
						     const struct lb_config *config,
						     control_admit *admit, void *context,
						     struct refusals *refusals, char *error,
						     size_t error_size)
{
	struct control_handshakes *h = calloc(1, sizeof(*h));

	if (h == NULL) {
		snprintf(error, error_size, "out of memory for agents' connections");
		return NULL;
	}
	h->base = base;
	h->limit_ms = CONTROL_HANDSHAKE_MS;
	h->admit = admit;
	h->admit_context = context;
	h->refusals = refusals;
	TAILQ_INIT(&h->pending);
	if (control_handshakes_reload(h, config, error, error_size) == 0)
		return h;
	free(h);
	return NULL;
}

void control_handshakes_destroy(struct control_handshakes *h)
{
	if (h == NULL)
		return;
	while (!TAILQ_EMPTY(&h->pending)) {
		struct bufferevent *bev = TAILQ_FIRST(&h->pending)->bev;

		handshake_leave(TAILQ_FIRST(&h->pending), HANDSHAKE_GIVEN_UP);
		bufferevent_free(bev);
	}
	SSL_CTX_free(h->context);
	free(h);
}
