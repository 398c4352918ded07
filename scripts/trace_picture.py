#!/usr/bin/env python3
"""Draws a timeline of gpulse run --timeline as a picture, with the trace viewer of Chromium's catapult project:
trace_picture.py TRACE.json PICTURE.png [WIDTH HEIGHT]

Prints what the viewer has understood, and its warnings; fails if there are any. Needs chromium, and Go's source
(Debian: golang-1.19-src, not installed but unpacked below $GO_SOURCE, or installed), which contains the viewer.
"""
import base64
import glob
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

PAGE = """<!DOCTYPE html><html><head>
<script src="/webcomponents.min.js"></script><link rel="import" href="/trace_viewer_full.html">
<style>html, body, tr-ui-timeline-view { margin: 0; width: 100%; height: 100%; overflow: hidden }</style>
<script>
document.addEventListener("WebComponentsReady", async () => {
    const container = document.createElement("track-view-container");
    container.id = "track_view_container";
    const view = document.createElement("tr-ui-timeline-view");
    view.track_view_container = container;
    Polymer.dom(view).appendChild(container);
    view.globalMode = true;
    Polymer.dom(document.body).appendChild(view);
    try {
        const model = new tr.Model();
        const trace = await (await fetch("/trace")).text();
        await new tr.importer.Import(model, new tr.importer.ImportOptions()).importTraces([trace]);
        view.model = model;
        window.seen = {
            seconds: model.bounds.range / 1000,
            warnings: model.importWarnings.map(w => w.type + ": " + w.message),
            processes: Object.values(model.processes).map(p => ({
                name: p.name, counters: Object.keys(p.counters).length,
                slices: Object.values(p.threads).reduce((n, t) => n + t.sliceGroup.length + t.asyncSliceGroup.length, 0),
                marks: p.instantEvents.length})),
        };
    } catch (error) { window.seen = {warnings: [String(error)]}; }
});
</script></head><body></body></html>"""


def find_viewer():
    roots = [os.environ.get("GO_SOURCE", "/nowhere"), "/usr/share", "/usr/local"]
    for root in roots:
        for found in glob.glob(f"{root}/**/cmd/trace/static/trace_viewer_full.html", recursive=True):
            return os.path.dirname(found)
    sys.exit("trace_picture.py: no trace_viewer_full.html; unpack golang-1.19-src, and set GO_SOURCE to that directory")


def serve(trace, viewer):
    """The page, the viewer and the trace, on the loopback interface."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.lstrip("/")
            if name in ("trace_viewer_full.html", "webcomponents.min.js"):
                with open(os.path.join(viewer, name), "rb") as file:
                    body = file.read()
            elif name == "trace":
                with open(trace, "rb") as file:
                    body = file.read()
            else:
                body = PAGE.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript" if name.endswith("js") else "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


class Browser:
    """Chromium without a window, by the DevTools protocol through two pipes."""

    def __init__(self, folder, width, height):
        theirs_in, self.to = os.pipe()
        self.back, theirs_out = os.pipe()
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "sh", "chromium", "--headless=new", "--no-sandbox",
             "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={folder}", f"--window-size={width},{height}",
             "about:blank"], pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.rest, self.session = 0, b"", None

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                more = os.read(self.back, 1 << 20)
                if not more:
                    sys.exit("trace_picture.py: chromium has exited")
                self.rest += more
            text, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                return answer["result"]

    def open(self, address):
        target = self.call("Target.createTarget", url=address)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def value_of(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")


def main():
    trace, picture = sys.argv[1:3]
    width, height = sys.argv[3:5] if len(sys.argv) > 3 else (1600, 1200)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(folder, width, height)
        try:
            browser.open(serve(trace, find_viewer()))
            until = time.monotonic() + 60
            while not (seen := browser.value_of("window.seen")) and time.monotonic() < until:
                time.sleep(0.2)
            time.sleep(1)  # until it is drawn
            with open(picture, "wb") as file:
                file.write(base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"]))
        finally:
            browser.process.kill()
            browser.process.wait()
    print(json.dumps(seen, indent=2, ensure_ascii=False))
    sys.exit(0 if seen and not seen["warnings"] and seen["processes"] else 1)


if __name__ == "__main__":
    main()
