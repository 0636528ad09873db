"""The console in a real browser, over two real nodes, through what happens to them."""

import signal
from urllib.parse import urlsplit

import pytest

from tests.integration.chromium import PHONE, Visitor, chromium
from tests.integration.pipelines import execute
from tests.integration.two_nodes import TOKEN, command, is_warm, write
from tests.waiting import eventually


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def visitor(browser):
    visitor = Visitor(browser)
    yield visitor
    visitor.close()


def pages(channel):
    name = channel.name
    return (
        "/",
        f"/console/channels/{name}",
        f"/console/pipelines/{name}/ab",
        "/console/nodes/n2",
        "/console/docs/troubleshooting.md",
        f"/console/letters/{name}/ab",
        f"/console/edit/{name}",
        "/console/edit",
        "/console/actions",
        "/console/login",
    )


def running(channel):
    return all(p["state"] == "running" for p in channel.listed().values())


LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": PHONE, "has_touch": True},
}


def test_every_page_is_quiet_accessible_and_fits(channel, cluster, browser):
    eventually(lambda: running(channel), 60)
    write(channel.a, channel.db, 1, 20)
    address, found = cluster.http["n1"], []
    for look, context in LOOKS.items():
        visitor = Visitor(browser, **context)
        visitor.log_in(address)
        for path in pages(channel):
            visitor.go(address + path)
            found += [f"{look}, {path}: {fault}" for fault in visitor.violations()]
            if visitor.overflow():
                found.append(f"{look}, {path}: is wider than the screen")
        found += [f"{look}: {complaint}" for complaint in visitor.complaints]
        found += [f"{look}: asks {host}" for host in visitor.asked - {urlsplit(address).netloc}]
        visitor.close()
    assert found == []
    by_keyboard(channel, address, browser)


def by_keyboard(channel, address, browser):
    """From the top of the first page to a pipeline's, with no other device."""
    visitor = Visitor(browser)
    page = visitor.page
    visitor.go(f"{address}/")
    arrow, reached = f"a-wide-{channel.name}-ab", []
    for _ in range(100):
        page.keyboard.press("Tab")
        reached.append(visitor.focused())
        if page.evaluate("document.activeElement.id") == arrow:
            break
    assert reached[0] == "Skip to the content"
    assert {"Overview", "Actions", "Channel file", "Log in"} <= set(reached)
    # The picture is made again with each change, and keeps the focus all the same.
    seen = page.evaluate_handle("document.activeElement")
    write(channel.a, channel.db, 1001, 500)
    page.wait_for_function("old => !document.contains(old)", arg=seen)
    assert page.evaluate("document.activeElement.id") == arrow
    sorts_and_filters(channel, page)
    page.locator(f"#{arrow}").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/console/pipelines/{channel.name}/ab")
    visitor.close()


def sorts_and_filters(channel, page):
    """What somebody has chosen outlives that the table is made again."""
    shown = page.locator("#t-pipelines tbody tr:visible th")
    page.focus("#t-pipelines-0")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.locator("#t-pipelines [aria-sort=descending]").inner_text() == "pipeline"
    names = shown.all_inner_texts()  # of other channels, too
    own = [name for name in names if name.startswith(channel.name)]
    assert own == [f"{channel.name}/ba", f"{channel.name}/ab"]
    # The field is there where there are many pipelines.
    page.evaluate("document.querySelector('[data-filters]').dataset.from = 1")
    seen = page.evaluate_handle("document.querySelector('#t-pipelines')")
    write(channel.a, channel.db, 2001, 500)
    page.wait_for_function("old => !document.contains(old)", arg=seen)
    assert page.evaluate("document.activeElement.id") == "t-pipelines-0"
    assert shown.all_inner_texts() == names
    # With the slash, as the letters of the name are random and can have an "ab", too.
    page.fill("#filter-pipelines", f"{channel.name} /AB")
    assert shown.all_inner_texts() == [f"{channel.name}/ab"]
    page.fill("#filter-pipelines", "")


