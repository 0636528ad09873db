"use strict";
// Sorts the rows of a table by a column, and hides those without a text; both stay as they are
// while the server sends the table again and again.
(() => {
  const sorted = {};

  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const key = cell.dataset.key;
    return key === undefined ? cell.textContent.trim() : key === "" ? -Infinity : Number(key);
  };
  const compared = (one, other) =>
    typeof one === "string" ? one.localeCompare(other, "en", { numeric: true }) : one - other || 0;

  const sort = (table) => {
    const { column, down } = sorted[table.id] ?? {};
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      if (i === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    if (column === undefined) return;
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
    rows.sort(([one], [other]) => (down ? -1 : 1) * compared(one, other));
    body.append(...rows.map(([, row]) => row));
  };

  const filter = (field) => {
    const table = document.getElementById(field.dataset.filters);
    field.closest(".filter").hidden = !table || (table.tBodies[0].rows.length < Number(field.dataset.from) && !field.value);
    if (!table) return;
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    const said = words.length ? `${shown} of ${rows.length}` : "";
    const sign = field.closest(".filter").querySelector("[role=status]");
    if (sign.textContent !== said) sign.textContent = said;
  };

  const prepare = () => {
    for (const table of document.querySelectorAll("table[data-sortable]")) {
      [...table.tHead.rows[0].cells].forEach((head, column) => {
        if (head.querySelector("button")) return;
        const button = document.createElement("button");
        button.type = "button";
        button.className = "sort";
        button.id = `${table.id}-${column}`;
        button.textContent = head.textContent;
        button.addEventListener("click", () => {
          const now = sorted[table.id];
          // Of figures, the largest first.
          const down = now?.column === column ? !now.down : head.classList.contains("number");
          sorted[table.id] = { column, down };
          sort(table);
        });
        head.replaceChildren(button);
      });
      sort(table);
    }
    for (const field of document.querySelectorAll("[data-filters]")) filter(field);
  };

  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-filters]")) filter(event.target);
  });
  document.addEventListener("replaced", prepare);
  prepare();
})();
