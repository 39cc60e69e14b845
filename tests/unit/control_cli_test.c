/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell program and its completion against a server in a child process. DOORBELL_CLI and
 * DOORBELL_COMPLETION are their paths.
 */
#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "control_fixture.h"

static struct fixture f;
static pid_t server;

/* A worker to list, 2,500 flows, the last by TCP, and a drain that ends while somebody waits for it. */
static void serve(void)
{
	struct worker *worker = fake_lb_worker(f.lb, "gpu0"), *busy = fake_lb_worker(f.lb, "gpu1");
	struct worker *hung = fake_lb_worker(f.lb, "hung");

	worker->report = (struct worker_report){
		.n_sizes = 2,
		.size = {{1, 40, 32000}, {8, 5, 8000}},
		.has_gpu = true,
		.gpu = {.temperature = 91, .notice = "hot"},
	};
	fake_lb_described(f.lb, "opt0", "gpt", "3");
	for (uint32_t n = 0; n < 2500; n++)
		fake_lb_flow(f.lb, n % 2, n, 0, worker)->requests_low = n;
	fake_lb_flow(f.lb, 0, 2498, 0, worker)->state = FLOW_TCP_OPEN;
	fake_lb_outstanding(f.lb, busy, 12);
	fake_lb_outstanding(f.lb, hung, 5);
	for (unsigned int turns = 0;; turns++) {
		event_base_loop(f.base, EVLOOP_ONCE);
		if (busy->state == WORKER_DRAINING && turns % 8 == 0)
			fake_lb_outstanding(f.lb, busy, 0);
	}
}

static void set_up(void)
{
	control_fixture_start(&f);
	cr_assert_not_null(f.server, "%s", f.error);
	setenv("DOORBELL_SOCKET", f.socket, 1);
	server = fork();
	cr_assert_geq(server, 0);
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* a fork shares epoll's set with its parent */
		event_reinit(f.base);
		serve();
	}
}

/* Called last in each test, not as .fini: a failure in .fini, such as a leak, does not count. */
static void tear_down(void)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	control_fixture_stop(&f);
}

TestSuite(control_cli, .init = set_up, .timeout = 60);

/* Runs doorbell with these arguments. Returns stdout and stderr together, and the exit status. */
static char *doorbell(const char *arguments, int *status)
{
	char command[512], *output = NULL;
	size_t size, n;
	FILE *pipe, *out = open_memstream(&output, &size);
	char part[4096];

	snprintf(command, sizeof(command), DOORBELL_CLI " %s 2>&1", arguments);
	pipe = popen(command, "r");
	while ((n = fread(part, 1, sizeof(part), pipe)) > 0)
		fwrite(part, 1, n, out);
	*status = WEXITSTATUS(pclose(pipe));
	fclose(out);
	return output;
}

/* Two programs at once; each drained a worker when it ended with 0. */
Test(control_cli, two_replacements_at_once_that_are_each_other_s_leave_one_worker)
{
	static const char *const wanted[] = {"workers replace gpu0 gpu1 --timeout 1",
					     "workers replace gpu1 gpu0 --timeout 1"};
	char command[512], drained[64];
	int status;

	for (unsigned int round = 0; round < 20; round++) {
		FILE *pipe[2];
		unsigned int n = 0;
		char *text;

		for (unsigned int i = 0; i < 2; i++) {
			snprintf(command, sizeof(command), DOORBELL_CLI " %s >/dev/null 2>&1",
				 wanted[(i + round) % 2]);
			pipe[i] = popen(command, "r");
		}
		for (unsigned int i = 0; i < 2; i++)
			n += WEXITSTATUS(pclose(pipe[i])) != 1;
		cr_assert_eq(n, 1, "%u of 2 were done in round %u", n, round);
		text = doorbell("workers settings --json", &status);
		snprintf(drained, sizeof(drained), "%s",
			 strstr(text, "\"name\": \"gpu0\"") != NULL ? "gpu0" : "gpu1");
		free(text);
		snprintf(command, sizeof(command), "workers resume %s", drained);
		free(doorbell(command, &status));
	}
	tear_down();
}

/* Answers one line on <socket> as a load balancer does that does not know the method. */
static pid_t answer_as_older(const char *socket_path)
{
	static const char reply[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,"
				    "\"message\":\"no method 'workers.replace'\"}}\n";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), peer;
	char line[512];
	pid_t pid;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(fd, 1), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		peer = accept(fd, NULL, NULL);
		_exit(read(peer, line, sizeof(line)) > 0 &&
				      write(peer, reply, sizeof(reply) - 1) > 0
			      ? 0
			      : 1);
	}
	close(fd);
	return pid;
}

Test(control_cli, an_older_load_balancer_is_not_asked_to_drain_instead)
{
	char path[100], command[256], *output;
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/old.sock", f.folder);
	pid = answer_as_older(path);
	snprintf(command, sizeof(command), "--socket %s workers replace a b", path);
	output = doorbell(command, &status);
	cr_expect_eq(status, 1);
	cr_expect_str_eq(output,
			 "doorbell: this doorbell-lb is older than the command, and cannot "
			 "replace in one step; update it, or run 'doorbell workers drain a' "
			 "while 'b' is active\n");
	free(output);
	waitpid(pid, &status, 0);
	cr_expect_eq(status, 0);
	unlink(path);
	tear_down();
}

struct row {
	const char *arguments;
	int status;
	const char *expect; /* part of the output */
};

