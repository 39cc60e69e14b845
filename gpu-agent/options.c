/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "supervisor.h"
#include "runtime/log_line.h"
#include "runtime/option_table.h"

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

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static int refuse_value(char *error, size_t size, const char *why)
{
	snprintf(error, size, "%s", why);
	return -EINVAL;
}

char *agent_number_fill(const char *text, int number)
{
	size_t mark = strlen(AGENT_NUMBER_MARK);
	char *out = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&out, &size);

	if (stream == NULL)
		return NULL;
	for (const char *at; (at = strstr(text, AGENT_NUMBER_MARK)) != NULL; text = at + mark)
		fprintf(stream, "%.*s%d", (int)(at - text), text, number);
	fputs(text, stream);
	if (fclose(stream) != 0) {
		free(out);
		return NULL;
	}
	return out;
}

static int take_gateway(void *field, const char *text, char *error, size_t size)
{
	return agent_address_parse(text, field) ? 0 : refuse_value(error, size, "is no IP address");
}

static bool is_unicast(const struct rnic_address *address)
{
	if (address->family == 4)
		return address->addr.s6_addr[12] != 0 && address->addr.s6_addr[12] < 224;
	return !IN6_IS_ADDR_MULTICAST(&address->addr) && !IN6_IS_ADDR_UNSPECIFIED(&address->addr);
}

static int take_prefix(struct agent_options *o, const char *text, char *error, size_t size)
{
	const char *slash = strchr(text, '/');
	char address[64], *end;
	unsigned long bits;

	if (slash == NULL)
		return refuse_value(error, size, "has no prefix length; write 10.201.0.11/24");
	snprintf(address, sizeof(address), "%.*s", (int)(slash - text), text);
	if (!agent_address_parse(address, &o->address))
		return refuse_value(error, size, "does not begin with an IP address");
	if (!is_unicast(&o->address))
		return refuse_value(error, size, "is no unicast address; write 10.201.0.11/24");
	bits = strtoul(slash + 1, &end, 10);
	if (*end != '\0' || slash[1] < '0' || slash[1] > '9' || bits == 0 ||
	    bits > (o->address.family == 4 ? 32 : 128))
		return refuse_value(
			error, size,
			"has no prefix length from 1 to 32 (IPv4) or from 1 to 128 (IPv6)");
	o->prefix = (uint8_t)bits;
	return 0;
}

int agent_prefix_take(void *options, const char *text, char *error, size_t size)
{
	struct agent_options *o = options;
	char *first = agent_number_fill(text, 0);
	int ret;

	if (first == NULL)
		return refuse_value(error, size, "cannot be read: out of memory");
	o->address_marked = strcmp(first, text) != 0 ? text : NULL;
	ret = take_prefix(o, first, error, size);
	free(first);
	return ret;
}

static int take_name(void *field, const char *text, char *error, size_t size)
{
	if (strlen(text) >= AGENT_NAME_MAX)
		return refuse_value(error, size, "is longer than 63 characters");
	if (text[0] == '\0' || text[strspn(text, NAME_CHARACTERS)] != '\0')
		return refuse_value(error, size, "may have letters, digits, '.', '_' and '-' only");
	strcpy(field, text);
	return 0;
}

static int take_gpus(void *field, const char *text, char *error, size_t size)
{
	const char *at = text;
	size_t digits;

	*(const char **)field = text;
	if (strcmp(text, "auto") == 0 || strcmp(text, "all") == 0 || strcmp(text, "none") == 0)
		return 0;
	while ((digits = strspn(at, "0123456789")) != 0 && at[digits] == ',')
		at += digits + 1;
	if (digits != 0 && at[digits] == '\0')
		return 0;
	return refuse_value(error, size,
			    "is neither auto, all, none, nor numbers of GPUs like 0,2");
}

static int take_label(void *options, const char *text, char *error, size_t size)
{
	struct agent_options *o = options;

	if (strchr(text, '=') == NULL || text[0] == '=')
		return refuse_value(error, size, "is not KEY=VALUE; write host=rack2-7");
	if (o->n_labels == AGENT_LABELS_MAX)
		return refuse_value(error, size, "is one label too many; give at most 16");
	o->label[o->n_labels++] = text;
	return 0;
}

#define AT(field) OPTION_AT(struct agent_options, field)

static const char *const engines[] = {"soft", "verbs", NULL};
static const char *const congestion_controls[] = {"off", "dcqcn", NULL};
static const char *const memories[] = {"auto", "gpu", "host", NULL};
static const char *const levels[] = {"error", "warning", "notice", "info", "debug", NULL};

