/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of all commands: one table names them, one says what value they take. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "cli/cli.h"

#define WATCH_DEFAULT_S 2
#define WATCH_MAX_S     86400
#define LIMIT_MAX       1000000000
#define MTU_MAX         9216
#define MEMORY_MAX      65536
#define SECONDS_MAX     604800

const struct option cli_options[] = {
	{"service", required_argument, NULL, CLI_SERVICE},
	{"worker", required_argument, NULL, CLI_WORKER},
	{"client", required_argument, NULL, CLI_CLIENT},
	{"state", required_argument, NULL, CLI_STATE},
	{"zone", required_argument, NULL, CLI_ZONE},
	{"min-bytes", required_argument, NULL, CLI_MIN_BYTES},
	{"min-idle", required_argument, NULL, CLI_MIN_IDLE},
	{"limit", required_argument, NULL, CLI_LIMIT},
	{"sort", required_argument, NULL, CLI_SORT},
	{"by", required_argument, NULL, CLI_BY},
	{"stream", no_argument, NULL, CLI_STREAM},
	{"all", no_argument, NULL, CLI_ALL},
	{"no-wait", no_argument, NULL, CLI_NO_WAIT},
	{"watch", optional_argument, NULL, CLI_WATCH},
	{"config", required_argument, NULL, CLI_CONFIG},
	{"lb", required_argument, NULL, CLI_LB},
	{"device", required_argument, NULL, CLI_DEVICE},
	{"address", required_argument, NULL, CLI_ADDRESS},
	{"mtu", required_argument, NULL, CLI_MTU},
	{"memory-mb", required_argument, NULL, CLI_MEMORY_MB},
	{"no-hugepages", no_argument, NULL, CLI_NO_HUGEPAGES},
	{"engine", required_argument, NULL, CLI_ENGINE},
	{"lb-fabric-address", required_argument, NULL, CLI_LB_FABRIC_ADDRESS},
	{"root", required_argument, NULL, CLI_ROOT},
	{"once", no_argument, NULL, CLI_ONCE},
	{"flow", required_argument, NULL, CLI_FLOW},
	{"count", required_argument, NULL, CLI_COUNT_N},
	{"follow", no_argument, NULL, CLI_FOLLOW},
	{"port", required_argument, NULL, CLI_PORT},
	{"file", required_argument, NULL, CLI_FILE},
	{"filter", required_argument, NULL, CLI_FILTER},
	{"direction", required_argument, NULL, CLI_DIRECTION},
	{"snaplen", required_argument, NULL, CLI_SNAPLEN},
	{"seconds", required_argument, NULL, CLI_FOR_SECONDS},
	{"absent", no_argument, NULL, CLI_ABSENT},
	{"timeout", required_argument, NULL, CLI_TIMEOUT},
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{"commands", no_argument, NULL, OPT_COMMANDS}, /* for the shell's completion */
	{"make", required_argument, NULL, OPT_MAKE},   /* for deploy/generate.py */
	{NULL},
};

const char *const cli_option_values[] = {
	[CLI_SERVICE] = "=NAME",
	[CLI_WORKER] = "=NAME",
	[CLI_CLIENT] = "=ADDRESS[/PREFIX]",
	[CLI_STATE] = "=STATE",
	[CLI_ZONE] = "=NAME",
	[CLI_MIN_BYTES] = "=N",
	[CLI_MIN_IDLE] = "=SECONDS",
	[CLI_LIMIT] = "=ROWS",
	[CLI_SORT] = "=FIELD",
	[CLI_BY] = "=WHAT",
	[CLI_STREAM] = "",
	[CLI_ALL] = "",
	[CLI_NO_WAIT] = "",
	[CLI_WATCH] = "[=SECONDS]",
	[CLI_CONFIG] = "=FILE",
	[CLI_LB] = "=HOST:PORT",
	[CLI_DEVICE] = "=DEVARGS",
	[CLI_ADDRESS] = "=IP/PREFIX",
	[CLI_MTU] = "=BYTES",
	[CLI_MEMORY_MB] = "=MB",
	[CLI_NO_HUGEPAGES] = "",
	[CLI_ENGINE] = "=ENGINE",
	[CLI_LB_FABRIC_ADDRESS] = "=IP",
	[CLI_ROOT] = "=FOLDER",
	[CLI_ONCE] = "",
	[CLI_FLOW] = "=CLIENT:PORT[,VIP:PORT]",
	[CLI_COUNT_N] = "=N",
	[CLI_FOLLOW] = "",
	[CLI_PORT] = "=NAME",
	[CLI_FILE] = "=FILE",
	[CLI_FILTER] = "=EXPRESSION",
	[CLI_DIRECTION] = "=WAY",
	[CLI_SNAPLEN] = "=BYTES",
	[CLI_FOR_SECONDS] = "=SECONDS",
	[CLI_ABSENT] = "",
	[CLI_TIMEOUT] = "=SECONDS",
};

