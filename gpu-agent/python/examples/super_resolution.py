# SPDX-License-Identifier: BSD-3-Clause
"""Thrice the resolution of a grey image, by the sub-pixel convolution of ESPCN (arXiv:1609.05158),
with random weights: 224 x 224 float32 in, 672 x 672 float32 out.

A request of 200,704 bytes does not fit a datagram: its service has protocol tcp,
max_request: 200704 and max_reply: 1806336."""
import torch
from torch.nn import Conv2d, PixelShuffle, Sequential, Tanh

import doorbell_agent

module = Sequential(Conv2d(1, 64, 5, padding=2), Tanh(), Conv2d(64, 32, 3, padding=1), Tanh(),
                    Conv2d(32, 9, 3, padding=1), PixelShuffle(3)).eval().cuda()
example = torch.rand(1, 1, 224, 224, device="cuda")
doorbell_agent.serve(module, example, model="super-resolution", lb="10.201.0.254:4790",
               device="net_af_packet0,iface=eth1", address="10.201.0.11/24")
