// Features: how many splits look at each, what is paid for it, and what single rows cost.

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
  byId("features-lead").textContent = before ? `${count(after)} of ${count(before)} features are looked at; ${count(before - after)} disappeared.` : "No split looks at a feature.";
  const most = Math.max(...steps.map((list) => stepAt(list, 0)), 1);
  const bills = report.measured?.bills;
  const spot = bills ? nearest(report.measured.points, point) : null;
  byId("bars").replaceChildren(...names.map((name, k) => {
    const [was, is] = [stepAt(steps[k], 0), stepAt(steps[k], point)];
    const bar = element("span", { class: "bar" }, element("span", { class: "was" }), element("span", { class: "is" }));
    bar.children[0].style.width = `${(100 * was) / most}%`;
    bar.children[1].style.width = `${(100 * is) / most}%`;
    const paid = bills ? ` · ${spot.exact ? "" : "≈ "}${number(bills.paid[spot.place][k], 3)}` : "";
    return element("div", { class: is ? "feature" : "feature gone", title: tellFeature(name, was, is, bills, spot, k) },
      element("span", { class: "name" }, name), bar, element("span", { class: "number" }, `${count(is)} of ${count(was)}${paid}`));
  }));
  if (bills) drawHistogram(bills, spot.place);
  explainFeatures(bills, spot);
}

function tellFeature(name, was, is, bills, spot, k) {
  const paid = bills ? `\nprice ${number(bills.price[k])}, paid per row ${number(bills.paid[spot.place][k])} (unpruned ${number(bills.paid[0][k])})` : "";
  return `${name}\n${count(is)} of ${count(was)} splits${paid}`;
}

function explainFeatures(bills, spot) {
  const notes = ["Bars: splits that look at the feature, now and before."];
  if (report.features.not_shown) notes.push(`${count(report.features.not_shown)} more features are looked at by fewer splits and not listed.`);
  if (bills) {
    const [low, middle, high] = bills.quantiles[spot.place];
    notes.push("After the dot: what is paid for the feature, per row on average.");
    if (bills.groups[spot.place].length) notes.push(`Shared by groups: ${number(bills.groups[spot.place].reduce((a, b) => a + b, 0))} per row.`);
    notes.push(`${spot.exact ? "Here" : "At the nearest point measured"} a row costs ${number(bills.mean[spot.place])} on average, ${number(middle)} in the middle; nine in ten cost at most ${number(high)}, one in ten at most ${number(low)}. Unpruned: ${number(bills.mean[0])}.`);
  } else if (costName === "features") {
    notes.push("Pass rows and prices to the report (X, y, cost) to see what is paid for each feature and what single rows cost.");
  }
  byId("features-note").textContent = notes.join(" ");
}

function drawHistogram(bills, place) {
  const width = Math.max(byId("histogram").clientWidth, 260);
  const height = 190;
  const [left, right, top, bottom] = [44, 12, 24, 34];
  const most = Math.max(...bills.rows[place], ...bills.rows[0], 1);
  const [from, to] = [bills.edges[0], bills.edges.at(-1)];
  const x = (value) => left + ((value - from) / (to - from || 1)) * (width - left - right);
  const y = (value) => height - bottom - (value / most) * (height - top - bottom);
  const bars = (counts, kind, inset) => counts.map((value, k) => drawn("rect", { class: kind, x: x(bills.edges[k]) + inset, width: Math.max(x(bills.edges[k + 1]) - x(bills.edges[k]) - 2 * inset, 1), y: y(value), height: height - bottom - y(value) }));
  const labels = ticks(from, to, Math.max(2, Math.floor(width / 110))).map((at) => drawn("text", { class: "soft", x: x(at), y: height - bottom + 16, "text-anchor": "middle" }, number(at)));
  byId("histogram").replaceChildren(drawn("svg", { width, height, role: "img", "aria-label": "Histogram of what single rows cost" },
    drawn("text", { class: "soft", x: 0, y: 12 }, "rows"), ...bars(bills.rows[0], "was-bar", 0), ...bars(bills.rows[place], "is-bar", 2), ...labels,
    drawn("text", { class: "soft", x: left - 6, y: y(most) + 4, "text-anchor": "end" }, count(most)),
    drawn("text", { x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle" }, "cost of a row, now and (grey) unpruned")));
}