#define AT(field) offsetof(struct cli, field)

/* Options whose value is kept as it is. No such field is first in the struct. */
static const size_t text_at[CLI_OPTIONS] = {
	[CLI_SERVICE] = AT(service),
	[CLI_WORKER] = AT(worker),
	[CLI_CLIENT] = AT(of_client),
	[CLI_STATE] = AT(state),
	[CLI_ZONE] = AT(zone),
	[CLI_BY] = AT(by),
	[CLI_CONFIG] = AT(config),
	[CLI_LB] = AT(lb),
	[CLI_DEVICE] = AT(device),
	[CLI_ADDRESS] = AT(address),
	[CLI_ENGINE] = AT(engine),
	[CLI_LB_FABRIC_ADDRESS] = AT(lb_fabric_address),
	[CLI_ROOT] = AT(root),
	[CLI_FLOW] = AT(flow),
	[CLI_PORT] = AT(port),
	[CLI_FILE] = AT(file),
	[CLI_FILTER] = AT(filter),
	[CLI_DIRECTION] = AT(direction),
};

static int number_option(const char *name, const char *text, unsigned long long max,
			 unsigned long long *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || *out < 1 || *out > max)
		return cli_usage_error("--%s: cannot use '%s'; give a number from 1 to %llu", name,
				       text, max);
	return 0;
}

static int count_option(const char *name, const char *text, uint64_t max, uint64_t *out)
{
	unsigned long long number = 0;
	int rc = number_option(name, text, max, &number);

	*out = number;
	return rc;
}

static int sort_option(const char *field)
{
	char fields[256];

	if (cli_flow_field(field, fields, sizeof(fields)))
		return 0;
	return cli_usage_error("--sort: no field '%s'; fields are: %s", field, fields);
}

int cli_take_option(struct cli *cli, int option, char *value)
{
	unsigned long long number = WATCH_DEFAULT_S;
	int rc = 0;

	if (option < CLI_OPTIONS && text_at[option] != 0) {
		*(const char **)(void *)((char *)cli + text_at[option]) = value;
		return 0;
	}
	switch (option) {
	case CLI_MIN_BYTES:
		rc = count_option("min-bytes", value, INT64_MAX, &cli->min_bytes);
		break;
	case CLI_MIN_IDLE:
		rc = count_option("min-idle", value, INT32_MAX / 1000, &cli->min_idle_s);
		break;
	case CLI_LIMIT:
		rc = count_option("limit", value, LIMIT_MAX, &cli->limit);
		break;
	case CLI_COUNT_N:
		rc = count_option("count", value, LIMIT_MAX, &cli->limit);
		break;
	case CLI_SNAPLEN:
		rc = count_option("snaplen", value, UINT16_MAX, &cli->snaplen);
		break;
	case CLI_FOR_SECONDS:
		rc = count_option("seconds", value, SECONDS_MAX, &cli->seconds);
		break;
	case CLI_FOLLOW:
		cli->follow = true;
		break;
	case CLI_STREAM:
		cli->stream = true;
		break;
	case CLI_SORT:
		rc = sort_option(value);
		cli->sort = value;
		break;
	case CLI_ALL:
		cli->all = true;
		break;
	case CLI_ONCE:
		cli->once = true;
		break;
	case CLI_NO_WAIT:
		cli->no_wait = true;
		break;
	case CLI_ABSENT:
		cli->absent = true;
		break;
	case CLI_TIMEOUT:
		rc = count_option("timeout", value, SECONDS_MAX, &cli->timeout_s);
		break;
	case CLI_MTU:
		rc = count_option("mtu", value, MTU_MAX, &cli->mtu);
		break;
	case CLI_MEMORY_MB:
		rc = count_option("memory-mb", value, MEMORY_MAX, &cli->memory_mb);
		break;
	case CLI_NO_HUGEPAGES:
		cli->no_hugepages = true;
		break;
	case CLI_WATCH:
		if (value)
			rc = number_option("watch", value, WATCH_MAX_S, &number);
		cli->watch = true;
		cli->watch_s = (unsigned int)number;
		break;
	case OPT_SOCKET:
		cli->socket = value;
		break;
	case OPT_JSON:
		cli->json = true;
		break;
	default: /* getopt_long() has complained */
		return EXIT_USAGE;
	}
	return rc;
}
