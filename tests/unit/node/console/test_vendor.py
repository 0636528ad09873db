"""Code of others is noted with its version and its licence."""

from pathlib import Path

from setl.node.console.serving.files import files

VENDOR = Path(__file__).parents[4] / "setl" / "node" / "console" / "static" / "vendor"


def test_each_folder_is_noted_and_has_its_licence():
    noted = (VENDOR / "README.md").read_text()
    folders = [path for path in VENDOR.iterdir() if path.is_dir()]
    assert [folder.name for folder in folders] == ["uplot"]
    for folder in folders:
        assert "Permission is hereby granted" in (folder / "LICENSE").read_text()
        assert f"`{folder.name}/LICENSE`" in noted
    version = noted.partition("| uPlot | ")[2].partition(" ")[0]
    script = files()["vendor/uplot/uPlot.iife.min.js"].content.decode()
    assert f"(v{version})" in script.partition("\n")[0]


def test_nothing_that_is_served_names_another_host():
    for name, file in files().items():
        text = file.content.decode()
        # Names of XML's vocabularies and of authors are no addresses that anybody asks.
        for harmless in ("http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"):
            text = text.replace(harmless, "")
        assert "http:" not in text, name
        assert "https:" not in text, name
