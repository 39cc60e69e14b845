/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps a file's services to the numbers of the running ones; refuses what needs a restart. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/config_diff.h"

/* Collects the changes that need a restart in one sentence. */
struct refusal {
	char *error;
	size_t size, used;
	unsigned int n;
};

static void collect_restart(void *context, const struct lb_config_change *change)
{
	struct refusal *r = context;

	if (change->effect != LB_CONFIG_RESTART)
		return;
	if (r->used < r->size)
		r->used += snprintf(r->error + r->used, r->size - r->used,
				    "%s%s changed from '%s' to '%s'", r->n > 0 ? "; " : "",
				    change->key, change->from, change->to);
	r->n++;
}

static int refuse_restarts(const struct lb_config *now, const struct lb_config *file, char *error,
			   size_t size)
{
	struct refusal r = {.error = error, .size = size};

	lb_config_diff(now, file, collect_restart, &r);
	if (r.n == 0)
		return 0;
	if (r.used < size)
		snprintf(error + r.used, size - r.used,
			 ": need%s a restart, nothing was applied; restart doorbell-lb, or undo %s",
			 r.n == 1 ? "s" : "", r.n == 1 ? "it" : "them");
	return -EBUSY;
}

static void note_replace(void *replaced, const struct lb_config_change *change)
{
	*(bool *)replaced |= change->effect == LB_CONFIG_REPLACE;
}

/* True when <b> may keep <a>'s number: no change would move flows to or from the service. */
static bool keeps_number(const struct lb_service_config *a, const struct lb_service_config *b)
{
	bool replaced = false;

	if (!lb_service_used(a) || strcmp(a->name, b->name) != 0)
		return false;
	lb_config_diff_service(a, b, note_replace, &replaced);
	return !replaced;
}

/* The number under which <s> runs or is leaving, else a free one; LB_SERVICES_MAX: none is free. */
static unsigned int number_for(const struct lb_config *now, const struct lb_config *next,
			       const struct lb_service_config *s)
{
	for (unsigned int i = 0; i < now->n_services; i++)
		if (keeps_number(&now->service[i], s) && next->service[i].leaving)
			return i;
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++)
		if (!lb_service_used(&next->service[i]))
			return i;
	return LB_SERVICES_MAX;
}

static int place_services(const struct lb_config *now, const struct lb_config *file,
			  struct lb_config *next, char *error, size_t size)
{
	for (unsigned int i = 0; i < file->n_services; i++) {
		unsigned int number = number_for(now, next, &file->service[i]);

		if (number == LB_SERVICES_MAX) {
			snprintf(error, size,
				 "services[%s]: all %d places are taken, some by services that are "
				 "leaving; apply again in some seconds",
				 file->service[i].name, LB_SERVICES_MAX);
			return -EAGAIN;
		}
		next->service[number] = file->service[i];
		if (number >= next->n_services)
			next->n_services = number + 1;
	}
	return 0;
}

int lb_config_merge(const struct lb_config *now, const struct lb_config *file,
		    struct lb_config *next, char *error, size_t error_size)
{
	int ret = refuse_restarts(now, file, error, error_size);

	if (ret < 0)
		return ret;
	*next = *file;
	next->tcp.used = now->tcp.used;
	next->tcp.secured = now->tcp.secured;
	next->n_services = now->n_services;
	memcpy(next->service, now->service, sizeof(next->service));
	for (unsigned int i = 0; i < next->n_services; i++)
		next->service[i].leaving = lb_service_used(&next->service[i]);
	return place_services(now, file, next, error, error_size);
}
