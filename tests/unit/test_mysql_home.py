"""Where MySQL's programs are looked for, without a download."""

import pytest

from setl_embedded.errors import EmbeddedError
from setl_embedded.mysql_home import MysqlHome


def test_the_folder_is_the_given_one_else_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SETL_MYSQL_HOME", raising=False)
    assert MysqlHome.of_this_machine().folder == tmp_path / "setl" / "mysql"
    monkeypatch.setenv("SETL_MYSQL_HOME", "/srv/mysql")
    assert str(MysqlHome.of_this_machine().folder) == "/srv/mysql"


def test_an_empty_folder_says_how_to_fill_it(tmp_path):
    home = MysqlHome(tmp_path)
    assert not home.filled
    with pytest.raises(EmbeddedError, match="mysql_unpacking"):
        home.program("mysqld")


def test_a_program_runs_with_the_loader_and_libraries_beside_it(tmp_path):
    home = MysqlHome(tmp_path)
    library = home.base / "lib" / "x86_64-linux-gnu"
    for path in (library / "ld-linux-x86-64.so.2", home.base / "bin" / "mysqlbinlog"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert home.program("mysqlbinlog") == [
        str(library / "ld-linux-x86-64.so.2"),
        "--library-path",
        str(library),
        str(home.base / "bin" / "mysqlbinlog"),
    ]
