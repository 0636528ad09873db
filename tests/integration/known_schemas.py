"""Schemas like those that MySQL's documentation comes with, made here: a shop of films, a company.

They have what schemas of people have: keys of one column and of several, foreign keys, triggers
that write other tables, views, labels, years, places, texts in several character sets, columns that
the server fills. Rows are made from their numbers. Foreign keys have no actions: `setl check`
refuses those, since MariaDB does not log what they change.
"""

from __future__ import annotations

FILMS = 240
COPIES = 600
RENTALS = 3_000
PEOPLE = 1_500

# In an order in which they can be created; `{n}` is made from a row's number.
SHOP = {
    "language": """language_id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name CHAR(20) NOT NULL,
        last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP""",
    "actor": """actor_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
        first_name VARCHAR(45) NOT NULL, last_name VARCHAR(45) CHARACTER SET latin1 NOT NULL,
        KEY last_name (last_name)""",
    "film": """film_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title VARCHAR(128) NOT NULL,
        description TEXT, release_year YEAR DEFAULT NULL, language_id TINYINT UNSIGNED NOT NULL,
        rental_rate DECIMAL(4,2) NOT NULL DEFAULT 4.99, length SMALLINT UNSIGNED,
        rating ENUM('G','PG','PG-13','R','NC-17') DEFAULT 'G',
        special_features SET('Trailers','Commentaries','Deleted Scenes','Behind the Scenes'),
        last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
        long_title VARCHAR(140) AS (CONCAT(title, ' ', release_year)),
        FOREIGN KEY (language_id) REFERENCES language (language_id)""",
    "film_actor": """actor_id SMALLINT UNSIGNED NOT NULL, film_id SMALLINT UNSIGNED NOT NULL,
        role VARCHAR(40) CHARACTER SET utf16, PRIMARY KEY (actor_id, film_id),
        FOREIGN KEY (actor_id) REFERENCES actor (actor_id),
        FOREIGN KEY (film_id) REFERENCES film (film_id)""",
    "film_text": """film_id SMALLINT UNSIGNED PRIMARY KEY, title VARCHAR(255) NOT NULL,
        description TEXT, FULLTEXT KEY words (title, description)""",
    "address": """address_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
        address VARCHAR(50) NOT NULL, phone VARCHAR(20) NOT NULL, location GEOMETRY NOT NULL""",
    "customer": """customer_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
        email VARCHAR(50) UNIQUE, address_id SMALLINT UNSIGNED NOT NULL,
        active BOOLEAN NOT NULL DEFAULT TRUE, picture BLOB, balance DOUBLE,
        password VARCHAR(40) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin,
        FOREIGN KEY (address_id) REFERENCES address (address_id)""",
    "inventory": """inventory_id MEDIUMINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
        film_id SMALLINT UNSIGNED NOT NULL,
        FOREIGN KEY (film_id) REFERENCES film (film_id)""",
    "rental": """rental_id INT AUTO_INCREMENT PRIMARY KEY, rental_date DATETIME NOT NULL,
        inventory_id MEDIUMINT UNSIGNED NOT NULL, customer_id SMALLINT UNSIGNED NOT NULL,
        return_date DATETIME, UNIQUE KEY once (rental_date, inventory_id, customer_id),
        FOREIGN KEY (inventory_id) REFERENCES inventory (inventory_id)""",
    "payment": """payment_id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, rental_id INT,
        amount DECIMAL(5,2) NOT NULL, payment_date DATETIME(3) NOT NULL, note JSON,
        FOREIGN KEY (rental_id) REFERENCES rental (rental_id)""",
}
SHOP_EXTRAS = (
    (
        "CREATE TRIGGER ins_film AFTER INSERT ON film FOR EACH ROW"
        " INSERT INTO film_text VALUES (new.film_id, new.title, new.description)"
    ),
    (
        "CREATE TRIGGER upd_film AFTER UPDATE ON film FOR EACH ROW"
        " UPDATE film_text SET title = new.title, description = new.description"
        " WHERE film_id = old.film_id"
    ),
    (
        "CREATE TRIGGER del_film AFTER DELETE ON film FOR EACH ROW"
        " DELETE FROM film_text WHERE film_id = old.film_id"
    ),
    "CREATE TRIGGER paid BEFORE INSERT ON payment FOR EACH ROW SET new.payment_date = NOW(3)",
    (
        "CREATE VIEW film_list AS SELECT film_id, title, name FROM film JOIN language"
        " USING (language_id)"
    ),
)
SHOP_ROWS = {
    "language": (3, "({n}, ELT({n}, 'English', 'Français', '日本語'), '2006-02-15 05:02:19')"),
    "actor": (200, "({n}, CONCAT('Zoë ', {n}), CONCAT('Müller', {n}))"),
    "film": (
        FILMS,
        (
            "({n}, CONCAT('Film ''', {n}, ' 🎬'), REPEAT('O''Brien \\\\ ', {n} % 9),"
            " 1950 + {n} % 80,"
            " 1 + {n} % 3, 0.99 + {n} % 5, NULLIF({n} % 180, 0), 1 + {n} % 5, {n} % 16,"
            " '2006-02-15 05:03:42')"
        ),
    ),
    "film_actor": (900, "(1 + {n} % 200, 1 + {n} * 7 % 239, CONCAT('Rôle ', {n}))"),
    "address": (
        300,
        "({n}, CONCAT({n}, ' Straße'), '', POINT({n}, -{n} - 0.25))",
    ),
    "customer": (
        300,
        (
            "({n}, NULLIF(CONCAT('C', {n}, '@example.org'), 'C7@example.org'), {n}, {n} % 2,"
            " UNHEX(REPEAT('00ff27', {n} % 50)), {n} / 7e0, LEFT(SHA2({n}, 256), 40))"
        ),
    ),
    "inventory": (COPIES, "({n}, 1 + {n} % 239)"),
    "rental": (
        RENTALS,
        (
            "({n}, '2005-05-24 22:53:30' + INTERVAL {n} MINUTE, 1 + {n} % 600, 1 + {n} % 300,"
            " IF({n} % 5, '2005-07-01' + INTERVAL {n} HOUR, NULL))"
        ),
    ),
    "payment": (
        RENTALS,
        "({n}, {n}, {n} % 900 / 100, NOW(), JSON_OBJECT('n', {n}, 'é', '\"'))",
    ),
}
COMPANY = {
    "employees": """emp_no INT PRIMARY KEY, birth_date DATE NOT NULL,
        first_name VARCHAR(14) NOT NULL, last_name VARCHAR(16) NOT NULL,
        gender ENUM('M','F') NOT NULL, hire_date DATE NOT NULL""",
    "departments": """dept_no CHAR(4) PRIMARY KEY, dept_name VARCHAR(40) NOT NULL UNIQUE""",
    "dept_emp": """emp_no INT NOT NULL, dept_no CHAR(4) NOT NULL, from_date DATE NOT NULL,
        to_date DATE NOT NULL, PRIMARY KEY (emp_no, dept_no),
        FOREIGN KEY (emp_no) REFERENCES employees (emp_no),
        FOREIGN KEY (dept_no) REFERENCES departments (dept_no)""",
    "titles": """emp_no INT NOT NULL, title VARCHAR(50) NOT NULL, from_date DATE NOT NULL,
        to_date DATE, PRIMARY KEY (emp_no, title, from_date),
        FOREIGN KEY (emp_no) REFERENCES employees (emp_no)""",
    "salaries": """emp_no INT NOT NULL, salary INT NOT NULL, from_date DATE NOT NULL,
        to_date DATE NOT NULL, PRIMARY KEY (emp_no, from_date),
        FOREIGN KEY (emp_no) REFERENCES employees (emp_no)""",
}
COMPANY_EXTRAS = (
    (
        "CREATE VIEW dept_emp_latest_date AS SELECT emp_no, MAX(from_date) AS from_date"
        " FROM dept_emp GROUP BY emp_no"
    ),
)
COMPANY_ROWS = {
    "employees": (
        PEOPLE,
        (
            "(10000 + {n}, '1952-02-01' + INTERVAL {n} DAY, CONCAT('N', {n}), 'Facello',"
            " 1 + {n} % 2, '1985-01-01' + INTERVAL {n} DAY)"
        ),
    ),
    "departments": (9, "(CONCAT('d00', {n}), CONCAT('Department ', {n}))"),
    "dept_emp": (
        PEOPLE,
        "(10000 + {n}, CONCAT('d00', 1 + {n} % 8), '1990-01-01', '9999-01-01')",
    ),
    "titles": (
        PEOPLE,
        (
            "(10000 + {n}, ELT(1 + {n} % 3, 'Engineer', 'Senior Engineer', 'Staff'), '1990-01-01',"
            " '9999-01-01')"
        ),
    ),
    "salaries": (
        6_000,
        (
            "(10001 + {n} % 1500, 40000 + {n}, '1986-06-26' + INTERVAL {n} DIV 1500 YEAR,"
            " '9999-01-01')"
        ),
    ),
}


