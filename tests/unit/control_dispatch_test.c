/* SPDX-License-Identifier: BSD-3-Clause */
/* A line in, a reply out, no sockets. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control_fake_lb.h"
#include "control_say.h"

TestSuite(control_dispatch, .init = fake_eal);

/* Shorthand for the tables below: everything but what a row is about. */
#define CALL(method, params)                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"
#define LINK(n)                                                                                    \
	"{\"lcore\":" n ",\"qpn\":17,\"psn\":5,\"rkey\":99,\"descriptors\":4096,\"payloads\":8192,"   \
	"\"cancels\":12288,\"stride\":2048,\"room\":0,\"entry\":64}"
#define SPEC(name, version, instance, slots, rest)                                                 \
	"{\"version\":" version ",\"name\":" name ",\"model\":\"llama\",\"instance\":" instance    \
	",\"slots\":" slots ",\"max_request\":1472,\"max_reply\":1472,\"max_batch\":8,"            \
	"\"weight\":1,\"heartbeat_ms\":50,\"address\":\"10.9.0.2\",\"path_mtu\":4096" rest "}"
/* As agents of protocol 2 gave them. */
#define OLD_LINKS                                                                                  \
	",\"links\":[{\"lcore\":0,\"qpn\":17,\"psn\":5,\"rkey\":99,\"descriptors\":4096,"               \
	"\"slots\":8192,\"cancels\":12288,\"stride\":2048}]"
#define LINKS    ",\"links\":[" LINK("0") "," LINK("1") "]"
#define REGISTER CALL("agent.register", SPEC("\"gpu1\"", "3", "\"00000000deadbeef\"", "64", LINKS))

#define DESCRIBED(name, max_request, text)                                                         \
	CALL("agent.register",                                                                     \
	     "{\"version\":3,\"name\":" name ",\"model\":\"llama\",\"instance\":\"00000000deadbeef\"," \
	     "\"slots\":64,\"min_request\":72,\"max_request\":" max_request                          \
	     ",\"max_reply\":40,\"max_batch\":8,\"weight\":1,\"heartbeat_ms\":50,"                     \
	     "\"address\":\"10.9.0.2\",\"path_mtu\":4096" LINKS ",\"description\":" text "}")
#define DESCRIPTION(version, batch, inputs, outputs)                                               \
	"{\"version\":" version ",\"platform\":\"mine\",\"batch\":" batch ",\"inputs\":" inputs        \
	",\"outputs\":" outputs "}"
#define TENSOR(name, datatype, shape)                                                              \
	"{\"name\":" name ",\"datatype\":" datatype ",\"shape\":" shape "}"
#define ID     TENSOR("\"id\"", "\"UINT64\"", "[-1,1]")
#define PIXELS TENSOR("\"pixels\"", "\"UINT8\"", "[-1,64]")
#define SCORES TENSOR("\"scores\"", "\"FP32\"", "[-1,10]")

struct row {
	const char *line;
	const char *expect; /* part of the reply; NULL: there is none */
};

