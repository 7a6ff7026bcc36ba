"""Headless Chromium, told what to do through a pipe: pages are waited for as long as they take, not for a time.

    with Browser(folder) as browser:
        browser.open("file:///tmp/page.html")
        browser.until("document.title !== ''")
        browser.picture("page.png")
        assert browser.complaints == []

Protocol: chromedevtools.github.io/devtools-protocol, with --remote-debugging-pipe: JSON that ends in a zero byte, read
by the browser from file descriptor 3 and written to 4.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

with suppress(ImportError):  # not on Windows
    from fcntl import F_DUPFD, fcntl

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 120.0  # seconds that anything may take
_FLAGS = ("--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
_FLAGS += ("--no-first-run", "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe")


def found():
    """Path of Chromium, None where there is none, or no pipes with numbers of their own."""
    paths = (shutil.which(name) for name in NAMES)
    return next(filter(None, paths), None) if os.name == "posix" else None


class Browser:
    """One page. folder: for its profile. width, height [px]; phone: touch, and a page as wide as it says.

    complaints: what the console was told as an error, exceptions that nobody caught, and files that were not there.
    """

    def __init__(self, folder, width=1200, height=800, phone=False, dark=False):
        self.complaints, self._events, self._number, self._bytes = [], [], 0, b""
        from_browser, to_us = os.pipe()
        from_us, to_browser = os.pipe()
        self._in, self._out = from_browser, to_browser

        def connect():
            ends = [fcntl(end, F_DUPFD, 10) for end in (from_us, to_us)]  # 3 and 4 may be among those of the pipes
            for wanted, end in zip((3, 4), ends, strict=True):
                os.dup2(end, wanted)

        command = [found(), *_FLAGS, f"--user-data-dir={Path(folder) / 'profile'}", "about:blank"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(  # pass_fds would want 3 and 4 to be open here, too
            command, stdin=quiet, stdout=quiet, stderr=quiet, close_fds=False, preexec_fn=connect
        )
        for end in (from_us, to_us):
            os.close(end)
        self._session = None
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self._ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, address, whole=True):
        """Go to an address, and wait until the page is there; whole: with all that it shows."""
        self._events.clear()
        told = self._ask("Page.navigate", url=address)
        if "errorText" in told:
            raise OSError(f"{address}: {told['errorText']}")
        deadline = time.monotonic() + PATIENCE
        wanted = "Page.loadEventFired" if whole else "Page.domContentEventFired"
        while not any(x["method"] == wanted for x in self._events):
            self._read(deadline)

    def value(self, expression):
        """What an expression of JavaScript is, in the page."""
        told = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise RuntimeError(f"{expression}: {_text(told['exceptionDetails'])}")
        return told["result"].get("value")

    def until(self, expression, patience=PATIENCE):
        """Wait until an expression is true, and return it; TimeoutError tells which never was."""
        deadline = time.monotonic() + patience
        while not (found := self.value(expression)):
            if time.monotonic() > deadline:
                told = "; ".join(["", *self.complaints])
                raise TimeoutError(f"not so within {patience:g} s: {expression}{told}")
            time.sleep(0.05)
        return found

    def picture(self, path):
        """Write what is seen as a PNG file."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        told = self._ask("Page.captureScreenshot", format="png", optimizeForSpeed=False)
        path.write_bytes(base64.b64decode(told["data"]))

    def version(self):
        """Name and version of the browser."""
        return self._ask("Browser.getVersion")["product"]

    def close(self):
        """End it."""
        try:
            self._session = None
            self._ask("Browser.close")
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            for end in (self._in, self._out):
                os.close(end)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _ask(self, method, **params):
        """The answer to one command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._out, rest) :]
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]

    def _read(self, deadline):
        """The next message; events are kept, and what went wrong in the page among them."""
        while b"\0" not in self._bytes:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            some = os.read(self._in, 1 << 20)
            if not some:
                raise OSError("the browser has ended")
            self._bytes += some
        text, _, self._bytes = self._bytes.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self._events.append(message)
            self.complaints += _complaint(message["method"], message.get("params", {}))
        return message


def _complaint(method, told):
    """[text] of an event that tells of something wrong, [] of others."""
    if method == "Runtime.exceptionThrown":
        return [_text(told["exceptionDetails"])]
    if method == "Runtime.consoleAPICalled" and told["type"] in ("error", "assert"):
        return [" ".join(str(x.get("value", x.get("description", ""))) for x in told["args"])]
    if method == "Log.entryAdded" and told["entry"]["level"] == "error":
        if told["entry"].get("url", "").endswith("/favicon.ico"):  # which nobody but the browser asked for
            return []
        return [f"{told['entry']['text']} {told['entry'].get('url', '')}".strip()]
    return []


def _text(details):
    return details.get("exception", {}).get("description", details.get("text", ""))
