"""HTTP/1.1 to a server of Cytra, at a socket of the file system or an address, by the standard library alone."""
from __future__ import annotations

import http.client
import json
import os
import socket
import threading
import urllib.parse

from ._programs import CytraError, InputError


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float | None):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Answer:
    def __init__(self, status: int, headers: http.client.HTTPMessage, body: bytes):
        self.status, self.headers, self.body = status, headers, body


class Channel:
    """One connection, which is opened again where the server has closed it. One request at a time; stop() from another thread ends
    a request, whose work the server then stops, and all that follow until `is_stopped` is cleared."""

    def __init__(self, url: str, token: str | None):
        self._url, self._token = url, token
        self._process = os.getpid()
        self.is_stopped = threading.Event()
        self._connection: http.client.HTTPConnection | None = None

    def _open(self) -> http.client.HTTPConnection:
        if self._url.startswith("unix:"):
            return _UnixConnection(self._url[len("unix:"):], None)
        parts = urllib.parse.urlsplit(self._url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"server: '{self._url}', expected http://HOST:PORT or unix:PATH")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname, parts.port)

    def ask(self, method: str, path: str, body: bytes | list[bytes | memoryview] = b"", headers: dict[str, str] | None = None,
            is_last_word: bool = False) -> Answer:
        """Raises InputError for an answer of 4xx, CytraError for another failure, with the server's text. is_last_word: also when stopped."""
        if self._process != os.getpid():  # the connection of a process before fork() is that one's
            self._process, self._connection, inherited = os.getpid(), None, self._connection
            if inherited is not None:
                inherited.close()
        parts = body if isinstance(body, list) else [body]
        sent = {"Content-Length": str(sum(len(part) for part in parts)), **(headers or {})}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        for is_last in (False, True):
            is_new = self._connection is None
            connection = self._connection = self._connection or self._open()
            try:
                if connection.sock is None:
                    connection.connect()
                connection.auto_open = 0  # or it would connect again after stop()
                if self.is_stopped.is_set() and not is_last_word:
                    raise ConnectionError("stopped")
                connection.request(method, path, iter(parts), sent)
                response = connection.getresponse()
                answer = Answer(response.status, response.headers, response.read())
                break
            except (http.client.HTTPException, OSError) as error:
                self.close()
                # A connection that was idle may have been closed; a new one, or a request under way, is not tried again.
                if self.is_stopped.is_set() or is_new or is_last or not isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)):
                    raise CytraError(f"the server at {self._url} does not answer: {error or type(error).__name__}") from error
        if answer.status < 300:
            return answer
        try:
            text = json.loads(answer.body)["error"]
        except (ValueError, KeyError, TypeError):
            text = f"HTTP {answer.status}"
        raise (InputError if 400 <= answer.status < 500 and answer.status != 408 else CytraError)(text)

    def stop(self) -> None:
        self.is_stopped.set()
        self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            if connection.sock is not None and self._process == os.getpid():  # also ends another thread's wait
                connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        connection.close()
