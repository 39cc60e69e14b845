/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks the schema's tables over two configurations at once. */
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/config_diff.h"
#include "config/config_schema.h"

struct walk {
	lb_config_visit *visit;
	void *context;
};

static const char *const effects[LB_CONFIG_EFFECTS] = {
	[LB_CONFIG_RESTART] = "restart",
	[LB_CONFIG_REPLACE] = "replace",
	[LB_CONFIG_LIVE] = "live",
};

const char *lb_config_effect_name(enum lb_config_effect effect)
{
	return effects[effect];
}

static void report_change(const struct walk *w, const char *path, const char *from, const char *to,
			  enum lb_config_effect effect)
{
	struct lb_config_change change = {.effect = effect};

	snprintf(change.key, sizeof(change.key), "%s", path);
	snprintf(change.from, sizeof(change.from), "%s", from);
	snprintf(change.to, sizeof(change.to), "%s", to);
	w->visit(w->context, &change);
}

static void diff_key(const struct walk *w, const struct config_key *key, const char *outer,
		     const void *from, const void *to);

/* Print a path and leave room for the 40 characters that may follow it. */
#define OUTER(path) (int)(LB_CONFIG_KEY_MAX - 40), path

static void diff_block(const struct walk *w, const struct config_key *rows, const char *path,
		       const void *from, const void *to)
{
	for (const struct config_key *row = rows; row->name != NULL; row++)
		if (!row->alias)
			diff_key(w, row, path, from, to);
}

static unsigned int count_of(const struct config_key *key, const void *base)
{
	return *(const unsigned int *)((const char *)base + key->second);
}

static void diff_list(const struct walk *w, const struct config_key *key, const char *path,
		      const void *from, const void *to)
{
	unsigned int n = count_of(key, from), m = count_of(key, to);
	char inner[LB_CONFIG_KEY_MAX], before[32], after[32];

	for (unsigned int i = 0; i < n && i < m; i++) {
		snprintf(inner, sizeof(inner), "%.*s[%u]", OUTER(path), i);
		diff_key(w, key->item, inner, (const char *)from + key->offset + i * key->size,
			 (const char *)to + key->offset + i * key->size);
	}
	if (n == m)
		return;
	snprintf(before, sizeof(before), "%u entries", n);
	snprintf(after, sizeof(after), "%u entries", m);
	report_change(w, path, before, after, key->effect);
}

/* The path of <key> in <outer>; an item of a list has no name and keeps its list's path. */
static const char *path_of(const struct config_key *key, const char *outer,
			   char path[LB_CONFIG_KEY_MAX])
{
	if (key->name == NULL)
		return outer;
	snprintf(path, LB_CONFIG_KEY_MAX, "%.*s%s%s", OUTER(outer), *outer != '\0' ? "." : "",
		 key->name);
	return path;
}

static void diff_key(const struct walk *w, const struct config_key *key, const char *outer,
		     const void *from, const void *to)
{
	char before[LB_CONFIG_VALUE_MAX], after[LB_CONFIG_VALUE_MAX], path[LB_CONFIG_KEY_MAX];

	if (key->kind == &config_block)
		return diff_block(w, key->block, path_of(key, outer, path), from, to);
	if (key->item == &config_service_item)
		return; /* matched by name, not by place */
	if (key->kind == &config_list && key->size != 0)
		return diff_list(w, key, path_of(key, outer, path), from, to);
	config_format(key, from, before, sizeof(before));
	config_format(key, to, after, sizeof(after));
	if (strcmp(before, after) != 0)
		report_change(w, path_of(key, outer, path), before, after, key->effect);
}

static void service_diff(const struct walk *w, const struct lb_service_config *from,
			 const struct lb_service_config *to)
{
	char path[LB_CONFIG_KEY_MAX];

	snprintf(path, sizeof(path), "services[%s]", to->name);
	diff_block(w, config_service_item.block, path, from, to);
}

void lb_config_diff_service(const struct lb_service_config *from,
			    const struct lb_service_config *to, lb_config_visit *visit,
			    void *context)
{
	const struct walk w = {.visit = visit, .context = context};

	service_diff(&w, from, to);
}

static const struct lb_service_config *service_named(const struct lb_config *config,
						     const char *name)
{
	for (unsigned int i = 0; i < config->n_services; i++)
		if (lb_service_serves(&config->service[i]) &&
		    strcmp(config->service[i].name, name) == 0)
			return &config->service[i];
	return NULL;
}

/* One line that describes a service that was added or removed. */
static void service_summary(const struct lb_service_config *s, char *buf, size_t size)
{
	char address[LB_ADDRESS_TEXT];

	snprintf(buf, size, "%s %s port %u, model %s",
		 lb_address_format(&s->vip, address, sizeof(address)),
		 s->protocol == IPPROTO_TCP ? "tcp" : "udp", s->port, s->model);
}

static void diff_services(const struct walk *w, const struct lb_config *from,
			  const struct lb_config *to)
{
	char path[LB_CONFIG_KEY_MAX], text[LB_CONFIG_VALUE_MAX];

	for (unsigned int i = 0; i < from->n_services; i++) {
		const struct lb_service_config *s = &from->service[i];

		if (!lb_service_serves(s) || service_named(to, s->name) != NULL)
			continue;
		snprintf(path, sizeof(path), "services[%s]", s->name);
		service_summary(s, text, sizeof(text));
		report_change(w, path, text, "", LB_CONFIG_LIVE);
	}
	for (unsigned int i = 0; i < to->n_services; i++) {
		const struct lb_service_config *s = &to->service[i];
		const struct lb_service_config *old = service_named(from, s->name);

		if (!lb_service_serves(s))
			continue;
		if (old != NULL) {
			service_diff(w, old, s);
			continue;
		}
		snprintf(path, sizeof(path), "services[%s]", s->name);
		service_summary(s, text, sizeof(text));
		report_change(w, path, "", text, LB_CONFIG_LIVE);
	}
}

/* Memory for connections, and for TLS, is allocated at the start, if a service has it. */
static void diff_first(const struct walk *w, const struct lb_config *to, const char *key, bool tls)
{
	char path[LB_CONFIG_KEY_MAX] = "";

	for (unsigned int i = 0; i < to->n_services && path[0] == '\0'; i++) {
		const struct lb_service_config *s = &to->service[i];

		if (tls ? lb_service_has_tls(s) : s->protocol == IPPROTO_TCP)
			snprintf(path, sizeof(path), "services[%s]", s->name);
	}
	report_change(w, key, "no service since the start", path, LB_CONFIG_RESTART);
}

void lb_config_diff(const struct lb_config *from, const struct lb_config *to,
		    lb_config_visit *visit, void *context)
{
	const struct walk w = {.visit = visit, .context = context};

	diff_block(&w, config_root.block, "", from, to);
	if (!from->tcp.used && to->tcp.used)
		diff_first(&w, to, "tcp", false);
	else if (!from->tcp.secured && to->tcp.secured)
		diff_first(&w, to, "tls", true);
	diff_services(&w, from, to);
}

static void copy_live(const struct config_key *rows, const void *from, void *to)
{
	for (const struct config_key *row = rows; row->name != NULL; row++) {
		if (row->kind == &config_block)
			copy_live(row->block, from, to);
		else if (row->kind != &config_list && row->effect == LB_CONFIG_LIVE)
			memcpy((char *)to + row->offset, (const char *)from + row->offset,
			       row->size);
	}
}

void lb_config_copy_live(const struct lb_config *from, struct lb_config *to)
{
	copy_live(config_root.block, from, to);
}