static const struct row rows[] = {
	{"version", 0, "doorbell-lb  " DOORBELL_VERSION "\n"},
	{"--version", 0, "doorbell " DOORBELL_VERSION "\n"},
	{"--help", 0, "usage: doorbell"},
	{"top", 0, "4 of 4 workers active, 0 requests/s, 0 waiting, 0 drops/s\n"},
	{"top --once", 0, "SERVICE  WORKERS  WAITING  REQUESTS/S"},
	{"top", 0, "\ngpu1    active           12      118"},
	{"workers list", 0, "NAME  MODEL  STATE"},
	{"workers list", 0, "gpu0  llama  active"},
	{"workers list --json", 0, "\"name\": \"gpu0\",\n"},
	{"workers show gpu0", 0, "\ncnps received     17\nrate, Mbit/s      1000\n"},
	{"workers show gpu0 --json", 0, "\"rate_mbit\": 1000"},
	{"workers show gpu0", 0, "\nGPU degrees C     91\n"},
	{"workers show gpu0", 0, "\nGPU notice        hot\n"},
	{"workers show gpu0", 0, "\nbatches by size   1=40,8=5\n"},
	{"workers show gpu0 --json", 0, "\"8\": 1600"},
	{"workers show gpu0", 0, "mean wait         15 us\n"},
	{"workers show nobody", 1,
	 "doorbell: no worker 'nobody'; 'doorbell workers list' has them all\n"},
	{"workers drain gpu0", 0, "worker gpu0: drained\n"},
	{"workers drain --no-wait gpu1", 0, "worker gpu1: draining\n"},
	{"workers drain gpu1", 0, "worker gpu1: drained\n"},
	{"workers resume gpu1", 0, "worker gpu1: resumed, active\n"},
	{"workers resume gpu1", 0, "worker gpu1: resumed, "},
	{"workers replace gpu1 nobody --timeout 1", 1,
	 "doorbell: worker 'nobody' is not registered; 'gpu1' goes on\n"},
	{"workers replace gpu1 opt0", 1,
	 "doorbell: worker 'opt0' has model 'gpt', and 'gpu1' has 'llama'\n"},
	{"workers replace nobody gpu1", 1, "doorbell: no worker 'nobody'"},
	{"workers replace gpu1 gpu1", 2, "workers replace: give two workers"},
	{"workers replace gpu1", 2, "workers replace: "},
	{"workers replace gpu1 hung", 0, "worker gpu1: drained\n"},
	{"workers replace hung gpu1", 1,
	 "doorbell: worker 'gpu1' is drained by an operator or was replaced, so 'hung' goes on; "
	 "doorbell workers resume gpu1 lets it serve\n"},
	{"workers drain hung --timeout 1", 3, "worker hung: draining, with 5 requests in hand\n"},
	{"workers forget hung", 0, "worker hung: nothing is set for it any more, active\n"},
	{"workers drain gpu1", 0, "worker gpu1: drained\n"},
	{"workers drain --timeout 0 gpu1", 2, "--timeout: '0' is not a number from 1 to 604800"},
	{"workers table", 0, "HOST  SLOT  NAME  MODEL  STATE    SERVICES  LABELS\n"},
	{"workers table --json", 0, "\"host\": null,\n"},
	{"workers release gpu0 chat", 0, "worker gpu0 serves -\n"},
	{"workers assign gpu0 chat nope", 1,
	 "doorbell: no service 'nope'; 'doorbell services list' has"},
	{"workers assign gpu0", 2, "workers assign: give SERVICE... after the name"},
	{"workers assign", 2, "workers assign: which one? give its name"},
	{"workers set gpu0 weight=7", 0, "worker gpu0: weight 7, drained\n"},
	{"workers show gpu0 --json", 0, "\"weight\": 7,"},
	{"workers set gpu0 weight=7 --json", 0, "\"weight\": 7,"},
	{"workers set gpu0 weight=257", 1, "give an integer from 0 to 256"},
	{"workers settings", 0,
	 "NAME  STATE    DRAIN  SUCCESSOR  WEIGHT  ASSIGNED  RELEASED  REASON\n"},
	{"workers settings", 0, "gpu0  drained  yes    -               7  -"},
	{"workers set gpu0 weight=0", 0, "worker gpu0: weight 0, drained\n"},
	{"workers show gpu0", 0, "\nweight            1\n"},
	{"workers resume gpu0", 0, "worker gpu0: resumed, active\n"},
	{"workers resume nobody", 1,
	 "doorbell: no worker 'nobody'; 'doorbell workers list' has them all (abs"},
	{"workers drain nobody --absent", 0, "worker nobody: not registered; drained when it is\n"},
	{"workers settings", 0, "nobody  gone"},
	{"workers resume nobody", 0, "worker nobody: resumed, not registered\n"},
	{"workers drain no/body --absent", 1, "doorbell: name: no worker can have this name; use"},
	{"workers forget nobody", 1,
	 "doorbell: nothing is set for a worker 'nobody'; 'doorbell workers s"},
	{"workers forget gpu1", 0, "worker gpu1: nothing is set for it any more, active\n"},
	{"workers set gpu0 weight=", 2,
	 "workers set: weight: '' is not a number; give 1 to 256, or 0 for the agent's\n"},
	{"workers set gpu0 wait=1", 2, "workers set: cannot set 'wait=1'; give weight=N\n"},
	{"workers set gpu0", 2, "workers set: give NAME weight=N\n"},
	{"workers set nobody weight=1", 1, "doorbell: no worker 'nobody'"},
	{"services list", 0, "chat    192.0.2.1"},
	{"services show vision", 0, "vip              2001:db8::1\n"},
	{"services show --json vision", 0, "\"payload_crc\": false"},
	{"services show --json vision", 0, "\"congestion\": null"},
	{"services list", 0, "frames  192.0.2.1    8002  tcp"},
	{"services show frames", 0, "\nframing          length\n"},
	{"services show frames", 0, "congestion       cubic\n"},
	{"services show frames", 0, "ecn              yes\n"},
	{"services show frames", 0, "flow timeout     -\n"},
	{"services show --json frames", 0, "\"congestion\": \"cubic\""},
	{"bench --to 192.0.2.1:8002 --rate 1", 2,
	 "bench: --to 192.0.2.1:8002 is a tcp service; give --tcp, and its --framing"},
	{"config check", 0, "/etc/doorbell/fake.yaml: good, 0 changes\n"},
	{"config diff", 0, "/etc/doorbell/fake.yaml: as it runs\n"},
	{"config apply", 0, "/etc/doorbell/fake.yaml: applied, 0 changes\n"},
	{"config check " SAMPLE_CONFIG, 3,
	 "good, but cannot be applied now: flows changed: needs a"},
	{"config check --json " SAMPLE_CONFIG, 3, "\"applies\": false"},
	{"models list", 0, "MODEL  WORKERS  SERVICES       VERSION  INPUTS        OUTPUTS\n"},
	{"models list", 0, "gpt    1 of 1   -              3        x:FP32[-1,4]  y:FP32[-1,4]\n"},
	{"models list", 0, "llama  3 of 3   chat           -        -             -\n"},
	{"models list", 0, "vit    0 of 0   vision,frames  -        -             -\n"},
	{"models show gpt", 0, "first dimension is a batch  yes\n"},
	{"models show gpt", 0, "every request               16 B\n"},
	{"models show gpt", 0,
	 "\n\nINPUT  DATATYPE  SHAPE   BYTES\nx      FP32      [-1,4]     16\n\nOUTPUT"},
	{"models show gpt", 0,
	 "\n\nWORKER  STATE   VERSION  LARGEST BATCH\nopt0    active  3                    8\n"},
	{"models show gpt --json", 0, "\"shape\": ["},
	{"models show vit", 0, "largest request             -\n"},
	{"models show gpu", 1, "doorbell: no model 'gpu'; 'doorbell models list' has them all\n"},
	{"workers show opt0", 0, "\nits version       3\n"},
	{"config diff " SAMPLE_CONFIG, 0, "services[digits]"},
	{"config diff --json " SAMPLE_CONFIG, 0, "\"effect\": \"restart\""},
	{"config apply " SAMPLE_CONFIG, 1, "doorbell: flows changed: needs a restart\n"},
	{"config apply /nonexistent", 1, "doorbell: /nonexistent: No such file or directory\n"},
	{"config check /dev/null", 1, "doorbell: /dev/null"},
	{"config apply a b", 2, "'config apply' does not take 'b'; see doorbell help config\n"},
	{"trace", 2, "trace: which flow? give --flow CLIENT:PORT[,VIP:PORT]\n"},
	{"trace --flow 10.0.0.2", 1, "doorbell: --flow: give the client's ADDRESS:PORT"},
	{"trace --flow 10.0.0.2:0", 1, "--flow: give"},
	{"trace --flow 10.0.0.2:70000", 1, "--flow: give"},
	{"trace --flow [10.0.0.2]:7", 1, "--flow: give"},
	{"trace --flow 2001:db8::1:7", 1, "--flow: give"},
	{"trace --flow 10.0.0.2:7,", 1, "--flow: give"},
	{"trace --flow 10.0.0.2:7,x:8", 1, "--flow: give"},
	{"trace --flow [2001:db8::1]:7,10.0.0.1:8", 0, "7 bytes on port"},
	{"trace --flow 10.0.0.2:7", 0, "lcore 0  0000000000000abc  chosen    worker one that"},
	{"trace --flow 10.0.0.2:7 --json", 0, "\"step\": \"dropped\", \"what\": \""},
	{"trace --flow 10.0.0.2:7 --count 0", 2, "--count: '0' is not a number from 1"},
	{"capture", 2, "capture: which port? give --port NAME\n"},
	{"capture --port clients", 2, "capture: where to? give --file FILE\n"},
	{"capture --port clients --file ''", 2, "--file: give a name\n"},
	{"capture --port clients --file - --json", 2, "--json: the packets are in its place"},
	{"capture --port clients --file -", 0, "packets"},
	{"capture --port clients --file -", 0,
	 "3 packets captured, 0 not taken by the filter, 0 "
	 "dropped; 7 bytes in - (count)\n"},
	{"capture --port clients --file - --snaplen 98", 1,
	 "doorbell: - is not whole: doorbell-lb could not send it, or nothing read it for 10 s"},
	{"capture --port clients --file /dev/null", 1, "--file: /dev/null exists; remove it, or"},
	{"capture --port clients --file /nonexistent/x", 1,
	 "--file: cannot make /nonexistent/x: No such file or directory\n"},
	{"capture --port other --file -", 1, "doorbell: no port 'other'; ports are: clients\n"},
	{"capture --port clients --file - --direction up", 1, "--direction: no 'up'; give in"},
	{"capture --port clients --file - --snaplen 0", 2, "--snaplen: '0' is not a number from 1"},
	{"capture --port clients --file - --snaplen 13", 1,
	 "--snaplen: cannot use 13; give an integer from 14 to 65535"},
	{"capture --port clients --file - --seconds x", 2, "--seconds: 'x' is not a number"},
	{"capture --port clients --file - --count 1 --follow", 2,
	 "--follow does not fit 'capture'"},
	{"log show --json", 0, "\"module\": \"doorbell.control\",\n"},
	{"log level control debug", 0, "MODULE            LEVEL\ndoorbell.control  debug\n"},
	{"log level notice --json", 0, "\"level\": \"notice\""},
	{"log level lib.ea* error", 0, "MODULE   LEVEL\nlib.eal  error\n"},
	{"log level nothing debug", 1,
	 "doorbell: no module 'doorbell.nothing'; 'doorbell log show' has"},
	{"log level loud", 1, "level: cannot use 'loud'; give error, warning, notice,"},
	{"log level", 2, "log level: which one? give its name"},
	{"stats", 0, "1    3   75%       0     2.5M   3.4 MiB"},
	{"stats", 0, "     10  ip_checksum  wrong IPv4 header checksum\n"},
	{"stats", 0, "port fabric has no link\n"},
	{"stats --json", 0, "\"link\": \"up\""},
	{"stats", 0, "LCORE  FLOWS    OF  NEW/S   LOAD  BUCKETS/LOOKUP   LAG"},
	{"stats", 0, "    0   1250  4096  "},
	{"stats --all", 0, "nd_other"},
	{"stats --json --all", 0, "\"reasons\""},
	{"top --json", 0, "\"window_ms\": "},
	{"top --all", 2, "--all does not fit 'top'"},
	{"flows count", 0, "2500\n"},
	{"flows count --client 10.0.0.0/28 --json", 0, "{\"count\": 8}\n"},
	{"flows list --sort=requests --limit=1 --json", 0, "\"requests\": 2499"},
	{"flows count --by service", 0, "NAME  FLOWS   SHARE\nchat   2500  100.0%\n"},
	{"flows count --by worker --client 10.0.0.0/28 --json", 0, "\"name\": \"gpu0\",\n"},
	{"flows count --by client", 1, "doorbell: --by: cannot use 'client'; give service,"},
	{"flows top --by requests --limit=1 --json", 0, "\"value\": 2499"},
	{"flows top", 0, "CLIENT "},
	{"flows top --service vision --json", 0, "{\"flows\": []}\n"},
	{"flows top --limit 1001", 1, "doorbell: --limit: cannot use 1001; give an integer"},
	{"flows list --state udp-one-way --limit 1 --json", 0, "\"state\":\"udp-one-way\""},
	{"flows list --state asleep", 1, "no state 'asleep'; states are: udp-one-way, "},
	{"flows count --min-bytes 1 --min-idle=1", 0, "0\n"},
	{"flows list --client 10.0.0.2", 0, "10.0.0.2:1026  front  chat     gpu0"},
	{"flows list --service nope", 1, "doorbell: no service 'nope'"},
	{"", 2, "usage: doorbell"},
	{"help", 0, "  workers drain NAME           send it nothing new"},
	{"--help", 0, "       doorbell help [<object> [<verb>]]\n"},
	{"help workers drain", 0,
	 "usage: doorbell workers drain NAME [options]\n  Send the worker no"},
	{"help workers drain", 0, "  --timeout=SECONDS\n      Wait for so long at most"},
	{"workers drain --help", 0, "until workers resume. Its agent goes on"},
	{"workers --help", 0, "\n\nusage: doorbell workers table"},
	{"help stats", 0, "usage: doorbell stats [options]\n"},
	{"help bench", 0, "usage: doorbell bench --to"},
	{"help gpus", 2, "no object 'gpus'; objects are: flows"},
	{"help workers kill", 2, "workers has no verb 'kill'; verbs are: list"},
	{"--socket /nonexistent/s config check " SAMPLE_CONFIG, 0,
	 ": good; no doorbell-lb answers here"},
	{"--socket /nonexistent/s config check /nonexistent", 1,
	 "doorbell: /nonexistent: cannot open"},
	{"--socket /nonexistent/s config check --json " SAMPLE_CONFIG, 0, "\"applies\": false"},
	{"--socket /nonexistent/s config check", 1, "or doorbell-lb --config FILE --check\n"},
	{"gpus", 2,
	 "objects are: flows, workers, services, models, config, trace, capture, log, stats, top, "
	 "version, "
	 "doctor, bench, size\n"},
	{"workers", 2,
	 "verbs are: list, show NAME, drain NAME, replace OLD, resume NAME, assign NAME, release "
	 "NAME, table, "
	 "refused, set NAME weight=N, settings, forget NAME\n"},
	{"workers kill gpu0", 2, "workers has no verb 'kill'; verbs are: list, show NAME, drain"},
	{"workers list --socket", 2, "--socket: give a value: --socket PATH"},
	{"size reads --tags 140 --read-bytes 128 --rtt-us 6.8", 0,
	 "throughput  2.635 GB/s (21.08 Gbit/s): 140 reads of 128 bytes in 6.8 us\n"},
	{"size reads --tags 140 --read-bytes 128 --rtt-us 6.8 --want-gbps 22", 1,
	 "wanted      22 Gbit/s: NOT REACHED\n"},
	{"size reads --tags 140 --read-bytes 128", 2, "--rtt-us"},
	{"size reads --tags 140 --read-bytes 128 --rtt-us 0", 2, "--rtt-us: give 0.001 or more"},
	{"size reads --tags 140 --read-bytes 128 --rtt-us 1e-300", 2,
	 "--rtt-us: give 0.001 or more"},
	{"size --rate 1e-6 --each-us 50", 2, "--rate: give requests per second, 0.001 or more"},
	{"size reads --tags 140 --read-bytes 8192 --rtt-us 1", 2, "--read-bytes"},
	{"size calls", 2, "--rtt-us"},
	{"size calls --rtt-us 10 --gbps 100", 2, "FILE: give one file with a trace"},
	{"size calls a b --rtt-us 10 --gbps 100", 2, "FILE: give one file with a trace"},
	{"size calls /nonexistent/t --rtt-us 10 --gbps 100", 2,
	 "/nonexistent/t: cannot be opened: No such file or directory"},
	{"size calls /nonexistent/t --rtt-us 10 --gbps 0", 2, "--gbps: give a network above 0"},
	{"size calls " TRACE_FILE " --rtt-us 1000 --gbps 100", 1, "NOT KEPT"},
	{"size calls " TRACE_FILE " --rtt-us 10 --gbps 100 --epsilon 9", 0,
	 "calls       1 local, 2 async, 1 sync, 1 wait; 5 in all"},
	{"--socket /nonexistent/s size", 2,
	 "size comes before all options; see doorbell size --help"},
	{"doctor --root /nonexistent", 2, "--root: '/nonexistent' is no folder"},
	{"workers show", 2, "workers show: which one? give its name"},
	{"workers list gpu0", 2, "'workers list' does not take 'gpu0'"},
	{"workers list --limit 3", 2, "--limit does not fit 'workers list'"},
	{"workers drain gpu0 --watch", 2, "--watch does not fit 'workers drain'"},
	{"flows list --limit many", 2, "--limit: 'many' is not a number from 1"},
	{"flows list --min-bytes 1k", 2, "--min-bytes: '1k' is not a number"},
	{"flows list --stream", 2, "--stream: give --json with it, and neither --sort"},
	{"flows list --json --stream --watch", 2, "--stream: give --json with it"},
	{"flows top --sort bytes_in", 2, "--sort does not fit 'flows top'"},
	{"flows list --sort size", 2, "--sort: 'size' is no field; fields are: client, zone"},
	{"flows list --watch=0", 2, "--watch: '0' is not a number from 1 to 86400"},
	{"doctor --root /usr/share", 0, "ok       control socket           doorbell-lb "},
	{"doctor --root /usr/share", 0, " warnings, 0 problems, "},
	{"doctor --root /usr/share --json", 0, "\"status\": \"not applicable\""},
	{"doctor --root /usr/share --json", 0, "\"problems\": 0"},
	{"doctor lb --config /nonexistent.yaml", 1,
	 "problem  configuration            /nonexistent"},
	{"doctor agent --lb nowhere", 1, "--lb: give HOST:PORT"},
	{"doctor agent --engine verbs --device none0 --root /usr/share --json", 1,
	 "\"fix\": \"--device: load"},
	{"doctor agent --mtu 1k", 2, "doorbell: --mtu: '1k' is not a number from 576 to 9216"},
	{"doctor lb --config /nonexistent.yaml", 1,
	 "; fix: mend that; doorbell-lb --config FILE --check"},
	{"doctor lb --device net_null0", 2, "--device does not fit 'doctor lb'"},
	{"doctor nurse", 2, "'doctor' does not take 'nurse'"},
	{"doctor --watch", 2, "--watch does not fit 'doctor'"},
	{"--socket /nonexistent/s workers list", 1,
	 "doorbell: cannot reach doorbell-lb at /nonexistent/s: No such file or directory; is it "
	 "running? (--socket to choose another)\n"},
};

