"""Takes the pictures of the console in ``docs/pages/figures``, with servers and nodes of its own.

To take them again: ``PYTHONPATH=.:deploy python docs/console_figures.py``. It needs MariaDB, the
extra ``dev`` and Chromium, takes three minutes, and says what the sentences below the pictures in
``docs/pages/console.md`` have to say.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, BrowserContext, sync_playwright

from setl_embedded import Stack
from setl_embedded.database import DatabaseServer
from setl_embedded.ports import free_port

FIGURES: Final = Path(__file__).parent / "pages" / "figures"
SIZE: Final = {"width": 1180, "height": 900}
_CHROMIUM: Final = "/usr/bin/chromium"
_SETL: Final = str(Path(sys.executable).with_name("setl"))
_STEADY: Final = 50.0
_NODES: Final = ("n1", "n2")
_TABLES: Final = ("customers", "orders")
_LEADERS: Final = {"search/a-to-index": "n2", "shop/a-to-b": "n2", "shop/b-to-a": "n1"}


def main() -> None:
    """Take all pictures."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="setl-figures-")))
        servers = stack.enter_context(
            Stack(folder / "servers", mariadb=2, zookeeper=1, elasticsearch=True)
        )
        token = secrets.token_hex(8)
        environment = {
            **os.environ,
            "SETL_ZOOKEEPER": servers.zookeeper_hosts,
            "SETL_HTTP_TOKEN": token,
            **{f"SHOP_{n}": s.password for n, s in zip("AB", servers.mariadb, strict=True)},
        }
        for number, server in enumerate(servers.mariadb, 1):
            _create(server)
            writer = threading.Thread(target=_write, args=(server, number), daemon=True)
            stack.callback(writer.join, 10)
            stack.callback(_STOPPED.set)
            writer.start()
        nodes: dict[str, subprocess.Popen[bytes]] = {}
        links: dict[str, str] = {}
        for nid in _NODES:
            links[nid] = f"127.0.0.1:{free_port()}"
            log = stack.enter_context((folder / f"{nid}.log").open("wb"))
            own = {**environment, "SETL_NODE_ID": nid, "SETL_HTTP": links[nid]}
            nodes[nid] = subprocess.Popen([_SETL, "node"], env=own, stdout=log, stderr=log)  # noqa: S603
            stack.callback(nodes[nid].wait, 60)
            stack.callback(nodes[nid].terminate)
        _wait_until_warm(environment)  # else one of them leads everything
        for channel in _channels(servers):
            _store(folder, channel, servers, environment)
        for pipeline, nid in _LEADERS.items():  # a start may take the node that is warm first
            _hand_over(pipeline, nid, environment)
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=_CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        stack.callback(browser.close)
        _take(browser, f"http://{links['n1']}", token, nodes["n2"])


def _take(browser: Browser, console: str, token: str, leader: subprocess.Popen[bytes]) -> None:
    page = _logged_in(browser, console, token, "light").new_page()
    page.set_default_timeout(120_000)
    page.goto(console)
    page.wait_for_function(
        "() => [...document.querySelectorAll('#t-pipelines [data-name=leader]')]"
        ".map(e => e.innerText).sort().join() === 'n1,n2,n2'"
    )
    time.sleep(_STEADY)
    leader.kill()
    killed = time.monotonic()
    page.wait_for_function("() => document.body.innerText.includes('does not answer')")
    page.screenshot(path=FIGURES / "console-overview.png")
    _say(f"no answer: {time.monotonic() - killed:.0f} s after the kill")
    page.wait_for_function(
        "() => document.querySelectorAll('#t-pipelines .state.good').length === 3"
    )
    _say(f"led again: {time.monotonic() - killed:.0f} s after the kill")
    time.sleep(_STEADY)
    page = _logged_in(browser, console, token, "dark").new_page()
    page.goto(f"{console}/console/pipelines/shop/a-to-b")
    page.wait_for_selector('#live[data-state="live"]')
    drawn = "() => /[0-9]/.test(document.querySelector('.u-legend')?.innerText)"
    page.wait_for_function(drawn)
    page.screenshot(path=FIGURES / "console-pipeline.png")
    _say(f"the pipeline: {time.monotonic() - killed:.0f} s after the kill")


