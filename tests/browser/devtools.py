"""A headless Chromium driven through its debugging pipe, with the standard library only.

No port, no driver, no network: commands go to the browser's descriptor 3, answers and events come
from its descriptor 4, each a JSON text with a NUL behind it.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

FLAGS = [
    "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-features=Translate,OptimizationHints,MediaRouter,IsolateSandboxedIframes",
    "--disable-dev-shm-usage", "--force-color-profile=srgb",
    # Names of other machines have no address.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip
PATIENCE = 180  # seconds; the machine may be busy


def command():
    return shutil.which("chromium") or shutil.which("chromium-browser")


def high(descriptor):
    """The same descriptor under another number than 3 and 4."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 20)
    os.close(descriptor)
    return copy


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="toto_browser_")
        its_in, self.out = map(high, os.pipe())
        self.inp, its_out = map(high, os.pipe())
        shell = f'exec "$0" "$@" 3<&{its_in} 4>&{its_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, command(), *FLAGS, f"--user-data-dir={self.folder}/profile", "about:blank"],
            pass_fds=(its_in, its_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self.folder},
        )  # fmt: skip
        os.close(its_in)
        os.close(its_out)
        self.pending = b""
        self.number = 0
        self.answers = {}
        self.pages = {}

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.inp)
        shutil.rmtree(self.folder, ignore_errors=True)

    def pump(self, patience):
        """Reads what has arrived; waits up to `patience` seconds for it."""
        if not select.select([self.inp], [], [], patience)[0]:
            return
        data = os.read(self.inp, 1 << 20)
        if not data:
            raise RuntimeError("the browser has ended")
        *messages, self.pending = (self.pending + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.answers[message["id"]] = message
            elif message.get("sessionId") in self.pages:
                self.pages[message["sessionId"]].event(message["method"], message["params"])

    def call(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data) :]
        until = time.monotonic() + PATIENCE
        while self.number not in self.answers:
            if time.monotonic() > until:
                raise RuntimeError(f"no answer to {method}")
            self.pump(0.1)
        answer = self.answers.pop(self.number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, address, width=1280, height=860, dark=None, touch=False):
        page = Page(self, width, height, dark, touch)
        page.visit(address)
        return page


class Page:
    """One tab, with its requests and console errors."""

    def __init__(self, browser, width, height, dark, touch):
        self.browser = browser
        self.requests, self.problems = [], []
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.call(f"{domain}.enable")
        self.resize(width, height, touch)
        if dark is not None:
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def event(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(item.get("value", "")) for item in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def visit(self, address):
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def resize(self, width, height, touch=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
        self.browser.pages.pop(self.session, None)

    def run(self, script):
        """The value of an expression; promises are waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait(self, script, patience=PATIENCE):
        """Waits until the expression is true; returns its value."""
        until = time.monotonic() + patience
        while True:
            try:
                value = self.run(script)
            except RuntimeError as error:
                if "context" not in str(error).lower():  # absent while the page navigates
                    raise
                value = None
            if value:
                return value
            if time.monotonic() > until:
                raise AssertionError(
                    f"never came true: {script}; the page says {self.run('document.body.innerText')[:600]!r}"
                )
            self.browser.pump(0.03)

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def click(self, selector):
        place = self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(
                kind, place["x"] + place["width"] / 2, place["y"] + place["height"] / 2, button="left", clickCount=1
            )

    def place(self, selector):
        found = json.dumps(selector)
        self.run(f"document.querySelector({found}).scrollIntoView({{block: 'nearest', behavior: 'instant'}})")
        return self.run(f"document.querySelector({found}).getBoundingClientRect().toJSON()")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, name, text="", shift=False):
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
                 "Home": 36, "End": 35, " ": 32}  # fmt: skip
        more = {
            "key": name,
            "windowsVirtualKeyCode": codes.get(name, ord(name[0].upper())),
            "modifiers": 8 if shift else 0,
        }
        if text or name == "Enter":
            more["text"] = text or "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", **{k: v for k, v in more.items() if k != "text"})

    def type(self, text):
        self.call("Input.insertText", text=text)

    def choose(self, selector, value):
        """Sets a field as a user does: the value, then the events."""
        self.run(
            f"(() => {{ const field = document.querySelector({json.dumps(selector)}); field.value = {json.dumps(value)};"
            "for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, {bubbles: true})); })()"
        )

    def drop(self, selector, name, content):
        self.run(
            "(() => { const data = new DataTransfer();"
            f"data.items.add(new File([{json.dumps(content)}], {json.dumps(name)}, {{type: 'text/csv'}}));"
            f"const zone = document.querySelector({json.dumps(selector)});"
            "for (const kind of ['dragover', 'drop'])"
            "zone.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true})); })()"
        )

    def upload(self, selector, *paths):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path) for path in paths])

    def frame_text(self):
        """The text in the page's frame."""
        tree = self.call("Page.getFrameTree")["frameTree"]
        frame = tree["childFrames"][0]["frame"]["id"]
        world = self.call("Page.createIsolatedWorld", frameId=frame)["executionContextId"]
        answer = self.call(
            "Runtime.evaluate", expression="document.body.innerText", contextId=world, returnByValue=True
        )
        return answer["result"].get("value") or ""

    def screenshot(self, path, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        Path(path).write_bytes(base64.b64decode(data))
