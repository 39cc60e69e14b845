/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facade of doctor/: the table of checks (doctor.c), findings (report.c), reads of the system
 * (system.c), facts that several checks use (facts.c), and the checks of all check_*.c.
 * Private to this folder and its unit tests.
 */
#ifndef DOCTOR_CHECK_H
#define DOCTOR_CHECK_H

#include "cli/doctor/plan.h"

struct doctor {
	const char *root;
	uint32_t limit_ms; /* of one check; 0: DOCTOR_LIMIT_MS */
	const char *nvml;  /* a library in its place, for tests; NULL: NVML_LIBRARY */
	struct doctor_plan plan;
	unsigned int n;
	struct doctor_finding finding[DOCTOR_FINDINGS_MAX];
};

typedef void doctor_check(struct doctor *d);

/* A bit of <sides>: the check needs a configured program, and is skipped when none was named. */
#define DOCTOR_NOT_ALONE 4u

/* One row per check. */
struct doctor_row {
	const char *name;
	doctor_check *check;
	unsigned int sides; /* bits of enum doctor_side, and DOCTOR_NOT_ALONE */
	const char *slow;   /* advice when the check does not end in time */
};

extern const struct doctor_row doctor_rows[];
extern const unsigned int doctor_n_rows;

#define DOCTOR_LIMIT_MS 5000 /* long, as emulated or cold machines are slow */

/* Run one check in a process of its own; <d> then has its findings. */
void doctor_run_row(struct doctor *d, const struct doctor_row *row);

/* --- report.c ------------------------------------------------------------------------------- */

/* Add a finding; control characters, as from files, are removed. */
void doctor_report(struct doctor *d, enum doctor_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Add the remedy of the last finding. */
void doctor_fix(struct doctor *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- system.c: reads, all of them bounded, below <root> --------------------------------------- */

/*
 * Read the beginning of a file as text without trailing blanks; zeroes become blanks. Returns the
 * length, or -errno with an empty text.
 */
int doctor_read(const struct doctor *d, char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Read a number, decimal or with 0x. Returns 0, -errno, or -EINVAL when the file has none. */
int doctor_read_number(const struct doctor *d, long long *number, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool doctor_exists(const struct doctor *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Read the last part of a symbolic link's target; the text is empty when it is no link. */
void doctor_read_link(const struct doctor *d, char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#define DOCTOR_NAME_MAX  64
#define DOCTOR_NAMES_MAX 256

/* Names in a folder, sorted. Names that are too long are left out. */
struct doctor_names {
	unsigned int n;
	char name[DOCTOR_NAMES_MAX][DOCTOR_NAME_MAX];
};
void doctor_list(const struct doctor *d, struct doctor_names *names, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* List the first names in one text: "eth0, eth1, ..."; "none" when there are none. */
const char *doctor_names_text(const struct doctor_names *names, char *text, size_t size);

/* True when <word> is in <text>, whose words are separated by blanks and commas. */
bool doctor_has_word(const char *text, const char *word);
/* The text behind <label>, on a line that begins with it, or NULL. */
const char *doctor_line(const char *text, const char *label);

#define DOCTOR_CPUS 1024

/* A set of CPUs, as in "0-3,8". */
struct doctor_cpus {
	bool has[DOCTOR_CPUS];
	unsigned int n;
};
/* Returns false when the text is no such list; <cpus> then has the CPUs before the fault. */
bool doctor_cpus_parse(struct doctor_cpus *cpus, const char *text);

/* True when this process has the capability with this number. */
bool doctor_capable(const struct doctor *d, unsigned int capability);
#define DOCTOR_CAP_NET_ADMIN 12
#define DOCTOR_CAP_NET_RAW   13
#define DOCTOR_CAP_IPC_LOCK  14

/* The NUMA node of a device's folder, or -1. */
int doctor_port_node(const struct doctor *d, const struct plan_port *port);
/*
 * Find the kernel interface that the port's packets pass, or that shares the port's hardware. The
 * text is empty when there is none.
 */
void doctor_port_interface(const struct doctor *d, const struct plan_port *port, char *name,
			   size_t size);
/* Judge each planned port, or report that there is none. */
void doctor_each_port(struct doctor *d,
		      void (*judge)(struct doctor *d, const struct plan_port *port));
/* True when the planned program already runs, and so has its resources. */
bool doctor_is_running(const struct doctor *d);

/* --- the checks, by file ---------------------------------------------------------------------- */

doctor_check check_configuration, check_privileges;                              /* check_self.c */
doctor_check check_tcp;                                                          /* _tcp */
doctor_check check_hugepages, check_hugepages_node, check_memory, check_memlock; /* _memory */
doctor_check check_cpu_flags, check_cpu_icrc, check_clock;                       /* _cpu */
doctor_check check_lcores, check_lcores_isolated, check_lcores_smt, check_lcores_node; /* _lcores */
doctor_check check_port_device, check_port_driver, check_iommu, check_port_link;       /* _nic */
doctor_check check_port_mtu, check_port_frames, check_port_queues;                     /* _port */
doctor_check check_rdma_modules, check_rdma_device, check_rdma_port, check_rdma_gid,
	check_rdma_pkey, check_rdma_mtu;                                         /* _rdma */
doctor_check check_gpu_driver, check_gpu_memory, check_gpu_doorbell, check_gpus; /* _gpu */
doctor_check check_gpu_mig, check_gpu_mps, check_gpu_node, check_gpu_budget;     /* _gpu_sharing */
doctor_check check_addresses, check_roce_port, check_agents_port;                /* _net */
doctor_check check_trust;                                                        /* _trust */
doctor_check check_certificates;                                                 /* _certificates */
doctor_check check_state_file;                                                   /* _state */
doctor_check check_control, check_lb_reachable, check_fabric_mtu;                /* _reach */

#endif