static const struct row operator_rows[] = {
	/* broken messages */
	{"", "-32700"},
	{"{", "-32700"},
	{"nonsense", "not JSON, column"},
	{"42", "-32700"},
	{"\"text\"", "-32700"},
	{"[]", "batches are not supported; send one message per line"},
	{"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"version\"}]", "-32600"},
	{"{}", "jsonrpc: missing or not"},
	{"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"version\"}", "-32600"},
	{"{\"jsonrpc\":\"1.0\",\"id\":9,\"method\":\"version\"}", "\"id\": 9"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1}", "method: missing or not a string"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", "method: missing or not a string"},
	{"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"version\"}", "id: give a string"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"version\"}", "duplicate"},
	{CALL("flows.nuke", "{}"), "no method 'flows.nuke'"},
	{CALL("version", "[]"), "params: give an object with named members"},
	{CALL("version", "{\"x\":1}"), "params.x: unknown; leave it out"},
	/* ids come back as they were */
	{"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"version\"}", "\"id\": \"a\""},
	{"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"version\"}", "\"id\": null"},
	{"{\"jsonrpc\":\"2.0\",\"method\":\"version\"}", NULL},
	{"{\"jsonrpc\":\"2.0\",\"method\":\"no.such\"}", NULL},
	{CALL("capture.start", "{}"), "params.port: missing; give a string"},
	{CALL("capture.start", "{\"port\":\"x\"}"),
	 "-32001, \"message\": \"no port 'x'; ports are"},
	{CALL("capture.start", "{\"port\":\"clients\",\"filter\":\"udp\"}"),
	 "params.program: missing; give what libpcap makes of the filter"},
	{CALL("capture.start", "{\"port\":\"clients\",\"direction\":\"up\"}"),
	 "params.direction: no 'up'; give in, out or both"},
	{CALL("capture.start", "{\"port\":\"clients\",\"snaplen\":65536}"),
	 "params.snaplen: cannot use 65536; give an integer from 14 to 65535"},
	{CALL("capture.start", "{\"port\":\"clients\",\"count\":0}"), "params.count: cannot use 0"},
	{CALL("capture.start", "{\"port\":\"clients\",\"seconds\":604801}"),
	 "params.seconds: cannot use 604801; give an integer from 1 to 604800"},
	{CALL("capture.start", "{\"port\":\"clients\",\"snaplen\":99,\"program\":\"1,6 0 0 1\"}"),
	 "filter: 1,6 0 0 1"},
	{CALL("capture.read", "{\"capture\":7}"), "no capture 7: another was started since"},
	{CALL("capture.read", "{\"capture\":0}"), "params.capture: cannot use 0"},
	{CALL("capture.stop", "{\"capture\":7}"), "-32001"},
	{CALL("capture.start", "{\"port\":\"clients\"}"), "\"capture\": 1"},
	{CALL("capture.start", "{\"port\":\"clients\"}"), "-32003"},
	{CALL("capture.read", "{\"capture\":1}"), "\"state\": \"waiting\", \"done\": false"},
	{CALL("capture.stop", "{\"capture\":1}"), "\"result\": {}"},
	{CALL("capture.read", "{\"capture\":1}"), "\"state\": \"stopped\", \"done\": true"},
	/* good ones */
	{CALL("version", "{}"), "\"version\": \"" DOORBELL_VERSION "\", \"protocol\": 3, \"dpdk\""},
	{CALL("flows.list", "{}"), "{\"cursor\": 8589934592, \"done\": true, \"flows\": []}"},
	{CALL("flows.list", "{\"compact\":true}"), "\"columns\": [\"lcore\", \"client\","},
	{CALL("flows.list", "{\"compact\":true}"), "\"flows\": []"},
	{CALL("flows.count", "{}"), "\"count\": 0"},
	{CALL("flows.count", "{\"by\":\"state\"}"), "\"count\": 0, \"groups\": []"},
	{CALL("flows.top", "{}"), "\"done\": true, \"flows\": []"},
	{CALL("workers.list", "{}"), "\"name\": \"gpu0\", \"model\": \"llama\""},
	{CALL("workers.list", "{}"), "\"mean_wait_us\": 15, \"mean_run_us\": 400"},
	{CALL("workers.show", "{\"name\":\"gpu0\"}"), "\"instance\": \"d06fe3d3b531814e\""},
	{CALL("workers.show", "{\"name\":\"gpu0\"}"), "\"labels\": {}, \"services\": [\"chat\"]"},
	{CALL("workers.table", "{}"),
	 "{\"host\": null, \"slot\": null, \"name\": \"gpu0\", \"model\": \"llama\", "
	 "\"state\": \"active\", \"services\": [\"chat\"], \"labels\": {}}"},
	{CALL("workers.release", "{\"name\":\"gpu0\",\"services\":[\"chat\"]}"),
	 "\"services\": []"},
	{CALL("services.show", "{\"name\":\"chat\"}"), "\"workers\": 0"},
	{CALL("workers.assign", "{\"name\":\"gpu0\",\"services\":[\"chat\"]}"),
	 "\"services\": [\"chat\"]"},
	{CALL("services.show", "{\"name\":\"chat\"}"),
	 "\"members\": \"all\", \"min_workers\": 0, \"spares_in\": 0, \"spares\": 0, "
	 "\"placement\": \"spread\""},
	{CALL("services.list", "{}"), "\"vip\": \"2001:db8::1\""},
	{CALL("services.show", "{\"name\":\"chat\"}"), "\"workers\": 1"},
	{CALL("services.show", "{\"name\":\"vision\"}"), "\"workers\": 0"},
	{CALL("config.diff", "{}"), "\"file\": \"/etc/doorbell/fake.yaml\", \"changes\": []"},
	{CALL("config.check", "{}"), "\"applies\": true, \"reason\": null"},
	{CALL("config.apply", "{\"file\":\"lb.yaml\"}"), "params.file: give an absolute path"},
	{CALL("config.apply", "{\"file\":\"/nonexistent\"}"), "-32004"},
	{CALL("config.diff", "{\"file\":\"/dev/null\"}"), "/dev/null"},
	{CALL("stats.show", "{}"), "\"drops\": {\"ip_checksum\": 5}"},
	{CALL("stats.show", "{}"), "\"cycles_per_item\": 44"},
	{CALL("stats.show", "{}"), "\"load\": 0.0, \"buckets_per_lookup\": null}"},
	{CALL("stats.show", "{}"), "\"new_flows_per_s\": null"},
	{CALL("stats.show", "{}"), "\"cycles\": 0, \"items\": 0, \"cycles_per_item\": null"},
	{CALL("stats.show", "{\"all\":true}"), "\"ip_checksum\": \"wrong IPv4 header checksum\""},
	/* parameters name the field and the fix */
	{CALL("stats.show", "{\"all\":1}"), "params.all: cannot use 1; give true or false"},
	{CALL("workers.show", "{}"), "params.name: missing; give a string of 1 to 63 bytes"},
	{CALL("workers.show", "{\"name\":3}"), "params.name: cannot use 3; give a string"},
	{CALL("workers.show", "{\"name\":\"\"}"), "params.name: cannot use"},
	{CALL("workers.show", "{\"name\":\"a\\u0007\"}"), "without control characters"},
	{CALL("workers.show", "{\"name\":\"x\"}"), "-32001, \"message\": \"no worker 'x'"},
	{CALL("workers.drain", "{\"name\":\"x\"}"), "-32001"},
	{CALL("workers.assign", "{\"name\":\"gpu0\"}"),
	 "params.services: missing; give an array of 1 to 256 strings"},
	{CALL("workers.assign", "{\"name\":\"gpu0\",\"services\":[]}"),
	 "params.services: cannot use"},
	{CALL("workers.assign", "{\"name\":\"gpu0\",\"services\":[3]}"),
	 "params.services: cannot use [3]"},
	{CALL("workers.assign", "{\"name\":\"gpu0\",\"services\":[\"x\"]}"),
	 "no service 'x'; services.list has them all"},
	{CALL("workers.assign", "{\"name\":\"x\",\"services\":[\"chat\"]}"), "no worker 'x'"},
	{CALL("workers.assign", "{\"name\":\"gpu0\",\"services\":[\"vision\"]}"), "another model"},
	{CALL("workers.release", "{\"services\":[\"chat\"]}"), "params.name: missing"},
	{CALL("workers.table", "{\"x\":1}"), "params.x: unknown"},
	{CALL("services.show", "{\"name\":\"x\"}"), "no service 'x'; services.list has them all"},
	{CALL("flows.list", "{\"limit\":0}"), "params.limit: cannot use 0; give an integer from 1"},
	{CALL("flows.list", "{\"limit\":-5}"), "-32602"},
	{CALL("flows.list", "{\"limit\":1.5}"), "-32602"},
	{CALL("flows.list", "{\"limit\":99999999}"), "to 16384"},
	{CALL("flows.list", "{\"lmit\":1}"),
	 "params.lmit: unknown; known are service, worker, client, state, zone, min_bytes, "
	 "min_idle_s, cursor, limit, compact"},
	{CALL("flows.count", "{\"limit\":1}"), "params.limit: unknown"},
	{CALL("flows.count", "{\"by\":\"client\"}"),
	 "params.by: cannot use 'client'; give service, worker or state"},
	{CALL("flows.top", "{\"by\":\"age\"}"),
	 "params.by: cannot use 'age'; give bytes, packets or requests"},
	{CALL("flows.top", "{\"limit\":1001}"), "params.limit: cannot use 1001"},
	{CALL("flows.top", "{\"compact\":true}"), "params.compact: unknown"},
	{CALL("flows.list", "{\"state\":\"free\"}"), "no state 'free'; states are: udp-one-way, "},
	{CALL("flows.list", "{\"zone\":\"nowhere\"}"), "no zone 'nowhere'"},
	{CALL("flows.list", "{\"min_bytes\":\"1k\"}"), "params.min_bytes: cannot use"},
	{CALL("flows.list", "{\"min_idle_s\":3000000}"), "-32602"},
	{CALL("flows.list", "{\"cursor\":-1}"), "-32602"},
	{CALL("flows.list", "{\"cursor\":9223372036854775807}"), "\"done\": true"},
	{CALL("flows.list", "{\"service\":\"x\"}"), "no service 'x'"},
	{CALL("flows.list", "{\"worker\":\"x\"}"), "no worker 'x'"},
	{CALL("flows.list", "{\"client\":\"10.0.0.300\"}"), "give an address or address/prefix"},
	{CALL("flows.list", "{\"client\":\"10.0.0.0/33\"}"), "-32602"},
	{CALL("flows.list", "{\"client\":\"10.0.0.0/-1\"}"), "-32602"},
	{CALL("flows.list", "{\"client\":\"10.0.0.0/\"}"), "-32602"},
	{CALL("flows.list", "{\"client\":\"2001:db8::/129\"}"), "-32602"},
	/* not for operators */
	{CALL("agent.ready", "{}"), "agent.ready is for agents, on the TCP port"},
	{REGISTER, "-32003"},
};

