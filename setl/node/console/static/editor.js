"use strict";
// The channel editor: what is wrong while somebody types, and what may come next.
(() => {
  const form = document.querySelector("[data-editor]");
  if (!form) return;
  const text = document.getElementById("text");
  const faults = document.getElementById("faults");
  const box = document.getElementById("completions");

  // -- what is wrong ------------------------------------------------------------------------

  const goTo = (line) => {
    const lines = text.value.split("\n");
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    text.focus();
    text.setSelectionRange(start, start + (lines[line - 1] || "").length);
  };
  faults.addEventListener("click", (event) => {
    const line = event.target.dataset?.line;
    if (line) { event.preventDefault(); goTo(Number(line)); }
  });

  const show = (found) => {
    faults.replaceChildren(...(found.length ? found : [{ level: "", text: "The file is right." }]).map((fault) => {
      const item = document.createElement("li");
      if (fault.level) item.className = fault.level;
      if (fault.line) {
        const link = document.createElement("a");
        link.href = "#text";
        link.dataset.line = fault.line;
        link.textContent = `line ${fault.line}`;
        item.append(link, " ");
      }
      if (fault.path) {
        const path = document.createElement("code");
        path.textContent = fault.path;
        item.append(path, " ");
      }
      item.append(fault.text);
      return item;
    }));
  };

  let asked = 0;
  const ask = async () => {
    const mine = ++asked;
    const body = new URLSearchParams({ csrf: form.elements.csrf.value, text: text.value });
    try {
      const answer = await fetch("/console/faults", { method: "POST", body });
      if (answer.ok && mine === asked) show(await answer.json());
      // 401: logged out; 403: logged in again, in another tab. Neither takes the text away.
      if (answer.status === 401) show([{ level: "error", text: "You are logged out. Log in in another tab; your text stays here." }]);
      if (answer.status === 403) show([{ level: "warning", text: "You have logged in again. Press Plan to go on; your text stays here." }]);
    } catch { /* the next key asks again */ }
  };
  let later = 0;
  text.addEventListener("input", () => { clearTimeout(later); later = setTimeout(ask, 500); });

  if (!faults.children.length) ask();

  // -- what may come next -------------------------------------------------------------------

  let schema = null;
  fetch("/console/schema").then((answer) => answer.json()).then((found) => { schema = found; });

  const resolved = (part) => {
    while (part && part.$ref) part = part.$ref.slice(2).split("/").reduce((at, step) => at?.[step], schema);
    return part || {};
  };
  const choices = (part) => {
    const found = resolved(part);
    return [found, ...["anyOf", "oneOf", "allOf"].flatMap((name) => (found[name] || []).flatMap(choices))];
  };
  const below = (parts, key) => parts.flatMap(choices).flatMap((part) => {
    if (key === null) return part.items ? [part.items] : [];
    const found = part.properties?.[key];
    return found ? [found] : [];
  });

  // The keys above the cursor, by indentation, as a path into the schema; null is an item of a list.
  // `inList` says that `limit` is the column of a dash, whose key may stand in the same column.
  const place = (lines, limit, inList) => {
    const path = [];
    for (let n = lines.length - 1; n >= 0 && (limit > 0 || inList); n--) {
      const line = /^(\s*)((?:-\s+)*)([\w.]+)\s*:/.exec(lines[n]);
      if (!line) continue;
      const start = line[1].length, column = start + line[2].length, dashes = column > start;
      if (inList) {
        if (column > limit || (dashes && start === limit)) continue;
        path.unshift(line[3]);
        [limit, inList] = [column, false];
      } else if (column < limit) {
        path.unshift(line[3]);
        limit = column;
      }
      if (dashes && start < limit && column === limit) {
        path.unshift(null);
        [limit, inList] = [start, true];
      }
    }
    return path;
  };

  const proposals = () => {
    if (!schema) return null;
    const before = text.value.slice(0, text.selectionStart);
    const lines = before.split("\n");
    const last = lines.pop();
    const value = /^(\s*(?:-\s+)*)([\w.]+):\s*(\S*)$/.exec(last);
    const head = value || /^(\s*(?:-\s+)*)(\w*)$/.exec(last) || /[{,]\s*(\w*)$/.exec(last);
    if (!head) return null;
    const indent = head.length > 2 ? head[1].length : last.length;
    const item = head.length > 2 && head[1].includes("-");
    const path = place(lines, item ? head[1].search(/-/) : indent, item);
    if (item) path.push(null);
    const parts = path.reduce(below, [schema]);
    if (value) {
      const found = below(parts, value[2]).flatMap(choices).flatMap((part) => part.enum || (part.const !== undefined ? [part.const] : part.type === "boolean" ? [true, false] : []));
      return { typed: value[3], list: [...new Set(found.map(String))].map((name) => ({ name, insert: name, about: "" })) };
    }
    const keys = parts.flatMap(choices).flatMap((part) => Object.entries(part.properties || {}));
    const about = new Map(keys.map(([name, part]) => [name, resolved(part).description || part.description || ""]));
    return { typed: head[head.length > 2 ? 2 : 1], list: [...about].map(([name, words]) => ({ name, insert: `${name}: `, about: words })) };
  };

  let open = null;
  const close = () => {
    box.replaceChildren();
    open = null;
    text.removeAttribute("aria-activedescendant");
  };
  const choose = (n) => {
    const { typed, list } = open;
    const at = text.selectionStart;
    text.setRangeText(list[n].insert, at - typed.length, at, "end");
    close();
    text.focus();
    text.dispatchEvent(new Event("input"));
  };
  const mark = () => {
    [...box.querySelectorAll("li")].forEach((item, n) => item.setAttribute("aria-selected", String(n === open.at)));
    text.setAttribute("aria-activedescendant", `proposal-${open.at}`);
    box.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  };
  const propose = () => {
    const found = proposals();
    const list = found ? found.list.filter((each) => each.name.startsWith(found.typed) && each.name !== found.typed) : [];
    if (!list.length) return close();
    open = { typed: found.typed, list, at: 0 };
    const all = document.createElement("ul");
    all.setAttribute("role", "listbox");
    all.setAttribute("aria-label", "What may come next");
    list.forEach((each, n) => {
      const item = document.createElement("li");
      item.id = `proposal-${n}`;
      item.setAttribute("role", "option");
      const words = document.createElement("span");
      words.className = "about";
      words.textContent = each.about.split(". ")[0];
      item.append(each.name, " ", words);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); choose(n); });
      all.append(item);
    });
    box.replaceChildren(all);
    mark();
  };

  text.addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.key === " ") { event.preventDefault(); propose(); return; }
    if (!open) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); open.at = (open.at + step + open.list.length) % open.list.length; mark(); }
    else if (event.key === "Enter" || event.key === "Tab") { event.preventDefault(); choose(open.at); }
    else if (event.key === "Escape") { event.preventDefault(); close(); }
  });
  text.addEventListener("input", () => { if (open) propose(); });
  text.addEventListener("blur", close);
})();
