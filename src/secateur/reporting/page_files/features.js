// Features: the number of splits and the price paid for each, and a histogram of the cost of rows.

function stepAt(steps, point) {
  let value = 0;
  for (const [from, count] of steps) {
    if (from > point) break;
    value = count;
  }
  return value;
}

function showFeatures(point) {
  const { names, steps } = report.features;
  const [before, after] = [table.n_features[0], table.n_features[point]];
  byId("features-lead").textContent = before ? `${count(after)} of ${count(before)} features are used; ${count(before - after)} are no longer needed.` : "The model has no splits.";
  const most = Math.max(...steps.map((list) => stepAt(list, 0)), 1);
  const bills = report.measured?.bills;
  const measured = bills ? nearest(report.measured.points, point) : null;
  byId("bars").replaceChildren(...names.map((name, k) => {
    const [was, is] = [stepAt(steps[k], 0), stepAt(steps[k], point)];
    const bar = element("span", { class: "bar" }, element("span", { class: "was" }), element("span", { class: "is" }));
    bar.children[0].style.width = `${(100 * was) / most}%`;
    bar.children[1].style.width = `${(100 * is) / most}%`;
    const paid = bills ? ` · ${measured.exact ? "" : "≈ "}${number(bills.paid[measured.index][k], 3)}` : "";
    return element("div", { class: is ? "feature" : "feature gone", title: featureText(name, was, is, bills, measured, k) },
      element("span", { class: "name" }, name), bar, element("span", { class: "number" }, `${count(is)} of ${count(was)}${paid}`));
  }));
  if (bills) drawHistogram(bills, measured.index);
  showFeaturesNote(bills, measured);
}

function featureText(name, was, is, bills, measured, k) {
  const paid = bills ? `\nprice ${number(bills.price[k])}, paid per row ${number(bills.paid[measured.index][k])} (unpruned ${number(bills.paid[0][k])})` : "";
  return `${name}\n${count(is)} of ${count(was)} splits${paid}`;
}

function showFeaturesNote(bills, measured) {
  const notes = ["Bars: number of splits on the feature at the current point and, in grey, before pruning."];
  if (report.features.not_shown) notes.push(`${count(report.features.not_shown)} more features have fewer splits and are not listed.`);
  if (bills) {
    const [low, middle, high] = bills.quantiles[measured.index];
    notes.push("After the dot: mean price paid for the feature per row.");
    if (bills.groups[measured.index].length) notes.push(`Mean price of groups: ${number(bills.groups[measured.index].reduce((a, b) => a + b, 0))} per row.`);
    notes.push(`${measured.exact ? "Cost of a row at the current point" : "Cost of a row at the nearest measured point"}: mean ${number(bills.mean[measured.index])}, median ${number(middle)}, 10 % quantile ${number(low)}, 90 % quantile ${number(high)}. Mean before pruning: ${number(bills.mean[0])}.`);
  } else if (costName === "features") {
    notes.push("Pass rows and prices to the report (X, y, cost) to add the price paid for each feature and the cost of rows.");
  }
  byId("features-note").textContent = notes.join(" ");
}

function drawHistogram(bills, index) {
  const width = Math.max(byId("histogram").clientWidth, 260);
  const height = 190;
  const [left, right, top, bottom] = [44, 12, 24, 34];
  const most = Math.max(...bills.rows[index], ...bills.rows[0], 1);
  const [from, to] = [bills.edges[0], bills.edges.at(-1)];
  const x = (value) => left + ((value - from) / (to - from || 1)) * (width - left - right);
  const y = (value) => height - bottom - (value / most) * (height - top - bottom);
  const bars = (counts, kind, inset) => counts.map((value, k) => svgElement("rect", { class: kind, x: x(bills.edges[k]) + inset, width: Math.max(x(bills.edges[k + 1]) - x(bills.edges[k]) - 2 * inset, 1), y: y(value), height: height - bottom - y(value) }));
  const labels = ticks(from, to, Math.max(2, Math.floor(width / 110))).map((at) => svgElement("text", { class: "soft", x: x(at), y: height - bottom + 16, "text-anchor": "middle" }, number(at)));
  byId("histogram").replaceChildren(svgElement("svg", { width, height, role: "img", "aria-label": "Histogram of the cost of rows" },
    svgElement("text", { class: "soft", x: 0, y: 12 }, "rows"), ...bars(bills.rows[0], "was-bar", 0), ...bars(bills.rows[index], "is-bar", 2), ...labels,
    svgElement("text", { class: "soft", x: left - 6, y: y(most) + 4, "text-anchor": "end" }, count(most)),
    svgElement("text", { x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle" }, "cost of a row; grey: unpruned")));
}