static const struct row agent_rows[] = {
	{CALL("workers.list", "{}"), "workers.list is for operators, on the UNIX socket"},
	{CALL("agent.hello", "{}"), "params.version: missing; give an integer from 0"},
	{CALL("agent.hello", "{\"version\":3,\"model\":\"llama\",\"address\":\"nowhere\"}"),
	 "params.address: cannot use \\\"nowhere\\\"; give an IPv4 or IPv6 address"},
	{CALL("agent.hello", "{\"version\":4,\"model\":\"llama\",\"address\":\"10.9.0.2\"}"),
	 "version: the agent speaks protocol 4, this load balancer 3, with ring contract 2; "
	 "install the agent of doorbell " DOORBELL_VERSION},
	{CALL("agent.hello", "{\"version\":2,\"model\":\"llama\",\"address\":\"10.9.0.2\"}"),
	 "version: the agent speaks protocol 2, this load balancer 3, with ring contract 2; "
	 "upgrade the agent to doorbell " DOORBELL_VERSION},
	{CALL("agent.hello", "{\"version\":3,\"model\":\"gpt\",\"address\":\"10.9.0.2\"}"),
	 "-32002, \"message\": \"no service has the model 'gpt'; add one\""},
	{CALL("agent.hello", "{\"version\":3,\"model\":\"llama\",\"address\":\"10.9.0.2\"}"),
	 "{\"n_lcores\": 2, \"path_mtu\": 1024, \"address\": \"10.9.0.2\", \"max_request\": 1472, "
	 "\"max_reply\": 1472, \"worker_timeout_ms\": 500, \"ack_timeout\": 14, "
	 "\"retry_count\": 7, \"describe\": true, \"report\": true}"},
	{CALL("agent.hello",
	      "{\"version\":3,\"model\":\"llama\",\"address\":\"10.9.0.2\",\"min_request\":1473}"),
	 "-32002, \"message\": \"min_request: 1473 are more than 1472"},
	{CALL("agent.ready", "{}"), "this connection has no worker; call agent.register first"},
	{CALL("agent.drain", "{}"), "-32003"},
	{CALL("agent.register", SPEC("\"g\"", "3", "\"12\"", "64", LINKS)),
	 "params.instance: cannot use \\\"12\\\"; give a string of 16 hexadecimal digits"},
	{CALL("agent.register", SPEC("\"g\"", "3", "\"00000000deadbeef\"", "64", "")),
	 "params.links: missing; give an array of 1 to 64 objects"},
	{CALL("agent.register",
	      SPEC("\"g\"", "3", "\"00000000deadbeef\"", "64", LINKS ",\"labels\":[]")),
	 "params.labels: cannot use []; give an object with 0 to 16 members, each with a string"},
	{CALL("agent.register",
	      SPEC("\"g\"", "3", "\"00000000deadbeef\"", "64", LINKS ",\"labels\":{\"a\":1}")),
	 "params.labels: cannot use {\\\"a\\\":1}"},
	{CALL("agent.register", SPEC("\"g\"", "3", "\"00000000deadbeef\"", "64",
				     LINKS ",\"labels\":{\"a b\":\"1\"}")),
	 "the key of a label has a character that is not allowed; use letters, digits and ._-/"},
	{CALL("agent.register", SPEC("\"g\"", "3", "\"00000000deadbeef\"", "64", ",\"links\":[]")),
	 "params.links: cannot use []"},
	{CALL("agent.register", SPEC("\"g\"", "3", "\"00000000deadbeef\"", "64", ",\"links\":[7]")),
	 "params.links[0]: give an object"},
	{CALL("agent.register",
	      SPEC("\"g\"", "3", "\"00000000deadbeef\"", "64", ",\"links\":[" LINK("64") "]")),
	 "params.links[0].lcore: cannot use 64; give an integer from 0 to 63"},
	{CALL("agent.register",
	      SPEC("\"g\"", "3", "\"00000000deadbeef\"", "64", ",\"links\":[" LINK("0") "]")),
	 "1 links; give one for each of the 2 lcores"},
	{CALL("agent.register", SPEC("\"g\"", "3", "\"00000000deadbeef\"", "63", LINKS)),
	 "slots is 63; use a power of two"},
	{CALL("agent.register", SPEC("\"g\"", "1", "\"00000000deadbeef\"", "64", LINKS)),
	 "version: the agent speaks protocol 1, this load balancer 3, with ring contract 2; "
	 "upgrade the agent to doorbell " DOORBELL_VERSION},
	/* An agent of protocol 2 gives other fields of its links: the version is the reason. */
	{CALL("agent.register", SPEC("\"g\"", "2", "\"00000000deadbeef\"", "64", OLD_LINKS)),
	 "version: the agent speaks protocol 2"},
	{CALL("agent.register", SPEC("\"g\"", "3", "\"00000000deadbeef\"", "64", OLD_LINKS)),
	 "params.links[0].slots: unknown; known are lcore, qpn, psn, rkey, descriptors, payloads"},
	{CALL("agent.register", SPEC("\"gpu0\"", "3", "\"00000000deadbeef\"", "64", LINKS)),
	 "name 'gpu0' is in use"},
	{REGISTER, "{\"worker\": 1, \"generation\": 1, \"path_mtu\": 1024, \"links\": [{\"lcore\": 0, \"qpn\": 256, "
		   "\"psn\": 7, \"reply_rkey\": 43981, \"reply_address\": 268435456, "
		   "\"reply_stride\": 2048, \"chunk\": 2048}, {\"lcore\": 1,"},
	{REGISTER, "this connection has worker 'gpu1' already"},
	{CALL("agent.ready", "{\"now\":true}"), "params.now: unknown"},
	{CALL("agent.ready", "{}"), "\"result\": {}"},
	{CALL("agent.drain", "{}"), "\"result\": {}"},
};

