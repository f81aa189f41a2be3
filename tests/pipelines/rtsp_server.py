#!/usr/bin/env python3
"""Serves a video once over RTSP, on this machine: rtsp_server.py VIDEO. RTP goes through the connection itself (RFC 2326, 10.12).

FFmpeg's program makes the packets, in real time; the first line on stdout is the address. Ends with the video, the client, or after 60 s."""

import os
import pathlib
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

signal.alarm(60)


def packets_of(video, folder):
    """FFmpeg, which sends RTP to a port of ours; that port; what it says of the stream."""
    for _ in range(20):  # RTCP takes the next port
        port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        port.bind(("127.0.0.1", 0))
        if port.getsockname()[1] % 2 == 0:
            break
    port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    sdp = pathlib.Path(folder) / "sdp"
    command = ["ffmpeg", "-v", "error", "-re", "-i", video, "-map", "0:v", "-c", "copy", "-sdp_file", str(sdp), "-f", "rtp"]
    sender = subprocess.Popen([*command, f"rtp://127.0.0.1:{port.getsockname()[1]}"], stdin=subprocess.DEVNULL)
    while not sdp.exists() or "m=video" not in sdp.read_text():
        if sender.poll() is not None:
            sys.exit("ffmpeg has ended")
        time.sleep(0.02)
    return sender, port, sdp.read_text()


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"rtsp://127.0.0.1:{listener.getsockname()[1]}/live", flush=True)
    client = listener.accept()[0]
    with tempfile.TemporaryDirectory() as folder:
        sender, port, sdp = packets_of(sys.argv[1], folder)
    # The description without where FFmpeg sends to: the client is told by SETUP
    lines = [line for line in sdp.splitlines() if line[:2] in ("v=", "o=", "s=", "t=", "m=", "a=")]
    body = "\r\n".join([*lines, "a=control:track"]) + "\r\n"
    heard, is_playing = b"", False
    while True:
        ready = select.select([client, *([port] if is_playing else [])], [], [], 2)[0]
        if port in ready:
            packet = port.recv(65536)
            client.sendall(b"$\0" + struct.pack(">H", len(packet)) + packet)
        if client in ready:
            more = client.recv(65536)
            if not more:
                break
            heard += more
        while True:  # what the client asks; its own RTCP packets are left out
            if heard[:1] == b"$":
                if len(heard) < 4 or len(heard) < 4 + struct.unpack(">H", heard[2:4])[0]:
                    break
                heard = heard[4 + struct.unpack(">H", heard[2:4])[0] :]
                continue
            head, end, rest = heard.partition(b"\r\n\r\n")
            if not end:
                break
            heard = rest
            words = head.decode().split()
            number = next(line.split(":")[1].strip() for line in head.decode().split("\r\n") if line.lower().startswith("cseq"))
            answer = {
                "OPTIONS": "Public: DESCRIBE, SETUP, PLAY, TEARDOWN\r\n\r\n",
                "DESCRIBE": f"Content-Type: application/sdp\r\nContent-Length: {len(body)}\r\n\r\n{body}",
                "SETUP": "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n\r\n",
            }.get(words[0], "Session: 1\r\n\r\n")
            is_possible = words[0] != "SETUP" or b"/TCP" in head
            status = "200 OK" if is_possible else "461 Unsupported transport"
            client.sendall(f"RTSP/1.0 {status}\r\nCSeq: {number}\r\n{answer if is_possible else chr(13) + chr(10)}".encode())
            is_playing = is_playing or words[0] == "PLAY"
        if not ready and sender.poll() is not None:
            break  # all is sent
    sender.kill()
    sender.wait()
    client.close()


main()
