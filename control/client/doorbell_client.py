# SPDX-License-Identifier: BSD-3-Clause
"""A client of Doorbell: requests to a service over UDP or TCP, with deadlines, cancels and retries.

    from doorbell_client import Client

    with Client("10.0.0.10:8500", protocol="tcp", framing="tagged") as client:
        reply = client.infer(b"...", deadline_ms=500, retries=3)

One file, standard library only, Python 3.9 or later, POSIX. It does what doorbell_client.h says, with the same
names. A Client belongs to one thread at a time. In an event loop: submit(), wait for fileno() (it
changes) or timeout() seconds, process().
"""
from __future__ import annotations

import collections
import errno
import math
import os
import random
import select
import socket
import struct
import time
from typing import Deque, Dict, Iterator, List, Optional, Set, Tuple, Union

__all__ = ["Client", "Request", "Error", "Notice", "NoAnswer", "NotSent", "Disconnected", "NEVER_RAN", "MAY_HAVE_RUN",
           "RAN"]

PENDING, OK = -1, 0
(BUSY, TIMEOUT, WORKER_LOST, MODEL_ERROR, EXPIRED, CANCELLED, DEADLINE, MALFORMED, STOPPING, TOO_LARGE) = range(1, 11)
NO_ANSWER, NOT_SENT, DISCONNECTED, PROTOCOL, REPLY_LARGE, REPLY_CUT = range(256, 262)
NEVER_RAN, MAY_HAVE_RUN, RAN = "never ran", "may have run", "ran"

TEXT = {PENDING: "pending", OK: "ok", BUSY: "busy", TIMEOUT: "timeout", WORKER_LOST: "worker lost",
        MODEL_ERROR: "model error", EXPIRED: "expired", CANCELLED: "cancelled", DEADLINE: "deadline",
        MALFORMED: "malformed", STOPPING: "stopping", TOO_LARGE: "too large", NO_ANSWER: "no answer",
        NOT_SENT: "not sent", DISCONNECTED: "disconnected", PROTOCOL: "protocol error",
        REPLY_LARGE: "reply too large", REPLY_CUT: "reply incomplete"}
RETRIED = {BUSY, STOPPING, NOT_SENT}
RETRIED_IF_IDEMPOTENT = {TIMEOUT, WORKER_LOST, NO_ANSWER, DISCONNECTED}

MAGIC, NOTICE_MAGIC = b"\xdbDBQ\x01", b"\xdbDBN\x01"
HEADER = struct.Struct("!5sBBBQII")  # magic and version, kind, priority/more/code, 0, id, deadline/chunk, length
REQUEST, CANCEL, REPLY, NOTICE = 1, 2, 3, 4
LENGTH_MORE = 256
DEADLINE_DEFAULT_MS = 12000
READS_MAX = 64
PROGRESS = 4096  # bytes of an answer; fewer in silence_ms are none

Bytes = Union[bytes, bytearray, memoryview]


# --- how a request ends -----------------------------------------------------------------------------------------------

def text(status: int) -> str:
    return TEXT.get(status, f"unknown notice {status}")


def ran(status: int) -> str:
    """Did a worker run the request? One of NEVER_RAN, MAY_HAVE_RUN, RAN."""
    if status in (BUSY, EXPIRED, MALFORMED, STOPPING, TOO_LARGE, NOT_SENT):
        return NEVER_RAN
    return RAN if status in (OK, REPLY_LARGE, REPLY_CUT) else MAY_HAVE_RUN


class Error(Exception):
    """A request that got no reply: .status, and .ran, which says whether a worker ran it."""

    def __init__(self, status: int, detail: str = ""):
        super().__init__(text(status) + (f" ({detail})" if detail else ""))
        self.status, self.ran = status, ran(status)


class Notice(Error):
    """The load balancer's word why there is no reply; .status is its code."""


class NoAnswer(Error, TimeoutError):
    """Nothing came by the deadline."""


class NotSent(Error, ConnectionError):
    """No connection, or it ended before the request was written."""


class Disconnected(Error, ConnectionError):
    """The connection ended before the answer."""


def error_of(status: int, detail: str = "") -> Error:
    if 0 < status < NO_ANSWER:
        return Notice(status)
    return {NO_ANSWER: NoAnswer, NOT_SENT: NotSent, DISCONNECTED: Disconnected}.get(status, Error)(status, detail)