/* A description's faults are named by their place; the connection goes on. */
static const struct row description_rows[] = {
	{DESCRIBED("\"d\"", "72", "[]"), "params.description: cannot use []; give an object"},
	{DESCRIBED("\"d\"", "72", "{}"),
	 "params.description.version: missing; give a string of 1 to 31 bytes"},
	{DESCRIBED("\"d\"", "72", DESCRIPTION("1", "true", "[" ID "]", "[" SCORES "]")),
	 "params.description.version: cannot use 1"},
	{DESCRIBED("\"d\"", "72", DESCRIPTION("\"a/b\"", "true", "[" ID "]", "[" SCORES "]")),
	 "-32002, \"message\": \"description.version: use 1 to 31 letters, digits and ._-\""},
	{DESCRIBED("\"d\"", "72", DESCRIPTION("\"1\"", "1", "[" ID "]", "[" SCORES "]")),
	 "params.description.batch: cannot use 1; give true or false"},
	{DESCRIBED("\"d\"", "72", DESCRIPTION("\"1\"", "true", "[]", "[" SCORES "]")),
	 "params.description.inputs: cannot use []; give an array of 1 to 16 objects"},
	{DESCRIBED("\"d\"", "72", DESCRIPTION("\"1\"", "true", "[" ID ",7]", "[" SCORES "]")),
	 "params.description.inputs[1]: give an object with named members"},
	{DESCRIBED("\"d\"", "72",
		   DESCRIPTION("\"1\"", "true", "[{\"name\":\"x\",\"dims\":[]}]", "[]")),
	 "params.description.outputs: cannot use []"},
	{DESCRIBED("\"d\"", "72",
		   DESCRIPTION("\"1\"", "true", "[{\"name\":\"x\",\"dims\":[]}]", "[" SCORES "]")),
	 "params.description.inputs[0].dims: unknown; known are name, datatype, shape"},
	{DESCRIBED("\"d\"", "72",
		   DESCRIPTION("\"1\"", "true", "[" TENSOR("\"\"", "\"FP32\"", "[-1]") "]",
			       "[" SCORES "]")),
	 "params.description.inputs[0].name: cannot use"},
	{DESCRIBED("\"d\"", "72",
		   DESCRIPTION("\"1\"", "true", "[" TENSOR("\"x\"", "\"FP8\"", "[-1]") "]",
			       "[" SCORES "]")),
	 "description.inputs[0].datatype: unknown; use BOOL, UINT8 to UINT64"},
	{DESCRIBED("\"d\"", "72",
		   DESCRIPTION("\"1\"", "true", "[" ID "]",
			       "[" TENSOR("\"y\"", "\"FP32\"", "[-1,2.5]") "]")),
	 "params.description.outputs[0].shape: cannot use [-1,2.5]; give an array of 0 to 8 "
	 "dimensions, -1 where it is free"},
	{DESCRIBED("\"d\"", "72",
		   DESCRIPTION("\"1\"", "true", "[" ID "]",
			       "[" TENSOR("\"y\"", "\"FP32\"", "[-1,4294967295]") "]")),
	 "params.description.outputs[0].shape: cannot use"},
	{DESCRIBED("\"d\"", "72",
		   DESCRIPTION("\"1\"", "true", "[" ID "]",
			       "[" TENSOR("\"y\"", "\"FP32\"", "[1,1,1,1,1,1,1,1,1]") "]")),
	 "params.description.outputs[0].shape: cannot use"},
	{DESCRIBED("\"d\"", "72",
		   DESCRIPTION("\"1\"", "true", "[" ID "," TENSOR("\"pixels\"", "\"UINT8\"", "[-1,0]") "]",
			       "[" SCORES "]")),
	 "description.inputs[1].shape[1]: 0; use 1 or more, or -1 for a free dimension"},
	{DESCRIBED("\"d\"", "72", DESCRIPTION("\"1\"", "true", "[" ID "," ID "]", "[" SCORES "]")),
	 "description.inputs[1].name: 'id' is the name of inputs[0], too; use another"},
	{DESCRIBED("\"d\"", "73", DESCRIPTION("\"1\"", "true", "[" ID "," PIXELS "]", "[" SCORES "]")),
	 "max_request: 73 bytes, and the inputs have 72; a description and its sizes must agree"},
	{DESCRIBED("\"d\"", "72",
		   DESCRIPTION("\"1\"", "true", "[" PIXELS "," ID "]", "[" SCORES "]")),
	 "description.inputs[0].name: 'pixels', and 'id' in worker 'w1' of the same model; stop "
	 "the workers with the other tensors first, or give the model another name"},
	{DESCRIBED("\"d\"", "72",
		   DESCRIPTION("\"1\"", "true",
			       "[" ID "," TENSOR("\"pixels\"", "\"UINT8\"", "[-1,8,8]") "]",
			       "[" SCORES "]")),
	 "description.inputs[1].shape: input 'pixels' has [-1,8,8], and [-1,64] in worker 'w1'"},
	/* The same tensors in another version are no disagreement. */
	{DESCRIBED("\"d\"", "72",
		   DESCRIPTION("\"2\"", "true", "[" ID "," PIXELS "]", "[" SCORES "]")),
	 "\"result\": {\"worker\": "},
};