Test(control_cli, does_what_the_words_say)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int status;
		char *output;

		output = doorbell(rows[i].arguments, &status);
		cr_expect_eq(status, rows[i].status, "'%s' ended with %d: %s", rows[i].arguments,
			     status, output);
		cr_expect(strstr(output, rows[i].expect), "'%s' printed '%.800s', not '%s'",
			  rows[i].arguments, output, rows[i].expect);
		free(output);
	}
	tear_down();
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

Test(control_cli, lists_all_pages)
{
	int status;
	char *text = doorbell("flows list", &status),
	     *json = doorbell("flows list --json", &status);
	json_t *value = json_loads(json, 0, NULL);

	cr_assert_eq(count(text, "\n"), 2501);
	cr_assert_eq(json_array_size(json_object_get(value, "flows")), 2500);
	json_decref(value);
	free(text);
	free(json);
	tear_down();
}

Test(control_cli, streams_a_line_of_json_per_flow)
{
	int status;
	char *text = doorbell("flows list --json --stream", &status), *line = text;

	for (size_t i = 0; i < 2500; i++) {
		size_t n = strcspn(line, "\n");
		json_t *row = json_loadb(line, n, 0, NULL);

		cr_assert_str_eq(json_string_value(json_object_get(row, "service")), "chat");
		json_decref(row);
		line += n + 1;
	}
	cr_assert_str_eq(line, "");
	free(text);
	tear_down();
}

