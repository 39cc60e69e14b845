#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""httpx asks by KServe's protocol: JSON, binary, chunks, keep-alive, 100-continue, 4 MiB, many at once. Each answer is the
model's own.

    httpx_client.py DIRECTORY HOST MLP-PORT ECHO-PORT

DIRECTORY: with the model's own answer to a picture, by own_answer.py.
"""
import asyncio
import json
import os
import struct
import sys

import httpx

DIRECTORY, HOST, MLP, ECHO = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
URL = {'mlp': 'http://%s:%d/v2/models/mlp' % (HOST, MLP), 'echo': 'http://%s:%d/v2/models/echo' % (HOST, ECHO)}
JSON_LENGTH = 'Inference-Header-Content-Length'


def read(name):
    with open(os.path.join(DIRECTORY, name), 'rb') as file:
        return file.read()


REQUEST, OWN = read('request'), read('reply')
NUMBER, DIGIT, *SCORES = struct.unpack('<QI10f', OWN)


def port_of(answer):
    """The client's port: the same as long as the connection is kept."""
    return answer.extensions['network_stream'].get_extra_info('client_addr')[1]


def check(answer, status=200):
    assert answer.status_code == status, (answer.status_code, answer.text[:300])
    return answer


def picture():
    return {'id': 'seven', 'inputs': [
        {'name': 'id', 'shape': [1, 1], 'datatype': 'UINT64', 'data': [NUMBER]},
        {'name': 'pixels', 'shape': [1, 64], 'datatype': 'UINT8', 'data': [list(REQUEST[8:])]}]}


def check_picture(answer):
    outputs = {o['name']: o['data'] for o in check(answer).json()['outputs']}
    assert outputs['id'] == [NUMBER] and outputs['class'] == [DIGIT], outputs
    assert struct.pack('<10f', *outputs['scores']) == struct.pack('<10f', *SCORES), outputs


def binary_picture():
    head = {'inputs': [{'name': 'id', 'shape': [1, 1], 'datatype': 'UINT64', 'parameters': {'binary_data_size': 8}},
                       {'name': 'pixels', 'shape': [1, 64], 'datatype': 'UINT8', 'parameters': {'binary_data_size': 64}}],
            'parameters': {'binary_data_output': True}}
    text = json.dumps(head).encode()
    return text + REQUEST, {JSON_LENGTH: str(len(text))}


def behind(answer):
    """The binary tensors of an answer."""
    return check(answer).content[int(answer.headers[JSON_LENGTH]):]


def digits():
    with httpx.Client(timeout=20, limits=httpx.Limits(keepalive_expiry=60)) as client:
        first = client.post(URL['mlp'] + '/infer', json=picture())
        check_picture(first)
        body, fields = binary_picture()
        answer = client.post(URL['mlp'] + '/infer', content=body, headers=fields)
        assert behind(answer) == OWN, 'other bytes than by UDP'
        # A generator: httpx sends chunks.
        answer = client.post(URL['mlp'] + '/infer', content=(body[i:i + 7] for i in range(0, len(body), 7)), headers=fields)
        assert answer.request.headers['transfer-encoding'] == 'chunked' and behind(answer) == OWN
        # Errors and documents on the connection of the first request.
        assert "no model 'x'" in check(client.post(URL['mlp'].replace('mlp', 'x') + '/infer', json=picture()), 404).json()['error']
        wrong = picture()
        wrong['inputs'][1]['shape'] = [1, 63]
        assert '[-1,64]' in check(client.post(URL['mlp'] + '/infer', json=wrong), 400).json()['error']
        assert check(client.get(URL['mlp'])).json()['inputs'][1]['shape'] == [-1, 64]
        assert check(client.get(URL['mlp'] + '/ready')).json() == {'name': 'mlp', 'ready': True}
        assert check(client.request('HEAD', URL['mlp'] + '/config')).content == b''
        last = client.post(URL['mlp'] + '/infer', json=picture())
        check_picture(last)
        assert port_of(last) == port_of(first), 'the connection was not kept'


def large():
    """Raw, with JSON in front, in chunks of several sizes, and with 100-continue; up to 4 MiB."""
    with httpx.Client(timeout=60) as client:
        for size in (1, 4096, 65536, 4 << 20):
            sent = os.urandom(size)
            answer = client.post(URL['echo'] + '/infer', content=sent, headers={JSON_LENGTH: '0'})
            assert behind(answer) == sent, size
            text = json.dumps({'inputs': [{'name': 'input0', 'shape': [size], 'datatype': 'UINT8',
                                           'parameters': {'binary_data_size': size}}],
                               'outputs': [{'name': 'output0', 'parameters': {'binary_data': True}}]}).encode()
            fields = {JSON_LENGTH: str(len(text))}
            assert behind(client.post(URL['echo'] + '/infer', content=text + sent, headers=fields)) == sent, size
            pieces = (sent[i:i + 60000] for i in range(0, size, 60000))
            assert behind(client.post(URL['echo'] + '/infer', content=pieces, headers={JSON_LENGTH: '0'})) == sent, size
            fields = {JSON_LENGTH: '0', 'Expect': '100-continue'}
            assert behind(client.post(URL['echo'] + '/infer', content=sent, headers=fields)) == sent, size
        values = list(os.urandom(100000))
        answer = client.post(URL['echo'] + '/infer', json={'inputs': [
            {'name': 'input0', 'shape': [len(values)], 'datatype': 'UINT8', 'data': values}]})
        assert check(answer).json()['outputs'][0]['data'] == values
        too_long = client.post(URL['echo'] + '/infer', content=bytes((4 << 20) + 1), headers={JSON_LENGTH: '0'})
        assert check(too_long, 413).json()['error']


async def many():
    """400 requests over 20 connections, of both models."""
    limits = httpx.Limits(max_connections=20, max_keepalive_connections=20, keepalive_expiry=60)
    async with httpx.AsyncClient(timeout=60, limits=limits) as client:
        async def one(n):
            if n % 2:
                return check_picture(await client.post(URL['mlp'] + '/infer', json=picture()))
            sent = os.urandom(1 + n * 100)
            answer = await client.post(URL['echo'] + '/infer', content=sent, headers={JSON_LENGTH: '0'})
            assert behind(answer) == sent, n
            return None
        await asyncio.gather(*(one(n) for n in range(400)))


digits()
large()
asyncio.run(many())
