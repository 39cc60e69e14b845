/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices and GPUs of a machine that is files. */
#include "doctor_fixture.h"

#include "cli/doctor/check_gpu.h"

TestSuite(doctor_rdma, .init = set_up, .fini = tear_down, .timeout = 60);

static void plan_other_address(void)
{
	plan_agent();
	lb_address_parse("10.9.0.12", &d.plan.rdma[0].address);
}

static void plan_no_address(void)
{
	plan_agent();
	d.plan.rdma[0].address.family = 0;
}

static void plan_other_device(void)
{
	plan_agent();
	strcpy(d.plan.rdma[0].name, "mlx5_7");
}

static void plan_small_mtu(void)
{
	plan_agent();
	d.plan.rdma[0].mtu = 1500;
}

#define NO_RDMA                                                                                    \
	{                                                                                          \
		"/sys/class/infiniband", NULL                                                      \
	}

static const struct row rdma_rows[] = {
	{"modules", check_rdma_modules, plan_agent, {}, DOCTOR_OK, "ib_uverbs"},
	{"no ib_uverbs",
	 check_rdma_modules,
	 plan_agent,
	 {{"/sys/module/ib_uverbs", NULL}},
	 DOCTOR_PROBLEM,
	 "not loaded",
	 "modprobe ib_uverbs"},
	{"no device nodes",
	 check_rdma_modules,
	 plan_agent,
	 {{"/dev/infiniband/uverbs0", NULL}},
	 DOCTOR_PROBLEM,
	 "1 RDMA devices, 0 of",
	 "--device=/dev/infiniband"},
	{"nothing of RDMA", check_rdma_modules, plan_none, {NO_RDMA}, DOCTOR_NA},
	{"the device", check_rdma_device, plan_agent, {}, DOCTOR_OK, "mlx5_0"},
	{"another device",
	 check_rdma_device,
	 plan_other_device,
	 {},
	 DOCTOR_PROBLEM,
	 "no RDMA device 'mlx5_7'; there are: mlx5_0",
	 "--device: one of those"},
	{"no device at all",
	 check_rdma_device,
	 plan_agent,
	 {NO_RDMA},
	 DOCTOR_PROBLEM,
	 "there are: none",
	 "modprobe mlx5_ib"},
	{"no device, and none wanted", check_rdma_device, plan_none, {NO_RDMA}, DOCTOR_NA},
	{"the port", check_rdma_port, plan_agent, {}, DOCTOR_OK, "active, Ethernet, ens1"},
	{"a port that is down",
	 check_rdma_port,
	 plan_agent,
	 {{IB("ports/1/state"), "1: DOWN\n"}},
	 DOCTOR_PROBLEM,
	 "1: DOWN",
	 "ip link set dev ens1 up"},
	{"a port that is down, but nobody wants it",
	 check_rdma_port,
	 plan_none,
	 {{IB("ports/1/state"), "1: DOWN\n"}},
	 DOCTOR_WARNING},
	{"InfiniBand",
	 check_rdma_port,
	 plan_agent,
	 {{IB("ports/1/link_layer"), "InfiniBand\n"}},
	 DOCTOR_PROBLEM,
	 "'InfiniBand'",
	 "LINK_TYPE_P1=2"},
	{"no state", check_rdma_port, plan_agent, {{IB("ports/1/state"), NULL}}, DOCTOR_PROBLEM},
	{"no ports", check_rdma_port, plan_agent, {{IB("ports"), NULL}}, DOCTOR_NA},
	{"the GID", check_rdma_gid, plan_agent, {}, DOCTOR_OK, "10.9.0.11 is GID 1, RoCE v2"},
	{"no GID for the address",
	 check_rdma_gid,
	 plan_other_address,
	 {},
	 DOCTOR_PROBLEM,
	 "no RoCE v2 GID for 10.9.0.12",
	 "ip addr add 10.9.0.12/24 dev ens1"},
	{"RoCE v1 only",
	 check_rdma_gid,
	 plan_agent,
	 {{IB("ports/1/gid_attrs/types/1"), "IB/RoCE v1\n"}},
	 DOCTOR_PROBLEM,
	 "RoCE v1 only",
	 "cma_roce_mode"},
	{"any GID", check_rdma_gid, plan_no_address, {}, DOCTOR_OK, "1 RoCE v2 GIDs"},
	{"no GIDs",
	 check_rdma_gid,
	 plan_no_address,
	 {{IB("ports/1/gids"), NULL}},
	 DOCTOR_PROBLEM,
	 "no RoCE v2 GID",
	 "give ens1 an IP address"},
	{"GIDs of nonsense",
	 check_rdma_gid,
	 plan_agent,
	 {{IB("ports/1/gids/0"), "x"}, {IB("ports/1/gids/1"), "0000:"}},
	 DOCTOR_PROBLEM},
	{"the P_Key", check_rdma_pkey, plan_agent, {}, DOCTOR_OK, "index 0"},
	{"the P_Key further on",
	 check_rdma_pkey,
	 plan_agent,
	 {{IB("ports/1/pkeys/0"), "0x0000\n"}, {IB("ports/1/pkeys/1"), "0xffff\n"}},
	 DOCTOR_OK,
	 "index 1"},
	{"no P_Keys", check_rdma_pkey, plan_agent, {{IB("ports/1/pkeys"), NULL}}, DOCTOR_PROBLEM},
	{"P_Keys of nonsense",
	 check_rdma_pkey,
	 plan_agent,
	 {{IB("ports/1/pkeys/0"), "key"}, {IB("ports/1/pkeys/1"), NULL}},
	 DOCTOR_PROBLEM},
	{"the MTU", check_rdma_mtu, plan_agent, {}, DOCTOR_OK, "RDMA MTU 4096"},
	{"an MTU too small",
	 check_rdma_mtu,
	 plan_agent,
	 {{ENS("mtu"), "1500\n"}},
	 DOCTOR_PROBLEM,
	 "RDMA MTU 1024, --mtu 4200 gives 4096",
	 "ip link set dev ens1 mtu 4192"},
	{"a small MTU is enough",
	 check_rdma_mtu,
	 plan_small_mtu,
	 {{ENS("mtu"), "1500"}},
	 DOCTOR_OK},
	{"no MTU", check_rdma_mtu, plan_agent, {{ENS("mtu"), NULL}}, DOCTOR_PROBLEM},
};

