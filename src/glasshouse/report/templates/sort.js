"use strict";
// Sorting by a click on a column's head, filtering by class and text, a hint where a table is cut off, search among all records, and sections that open when they are linked to or printed. Without this script the tables can still be read.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v);
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
  heads.forEach((head, column) => {
    if (head.dataset.fixed !== undefined) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows];
      rows.sort((a, b) => (up ? 1 : -1) * compare(value(a, column), value(b, column)));
      body.append(...rows);
    });
  });
}
const hints = () => {
  for (const scroll of document.querySelectorAll(".scroll")) {
    const hint = scroll.nextElementSibling;
    if (hint && hint.classList.contains("hint")) hint.hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
  }
};
hints();
addEventListener("resize", hints);
for (const tools of document.querySelectorAll(".tools[data-for]")) {
  const rows = [...document.getElementById(tools.dataset.for).tBodies[0].rows];
  const text = tools.querySelector("input");
  const choice = tools.querySelector("select");
  const count = tools.querySelector("output");
  const filter = () => {
    const wanted = text.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = row.textContent.toLowerCase().includes(wanted) && (!choice || choice.selectedIndex === 0 || row.dataset.class === choice.value);
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    count.textContent = `${shown} of ${rows.length} shown`;
  };
  const all = document.getElementById("all-records");
  const asked = () => {
    if (all) all.checked = true; // what is looked for may be below the first rows
    filter();
  };
  text.addEventListener("input", asked);
  if (choice) choice.addEventListener("change", asked);
  tools.hidden = false;
  filter();
}
const find = document.getElementById("find");
if (find) {
  const { heads, rows } = JSON.parse(document.getElementById("searched").content.textContent);
  const [text, count, found] = [find.querySelector("input"), find.querySelector("output"), document.getElementById("found")];
  const table = found.querySelector("table");
  const cells = (kind, values) => values.map((value) => Object.assign(document.createElement(kind), { textContent: value }));
  table.tHead.rows[0].append(...cells("th", heads));
  for (const head of table.tHead.rows[0].cells) head.scope = "col";
  const most = 50; // rows that are shown
  text.addEventListener("input", () => {
    const wanted = text.value.trim().toLowerCase();
    const fitting = wanted ? rows.filter(([id]) => id.toLowerCase().includes(wanted)) : [];
    const exact = fitting.filter(([id]) => id.toLowerCase() === wanted); // before those that only contain it
    const shown = [...exact, ...fitting.filter((row) => !exact.includes(row))].slice(0, most);
    table.tBodies[0].replaceChildren(
      ...shown.map((values) => {
        const row = document.createElement("tr");
        row.append(...cells("td", values));
        return row;
      }),
    );
    found.hidden = !shown.length;
    count.textContent = wanted && `${fitting.length} of ${rows.length} fit${fitting.length > most ? `; the first ${most} are shown` : ""}`;
    hints();
  });
  find.hidden = false;
}
const opened = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.closest("details")) target.closest("details").open = true;
  hints();
};
opened();
addEventListener("hashchange", opened);
document.querySelectorAll("details").forEach((one) => one.addEventListener("toggle", hints));
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));
