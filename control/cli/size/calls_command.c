/* SPDX-License-Identifier: BSD-3-Clause */
/* doorbell size calls */
#include "cli/size/commands.h"

#include <errno.h>

#include "cli/size/calls.h"
#include "runtime/option_table.h"

/* us; the longest round trip that is looked for */
#define RTT_MAX 1e6

static const char usage[] =
	"doorbell size calls FILE --rtt-us T --gbps N [--send-us T] [--receive-us T] [...]\n"
	"What a program takes whose CUDA calls go to a GPU behind a network, by a trace of its\n"
	"calls: a line each, `name kind gap_us call_us gpu_us sent_bytes received_bytes`, kind\n"
	"being local, async, sync or wait. FILE may be - for the standard input. The cost model\n"
	"of Wang et al.; see doorbell(1). Exits with 1 if the cost is above --epsilon.";

struct calls_options {
	struct calls_network network;
	double epsilon;
	bool json;
};

#define AT(field) OPTION_AT(struct calls_options, field)

static const struct option_row rows[] = {
	{"rtt-us", OPTION_REAL, AT(network.rtt_us), "T",
	 "round trip of the network, without the ends' software", 0, 1000000, .required = true},
	{"gbps", OPTION_REAL, AT(network.gbps), "N", "of the network", 0, 100000, .required = true},
	{"send-us", OPTION_REAL, AT(network.send_us), "T", "CPU time to send a message", 0,
	 1000000},
	{"receive-us", OPTION_REAL, AT(network.receive_us), "T", "CPU time to receive one", 0,
	 1000000},
	{"outstanding", OPTION_NUMBER, AT(network.outstanding), "N",
	 "calls that may be sent before the server has begun the first [0: no limit]", 0, 65536},
	{"epsilon", OPTION_REAL, AT(epsilon), "N", "cost that is allowed, as a share", 0, 1000},
	{"json", OPTION_FLAG, AT(json), NULL, "print JSON; the fields are in doorbell-json(5)"},
	{0},
};

static const struct option_table calls_table = {
	.program = "doorbell size calls", .usage = usage, .rows = rows, .operands = true};

struct answer {
	struct calls_cost published, queued;
	double rtt_us; /* at most, with queues */
};

static int calls_answer(const struct trace *trace, const struct calls_options *o, struct answer *a)
{
	struct calls_network network = o->network;
	int ret;

	ret = size_calls_cost(trace, &network, &a->published);
	network.queues = true;
	if (ret == 0)
		ret = size_calls_cost(trace, &network, &a->queued);
	if (ret == 0)
		ret = size_calls_rtt_us(trace, &network, o->epsilon, RTT_MAX, &a->rtt_us);
	return ret;
}

static void calls_print(const struct trace *trace, const struct calls_options *o,
			const struct answer *a, FILE *out)
{
	const struct calls_cost *c = &a->queued;

	fprintf(out, "calls      ");
	for (unsigned int k = 0; k < TRACE_KINDS; k++)
		fprintf(out, " %zu %s%s", c->calls[k], trace_kind_name((enum trace_kind)k),
			k + 1 < TRACE_KINDS ? "," : "");
	fprintf(out, "; %zu in all, %.3f MB sent, %.3f MB received\n", trace->n, c->sent / 1e6,
		c->received / 1e6);
	fprintf(out, "beside the GPU     %.3f ms\n", c->local_us / 1e3);
	fprintf(out,
		"behind the network %.3f ms: %.2f times as long; as published, without queues, "
		"%.3f ms: %.2f\n",
		c->remote_us / 1e3, 1 + c->cost, a->published.remote_us / 1e3,
		1 + a->published.cost);
	fprintf(out, "cost        %+.2f %% of %g %% allowed: %s", c->cost * 100, o->epsilon * 100,
		c->cost <= o->epsilon ? "kept" : "NOT KEPT");
	if (a->rtt_us > 0)
		fprintf(out, "; kept up to a round trip of %.2f us\n", a->rtt_us);
	else
		fprintf(out, "; no round trip keeps it, what the ends and the links take is too "
			     "much\n");
}

static json_t *calls_json(const struct trace *trace, const struct calls_options *o,
			  const struct answer *a)
{
	const struct calls_cost *c = &a->queued;
	json_t *kinds = json_object();

	for (unsigned int k = 0; k < TRACE_KINDS; k++)
		json_object_set_new(kinds, trace_kind_name((enum trace_kind)k),
				    json_integer((json_int_t)c->calls[k]));
	return json_pack("{s:I, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:f}", "calls",
			 (json_int_t)trace->n, "kinds", kinds, "sent_bytes", c->sent,
			 "received_bytes", c->received, "local_us", c->local_us, "remote_us",
			 c->remote_us, "cost", c->cost, "published_remote_us",
			 a->published.remote_us, "published_cost", a->published.cost, "cost_kept",
			 c->cost <= o->epsilon, "cost_rtt_us", a->rtt_us);
}

static int calls_error(const char *what, const char *why)
{
	fprintf(stderr, "doorbell size calls: %s: %s\n", what, why);
	return -EINVAL;
}

int size_calls_command(int argc, char **argv, FILE *out, json_t **object, bool *kept)
{
	struct calls_options o = {.epsilon = 0.05};
	char error[256];
	struct trace trace;
	struct answer a;
	int ret = options_parse(&calls_table, argc, argv, &o, NULL);

	*object = NULL;
	*kept = true;
	if (ret != 0)
		return ret;
	if (argc < 2 || argv[1] == NULL || (argc > 2 && argv[2] != NULL))
		return calls_error("FILE", "give one file with a trace");
	if (o.network.gbps <= 0)
		return calls_error("--gbps", "give a network above 0");
	if (trace_read(&trace, argv[1], error, sizeof(error)) != 0)
		return calls_error(argv[1], error);
	ret = calls_answer(&trace, &o, &a);
	if (ret != 0) {
		trace_fini(&trace);
		return calls_error(argv[1], "no memory");
	}
	if (a.queued.local_us <= 0) {
		trace_fini(&trace);
		return calls_error(argv[1], "its calls take no time beside the GPU; write gap_us, "
					    "call_us or gpu_us");
	}
	*kept = a.queued.cost <= o.epsilon;
	if (o.json)
		*object = calls_json(&trace, &o, &a);
	else
		calls_print(&trace, &o, &a, out);
	trace_fini(&trace);
	if (o.json && *object == NULL) /* JSON has no such number */
		return calls_error("--json", "a figure is endless; give a faster network");
	return 0;
}

void size_calls_names(void)
{
	options_print_names(rows);
}