static const struct option_row rows[] = {
	{"lb", OPTION_ENDPOINT, AT(lb), NULL, "the load balancer's address for agents",
	 .required = true},
	{"tls-certificate", OPTION_TEXT, AT(tls_certificate), "FILE",
	 "TLS: the agent's certificate (PEM), whose DNS name is --name"},
	{"tls-key", OPTION_TEXT, AT(tls_key), "FILE", "TLS: its key"},
	{"tls-ca", OPTION_TEXT, AT(tls_ca), "FILE",
	 "TLS: certificate of the authority that signed the load balancer's"},
	{"tls-name", OPTION_TEXT, AT(tls_name), "NAME|IP",
	 "TLS: name or address in the load balancer's certificate [HOST of --lb]"},
	{"token-file", OPTION_TEXT, AT(token_file), "FILE",
	 "TLS by a token that load balancer and agents share, instead of certificates"},
	{"engine", OPTION_WORD, AT(verbs), NULL,
	 "soft: a software RNIC on a DPDK device; verbs: an RDMA device", .words = engines},
	{"device", OPTION_TEXT, AT(device), "DEVICE",
	 "of the engine: kernel0,iface=eth1, 0000:3b:00.0 ...; mlx5_0, rxe0 ...", .required = true},
	{"address", OPTION_CALL, OPTION_WHOLE(struct agent_options), "IP/PREFIX",
	 "the worker's own RoCEv2 address on it; soft: not one of the kernel's, verbs: one of the "
	 "device's",
	 .take = agent_prefix_take, .required = true},
	{"gateway", OPTION_CALL, AT(gateway), "IP",
	 "soft: next hop to load balancers outside the subnet", .take = take_gateway},
	{"mtu", OPTION_NUMBER, AT(mtu), "BYTES", "soft: IP MTU of the device", 576, 9216},
	{"queues", OPTION_NUMBER, AT(queues), "N",
	 "soft: queues of the device; with a memif as many as the load balancer has lcores, and as "
	 "the other end has: then its lcores hand no packets to each other",
	 1, AGENT_QUEUES_MAX},
	{"traffic-class", OPTION_NUMBER, AT(traffic_class), "N",
	 "verbs: DSCP and ECN bits of the packets sent [0]", 0, 255},
	{"proxy", OPTION_FLAG_OFF, AT(may_post), NULL,
	 "verbs: post through the proxy thread, also where the loop could ring a ConnectX itself"},
	{"memory", OPTION_WORD, AT(memory), NULL,
	 "verbs: where requests and replies lie; auto: in the memory of the GPU that runs the "
	 "model, "
	 "if the RDMA device reaches it",
	 .words = memories},
	{"name", OPTION_CALL, AT(name), "NAME", "the worker's name [host name]", .take = take_name},
	{"model", OPTION_TEXT, AT(model), "NAME|PATH",
	 "plug-in to serve: echo, mlp, words, or the path of a .so", .required = true},
	{"model-args", OPTION_TEXT, AT(model_arguments), "K=V,...", "arguments of the plug-in"},
	{"gpu", OPTION_CALL, AT(gpus), "N,...|all|none",
	 "GPUs that run the model, a worker each [auto: the first, if the model has a CUDA side]",
	 .take = take_gpus},
	{"gpu-memory-mb", OPTION_NUMBER, AT(gpu_memory_mb), "MB",
	 "memory that a worker, with its model, may take on its GPU; it does not start with less "
	 "free, nor with a model that takes more [no limit]",
	 1, 16777216},
	{"workers", OPTION_NUMBER, AT(workers), "N", "workers that run the model on CPUs", 1, 64},
	{"one-process", OPTION_FLAG_OFF, AT(processes), NULL,
	 "several workers: all in this process, behind one RNIC [a process each; {n} in --device "
	 "and --address is then the worker's number; with the soft engine, or {n} in --device "
	 "alone, each worker has the next "
	 "address]"},
	{"no-canary", OPTION_FLAG_OFF, AT(canary), NULL,
	 "register without a first inference, which tells whether the model works"},
	{"hang-ms", OPTION_NUMBER, AT(hang_ms), "MS",
	 "a loop that gives no sign of life for this and --max-run-ms together ends its process",
	 100, 600000},
	{"start-ms", OPTION_NUMBER, AT(start_ms), "MS",
	 "several workers: one that has not loaded its model after this is ended, and started "
	 "again",
	 100, 3600000},
	{"slots", OPTION_POWER_OF_TWO, AT(slots), "N", "request slots per link, a power of two", 2,
	 32768},
	{"payload-mb", OPTION_NUMBER, AT(payload_mb), "MB",
	 "memory per link for requests longer than 16 KiB [0: 32, or for 4 of the longest]", 0,
	 4096},
	{"max-batch", OPTION_NUMBER, AT(max_batch), "N",
	 "requests per run of the model; on a GPU no more than 128", 1, 65536},
	{"no-batch-sizes", OPTION_FLAG_OFF, AT(batch_sizes), NULL,
	 "batches have one size, that of --max-batch, also of a model that offers smaller ones, "
	 "whose graphs take memory and time to start"},
	{"batch-timeout-us", OPTION_NUMBER, AT(batch_timeout_us), "US",
	 "wait this long for a batch to fill [0: do not wait]", 0, 1000000},
	{"turns", OPTION_TEXT, AT(turns), "FILE",
	 "with --gpu none: agents of this machine with the same file run their models one at a "
	 "time, by their requests' deadlines"},
	{"heartbeat-ms", OPTION_NUMBER, AT(heartbeat_ms), "MS", "heartbeat of the loop", 10, 60000},
	{"max-run-ms", OPTION_NUMBER, AT(max_run_ms), "MS",
	 "run time of the longest batch, during which no heartbeat is sent [0]", 0, 600000},
	{"weight", OPTION_NUMBER, AT(weight), "N",
	 "share of the requests, or of the flows under maglev, 1..256", 1, 256},
	{"label", OPTION_CALL, OPTION_WHOLE(struct agent_options), "KEY=VALUE",
	 "where the worker is, for doorbell workers table and for near and spread of services: "
	 "host=..., slot=...; up to 16 times",
	 .take = take_label},
	{"congestion-control", OPTION_WORD, AT(dcqcn), NULL, "of the software RNIC",
	 .words = congestion_controls},
	{"memory-mb", OPTION_NUMBER, AT(memory_mb), "MB", "packet memory", 64, 65536},
	{"no-hugepages", OPTION_FLAG_OFF, AT(hugepages), NULL, "use ordinary pages"},
	{"busy-poll", OPTION_FLAG_OFF, AT(idle_sleep), NULL,
	 "never sleep: lowest latency, two CPUs at 100 %"},
	{"log-level", OPTION_WORD, AT(log_level), NULL, "how much is logged", .words = levels},
	{"log-format", OPTION_WORD, AT(log_format), NULL, "form of the log's lines",
	 .words = log_format_names},
	{0},
};

