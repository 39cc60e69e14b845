/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPUs of the data-plane cores. */
#include <stdio.h>
#include <string.h>

#include "cli/doctor/check.h"

#define CPU "/sys/devices/system/cpu"

/* Report that there are no lcores, and return true, if so. */
static bool no_lcores(struct doctor *d)
{
	if (d->plan.n_cpus == 0)
		doctor_report(d, DOCTOR_NA, "%s",
			      d->plan.side == DOCTOR_AGENT
				      ? "the agent's threads are not tied to CPUs"
				      : "no lcores are configured");
	return d->plan.n_cpus == 0;
}

/* List the configured CPUs for which <wanted> is true: "1,2". */
static const char *cpus_text(const struct doctor *d, const bool *wanted, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < d->plan.n_cpus && at < size; i++)
		if (wanted == NULL || wanted[i])
			at += snprintf(text + at, size - at, "%s%u", at ? "," : "", d->plan.cpu[i]);
	return text;
}

static bool has(const struct doctor_cpus *cpus, unsigned int cpu)
{
	return cpu < DOCTOR_CPUS && cpus->has[cpu];
}

void check_lcores(struct doctor *d)
{
	char status[16384];
	struct doctor_cpus online, allowed;
	char text[512];
	const char *line;

	if (no_lcores(d))
		return;
	doctor_read(d, text, sizeof(text), CPU "/online");
	doctor_cpus_parse(&online, text);
	doctor_read(d, status, sizeof(status), "/proc/self/status");
	line = doctor_line(status, "Cpus_allowed_list:");
	if (online.n == 0 || line == NULL || !doctor_cpus_parse(&allowed, line)) {
		doctor_report(d, DOCTOR_WARNING, "the kernel does not tell which CPUs there are");
		doctor_fix(d, "look yourself: lscpu -e");
		return;
	}
	for (unsigned int i = 0; i < d->plan.n_cpus; i++) {
		unsigned int cpu = d->plan.cpu[i];

		if (!has(&online, cpu)) {
			doctor_report(d, DOCTOR_PROBLEM, "lcores[%u]: CPU %u is not there", i, cpu);
			doctor_fix(d, "lcores: choose from %s", text);
		} else if (!has(&allowed, cpu)) {
			doctor_report(d, DOCTOR_PROBLEM,
				      "lcores[%u]: CPU %u is not allowed for this process", i, cpu);
			doctor_fix(d,
				   "lcores: choose from %.*s; or change AllowedCPUs= or the "
				   "cpuset of the container",
				   (int)strcspn(line, "\n"), line);
		}
	}
	if (d->n == 0 && d->plan.n_cpus >= allowed.n) {
		doctor_report(d, DOCTOR_WARNING, "lcores take all %u CPUs", allowed.n);
		doctor_fix(d, "leave one to the control thread and the kernel: take one out of "
			      "lcores");
	} else if (d->n == 0) {
		doctor_report(d, DOCTOR_OK, "%s, of %s", cpus_text(d, NULL, text, sizeof(text)),
			      "those that are online and allowed");
	}
}

void check_lcores_isolated(struct doctor *d)
{
	struct doctor_cpus isolated, tickless;
	bool without[LB_LCORES_MAX];
	char text[512], list[512];
	unsigned int n = 0;

	if (no_lcores(d))
		return;
	doctor_read(d, text, sizeof(text), CPU "/isolated");
	doctor_cpus_parse(&isolated, text);
	doctor_read(d, text, sizeof(text), CPU "/nohz_full");
	doctor_cpus_parse(&tickless, strcmp(text, "(null)") == 0 ? "" : text);
	for (unsigned int i = 0; i < d->plan.n_cpus; i++) {
		without[i] = !has(&isolated, d->plan.cpu[i]) || !has(&tickless, d->plan.cpu[i]);
		n += without[i];
	}
	cpus_text(d, NULL, list, sizeof(list));
	if (n == 0) {
		doctor_report(d, DOCTOR_OK, "%s: isolated and without a tick", list);
		return;
	}
	cpus_text(d, without, text, sizeof(text));
	doctor_report(d, DOCTOR_WARNING, "CPU %s shared with other tasks or the timer tick", text);
	doctor_fix(d, "boot with isolcpus=managed_irq,domain,%s nohz_full=%s rcu_nocbs=%s", list,
		   list, list);
}

void check_lcores_smt(struct doctor *d)
{
	struct doctor_cpus siblings;
	char text[256];

	if (no_lcores(d))
		return;
	for (unsigned int i = 0; i < d->plan.n_cpus; i++) {
		doctor_read(d, text, sizeof(text), CPU "/cpu%u/topology/thread_siblings_list",
			    d->plan.cpu[i]);
		doctor_cpus_parse(&siblings, text);
		for (unsigned int k = i + 1; k < d->plan.n_cpus; k++) {
			if (!has(&siblings, d->plan.cpu[k]))
				continue;
			doctor_report(d, DOCTOR_WARNING,
				      "lcores[%u] and lcores[%u]: CPUs %u and %u "
				      "are two threads of one core",
				      i, k, d->plan.cpu[i], d->plan.cpu[k]);
			doctor_fix(d,
				   "lcores: put a CPU of another core for %u; lscpu -e shows "
				   "cores",
				   d->plan.cpu[k]);
		}
	}
	if (d->n == 0)
		doctor_report(d, DOCTOR_OK, "no two are threads of one core");
}

void check_lcores_node(struct doctor *d)
{
	bool any = false;

	if (no_lcores(d))
		return;
	for (unsigned int p = 0; p < d->plan.n_ports; p++) {
		const struct plan_port *port = &d->plan.port[p];
		int node = doctor_port_node(d, port);
		bool away[LB_LCORES_MAX];
		unsigned int n = 0;
		char list[512], near[256];

		if (node < 0)
			continue;
		any = true;
		for (unsigned int i = 0; i < d->plan.n_cpus; i++) {
			away[i] = !doctor_exists(d, CPU "/cpu%u/node%d", d->plan.cpu[i], node);
			n += away[i];
		}
		if (n == 0)
			continue;
		doctor_read(d, near, sizeof(near), "/sys/devices/system/node/node%d/cpulist", node);
		doctor_report(d, DOCTOR_WARNING, "%s is on NUMA node %d, CPU %s is not", port->name,
			      node, cpus_text(d, away, list, sizeof(list)));
		doctor_fix(d, "lcores: choose from CPUs %s", near[0] ? near : "of that node");
	}
	if (!any)
		doctor_report(d, DOCTOR_NA, "no port is tied to a NUMA node");
	else if (d->n == 0)
		doctor_report(d, DOCTOR_OK, "lcores and ports are on one NUMA node");
}
