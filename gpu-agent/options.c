/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "runtime/log_line.h"

bool agent_address_parse(const char *text, struct rnic_address *out)
{
	struct in_addr four;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &four) == 1) {
		out->family = 4;
		out->addr.s6_addr[10] = out->addr.s6_addr[11] = 0xff;
		memcpy(out->addr.s6_addr + 12, &four, 4);
		return true;
	}
	if (inet_pton(AF_INET6, text, &out->addr) == 1) {
		out->family = 6;
		return true;
	}
	return false;
}

const char *agent_address_format(const struct rnic_address *address, char *text, size_t size)
{
	if (address->family == 4)
		return inet_ntop(AF_INET, address->addr.s6_addr + 12, text, size);
	return inet_ntop(AF_INET6, &address->addr, text, size);
}

enum kind {
	TEXT,
	NUMBER,
	ADDRESS,
	PREFIX,
	HOST_PORT,
	NAME,
	ENGINE,
	LEVEL,
	FORMAT,
	CONTROL,
	LABEL,
	GPUS,
	FLAG_OFF
};

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
static const char *const levels[] = {"error", "warning", "notice", "info", "debug"};

/* One row per option: parser, checks and help use it. */
struct row {
	const char *name, *value, *help;
	enum kind kind;
	size_t offset;
	uint32_t min, max;
	bool power_of_two;
};

#define AT(field) offsetof(struct agent_options, field)

static const struct row rows[] = {
	{"lb", "HOST:PORT", "the load balancer's address for agents (required)", HOST_PORT},
	{"tls-certificate", "FILE", "TLS: the agent's certificate (PEM), whose DNS name is --name",
	 TEXT, AT(tls_certificate)},
	{"tls-key", "FILE", "TLS: its key", TEXT, AT(tls_key)},
	{"tls-ca", "FILE", "TLS: certificate of the authority that signed the load balancer's",
	 TEXT, AT(tls_ca)},
	{"tls-name", "NAME|IP",
	 "TLS: name or address in the load balancer's certificate [HOST of --lb]", TEXT,
	 AT(tls_name)},
	{"token-file", "FILE",
	 "TLS by a token that load balancer and agents share, instead of certificates", TEXT,
	 AT(token_file)},
	{"engine", "ENGINE", "soft: a software RNIC on a DPDK device; verbs: an RDMA device [soft]",
	 ENGINE},
	{"device", "DEVICE",
	 "of the engine (required): net_af_packet0,iface=eth1, 0000:3b:00.0 ...; mlx5_0, rxe0 ...",
	 TEXT, AT(device)},
	{"address", "IP/PREFIX",
	 "the worker's own RoCEv2 address on it (required); soft: not one of the "
	 "kernel's, verbs: one of the device's",
	 PREFIX, AT(address)},
	{"gateway", "IP", "soft: next hop to load balancers outside the subnet", ADDRESS,
	 AT(gateway)},
	{"mtu", "BYTES", "soft: IP MTU of the device [1500]", NUMBER, AT(mtu), 576, 9216},
	{"traffic-class", "N", "verbs: DSCP and ECN bits of the packets sent [0]", NUMBER,
	 AT(traffic_class), 0, 255},
	{"proxy", NULL,
	 "verbs: post through the proxy thread, also where the loop could ring a ConnectX itself",
	 FLAG_OFF, AT(may_post)},
	{"name", "NAME", "the worker's name [host name]", NAME},
	{"model", "NAME|PATH", "plug-in to serve (required): echo, mlp, or the path of a .so", TEXT,
	 AT(model)},
	{"model-args", "K=V,...", "arguments of the plug-in", TEXT, AT(model_arguments)},
	{"gpu", "N,...|all|none",
	 "GPUs that run the model, a worker each [auto: the first, if the model has a CUDA side]",
	 GPUS, AT(gpus)},
	{"workers", "N", "workers that run the model on CPUs [1]", NUMBER, AT(workers), 1, 64},
	{"one-process", NULL,
	 "several workers: all in this process, behind one RNIC [a process each; {n} in --device "
	 "is "
	 "then the worker's number, and with the soft engine, or {n}, each worker has the next "
	 "address]",
	 FLAG_OFF, AT(processes)},
	{"hang-ms", "MS",
	 "a loop that gives no sign of life for this and --max-run-ms together ends its process "
	 "[10000]",
	 NUMBER, AT(hang_ms), 100, 600000},
	{"start-ms", "MS",
	 "several workers: one that has not loaded its model after this is ended, and started "
	 "again [90000]",
	 NUMBER, AT(start_ms), 100, 3600000},
	{"slots", "N", "request slots per link, a power of two [256]", NUMBER, AT(slots), 2, 32768,
	 true},
	{"max-batch", "N", "requests per run of the model [32]", NUMBER, AT(max_batch), 1, 65536},
	{"batch-timeout-us", "US", "wait this long for a batch to fill [0: do not wait]", NUMBER,
	 AT(batch_timeout_us), 0, 1000000},
	{"heartbeat-ms", "MS", "heartbeat of the loop [20]", NUMBER, AT(heartbeat_ms), 10, 60000},
	{"max-run-ms", "MS", "run time of the longest batch, during which no heartbeat is sent [0]",
	 NUMBER, AT(max_run_ms), 0, 600000},
	{"weight", "N", "share of the requests, or of the flows under maglev, 1..256 [1]", NUMBER,
	 AT(weight), 1, 256},
	{"label", "KEY=VALUE",
	 "a label that operators filter workers by: host=..., gpu=...; up to 16 times", LABEL},
	{"congestion-control", "dcqcn|off", "of the software RNIC [dcqcn]", CONTROL, AT(dcqcn)},
	{"memory-mb", "MB", "packet memory [128]", NUMBER, AT(memory_mb), 64, 65536},
	{"no-hugepages", NULL, "use ordinary pages", FLAG_OFF, AT(hugepages)},
	{"busy-poll", NULL, "never sleep: lowest latency, two CPUs at 100 %", FLAG_OFF,
	 AT(idle_sleep)},
	{"log-level", "LEVEL", "error, warning, notice, info or debug [info]", LEVEL,
	 AT(log_level)},
	{"log-format", "FORMAT", "text, logfmt or json [text]", FORMAT, AT(log_format)},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

#define USAGE_COLUMN 27 /* column of the help, after two spaces */

static void print_help(FILE *to)
{
	fputs("usage: doorbell-agent --lb HOST:PORT --device DEVICE --address IP/PREFIX "
	      "--model NAME [options]\n\n",
	      to);
	for (size_t i = 0; i < ROWS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s %s", rows[i].name,
			 rows[i].value == NULL ? "" : rows[i].value);
		/* A longer option has a line of its own. */
		if (strlen(left) > USAGE_COLUMN - 2)
			fprintf(to, "  %s\n  %-*s%s\n", left, USAGE_COLUMN, "", rows[i].help);
		else
			fprintf(to, "  %-*s%s\n", USAGE_COLUMN, left, rows[i].help);
	}
	fprintf(to, "  %-*s%s\n  %-*s%s\n", USAGE_COLUMN, "--version", "print the version",
		USAGE_COLUMN, "--help", "print this help");
}

