/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of checks. Each check runs in a child process, so that a crash or a hang in a driver's
 * library, or in the kernel behind a file, does not reach the doctor.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/doctor/check.h"
#include "runtime/clock.h"

#define BOTH DOCTOR_MACHINE
/* The check needs a configuration and says nothing of a machine alone. */
#define ONLY DOCTOR_NOT_ALONE
#define PLAN (BOTH | ONLY)

const struct doctor_row doctor_rows[] = {
	{"configuration", check_configuration, PLAN},
	{"privileges", check_privileges, BOTH},
	{"hugepages", check_hugepages, BOTH},
	{"hugepages of NUMA nodes", check_hugepages_node, PLAN},
	{"memory", check_memory, PLAN},
	{"locked memory", check_memlock, BOTH},
	{"TCP connections", check_tcp, DOCTOR_LB | ONLY},
	{"CPU flags", check_cpu_flags, BOTH},
	{"CPU flags for ICRC", check_cpu_icrc, BOTH},
	{"clock", check_clock, BOTH},
	{"lcores", check_lcores, DOCTOR_LB | ONLY},
	{"lcores isolated", check_lcores_isolated, DOCTOR_LB | ONLY},
	{"lcores on own cores", check_lcores_smt, DOCTOR_LB | ONLY},
	{"lcores near ports", check_lcores_node, DOCTOR_LB | ONLY},
	{"IOMMU", check_iommu, BOTH},
	{"port device", check_port_device, PLAN},
	{"port driver", check_port_driver, PLAN},
	{"port link", check_port_link, PLAN, "the NIC's driver hangs; dmesg tells more"},
	{"port MTU", check_port_mtu, PLAN},
	{"port buffers", check_port_frames, PLAN},
	{"port queues", check_port_queues, PLAN},
	{"addresses", check_addresses, PLAN},
	{"proof of agents", check_trust, DOCTOR_LB | ONLY},
	{"certificates", check_certificates, DOCTOR_LB | ONLY},
	{"operators' settings", check_state_file, DOCTOR_LB | ONLY,
	 "the disk that control.state_file is on does not answer; set another"},
	{"RDMA modules", check_rdma_modules, BOTH},
	{"RDMA device", check_rdma_device, BOTH},
	{"RDMA port", check_rdma_port, BOTH},
	{"RDMA GID", check_rdma_gid, BOTH},
	{"RDMA P_Key", check_rdma_pkey, BOTH},
	{"RDMA MTU", check_rdma_mtu, BOTH, "the NIC's driver hangs; dmesg tells more"},
	{"RoCE port", check_roce_port, PLAN},
	{"GPU driver", check_gpu_driver, DOCTOR_AGENT},
	{"GPU memory for NICs", check_gpu_memory, DOCTOR_AGENT},
	{"GPU doorbells", check_gpu_doorbell, DOCTOR_AGENT},
	{"GPUs", check_gpus, DOCTOR_AGENT,
	 "keep the driver up between programs: systemctl enable --now nvidia-persistenced"},
	{"GPU division", check_gpu_mig, DOCTOR_AGENT, "nvidia-smi hangs, too? dmesg tells more"},
	{"GPU sharing", check_gpu_mps, DOCTOR_AGENT},
	{"GPU's NUMA node", check_gpu_node, DOCTOR_AGENT},
	{"GPU memory", check_gpu_budget, DOCTOR_AGENT, "nvidia-smi hangs, too? dmesg tells more"},
	{"port for agents", check_agents_port, DOCTOR_LB},
	{"control socket", check_control, DOCTOR_LB, "restart doorbell-lb: it does not answer"},
	{"load balancer", check_lb_reachable, DOCTOR_AGENT | ONLY,
	 "the name is not found in time: --lb with an address, or mend /etc/resolv.conf"},
	{"fabric MTU", check_fabric_mtu, DOCTOR_AGENT | ONLY},
};

const unsigned int doctor_n_rows = sizeof(doctor_rows) / sizeof(doctor_rows[0]);

/*
 * The child's work: run the check, write the findings, and skip exit()'s handlers, which are the
 * parent's.
 */