static const struct option_table agent_table = {
	.program = "doorbell-agent",
	.usage = "doorbell-agent --lb HOST:PORT --device DEVICE --address IP/PREFIX --model NAME "
		 "[options]",
	.version = DOORBELL_VERSION,
	.rows = rows,
};

/* An option that the engine has no use for, or NULL. (--mtu is what doorbell doctor asks the
 * network for with either.) */
static const char *option_of_other_engine(const struct agent_options *o)
{
	if (!o->verbs)
		return o->traffic_class != 0 ? "traffic-class" : !o->may_post ? "proxy" : NULL;
	return o->gateway.family != 0 ? "gateway"
	       : o->queues != 1       ? "queues"
	       : !o->dcqcn            ? "congestion-control"
				      : NULL;
}

static int options_check(const struct agent_options *o)
{
	const char *other = option_of_other_engine(o);

	if (other != NULL) {
		fprintf(stderr, "doorbell-agent: --%s is for %s; leave it out\n", other,
			o->verbs ? "the software RNIC (--engine soft)"
				 : "RDMA devices (--engine verbs)");
		return 2;
	}
	if (o->workers > 1 && strcmp(o->gpus, "auto") != 0 && strcmp(o->gpus, "none") != 0) {
		fprintf(stderr,
			"doorbell-agent: --workers is for CPUs, and --gpu makes a worker of "
			"each GPU; give one of them\n");
		return 2;
	}
	if (o->address_marked != NULL && !agent_supervisor_wanted(o)) {
		fprintf(stderr,
			"doorbell-agent: --address %s: " AGENT_NUMBER_MARK
			" is the number of one of "
			"several workers that have a process each; write the address\n",
			o->address_marked);
		return 2;
	}
	if (o->memory == AGENT_MEMORY_GPU && !o->verbs) {
		fprintf(stderr,
			"doorbell-agent: --memory gpu needs an RDMA device (--engine verbs); "
			"the software RNIC reaches host memory only\n");
		return 2;
	}
	if (o->gpu_memory_mb != 0 && strcmp(o->gpus, "none") == 0) {
		fprintf(stderr, "doorbell-agent: --gpu-memory-mb is for models on GPUs; leave it "
				"out, or --gpu none\n");
		return 2;
	}
	if (o->turns != NULL && strcmp(o->gpus, "none") != 0) {
		fprintf(stderr, "doorbell-agent: --turns is for models on CPUs; give --gpu none, "
				"too\n");
		return 2;
	}
	if ((o->tls_certificate != NULL || o->tls_key != NULL || o->tls_ca != NULL) &&
	    (o->tls_certificate == NULL || o->tls_key == NULL || o->tls_ca == NULL)) {
		fprintf(stderr,
			"doorbell-agent: --tls-%s is missing; TLS by certificates needs "
			"--tls-certificate, --tls-key and --tls-ca\n",
			o->tls_certificate == NULL ? "certificate"
			: o->tls_key == NULL       ? "key"
						   : "ca");
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
	int ret;

	*o = (struct agent_options){
		.model_arguments = "",
		.mtu = 1500,
		.queues = 1,
		.slots = 256,
		.max_batch = 32,
		.canary = true,
		.batch_sizes = true,
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
		.log_level = 3 /* info */,
	};
	gethostname(o->name, sizeof(o->name) - 1);
	ret = options_parse(&agent_table, argc, argv, o, NULL);
	if (ret == 0)
		return options_check(o);
	return ret > 0 ? 1 : 2;
}
