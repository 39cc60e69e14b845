/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of an operator's view of many flows: full flow tables behind a real control server in a
 * child process, and the doorbell program asking it. Per command: time, the memory that server and
 * program needed for it, and the longest that the server kept its other work waiting.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <rte_common.h>

#include "../../unit/control_fake_lb.h"
#include "runtime/option_table.h"
#include "server.h"

#define FLOWS_DEFAULT 10000000u
#define LCORES        2u
#define WORKERS       16u
#define PROBE_US      1000

/* How long the server's thread was busy between two turns of a timer, us. */
struct probe {
	uint64_t last_cpu_us, last_wall_us;
	uint64_t busy_us, late_us; /* most: on the CPU; by the clock, beyond the timer's period */
	uint64_t turns, over_5ms;
};

static const char *const commands_default[] = {
	"flows count",
	"flows count --by service",
	"flows count --by worker --min-bytes 1000000",
	"flows top --by bytes",
	"flows top --by packets --limit 1000",
	"flows list --client 10.0.0.0/24",
	"flows list",
	"flows list --json",
	"flows list --json --stream",
};

static uint64_t clock_us(clockid_t which)
{
	struct timespec now;

	clock_gettime(which, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void on_probe(evutil_socket_t fd, short what, void *context)
{
	struct probe *probe = context;
	uint64_t cpu = clock_us(CLOCK_THREAD_CPUTIME_ID), wall = clock_us(CLOCK_MONOTONIC);
	uint64_t busy = cpu - probe->last_cpu_us, late = wall - probe->last_wall_us;

	late = late > PROBE_US ? late - PROBE_US : 0;
	if (probe->last_wall_us) {
		probe->busy_us = busy > probe->busy_us ? busy : probe->busy_us;
		probe->late_us = late > probe->late_us ? late : probe->late_us;
		probe->over_5ms += late > 5000;
		probe->turns++;
	}
	probe->last_cpu_us = cpu;
	probe->last_wall_us = wall;
}

/* Flows of different sizes, so that there are ranks. */
static void fill(struct lb *lb, uint32_t flows)
{
	struct worker *worker[WORKERS];
	char name[16];

	for (unsigned int i = 0; i < WORKERS; i++) {
		snprintf(name, sizeof(name), "gpu%u", i);
		worker[i] = fake_lb_worker(lb, name);
	}
	for (uint32_t n = 0; n < flows; n++) {
		uint64_t random = (n + 1) * 0x9e3779b97f4a7c15;
		struct flow *flow =
			fake_lb_flow(lb, n % LCORES, n, random >> 63, worker[random >> 40 & 15]);

		flow->bytes_in = random >> 44;
		flow->packets_in_low = (uint32_t)(random >> 54);
		flow->requests_low = (uint32_t)(random >> 55);
	}
}

/* Timers of a millisecond: libevent's usual clock moves in steps of four. */
static struct event_base *precise_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

static void serve(const char *socket, uint32_t flows, struct probe *probe, int ready)
{
	const struct timeval period = {.tv_usec = PROBE_US};
	struct event_base *base = precise_base();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_probe, probe);
	char error[256];
	struct lb *lb;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fake_eal_sized(200 + flows / 1000000 * 180);
	lb = fake_lb_create_sized((flows + LCORES - 1) / LCORES);
	snprintf(fake_lb_config(lb)->control_socket, sizeof(fake_lb_config(lb)->control_socket),
		 "%s", socket);
	fill(lb, flows);
	if (!control_server_create(lb, base, error, sizeof(error))) {
		fprintf(stderr, "%s\n", error);
		exit(EXIT_FAILURE);
	}
	event_add(timer, &period);
	if (write(ready, "", 1) != 1)
		exit(EXIT_FAILURE);
	event_base_dispatch(base);
	exit(EXIT_FAILURE);
}

/* A line "<field>: <kB> kB" of /proc/<pid>/status, in KiB. */
static long memory_kib(pid_t pid, const char *field)
{
	char path[64], line[256];
	long kib = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	while (file && kib < 0 && fgets(line, sizeof(line), file))
		if (strncmp(line, field, strlen(field)) == 0)
			kib = strtol(line + strlen(field) + 1, NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

/* The high-water mark starts again from what is resident now. */
static void memory_mark(pid_t pid)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/clear_refs", (int)pid);
	file = fopen(path, "w");
	if (file) {
		fputs("5", file);
		fclose(file);
	}
}

/* CPU time of another process, s. */
static double cpu_seconds(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) == 0 ? (double)clock_us(clock) / 1e6 : 0;
}

static double rusage_seconds(const struct rusage *usage)
{
	return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
	       (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

/* Runs it in a shell, for its words and redirections. Returns the resources used and the exit
 * status. */
static int run(const char *command, struct rusage *usage)
{
	char line[512];
	int status;
	pid_t pid;

	snprintf(line, sizeof(line), "exec " DOORBELL_CLI " %s >/dev/null", command);
	pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	if (wait4(pid, &status, 0, usage) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int measure(const char *command, pid_t server, struct probe *probe)
{
	struct rusage usage;
	uint64_t start, us;
	double cpu;
	long before;
	int status;

	memory_mark(server);
	before = memory_kib(server, "VmRSS");
	probe->busy_us = probe->late_us = probe->turns = probe->over_5ms = 0;
	cpu = cpu_seconds(server);
	start = clock_us(CLOCK_MONOTONIC);
	status = run(command, &usage);
	us = clock_us(CLOCK_MONOTONIC) - start;
	printf("%-44s %7.2f s %7.2f %7.2f  %+7ld %7ld  %6.1f %6.1f  %lu/%lu\n", command,
	       (double)us / 1e6, cpu_seconds(server) - cpu, rusage_seconds(&usage),
	       memory_kib(server, "VmHWM") - before, usage.ru_maxrss, (double)probe->busy_us / 1e3,
	       (double)probe->late_us / 1e3, (unsigned long)probe->over_5ms,
	       (unsigned long)probe->turns);
	fflush(stdout);
	return status;
}

static const struct option_row rows[] = {
	{"flows", OPTION_NUMBER, OPTION_WHOLE(uint32_t), NULL, "in the tables", 1},
	{0},
};

static const struct option_table table = {
	.program = "bench-flows",
	.usage = "bench-flows [--flows N] [COMMAND...]\n"
		 "COMMAND: what to give to doorbell, in one word: \"flows list --limit 10\"",
	.rows = rows,
	.operands = true,
};

int main(int argc, char **argv)
{
	char folder[] = "/tmp/doorbell-bench-XXXXXX", socket[64], byte;
	uint32_t flows = FLOWS_DEFAULT;
	struct probe *probe;
	int ready[2], failed = 0, ret = options_parse(&table, argc, argv, &flows, NULL);
	pid_t server;

	if (ret != 0)
		return ret > 0 ? EXIT_SUCCESS : 2;
	probe = mmap(NULL, sizeof(*probe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (probe == MAP_FAILED || !mkdtemp(folder) || pipe(ready) != 0) {
		perror("bench-flows");
		return EXIT_FAILURE;
	}
	snprintf(socket, sizeof(socket), "%s/control.sock", folder);
	setenv("DOORBELL_SOCKET", socket, 1);
	server = fork();
	if (server == 0)
		serve(socket, flows, probe, ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) == 1) {
		printf("%u flows, server %ld MiB\n", flows, memory_kib(server, "VmRSS") / 1024);
		printf("%-44s %9s %15s  %15s  %13s  %s\n", "", "", "CPU s", "memory KiB", "most ms",
		       "probes");
		printf("%-44s %9s %7s %7s  %7s %7s  %6s %6s  %s\n", "command", "elapsed", "server",
		       "program", "server", "program", "busy", "late", "over 5 ms");
		for (char **command = argv + 1; *command != NULL; command++)
			failed |= measure(*command, server, probe);
		for (size_t i = 0; argv[1] == NULL && i < RTE_DIM(commands_default); i++)
			failed |= measure(commands_default[i], server, probe);
	} else {
		failed = 1;
	}
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	unlink(socket);
	rmdir(folder);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
