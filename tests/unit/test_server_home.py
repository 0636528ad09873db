"""Where programs of unpacked servers are looked for, without a download."""

import pytest

from setl_embedded import MariaDb
from setl_embedded.errors import EmbeddedError
from setl_embedded.server_home import RELEASES, ServerHome
from setl_embedded.unpacking import main


@pytest.mark.parametrize("name", RELEASES)
def test_the_folder_is_in_the_users_cache(monkeypatch, tmp_path, name):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SETL_MYSQL_HOME", raising=False)
    assert ServerHome.of_this_machine(name).folder == tmp_path / "setl" / name


def test_that_of_mysql_can_be_another(monkeypatch):
    monkeypatch.setenv("SETL_MYSQL_HOME", "/srv/mysql")
    assert str(ServerHome.of_this_machine("mysql").folder) == "/srv/mysql"


def test_mariadb_is_the_systems_unless_a_folder_or_a_release_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SETL_MARIADB_HOME", raising=False)
    assert ServerHome.for_mariadb() is None
    monkeypatch.setenv("SETL_MARIADB_HOME", "mariadb-10.5")
    assert _folder_of_mariadb() == tmp_path / "setl" / "mariadb-10.5"
    monkeypatch.setenv("SETL_MARIADB_HOME", "/srv/mariadb")
    assert str(_folder_of_mariadb()) == "/srv/mariadb"


def _folder_of_mariadb():
    home = ServerHome.for_mariadb()
    assert home is not None
    return home.folder


@pytest.mark.parametrize("name", RELEASES)
def test_an_empty_folder_says_how_to_fill_it(tmp_path, name):
    home = ServerHome(tmp_path / name)
    assert not home.filled
    with pytest.raises(EmbeddedError, match=f"deploy/install {name}$"):
        home.program("mysqld")


def test_a_server_of_an_empty_folder_says_so_too(tmp_path):
    server = MariaDb(tmp_path / "data", "m", 1, home=ServerHome(tmp_path / "mariadb-11.8"))
    with pytest.raises(EmbeddedError, match=r"deploy/install mariadb-11\.8$"):
        server.start()


@pytest.mark.parametrize("lib", ["usr/lib", "lib"])
def test_a_program_runs_with_the_loader_and_libraries_beside_it(tmp_path, lib):
    home = ServerHome(tmp_path)
    library = home.root / lib / "x86_64-linux-gnu"
    for path in (library / "ld-linux-x86-64.so.2", home.base / "bin" / "mysqlbinlog"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    loader, option, folders, program = home.program("mysqlbinlog")
    assert (loader, option) == (str(library / "ld-linux-x86-64.so.2"), "--library-path")
    # Older releases of Debian have libraries in both.
    assert folders.split(":") == list(
        dict.fromkeys((str(library), str(home.base / "lib" / "x86_64-linux-gnu")))
    )
    assert program == str(home.base / "bin" / "mysqlbinlog")


def test_nothing_is_unpacked_under_an_unknown_name(capsys):
    assert main(["mariadb-5.5"]) == main([]) == 2
    assert "mariadb-11.8" in capsys.readouterr().err
