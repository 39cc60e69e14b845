/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of all commands. */
#include <errno.h>
#include <stdlib.h>

#include "cli/cli.h"

#define WATCH_DEFAULT_S 2
#define WATCH_MAX_S     86400
#define LIMIT_MAX       1000000000
#define MTU_MAX         9216
#define MEMORY_MAX      65536
#define SECONDS_MAX     604800

static int take_watch(void *context, const char *text, char *error, size_t size)
{
	struct cli *cli = context;
	char *end;
	unsigned long seconds = text == NULL ? WATCH_DEFAULT_S : strtoul(text, &end, 10);

	cli->watch = true;
	cli->watch_s = (unsigned int)seconds;
	if (text == NULL ||
	    (*text >= '1' && *text <= '9' && *end == '\0' && seconds <= WATCH_MAX_S))
		return 0;
	snprintf(error, size, "is not a number from 1 to %d", WATCH_MAX_S);
	return -EINVAL;
}

static int take_sort(void *field, const char *text, char *error, size_t size)
{
	char fields[256];

	*(const char **)field = text;
	if (cli_flow_field(text, fields, sizeof(fields)))
		return 0;
	snprintf(error, size, "is no field; fields are: %s", fields);
	return -EINVAL;
}

#define AT(field) OPTION_AT(struct cli, field)

const struct option_row cli_options[] = {
	[CLI_SERVICE] = {"service", OPTION_TEXT, AT(service), "NAME"},
	[CLI_WORKER] = {"worker", OPTION_TEXT, AT(worker), "NAME"},
	[CLI_CLIENT] = {"client", OPTION_TEXT, AT(of_client), "ADDRESS[/PREFIX]"},
	[CLI_STATE] = {"state", OPTION_TEXT, AT(state), "STATE"},
	[CLI_ZONE] = {"zone", OPTION_TEXT, AT(zone), "NAME"},
	[CLI_MIN_BYTES] = {"min-bytes", OPTION_NUMBER, AT(min_bytes), "N", NULL, 1, INT64_MAX},
	[CLI_MIN_IDLE] = {"min-idle", OPTION_NUMBER, AT(min_idle_s), "SECONDS", NULL, 1,
			  INT32_MAX / 1000},
	[CLI_LIMIT] = {"limit", OPTION_NUMBER, AT(limit), "ROWS", NULL, 1, LIMIT_MAX},
	[CLI_SORT] = {"sort", OPTION_CALL, AT(sort), "FIELD", .take = take_sort},
	[CLI_BY] = {"by", OPTION_TEXT, AT(by), "WHAT"},
	[CLI_STREAM] = {"stream", OPTION_FLAG, AT(stream)},
	[CLI_ALL] = {"all", OPTION_FLAG, AT(all)},
	[CLI_NO_WAIT] = {"no-wait", OPTION_FLAG, AT(no_wait)},
	[CLI_WATCH] = {"watch", OPTION_CALL, OPTION_WHOLE(struct cli), "[=SECONDS]",
		       .take = take_watch, .optional = true},
	[CLI_CONFIG] = {"config", OPTION_TEXT, AT(config), "FILE"},
	[CLI_LB] = {"lb", OPTION_TEXT, AT(lb), "HOST:PORT"},
	[CLI_DEVICE] = {"device", OPTION_TEXT, AT(device), "DEVARGS"},
	[CLI_ADDRESS] = {"address", OPTION_TEXT, AT(address), "IP/PREFIX"},
	[CLI_MTU] = {"mtu", OPTION_NUMBER, AT(mtu), "BYTES", NULL, 576, MTU_MAX},
	[CLI_MEMORY_MB] = {"memory-mb", OPTION_NUMBER, AT(memory_mb), "MB", NULL, 1, MEMORY_MAX},
	[CLI_GPU_MEMORY_MB] = {"gpu-memory-mb", OPTION_NUMBER, AT(gpu_memory_mb), "MB", NULL, 1,
			       1 << 24},
	[CLI_NO_HUGEPAGES] = {"no-hugepages", OPTION_FLAG, AT(no_hugepages)},
	[CLI_ENGINE] = {"engine", OPTION_TEXT, AT(engine), "ENGINE"},
	[CLI_LB_FABRIC_ADDRESS] = {"lb-fabric-address", OPTION_TEXT, AT(lb_fabric_address), "IP"},
	[CLI_ROOT] = {"root", OPTION_TEXT, AT(root), "FOLDER"},
	[CLI_ONCE] = {"once", OPTION_FLAG, AT(once)},
	[CLI_FLOW] = {"flow", OPTION_TEXT, AT(flow), "CLIENT:PORT[,VIP:PORT]"},
	[CLI_COUNT_N] = {"count", OPTION_NUMBER, AT(limit), "N", NULL, 1, LIMIT_MAX},
	[CLI_FOLLOW] = {"follow", OPTION_FLAG, AT(follow)},
	[CLI_PORT] = {"port", OPTION_TEXT, AT(port), "NAME"},
	[CLI_FILE] = {"file", OPTION_TEXT, AT(file), "FILE"},
	[CLI_FILTER] = {"filter", OPTION_TEXT, AT(filter), "EXPRESSION"},
	[CLI_PROTOCOL] = {"protocol", OPTION_TEXT, AT(protocol), "PROTOCOL"},
	[CLI_DIRECTION] = {"direction", OPTION_TEXT, AT(direction), "WAY"},
	[CLI_SNAPLEN] = {"snaplen", OPTION_NUMBER, AT(snaplen), "BYTES", NULL, 1, UINT16_MAX},
	[CLI_FOR_SECONDS] = {"seconds", OPTION_NUMBER, AT(seconds), "SECONDS", NULL, 1,
			     SECONDS_MAX},
	[CLI_ABSENT] = {"absent", OPTION_FLAG, AT(absent)},
	[CLI_TIMEOUT] = {"timeout", OPTION_NUMBER, AT(timeout_s), "SECONDS", NULL, 1, SECONDS_MAX},
	[CLI_PARTLY] = {"partly", OPTION_FLAG, AT(partly)},
	[OPT_SOCKET] = {"socket", OPTION_TEXT, AT(socket), "PATH"},
	[OPT_JSON] = {"json", OPTION_FLAG, AT(json)},
	[OPT_HELP] = {"help", OPTION_FLAG, AT(help)},
	[OPT_VERSION] = {"version", OPTION_FLAG, AT(version)},
	[OPT_COMMANDS] = {"commands", OPTION_FLAG, AT(commands)}, /* for the shell's completion */
	[OPT_MAKE] = {"make", OPTION_TEXT, AT(make), NULL},       /* for deploy/generate.py */
	{0},
};

const struct option_table cli_option_table = {
	.program = "doorbell", .rows = cli_options, .operands = true};
