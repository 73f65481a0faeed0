// The trade-off curve: loss against size or cost, with marks for the unpruned, chosen and current points.

const xAxisNames = { cost: costName === "features" ? "feature cost per row" : `cost (${costName})`, n_nodes: "nodes", n_leaves: "leaves", n_trees: "trees", n_features: "features", depth: "depth", bytes: "bytes when saved" };
const curve = { column: costIsSize ? "n_nodes" : "cost", log: costIsSize, scale: null };

function setUpCurve(choosePoint) {
  const names = Object.keys(xAxisNames).filter((name) => name in table && !(name === "cost" && costIsSize) && new Set(table[name]).size > 1);
  byId("x-axis").append(...names.map((name) => element("option", { value: name }, xAxisNames[name])));
  if (!names.includes(curve.column)) curve.column = names[0] ?? "n_nodes";
  byId("x-axis").value = curve.column;
  byId("log").checked = curve.log;
  const redraw = () => { curve.column = byId("x-axis").value; curve.log = byId("log").checked; drawCurve(current.point); };
  byId("x-axis").addEventListener("change", redraw);
  byId("log").addEventListener("change", redraw);
  const chart = byId("chart");
  chart.addEventListener("pointermove", (event) => {
    const point = pointAt(event);
    if (point !== null) showTip(pointText(point), event.clientX, event.clientY);
  });
  chart.addEventListener("pointerleave", hideTip);
  chart.addEventListener("click", (event) => { const point = pointAt(event); if (point !== null) choosePoint(point); });
  whenResized("chart", () => drawCurve(current.point));
  showLegend();
}

function pointText(point) {
  const lines = [`point ${point}${point === report.point ? ", chosen" : point === 0 ? ", unpruned" : ""}`, `${count(table.n_nodes[point])} nodes, ${count(table.n_trees[point])} trees`];
  if (!costIsSize) lines.push(`cost ${number(table.cost[point])}`);
  if (evaluated) lines.push(`loss ${number(table.loss[point])} ± ${number(table.loss_se[point], 2)}`);
  if (riskIsLoss || !evaluated) lines.push(`loss on pruning rows ${number(table.risk[point])}`);
  if (table.origin) lines.push(`found by ${table.origin[point]}`);
  return lines.join("\n");
}

const lossColumn = () => (evaluated ? table.loss : table.risk);

// Points of one series (one ridge, one origin) are connected by a line.
function groups() {
  const kinds = ["ridge", "kept", "origin"].filter((name) => name in table);
  const found = new Map();
  for (let point = 0; point < nPoints; point++) {
    if (point === 0 && kinds.length) continue;
    const key = kinds.map((name) => table[name][point]).join("|");
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(point);
  }
  return [...found.values()];
}

function makeScale(width, height) {
  const margin = { left: 62, right: 16, top: 14, bottom: 46 };
  const xs = table[curve.column].filter((x) => x !== null);
  const ys = [...lossColumn()];
  if (evaluated) table.loss.forEach((loss, k) => { if (loss !== null) ys.push(loss + (table.loss_se[k] ?? 0), loss - (table.loss_se[k] ?? 0)); });
  if (evaluated && riskIsLoss) ys.push(...table.risk);
  for (const other of Object.values(report.baselines)) {
    ys.push(...other.loss);
    if (other[curve.column]) xs.push(...other[curve.column].filter((x) => x !== null));
  }
  const known = ys.filter((y) => y !== null);
  let [low, high] = [Math.min(...known), Math.max(...known)];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const pad = 0.04 * (high - low);
  const log = curve.log && Math.max(...xs) > 0;
  const least = log ? Math.max(Math.min(...xs.filter((x) => x > 0)), 1e-9) : Math.min(...xs, Math.max(...xs) * 0.9);
  const transform = (x) => (log ? Math.log10(Math.max(x, least)) : x);
  let [first, last] = [transform(least), transform(Math.max(...xs))];
  if (first === last) [first, last] = [first - 0.5, last + 0.5];
  const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  return {
    margin, width, height, log, low: low - pad, high: high + pad, first, last,
    x: (value) => margin.left + ((transform(value) - first) / (last - first)) * inner.width,
    y: (value) => margin.top + (1 - (value - low + pad) / (high - low + 2 * pad)) * inner.height,
  };
}