@pytest.fixture
def another_visitor(browser):
    visitor = Visitor(browser)
    yield visitor
    visitor.close()


def finds_and_repairs_a_row(channel, page):
    execute(channel.b, "SET sql_log_bin = 0", f"DELETE FROM {channel.db}.t WHERE id = 7")
    page.click("text=Verify >> nth=0")
    page.wait_for_selector(".job.done", timeout=180_000)
    said = page.locator(".job").first.inner_text()
    assert "1 row differs" in said
    assert f"{channel.db}.t: 7: missing" in said
    page.click("text=Verify and repair…")
    page.click("main button.danger")
    page.wait_for_selector(".job.done:has-text('repair')", timeout=180_000)
    assert "all equal" in page.locator(".job").first.inner_text()
    assert channel.count(channel.b) == 30


def test_a_page_follows_a_failover_and_the_way_back(channel, cluster, visitor, another_visitor):
    eventually(lambda: running(channel), 60)
    leader = channel.leader()
    standby = next(nid for nid in cluster.nodes if nid != leader)
    address, page = cluster.http[standby], visitor.page
    visitor.log_in(address)
    visitor.go(f"{address}/console/pipelines/{channel.name}/ab")
    # All figures are the leader's, on whichever node the page is.
    assert (
        page.locator(".figures div", has_text="leader").locator("dd").first.inner_text() == leader
    )
    write(channel.a, channel.db, 1, 50)
    rows = page.locator(".counters tr", has_text="row changes").locator("td")
    eventually(lambda: rows.inner_text() == "50", 30)
    eventually(lambda: "now" in charted(page), 40)
    # The legend names values before anybody points at the chart.
    legend = page.locator('[data-figure="rows"] .u-series').last
    assert any(digit.isdigit() for digit in legend.inner_text())
    left = another_visitor.page  # of the node that dies
    another_visitor.log_in(cluster.http[leader])
    another_visitor.go(f"{cluster.http[leader]}/console/pipelines/{channel.name}/ab")
    cluster.nodes[leader].signal(signal.SIGKILL)
    try:
        another_visitor.sees(f"Node {leader} does not answer. This page shows what was so at")
        # Nothing that is on it passes for what is so now, and it leads on.
        assert left.locator("#old a").inner_text() == standby
        shown = page.locator(".figures div", has_text="leader").locator("dd").first
        eventually(lambda: shown.inner_text() == standby, 60)
        eventually(lambda: page.locator(".title .state").inner_text().endswith("running"), 60)
        write(channel.a, channel.db, 51, 10)
        eventually(lambda: channel.count(channel.b) == 60, 60)
        assert page.evaluate("performance.getEntriesByType('navigation').length") == 1
        page.locator("#d-history summary").click()
        newest = page.locator("#d-history tbody tr").first
        eventually(lambda: newest.locator("th + td").inner_text() == standby, 30)
        visitor.go(f"{address}/")
        warned = page.locator(".problems li", has_text=f"no node takes over from {standby}").first
        warned.wait_for()
    finally:
        cluster.start_node(leader, urlsplit(cluster.http[leader]).port, master="local[1]")
        eventually(lambda: is_warm(cluster, leader), 180)
    eventually(lambda: warned.count() == 0, 30)
    left.wait_for_selector('#live[data-state="live"]')
    assert left.url.endswith(f"/console/pipelines/{channel.name}/ab")
    assert not left.locator("#old").is_visible()
    # The new process knows nobody: what is left to do on the page is to log in.
    assert left.locator("#r-who").inner_text() == "Log in"
    assert left.locator("text=Failover…").count() == 0
    visitor.go(f"{address}/console/pipelines/{channel.name}/ab")
    page.locator("form", has_text="Switchover").locator("select").select_option(leader)
    page.click("text=Switchover…")
    visitor.sees(f"demoting current leader {standby}?")
    page.click("text=Switch over")
    page.wait_for_url("**/ab")
    eventually(lambda: shown.inner_text() == leader, 60)
    visitor.go(f"{address}/console/actions")
    line = page.locator("tr", has_text="switchover").first
    eventually(lambda: "switchover of" in line.inner_text(), 30)
    assert "anna (127.0.0.1)" in line.inner_text()
    assert visitor.complaints == []
    assert "switchover" in command(cluster, "history", "--actions").stdout


