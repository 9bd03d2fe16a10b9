// Tables of numbers are sorted by a click, or by Enter, on a column's head.
"use strict";
const isNumber = (text) => /^[<>~]?[-+]?\.?\d/.test(text.trim());
const numberOf = (text) => parseFloat(text.trim().replace(/^[<>~]/, "").replace(/,/g, "")) || 0;
Tablesort.extend("number", isNumber, (a, b) => numberOf(b) - numberOf(a));
for (const table of document.querySelectorAll("article table:not([class])")) {
  const cells = [...table.tBodies[0].rows].flatMap((row) => [...row.cells].slice(1));
  if (table.rows.length > 3 && cells.some((cell) => isNumber(cell.textContent))) new Tablesort(table);
}
