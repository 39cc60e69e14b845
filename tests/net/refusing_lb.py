#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A load balancer, as an agent sees it, that answers the agent's renewals with what goes wrong. It prints what the
agent does next, a line per case, and ends.

usage: refusing_lb.py HOST PORT
"""
import json
import socket
import sys

HELLO = {"n_lcores": 1, "path_mtu": 1024, "address": "10.201.0.1", "max_request": 1472, "max_reply": 1472,
         # 31: 2.4 hours until the agent's RNIC gives up the peer, which is not there
         "worker_timeout_ms": 5000, "ack_timeout": 31, "retry_count": 7, "describe": True, "report": True}
LINK = {"lcore": 0, "qpn": 77, "psn": 1, "reply_rkey": 5, "reply_address": 65536, "reply_stride": 65536,
        "chunk": 65536}
REGISTERED = {"worker": 0, "generation": 1, "path_mtu": 1024, "lease_ms": 300, "links": [LINK]}
RENEWED = {"lease_ms": 300}
ANSWERS = {"agent.hello": HELLO, "agent.register": REGISTERED, "agent.ready": {},
           "agent.attach": {"lease_ms": 300, "state": "active"}}
WRONG = "params.report.gpu.utilization: cannot use 101; give an integer from 0 to 100"


class Agent:
    """The agent, over one connection after another."""

    def __init__(self, listener):
        self.listener = listener
        self.lines = None
        self.accept()

    def accept(self):
        connection, _ = self.listener.accept()
        self.lines = connection.makefile("rw")
        connection.close()

    def call(self):
        """The agent's next call; None when it closed the connection."""
        line = self.lines.readline()
        return json.loads(line) if line else None

    def say(self, call, **answer):
        print(json.dumps({"jsonrpc": "2.0", "id": call["id"], **answer}), file=self.lines, flush=True)

    def fail(self, call, code, message):
        self.say(call, error={"code": code, "message": message})

    def renewal(self):
        """Serve the agent until it renews. The methods that it called before, and the renewal."""
        before = []
        while True:
            call = self.call()
            if call is None:
                before.append("closed")
                self.accept()
            elif call["method"] == "agent.renew":
                return before, call
            else:
                before.append(call["method"])
                self.say(call, result=ANSWERS[call["method"]])


def case(agent, name):
    before, call = agent.renewal()
    report = "with" if "report" in call["params"] else "without"
    print(f"{name}: {' '.join(before) or 'goes on'}, renews {report} a report", flush=True)
    return call


def main():
    with socket.create_server((sys.argv[1], int(sys.argv[2])), reuse_port=True) as listener:
        print("listening", flush=True)
        agent = Agent(listener)
        call = case(agent, "begin")
        for _ in range(3):
            agent.say(call, result=RENEWED | {"refused": WRONG})
            call = case(agent, "report refused")
        agent.fail(call, -32602, WRONG)
        call = case(agent, "renewal refused")
        agent.say(call, result=RENEWED)
        call = case(agent, "renewed")
        agent.fail(call, -32603, "no memory for the answer")
        call = case(agent, "no memory")
        print("this is not JSON", file=agent.lines, flush=True)
        call = case(agent, "not JSON")
        agent.lines.close()
        agent.accept()
        # a connection that ends before its agent.attach is answered, and one that has no memory for it
        agent.call()
        agent.lines.close()
        agent.accept()
        agent.fail(agent.call(), -32603, "no memory for the answer")
        call = case(agent, "attach")
        agent.fail(call, -32003, "this connection has no worker; call agent.register first")
        case(agent, "no worker")


main()
