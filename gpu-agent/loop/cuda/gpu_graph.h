/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks and embeds CUDA graphs that a GPU launches itself. Such a graph may hold kernels, copies
 * and memsets on one device, and child graphs of these (CUDA C++ Programming Guide, "Device Graph
 * Launch").
 */
#ifndef AGENT_GPU_GRAPH_H
#define AGENT_GPU_GRAPH_H

#include <stddef.h>

#include <cuda_runtime_api.h>

/* Check that a GPU can launch <graph>. 0, or -ENOTSUP and a sentence that names the first node that
 * it cannot launch, and why. */
int gpu_graph_check(cudaGraph_t graph, char *error, size_t size);

/* Count the nodes of <graph> and of its child graphs. */
size_t gpu_graph_nodes(cudaGraph_t graph);

/* Add a copy of <graph> to a stream that is being captured. 0 or -EIO and <error>. */
int gpu_graph_embed(cudaStream_t stream, cudaGraph_t graph, char *error, size_t size);

#endif
