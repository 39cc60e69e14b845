/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "loop/cuda/gpu_graph.h"

/* Child graphs in child graphs; frameworks capture fewer levels. */
#define DEPTH_MAX 16

static const char *const reasons[] = {
	[cudaGraphNodeTypeHost] = "calls a function on the CPU",
	[cudaGraphNodeTypeWaitEvent] = "waits for an event of another stream",
	[cudaGraphNodeTypeEventRecord] = "records an event for another stream",
	[cudaGraphNodeTypeExtSemaphoreSignal] = "signals a semaphore outside CUDA",
	[cudaGraphNodeTypeExtSemaphoreWait] = "waits for a semaphore outside CUDA",
	[cudaGraphNodeTypeMemAlloc] = "allocates memory while it runs",
	[cudaGraphNodeTypeMemFree] = "frees memory while it runs",
	[cudaGraphNodeTypeConditional] = "is a condition or loop",
};

static const char *memory_reason(cudaGraphNode_t node)
{
	struct cudaMemcpy3DParms copy = {0};
	struct cudaPointerAttributes from, to;

	if (cudaGraphMemcpyNodeGetParams(node, &copy) != cudaSuccess)
		return "is a copy that cannot be read";
	if (copy.srcArray != NULL || copy.dstArray != NULL)
		return "copies from or to a CUDA array";
	if (cudaPointerGetAttributes(&from, copy.srcPtr.ptr) != cudaSuccess ||
	    cudaPointerGetAttributes(&to, copy.dstPtr.ptr) != cudaSuccess ||
	    from.type == cudaMemoryTypeUnregistered || to.type == cudaMemoryTypeUnregistered)
		return "copies from or to pageable host memory; pin it";
	return NULL;
}

static int check_nodes(cudaGraph_t graph, int depth, char *error, size_t size)
{
	cudaGraphNode_t *nodes = NULL;
	enum cudaGraphNodeType type;
	const char *reason = NULL;
	cudaGraph_t child;
	size_t n = 0, i;
	int ret = 0;

	if (cudaGraphGetNodes(graph, NULL, &n) != cudaSuccess || depth > DEPTH_MAX) {
		snprintf(error, size, "the graph cannot be read");
		return -ENOTSUP;
	}
	if (n == 0)
		return 0;
	nodes = calloc(n, sizeof(*nodes));
	if (nodes == NULL) {
		snprintf(error, size, "no memory");
		return -ENOMEM;
	}
	cudaGraphGetNodes(graph, nodes, &n);
	for (i = 0; i < n && reason == NULL && ret == 0; i++) {
		if (cudaGraphNodeGetType(nodes[i], &type) != cudaSuccess)
			reason = "cannot be read";
		else if (type == cudaGraphNodeTypeMemcpy)
			reason = memory_reason(nodes[i]);
		else if (type == cudaGraphNodeTypeGraph &&
			 cudaGraphChildGraphNodeGetGraph(nodes[i], &child) == cudaSuccess)
			ret = check_nodes(child, depth + 1, error, size);
		else if (type != cudaGraphNodeTypeKernel && type != cudaGraphNodeTypeMemset &&
			 type != cudaGraphNodeTypeEmpty)
			reason = (size_t)type < sizeof(reasons) / sizeof(reasons[0]) &&
						 reasons[type] != NULL
					 ? reasons[type]
					 : "is of an unknown kind";
	}
	free(nodes);
	if (reason == NULL)
		return ret;
	snprintf(error, size,
		 "the model's graph cannot be launched from the GPU: node %zu of %zu %s; only "
		 "kernels, copies within the device and memsets can",
		 i, n, reason);
	return -ENOTSUP;
}

int gpu_graph_check(cudaGraph_t graph, char *error, size_t size)
{
	int ret = check_nodes(graph, 0, error, size);

	cudaGetLastError();
	return ret;
}

size_t gpu_graph_nodes(cudaGraph_t graph)
{
	cudaGraphNode_t *nodes = NULL;
	enum cudaGraphNodeType type;
	size_t n = 0, sum = 0;
	cudaGraph_t child;

	if (cudaGraphGetNodes(graph, NULL, &n) != cudaSuccess || n == 0)
		return 0;
	nodes = calloc(n, sizeof(*nodes));
	if (nodes == NULL)
		return n;
	cudaGraphGetNodes(graph, nodes, &n);
	for (size_t i = 0; i < n; i++)
		sum += cudaGraphNodeGetType(nodes[i], &type) == cudaSuccess &&
				       type == cudaGraphNodeTypeGraph &&
				       cudaGraphChildGraphNodeGetGraph(nodes[i], &child) ==
					       cudaSuccess
			       ? gpu_graph_nodes(child)
			       : 1;
	free(nodes);
	return sum;
}

/* CUDA 12 has these under versioned names. */
#if CUDART_VERSION < 13000
#define cudaStreamGetCaptureInfo            cudaStreamGetCaptureInfo_v3
#define cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_v2
#endif

int gpu_graph_embed(cudaStream_t stream, cudaGraph_t graph, char *error, size_t size)
{
	enum cudaStreamCaptureStatus status;
	const cudaGraphNode_t *before;
	cudaGraphNode_t node;
	cudaGraph_t whole;
	size_t n;
	cudaError_t ret;

	ret = cudaStreamGetCaptureInfo(stream, &status, NULL, &whole, &before, NULL, &n);
	if (ret == cudaSuccess && status != cudaStreamCaptureStatusActive)
		ret = cudaErrorInvalidValue;
	if (ret == cudaSuccess)
		ret = cudaGraphAddChildGraphNode(&node, whole, before, n, graph);
	if (ret == cudaSuccess)
		ret = cudaStreamUpdateCaptureDependencies(stream, &node, NULL, 1,
							  cudaStreamSetCaptureDependencies);
	if (ret == cudaSuccess)
		return 0;
	snprintf(error, size, "the graph cannot be embedded: %s", cudaGetErrorString(ret));
	return -EIO;
}
