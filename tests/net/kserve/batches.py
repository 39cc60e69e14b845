#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a batch, and the same rows one by one.

    batches.py MESSAGES HOST STEP

MESSAGES: the folder with inference_pb2.py. Ends with 0 if all of the step was as expected.
"""
import http.client
import json
import random
import struct
import sys

sys.path.insert(0, sys.argv[1])
import grpc
import inference_pb2 as pb

HOST = sys.argv[2]
PATH = '/v2/models/mlp'
LIMIT = 16
random.seed(7)
ROWS = [(random.getrandbits(64), [random.randrange(17) for _ in range(64)]) for _ in range(LIMIT + 1)]
kept = http.client.HTTPConnection(HOST, 8501, timeout=20)


def ask(method, path, body=None, head=None):
    kept.request(method, path, body, head or {})
    answer = kept.getresponse()
    return answer, answer.read()


def tensors(rows):
    return [{'name': 'id', 'shape': [len(rows), 1], 'datatype': 'UINT64', 'data': [n for n, _ in rows]},
            {'name': 'pixels', 'shape': [len(rows), 64], 'datatype': 'UINT8', 'data': [pixels for _, pixels in rows]}]


def in_json(rows, **more):
    answer, body = ask('POST', PATH + '/infer', json.dumps(dict({'inputs': tensors(rows)}, **more)))
    assert answer.status == 200, body
    return {o['name']: (o['shape'], o['data']) for o in json.loads(body)['outputs']}


ALONE = None


def alone(n):
    """What the first <n> rows get one by one."""
    global ALONE
    ALONE = ALONE or [in_json([row]) for row in ROWS]
    assert all(a['scores'][0] == [1, 10] for a in ALONE)
    return {name: sum((a[name][1] for a in ALONE[:n]), []) for name in ('id', 'class', 'scores')}


def step_describe():
    meta = json.loads(ask('GET', PATH)[1])
    assert [t['shape'] for t in meta['inputs']] == [[-1, 1], [-1, 64]], meta
    config = json.loads(ask('GET', PATH + '/config')[1])
    assert config['max_batch_size'] == LIMIT and [t['dims'] for t in config['input']] == [[1], [64]], config


def step_json():
    for n in (1, 2, 3, LIMIT):
        found, want = in_json(ROWS[:n]), alone(n)
        assert {name: data for name, (_, data) in found.items()} == want, n
        assert [found[name][0] for name in ('id', 'class', 'scores')] == [[n, 1], [n, 1], [n, 10]], found
    # The inputs the other way round, one output.
    inputs = tensors(ROWS[:3])[::-1]
    answer, body = ask('POST', PATH + '/infer', json.dumps({'outputs': [{'name': 'class'}], 'inputs': inputs}))
    assert answer.status == 200 and json.loads(body)['outputs'][0]['data'] == alone(3)['class'], body


def packed(rows):
    return [b''.join(struct.pack('<Q', n) for n, _ in rows), b''.join(bytes(pixels) for _, pixels in rows)]


def step_binary():
    for n in (1, 2, LIMIT):
        for order in (1, -1):
            inputs, raw = tensors(ROWS[:n])[::order], packed(ROWS[:n])[::order]
            for t, data in zip(inputs, raw):
                del t['data']
                t['parameters'] = {'binary_data_size': len(data)}
            text = json.dumps({'inputs': inputs, 'parameters': {'binary_data_output': True}, 'outputs': [
                {'name': 'scores'}, {'name': 'id'}, {'name': 'class', 'parameters': {'binary_data': False}}]}).encode()
            answer, body = ask('POST', PATH + '/infer', text + b''.join(raw), {'Inference-Header-Content-Length': len(text)})
            assert answer.status == 200, body
            at = int(answer.getheader('Inference-Header-Content-Length'))
            outputs, want = json.loads(body[:at])['outputs'], alone(n)
            assert [o['shape'] for o in outputs] == [[n, 10], [n, 1], [n, 1]] and outputs[2]['data'] == want['class']
            assert body[at + 40 * n:] == struct.pack('<%dQ' % n, *want['id'])
            scores = struct.unpack('<%df' % (10 * n), body[at:at + 40 * n])
            assert scores == tuple(struct.unpack('<f', struct.pack('<f', s))[0] for s in want['scores'])
    # A tensor in JSON, the other binary: in the order of the model.
    inputs = tensors(ROWS[:3])
    del inputs[1]['data']
    inputs[1]['parameters'] = {'binary_data_size': 192}
    text = json.dumps({'inputs': inputs}).encode()
    answer, body = ask('POST', PATH + '/infer', text + packed(ROWS[:3])[1], {'Inference-Header-Content-Length': len(text)})
    assert answer.status in (200, 501), body


def asked(rows, typed):
    request = pb.ModelInferRequest(model_name='mlp')
    n = len(rows)
    first = request.inputs.add(name='id', datatype='UINT64', shape=[n, 1])
    second = request.inputs.add(name='pixels', datatype='UINT8', shape=[n, 64])
    if typed:
        first.contents.uint64_contents.extend([number for number, _ in rows])
        second.contents.uint_contents.extend(sum((pixels for _, pixels in rows), []))
    else:
        request.raw_input_contents.extend(packed(rows))
    return request


def step_calls():
    with grpc.insecure_channel(HOST + ':8501') as to:
        infer = to.unary_unary('/inference.GRPCInferenceService/ModelInfer', request_serializer=lambda m: m.SerializeToString(),
                               response_deserializer=pb.ModelInferResponse.FromString)
        for n in (1, 2, LIMIT):
            want = alone(n)
            for typed in (False, True):
                answer = infer(asked(ROWS[:n], typed), timeout=20)
                assert [list(o.shape) for o in answer.outputs] == [[n, 1], [n, 1], [n, 10]], answer
                raw = answer.raw_output_contents
                assert struct.unpack('<%dQ' % n, raw[0]) == tuple(want['id'])
                assert struct.unpack('<%dI' % n, raw[1]) == tuple(want['class']) and len(raw[2]) == 40 * n
        # Many at once.
        futures = [infer.future(asked(ROWS[k % 5:k % 5 + 8], k % 2), timeout=60) for k in range(60)]
        for k, future in enumerate(futures):
            assert struct.unpack('<8Q', future.result().raw_output_contents[0]) == tuple(n for n, _ in ROWS[k % 5:k % 5 + 8])
        try:
            infer(asked(ROWS, False), timeout=20)
            raise AssertionError('too many rows')
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and 'takes 1 to 16' in error.details(), error
        config = to.unary_unary('/inference.GRPCInferenceService/ModelConfig', request_serializer=lambda m: m.SerializeToString(),
                                response_deserializer=pb.ModelConfigResponse.FromString)
        assert config(pb.ModelConfigRequest(name='mlp'), timeout=20).config.max_batch_size == LIMIT


def in_sequence(name):
    """A request of it, by a connection of its own."""
    to = http.client.HTTPConnection(HOST, 8502, timeout=20)
    to.request('POST', PATH + '/infer', json.dumps({'parameters': {'sequence_id': name}, 'inputs': tensors(ROWS[:1])}))
    assert to.getresponse().status == 200
    to.close()


def step_sequence():
    for _ in range(10):
        in_sequence('user-7')
        with grpc.insecure_channel(HOST + ':8502') as to:
            infer = to.unary_unary('/inference.GRPCInferenceService/ModelInfer', request_serializer=lambda m: m.SerializeToString(),
                                   response_deserializer=pb.ModelInferResponse.FromString)
            request = asked(ROWS[:2], False)
            request.parameters['sequence_id'].string_param = 'user-7'
            infer(request, timeout=20)


def step_sequences():
    for number in range(1, 21):
        in_sequence(number * 1000)


def step_errors():
    for body, error in ((json.dumps({'inputs': tensors(ROWS)}), '17 rows, the model takes 1 to 16'),
                        (json.dumps({'inputs': [tensors(ROWS[:2])[0], tensors(ROWS[:3])[1]]}),
                         '3 rows, the inputs before have 2'),
                        (json.dumps({'inputs': [dict(t, shape=[0] + t['shape'][1:], data=[]) for t in tensors(ROWS[:1])]}), '0 rows')):
        answer, said = ask('POST', PATH + '/infer', body)
        assert answer.status == 400 and error in json.loads(said)['error'], said


def step_late():
    answer, body = ask('POST', PATH + '/infer', json.dumps({'parameters': {'timeout': 100000}, 'inputs': tensors(ROWS[:LIMIT])}))
    assert answer.status == 504 and 'row ' in json.loads(body)['error'], (answer.status, body)


globals()['step_' + sys.argv[3]]()
