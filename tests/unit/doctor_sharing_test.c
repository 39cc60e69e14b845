/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUs that are shared: MIG and memory as a stand-in for NVML tells, MPS and NUMA from files. */
#include "doctor_fixture.h"
#include "fake_nvml.h"

static void begin(void)
{
	set_up();
	d.nvml = FAKE_NVML_LIBRARY;
}

static void end(void)
{
	fake_nvml_remove();
	tear_down();
}

TestSuite(doctor_sharing, .init = begin, .fini = end);

/* --- NVML --------------------------------------------------------------------------------------
 */

static void expect(doctor_check *check, enum doctor_status status, const char *found)
{
	d.n = 0;
	check(&d);
	assert_whole(found);
	cr_expect_eq(worst()->status, status, "%s", worst()->found);
	cr_expect_str_eq(worst()->found, found);
}

Test(doctor_sharing, mig_is_told_by_gpu)
{
	plan_agent();
	fake_nvml_write("0000:17:00.0 1000 400 0 - -\n0000:2a:00.0 1000 400 1 - -\n");
	expect(check_gpu_mig, DOCTOR_WARNING,
	       "GPU 00000000:2A:00.0: MIG is on, and the agent has never run on an instance");
	cr_expect_eq(d.n, 2);
	fake_nvml_write("0000:17:00.0 1000 400 - - -\n");
	expect(check_gpu_mig, DOCTOR_OK, "GPU 00000000:17:00.0 has no MIG");
	fake_nvml_write("");
	expect(check_gpu_mig, DOCTOR_NA, "NVML shows no GPU");
	fake_nvml_write("broken\n");
	expect(check_gpu_mig, DOCTOR_WARNING, "nvmlInit: Driver Not Loaded (9)");
	d.nvml = "libno-such-thing.so.1";
	expect(check_gpu_mig, DOCTOR_NA, "no libnvidia-ml.so.1");
	d.nvml = NULL;
	d.n = 0;
	check_gpu_mig(&d);
	cr_expect_eq(worst()->status, DOCTOR_NA, "a folder is not this machine");
}

Test(doctor_sharing, a_budget_must_be_free)
{
	plan_agent();
	fake_nvml_write("0000:17:00.0 141000 4000 0 - -\n");
	expect(check_gpu_budget, DOCTOR_OK, "GPU 00000000:17:00.0: 4000 of 141000 MB free");
	d.plan.gpu_memory_mb = 4000;
	expect(check_gpu_budget, DOCTOR_OK, "GPU 00000000:17:00.0: 4000 of 141000 MB free");
	d.plan.gpu_memory_mb = 4001;
	expect(check_gpu_budget, DOCTOR_PROBLEM,
	       "GPU 00000000:17:00.0: 4000 of 141000 MB free, 4001 wanted");
	/* The agent that has it is there already. */
	put(&(struct file){"/proc/77/comm", "doorbell-agent\n"});
	put(&(struct file){"/proc/77/cmdline", "doorbell-agent --address 10.9.0.11/24"});
	expect(check_gpu_budget, DOCTOR_OK,
	       "GPU 00000000:17:00.0: 4000 of 141000 MB free, the agent runs");
}

/* --- files -------------------------------------------------------------------------------------
 */

#define ENVIRON "/proc/self/environ"
#define RUNS                                                                                       \
	{                                                                                          \
		"/proc/88/comm", "nvidia-cuda-mps\n"                                               \
	}
#define PIPE                                                                                       \
	{                                                                                          \
		"/tmp/nvidia-mps/control", ""                                                      \
	}
#define GONE                                                                                       \
	{"/proc/88/comm", NULL},                                                                   \
	{                                                                                          \
		"/tmp/nvidia-mps/control", NULL                                                    \
	}

