/* SPDX-License-Identifier: BSD-3-Clause */
#include "reload/reload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/memory.h"
#include "lcore/lcore.h"
#include "membership/registry.h"
#include "reload/apply.h"
#include "reload/certificates.h"

/* Configurations of a reload, too large for a stack. */
struct reload {
	struct lb_config file, next;
};

void lb_reload_set_file(struct lb *lb, const char *path)
{
	free(lb->config_path);
	/* An absolute path, as a daemon's working directory may change. */
	lb->config_path = realpath(path, NULL);
}

const char *lb_reload_file(const struct lb *lb)
{
	return lb->config_path;
}

/* NULL with -errno in <ret>. */
static struct reload *read_file(struct lb *lb, const char *path, int *ret, char *error, size_t size)
{
	struct reload *r;

	if (path == NULL)
		path = lb->config_path;
	if (path == NULL) {
		snprintf(error, size, "no file was given; name one");
		*ret = -EINVAL;
		return NULL;
	}
	r = malloc(sizeof(*r));
	if (r == NULL) {
		snprintf(error, size, "no memory for the configuration");
		*ret = -ENOMEM;
		return NULL;
	}
	*ret = lb_config_load(path, &r->file, error, size);
	if (*ret == 0)
		return r;
	free(r);
	return NULL;
}

static int reload_plan(struct lb *lb, struct reload *r, lb_config_visit *visit, void *context,
		       char *error, size_t size)
{
	int ret;

	lb_config_diff(&lb->config, &r->file, visit, context);
	ret = lb_config_merge(&lb->config, &r->file, &r->next, error, size);
	if (ret < 0)
		return ret;
	if (lb->lcore[0]->replay_copies_max == 0 && lb_replays_per_lcore(&r->next) > 0) {
		snprintf(error, size,
			 "services: replay changed from 0: needs a restart, which reserves packets "
			 "for it; nothing was applied");
		return -EBUSY;
	}
	return registry_check_config(lb, &r->next, error, size) < 0 ? -EBUSY : 0;
}

/* Read the certificates of the next configuration. 0, or -EINVAL. */
static int reload_certificates(const struct reload *r, struct tls_certificates **certificates,
			       char *error, size_t size)
{
	*certificates = NULL;
	if (!r->next.tcp.secured)
		return 0;
	*certificates = certificates_load(&r->next, true, error, size);
	return *certificates == NULL ? -EINVAL : 0;
}

int lb_reload_diff(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
		   char *error, size_t size)
{
	int ret;
	struct reload *r = read_file(lb, path, &ret, error, size);

	if (r != NULL)
		lb_config_diff(&lb->config, &r->file, visit, context);
	free(r);
	return ret;
}

int lb_reload_check(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
		    char *error, size_t size)
{
	int ret;
	struct reload *r = read_file(lb, path, &ret, error, size);
	struct tls_certificates *certificates = NULL;

	if (r != NULL)
		ret = reload_plan(lb, r, visit, context, error, size);
	if (ret == 0)
		ret = reload_certificates(r, &certificates, error, size);
	tls_certificates_free(certificates);
	free(r);
	return ret;
}

struct visitor {
	lb_config_visit *visit;
	void *context;
	unsigned int n;
};

static void count_change(void *context, const struct lb_config_change *change)
{
	struct visitor *v = context;

	v->n++;
	v->visit(v->context, change);
}

static void log_change(void *context, const struct lb_config_change *c)
{
	LB_LOG(NOTICE, "config key=%s from=\"%s\" to=\"%s\"", c->key, c->from, c->to);
}

/* Applies what was planned, and uses the certificates, or neither. */
static int reload_commit(struct lb *lb, const struct reload *r, bool changed,
			 struct tls_certificates *certificates, char *error, size_t size)
{
	struct tls_certificates *before = NULL;
	int ret = 0;

	/* Before the lcores have the services: their first clients may come at once. */
	if (lb->tls != NULL)
		before = tls_helper_use(lb->tls, certificates);
	if (changed) {
		lb_config_diff(&lb->config, &r->file, log_change, NULL);
		ret = apply_config(lb, &r->next, error, size);
	}
	if (ret < 0 && lb->tls != NULL)
		before = tls_helper_use(lb->tls, before);
	tls_certificates_free(before);
	return ret;
}

int lb_reload_apply(struct lb *lb, const char *path, lb_config_visit *visit, void *context,
		    char *error, size_t size)
{
	struct visitor v = {.visit = visit, .context = context};
	struct tls_certificates *certificates = NULL;
	struct reload *r;
	int ret;

	if (lb_is_winding_down(lb)) {
		snprintf(error, size, "the load balancer is stopping");
		r = NULL;
		ret = -ESHUTDOWN;
	} else {
		r = read_file(lb, path, &ret, error, size);
	}
	if (r != NULL)
		ret = reload_plan(lb, r, count_change, &v, error, size);
	if (ret == 0)
		ret = reload_certificates(r, &certificates, error, size);
	if (ret == 0)
		ret = reload_commit(lb, r, v.n > 0, certificates, error, size);
	if (ret == 0)
		LB_LOG(NOTICE, "config applied changes=%u file=%s", v.n,
		       path != NULL ? path : lb->config_path);
	else
		LB_LOG(ERR, "config refused, the old one stays in use reason=\"%.*s\"",
		       (int)strcspn(error, "\n"), error); /* the first fault: logs have lines */
	free(r);
	return ret;
}
