// The table "Before and after": one row per size, cost, loss or measurement.

function tableRows(point) {
  const rows = [];
  const sizes = [["nodes", "n_nodes"], ["leaves", "n_leaves"], ["trees", "n_trees"], ["depth", "depth"], ["features", "n_features"]];
  for (const [label, column] of sizes) {
    rows.push({ label, before: count(table[column][0]), after: count(table[column][point]), left: ratio(column, point) });
  }
  const exact = point === 0 || point === report.point;
  rows.push({ label: "bytes when saved", before: bytes(table.bytes[0]), after: (exact ? "" : "≈ ") + bytes(table.bytes[point]), left: ratio("bytes", point) });
  if (!costIsSize) {
    rows.push({ label: costName === "features" ? "feature cost per row" : `cost (${costName})`, before: number(table.cost[0]), after: number(table.cost[point]), left: ratio("cost", point) });
  }
  if (evaluated) {
    const error = table.loss_se[point];
    rows.push({ label: `loss on validation rows (${report.facts.loss})`, before: number(table.loss[0]),
      after: number(table.loss[point]), extra: error ? ` ± ${number(error, 2)}` : "", left: ratio("loss", point) });
  }
  if (scored) {
    rows.push({ label: `score on validation rows (${report.facts.scoring})`, before: number(table.score[0]), after: number(table.score[point]),
      extra: point ? `, drop ± ${number(table.score_se[point], 2)}` : "", left: "" });
  }
  const riskLabel = riskIsLoss ? `loss on pruning rows (${report.facts.loss})` : "mean loss of single trees on pruning rows";
  rows.push({ label: riskLabel, before: number(table.risk[0]), after: number(table.risk[point]), left: ratio("risk", point) });
  if (evaluated) rows.push({ label: "predictions changed on validation rows", before: "", after: percent(table.changed[point]), left: "" });
  if (report.measured) rows.push(...measuredRows(point));
  return rows;
}

function measuredRows(point) {
  const { calibration, points } = report.measured;
  const rows = latencyRows(point);
  if (!calibration || calibration[0] === null) return rows;
  const { index, exact } = nearest(points, point);
  rows.unshift({ label: "calibration error", before: number(calibration[0], 3), after: (exact ? "" : "≈ ") + number(calibration[index], 3), left: calibration[0] ? percent(calibration[index] / calibration[0]) : "" });
  return rows;
}

// Prediction times with one row and with a batch; no percentage is shown for a difference within the noise.
function latencyRows(point) {
  const { timed, latency: { models } } = report.measured;
  const { index, exact } = nearest(timed, point);
  const labels = [["one_row", "µs to predict one row"], ["batch", `µs per row in a batch of ${count(models[0].batch.rows)}`]];
  return labels.map(([key, label]) => {
    const { median, ratio } = models[index][key];
    return { label, before: number(models[0][key].median, 3), after: (exact ? "" : "≈ ") + number(median, 3), left: ratio === null ? percent(1) : ratio.within_noise ? "unclear" : percent(ratio.ratio) };
  });
}

function ratio(column, point) {
  const before = table[column][0];
  const after = table[column][point];
  return before && after !== null ? percent(after / before) : "";
}

function showTable(point) {
  byId("rows").replaceChildren(...tableRows(point).map((row) => element("tr", {},
    element("td", {}, row.label),
    element("td", {}, row.before),
    element("td", {}, row.after, row.extra ? element("small", {}, row.extra) : null),
    element("td", {}, row.left))));
}

function showTableNote() {
  const notes = [];
  if (report.measured) {
    const { models, noise, noisy } = report.measured.latency;
    const engines = [...new Set(models.map((model) => model.engine))].join(" or ");
    notes.push(`Calibration and time were measured on ${count(report.measured.rows)} rows passed to the report, at some of the points; ≈ marks values of the nearest such point. ` +
      `Time: the median of repeated predictions by ${engines} on the machine that made the report, in microseconds (µs). Medians of consecutive blocks of calls differed by up to ${percent(noise)}; "unclear" marks a difference within the noise.` +
      (noisy ? " The machine was busy, which slows long calls more than short ones: times and percentages may be far from those on an idle machine." : ""));
    if (report.measured.calibration && report.measured.calibration[0] !== null) notes.push("Calibration error: the mean difference between the accuracy and the predicted probability, over ten bins.");
  } else {
    notes.push("Pass rows to the report (X, y) to add calibration and prediction time.");
  }
  if (nPoints > 2) notes.push("Bytes are measured at the chosen point and estimated (≈) at the others.");
  byId("table-note").textContent = notes.join(" ");
}
