/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config_places.h"

#include <errno.h>
#include <string.h>

#include "pool.h"

#define KEY_MAX (sizeof(((struct worker_label *)0)->key) - 1)

const char *lb_config_label(const struct lb_config *config, const char *key, const char *host)
{
	size_t length = strlen(key);

	for (unsigned int i = 0; i < config->n_labels; i++)
		if (strncmp(config->label[i], key, length) == 0 && config->label[i][length] == '=')
			return config->label[i] + length + 1;
	return strcmp(key, ASSIGN_HOST_LABEL) == 0 ? host : NULL;
}

static int check_label(struct config_yaml *yaml, const struct lb_config *config, unsigned int i)
{
	const char *label = config->label[i], *equals = strchr(label, '=');
	size_t length = equals != NULL ? (size_t)(equals - label) : 0;

	if (length == 0 || equals[1] == '\0')
		return config_fail_at(yaml, "labels", i, NULL,
				      "'%s' is not KEY=VALUE; write rack=7", label);
	if (length > KEY_MAX || strlen(equals + 1) >= sizeof(((struct worker_label *)0)->value))
		return config_fail_at(yaml, "labels", i, NULL,
				      "'%s' is too long for a worker's label; use %zu characters "
				      "for the key and %zu for the value at most",
				      label, KEY_MAX,
				      sizeof(((struct worker_label *)0)->value) - 1);
	for (unsigned int earlier = 0; earlier < i; earlier++)
		if (strncmp(config->label[earlier], label, length + 1) == 0)
			return config_fail_at(yaml, "labels", i, NULL,
					      "'%.*s' comes twice; give each key once", (int)length,
					      label);
	return 0;
}

/* The policy must compare loads: turns and hashes promise another worker. */
static bool compares_loads(enum pick_policy policy)
{
	return policy == PICK_LEAST_OUTSTANDING || policy == PICK_EARLIEST_FINISH;
}

static int check_service(struct config_yaml *yaml, const struct lb_config *config, unsigned int i)
{
	const struct lb_service_config *s = &config->service[i];
	const char *key = s->near[0] != '\0' ? "near" : "spread";

	if (s->near[0] == '\0' && s->spread[0] == '\0')
		return 0;
	if (s->near[0] != '\0' && s->spread[0] != '\0')
		return config_fail_at(yaml, "services", i, "spread",
				      "a service is near or spread, not both; leave one out");
	if (!compares_loads(s->policy))
		return config_fail_at(yaml, "services", i, key,
				      "policy %s chooses by turns or by chance, not by place; use "
				      "least-outstanding or earliest-finish",
				      pick_policy_name(s->policy));
	if (s->near[0] != '\0' && s->affinity != LB_AFFINITY_STICKY &&
	    lb_config_label(config, s->near, "") == NULL)
		return config_fail_at(
			yaml, "services", i, "near",
			"near what? The load balancer has no label '%s'; add it to labels, or "
			"use affinity: sticky, which is near a flow's preferred worker",
			s->near);
	return 0;
}

int config_places_check(struct config_yaml *yaml, const struct lb_config *config)
{
	int rc = 0;

	for (unsigned int i = 0; rc == 0 && i < config->n_labels; i++)
		rc = check_label(yaml, config, i);
	for (unsigned int i = 0; rc == 0 && i < config->n_services; i++)
		rc = check_service(yaml, config, i);
	return rc;
}