Test(control_cli, top_is_the_head_of_the_sorted_list)
{
	int status;
	char *top = doorbell("flows top --by requests --limit 7", &status),
	     *list = doorbell("flows list --sort requests --limit 7", &status);

	cr_assert_str_eq(top, list);
	cr_assert_eq(count(top, "\n"), 8);
	free(top);
	free(list);
	tear_down();
}

Test(control_cli, limits_and_sorts)
{
	int status;
	char *text = doorbell("flows list --limit 1500 --json", &status);
	json_t *value = json_loads(text, 0, NULL);
	json_t *rows_found = json_object_get(value, "flows");

	cr_assert_eq(json_array_size(rows_found), 1500);
	json_decref(value);
	free(text);
	text = doorbell("flows list --sort requests --limit 3 --json", &status);
	value = json_loads(text, 0, NULL);
	rows_found = json_object_get(value, "flows");
	cr_assert_eq(json_array_size(rows_found), 3);
	for (size_t i = 0; i < 3; i++) {
		json_t *row = json_array_get(rows_found, i);

		cr_assert_eq(json_integer_value(json_object_get(row, "requests")),
			     2499 - (json_int_t)i);
	}
	json_decref(value);
	free(text);
	tear_down();
}

Test(control_cli, an_empty_list_is_still_a_list)
{
	int status;
	char *text = doorbell("flows list --json --service vision", &status);

	cr_assert_str_eq(text, "{\"flows\": []}\n");
	free(text);
	tear_down();
}

