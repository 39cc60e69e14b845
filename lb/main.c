/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doorbell-lb: puts the modules together; the only file that includes all of them.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>
#include <rte_log.h>

#include "config/cluster_secret.h"
#include "config/config.h"
#include "ports/eal.h"
#include "lb.h"
#include "observe/access_log.h"
#include "runtime/eal_end.h"
#include "runtime/log_sink.h"
#include "runtime/option_table.h"
#include "reload/certificates.h"
#include "reload/reload.h"
#include "server.h"
#include "server/handshake.h"
#include "config/state_file.h"
#include "supervisor.h"

#define TICK_MS 20
/* Times in a tick that memifs rest because somebody speaks to one, for a fraction of a ms mostly.
 */
#define ATTEND_MAX 4

struct options {
	const char *config;
	bool check;
};

static const struct option_row option_rows[] = {
	{"config", OPTION_TEXT, OPTION_AT(struct options, config), "FILE",
	 "configuration (YAML); deploy/doorbell.yaml is a sample", .letter = 'c', .required = true},
	{"check", OPTION_FLAG, OPTION_AT(struct options, check), NULL,
	 "check the configuration and the files that it names, say what is wrong, and exit"},
	{0},
};

static const struct option_table lb_option_table = {
	.program = "doorbell-lb",
	.usage = "doorbell-lb --config FILE [--check]",
	.version = DOORBELL_VERSION,
	.rows = option_rows,
};

static struct supervisor supervisor;

/* Shared by the callbacks of the event loop. */
struct service {
	struct lb *lb;
	struct event_base *base;
	struct control_server *server;
	struct event *attention; /* NULL: no port needs any */
	unsigned int attended;   /* times since the last tick */
};

static void on_tick(evutil_socket_t fd, short what, void *context)
{
	struct service *s = context;

	lb_tick(s->lb);
	s->attended = 0;
	if (s->attention != NULL)
		event_add(s->attention, NULL);
	supervisor_tick(&supervisor, s->lb, lb_now_ms(s->lb));
	if (lb_stop_over(s->lb))
		event_base_loopbreak(s->base);
}

/* The tick makes this wait again for a descriptor that stays readable, or is too often. */
static void on_attention(evutil_socket_t fd, short what, void *context)
{
	struct service *s = context;

	if (!lb_attend(s->lb) || ++s->attended >= ATTEND_MAX)
		event_del(s->attention);
}

static void ignore_change(void *context, const struct lb_config_change *change)
{
}

/* The first signal begins a graceful stop, a second one ends the process at once. */
static void on_stop_signal(evutil_socket_t signal, short what, void *context)
{
	const struct service *s = context;

	if (lb_is_stopping(s->lb)) {
		rte_log(RTE_LOG_WARNING, RTE_LOGTYPE_USER1,
			"lb: stopping: another signal, so clients of the rest get no notices "
			"signal=%d\n",
			(int)signal);
		event_base_loopbreak(s->base);
		return;
	}
	supervisor_stopping(&supervisor, lb_config_get(s->lb)->stop_timeout_ms);
	lb_stop_begin(s->lb);
}

static void reload_tls(struct control_server *server)
{
	char error[512];

	if (control_server_tls_reload(server, error, sizeof(error)) == 0)
		rte_log(RTE_LOG_NOTICE, RTE_LOGTYPE_USER1, "lb: event=tls_reloaded\n");
	else
		rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "lb: event=tls_kept reason=\"%s\"\n",
			error);
}

/* Reload the configuration and renewed certificates; rotated logs. The log has the results. */
static void on_hangup(evutil_socket_t signal, short what, void *context)
{
	const struct service *s = context;
	char error[512];

	lb_reopen_logs(s->lb);
	/*
	 * The stop continues: a reload would also tell the supervisor that the load balancer is
	 * ready.
	 */
	if (lb_is_stopping(s->lb))
		return;
	supervisor_reloading(&supervisor);
	lb_reload_apply(s->lb, NULL, ignore_change, NULL, error, sizeof(error));
	if (control_server_has_tls(s->server))
		reload_tls(s->server);
	supervisor_ready(&supervisor, s->lb);
}

/* Serve until a signal asks to stop. */
static int serve_until_stopped(struct lb *lb)
{
	struct event_base *base = event_base_new();
	struct control_server *server = NULL;
	struct service service = {.lb = lb, .base = base};
	struct event *tick, *term, *interrupt, *hangup;
	struct timeval period = {.tv_usec = TICK_MS * 1000};
	char error[256] = "no memory for the event loop";
	int ret = EXIT_FAILURE;

	if (base == NULL)
		goto out;
	tick = event_new(base, -1, EV_PERSIST, on_tick, &service);
	term = evsignal_new(base, SIGTERM, on_stop_signal, &service);
	interrupt = evsignal_new(base, SIGINT, on_stop_signal, &service);
	hangup = evsignal_new(base, SIGHUP, on_hangup, &service);
	if (tick == NULL || term == NULL || interrupt == NULL || hangup == NULL)
		goto out;
	event_add(tick, &period);
	/* Events put back what was there before: no signal cuts the end short. */
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	event_add(term, NULL);
	event_add(interrupt, NULL);
	server = control_server_create(lb, base, error, sizeof(error));
	if (server == NULL)
		goto out;
	service.server = server;
	event_add(hangup, NULL);
	if (lb_attention(lb) >= 0)
		service.attention = event_new(base, lb_attention(lb), EV_READ | EV_PERSIST,
					      on_attention, &service);
	if (lb_start(lb) == 0) {
		rte_log(RTE_LOG_NOTICE, RTE_LOGTYPE_USER1,
			"lb: serving control=%s agents_port=%u\n",
			lb_config_get(lb)->control_socket, control_server_agents_port(server));
		supervisor_ready(&supervisor, lb);
		event_base_dispatch(base);
		ret = EXIT_SUCCESS;
	}
	control_server_destroy(server);
	if (service.attention != NULL)
		event_free(service.attention);
	lb_stop(lb);
	event_free(tick);
	event_free(term);
	event_free(interrupt);
	event_free(hangup);
	/* Connections whose callbacks are due are freed by the event loop only. */
	event_base_loop(base, EVLOOP_NONBLOCK);
out:
	if (base != NULL)
		event_base_free(base);
	if (server == NULL)
		log_sink_print(RTE_LOG_ERR, "doorbell-lb: %s", error);
	return ret;
}

