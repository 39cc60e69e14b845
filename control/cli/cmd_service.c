/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/cli.h"

static const struct cli_column brief[] = {
	{"NAME", "name", CLI_TEXT},
	{"VIP", "vip", CLI_TEXT},
	{"PORT", "port", CLI_PLAIN},
	{"PROTO", "protocol", CLI_TEXT},
	{"MODEL", "model", CLI_TEXT},
	{"STATE", "state", CLI_TEXT},
	{"POLICY", "policy", CLI_TEXT},
	{"AFFINITY", "affinity", CLI_TEXT},
	{"WORKERS", "workers", CLI_PLAIN},
	{"QUEUED", "queued", CLI_COUNT},
	{"REPLAYS", "replays", CLI_COUNT},
	{"PREFERRED", "preferred", CLI_COUNT},
	{"SPILLED", "spilled", CLI_COUNT},
	{"REQUESTS", "requests", CLI_COUNT},
	{"REPLIES", "replies", CLI_COUNT},
	{"NOTICES", "notices", CLI_COUNT},
	{"DROPS", "drops", CLI_COUNT},
	{"BYTES IN", "bytes_in", CLI_BYTES},
	{"BYTES OUT", "bytes_out", CLI_BYTES},
	{"REASON", "reason", CLI_TEXT},
};

static const struct cli_column full[] = {
	{"name", "name", CLI_TEXT},
	{"vip", "vip", CLI_TEXT},
	{"port", "port", CLI_PLAIN},
	{"protocol", "protocol", CLI_TEXT},
	{"framing", "framing", CLI_TEXT},
	{"congestion", "congestion", CLI_TEXT},
	{"ecn", "ecn", CLI_PLAIN},
	{"tls", "tls", CLI_PLAIN},
	{"model", "model", CLI_TEXT},
	{"state", "state", CLI_TEXT},
	{"reason", "reason", CLI_TEXT},
	{"policy", "policy", CLI_TEXT},
	{"affinity", "affinity", CLI_TEXT},
	{"sticky load, %", "sticky_load_percent", CLI_PLAIN},
	{"workers active", "workers", CLI_PLAIN},
	{"members", "members", CLI_TEXT},
	{"fewest workers", "min_workers", CLI_PLAIN},
	{"spares in", "spares_in", CLI_PLAIN},
	{"spares at most", "spares", CLI_PLAIN},
	{"placement", "placement", CLI_TEXT},
	{"largest request", "max_request", CLI_BYTES},
	{"largest reply", "max_reply", CLI_BYTES},
	{"queue per lcore", "queue", CLI_PLAIN},
	{"queue timeout", "queue_timeout_ms", CLI_MS},
	{"request timeout", "request_timeout_ms", CLI_MS},
	{"flow timeout", "flow_timeout_ms", CLI_MS},
	{"one-way timeout", "one_way_timeout_ms", CLI_MS},
	{"payload crc", "payload_crc", CLI_PLAIN},
	{"queued", "queued", CLI_COUNT},
	{"replays", "replays", CLI_COUNT},
	{"preferred", "preferred", CLI_COUNT},
	{"spilled", "spilled", CLI_COUNT},
	{"flows moved", "moved", CLI_COUNT},
	{"requests", "requests", CLI_COUNT},
	{"replies", "replies", CLI_COUNT},
	{"notices", "notices", CLI_COUNT},
	{"drops", "drops", CLI_COUNT},
	{"bytes in", "bytes_in", CLI_BYTES},
	{"bytes out", "bytes_out", CLI_BYTES},
};

int cli_services_list(struct cli *cli)
{
	return cli_print_list(cli, cli_call(cli, "services.list", NULL), "services", brief,
			      CLI_COUNT_OF(brief));
}

int cli_services_show(struct cli *cli)
{
	json_t *params = json_pack("{s:s}", "name", cli->name);

	return cli_print_one(cli, cli_call(cli, "services.show", params), "service", full,
			     CLI_COUNT_OF(full));
}