Test(control_cli, watching_gives_a_line_of_json_each_time_until_the_server_ends)
{
	FILE *pipe = popen(DOORBELL_CLI " --json --watch=1 flows count 2>&1", "r");
	char line[256];

	for (int i = 0; i < 2; i++) {
		cr_assert_not_null(fgets(line, sizeof(line), pipe));
		cr_assert_str_eq(line, "{\"count\": 2500}\n");
	}
	kill(server, SIGKILL);
	while (fgets(line, sizeof(line), pipe) && line[0] == '{')
		;
	cr_assert_not_null(strstr(line, "doorbell: lost doorbell-lb"), "%s", line);
	cr_assert_eq(WEXITSTATUS(pclose(pipe)), 1);
	tear_down();
}

Test(control_cli, names_every_command_for_the_shell)
{
	int status;
	char *text = doorbell("--commands", &status);

	cr_assert_not_null(strstr(text, "workers drain NAME --no-wait --absent --timeout=\n"));
	cr_assert_not_null(strstr(text, "stats - - --all --watch\n"));
	free(text);
	tear_down();
}

/* Returns the completions that bash offers for these words; the last one is being typed. */
static char *complete(const char *words)
{
	char command[1024], *line = calloc(1, 512);
	FILE *pipe;

	snprintf(command, sizeof(command),
		 "bash -c 'compopt() { :; }; . " DOORBELL_COMPLETION "; COMP_WORDS=(%s);"
		 "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _doorbell " DOORBELL_CLI ";"
		 "echo ${COMPREPLY[*]}'",
		 words);
	pipe = popen(command, "r");
	cr_assert_not_null(fgets(line, 512, pipe));
	pclose(pipe);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static const struct {
	const char *words, *offers;
} completions[] = {
	{"doorbell wor", "workers workers workers workers workers workers workers workers workers "
			 "workers workers workers"},
	{"doorbell --json workers \"\"",
	 "list show drain replace resume assign release table refused set settings forget"},
	{"doorbell workers show \"\"", "gpu0 gpu1 hung opt0"},
	{"doorbell services show v", "vision"},
	{"doorbell models show g", "gpt"},
	{"doorbell workers assign g", "gpu0 gpu1"},
	{"doorbell workers assign gpu0 ch", "chat"},
	{"doorbell workers release gpu0 chat vi", "vision"},
	{"doorbell flows list --worker = gpu", "gpu0 gpu1"},
	{"doorbell flows list --service \"\"", "chat vision frames"},
	{"doorbell flows list --so", "--socket= --sort="},
	{"doorbell flows \"\"", "list show top count"},
	{"doorbell flows top --by \"\"", "bytes packets requests"},
	{"doorbell flows count --min-idle 3 --by = s", "service state"},
	{"doorbell flows list --state udp-e", "udp-established"},
	{"doorbell flows top --m", "--min-bytes= --min-idle="},
	{"doorbell flows list --sort req", "requests"},
	{"doorbell workers drain gpu0 --no", "--no-wait"},
	{"doorbell config check /proc/self/mountinf", "/proc/self/mountinfo"},
	{"doorbell doctor \"\"", "lb agent"},
	{"doorbell doctor lb --con", "--config="},
	{"doorbell doctor agent --address 10.9.0.11/24 --l", "--lb= --lb-fabric-address="},
	{"doorbell doctor lb --config /proc/self/mountinf", "/proc/self/mountinfo"},
	{"doorbell doctor agent --mtu \"\"", ""},
	{"doorbell --socket /nonexistent workers show \"\"", ""},
};

Test(control_cli, the_shell_completes_words_options_and_names)
{
	for (size_t i = 0; i < sizeof(completions) / sizeof(completions[0]); i++) {
		char *offers = complete(completions[i].words);

		cr_expect_str_eq(offers, completions[i].offers, "'%s' completes to '%s'",
				 completions[i].words, offers);
		free(offers);
	}
	tear_down();
}

/* Reads from the terminal until <part> appears. */
static void see(int terminal, const char *part)
{
	char text[65536];
	size_t n = 0;

	text[0] = '\0';
	while (!strstr(text, part)) {
		ssize_t got = read(terminal, text + n, sizeof(text) - 1 - n);

		cr_assert_gt(got, 0, "no '%s' in %.2000s", part, text);
		n += (size_t)got;
		text[n] = '\0';
	}
}

Test(control_cli, top_on_a_terminal_paints_until_q_and_leaves_the_terminal_as_it_was)
{
	struct winsize size = {.ws_row = 40, .ws_col = 160};
	int terminal, status;
	pid_t pid = forkpty(&terminal, NULL, NULL, &size);

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		execl(DOORBELL_CLI, DOORBELL_CLI, "top", NULL);
		_exit(127);
	}
	see(terminal, "4 of 4 workers active");
	see(terminal, "now WORKER");
	cr_assert_eq(write(terminal, "s", 1), 1);
	see(terminal, "now STATE");
	cr_assert_eq(write(terminal, "r", 1), 1);
	see(terminal, "now STATE, reversed");
	cr_assert_eq(write(terminal, "q", 1), 1);
	see(terminal, "\033[?1049l");
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	close(terminal);
	tear_down();
}

