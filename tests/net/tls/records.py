# SPDX-License-Identifier: BSD-3-Clause
"""A client of TLS whose records are its own: the handshake is Python's, over memory, and may be cut anywhere; what follows
is encrypted here, with libcrypto, record by record, so that it may be what no library sends."""
import ctypes
import ctypes.util
import hashlib
import hmac
import ssl
import struct
import tempfile

import told

ALERT, HANDSHAKE, DATA = 21, 22, 23
CLOSE_NOTIFY, USER_CANCELED, NO_RENEGOTIATION = 0, 90, 100
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
crypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
for name in ("EVP_CIPHER_CTX_new", "EVP_aes_128_gcm", "EVP_aes_256_gcm"):
    getattr(crypto, name).restype = ctypes.c_void_p
SET_TAG_LENGTH, GET_TAG = 0x9, 0x10


def seal(key, nonce, also, plain):
    """AES-GCM: what is encrypted, and its tag."""
    c, n = ctypes.c_void_p(crypto.EVP_CIPHER_CTX_new()), ctypes.c_int()
    kind = ctypes.c_void_p(crypto.EVP_aes_128_gcm() if len(key) == 16 else crypto.EVP_aes_256_gcm())
    out, tag = ctypes.create_string_buffer(len(plain) + 16), ctypes.create_string_buffer(16)
    crypto.EVP_EncryptInit_ex(c, kind, None, None, None)
    crypto.EVP_CIPHER_CTX_ctrl(c, SET_TAG_LENGTH, len(nonce), None)
    crypto.EVP_EncryptInit_ex(c, None, None, key, nonce)
    crypto.EVP_EncryptUpdate(c, None, ctypes.byref(n), also, len(also))
    if plain:
        crypto.EVP_EncryptUpdate(c, out, ctypes.byref(n), plain, len(plain))
    crypto.EVP_EncryptFinal_ex(c, out, ctypes.byref(n))
    crypto.EVP_CIPHER_CTX_ctrl(c, GET_TAG, 16, tag)
    crypto.EVP_CIPHER_CTX_free(c)
    return out.raw[:len(plain)] + tag.raw


def expand(secret, label, length, digest):
    """HKDF-Expand-Label without a context, of one block of the hash at most (RFC 8446, 7.1)."""
    label = b"tls13 " + label
    info = struct.pack(">HB", length, len(label)) + label + b"\0"
    return hmac.new(secret, info + b"\1", digest).digest()[:length]


def prf(secret, seed, length):
    """RFC 5246, 5, with SHA-256."""
    a, out = seed, b""
    while len(out) < length:
        a = hmac.new(secret, a, hashlib.sha256).digest()
        out += hmac.new(secret, a + seed, hashlib.sha256).digest()
    return out[:length]


def context(ca, version=None):
    made = ssl.create_default_context(cafile=ca)
    if version:
        made.minimum_version = made.maximum_version = version
    made.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
    return made


def split(records):
    """Plain records, each byte of their content in one of its own."""
    out = b""
    while records:
        kind, version, n = records[:1], records[1:3], struct.unpack(">H", records[3:5])[0]
        for byte in records[5:5 + n]:
            out += kind + version + b"\0\1" + bytes([byte])
        records = records[5 + n:]
    return out


class Client:
    """<sends>: what becomes of the bytes of the handshake."""

    def __init__(self, source, to, made, sends=None, session=None):
        self.s = told.connect(source, to)
        self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.came = b""
        self.sends = sends or self.s.sendall
        with tempfile.NamedTemporaryFile() as log:
            made.keylog_filename = log.name
            self.tls = made.wrap_bio(self.into, self.out, server_hostname=to[0], session=session)
            self.shake()
            self.keys([line.split() for line in open(log.name) if not line.startswith("#")])

    def shake(self):
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.flush()
                self.take()
        self.flush()

    def flush(self):
        if self.out.pending:
            self.sends(self.out.read())

    def take(self):
        data = self.s.recv(65536)
        if not data:
            raise EOFError("closed")
        self.came += data if len(self.came) < 100 else b""
        self.into.write(data)

    def keys(self, log):
        secrets = {words[0]: bytes.fromhex(words[2]) for words in log}
        self.is_13 = self.tls.version() == "TLSv1.3"
        if self.is_13:
            self.digest = hashlib.sha384 if self.tls.cipher()[0].endswith("384") else hashlib.sha256
            self.size = 32 if "256_GCM" in self.tls.cipher()[0] else 16
            self.secret = secrets["CLIENT_TRAFFIC_SECRET_0"]
            return self.renew(self.secret)
        seed = b"key expansion" + self.came[11:43] + bytes.fromhex(log[0][1])
        block = prf(secrets["CLIENT_RANDOM"], seed, 40)
        # Its Finished had number 0.
        self.key, self.iv, self.number = block[:16], block[32:36], 1

    def renew(self, secret):
        self.secret, self.number = secret, 0
        self.key, self.iv = expand(secret, b"key", self.size, self.digest), expand(secret, b"iv", 12, self.digest)

    def record(self, kind, content):
        """The next record."""
        number = struct.pack(">Q", self.number)
        self.number += 1
        if self.is_13:
            content += bytes([kind])
            head = b"\x17\3\3" + struct.pack(">H", len(content) + 16)
            nonce = bytes(a ^ b for a, b in zip(self.iv, b"\0\0\0\0" + number))
            return head + seal(self.key, nonce, head, content)
        also = number + bytes([kind]) + b"\3\3" + struct.pack(">H", len(content))
        sealed = number + seal(self.key, self.iv + number, also, content)
        return bytes([kind]) + b"\3\3" + struct.pack(">H", len(sealed)) + sealed

    def update(self, wants):
        """New keys; <wants>: the other side is to have some, too."""
        record = self.record(HANDSHAKE, b"\x18\0\0\1" + bytes([wants]))
        self.renew(expand(self.secret, b"traffic upd", self.digest().digest_size, self.digest))
        return record

    def send(self, records):
        self.s.sendall(records)

    def read(self, n):
        """Bytes that came, all <n> of them."""
        got = b""
        while len(got) < n:
            try:
                part = self.tls.read(n - len(got))
                if not part:
                    raise EOFError("the end")
                got += part
            except ssl.SSLWantReadError:
                self.take()
        return got

    def ends(self):
        """Waits for the end; returns the alert that came, or "fin", or "reset"."""
        try:
            while True:
                try:
                    if not self.tls.read(65536):
                        return "fin"
                except ssl.SSLWantReadError:
                    self.take()
        except EOFError:
            return "fin"
        except ConnectionError:
            return "reset"
        except ssl.SSLError as error:
            return error.reason

    def close(self):
        self.s.close()
