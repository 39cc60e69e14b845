/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of CUDA calls, beside their GPU and behind a network: a server thread makes the calls that
 * a client thread sends over a socket, and each message is held back until a link of the given round
 * trip and bandwidth would have delivered it. Writes a trace per program, whose times are measured
 * beside the GPU, call by call, and what the programs really took at each network.
 *
 *   calls DIRECTORY [--iterations N] [--rounds N]
 *
 * DIRECTORY/NAME.trace (doorbell size calls) and DIRECTORY/measured: name rtt_us gbps local_us
 * remote_us least most, medians over the iterations of a round, and of the rounds. Its first line is
 * send_us and receive_us, which only the sockets say.
 */
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sched.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

#define OK(call)                                                                                   \
	do {                                                                                       \
		cudaError_t error_ = (call);                                                       \
		if (error_ != cudaSuccess) {                                                       \
			fprintf(stderr, "calls: %s: %s\n", #call, cudaGetErrorString(error_));     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum kind { LOCAL, ASYNC, SYNC, WAIT };
enum what { DEVICE, LAUNCH, TO_GPU, QUERY, FROM_GPU, NOTHING };
static const char *const kinds[] = {"local", "async", "sync", "wait"};
static const char *const names[] = {"cudaGetDevice", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamQuery",
				    "cudaMemcpy", "nothing"};

struct op {
	what does;
	double gap_us, spin_us; /* of the kernel */
	size_t bytes;           /* of a copy */
	kind is() const
	{
		switch (does) {
		case DEVICE:
			return LOCAL;
		case QUERY:
			return SYNC;
		case FROM_GPU:
			return WAIT;
		default:
			return ASYNC;
		}
	}
	size_t sent() const { return does == DEVICE ? 0 : 128 + (does == TO_GPU ? bytes : 0); }
	size_t received() const { return does == FROM_GPU ? 64 + bytes : does == QUERY ? 64 : 0; }
	std::string key() const { return std::to_string(does) + "/" + std::to_string(spin_us) + "/" + std::to_string(bytes); }
};

struct message {
	int op; /* -1: the end */
	double stamp;
	char rest[112];
};

static cudaStream_t stream;
static char *pinned, *on_gpu;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void spin_until(double us)
{
	while (now_us() < us)
		;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

__global__ void busy(unsigned long long ns)
{
	unsigned long long from, at;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(from));
	do
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(at));
	while (at - from < ns);
}

static void make(const op &o)
{
	int device;

	switch (o.does) {
	case DEVICE:
		OK(cudaGetDevice(&device));
		break;
	case LAUNCH:
		busy<<<1, 1, 0, stream>>>((unsigned long long)(o.spin_us * 1e3));
		break;
	case TO_GPU:
		OK(cudaMemcpyAsync(on_gpu, pinned, o.bytes, cudaMemcpyHostToDevice, stream));
		break;
	case QUERY:
		cudaStreamQuery(stream);
		break;
	case FROM_GPU:
		OK(cudaMemcpyAsync(pinned, on_gpu, o.bytes, cudaMemcpyDeviceToHost, stream));
		OK(cudaStreamSynchronize(stream));
		break;
	case NOTHING:
		break;
	}
}

/* --- beside the GPU --------------------------------------------------------------------------- */

static double median(std::vector<double> v)
{
	std::sort(v.begin(), v.end());
	return v[v.size() / 2];
}

static std::vector<double> local(const std::vector<op> &program, int iterations)
{
	std::vector<double> took;

	for (int i = -5; i < iterations; i++) {
		double from = now_us();

		for (const op &o : program) {
			spin_until(now_us() + o.gap_us);
			make(o);
		}
		if (i >= 0)
			took.push_back(now_us() - from);
	}
	return took;
}

/* Time of the GPU for one such operation among others of its kind. */
static double gpu_us(const op &o)
{
	const int n = 50;
	op asynchronous = o;
	cudaEvent_t from, to;
	float ms;

	if (o.does != LAUNCH && o.does != TO_GPU && o.does != FROM_GPU)
		return 0;
	OK(cudaEventCreate(&from));
	OK(cudaEventCreate(&to));
	/* The GPU is kept busy until all of them are queued. */
	busy<<<1, 1, 0, stream>>>(2000000);
	OK(cudaEventRecord(from, stream));
	for (int i = 0; i < n; i++) {
		if (o.does == FROM_GPU)
			OK(cudaMemcpyAsync(pinned, on_gpu, o.bytes, cudaMemcpyDeviceToHost, stream));
		else
			make(asynchronous);
	}
	OK(cudaEventRecord(to, stream));
	OK(cudaEventSynchronize(to));
	OK(cudaEventElapsedTime(&ms, from, to));
	OK(cudaEventDestroy(from));
	OK(cudaEventDestroy(to));
	return ms * 1e3 / n;
}

/* Time of the call itself. Of one that waits: with nothing to wait for but itself. */
static double call_us(const op &o, double on_gpu_us)
{
	std::vector<double> took;

	for (int i = 0; i < 60; i++) {
		double from = now_us();

		make(o);
		took.push_back(now_us() - from);
		if (i % 20 == 19)
			OK(cudaStreamSynchronize(stream));
	}
	OK(cudaStreamSynchronize(stream));
	return o.does == FROM_GPU ? std::max(0.0, median(took) - on_gpu_us) : median(took);
}

/* --- behind the network ----------------------------------------------------------------------- */

struct network {
	double rtt_us, gbps;
	double free[2]; /* when each direction of the link is free */
	/* When a message of <bytes>, sent at <stamp>, arrives. */
	double due(int way, double stamp, size_t bytes)
	{
		free[way] = std::max(stamp, free[way]) + (gbps > 0 ? bytes * 8 / (gbps * 1e3) : 0);
		return free[way] + rtt_us / 2;
	}
};

static void put(int fd, int index)
{
	message m = {index, now_us(), {0}};

	while (write(fd, &m, sizeof(m)) != (ssize_t)sizeof(m))
		if (errno != EAGAIN) {
			perror("calls: write");
			exit(1);
		}
}

static message get(int fd)
{
	message m;
	size_t have = 0;

	while (have < sizeof(m)) {
		ssize_t n = read(fd, (char *)&m + have, sizeof(m) - have);

		if (n > 0)
			have += (size_t)n;
		else if (n == 0 || errno != EAGAIN) {
			perror("calls: read");
			exit(1);
		}
	}
	return m;
}

static void serve(int fd, const std::vector<op> *program, network net)
{
	pin(4);
	for (;;) {
		message m = get(fd);
		const op *o;

		if (m.op < 0)
			return;
		o = &(*program)[(size_t)m.op];
		spin_until(net.due(0, m.stamp, o->sent()));
		make(*o);
		if (o->is() == SYNC || o->is() == WAIT)
			put(fd, m.op);
	}
}

static std::vector<double> remote(const std::vector<op> &program, int iterations, double rtt_us, double gbps)
{
	network net = {rtt_us, gbps, {0, 0}};
	std::vector<double> took;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0)
		exit(1);
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	fcntl(fd[1], F_SETFL, O_NONBLOCK);
	std::thread server(serve, fd[1], &program, net);
	for (int i = -5; i < iterations; i++) {
		double from = now_us();

		for (size_t k = 0; k < program.size(); k++) {
			const op &o = program[k];

			spin_until(now_us() + o.gap_us);
			if (o.is() == LOCAL)
				continue;
			put(fd[0], (int)k);
			if (o.is() != ASYNC) {
				message m = get(fd[0]);

				spin_until(net.due(1, m.stamp, o.received()));
			}
		}
		if (i >= 0)
			took.push_back(now_us() - from);
	}
	put(fd[0], -1);
	server.join();
	close(fd[0]);
	close(fd[1]);
	return took;
}

/* Times of the sockets alone: messages that nothing is done for. */
static void sockets(double *send_us, double *receive_us)
{
	std::vector<double> sends, receives;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0)
		exit(1);
	for (int i = 0; i < 2000; i++) {
		double from = now_us(), sent;

		put(fd[0], 0);
		sent = now_us();
		get(fd[1]);
		sends.push_back(sent - from);
		receives.push_back(now_us() - sent);
	}
	*send_us = median(sends);
	*receive_us = median(receives);
	close(fd[0]);
	close(fd[1]);
}