static const struct row mps[] = {
	{"none", check_gpu_mps, plan_agent, {GONE}, DOCTOR_OK, "no MPS: programs on one GPU", NULL},
	{"by default",
	 check_gpu_mps,
	 plan_agent,
	 {RUNS, PIPE},
	 DOCTOR_OK,
	 "MPS runs at /tmp/nvidia-mps; threads not limited, memory not limited",
	 NULL},
	{"limits",
	 check_gpu_mps,
	 plan_agent,
	 {RUNS,
	  PIPE,
	  {ENVIRON, "A=1 CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30 "
		    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4G"}},
	 DOCTOR_OK,
	 "threads 30, memory 0=4G",
	 NULL},
	{"elsewhere",
	 check_gpu_mps,
	 plan_agent,
	 {RUNS, PIPE, {ENVIRON, "CUDA_MPS_PIPE_DIRECTORY=/run/mps"}},
	 DOCTOR_WARNING,
	 "MPS runs, but not at /run/mps",
	 "set CUDA_MPS_PIPE_DIRECTORY"},
	{"limits of nothing",
	 check_gpu_mps,
	 plan_agent,
	 {GONE, {ENVIRON, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30"}},
	 DOCTOR_WARNING,
	 "MPS does not run",
	 "nvidia-cuda-mps-control -d"},
	{"another name",
	 check_gpu_mps,
	 plan_agent,
	 {GONE, {ENVIRON, "MY_CUDA_MPS_PIPE_DIRECTORY=/x"}},
	 DOCTOR_OK,
	 "no MPS",
	 NULL},
};

Test(doctor_sharing, mps_is_there_and_reached)
{
	for (size_t i = 0; i < sizeof(mps) / sizeof(mps[0]); i++) {
		put(&(struct file){ENVIRON, "PATH=/bin"});
		check_row(&mps[i]);
	}
}

#define GPU_NODE GPU "/numa_node"
#define IB_NODE  IB("device/numa_node")

static void plan_soft(void)
{
	plan_agent();
	d.plan.n_rdma = 0;
	d.plan.n_ports = 1;
	plan_device(&d.plan.port[0], "0000:5e:00.0");
	snprintf(d.plan.port[0].name, sizeof(d.plan.port[0].name), "0000:5e:00.0");
}

#define STATUS_OF(cpus)                                                                            \
	{                                                                                          \
		"/proc/self/status", STATUS("000001ffffffffff", cpus)                              \
	}

static const struct row nodes[] = {
	{"not told",
	 check_gpu_node,
	 plan_agent,
	 {{GPU_NODE, NULL}},
	 DOCTOR_NA,
	 "does not tell a GPU's node",
	 NULL},
	{"minus one",
	 check_gpu_node,
	 plan_agent,
	 {{GPU_NODE, "-1\n"}},
	 DOCTOR_NA,
	 "does not tell a GPU's node",
	 NULL},
	{"one node",
	 check_gpu_node,
	 plan_agent,
	 {{NODE(1), NULL}, {GPU_NODE, "0\n"}},
	 DOCTOR_NA,
	 "one NUMA node",
	 NULL},
	{"no GPU",
	 check_gpu_node,
	 plan_agent,
	 {{GPU "/vendor", "0x8086\n"}, {GPU_NODE, "0\n"}},
	 DOCTOR_NA,
	 "no NVIDIA GPU",
	 NULL},
	{"near",
	 check_gpu_node,
	 plan_agent,
	 {{GPU_NODE, "0\n"}, {IB_NODE, "0\n"}, STATUS_OF("0-3")},
	 DOCTOR_OK,
	 "GPU 0000:17:00.0: node 0, as CPUs and NIC",
	 NULL},
	{"far RDMA device",
	 check_gpu_node,
	 plan_agent,
	 {{GPU_NODE, "0\n"}, {IB_NODE, "1\n"}, STATUS_OF("0-3")},
	 DOCTOR_WARNING,
	 "GPU 0000:17:00.0 is on node 0, mlx5_0 on node 1",
	 "a NIC of the GPU's node"},
	{"far NIC",
	 check_gpu_node,
	 plan_soft,
	 {{GPU_NODE, "1\n"}, STATUS_OF("4-7")},
	 DOCTOR_WARNING,
	 "is on node 1, 0000:5e:00.0 on node 0",
	 NULL},
	{"far CPUs",
	 check_gpu_node,
	 plan_agent,
	 {{GPU_NODE, "1\n"}, {IB_NODE, "1\n"}, STATUS_OF("0-3")},
	 DOCTOR_WARNING,
	 "the agent may run on other nodes only",
	 "numactl --cpunodebind=1 --membind=1"},
	{"some CPUs",
	 check_gpu_node,
	 plan_agent,
	 {{GPU_NODE, "1\n"}, {IB_NODE, "1\n"}, STATUS_OF("3-7")},
	 DOCTOR_WARNING,
	 "the agent may run on others, too",
	 "numactl"},
	{"far hugepages",
	 check_gpu_node,
	 plan_soft,
	 {{GPU_NODE, "0\n"},
	  STATUS_OF("0-3"),
	  {NODE(0) "/hugepages/hugepages-2048kB/free_hugepages", "3\n"}},
	 DOCTOR_WARNING,
	 "node 0, which has 6 MiB of hugepages free, 128 needed",
	 "echo 65 > /sys/devices/system/node/node0"},
};

Test(doctor_sharing, what_a_gpu_needs_is_on_its_node)
{
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		heal();
		put(&(struct file){IB_NODE, NULL});
		check_row(&nodes[i]);
	}
}