static int report_option(const struct row *row, const char *value, const char *fix)
{
	fprintf(stderr, "doorbell-agent: --%s: '%s' %s\n", row->name, value, fix);
	return 2;
}

static int set_number(const struct row *row, const char *value, void *field)
{
	char fix[96], *end;
	unsigned long n;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno != 0 || *end != '\0' || end == value || value[0] == '-' || n < row->min ||
	    n > row->max || (row->power_of_two && (n & (n - 1)) != 0)) {
		snprintf(fix, sizeof(fix), "is not %s from %u to %u",
			 row->power_of_two ? "a power of two" : "a number", row->min, row->max);
		return report_option(row, value, fix);
	}
	*(uint32_t *)field = n;
	return 0;
}

static int set_prefix(const struct row *row, char *value, struct agent_options *o)
{
	char *slash = strchr(value, '/'), *end;
	unsigned long bits;

	if (slash == NULL)
		return report_option(row, value, "has no prefix length; write 10.9.0.11/24");
	*slash = '\0';
	if (!agent_address_parse(value, &o->address))
		return report_option(row, value, "is no IP address");
	bits = strtoul(slash + 1, &end, 10);
	if (*end != '\0' || end == slash + 1 || bits == 0 ||
	    bits > (o->address.family == 4 ? 32 : 128))
		return report_option(row, slash + 1,
				     "is not a prefix length, 1 to 32 (IPv4) or 1 to 128 (IPv6)");
	o->prefix = bits;
	return 0;
}

static int set_host_port(const struct row *row, const char *value, struct endpoint *lb)
{
	if (endpoint_parse(value, lb) == 0)
		return 0;
	return report_option(row, value, "is not HOST:PORT; write 10.0.0.1:4790 or [fd00::1]:4790");
}

