# SPDX-License-Identifier: BSD-3-Clause
"""ResNet-50 with random weights: 3 x 224 x 224 float32 in, 1000 float32 out.

A request of 602,112 bytes does not fit a datagram: its service has protocol tcp,
max_request: 602112 and max_reply: 4000."""
import torch
import torchvision

import doorbell_agent

module = torchvision.models.resnet50(weights=None).eval().cuda()
example = torch.rand(1, 3, 224, 224, device="cuda")
doorbell_agent.serve(module, example, model="resnet50", max_batch=8, lb="10.201.0.254:4790",
                     device="net_af_packet0,iface=eth1", address="10.201.0.11/24")
