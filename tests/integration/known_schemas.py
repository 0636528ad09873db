"""A schema like those that MySQL's documentation comes with, made here: a shop of films.

It has what schemas of people have: keys of one column and of several, foreign keys, triggers
that write other tables, views, labels, years, places, texts in several character sets, columns that
the server fills. Rows are made from their numbers. Foreign keys have no actions: `setl check`
refuses those, since MariaDB does not log what they change.
"""

from __future__ import annotations

FILMS = 240
COPIES = 600
RENTALS = 3_000
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