def charted(page):
    return page.locator('[data-figure="rows"]').get_attribute("aria-label")


def edits_a_channel_file(channel, address, visitor):
    """Completion, mistakes while somebody types, check, plan and apply."""
    page = visitor.page
    visitor.go(f"{address}/console/edit/{channel.name}")
    text = page.locator("#text")
    page.wait_for_selector("text=The file is right.")
    written = text.input_value()
    text.fill(written.replace("  tables:", "  batch_rows: many\n  tables:", 1))
    page.wait_for_selector("#faults li.error:has-text('batch_rows')")
    text.fill(written.replace("  tables:", "  batch_ro\n  tables:", 1))
    end = text.input_value().index("batch_ro") + len("batch_ro")
    text.evaluate("(text, at) => { text.focus(); text.setSelectionRange(at, at); }", end)
    page.keyboard.press("Control+Space")
    page.wait_for_selector("#completions [aria-selected=true]:has-text('batch_rows')")
    page.keyboard.press("Enter")
    page.keyboard.type("777")
    page.wait_for_selector("text=The file is right.")
    page.click("text=Check at the servers")
    page.wait_for_selector("text=things are as they should be", timeout=120_000)
    page.click("button:text-is('Plan')")
    page.wait_for_selector("text=batch_rows: 10000 → 777")
    assert "stop cleanly and restart: ab, ba" in visitor.text()
    assert visitor.violations() == []
    before = {p["epoch"] for p in channel.listed().values()}
    page.click("button:text-is('Apply')")
    page.wait_for_selector(f"text=channel {channel.name} stored as revision")
    eventually(lambda: before.isdisjoint({p["epoch"] for p in channel.listed().values()}), 60)
    eventually(lambda: running(channel), 60)


def moves_and_silences(channel, address, visitor):
    """A stopped pipeline goes to the end of its source; alarms are silenced, and told again."""
    page = visitor.page
    visitor.go(f"{address}/console/pipelines/{channel.name}/ab")
    page.wait_for_selector("text=Move…")
    page.fill("input[name=to]", "latest")
    page.click("text=Move…")
    page.wait_for_selector(f"text=move {channel.name}/ab to")
    assert visitor.violations() == []
    page.click("main button.danger")
    page.wait_for_selector(f"text={channel.name}/ab: moved to")
    visitor.go(f"{address}/")
    page.click("summary:has-text('Silence alarms')")
    page.click("button:text-is('Silence')")
    page.wait_for_selector("text=Nothing is told of anything until")
    assert visitor.violations() == []
    # Other tests leave silences of theirs.
    page.click(".row:has-text('told of anything until') button:has-text('End the silence')")
    page.wait_for_selector("text=the silence of anything is over")


def cuts_over_and_back(channel, address, visitor):
    """The source takes no writes any more, once all is equal; then it does again."""
    page = visitor.page
    visitor.go(f"{address}/console/pipelines/{channel.name}/ab")
    page.click("button:text-is('Plan a cut-over')")
    page.wait_for_selector(".job:has-text('Plan a cut-over') >> text=nothing is against it now")
    page.click("text=Cut over…")
    visitor.sees("read-only?")
    page.click("main button.danger")
    try:
        page.wait_for_selector("text=the application may write to the target now", timeout=180_000)
        assert execute(channel.a, "SELECT @@read_only") == ((1,),)
        assert visitor.violations() == []
        page.wait_for_selector("text=Put the cut-over back…")
        page.click("text=Put the cut-over back…")
        visitor.sees("Let its source take writes again?")
        page.click("main button.danger")
        page.wait_for_selector("text=the cut-over is over")
        assert execute(channel.a, "SELECT @@read_only") == ((0,),)
    finally:
        execute(channel.a, "SET GLOBAL read_only = OFF")  # other tests write to this server


