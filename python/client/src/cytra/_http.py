"""HTTP/1.1 to a server of Cytra, at a socket of the file system or an address, by the standard library alone."""
from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import threading
import urllib.parse
from collections.abc import Iterator

from ._programs import CytraError, InputError, TimedOut


_SLOWEST = 1e5  # bytes a second, as of the server's own limits


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
        self._is_late = False

    def _open(self) -> http.client.HTTPConnection:
        if self._url.startswith("unix:"):
            return _UnixConnection(self._url[len("unix:"):], 30)
        try:
            parts = urllib.parse.urlsplit(self._url)
            kinds: dict[str, type[http.client.HTTPConnection]] = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
            return kinds[parts.scheme if parts.hostname else ""](parts.hostname or "", parts.port, timeout=30)
        except (ValueError, KeyError) as error:
            raise InputError(f"server: '{self._url}', expected http://HOST:PORT or unix:PATH") from error

    @contextlib.contextmanager
    def _within(self, connection: http.client.HTTPConnection, seconds: float) -> Iterator[None]:
        """Ends what is under way when the time is over, also where the server sends now and then a byte."""
        def end() -> None:
            self._is_late = True
            _shut(connection)

        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def ask(self, method: str, path: str, body: bytes | list[bytes | memoryview] = b"", headers: dict[str, str] | None = None,
            is_last_word: bool = False, seconds: float = 30) -> Answer:
        """Raises InputError for an answer of 4xx, CytraError for another failure, with the server's text, and where there is no answer in so
        many seconds, and those that bodies take. is_last_word: also when stopped."""
        if self._process != os.getpid():  # the connection of a process before fork() is that one's
            self._process, self._connection, inherited = os.getpid(), None, self._connection
            if inherited is not None:
                inherited.close()
        parts = body if isinstance(body, list) else [body]
        sent = {"Content-Length": str(sum(len(part) for part in parts)), **(headers or {})}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        self._is_late = False
        for is_last in (False, True):
            is_new = self._connection is None
            connection = self._connection = self._connection or self._open()
            try:
                if connection.sock is None:
                    connection.connect()
                if (sock := connection.sock) is not None:
                    sock.settimeout(None)
                connection.auto_open = 0  # or it would connect again after stop()
                if self.is_stopped.is_set() and not is_last_word:
                    raise ConnectionError("stopped")
                with self._within(connection, seconds + float(sent["Content-Length"]) / _SLOWEST):
                    connection.request(method, path, iter(parts), sent)
                    response = connection.getresponse()
                with self._within(connection, seconds + (response.length or 0) / _SLOWEST):
                    answer = Answer(response.status, response.headers, response.read())
                if self._is_late:
                    raise ConnectionError("cut off")
                break
            except (http.client.HTTPException, OSError, ValueError, OverflowError, MemoryError) as error:
                self.close()
                if self._is_late:
                    raise TimedOut(f"the server at {self._url} does not answer in time") from error
                # A connection that was idle may have been closed; a new one, or a request under way, is not tried again.
                if self.is_stopped.is_set() or is_new or is_last or not isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)):
                    raise CytraError(f"the server at {self._url} does not answer: {error or type(error).__name__}") from error
        if answer.status < 300:
            return answer
        try:
            text = json.loads(answer.body)["error"]
        except (ValueError, KeyError, TypeError, RecursionError):
            text = f"HTTP {answer.status}"
        if answer.status == 504:
            raise TimedOut(text)
        raise (InputError if 400 <= answer.status < 500 and answer.status != 408 else CytraError)(text)

    def stop(self) -> None:
        self.is_stopped.set()
        self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._process == os.getpid():  # also ends another thread's wait
            _shut(connection)
        connection.close()


def _shut(connection: http.client.HTTPConnection) -> None:
    try:
        if (sock := connection.sock) is not None:
            sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