static void check_rows(struct control_connection *c, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		json_t *reply = control_say(c, rows[i].line, strlen(rows[i].line));
		char *text = reply ? json_dumps(reply, 0) : NULL;

		if (!rows[i].expect)
			cr_assert_null(reply, "%s gave %s", rows[i].line, text);
		else
			cr_assert(text && strstr(text, rows[i].expect), "%s gave %s, not %s",
				  rows[i].line, text, rows[i].expect);
		free(text);
		json_decref(reply);
	}
}

Test(control_dispatch, answers_operators)
{
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_OPERATOR};

	fake_lb_worker(lb, "gpu0");
	check_rows(&c, operator_rows, CONTROL_COUNT_OF(operator_rows));
	control_connection_closed(&c);
	fake_lb_destroy(lb);
}

Test(control_dispatch, a_state_has_one_name_at_both_ends)
{
	struct lb *lb = fake_lb_create();
	struct worker *worker = fake_lb_worker(lb, "gpu0");

	fake_lb_outstanding(lb, worker, 1); /* draining and not drained */
	for (enum worker_state state = 0; state < WORKER_STATES; state++) {
		worker->state = state;
		cr_expect_str_eq(control_worker_state_name(lb, worker), worker_state_name(state));
		cr_expect_eq(control_state_find(worker_state_name(state)),
			     control_worker_state(lb, worker));
	}
	worker->state = WORKER_DRAINING;
	fake_lb_outstanding(lb, worker, 0);
	cr_expect_eq(control_worker_state(lb, worker), CONTROL_STATE_DRAINED);
	cr_expect_eq(control_state_find("drained"), CONTROL_STATE_DRAINED);
	cr_expect_eq(control_state_find("of another version"), CONTROL_STATES);
	worker->state = WORKER_ACTIVE;
	fake_lb_destroy(lb);
}

Test(control_dispatch, takes_an_agent_from_hello_to_drain)
{
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_AGENT};

	fake_lb_worker(lb, "gpu0");
	check_rows(&c, agent_rows, CONTROL_COUNT_OF(agent_rows));
	cr_assert(c.greeted);
	cr_assert_str_eq(c.worker->spec.name, "gpu1");
	cr_assert_eq(c.worker->spec.instance, 0xdeadbeef);
	cr_assert_eq(c.worker->owner, &c);
	control_connection_closed(&c);
	cr_assert_str_eq(fake_lb_removed(lb), "connection closed");
	cr_assert_null(workers_find(lb_pool(lb), "gpu1"));
	fake_lb_destroy(lb);
}

Test(control_dispatch, a_description_is_checked_and_kept_with_the_worker)
{
	struct lb *lb = fake_lb_create();
	struct control_connection first = {.lb = lb, .role = CONTROL_AGENT};
	struct control_connection c = {.lb = lb, .role = CONTROL_AGENT};
	const struct row good = {
		DESCRIBED("\"w1\"", "72",
			  DESCRIPTION("\"1\"", "true", "[" ID "," PIXELS "]", "[" SCORES "]")),
		"\"result\": {\"worker\": "};
	const struct model_description *d;

	fake_lb_worker(lb, "gpu0"); /* of the same model, undescribed */
	check_rows(&first, &good, 1);
	d = first.worker->spec.description;
	cr_assert_not_null(d);
	cr_expect_str_eq(d->version, "1");
	cr_expect_str_eq(d->platform, "mine");
	cr_expect(d->batch && d->n_inputs == 2 && d->n_outputs == 1);
	cr_expect_str_eq(d->input[1].name, "pixels");
	cr_expect_eq(d->input[1].datatype, DATATYPE_UINT8);
	cr_expect(d->input[1].rank == 2 && d->input[1].shape[0] == -1 && d->input[1].shape[1] == 64);
	check_rows(&c, description_rows, CONTROL_COUNT_OF(description_rows));
	cr_assert_not_null(c.worker);
	cr_expect_str_eq(c.worker->spec.description->version, "2");
	control_connection_closed(&first);
	control_connection_closed(&c);
	fake_lb_destroy(lb);
}

