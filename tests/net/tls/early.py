# SPDX-License-Identifier: BSD-3-Clause
"""Early data, which Python's ssl has none of: OpenSSL's own client, over memory."""
import ctypes
import ctypes.util

ssl = ctypes.CDLL(ctypes.util.find_library("ssl"))
crypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
VOID, INT, SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
for of, name, result, *arguments in (
        (ssl, "TLS_client_method", VOID), (ssl, "SSL_CTX_new", VOID, VOID), (ssl, "SSL_new", VOID, VOID),
        (ssl, "SSL_set_bio", None, VOID, VOID, VOID), (ssl, "SSL_connect", INT, VOID), (ssl, "SSL_free", None, VOID),
        (ssl, "SSL_set_shutdown", None, VOID, INT),
        (ssl, "SSL_read", INT, VOID, VOID, INT), (ssl, "SSL_write", INT, VOID, VOID, INT),
        (ssl, "SSL_get_error", INT, VOID, INT), (ssl, "SSL_get1_session", VOID, VOID),
        (ssl, "SSL_SESSION_set_max_early_data", INT, VOID, ctypes.c_uint32), (ssl, "SSL_set_session", INT, VOID, VOID),
        (ssl, "SSL_write_early_data", INT, VOID, VOID, SIZE, VOID), (ssl, "SSL_get_early_data_status", INT, VOID),
        (ssl, "SSL_session_reused", INT, VOID), (crypto, "BIO_s_mem", VOID), (crypto, "BIO_new", VOID, VOID),
        (crypto, "ERR_clear_error", None), (crypto, "BIO_read", INT, VOID, VOID, INT), (crypto, "BIO_write", INT, VOID, VOID, INT)):
    getattr(of, name).restype = result
    getattr(of, name).argtypes = arguments
WANT_READ, REJECTED, SENT_AND_RECEIVED = 2, 1, 3


class Client:
    def __init__(self, sock, session=None):
        self.s, self.into, self.out = sock, crypto.BIO_new(crypto.BIO_s_mem()), crypto.BIO_new(crypto.BIO_s_mem())
        self.tls = ssl.SSL_new(ssl.SSL_CTX_new(ssl.TLS_client_method()))
        ssl.SSL_set_bio(self.tls, self.into, self.out)
        if session:
            ssl.SSL_set_session(self.tls, session)

    def pending(self):
        out = ctypes.create_string_buffer(65536)
        n = crypto.BIO_read(self.out, out, len(out))
        return out.raw[:max(0, n)]

    def until_done(self, call):
        """Calls until it does not want bytes; returns its result."""
        while True:
            # Python's own connections leave their errors here.
            crypto.ERR_clear_error()
            result = call()
            bytes_ = self.pending()
            if bytes_:
                self.s.sendall(bytes_)
            if result > 0:
                return result
            if ssl.SSL_get_error(self.tls, result) != WANT_READ:
                crypto.ERR_clear_error()
                raise ConnectionError("a fault, or the end")
            came = self.s.recv(65536)
            if not came:
                raise EOFError("closed")
            crypto.BIO_write(self.into, came, len(came))

    def connect(self):
        self.until_done(lambda: ssl.SSL_connect(self.tls))

    def early(self, data):
        """The first flight, with <data>; it is not sent."""
        written = SIZE()
        crypto.ERR_clear_error()
        if ssl.SSL_write_early_data(self.tls, data, len(data), ctypes.byref(written)) != 1:
            raise ConnectionError("no early data")
        return self.pending()

    def is_refused(self):
        return ssl.SSL_get_early_data_status(self.tls) == REJECTED

    def is_resumed(self):
        return ssl.SSL_session_reused(self.tls) == 1

    def write(self, data):
        self.until_done(lambda: ssl.SSL_write(self.tls, data, len(data)))

    def read(self, n):
        room, got = ctypes.create_string_buffer(n), b""
        while len(got) < n:
            k = self.until_done(lambda: ssl.SSL_read(self.tls, room, n - len(got)))
            got += room.raw[:k]
        return got

    def session(self, early):
        """The last ticket; with <early> it allows so many bytes of early data, whatever the server said."""
        made = ssl.SSL_get1_session(self.tls)
        ssl.SSL_SESSION_set_max_early_data(made, early)
        return made

    def close(self):
        # Else its session is not taken again.
        ssl.SSL_set_shutdown(self.tls, SENT_AND_RECEIVED)
        ssl.SSL_free(self.tls)
        self.s.close()
