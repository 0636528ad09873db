-- The tables of deploy/examples/shop.yaml, empty at both sites.
CREATE DATABASE IF NOT EXISTS shop;

CREATE TABLE IF NOT EXISTS shop.customers (
    id BIGINT NOT NULL PRIMARY KEY,
    name VARCHAR(100) NOT NULL
);

CREATE TABLE IF NOT EXISTS shop.orders (
    id BIGINT NOT NULL PRIMARY KEY,
    customer BIGINT NOT NULL,
    status VARCHAR(20) NOT NULL
);

CREATE TABLE IF NOT EXISTS shop.order_item_1 (
    id BIGINT NOT NULL PRIMARY KEY,
    order_id BIGINT NOT NULL,
    product VARCHAR(100) NOT NULL,
    quantity INT NOT NULL
);