/* The fields that doorbell-json(5) documents: their paths by command, and whether they were seen. */
struct documented {
	char commands[128], path[136];
	bool seen;
};

static struct documented documented[640];
static size_t n_documented;

/* "flows list, flows top" without the blanks behind the commas. */
static void read_commands(const char *title, char *out, size_t size)
{
	size_t n = 0;

	for (; *title != '\0' && *title != '\n' && n + 1 < size; title++)
		if (*title != ' ' || title[-1] != ',')
			out[n++] = *title;
	out[n] = '\0';
}

/* .Ss has the commands, .Sy PATH : where the fields below it are, .It Sy a field. */
static void read_reference(void)
{
	FILE *page = fopen(DOORBELL_JSON_MANUAL, "r");
	char line[512], commands[128] = "", at[64] = "", name[64];

	cr_assert_not_null(page);
	n_documented = 0;
	while (fgets(line, sizeof(line), page) != NULL) {
		if (strncmp(line, ".Ss ", 4) == 0) {
			read_commands(line + 4, commands, sizeof(commands));
			at[0] = '\0';
		}
		if (*commands && sscanf(line, ".Sy %63s :", name) == 1)
			strcpy(at, name);
		if (*commands && sscanf(line, ".It Sy %63s", name) == 1) {
			struct documented *d = &documented[n_documented++];

			cr_assert_lt(n_documented, 640);
			strcpy(d->commands, commands);
			snprintf(d->path, sizeof(d->path), "%s%s%s", at, *at ? "." : "", name);
			d->seen = false;
		}
	}
	fclose(page);
	cr_assert_gt(n_documented, 200);
}