#define NO_DRIVER                                                                                  \
	{                                                                                          \
		"/proc/driver", NULL                                                               \
	}

static const struct row gpu_rows[] = {
	{"a driver", check_gpu_driver, plan_agent, {}, DOCTOR_OK, "580.159.03, open"},
	{"a closed driver",
	 check_gpu_driver,
	 plan_agent,
	 {{"/proc/driver/nvidia/version", CLOSED_DRIVER}},
	 DOCTOR_OK,
	 "535.104.05"},
	{"a GPU without driver",
	 check_gpu_driver,
	 plan_agent,
	 {NO_DRIVER},
	 DOCTOR_WARNING,
	 "an NVIDIA GPU, but no NVIDIA driver here",
	 "modprobe nvidia"},
	{"no GPU",
	 check_gpu_driver,
	 plan_agent,
	 {NO_DRIVER, {GPU, NULL}},
	 DOCTOR_NA,
	 "no NVIDIA driver here"},
	{"a version of nonsense",
	 check_gpu_driver,
	 plan_agent,
	 {{"/proc/driver/nvidia/version", "NVRM version: NVIDIA x86_64\n"}},
	 DOCTOR_WARNING},
	{"dma-buf", check_gpu_memory, plan_agent, {}, DOCTOR_OK, "dma-buf: Linux 6.1.0"},
	{"peermem",
	 check_gpu_memory,
	 plan_agent,
	 {{"/proc/driver/nvidia/version", CLOSED_DRIVER}, {"/sys/module/nvidia_peermem", "/"}},
	 DOCTOR_OK,
	 "nvidia-peermem"},
	{"closed, no peermem",
	 check_gpu_memory,
	 plan_agent,
	 {{"/proc/driver/nvidia/version", CLOSED_DRIVER}, {"/sys/module/nvidia_peermem", NULL}},
	 DOCTOR_PROBLEM,
	 "needs the open kernel modules",
	 "modprobe nvidia-peermem"},
	{"an old kernel",
	 check_gpu_memory,
	 plan_agent,
	 {{"/proc/sys/kernel/osrelease", "5.11.22\n"}},
	 DOCTOR_PROBLEM,
	 "needs Linux 5.12"},
	{"no driver, no memory", check_gpu_memory, plan_agent, {NO_DRIVER}, DOCTOR_NA},
	{"doorbells", check_gpu_doorbell, plan_agent, {}, DOCTOR_OK, "PeerMappingOverride=1"},
	{"no doorbells",
	 check_gpu_doorbell,
	 plan_agent,
	 {{"/proc/driver/nvidia/params", "RegistryDwords: \"\"\nOther: PeerMappingOverride=1\n"}},
	 DOCTOR_PROBLEM,
	 "error 800",
	 "NVreg_RegistryDwords=\"PeerMappingOverride=1;\""},
	{"no doorbells, but no NIC either",
	 check_gpu_doorbell,
	 plan_none,
	 {{"/proc/driver/nvidia/params", ""}},
	 DOCTOR_WARNING},
	{"no driver, no doorbells", check_gpu_doorbell, plan_agent, {NO_DRIVER}, DOCTOR_NA},
	{"GPUs of another machine", check_gpus, plan_agent, {}, DOCTOR_NA},
};