static void look(struct doctor *d, const struct doctor_row *row, int to)
{
	const char *bytes = (const char *)d->finding;
	size_t left;

	signal(SIGPIPE, SIG_IGN);
	d->n = 0;
	row->check(d);
	left = d->n * sizeof(d->finding[0]);
	while (left > 0) {
		ssize_t n = write(to, bytes, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		bytes += n;
		left -= (size_t)n;
	}
	_exit(0);
}

static uint32_t limit_ms(const struct doctor *d)
{
	return d->limit_ms != 0 ? d->limit_ms : DOCTOR_LIMIT_MS;
}

/* Read findings until the end of the pipe. False when the time was over first. */
static bool collect(struct doctor *d, int from, size_t *size)
{
	uint64_t end = clock_now_ms() + limit_ms(d);

	for (;;) {
		struct pollfd p = {.fd = from, .events = POLLIN};
		long left = (long)(end - clock_now_ms());
		ssize_t n;

		if (left <= 0)
			return false;
		if (poll(&p, 1, (int)left) != 1)
			continue;
		n = read(from, (char *)d->finding + *size, sizeof(d->finding) - *size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return true;
		*size += (size_t)n;
	}
}

/*
 * Wait for the child a moment at most: one that hangs in the kernel cannot be killed, and is left
 * to init.
 */
static int doctor_wait_child(pid_t child)
{
	const struct timespec moment = {.tv_nsec = 2000000};
	int status = 0;

	for (int i = 0; i < 50; i++) {
		pid_t got = waitpid(child, &status, WNOHANG);

		if (got == child)
			return status;
		if (got < 0 && errno != EINTR)
			return 0;
		nanosleep(&moment, NULL);
	}
	return 0;
}

/* End every text with a zero: the child that wrote it may have corrupted its memory. */
static void terminate(struct doctor *d)
{
	for (unsigned int i = 0; i < d->n; i++) {
		struct doctor_finding *f = &d->finding[i];

		f->found[sizeof(f->found) - 1] = f->fix[sizeof(f->fix) - 1] = '\0';
		if ((unsigned int)f->status > DOCTOR_PROBLEM)
			f->status = DOCTOR_PROBLEM;
	}
}

void doctor_run_row(struct doctor *d, const struct doctor_row *row)
{
	size_t size = 0;
	int pipe_fd[2], status;
	bool ended;
	pid_t child;

	d->n = 0;
	child = pipe2(pipe_fd, O_CLOEXEC) != 0 ? -1 : fork();
	if (child < 0) { /* open descriptors, if any, are closed at the program's end */
		doctor_report(d, DOCTOR_WARNING, "cannot look: %s", strerror(errno));
		doctor_fix(d, "raise ulimit -u and ulimit -n");
		return;
	}
	if (child == 0)
		look(d, row, pipe_fd[1]);
	close(pipe_fd[1]);
	ended = collect(d, pipe_fd[0], &size);
	close(pipe_fd[0]);
	if (!ended)
		kill(child, SIGKILL);
	status = doctor_wait_child(child);
	d->n = (unsigned int)(size / sizeof(d->finding[0]));
	terminate(d);
	if (!ended) {
		doctor_report(d, DOCTOR_WARNING, "no answer within %u s", limit_ms(d) / 1000);
		doctor_fix(d, "%s",
			   row->slow != NULL ? row->slow : "something hangs; dmesg tells more");
	} else if (status != 0) {
		doctor_report(d, DOCTOR_WARNING, "the check itself ended with %s %d",
			      WIFSIGNALED(status) ? "signal" : "status",
			      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		doctor_fix(d, "report it, with what doorbell doctor --json says");
	} else if (d->n == 0) {
		doctor_report(d, DOCTOR_NA, "nothing to look at");
	}
}

static bool fits(const struct doctor_row *row, enum doctor_side side)
{
	return (row->sides & side) != 0 &&
	       !(side == DOCTOR_MACHINE && (row->sides & DOCTOR_NOT_ALONE));
}

int doctor_run(const struct doctor_question *question, doctor_say *say, void *context)
{
	struct doctor *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return -ENOMEM;
	d->root = question->root != NULL ? question->root : "";
	plan_make(&d->plan, question);
	for (unsigned int i = 0; i < doctor_n_rows; i++) {
		if (!fits(&doctor_rows[i], question->side))
			continue;
		doctor_run_row(d, &doctor_rows[i]);
		for (unsigned int k = 0; k < d->n; k++)
			say(doctor_rows[i].name, &d->finding[k], context);
	}
	free(d);
	return 0;
}
