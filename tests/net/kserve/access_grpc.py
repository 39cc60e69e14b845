#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Calls of gRPC whose lines in the access log a test knows.

    access_grpc.py MESSAGES ADDRESS

MESSAGES: the folder with inference_pb2.py; the sizes of the call "unary" go to a file `sizes` there.
"""
import os
import sys

sys.path.insert(0, sys.argv[1])
import grpc
import inference_pb2 as pb

SERVICE = '/inference.GRPCInferenceService/'


def method(to, name, response):
    return to.unary_unary(SERVICE + name, request_serializer=lambda m: m.SerializeToString(),
                          response_deserializer=response.FromString)


def echo(data, name, size=None):
    request = pb.ModelInferRequest(model_name='echo', id=name)
    request.inputs.add(name='input0', datatype='UINT8', shape=[size or len(data)])
    request.raw_input_contents.append(data)
    return request


def refused(code, call, message):
    try:
        call(message, timeout=20)
    except grpc.RpcError as error:
        assert error.code() == code, error
        return
    raise AssertionError('no ' + str(code))


with grpc.insecure_channel(sys.argv[2]) as to:
    asked = echo(os.urandom(1000), 'unary')
    answer = method(to, 'ModelInfer', pb.ModelInferResponse)(asked, timeout=20)
    with open(os.path.join(sys.argv[1], 'sizes'), 'w', encoding='ascii') as file:
        file.write(f'{asked.ByteSize()} {answer.ByteSize()}\n')
    stream = to.stream_stream(SERVICE + 'ModelStreamInfer', request_serializer=lambda m: m.SerializeToString(),
                              response_deserializer=pb.ModelStreamInferResponse.FromString)
    messages = [echo(b'one', ''), echo(b'two', ''), echo(b'two', 'wrong', 3 + 1), echo(b'three', '')]
    assert sum(a.error_message != '' for a in stream(iter(messages), timeout=20)) == 1
    refused(grpc.StatusCode.NOT_FOUND, method(to, 'ModelInfer', pb.ModelInferResponse), pb.ModelInferRequest(model_name='x'))
    method(to, 'ServerLive', pb.ServerLiveResponse)(pb.ServerLiveRequest(), timeout=20)
    refused(grpc.StatusCode.UNIMPLEMENTED, method(to, 'NoSuchMethod', pb.ServerLiveResponse), pb.ServerLiveRequest())