static int set_option(const struct row *row, char *value, struct agent_options *o)
{
	void *field = (char *)o + row->offset;

	switch (row->kind) {
	case TEXT:
		*(const char **)field = value;
		return 0;
	case NUMBER:
		return set_number(row, value, field);
	case ADDRESS:
		return agent_address_parse(value, field)
			       ? 0
			       : report_option(row, value, "is no IP address");
	case PREFIX:
		return set_prefix(row, value, o);
	case HOST_PORT:
		return set_host_port(row, value, &o->lb);
	case NAME:
		if (strlen(value) >= AGENT_NAME_MAX)
			return report_option(row, value, "is longer than 63 characters");
		if (value[0] == '\0' || value[strspn(value, NAME_CHARACTERS)] != '\0')
			return report_option(row, value,
					     "may have letters, digits, '.', '_' and '-' only");
		snprintf(o->name, sizeof(o->name), "%s", value);
		return 0;
	case ENGINE:
		o->verbs = strcmp(value, "verbs") == 0;
		return o->verbs || strcmp(value, "soft") == 0
			       ? 0
			       : report_option(row, value, "is neither soft nor verbs");
	case LEVEL:
		for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
			if (strcmp(value, levels[i]) == 0) {
				o->log_level = levels[i];
				return 0;
			}
		return report_option(row, value, "is none of error, warning, notice, info, debug");
	case FORMAT:
		o->log_format = log_format_named(value);
		return o->log_format < (int)LOG_FORMATS
			       ? 0
			       : report_option(row, value, "is none of text, logfmt, json");
	case GPUS:
		*(const char **)field = value;
		return strcmp(value, "auto") == 0 || strcmp(value, "all") == 0 ||
				       strcmp(value, "none") == 0 ||
				       (value[0] != '\0' &&
					value[strspn(value, "0123456789,")] == '\0')
			       ? 0
			       : report_option(
					 row, value,
					 "is neither auto, all, none, nor numbers of GPUs like "
					 "0,2");
	case LABEL:
		if (strchr(value, '=') == NULL || value[0] == '=')
			return report_option(row, value, "is not KEY=VALUE; write host=rack2-7");
		if (o->n_labels == AGENT_LABELS_MAX)
			return report_option(row, value, "is one label too many; give at most 16");
		o->label[o->n_labels++] = value;
		return 0;
	case CONTROL:
		if (strcmp(value, "dcqcn") != 0 && strcmp(value, "off") != 0)
			return report_option(row, value, "is neither dcqcn nor off");
		*(bool *)field = value[0] == 'd';
		return 0;
	case FLAG_OFF:
		*(bool *)field = false;
		return 0;
	}
	return 2;
}

static int options_check(const struct agent_options *o)
{
	const char *missing = o->lb.host[0] == '\0'    ? "lb"
			      : o->device == NULL      ? "device"
			      : o->address.family == 0 ? "address"
			      : o->model == NULL       ? "model"
						       : NULL;

	if (missing != NULL) {
		fprintf(stderr, "doorbell-agent: --%s is required (see --help)\n", missing);
		return 2;
	}
	if (o->workers > 1 && strcmp(o->gpus, "auto") != 0 && strcmp(o->gpus, "none") != 0) {
		fprintf(stderr,
			"doorbell-agent: --workers is for CPUs, and --gpu makes a worker of "
			"each GPU; give one of them\n");
		return 2;
	}
	if (o->gateway.family != 0 && o->gateway.family != o->address.family) {
		fprintf(stderr, "doorbell-agent: --gateway and --address must both be IPv4 or both "
				"IPv6\n");
		return 2;
	}
	return 0;
}

int agent_options_parse(int argc, char **argv, struct agent_options *o)
{
	struct option table[ROWS + 3] = {0};
	int c, ret;

	*o = (struct agent_options){
		.model_arguments = "",
		.mtu = 1500,
		.slots = 256,
		.max_batch = 32,
		.heartbeat_ms = 20,
		.weight = 1,
		.memory_mb = 128,
		.hugepages = true,
		.idle_sleep = true,
		.may_post = true,
		.dcqcn = true,
		.gpus = "auto",
		.workers = 1,
		.processes = true,
		.hang_ms = AGENT_HANG_MS,
		.start_ms = 90000, /* systemd's own default */
		.log_level = "info",
	};
	gethostname(o->name, sizeof(o->name) - 1);
	for (size_t i = 0; i < ROWS; i++)
		table[i] = (struct option){rows[i].name,
					   rows[i].value == NULL ? no_argument : required_argument,
					   NULL, 256 + i};
	table[ROWS] = (struct option){"version", no_argument, NULL, 'V'};
	table[ROWS + 1] = (struct option){"help", no_argument, NULL, 'h'};
	while ((c = getopt_long(argc, argv, "Vh", table, NULL)) != -1) {
		if (c == 'V') {
			puts("doorbell-agent " DOORBELL_VERSION);
			return 1;
		}
		if (c == 'h') {
			print_help(stdout);
			return 1;
		}
		if (c < 256) {
			fputs("doorbell-agent: see --help\n", stderr);
			return 2;
		}
		ret = set_option(&rows[c - 256], optarg, o);
		if (ret != 0)
			return ret;
	}
	if (optind != argc) {
		fprintf(stderr, "doorbell-agent: unexpected argument '%s' (see --help)\n",
			argv[optind]);
		return 2;
	}
	return options_check(o);
}
