"""The Chromium of the system, and what every look at a page of the console has to see."""

import json
from contextlib import contextmanager
from importlib import resources
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

from tests.integration.two_nodes import TOKEN

PROGRAM = "/usr/bin/chromium"
# Nothing that Chromium does by itself reaches a network.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
_POLL_MS = 100


@contextmanager
def chromium():
    """A browser that is there already; none is ever downloaded."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """Somebody with a browser; keeps what the browser complains of and whom it asks.

    Attributes:
        page: the open page.
        complaints: errors and warnings of the browser's console, and of scripts.
        asked: hosts that were asked for anything.
    """

    def __init__(self, browser, **context):
        self.context = browser.new_context(**{"viewport": WIDE, **context})
        self.context.set_default_timeout(60_000)
        self.complaints, self.asked = [], set()
        self.page = self.context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.add(urlsplit(request.url).netloc))

    def _said(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.text} ({message.location})")

    def go(self, address):
        """Open a page and wait until it is live."""
        self.page.goto(address)
        self.page.wait_for_load_state("load")
        if self.page.locator("#live").count():
            self.page.wait_for_selector('#live[data-state="live"]')

    def log_in(self, address, name="anna", token=TOKEN):
        self.page.goto(f"{address}/console/login")
        self.page.fill("[name=name]", name)
        self.page.fill("[name=token]", token)
        self.page.click("button.main")

    def text(self):
        return self.page.inner_text("body")

    def sees(self, text):
        """Wait until a text is on the page: a click returns before the page behind it is there."""
        seen = "text => document.body?.innerText.includes(text)"
        # Not at each frame: the whole page would be laid out sixty times a second.
        self.page.wait_for_function(seen, arg=text, polling=_POLL_MS)

    def violations(self):
        """What axe finds, by the rules of WCAG 2.1 AA and the best practices of its makers."""
        axe = resources.files("axe_playwright_python") / "axe.min.js"
        self.page.evaluate(axe.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run().then(found => JSON.stringify(found.violations))")
        return [
            f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
            for one in json.loads(found)
        ]

    def overflow(self):
        """How many pixels of the page lie beside the screen."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def focused(self):
        """What has the keyboard's focus, in words."""
        return self.page.evaluate(
            "(e => e && (e.getAttribute('aria-label') || e.innerText || e.name || e.tagName))"
            "(document.activeElement)"
        )

    def close(self):
        self.context.close()