def changes_of_shop(draw, number):
    """Statements of one transaction: values, deletes, keys, rows whose triggers write others."""
    film, rental = draw.randrange(1, FILMS), draw.randrange(1, RENTALS)
    other = draw.randrange(1, RENTALS)
    return draw.choice(
        [
            [f"UPDATE film SET title = CONCAT('Changed ', {number}) WHERE film_id = {film}"],
            [f"INSERT INTO film (title, language_id, special_features) VALUES ('{number}', 2, 5)"],
            [
                f"DELETE FROM payment WHERE rental_id = {rental}",
                f"DELETE FROM rental WHERE rental_id = {rental}",
            ],
            # Keys of two rows change places, by way of a third.
            [
                f"DELETE FROM payment WHERE rental_id IN ({rental}, {other})",
                f"UPDATE IGNORE rental SET rental_id = -{rental} WHERE rental_id = {rental}",
                f"UPDATE IGNORE rental SET rental_id = {rental} WHERE rental_id = {other}",
                f"UPDATE IGNORE rental SET rental_id = {other} WHERE rental_id = -{rental}",
            ],
            [
                (
                    f"UPDATE IGNORE film_actor SET film_id = {film}, actor_id = {film % 199 + 1}"
                    f" WHERE actor_id = {rental % 199 + 1} LIMIT 1"
                )
            ],
            [
                (
                    "INSERT IGNORE INTO rental (rental_date, inventory_id, customer_id)"
                    f" VALUES (NOW(), {number % 500 + 1}, 2)"
                ),
                (
                    "INSERT INTO payment (rental_id, amount, payment_date) VALUES"
                    " (LAST_INSERT_ID(), 1.5, NOW())"
                ),
            ],
            [
                f"UPDATE customer SET email = NULL WHERE customer_id = {film % 299 + 1}",
                (
                    f"UPDATE IGNORE customer SET email = 'c{film}@example.org'"
                    f" WHERE customer_id = {rental % 299 + 1}"
                ),
            ],
            [
                (
                    f"UPDATE address SET location = ST_GeomFromText('POINT({number} 0)')"
                    f" WHERE address_id = {film}"
                )
            ],
        ]
    )


def changes_of_company(draw, number):
    """Statements of one transaction."""
    who, other = (10_001 + draw.randrange(PEOPLE) for _ in range(2))
    return draw.choice(
        [
            [f"UPDATE salaries SET salary = salary + 1 WHERE emp_no = {who}"],
            [f"DELETE FROM salaries WHERE emp_no = {who} LIMIT 2"],
            [f"UPDATE IGNORE titles SET title = 'Manager {number}' WHERE emp_no = {who}"],
            [f"UPDATE IGNORE dept_emp SET dept_no = 'd009' WHERE emp_no = {who}"],
            [
                f"DELETE FROM {table} WHERE emp_no = {who}"
                for table in ("salaries", "titles", "dept_emp", "employees")
            ],
            [
                (
                    f"INSERT IGNORE INTO employees VALUES ({other + 5_000}, '1970-01-01', 'new',"
                    " 'x', 'F', '2026-01-01')"
                ),
                f"INSERT IGNORE INTO salaries VALUES ({other + 5_000}, 1, CURDATE(), '9999-01-01')",
            ],
        ]
    )