/* --- programs --------------------------------------------------------------------------------- */

static std::map<std::string, std::vector<op>> programs(void)
{
	std::map<std::string, std::vector<op>> all;

	/* Many small kernels, as a small model has them. */
	all["small"] = {{TO_GPU, 2, 0, 65536}};
	for (int i = 0; i < 50; i++) {
		all["small"].push_back({DEVICE, 0.5, 0, 0});
		all["small"].push_back({LAUNCH, 4, 3, 0});
	}
	all["small"].push_back({FROM_GPU, 2, 0, 4096});
	/* Few long ones behind a picture. */
	all["big"] = {{TO_GPU, 2, 0, 602112}};
	for (int i = 0; i < 20; i++)
		all["big"].push_back({LAUNCH, 5, 40, 0});
	all["big"].push_back({FROM_GPU, 2, 0, 4096});
	/* A program that asks after each. */
	for (int i = 0; i < 20; i++) {
		all["asking"].push_back({LAUNCH, 5, 20, 0});
		all["asking"].push_back({QUERY, 5, 0, 0});
	}
	all["asking"].push_back({FROM_GPU, 5, 0, 4096});
	/* Calls as fast as they can be made: the server's queue, where it is slower. */
	for (int i = 0; i < 200; i++)
		all["flood"].push_back({LAUNCH, 0, 1, 0});
	all["flood"].push_back({FROM_GPU, 0, 0, 64});
	/* Bytes: 8 copies of 4 MiB. */
	for (int i = 0; i < 8; i++)
		all["bytes"].push_back({TO_GPU, 10, 0, 4 << 20});
	all["bytes"].push_back({LAUNCH, 5, 30, 0});
	all["bytes"].push_back({FROM_GPU, 5, 0, 1 << 20});
	return all;
}

