// Before and after: one row for each thing that can be counted or measured.

function tableRows(point) {
  const rows = [];
  const sizes = [["nodes", "n_nodes"], ["leaves", "n_leaves"], ["trees", "n_trees"], ["depth", "depth"], ["features", "n_features"]];
  for (const [label, column] of sizes) {
    rows.push({ label, before: count(table[column][0]), after: count(table[column][point]), left: ratio(column, point) });
  }
  const exact = point === 0 || point === report.point;
  rows.push({ label: "bytes, saved", before: bytes(table.bytes[0]), after: (exact ? "" : "≈ ") + bytes(table.bytes[point]), left: ratio("bytes", point) });
  if (!costIsSize) {
    rows.push({ label: costName === "features" ? "feature cost per row" : `cost (${costName})`, before: number(table.cost[0]), after: number(table.cost[point]), left: ratio("cost", point) });
  }
  if (evaluated) {
    const error = table.loss_se[point];
    rows.push({ label: `loss on rows to choose by (${report.facts.loss})`, before: number(table.loss[0]),
      after: number(table.loss[point]), extra: error ? ` ± ${number(error, 2)}` : "", left: ratio("loss", point) });
  }
  const what = riskIsLoss ? `loss on rows pruned by (${report.facts.loss})` : "loss of trees one by one, on rows pruned by";
  rows.push({ label: what, before: number(table.risk[0]), after: number(table.risk[point]), left: ratio("risk", point) });
  if (evaluated) rows.push({ label: "predictions changed", before: "", after: share(table.changed[point]), left: "" });
  if (report.measured) rows.push(...measuredRows(point));
  return rows;
}

function measuredRows(point) {
  const rows = [];
  for (const [label, column, at] of [["calibration error", "calibration", "points"], ["microseconds per row", "microseconds", "timed"]]) {
    const values = report.measured[column];
    if (!values || values[0] === null) continue;
    const { place, exact } = nearest(report.measured[at], point);
    rows.push({ label, before: number(values[0], 3), after: (exact ? "" : "≈ ") + number(values[place], 3), left: values[0] ? share(values[place] / values[0]) : "" });
  }
  return rows;
}

function ratio(column, point) {
  const before = table[column][0];
  const after = table[column][point];
  return before && after !== null ? share(after / before) : "";
}

function showTable(point) {
  byId("rows").replaceChildren(...tableRows(point).map((row) => element("tr", {},
    element("td", {}, row.label),
    element("td", {}, row.before),
    element("td", {}, row.after, row.extra ? element("small", {}, row.extra) : null),
    element("td", {}, row.left))));
}

function explainTable() {
  const notes = [];
  if (report.measured) {
    notes.push(`Calibration and time are measured on ${count(report.measured.rows)} rows passed to the report, at some of the points; ≈ stands for the nearest of these. ` +
      `Time: a batch predicted by ${report.measured.engine.join(" or ")}, the quickest of some tries on the machine the report was made on.`);
    if (report.measured.calibration && report.measured.calibration[0] !== null) notes.push("Calibration error: by how much the share of right labels differs from the probability told for them.");
  } else {
    notes.push("Pass rows to the report (X, y) to see calibration and time per prediction, too.");
  }
  if (nPoints > 2) notes.push("Bytes are measured at the chosen point and estimated (≈) at others.");
  byId("table-note").textContent = notes.join(" ");
}
