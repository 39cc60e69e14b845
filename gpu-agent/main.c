/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doorbell-agent: one per worker. Loads the model, brings up the RNIC, and lets the session talk to
 * the load balancer; after that this thread sleeps.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include "agent.h"
#include "soft_rnic.h"
#include "verbs_rnic.h"

/* The EAL's command line. lcore 0 is this thread, lcore 1 the RNIC; both float over all CPUs. */
static int start_eal(const struct agent_options *o, char *program)
{
	char lcores[2048], memory[16], level[64], *arguments[16];
	cpu_set_t set;
	size_t n;
	int argc = 0;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	n = snprintf(lcores, sizeof(lcores), "--lcores=(0-1)@(");
	for (int i = 0; i < CPU_SETSIZE && n < sizeof(lcores) - 8; i++)
		if (CPU_ISSET(i, &set))
			n += snprintf(lcores + n, sizeof(lcores) - n, "%d,", i);
	snprintf(lcores + n - 1, sizeof(lcores) - n + 1, ")");
	snprintf(memory, sizeof(memory), "%u", o->memory_mb);
	snprintf(level, sizeof(level), "--log-level=doorbell.*:%s", o->log_level);
	arguments[argc++] = program;
	arguments[argc++] = lcores;
	/* The verbs engine has no packets: nothing of it needs hugepages. */
	if (o->hugepages && !o->verbs) {
		arguments[argc++] = "--in-memory";
	} else {
		arguments[argc++] = "--no-huge";
		arguments[argc++] = "--no-shconf";
	}
	arguments[argc++] = "-m";
	arguments[argc++] = memory;
	/* A PCI device is named by its address, which has colons; nothing else is probed. */
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

static void on_signal(evutil_socket_t signal, short what, void *session)
{
	agent_session_leave(session);
}

static int serve(const struct agent_options *o, struct rnic *rnic, const struct loaded_model *model)
{
	struct event_base *base = event_base_new();
	struct agent_session *session =
		base == NULL ? NULL : agent_session_create(base, rnic, model, o);
	struct event *term = NULL, *interrupt = NULL;
	int ret = EXIT_FAILURE;

	if (session != NULL) {
		term = evsignal_new(base, SIGTERM, on_signal, session);
		interrupt = evsignal_new(base, SIGINT, on_signal, session);
	}
	if (term != NULL && interrupt != NULL) {
		event_add(term, NULL);
		event_add(interrupt, NULL);
		event_base_dispatch(base);
		ret = EXIT_SUCCESS;
	}
	if (term != NULL)
		event_free(term);
	if (interrupt != NULL)
		event_free(interrupt);
	agent_session_destroy(session);
	if (base != NULL)
		event_base_free(base);
	return ret;
}

static struct rnic *open_rnic(const struct agent_options *o, char *error, size_t size)
{
	struct verbs_rnic_params verbs = {
		.device = o->device,
		.address = o->address,
		.traffic_class = o->traffic_class,
		.idle_sleep = o->idle_sleep,
		.always_proxy = !o->may_post,
	};
	struct soft_rnic_params soft = {
		.device = o->device,
		.mtu = o->mtu,
		.address = o->address,
		.prefix = o->prefix,
		.gateway = o->gateway,
		.idle_sleep = o->idle_sleep,
		.dcqcn = o->dcqcn,
	};
	char found[384];
	struct rnic *rnic;

	if (!o->verbs)
		return soft_rnic_create(&soft, error, size);
	rnic = verbs_rnic_create(&verbs, found, sizeof(found), error, size);
	if (rnic != NULL)
		rte_log(RTE_LOG_NOTICE, agent_logtype, "agent: worker=%s %s\n", o->name, found);
	return rnic;
}

int main(int argc, char **argv)
{
	struct agent_options options;
	struct loaded_model model;
	struct rnic *rnic;
	char error[512];
	int ret = agent_options_parse(argc, argv, &options);

	if (ret != 0)
		return ret == 1 ? EXIT_SUCCESS : ret;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (agent_model_load(&model, options.model, options.model_arguments, options.max_batch,
			     error, sizeof(error)) < 0) {
		fprintf(stderr, "doorbell-agent: %s\n", error);
		return EXIT_FAILURE;
	}
	if (start_eal(&options, argv[0]) < 0) {
		fprintf(stderr, "doorbell-agent: the EAL did not start (reason above); %s\n",
			options.hugepages ? "are there free hugepages? --no-hugepages goes without"
					  : "is there enough memory for --memory-mb?");
		return EXIT_FAILURE;
	}
	rnic = open_rnic(&options, error, sizeof(error));
	if (rnic == NULL) {
		fprintf(stderr, "doorbell-agent: %s\n", error);
		ret = EXIT_FAILURE;
	} else {
		ret = serve(&options, rnic, &model);
	}
	if (rnic != NULL)
		rnic->ops->close(rnic);
	agent_model_unload(&model);
	rte_eal_cleanup();
	return ret;
}