/* models.list and models.show put together what services and workers say. */
Test(control_dispatch, models_are_told_to_operators)
{
	static const struct row rows[] = {
		{CALL("models.list", "{}"),
		 "{\"name\": \"gpt\", \"workers\": 1, \"active\": 0, \"undescribed\": 0, "
		 "\"services\": [], \"versions\": [\"7\"], \"platform\": \"test\", \"batch\": true, "
		 "\"inputs\": [{\"name\": \"x\", \"datatype\": \"FP32\", \"shape\": [-1, 4], "
		 "\"bytes\": 16}], \"outputs\": [{\"name\": \"y\", "},
		{CALL("models.list", "{}"),
		 "{\"name\": \"llama\", \"workers\": 1, \"active\": 1, \"undescribed\": 1, "
		 "\"services\": [\"chat\"], \"versions\": [], \"platform\": null, \"batch\": null, "
		 "\"inputs\": null, \"outputs\": null}"},
		{CALL("models.list", "{}"),
		 "{\"name\": \"vit\", \"workers\": 2, \"active\": 2, \"undescribed\": 0, "
		 "\"services\": [\"vision\", \"frames\"], \"versions\": [\"1\", \"2\"]"},
		{CALL("models.show", "{\"name\":\"vit\"}"),
		 "\"request_bytes\": 16, \"reply_bytes\": 16, \"min_request\": 16, "
		 "\"max_request\": 16, \"max_reply\": 16, \"max_batch\": 8, \"members\": "
		 "[{\"name\": \"a\", \"state\": \"active\", \"version\": \"1\", \"max_batch\": 8}, "
		 "{\"name\": \"b\", \"state\": \"active\", \"version\": \"2\", \"max_batch\": 8}]"},
		{CALL("models.show", "{\"name\":\"llama\"}"),
		 "\"request_bytes\": null, \"reply_bytes\": null, \"min_request\": 0, "},
		{CALL("models.show", "{\"name\":\"x\"}"),
		 "-32001, \"message\": \"no model 'x'; models.list has them all\""},
		{CALL("models.show", "{}"), "params.name: missing"},
		{CALL("models.list", "{\"name\":\"x\"}"), "params.name: unknown"},
		{CALL("workers.show", "{\"name\":\"b\"}"), "\"model_version\": \"2\""},
		{CALL("workers.show", "{\"name\":\"gpu0\"}"), "\"model_version\": null"},
	};
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_READER};

	fake_lb_worker(lb, "gpu0");
	fake_lb_described(lb, "b", "vit", "2")->state = WORKER_ACTIVE;
	fake_lb_described(lb, "a", "vit", "1");
	/* the order is that of the workers' numbers, which names have had before */
	workers_remove(lb_pool(lb), workers_find(lb_pool(lb), "b"));
	fake_lb_described(lb, "gone", "gpt", "7")->state = WORKER_SUSPECT;
	fake_lb_described(lb, "b", "vit", "2");
	check_rows(&c, rows, CONTROL_COUNT_OF(rows));
	control_connection_closed(&c);
	fake_lb_destroy(lb);
}

/* An agent's connection that shows a certificate with <names> asks for gpu1's registration. */
static void expect_attach(struct lb *lb, const char *names, const char *expect)
{
	struct control_connection c = {.lb = lb, .role = CONTROL_AGENT, .names = names};
	const struct row attach = {CALL("agent.attach",
					"{\"version\":3,\"name\":\"gpu1\",\"instance\":"
					"\"00000000deadbeef\",\"worker\":0,\"generation\":1}"),
				   expect};

	check_rows(&c, &attach, 1);
	cr_expect_eq(c.worker != NULL, strstr(expect, "lease_ms") != NULL, "%s", names);
	cr_expect_eq(c.over, c.worker == NULL, "%s", names);
	control_connection_closed(&c);
}

Test(control_dispatch, a_certificate_binds_who_comes_back_as_well)
{
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_AGENT};

	json_decref(control_say(&c, REGISTER, strlen(REGISTER)));
	cr_assert_not_null(c.worker);
	lb_worker_ready(lb, c.worker);
	fake_lb_heartbeat(lb, c.worker);
	expect_attach(lb, "gpu2", "name: the agent's certificate is for gpu2, not for 'gpu1'");
	expect_attach(lb, "gpu1 ip:10.9.0.3",
		      "address: the agent's certificate has IP addresses, "
		      "and 10.9.0.2 is none of them");
	expect_attach(lb, "gpu1 model:vit",
		      "model: the agent's certificate is for other models "
		      "than 'llama'");
	cr_assert_not_null(c.worker, "it was taken from its connection");
	expect_attach(lb, "gpu1 ip:10.9.0.2 model:llama", "\"lease_ms\": 5000");
	control_connection_closed(&c);
	fake_lb_destroy(lb);
}