function ticks(low, high, most) {
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((k) => k * power >= raw);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12); k++) found.push(Number((k * step).toPrecision(10)));
  return found;
}

function axisTicks(scale) {
  if (!scale.log) return ticks(scale.first, scale.last, Math.max(2, Math.floor(scale.width / 110)));
  const found = [];
  for (let power = Math.floor(scale.first); power <= scale.last; power++) {
    for (const k of scale.last - scale.first > 2.5 || scale.width < 480 ? [1] : [1, 2, 5]) {
      const at = k * 10 ** power;
      if (Math.log10(at) >= scale.first - 1e-9 && Math.log10(at) <= scale.last + 1e-9) found.push(at);
    }
  }
  return found;
}

function drawCurve(point) {
  const width = Math.max(byId("chart").clientWidth, 260);
  const height = Math.round(Math.min(400, Math.max(260, width * 0.5)));
  const scale = makeScale(width, height);
  curve.scale = scale;
  const xs = table[curve.column];
  const picture = svgElement("svg", { width, height, role: "img", "aria-label": `Loss against ${xAxisNames[curve.column]}; use the slider to move along the points` });
  picture.append(...drawGaps(scale), ...drawAxes(scale));
  const lines = groups();
  const shown = lines.find((points) => points.includes(point)) ?? lines.find((points) => points.includes(report.point)) ?? lines[0];
  for (const points of lines.filter((other) => other !== shown)) picture.append(svgElement("path", { class: "loss pale", d: line(inOrder(points), lossColumn(), scale) }));
  if (shown) {
    const known = inOrder(shown);
    if (evaluated) picture.append(svgElement("path", { class: "band", d: band(known, scale) }));
    if (evaluated && riskIsLoss) picture.append(svgElement("path", { class: "risk", d: line(known, table.risk, scale) }));
    picture.append(svgElement("path", { class: evaluated || riskIsLoss ? "loss" : "risk", d: line(known, lossColumn(), scale) }));
    if (nPoints <= 300) picture.append(...known.map((k) => svgElement("circle", { class: "dot", r: 2, cx: scale.x(xs[k]), cy: scale.y(lossColumn()[k]) })));
  }
  for (const [name, other] of Object.entries(report.baselines)) {
    if (other[curve.column]) picture.append(svgElement("path", { class: "other", d: otherLine(other, scale) }, svgElement("title", {}, name)));
  }
  picture.append(...drawMarks(point, scale));
  byId("chart").replaceChildren(picture);
}

function drawAxes(scale) {
  const { margin, width, height } = scale;
  const elements = [];
  for (const at of ticks(scale.low, scale.high, 5)) {
    elements.push(svgElement("line", { class: "axis", x1: margin.left, x2: width - margin.right, y1: scale.y(at), y2: scale.y(at) }),
      svgElement("text", { class: "soft", x: margin.left - 8, y: scale.y(at) + 4, "text-anchor": "end" }, number(at, 5)));
  }
  for (const at of axisTicks(scale)) {
    elements.push(svgElement("text", { class: "soft", x: scale.x(at), y: height - margin.bottom + 18, "text-anchor": "middle" }, curve.column === "bytes" ? bytes(at) : number(at, 5)));
  }
  elements.push(svgElement("text", { x: (margin.left + width - margin.right) / 2, y: height - 8, "text-anchor": "middle" }, xAxisNames[curve.column]),
    svgElement("text", { class: "soft", x: 0, y: 11 }, evaluated ? `loss (${report.facts.loss})` : "loss on pruning rows"));
  return elements;
}

// Ranges of the cost without a point that are wider than a tenth of the unpruned cost.
function costGaps() {
  const costs = [...new Set(table.cost)].sort((a, b) => a - b);
  const found = [];
  for (let k = 1; k < costs.length; k++) if (costs[k] - costs[k - 1] > 0.1 * table.cost[0]) found.push([costs[k - 1], costs[k]]);
  return found;
}

function drawGaps(scale) {
  if (curve.column !== "cost") return [];
  const { margin, height } = scale;
  return costGaps().map(([from, to]) => svgElement("rect", { class: "gap", x: scale.x(from), width: Math.max(scale.x(to) - scale.x(from), 0), y: margin.top, height: height - margin.top - margin.bottom },
    svgElement("title", {}, `no point has a cost between ${number(from)} and ${number(to)}`)));
}