class Request:
    """One request: made by Client.submit(), over when .status is not PENDING."""

    def __init__(self, data: Bytes, deadline_ms: Optional[int], retries: int, idempotent: bool, priority: int,
                 try_ms: Optional[int]):
        self.data, self.deadline_ms, self.retries, self.idempotent = data, deadline_ms, retries, idempotent
        self.priority, self.try_ms = priority, try_ms
        self.status, self.tries, self.id = PENDING, 0, 0
        self.chunks: List[bytes] = []  # of the reply, complete ones
        self.length = 0                # bytes of them
        self.detail = ""
        self.until = time.monotonic() + (deadline_ms or DEADLINE_DEFAULT_MS) / 1000
        self.last = NOT_SENT           # how the last try ended
        self.due = math.inf            # the end of this try, or of the wait for the next
        self.waits = False

    def result(self) -> bytes:
        """The reply, or raises an Error."""
        if self.status != OK:
            raise error_of(self.status, self.detail)
        return self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)

    def may_be_sent_again(self, status: int) -> bool:
        if self.tries > self.retries or self.chunks:
            return False
        unknown = TOO_LARGE < status < NO_ANSWER  # treated as TIMEOUT
        return status in RETRIED or self.idempotent and (status in RETRIED_IF_IDEMPOTENT or unknown)


# --- what comes from the network --------------------------------------------------------------------------------------

class ProtocolError(ValueError):
    """Bytes that are not in the framing."""


class Answer:
    """A chunk of a reply, or a notice."""
    __slots__ = ("id", "notice", "chunk", "more", "data")

    def __init__(self, id: Optional[int], notice: int = 0, chunk: Optional[int] = None, more: bool = False,
                 data: bytes = b""):
        self.id, self.notice, self.chunk, self.more, self.data = id, notice, chunk, more, data


def tagged_head(head: bytes) -> Tuple[Answer, int]:
    """The answer that a header begins, and how many bytes follow."""
    magic, kind, six, zero, ident, chunk, length = HEADER.unpack(head)
    if magic == MAGIC and zero == 0:
        if kind == NOTICE and six != 0 and length == 0:
            return Answer(ident, notice=six), 0
        if kind == REPLY and six <= 1:
            return Answer(ident, chunk=chunk, more=six == 1), length
    raise ProtocolError("what came is no header of an answer")


def length_head(head: bytes) -> Tuple[Answer, int]:
    length, status = struct.unpack("<II", head)
    if status not in (0, LENGTH_MORE) and (status > LENGTH_MORE or length != 0):
        raise ProtocolError(f"an answer claims status {status} and {length} bytes")
    if status in (0, LENGTH_MORE):
        return Answer(None, more=status == LENGTH_MORE), length
    return Answer(None, notice=status), 0


class Stream:
    """Cuts the bytes of a connection into answers."""

    def __init__(self, framing: str, max_reply: int):
        self.head_size, self.read_head = (HEADER.size, tagged_head) if framing == "tagged" else (8, length_head)
        self.max_reply, self.buffer = max_reply, bytearray()
        self.answer: Optional[Answer] = None
        self.left = 0

    def feed(self, data: bytes) -> Iterator[Answer]:
        """The answers that are complete with <data>; ProtocolError, and the connection is of no use."""
        self.buffer += data
        while True:
            if self.answer is None:
                if len(self.buffer) < self.head_size:
                    return
                self.answer, self.left = self.read_head(bytes(self.buffer[:self.head_size]))
                del self.buffer[:self.head_size]
                if self.left > self.max_reply:
                    raise ProtocolError(f"a chunk claims {self.left} bytes")
            if len(self.buffer) < self.left:
                return
            answer, self.answer = self.answer, None
            answer.data = bytes(self.buffer[:self.left])
            del self.buffer[:self.left]
            yield answer


def notice_of(datagram: bytes) -> Optional[Tuple[int, bytes]]:
    """Code and id of a notice; None: it is none."""
    if len(datagram) == 16 and datagram[:5] == NOTICE_MAGIC and datagram[5] != 0:
        return datagram[5], datagram[8:]
    return None


def tagged_datagram(datagram: bytes) -> Answer:
    notice = notice_of(datagram)
    if notice:
        return Answer(int.from_bytes(notice[1], "big"), notice=notice[0])
    if len(datagram) < HEADER.size:
        raise ProtocolError("too short")
    answer, length = tagged_head(datagram[:HEADER.size])
    if length != 0 or answer.notice:
        raise ProtocolError("no answer in a datagram")
    answer.data = datagram[HEADER.size:]
    return answer