Test(doctor_rdma, says_what_a_device_lacks_for_rocev2)
{
	CHECK_ROWS(rdma_rows);
}

Test(doctor_rdma, says_how_nics_and_gpus_reach_each_other)
{
	CHECK_ROWS(gpu_rows);
}

static void judge(const struct cuda_gpu *gpu)
{
	d.n = 0;
	check_gpu_judge(&d, 0, gpu);
	assert_whole(gpu->name);
}

Test(doctor_rdma, refuses_gpus_that_may_see_writes_out_of_order)
{
	struct cuda_gpu gpu = {.name = "H200",
			       .major = 9,
			       .direct_rdma = 1,
			       .dma_buf = 1,
			       .writes_ordering = 100,
			       .flush_options = 1};

	judge(&gpu);
	cr_expect_eq(worst()->status, DOCTOR_OK);
	cr_expect_str_eq(worst()->found, "GPU 0 H200: 9.0, GPUDirect RDMA yes, dma-buf yes, "
					 "write ordering 100");
	gpu.writes_ordering = 0;
	judge(&gpu);
	cr_expect_eq(worst()->status, DOCTOR_PROBLEM);
	gpu.writes_ordering = CUDA_NO_VALUE;
	judge(&gpu);
	cr_expect_eq(worst()->status, DOCTOR_PROBLEM);
	gpu.writes_ordering = 200;
	gpu.direct_rdma = gpu.dma_buf = 0;
	judge(&gpu);
	cr_expect_eq(worst()->status, DOCTOR_WARNING);
	gpu.major = 6;
	judge(&gpu);
	cr_expect_eq(worst()->status, DOCTOR_PROBLEM);
}

Test(doctor_rdma, a_library_that_is_no_cuda_driver_is_not_called)
{
	struct cuda_gpu gpu[CUDA_GPUS_MAX];
	char error[128] = "";

	cr_expect_eq(cuda_gpus("libnothing.so.0", gpu, error, sizeof(error)), -ENOENT);
	cr_expect_str_eq(error, "");
	cr_expect_eq(cuda_gpus("libc.so.6", gpu, error, sizeof(error)), -EIO);
	cr_expect_str_eq(error, "libc.so.6 is no CUDA driver");
}
