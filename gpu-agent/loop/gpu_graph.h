/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a CUDA graph must be to be launched from a GPU (CUDA C++ Programming Guide, "Device Graph
 * Launch"): kernels, copies and memsets on one device, and child graphs of such.
 */
#ifndef AGENT_GPU_GRAPH_H
#define AGENT_GPU_GRAPH_H

#include <stddef.h>

#include <cuda_runtime_api.h>

/* 0, or -ENOTSUP and a sentence that names the first node that cannot be launched, and why. */
int gpu_graph_check(cudaGraph_t graph, char *error, size_t size);

/* Nodes of <graph> and of its child graphs. */
size_t gpu_graph_nodes(cudaGraph_t graph);

/* Put a copy of <graph> onto a stream that is being captured. 0 or -EIO and <error>. */
int gpu_graph_embed(cudaStream_t stream, cudaGraph_t graph, char *error, size_t size);

#endif