def split_address(address: str) -> Tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not colon or not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise ValueError(f"{address!r} is not HOST:PORT or [IPv6]:PORT")
    return host, int(port)


# --- the client -------------------------------------------------------------------------------------------------------

class Client:
    """Requests to one service. The address is looked up here; a connection is opened with the first request."""

    def __init__(self, address: str, *, protocol: str = "udp", framing: str = "tagged", in_flight: int = 64,
                 connect_ms: int = 3000, silence_ms: int = 15000, backoff_ms: int = 100, backoff_max_ms: int = 3000,
                 max_reply: int = 1 << 30):
        if (protocol, framing) not in (("udp", "tagged"), ("udp", "datagram"), ("tcp", "tagged"), ("tcp", "length")):
            raise ValueError(f"{protocol} with framing {framing}: udp has tagged and datagram, tcp tagged and length")
        if in_flight < 1:
            raise ValueError("in_flight is less than 1")
        self._tcp, self._framing = protocol == "tcp", framing
        self._in_flight = 1 if framing == "datagram" else in_flight
        self._connect_s, self._silence_s = connect_ms / 1000, silence_ms / 1000
        self._backoff_s, self._backoff_max_s, self._max_reply = backoff_ms / 1000, backoff_max_ms / 1000, max_reply
        kind = socket.SOCK_STREAM if self._tcp else socket.SOCK_DGRAM
        found = socket.getaddrinfo(*split_address(address), type=kind)
        self._addresses = [(family, kind, to) for family, kind, _, _, to in found][:8]
        self._address = self._addresses_failed = 0
        self.counters = dict.fromkeys(("sent", "replies", "notices", "retries", "connections", "ignored"), 0)
        self.error = ""  # the last thing that went wrong with a connection
        self._next_id = int.from_bytes(os.urandom(8), "big")
        self._queue: Deque[Request] = collections.deque()
        self._finished: List[Request] = []
        self._pending: Set[Request] = set()
        self._due = math.inf  # nothing happens to them by time before this
        self._socket: Optional[socket.socket] = None
        self._forget_connection()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- requests

    def infer(self, data: Bytes, *, deadline_ms: Optional[int] = None, retries: int = 0, idempotent: bool = False,
              priority: int = 0, try_ms: Optional[int] = None) -> bytes:
        """The reply to <data>, or raises an Error. <deadline_ms> is over all tries; <retries>: how often it may be
        sent again, after notices that promise that no worker ran it, and after others if it is <idempotent>."""
        return self.wait(self.submit(data, deadline_ms=deadline_ms, retries=retries, idempotent=idempotent,
                                     priority=priority, try_ms=try_ms)).result()

    def stream(self, data: Bytes, **how: object) -> Iterator[bytes]:
        """The chunks of the reply as they come. A request of which a chunk has come is not sent again."""
        request, seen = self.submit(data, **how), 0  # type: ignore[arg-type]
        try:
            while request.status == PENDING or seen < len(request.chunks):
                if seen < len(request.chunks):
                    seen += 1
                    yield request.chunks[seen - 1]
                else:
                    self._turn()
            request.result()
        finally:
            self.cancel(request)
            self._take_back(request)

    def submit(self, data: Bytes, *, deadline_ms: Optional[int] = None, retries: int = 0, idempotent: bool = False,
               priority: int = 0, try_ms: Optional[int] = None) -> Request:
        """Begin a request, without blocking. <data> must not change until it is over."""
        if len(data) == 0 or not 0 <= priority <= 4 or retries < 0 or (deadline_ms is not None and deadline_ms <= 0):
            raise ValueError("a request has bytes, a priority of 0 to 4, and no negative numbers")
        request = Request(data, deadline_ms, retries, idempotent, priority, try_ms)
        if self._state == "open" and not self._sent:
            self._read()  # that the peer closed an idle connection is better known before than after
        self._queue.append(request)
        self._pending.add(request)
        self._due = min(self._due, request.until)
        self._push()
        return request

    def wait(self, request: Request) -> Request:
        """Until <request> is over; others go on meanwhile."""
        while request.status == PENDING:
            self._turn()
        return self._take_back(request)

    def cancel(self, request: Request) -> None:
        """End a pending request at once; with framing "tagged" the load balancer is told."""
        if request.status != PENDING:
            return
        self._forget(request)
        self._pending.discard(request)
        request.status = CANCELLED
        self._push()

    def close(self) -> None:
        """Pending requests end as CANCELLED, without a word to the load balancer."""
        for request in self._pending:
            request.status = CANCELLED
        self._pending.clear()
        self._queue.clear()
        self._forget_connection()

    # --- event loops

    def fileno(self) -> int:
        """The descriptor to wait for, to read and where wants_write() to write; -1: none. It changes."""
        return self._socket.fileno() if self._socket else -1

    def wants_write(self) -> bool:
        return self._state == "connecting" or self._blocked

    def timeout(self) -> Optional[float]:
        """After so many seconds process() wants to be called all the same; None: not before an event."""
        if self._state == "closed" and self._queue:
            return 0.0
        times = [self._due] if self._pending else []
        if self._waiting_since:
            times.append(self._waiting_since + self._silence_s)
        if self._state == "connecting":
            times.append(self._connect_until)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def process(self) -> List[Request]:
        """Do all that can be done without waiting; returns the requests that are over."""
        if self._state == "connecting":
            self._connecting()
        self._read()
        self._ring()
        self._push()
        finished, self._finished = self._finished, []
        return finished

    def _turn(self) -> None:
        wait = self.timeout()
        poller = select.poll()
        if self._socket:
            poller.register(self._socket, (0 if self._state == "connecting" else select.POLLIN) |
                            (select.POLLOUT if self.wants_write() else 0))
        poller.poll(None if wait is None else int(wait * 1000) + (wait > 0))
        self._finished = self.process()

    def _take_back(self, request: Request) -> Request:
        if request in self._finished:
            self._finished.remove(request)
        return request

    # --- the end of a try

    def _finish(self, request: Request, status: int) -> None:
        request.status, request.detail = status, self.error if status >= NO_ANSWER else ""
        self.counters["replies"] += status in (OK, REPLY_LARGE)
        self._pending.discard(request)
        self._finished.append(request)

    def _over(self, request: Request, status: int) -> None:
        """A try of <request>, which is neither in the queue nor sent now, ended with <status>."""
        request.last, request.id, request.due = status, 0, math.inf
        if request.may_be_sent_again(status):
            due = time.monotonic() + self._backoff(request, status)
            if due < request.until:
                request.due, request.waits = due, True
                self._due = min(self._due, due)
                return
        self._finish(request, status)

    def _backoff(self, request: Request, status: int) -> float:
        if status in (WORKER_LOST, NO_ANSWER):
            return 0.0
        wait = min(self._backoff_s * 2 ** min(request.tries - 1, 30), self._backoff_max_s)
        return wait * (1 - random.random() / 2)

    def _forget(self, request: Request) -> None:
        """The caller does not want the answer any more."""
        if request in self._queue:
            self._queue.remove(request)
        elif self._framing == "length":
            pass  # its place stays, for the answer that will come
        elif self._sent.pop(request.id, None) and self._framing == "tagged":
            self._cancels.append(request.id)

    def _ring(self) -> None:
        now = time.monotonic()
        if self._waiting_since and now - self._waiting_since >= self._silence_s:
            self._lost(DISCONNECTED, f"closed: nothing came for {int(self._silence_s * 1000)} ms")
        if now < self._due:
            return
        for request in [r for r in self._pending if min(r.until, r.due) <= now]:
            self._ring_for(request, now)
        # So that many that are due one after the other cost one look per ms.
        self._due = max(now + 0.001, min((min(r.until, r.due) for r in self._pending), default=math.inf))

    def _ring_for(self, request: Request, now: float) -> None:
        sent, waited, request.due, request.waits = request.id != 0, request.waits, math.inf, False
        if now < request.until and waited:
            self._queue.append(request)
            return
        self._forget(request)
        if now >= request.until:
            self._finish(request, NO_ANSWER if sent else request.last)
        elif sent:
            self._over(request, NO_ANSWER)

    # --- connections

    def _forget_connection(self) -> None:
        if self._socket:
            self._socket.close()
        self._socket, self._state, self._blocked, self._used, self._frames = None, "closed", False, False, 0
        self._sent: Dict[int, Request] = {}  # by id; in the order of sending
        self._frame: List[memoryview] = []   # left of what is being written
        self._writing: Optional[Request] = None
        self._cancels: Deque[int] = collections.deque()
        self._stream = Stream(self._framing, self._max_reply)
        self._waiting_since, self._progress = 0.0, 0

    def _complain(self, reason: str) -> None:
        host, port = self._addresses[self._address][2][:2]
        self.error = (f"[{host}]:{port}: " if ":" in str(host) else f"{host}:{port}: ") + reason

    def _lost(self, status: int, reason: str) -> None:
        self._complain(reason)
        sent, writing, useless = self._sent, self._writing, self._frames == 0
        self._forget_connection()
        self._address = (self._address + 1) % len(self._addresses)
        for request in sent.values():
            if request.status == PENDING:
                self._over(request, NOT_SENT if request is writing else status)
        if useless:  # opened, and closed by the peer before anything was sent
            self._fail_queue()

    def _fail_queue(self) -> None:
        """No address can be reached: that was a try for all that wait."""
        queue, self._queue = self._queue, collections.deque()
        for request in queue:
            request.tries += 1
            self._over(request, NOT_SENT)

    def _new_socket(self) -> socket.socket:
        family, kind, to = self._addresses[self._address]
        made = socket.socket(family, kind)
        try:
            made.setblocking(False)
            if self._tcp:
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            error = made.connect_ex(to)
            if error not in (0, errno.EINPROGRESS):
                raise OSError(error, os.strerror(error))
        except BaseException:
            made.close()
            raise
        return made

    def _opened(self) -> None:
        self._state, self._addresses_failed, self._used, self._frames = "open", 0, False, 0
        self.counters["connections"] += 1

    def _connect(self) -> None:
        while True:
            try:
                self._socket = self._new_socket()
                break
            except OSError as error:
                if not self._connect_failed(error.strerror or str(error)):
                    return
        self._state, self._connect_until = "connecting", time.monotonic() + self._connect_s
        if not self._tcp:
            self._opened()

    def _connect_failed(self, reason: str) -> bool:
        """True: there is another address to try."""
        self._complain("no connection: " + reason)
        self._forget_connection()
        self._address = (self._address + 1) % len(self._addresses)
        self._addresses_failed += 1
        if self._addresses_failed < len(self._addresses):
            return True
        self._addresses_failed = 0
        self._fail_queue()
        return False

    def _connecting(self) -> None:
        assert self._socket
        poller = select.poll()
        poller.register(self._socket, select.POLLOUT)
        if poller.poll(0):
            error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error == 0:
                return self._opened()
        elif time.monotonic() < self._connect_until:
            return None
        else:
            error = errno.ETIMEDOUT
        if self._connect_failed(os.strerror(error)):
            self._connect()
        return None

    # --- reading

    def _read(self) -> None:
        for _ in range(READS_MAX):
            if self._state != "open" or not self._socket:
                return
            try:
                data = self._socket.recv(1 << 18)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                return self._lost(DISCONNECTED, f"the connection ended: {error.strerror}")
            if not self._tcp:
                self._take_datagram(data)
            elif data:
                self._take_stream(data)
            else:
                return self._lost(DISCONNECTED, "the connection ended: closed by the peer")

    def _take_stream(self, data: bytes) -> None:
        answered = False
        try:
            for answer in self._stream.feed(data):
                answered = True
                if self._framing == "length":
                    if not self._sent:
                        raise ProtocolError("an answer came that nothing asked for")
                    answer.id = next(iter(self._sent))
                self._take(answer)
        except ProtocolError as error:
            return self._lost(PROTOCOL, f"closed: {error}")
        self._progress += len(data)
        # A trickle counts as silence: it would keep the connection busy with an answer that nobody waits for any more.
        if answered or self._progress >= PROGRESS:
            self._progress = 0
            self._waiting_since = time.monotonic() if self._sent or self._stream.answer else 0.0
        return None

    def _take_datagram(self, datagram: bytes) -> None:
        try:
            self._take(tagged_datagram(datagram) if self._framing == "tagged" else self._plain_datagram(datagram))
        except ProtocolError:
            self.counters["ignored"] += 1

    def _plain_datagram(self, datagram: bytes) -> Answer:
        for ident, request in self._sent.items():
            notice = notice_of(datagram)
            if notice and notice[1] != bytes(request.data[:8]).ljust(8, b"\0"):
                break
            return Answer(ident, notice=notice[0] if notice else 0, data=datagram)
        raise ProtocolError("no answer to this request")

    def _take(self, answer: Answer) -> None:
        request = self._sent.get(answer.id)  # type: ignore[arg-type]
        self.counters["notices"] += answer.notice != 0
        if answer.notice and answer.id == 0:
            self._complain(f"notice to this connection: {text(answer.notice)}")
        if request is None or request.status != PENDING:
            self.counters["ignored"] += 1
            if request is not None and not answer.more:  # `length`: the place of one that was given up
                del self._sent[request.id]
            return
        if answer.notice:
            return self._settle(request, answer.notice)
        if answer.chunk is not None and answer.chunk != len(request.chunks):
            return self._wrong_chunk(request, answer)
        request.length += len(answer.data)
        # A reply without end takes no more memory than max_reply.
        request.chunks.append(answer.data if request.length <= self._max_reply else b"")
        if not answer.more:
            self._settle(request, OK if request.length <= self._max_reply else REPLY_LARGE)
        return None

    def _wrong_chunk(self, request: Request, answer: Answer) -> None:
        if self._tcp:
            raise ProtocolError(f"chunk {answer.chunk} came where {len(request.chunks)} was due")
        if answer.chunk is not None and answer.chunk < len(request.chunks):
            raise ProtocolError("a double")
        self._settle(request, REPLY_CUT)

    def _settle(self, request: Request, status: int) -> None:
        del self._sent[request.id]
        self._over(request, status)

    # --- writing

    def _head(self, request: Request) -> bytes:
        if self._framing == "datagram":
            return b""
        if self._framing == "length":
            return struct.pack("<I", len(request.data))
        left = 0
        if request.deadline_ms is not None:
            left = min(max(int((request.until - time.monotonic()) * 1e6), 1), 0xffffffff)
        return HEADER.pack(MAGIC, REQUEST, request.priority, 0, request.id, left, len(request.data) if self._tcp else 0)

    def _take_id(self) -> int:
        """Ids count up, and none is used again; 0 is no request's."""
        self._next_id = (self._next_id + 1) & 0xffffffffffffffff or 1
        return self._next_id

    def _start(self, request: Request) -> None:
        self.counters["retries"] += request.tries > 0
        self.counters["sent"] += 1
        request.tries += 1
        request.id = self._take_id()
        left = request.until - time.monotonic()
        if not self._tcp and request.idempotent and request.tries <= request.retries:
            share = request.try_ms / 1000 if request.try_ms else left / (request.retries - request.tries + 2)
            request.due = time.monotonic() + share
            self._due = min(self._due, request.due)
        self._sent[request.id], self._writing = request, request
        self._frame = [memoryview(part).cast("B") for part in (self._head(request), request.data) if len(part)]
        self._used, self._frames = True, self._frames + 1
        if self._tcp and not self._waiting_since:
            self._waiting_since = time.monotonic()

    def _next_frame(self) -> bool:
        if self._frame:
            return True
        self._writing = None
        if self._cancels:
            self._frame = [memoryview(HEADER.pack(MAGIC, CANCEL, 0, 0, self._cancels.popleft(), 0, 0))]
            return True
        if not self._queue or len(self._sent) >= self._in_flight:
            return False
        if len(self._queue[0].data) > 0xffffffff:
            self._finish(self._queue.popleft(), TOO_LARGE)
            return self._next_frame()
        if self._framing == "datagram" and self._used and not self._fresh_socket():
            return False
        self._start(self._queue.popleft())
        return True

    def _fresh_socket(self) -> bool:
        """Another port, so that no answer to an earlier request can come there."""
        old = self._socket
        try:
            self._socket = self._new_socket()
        except OSError as error:
            self._lost(DISCONNECTED, f"no socket: {error.strerror}")
            return False
        if old:
            old.close()
        self._used = False
        self.counters["connections"] += 1
        return True

    def _push(self) -> None:
        if self._state == "closed" and self._queue:
            self._connect()
        self._blocked = False
        while self._state == "open" and self._socket and self._next_frame():
            try:
                sent = self._socket.sendmsg(self._frame)
            except (BlockingIOError, InterruptedError):
                self._blocked = True
                return
            except OSError as error:
                self._write_failed(error)
                continue
            while self._frame and sent >= len(self._frame[0]):
                sent -= len(self._frame.pop(0))
            if self._frame:
                self._frame[0] = self._frame[0][sent:]

    def _write_failed(self, error: OSError) -> None:
        if self._tcp:
            self._read()  # what came before the end
            if self._state == "open":
                self._lost(DISCONNECTED, f"the connection ended: {error.strerror}")
            return
        request, frame, self._frame = self._writing, self._frame, []
        try:
            if error.errno != errno.EMSGSIZE and self._socket:
                self._socket.sendmsg(frame)  # the error may have been an earlier datagram's, by ICMP
                return
        except OSError:
            pass
        self._complain(f"cannot send: {error.strerror}")
        if request is not None and self._sent.pop(request.id, None):
            self._over(request, TOO_LARGE if error.errno == errno.EMSGSIZE else NOT_SENT)