/* Expects the next event on the connection to be this state of its worker. */
static void expect_event(struct control_connection *c, const char *state, const char *reason)
{
	json_t *note = control_worker_event(c);
	const json_t *params = json_object_get(note, "params");

	cr_assert_str_eq(json_string_value(json_object_get(note, "method")), "worker.state");
	cr_assert_null(json_object_get(note, "id"));
	cr_assert_str_eq(json_string_value(json_object_get(params, "state")), state);
	cr_assert_str_eq(json_string_value(json_object_get(params, "reason")), reason);
	json_decref(note);
}

Test(control_dispatch, tells_the_agent_each_state_of_its_worker)
{
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_AGENT};
	struct worker *worker;

	json_decref(control_say(&c, REGISTER, strlen(REGISTER)));
	worker = c.worker;
	cr_assert_not_null(worker);
	lb_worker_ready(lb, worker);
	expect_event(&c, "joining", "waits for a heartbeat");
	fake_lb_heartbeat(lb, worker);
	expect_event(&c, "active", "");
	fake_lb_outstanding(lb, worker, 3);
	lb_worker_drain(lb, worker);
	expect_event(&c, "draining", "asked to drain");
	fake_lb_outstanding(lb, worker, 0);
	expect_event(&c, "drained", "drained");
	fake_lb_kill(lb, worker);
	expect_event(&c, "gone", "no heartbeat for 500 ms");
	cr_assert_null(c.worker, "a worker that is gone belongs to nobody");
	fake_lb_destroy(lb);
}

Test(control_dispatch, keeps_errors_valid_when_a_message_is_cut_inside_a_character)
{
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_OPERATOR};
	char line[512];

	for (unsigned int before = 40; before < 64; before++) {
		json_t *reply;

		snprintf(line, sizeof(line),
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%.*s\xc3\xa9\xc3\xa9\"}",
			 (int)before,
			 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
		reply = control_say(&c, line, strlen(line));
		cr_assert_not_null(json_string_value(
			json_object_get(json_object_get(reply, "error"), "message")));
		json_decref(reply);
	}
	fake_lb_destroy(lb);
}

/* A client that knows a worker's instance may take its name over. */
Test(control_dispatch, readers_do_not_learn_what_takes_a_worker_over)
{
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_READER};
	static const char *const looks[] = {CALL("workers.show", "{\"name\":\"gpu0\"}"),
					    CALL("workers.list", "{}"), CALL("workers.table", "{}"),
					    CALL("status.show", "{}"), CALL("stats.show", "{}")};

	fake_lb_worker(lb, "gpu0");
	for (size_t i = 0; i < CONTROL_COUNT_OF(looks); i++) {
		json_t *reply = control_say(&c, looks[i], strlen(looks[i]));
		char *text = json_dumps(reply, 0);

		cr_expect_not_null(json_object_get(reply, "result"), "%s", text);
		cr_expect_null(strstr(text, "0000000000001234"), "%s", text);
		free(text);
		json_decref(reply);
	}
	fake_lb_destroy(lb);
}

Test(control_dispatch, readers_may_look_and_change_nothing)
{
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_READER};
	static const char *const may[] = {"version", "workers.list", "workers.table",
					  "services.list", "stats.show", "status.show",
					  "flows.count", "log.show"};
	static const char *const may_not[] = {
		"workers.drain", "workers.replace", "workers.assign", "workers.release",
		"workers.set",   "trace.start",     "trace.read",     "capture.start",
		"capture.data",  "capture.read",    "log.level",      "config.check",
		"config.diff",   "config.apply",    "agent.hello",    "agent.register"};
	char line[128];

	for (size_t i = 0; i < CONTROL_COUNT_OF(may); i++) {
		struct text reply = {0};

		snprintf(line, sizeof(line), CALL("%s", "{}"), may[i]);
		control_dispatch(&c, line, strlen(line), &reply);
		text_add(&reply, "", 1);
		cr_expect_not_null(strstr(reply.data, "\"result\""), "%s: %s", may[i], reply.data);
		text_free(&reply);
	}
	for (size_t i = 0; i < CONTROL_COUNT_OF(may_not); i++) {
		struct text reply = {0};

		snprintf(line, sizeof(line), CALL("%s", "{}"), may_not[i]);
		control_dispatch(&c, line, strlen(line), &reply);
		text_add(&reply, "", 1);
		cr_expect_not_null(strstr(reply.data, "is not for the read-only socket"), "%s: %s",
				   may_not[i], reply.data);
		text_free(&reply);
	}
	fake_lb_destroy(lb);
}

static void expect_reply(struct control_connection *c, const char *line, const char *part)
{
	struct text reply = {0};

	control_dispatch(c, line, strlen(line), &reply);
	text_add(&reply, "", 1);
	cr_expect_not_null(strstr(reply.data, part), "%s: %s", line, reply.data);
	text_free(&reply);
}

#define REPLACE(old, successor)                                                                    \
	CALL("workers.replace", "{\"name\":\"" old "\",\"successor\":\"" successor "\"}")

Test(control_dispatch, of_two_workers_that_replace_each_other_one_goes_on)
{
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_OPERATOR},
				  d = {.lb = lb, .role = CONTROL_OPERATOR};
	const struct worker *a = fake_lb_worker(lb, "a"), *b = fake_lb_worker(lb, "b");

	expect_reply(&c, REPLACE("a", "b"), "\"state\":\"drained\"");
	expect_reply(&d, REPLACE("b", "a"),
		     "-32003,\"message\":\"worker 'a' is drained by an operator or was replaced, "
		     "so 'b' goes on; doorbell workers resume a lets it serve\"");
	cr_expect_eq(a->state, WORKER_DRAINING);
	cr_expect_eq(b->state, WORKER_ACTIVE);
	/* the same once more changes nothing */
	expect_reply(&c, REPLACE("a", "b"), "\"state\":\"drained\"");
	fake_lb_destroy(lb);
}

