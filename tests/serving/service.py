"""A separate `toto serve` on a free port of loopback, for tests."""

import os
import re
import subprocess
import tempfile
import time


class Service:
    def __init__(self, toto, *flags, folder=None):
        self.folder = tempfile.TemporaryDirectory(prefix="toto_serve_")
        self.said = open(os.path.join(self.folder.name, "said"), "w+", encoding="utf-8")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("TOTO_", "TORCH"))}
        variables["TOTO_CACHE_DIR"] = self.folder.name + "/cache"
        self.process = subprocess.Popen(
            [toto, "serve", "--port", "0", *flags],
            cwd=folder, stdin=subprocess.DEVNULL, stderr=self.said, env=variables,
        )  # fmt: skip
        until = time.monotonic() + 180
        while not (found := re.search(r"listening on (https?://\S+)\n(?s:.*)ready: ", self.text())):
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server does not start: {self.text()}")
            time.sleep(0.02)
        self.address = found[1]

    def text(self):
        with open(self.said.name, encoding="utf-8") as file:
            return file.read()

    def close(self):
        """Stops it and returns its exit code; its output is deleted."""
        self.process.terminate()
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.said.close()
        self.folder.cleanup()
        return code
