/* SPDX-License-Identifier: BSD-3-Clause */
#include "labels.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

static struct agent_options options;
static struct places places;

static const char *value(json_t *labels, const char *key)
{
	const char *text = json_string_value(json_object_get(labels, key));

	return text != NULL ? text : "none";
}

Test(agent_labels, places_come_behind_the_operator_s_labels_and_never_replace_one)
{
	json_t *labels;

	options.label[0] = "numa=mine";
	options.label[1] = "rack=7=a";
	options.n_labels = 2;
	strcpy(places.text[PLACE_HOST], "gpu7");
	strcpy(places.text[PLACE_NUMA], "gpu7/1");
	strcpy(places.text[PLACE_NVLINK], "gpu7/switch");
	labels = agent_labels_json(&options, &places);
	cr_expect_eq(json_object_size(labels), 4);
	cr_expect_str_eq(value(labels, "numa"), "mine");
	cr_expect_str_eq(value(labels, "rack"), "7=a");
	cr_expect_str_eq(value(labels, "host"), "gpu7");
	cr_expect_str_eq(value(labels, "nvlink"), "gpu7/switch");
	cr_expect_str_eq(value(labels, "pcie"), "none");
	json_decref(labels);
}

Test(agent_labels, there_are_no_more_than_a_load_balancer_takes)
{
	static char text[AGENT_LABELS_MAX][8];
	json_t *labels;

	for (unsigned int i = 0; i < AGENT_LABELS_MAX - 1; i++) {
		snprintf(text[i], sizeof(text[i]), "k%u=v", i);
		options.label[options.n_labels++] = text[i];
	}
	strcpy(places.text[PLACE_HOST], "gpu7");
	strcpy(places.text[PLACE_NUMA], "gpu7/1");
	labels = agent_labels_json(&options, &places);
	cr_expect_eq(json_object_size(labels), AGENT_LABELS_MAX);
	cr_expect_str_eq(value(labels, "host"), "gpu7");
	cr_expect_str_eq(value(labels, "numa"), "none");
	json_decref(labels);
}

Test(agent_labels, the_host_is_this_one_unless_the_operator_says_another)
{
	char host[64] = "";

	gethostname(host, sizeof(host) - 1);
	agent_places_find(&places, &options, -1);
	cr_expect_str_eq(places.text[PLACE_HOST], host);
	options.label[0] = "host=rack2-7";
	options.n_labels = 1;
	agent_places_find(&places, &options, -1);
	cr_expect_str_eq(places.text[PLACE_HOST], "rack2-7");
}
