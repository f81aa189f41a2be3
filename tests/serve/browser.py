"""A headless Chromium, driven by its DevTools protocol through two pipes."""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time


def chromium():
    """The program; None where there is none."""
    return next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)


class Browser:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="cytra-browser-", ignore_cleanup_errors=True)
        to_browser, self.to = os.pipe()
        self.back, from_browser = os.pipe()

        def take_pipes():  # it reads its file 3 and writes its file 4
            given = [os.dup(to_browser), os.dup(from_browser)]
            os.dup2(given[0], 3)
            os.dup2(given[1], 4)

        self.process = subprocess.Popen(
            [chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}/profile", "about:blank"],
            preexec_fn=take_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.rest, self.session = 0, b"", None
        self.said = []  # errors on the console, and what the content policy refused
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "DOM", "Log":
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=1000, height=900, deviceScaleFactor=1, mobile=False)

    def message(self):
        while b"\0" not in self.rest:
            got = os.read(self.back, 1 << 20)
            if not got:
                raise RuntimeError("the browser has ended")
            self.rest += got
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def ask(self, method, **parameters):
        self.number += 1
        words = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            words["sessionId"] = self.session
        os.write(self.to, json.dumps(words).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            if message.get("method") == "Log.entryAdded":
                self.said.append(message["params"]["entry"]["text"])
            if message.get("method") == "Runtime.exceptionThrown":
                self.said.append(message["params"]["exceptionDetails"]["text"])

    def open(self, url):
        self.ask("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def value(self, script):
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, script, seconds=30):
        """Whether a condition of the page comes to hold."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.value(script):
                return True
            time.sleep(0.05)
        return False

    def choose_file(self, selector, path):
        node = self.ask("DOM.querySelector", nodeId=self.ask("DOM.getDocument")["root"]["nodeId"], selector=selector)
        self.ask("DOM.setFileInputFiles", files=[str(path)], nodeId=node["nodeId"])

    def drop_file(self, selector, path):
        x, y = self.value(f"(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('{selector}').getBoundingClientRect())")
        for kind in "dragEnter", "dragOver", "drop":
            self.ask("Input.dispatchDragEvent", type=kind, x=x, y=y,
                     data={"items": [], "files": [str(path)], "dragOperationsMask": 1})

    def save_downloads(self, folder):
        self.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        self.folder.cleanup()
