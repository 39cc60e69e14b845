#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# infer_http.sh [ADDRESS:PORT]: asks a service with framing kserve which digit a picture shows
picture=0,0,5,13,9,1,0,0,0,0,13,15,10,15,5,0,0,3,15,2,0,11,8,0,0,4,12,0,0,8,8,0,0,5,8,0,0,9,8,0,0,4,11,0,1,12,7,0,0,2,14,5,10,12,0,0,0,0,6,13,10,0,0,0
curl --silent --show-error "http://${1:-10.200.0.100:8502}/v2/models/mlp/infer" --data @- <<JSON
{"inputs": [{"name": "id", "datatype": "UINT64", "shape": [1, 1], "data": [7]},
            {"name": "pixels", "datatype": "UINT8", "shape": [1, 64], "data": [$picture]}],
 "outputs": [{"name": "class"}]}
JSON
