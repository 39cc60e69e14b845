/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as lines, each sent by an operator and by an agent. For every input the reply is JSON-RPC
 * that can be written out, a description that is kept is valid, and when an agent disconnects its
 * worker is removed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_log.h>

#include "../unit/control_fake_lb.h"
#include "../unit/control_say.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct lb *lb;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	rte_log_set_global_level(RTE_LOG_ERR);
	fake_eal();
	lb = fake_lb_create();
	for (uint32_t n = 0; n < 300; n++)
		fake_lb_flow(lb, n % 2, n, n % 3, NULL);
	return 0;
}

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void say(struct control_connection *c, const char *line, size_t n)
{
	json_t *reply = control_say(c, line, n);
	const json_t *result = json_object_get(reply, "result");
	const json_t *error = json_object_get(reply, "error");

	if (!reply)
		return;
	require(!result != !error, "a reply needs a result or an error");
	require(result || json_string_value(json_object_get(error, "message")),
		"an error without a message");
	json_decref(reply);
}

/* The data plane lays out tensors by it. */
static void check_description(const struct worker *worker)
{
	const struct worker_spec *spec = &worker->spec;
	const struct model_description *d = spec->description;
	char error[256];

	if (d == NULL)
		return;
	require(workers_description_is_valid(d, error, sizeof(error)), error);
	require(workers_description_fits(d, spec->min_request, spec->max_request, spec->max_reply,
					 true, error, sizeof(error)),
		error);
	require(workers_description_request(d).least <= spec->max_request, "inputs do not fit");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct control_connection operator= {.lb = lb, .role = CONTROL_OPERATOR};
	struct control_connection agent = {.lb = lb, .role = CONTROL_AGENT};
	struct worker *worker = fake_lb_worker(lb, "gpu0");

	while (size > 0) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t n = end ? (size_t)(end - data) : size;

		say(&agent, (const char *)data, n);
		say(&operator,(const char *) data, n);
		if (agent.worker) {
			check_description(agent.worker);
			json_decref(control_worker_event(&agent));
		}
		n += end != NULL;
		data += n;
		size -= n;
	}
	control_connection_closed(&operator);
	control_connection_closed(&agent);
	lb_worker_remove(lb, worker, "the end");
	for (unsigned int i = 0; i < WORKERS_MAX; i++)
		require(!workers_get(lb_pool(lb), i), "a worker outlived its connection");
	return 0;
}