def spreads_the_load(channel, cluster, address, visitor):
    """One node leads both pipelines, and then each leads one."""
    leader, page = channel.leader("ba"), visitor.page
    if channel.leader("ab") != leader:
        command(cluster, "switchover", f"{channel.name}/ab", "--to", leader, "--yes")
    eventually(lambda: running(channel), 60)
    visitor.go(f"{address}/")
    page.click("text=Spread the load…")
    page.wait_for_selector(".question:has-text('Are you sure you want to do')")
    assert f"{channel.name}/" in visitor.text()
    assert visitor.violations() == []
    page.click("main button.danger")
    page.wait_for_selector(".job:has-text('Spread the load done')", timeout=120_000)
    assert "0 rows applied again" in page.locator(".job").first.inner_text()
    assert visitor.violations() == []
    eventually(lambda: {p["leader"] for p in channel.listed().values()} == {"n1", "n2"}, 30)


def stops(channel, address, visitor):
    page = visitor.page
    visitor.go(f"{address}/console/channels/{channel.name}")
    page.click("text=Stop…")
    visitor.sees("Nothing is applied any more")
    page.click("main button.danger")
    page.wait_for_selector(".title .state:has-text('stopped')")


def removes(channel, address, visitor):
    stops(channel, address, visitor)
    page = visitor.page
    page.click("text=Remove…")
    page.fill("input[name=typed]", channel.name)
    assert visitor.violations() == []
    page.click("main button.danger")
    page.wait_for_selector(f"text=channel {channel.name} removed")


def test_an_operator_s_week_from_the_console_alone(channel, cluster, visitor):
    eventually(lambda: running(channel), 60)
    address, page = cluster.http["n1"], visitor.page
    visitor.go(f"{address}/console/channels/{channel.name}")
    assert page.locator("text=Pause").count() == 0
    visitor.log_in(address, token="wrong")
    visitor.sees("The token is wrong")
    # The browser complains in its own time, and is heard while something is asked of it.
    eventually(lambda: visitor.text() and visitor.complaints, 30)
    (complaint,) = visitor.complaints
    assert "401" in complaint
    visitor.complaints.clear()
    visitor.log_in(address, token=TOKEN)
    visitor.go(f"{address}/console/channels/{channel.name}")
    page.click("text=Pause")
    page.wait_for_selector("text=is set to PAUSE")
    page.wait_for_selector(".title .state:has-text('paused')")
    page.click("main button:has-text('Resume')")
    page.wait_for_selector(".title .state:has-text('started')")
    write(channel.a, channel.db, 1, 30)
    eventually(lambda: channel.count(channel.b) == 30, 60)
    visitor.go(f"{address}/console/pipelines/{channel.name}/ab")
    page.fill("[name=table]", f"{channel.db}.t")
    page.click("text=Load…")
    page.click("main button.danger")
    page.wait_for_selector("text=30 rows, done")
    finds_and_repairs_a_row(channel, page)
    edits_a_channel_file(channel, address, visitor)
    stops(channel, address, visitor)
    moves_and_silences(channel, address, visitor)
    visitor.go(f"{address}/console/channels/{channel.name}")
    page.click("main button:has-text('Start')")
    page.wait_for_selector(".title .state:has-text('started')")
    eventually(lambda: running(channel), 60)
    spreads_the_load(channel, cluster, address, visitor)
    cuts_over_and_back(channel, address, visitor)
    removes(channel, address, visitor)
    visitor.go(f"{address}/console/actions")
    said = visitor.text()
    for what in (
        "pause", "resume", "load", "verify", "stop", "position reset", "start",
        "rebalance", "cutover --dry-run", "cutover --abort", "remove",
    ):  # fmt: skip
        assert what in said
    assert visitor.complaints == []