static bool open_settings(struct lb *lb)
{
	char error[512];

	if (lb_settings_open(lb, error, sizeof(error)) == 0)
		return true;
	log_sink_print(RTE_LOG_ERR, "doorbell-lb: %s", error);
	return false;
}

/*
 * Check our certificate as agents would. False after printing an error; a warning does not count as
 * one.
 */
static bool check_tls(const char *file, const struct lb_config *config)
{
	char why[512];
	int ret = control_server_tls_check(config, why, sizeof(why));

	if (ret != 0)
		fprintf(stderr, "doorbell-lb: %s: %s%s\n", file, ret > 0 ? "soon: " : "", why);
	return ret >= 0;
}

/* The same for certificates of services: clients refuse one that has ended. */
static bool check_certificates(const char *file, const struct lb_config *config)
{
	struct tls_certificates *certificates;
	char why[1024];

	certificates = certificates_load(config, true, why, sizeof(why));
	if (certificates == NULL)
		fprintf(stderr, "doorbell-lb: %s: %s\n", file, why);
	tls_certificates_free(certificates);
	return certificates != NULL;
}

/* Check the file of operators' settings as a start would. False after printing an error. */
static bool check_state_file(const char *file, const struct lb_config *config)
{
	unsigned int n;
	char why[512];

	if (config->state_file[0] == '\0' ||
	    state_file_check(config->state_file, &n, why, sizeof(why)) == 0)
		return true;
	fprintf(stderr, "doorbell-lb: %s: control.state_file: %s\n", file, why);
	return false;
}

/* The same for the access log's file. */
static bool check_access_log(const char *file, const struct lb_config *config)
{
	char why[LB_FILE_MAX + 128];

	if (config->access_log[0] == '\0' ||
	    access_log_check(config->access_log, why, sizeof(why)) == 0)
		return true;
	fprintf(stderr, "doorbell-lb: %s: %s\n", file, why);
	return false;
}

static struct lb_config start_config; /* too large for a stack; lb_create() copies it */

int main(int argc, char **argv)
{
	struct options options = {0};
	uint64_t seed[2];
	char error[4096]; /* a line for each fault of the file */
	struct lb *lb;
	int ret = options_parse(&lb_option_table, argc, argv, &options, NULL);

	if (ret != 0)
		return ret > 0 ? EXIT_SUCCESS : 2;
	signal(SIGHUP, SIG_IGN); /* until the event loop handles it; log rotation must not end us */
	if (lb_config_load(options.config, &start_config, error, sizeof(error)) < 0) {
		fprintf(stderr, "doorbell-lb: %s\n", error);
		return EXIT_FAILURE;
	}
	if (start_config.cluster_secret[0] != '\0' &&
	    lb_cluster_secret_read(start_config.cluster_secret, seed, error, sizeof(error)) < 0) {
		fprintf(stderr, "doorbell-lb: %s: %s\n", options.config, error);
		return EXIT_FAILURE;
	}
	if (lb_config_lets_strangers_in(&start_config, error, sizeof(error))) {
		fprintf(stderr, "doorbell-lb: %s: %s\n", options.config, error);
		return EXIT_FAILURE;
	}
	if (options.check && (!check_tls(options.config, &start_config) ||
			      !check_certificates(options.config, &start_config) ||
			      !check_state_file(options.config, &start_config) ||
			      !check_access_log(options.config, &start_config)))
		return EXIT_FAILURE;
	if (options.check) {
		printf("%s: %u ports, %u services, %u lcores: good\n", options.config,
		       start_config.n_ports, start_config.n_services, start_config.n_lcores);
		return EXIT_SUCCESS;
	}
	log_sink_open(start_config.log_format);
	supervisor_open(&supervisor);
	if (lb_eal_init(&start_config, argv[0], error, sizeof(error)) < 0) {
		log_sink_print(RTE_LOG_ERR, "doorbell-lb: %s", error);
		return EXIT_FAILURE;
	}
	lb = lb_create(&start_config);
	if (lb != NULL)
		lb_reload_set_file(lb, options.config);
	ret = lb == NULL || !open_settings(lb) ? EXIT_FAILURE : serve_until_stopped(lb);
	lb_destroy(lb);
	supervisor_close(&supervisor);
	eal_end();
	return ret;
}
