"""Figures that several pages quote are those of the tables in `performance.md`."""

import re

import pytest

from .pages import PAGES, README, prose

_RATES = prose(PAGES / "performance.md").partition("## Rates")[2].partition("\n## ")[0]


def table(first_cell):
    """Rows of the table whose first heading is this, each as heading to number."""
    lines = [line for line in _RATES.splitlines() if line.startswith("|")]
    at = next(at for at, line in enumerate(lines) if cells(line)[0] == first_cell)
    names = cells(lines[at])
    rows = {}
    for line in lines[at + 2 :]:
        name, *figures = cells(line)
        if not any(re.fullmatch(r"[\d,.]+", figure) for figure in figures):
            break
        rows[name.partition(" (")[0]] = {
            column: float(figure.replace(",", ""))
            for column, figure in zip(names[1:], figures, strict=True)
            if figure
        }
    return rows


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


MARIADB, MYSQL = table("MariaDB"), table("MySQL 9.7 to MySQL 9.7")
INDEX = table("MariaDB to Elasticsearch")


def span(column, rows):
    """The least and the greatest figure of a column."""
    figures = [MARIADB[row][column] for row in rows]
    return f"{min(figures):,.0f} to {max(figures):,.0f}"


def test_the_readme_quotes_the_rates_of_today():
    text = " ".join(prose(README).split())
    rows = ("W1", "W2", "W3")
    assert f"setl applied {span('setl', rows)} changes a second to MariaDB" in text
    assert f"its replica applied {span('replica', rows)} and Debezium" in text
    assert f"Debezium {span('Debezium', rows)};" in text


def test_the_readme_quotes_the_latency_of_today():
    page = prose(PAGES / "performance.md")
    (median,) = re.findall(r"\| 20 transactions a second \| (\d+) / \d+ \|", page)
    text = " ".join(prose(README).split())
    assert f"at 20 transactions a second a change was visible {median} ms (median)" in text


def test_the_comparison_with_debezium_is_that_of_the_rates():
    rows = [*MARIADB.values(), *INDEX.values()]
    times = [row["setl"] / row["Debezium"] for row in rows if "Debezium" in row]
    text = " ".join(prose(PAGES / "migrate.md").split())
    assert f"it was {min(times):.1f} to {max(times):.0f} times as fast as Debezium" in text


@pytest.mark.parametrize(
    ("row", "rates"),
    [
        ("MariaDB: W1, W2, W3", MARIADB),
        ("MariaDB: 60 columns", MARIADB),
        ("MySQL: W1, W2, W3", MYSQL),
    ],
)
def test_ratios_are_those_of_the_rates(row, rates):
    line = next(line for line in _RATES.splitlines() if line.startswith(f"| {row} |"))
    names = [
        name if name.startswith("W") else "60 columns, 2 KB"
        for name in row.partition(": ")[2].split(", ")
    ]
    parts = [(rates[name], rates[name]["setl"]) for name in names]
    quoted = [[float(figure) for figure in cell.split(", ")] for cell in cells(line)[1:]]
    computed = [
        [setl / own["replica"] for own, setl in parts],
        [setl / own["binlog"] for own, setl in parts],
        [own["Kafka"] / setl for own, setl in parts],
    ]
    assert quoted == [pytest.approx(column, abs=0.0051) for column in computed]
