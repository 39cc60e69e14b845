# SPDX-License-Identifier: BSD-3-Clause
"""The peer of the bench kserve-json: an ASGI application for uvicorn that answers KServe's infer requests
with their own values, as a model that echoes would. Starlette routes them, unless PLAIN is set; ujson, which
is faster than the standard library's json, reads and writes."""
import os

import ujson


def answer(body):
    """Reads the request and writes the response, as bytes."""
    tensor = ujson.loads(body)["inputs"][0]
    return ujson.dumps({"model_name": "echo", "model_version": "1", "outputs": [
        {"name": "output0", "datatype": tensor["datatype"], "shape": tensor["shape"], "data": tensor["data"]}]}).encode()


async def plain(scope, receive, send):
    """The application without a framework."""
    if scope["type"] != "http":
        return
    event = await receive()
    body = event["body"]
    while event["more_body"]:
        event = await receive()
        body += event["body"]
    body = answer(body)
    await send({"type": "http.response.start", "status": 200, "headers": [
        (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})


if os.environ.get("PLAIN"):
    app = plain
else:
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def infer(request):
        """The same in Starlette's terms."""
        return Response(answer(await request.body()), media_type="application/json")

    app = Starlette(routes=[Route("/v2/models/echo/infer", infer, methods=["POST"])])