def _wait_until_warm(environment: dict[str, str]) -> None:
    for _ in range(120):
        listed = subprocess.run(  # noqa: S603
            [_SETL, "list", "-o", "json"], env=environment, check=False, capture_output=True
        ).stdout
        if listed.count(b'"warm": true') == len(_NODES):
            return
        time.sleep(1)
    raise TimeoutError("the nodes are not warm")


def _hand_over(pipeline: str, nid: str, environment: dict[str, str]) -> None:
    listed = subprocess.run(  # noqa: S603
        [_SETL, "list", "-o", "json"], env=environment, check=True, capture_output=True
    ).stdout
    rows: list[dict[str, Any]] = json.loads(listed)[0]["pipelines"]
    if all((row["pipeline"], row["leader"]) != (pipeline, nid) for row in rows):
        command = [_SETL, "switchover", pipeline, "--to", nid, "--yes"]
        subprocess.run(command, env=environment, check=True)  # noqa: S603


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _logged_in(browser: Browser, console: str, token: str, scheme: Any) -> BrowserContext:
    context = browser.new_context(viewport=SIZE, color_scheme=scheme)  # pyright: ignore[reportArgumentType]
    page = context.new_page()
    for _ in range(100):  # until the node listens
        try:
            page.goto(f"{console}/console/login")
            break
        except Exception:  # noqa: BLE001 - whatever Chromium says of a closed port
            time.sleep(0.5)
    page.fill("[name=name]", "anna")
    page.fill("[name=token]", token)
    page.click("button.main")
    page.wait_for_selector("text=Log out")
    page.close()
    return context


def _create(server: DatabaseServer) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
        for table in _TABLES:
            cursor.execute(f"CREATE TABLE shop.{table} (id BIGINT PRIMARY KEY, v VARCHAR(40))")


_STOPPED: Final = threading.Event()


def _write(server: DatabaseServer, number: int) -> None:
    """About a hundred rows a second, of which no two sites have the same keys."""
    with server.connect() as connection, connection.cursor() as cursor:
        key = number
        while not _STOPPED.wait(0.2):
            rows = [(key + 2 * i, secrets.token_hex(8)) for i in range(10)]
            for table in _TABLES:
                cursor.executemany(f"INSERT INTO shop.{table} VALUES (%s, %s)", rows)
            key += 20


def _channels(servers: Stack) -> list[dict[str, Any]]:
    tables = [{"from": f"shop.{table}"} for table in _TABLES]
    a, b = (
        {"type": "mysql", "host": s.host, "port": s.port, "user": s.user,
         "password": f"${{SHOP_{name}}}"}
        for name, s in zip("AB", servers.mariadb, strict=True)
    )  # fmt: skip
    index = {"type": "elasticsearch", "hosts": [servers.elasticsearch_url]}

    def pipeline(name: str, source: Any, target: Any) -> dict[str, Any]:
        ends = {"source": {**source, "start": "latest"}, "target": target, "tables": tables}
        return {"name": name, **ends}

    return [
        {"channel": "search", "pipelines": [pipeline("a-to-index", a, index)]},
        {
            "channel": "shop",
            "pipelines": [pipeline("a-to-b", a, b), pipeline("b-to-a", b, a)],
        },
    ]


def _store(
    folder: Path, channel: dict[str, Any], servers: Stack, environment: dict[str, str]
) -> None:
    file, name = folder / f"{channel['channel']}.yaml", channel["channel"]
    file.write_text(json.dumps(channel))  # which is YAML
    for server in servers.mariadb:
        location = ("--server", f"{server.host}:{server.port}")
        script = subprocess.run(  # noqa: S603
            [_SETL, "check", "-o", "sql", *location, str(file)],
            env=environment, check=False, capture_output=True, text=True,
        ).stdout  # fmt: skip
        with server.connect() as connection, connection.cursor() as cursor:
            lines = [line for line in script.splitlines() if not line.startswith("--")]
            for statement in filter(str.strip, "\n".join(lines).split(";\n")):
                cursor.execute(statement)
    for command in (["apply", str(file)], ["start", name]):
        subprocess.run([_SETL, *command], env=environment, check=True)  # noqa: S603


if __name__ == "__main__":
    main()