const inOrder = (points) => points.filter((k) => lossColumn()[k] !== null).sort((a, b) => table[curve.column][a] - table[curve.column][b] || b - a);

const line = (points, column, scale) => points.filter((k) => column[k] !== null).map((k, i) => `${i ? "L" : "M"}${scale.x(table[curve.column][k])} ${scale.y(column[k])}`).join("");

function band(points, scale) {
  const edge = (k, sign) => `${scale.x(table[curve.column][k])} ${scale.y(table.loss[k] + sign * (table.loss_se[k] ?? 0))}`;
  return points.length ? `M${points.map((k) => edge(k, 1)).join("L")}L${[...points].reverse().map((k) => edge(k, -1)).join("L")}Z` : "";
}

function otherLine(other, scale) {
  const order = other.loss.map((_, k) => k).filter((k) => other.loss[k] !== null).sort((a, b) => other[curve.column][a] - other[curve.column][b]);
  return order.map((k, i) => `${i ? "L" : "M"}${scale.x(other[curve.column][k])} ${scale.y(other.loss[k])}`).join("");
}

function drawMarks(point, scale) {
  const at = (k) => [scale.x(table[curve.column][k]), lossColumn()[k] === null ? scale.margin.top : scale.y(lossColumn()[k])];
  const [ux, uy] = at(0);
  const [cx, cy] = at(report.point);
  const [x, y] = at(point);
  return [
    svgElement("path", { class: "unpruned", d: `M${ux} ${uy - 7}l6 7l-6 7l-6 -7z` }, svgElement("title", {}, "unpruned")),
    svgElement("circle", { class: "chosen", cx, cy, r: 10 }, svgElement("title", {}, "chosen")),
    svgElement("line", { class: "guide", x1: x, x2: x, y1: y, y2: scale.height - scale.margin.bottom }),
    svgElement("circle", { class: "here", id: "marker", cx: x, cy: y, r: 5.5, "data-point": point }),
  ];
}

function pointAt(event) {
  const box = byId("chart").getBoundingClientRect();
  const [px, py] = [event.clientX - box.left, event.clientY - box.top];
  let best = null;
  let least = Infinity;
  for (let k = 0; k < nPoints; k++) {
    if (lossColumn()[k] === null) continue;
    const distance = (curve.scale.x(table[curve.column][k]) - px) ** 2 + 0.15 * (curve.scale.y(lossColumn()[k]) - py) ** 2;
    if (distance < least) [best, least] = [k, distance];
  }
  return best;
}

function showLegend() {
  const key = (mark, text) => element("span", { class: "key" }, svgElement("svg", { width: 26, height: 14, "aria-hidden": "true" }, mark), text);
  const stroke = (kind) => svgElement("path", { class: kind, d: "M1 7H25" });
  const keys = [];
  if (evaluated) keys.push(key(stroke("loss"), "validation rows"));
  if (evaluated) keys.push(key(svgElement("rect", { class: "band", width: 26, height: 14 }), "± one standard error"));
  if (riskIsLoss || !evaluated) keys.push(key(stroke(!evaluated && riskIsLoss ? "loss" : "risk"), "pruning rows"));
  keys.push(key(svgElement("path", { class: "unpruned", d: "M13 0l6 7l-6 7l-6 -7z" }), "unpruned"),
    key(svgElement("circle", { class: "chosen", cx: 13, cy: 7, r: 6 }), "chosen"),
    key(svgElement("circle", { class: "here", cx: 13, cy: 7, r: 4.5 }), "current point"));
  for (const name of Object.keys(report.baselines)) keys.push(key(stroke("other"), name));
  if (!costIsSize && costGaps().length) keys.push(key(svgElement("rect", { class: "gap", width: 26, height: 14 }), "no point has this cost"));
  byId("legend").replaceChildren(...keys);
  const notes = ["Click a point to go to it."];
  if (groups().length > 1) notes.push("Pale: points of other series (ridge, origin) than that of the current point.");
  if (evaluated && !riskIsLoss) notes.push("The solver minimises the mean loss of single trees. It is a different quantity than the loss of the whole model and is not plotted.");
  if (!evaluated) notes.push("The path has not been evaluated: the curve shows the loss on the pruning rows, which is usually lower than on new rows. Evaluate the path on validation rows.");
  byId("curve-note").textContent = notes.join(" ");
}