static void write_trace(const std::string &path, const std::vector<op> &program, int repeat)
{
	std::map<std::string, std::pair<double, double>> times;
	FILE *file = fopen(path.c_str(), "w");

	if (file == NULL) {
		perror(path.c_str());
		exit(1);
	}
	for (const op &o : program) {
		if (times.count(o.key()) == 0) {
			double on_gpu_us = gpu_us(o);

			times[o.key()] = {call_us(o, on_gpu_us), on_gpu_us};
		}
	}
	fprintf(file, "# %d iterations\n", repeat);
	for (int i = 0; i < repeat; i++)
		for (const op &o : program)
			fprintf(file, "%s %s %.3f %.3f %.3f %zu %zu\n", names[o.does], kinds[o.is()], o.gap_us,
				times[o.key()].first, times[o.key()].second, o.sent(), o.received());
	fclose(file);
}

int main(int argc, char **argv)
{
	static const double rtts[] = {10, 20, 50, 100, 200, 500}, networks[] = {100, 10};
	int iterations = argc > 3 ? atoi(argv[3]) : 100, rounds = argc > 5 ? atoi(argv[5]) : 3;
	std::string to = argc > 1 ? argv[1] : ".";
	auto all = programs();
	double send_us, receive_us;
	FILE *out;

	pin(2);
	OK(cudaStreamCreate(&stream));
	OK(cudaHostAlloc(&pinned, 8 << 20, cudaHostAllocDefault));
	OK(cudaMalloc(&on_gpu, 8 << 20));
	for (auto &p : all)
		local(p.second, 5);
	sockets(&send_us, &receive_us);
	for (auto &p : all)
		write_trace(to + "/" + p.first + ".trace", p.second, 10);
	out = fopen((to + "/measured").c_str(), "w");
	if (out == NULL) {
		perror("measured");
		return 1;
	}
	fprintf(out, "sockets %.3f %.3f\n", send_us, receive_us);
	for (auto &p : all) {
		for (double gbps : networks) {
			for (double rtt : rtts) {
				std::vector<double> here, there;

				for (int r = 0; r < rounds; r++) {
					here.push_back(median(local(p.second, iterations)));
					there.push_back(median(remote(p.second, iterations, rtt, gbps)));
				}
				std::sort(there.begin(), there.end());
				fprintf(out, "%s %g %g %.2f %.2f %.2f %.2f\n", p.first.c_str(), rtt, gbps,
					median(here), median(there), there.front(), there.back());
			}
		}
	}
	fclose(out);
	return 0;
}