/* True if <command> is one of <list>, such as "a b,c d". */
static bool is_one_of(const char *command, const char *list)
{
	size_t n = strlen(command);

	for (const char *at = list; (at = strstr(at, command)); at++)
		if ((at == list || at[-1] == ',') && (at[n] == '\0' || at[n] == ','))
			return true;
	return false;
}

static struct documented *find_field(const char *command, const char *path)
{
	for (size_t i = 0; i < n_documented; i++)
		if (is_one_of(command, documented[i].commands) &&
		    strcmp(documented[i].path, path) == 0)
			return &documented[i];
	return NULL;
}

/* True if members of the object at <path> are names of things: the reference has <> for those. */
static bool has_names(const char *path)
{
	static const char *const maps[] = {"reasons",
					   "lcores[].stages",
					   "lcores[].drops",
					   "notices_by_code",
					   "services[].latency",
					   "worker.batches",
					   "worker.batch_run_us"};

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		if (strcmp(path, maps[i]) == 0)
			return true;
	return false;
}

static void look_up(const char *command, const char *path, const json_t *value)
{
	char inner[128];
	const char *name;
	json_t *member;
	size_t i;

	if (json_is_array(value)) {
		snprintf(inner, sizeof(inner), "%s[]", path);
		json_array_foreach (value, i, member)
			look_up(command, inner, member);
		return;
	}
	if (!json_is_object(value))
		return;
	json_object_foreach ((json_t *)value, name, member) {
		bool named = has_names(path);

		snprintf(inner, sizeof(inner), "%s%s%s", path, *path ? "." : "",
			 named ? "<>" : name);
		if (!named) {
			struct documented *d = find_field(command, inner);

			cr_expect(
				d,
				"'%s --json' prints %s, of which doorbell-json(5) says nothing",
				command, inner);
			if (d)
				d->seen = true;
		}
		look_up(command, inner, member);
	}
}

/* Each command, and options that make it print more. */
static const struct {
	const char *command, *arguments;
} printing[] = {
	{"flows list", "--limit 3"},
	{"flows show", "10.0.9.194:3522"},
	{"flows top", "--limit 3"},
	{"flows count", "--by worker"},
	{"workers list", ""},
	{"workers show", "gpu0"},
	{"workers drain", "--no-wait gpu0"},
	{"workers replace", "gpu0 gpu1"},
	{"workers settings", ""},
	{"workers forget", "gpu0"},
	{"workers resume", "gpu0"},
	{"workers table", ""},
	{"workers assign", "gpu1 chat"},
	{"workers release", "gpu1 chat"},
	{"workers set", "gpu0 weight=7"},
	{"workers refused", ""},
	{"services list", ""},
	{"services show", "chat"},
	{"models list", ""},
	{"models show", "gpt"},
	{"config check", SAMPLE_CONFIG},
	{"config diff", SAMPLE_CONFIG},
	{"config apply", ""},
	{"trace", "--flow 10.0.0.2:7"},
	{"capture", "--port clients --file $DOORBELL_SOCKET.pcapng"},
	{"log show", ""},
	{"log level", "notice"},
	{"stats", "--all"},
	{"top", ""},
	{"bench", "--to 127.0.0.1:%u --rate 500 --duration 1 --quiet"},
	{"size", "--rate 100000 --each-us 10"},
	{"size reads", "--tags 140 --read-bytes 128 --rtt-us 6.8"},
	{"size calls", "--rtt-us 10 --gbps 100 --epsilon 9 " TRACE_FILE},
	{"version", ""},
	{"doctor", "--root /usr/share"},
	{"doctor lb", "--config /nonexistent.yaml"},
	{"doctor agent", "--engine verbs --device none0 --root /usr/share"},
};

