/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU reads pinned host memory with a known number of reads under way: each warp follows a chain
 * of lines of its own, so that it has one read at a time. One warp gives the round trip; the rest
 * is what DxPU's model predicts from it (control/cli/size/reads.h).
 *
 *   reads [--rounds N]      a line per size and number of warps: size warps GB/s us-per-read
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#define LINE  128
#define LINES (1u << 21) /* 256 MiB: more than any cache of the GPU */
#define STEPS 400

#define OK(call)                                                                                   \
	do {                                                                                       \
		cudaError_t error_ = (call);                                                       \
		if (error_ != cudaSuccess) {                                                       \
			fprintf(stderr, "reads: %s: %s\n", #call, cudaGetErrorString(error_));     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Follow a chain of <steps> lines, reading <lanes> words of each. */
__global__ void follow(const unsigned int *line, unsigned int lanes, unsigned int steps, unsigned int *out)
{
	unsigned int at = (blockIdx.x * 2654435761u) % LINES, sum = 0, lane = threadIdx.x;

	for (unsigned int i = 0; i < steps; i++) {
		unsigned int word = 0;

		if (lane < lanes)
			asm volatile("ld.volatile.global.u32 %0, [%1];"
				     : "=r"(word)
				     : "l"(line + (size_t)at * (LINE / 4) + lane)
				     : "memory");
		sum += word;
		at = __shfl_sync(~0u, word, 0);
	}
	if (sum == 1)
		*out = sum;
}

static double run_ms(const unsigned int *line, unsigned int warps, unsigned int bytes, unsigned int *out)
{
	cudaEvent_t from, to;
	float ms;

	OK(cudaEventCreate(&from));
	OK(cudaEventCreate(&to));
	OK(cudaEventRecord(from));
	follow<<<warps, 32>>>(line, bytes / 4, STEPS, out);
	OK(cudaEventRecord(to));
	OK(cudaEventSynchronize(to));
	OK(cudaEventElapsedTime(&ms, from, to));
	OK(cudaEventDestroy(from));
	OK(cudaEventDestroy(to));
	return ms;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 && strcmp(argv[1], "--rounds") == 0 ? atoi(argv[2]) : 5;
	std::vector<unsigned int> order(LINES);
	std::mt19937 random(1);
	unsigned int *host, *out, *line;

	OK(cudaHostAlloc(&host, (size_t)LINES * LINE, cudaHostAllocMapped));
	OK(cudaHostGetDevicePointer(&line, host, 0));
	OK(cudaMalloc(&out, sizeof(*out)));
	for (unsigned int i = 0; i < LINES; i++)
		order[i] = i;
	std::shuffle(order.begin(), order.end(), random);
	memset(host, 0, (size_t)LINES * LINE);
	for (unsigned int i = 0; i < LINES; i++)
		host[(size_t)order[i] * (LINE / 4)] = order[(i + 1) % LINES];
	run_ms(line, 1, LINE, out);
	for (unsigned int bytes = 32; bytes <= LINE; bytes *= 2) {
		for (unsigned int warps = 1; warps <= 4096; warps *= 2) {
			std::vector<double> ms;

			for (int r = 0; r < rounds; r++)
				ms.push_back(run_ms(line, warps, bytes, out));
			std::sort(ms.begin(), ms.end());
			printf("%u %u %.4f %.4f %.4f %.4f\n", bytes, warps,
			       (double)warps * STEPS * bytes / ms[rounds / 2] / 1e6, ms[rounds / 2] * 1e3 / STEPS,
			       ms[0] * 1e3 / STEPS, ms[rounds - 1] * 1e3 / STEPS);
		}
	}
	return 0;
}