Test(control_dispatch, a_successor_that_would_leave_a_service_without_a_worker_is_refused)
{
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_OPERATOR};
	const struct worker *a = fake_lb_worker(lb, "a");
	struct worker *b = fake_lb_worker(lb, "b");
	const char *service = fake_lb_config(lb)->service[0].name;
	char line[256], expect[256];

	snprintf(line, sizeof(line),
		 CALL("workers.release", "{\"name\":\"b\",\"services\":[\"%s\"]}"), service);
	expect_reply(&c, line, "\"worker\":");
	snprintf(expect, sizeof(expect),
		 "-32003,\"message\":\"worker 'b' would not serve service '%s', which 'a' serves, "
		 "so "
		 "'a' goes on; doorbell workers assign b %s lets it",
		 service, service);
	expect_reply(&c, REPLACE("a", "b"), expect);
	/* also before it is active: it need not be waited for */
	b->state = WORKER_JOINING;
	expect_reply(&c, REPLACE("a", "b"), expect);
	b->state = WORKER_ACTIVE;
	cr_expect_eq(a->state, WORKER_ACTIVE);
	expect_reply(
		&c, CALL("workers.replace", "{\"name\":\"a\",\"successor\":\"b\",\"partly\":true}"),
		"\"state\":\"drained\"");
	/* one that is drained has nothing to lose */
	expect_reply(&c, REPLACE("a", "b"), "\"state\":\"drained\"");
	fake_lb_destroy(lb);
}

/* As a load balancer that was restarted in the middle. */
Test(control_dispatch, a_worker_that_is_being_replaced_need_not_be_registered)
{
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_OPERATOR};
	struct worker *a = fake_lb_worker(lb, "a"), *b = fake_lb_worker(lb, "b");

	fake_lb_outstanding(lb, a, 1);
	expect_reply(&c, REPLACE("a", "b"), "\"successor\":\"b\"");
	fake_lb_kill(lb, a);
	b->state = WORKER_JOINING;
	expect_reply(&c, REPLACE("a", "b"), "{\"waits\":\"worker 'b' is joining\"}");
	b->state = WORKER_ACTIVE;
	expect_reply(&c, REPLACE("a", "b"), "\"worker\":null");
	expect_reply(&c, REPLACE("a", "c"), "-32001,\"message\":\"no worker 'a'");
	fake_lb_destroy(lb);
}

/* Asked again after a restart: an operator has said something else meanwhile. */
Test(control_dispatch, a_replacement_that_was_taken_back_is_not_made_again)
{
	static const char again[] =
		CALL("workers.replace", "{\"name\":\"a\",\"successor\":\"b\",\"again\":true}");
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_OPERATOR};
	struct worker *a = fake_lb_worker(lb, "a");

	fake_lb_worker(lb, "b");
	fake_lb_worker(lb, "c");
	/* a load balancer that keeps nothing knows of none */
	expect_reply(&c, again, "\"state\":\"drained\"");
	snprintf(fake_lb_config(lb)->state_file, sizeof(fake_lb_config(lb)->state_file), "kept");
	expect_reply(&c, again, "\"state\":\"drained\"");
	expect_reply(&c, CALL("workers.resume", "{\"name\":\"a\"}"), "\"state\":\"active\"");
	expect_reply(&c, again, "\"state\":\"active\"");
	cr_expect_eq(a->state, WORKER_ACTIVE);
	/* another one's replacement goes on */
	fake_lb_outstanding(lb, a, 1);
	expect_reply(&c, REPLACE("a", "c"), "\"successor\":\"c\"");
	expect_reply(&c, again, "\"successor\":\"c\"");
	/* and it need not be registered */
	fake_lb_kill(lb, a);
	expect_reply(&c, CALL("workers.resume", "{\"name\":\"a\"}"), "\"drain\":false");
	expect_reply(&c, again, "\"worker\":null");
	fake_lb_destroy(lb);
}

Test(control_dispatch, a_successor_that_does_not_serve_is_waited_for)
{
	struct lb *lb = fake_lb_create();
	struct control_connection c = {.lb = lb, .role = CONTROL_OPERATOR};
	const struct worker *a = fake_lb_worker(lb, "a");
	struct worker *b = fake_lb_worker(lb, "b");

	fake_lb_described(lb, "opt0", "gpt", "3");
	b->state = WORKER_SUSPECT;
	expect_reply(&c, REPLACE("a", "b"), "{\"waits\":\"worker 'b' is suspect\"}");
	/* it was seen active before this call, but is dead by now */
	fake_lb_kill(lb, b);
	expect_reply(&c, REPLACE("a", "b"), "{\"waits\":\"worker 'b' is not registered\"}");
	expect_reply(&c, REPLACE("a", "a"), "-32602,\"message\":\"params.successor: 'a' is the ");
	expect_reply(&c, REPLACE("x", "a"), "-32001,\"message\":\"no worker 'x'");
	expect_reply(&c, REPLACE("a", "opt0"),
		     "-32003,\"message\":\"worker 'opt0' has model 'gpt', and 'a' has 'llama'\"");
	cr_expect_eq(a->state, WORKER_ACTIVE);
	/* one that is being replaced is named, also when it is not registered */
	expect_reply(&c, CALL("workers.settings", "{}"), "{\"settings\":[]}");
	/* one that would be drained when it registers never comes to serve */
	expect_reply(&c, CALL("workers.drain", "{\"name\":\"b\",\"absent\":true}"),
		     "\"drain\":true");
	expect_reply(&c, REPLACE("a", "b"), "worker 'b' is drained by an operator");
	cr_expect_eq(a->state, WORKER_ACTIVE);
	fake_lb_destroy(lb);
}