/* Starts an echo service in a process of its own. Returns its port. */
static unsigned int start_echo(pid_t *pid)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char datagram[2048];

	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	*pid = fork();
	if (*pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			struct sockaddr_in from;
			socklen_t n = sizeof(from);
			ssize_t got = recvfrom(fd, datagram, sizeof(datagram), 0,
					       (struct sockaddr *)&from, &n);

			sendto(fd, datagram, got > 0 ? (size_t)got : 0, 0, (struct sockaddr *)&from,
			       n);
		}
	}
	close(fd);
	return ntohs(address.sin_port);
}

/* Registers an agent that leaves out most fields. */
static void be_refused(void)
{
	int fd = fixture_connect_agent(&f);
	char byte;

	fixture_send(fd, "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"agent.register\", "
			 "\"params\": {\"name\": \"gpu9\", \"model\": \"chat\"}}");
	cr_assert_eq(read(fd, &byte, 1), 1);
	close(fd);
}

Test(control_cli, who_was_refused_is_seen)
{
	char *text;
	int status;

	be_refused();
	be_refused();
	text = doorbell("workers refused", &status);
	cr_expect_eq(status, 0);
	cr_expect_not_null(strstr(text, " 2  127.0.0.1  gpu9  chat   params.version: "), "%s", text);
	free(text);
	tear_down();
}

Test(control_cli, every_field_that_is_printed_is_documented_and_the_other_way_round)
{
	pid_t echo;
	unsigned int port = start_echo(&echo);
	char file[128];

	be_refused();
	read_reference();
	for (size_t i = 0; i < sizeof(printing) / sizeof(printing[0]); i++) {
		const char *arguments = printing[i].arguments, *hole = strstr(arguments, "%u");
		char line[512], number[16] = "";
		int status;
		char *text;
		json_t *value;

		if (hole)
			snprintf(number, sizeof(number), "%u", port);
		snprintf(line, sizeof(line), "%s %.*s%s%s --json", printing[i].command,
			 hole ? (int)(hole - arguments) : (int)strlen(arguments), arguments, number,
			 hole ? hole + 2 : "");
		text = doorbell(line, &status);
		/* Commands that print a line per object: the first object. */
		value = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
		cr_assert_not_null(value, "'%s' printed no JSON: %.300s", line, text);
		look_up(printing[i].command, "", value);
		json_decref(value);
		free(text);
	}
	for (size_t i = 0; i < n_documented; i++)
		cr_expect(documented[i].seen, "%s of '%s' is documented, and never printed",
			  documented[i].path, documented[i].commands);
	kill(echo, SIGKILL);
	waitpid(echo, NULL, 0);
	snprintf(file, sizeof(file), "%s.pcapng", f.socket);
	cr_expect_eq(unlink(file), 0);
	tear_down();
}

/* deploy/doorbell.1 */
static char *read_manual(void)
{
	FILE *file = fopen(DOORBELL_MANUAL, "r");
	char *text = calloc(1, 1 << 18);

	cr_assert_not_null(file);
	cr_assert_gt(fread(text, 1, (1 << 18) - 1, file), 0);
	fclose(file);
	return text;
}

/* True if "Fl -option" follows <at> as a whole word. */
static bool tells_of(const char *at, const char *option, size_t n)
{
	char item[64];

	snprintf(item, sizeof(item), "Fl -%.*s", (int)n, option);
	while ((at = strstr(at, item))) {
		at += strlen(item);
		if (strchr(" \n", *at))
			return true;
	}
	return false;
}

Test(control_cli, every_command_and_option_is_in_the_manual)
{
	int status;
	char *commands = doorbell("--commands", &status), *manual = read_manual(), *save = NULL;

	read_reference();
	for (char *line = strtok_r(commands, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char object[32], verb[32], words[72], item[96];
		bool fields = false;
		const char *at;

		cr_assert_eq(sscanf(line, "%31s %31s", object, verb), 2);
		snprintf(words, sizeof(words), "%s%s%s", object, *verb == '-' ? "" : " ",
			 *verb == '-' ? "" : verb);
		for (size_t i = 0; i < n_documented; i++)
			fields |= is_one_of(words, documented[i].commands);
		cr_expect(fields, "doorbell-json(5) has no fields of '%s'", words);
		snprintf(item, sizeof(item), "\n.It Cm %s", words);
		at = strstr(manual, item);
		cr_expect(at, "'%s' is not in the manual", words);
		for (char *option = strstr(line, " --"); at && option;
		     option = strstr(option + 1, " --")) {
			size_t n = strcspn(option + 3, " =");

			cr_expect(strncmp(option, " --watch", 8) == 0 ||
					  strncmp(option, " --json", 7) == 0 ||
					  tells_of(at, option + 3, n),
				  "the manual says nothing of%.*s of '%s'", (int)n + 3, option,
				  words);
		}
	}
	free(commands);
	free(manual);
	tear_down();
}
