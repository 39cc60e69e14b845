/* SPDX-License-Identifier: BSD-3-Clause */
#include "labels.h"

#include <rte_log.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The value of the operator's label <key>, or NULL. */
static const char *own_label(const struct agent_options *o, const char *key)
{
	size_t length = strlen(key);

	for (unsigned int i = 0; i < o->n_labels; i++)
		if (strncmp(o->label[i], key, length) == 0 && o->label[i][length] == '=')
			return o->label[i] + length + 1;
	return NULL;
}

/* NVML, loaded for the first GPU. NULL: it is not there, or does not work; then the island is not
 * known, which is no reason not to serve. */
static const struct nvml *labels_nvml(void)
{
	static struct nvml nvml;
	static bool tried, works;
	char why[160] = "not installed";

	if (tried)
		return works ? &nvml : NULL;
	tried = true;
	works = nvml_open(&nvml, NVML_LIBRARY, why, sizeof(why)) == 0;
	if (!works)
		rte_log(RTE_LOG_NOTICE, agent_logtype,
			"agent: event=no_nvml reason=\"" NVML_LIBRARY
			": %s; there is no label nvlink\"\n",
			why);
	return works ? &nvml : NULL;
}

void agent_places_find(struct places *places, const struct agent_options *o, int gpu)
{
	const char *given = own_label(o, place_name(PLACE_HOST));
	char host[PLACE_TEXT] = "", bus[32];

	gethostname(host, sizeof(host) - 1);
	places_of_process(places, "", given != NULL ? given : host);
	if (gpu >= 0 && agent_gpu_bus(gpu, bus, sizeof(bus)))
		places_of_gpu(places, "", labels_nvml(), bus);
}

json_t *agent_labels_json(const struct agent_options *o, const struct places *places)
{
	json_t *labels = json_object();

	for (unsigned int i = 0; i < o->n_labels; i++) {
		const char *end = strchr(o->label[i], '=');
		char key[256];

		snprintf(key, sizeof(key), "%.*s", (int)(end - o->label[i]), o->label[i]);
		json_object_set_new(labels, key, json_string(end + 1));
	}
	for (unsigned int p = 0; p < PLACES; p++) {
		const char *key = place_name((enum place)p);

		if (places->text[p][0] != '\0' && json_object_get(labels, key) == NULL &&
		    json_object_size(labels) < AGENT_LABELS_MAX)
			json_object_set_new(labels, key, json_string(places->text[p]));
	}
	return labels;
}
