// Helpers of all sections: the data, elements, number formats, and the tooltip.

const report = JSON.parse(document.getElementById("facts").textContent);
const table = report.table;
const nPoints = table.n_nodes.length;
const byId = (id) => document.getElementById(id);

// Create an element. Strings are always inserted as text, so that no name can become markup.
function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svgElement(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const count = (value) => value.toLocaleString("en-US");

function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 10 ** digits && size < 1e15) return Math.round(value).toLocaleString("en-US");
  if (size < 1e-4) return value.toExponential(digits - 1);
  return String(Number(value.toPrecision(digits)));
}

function percent(value) {
  if (value === null || value === undefined) return "–";
  const scaled = 100 * value;
  return `${scaled !== 0 && Math.abs(scaled) < 10 ? Number(scaled.toPrecision(2)) : Math.round(scaled)} %`;
}

function bytes(value) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (value >= size) return `${Number((value / size).toPrecision(3))} ${unit}`;
  }
  return `${value} B`;
}

// Whether a node is present at a point: it is present at first, and each listed point toggles it.
function presentAt(changes, point) {
  let present = true;
  for (const change of changes) {
    if (change > point) break;
    present = !present;
  }
  return present;
}

// The index of the listed point nearest to a point, and whether it is that point.
function nearest(points, point) {
  let best = 0;
  points.forEach((other, k) => { if (Math.abs(other - point) < Math.abs(points[best] - point)) best = k; });
  return { index: best, exact: points[best] === point };
}

const costName = report.facts.cost;
const costIsSize = costName === "nodes" || costName === "leaves";
const evaluated = "loss" in table;
const scored = "score" in table;
const riskIsLoss = report.risk_is_loss;

const tip = byId("tip");
function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 6))}px`;
  tip.style.top = `${y + box.height + 24 > innerHeight ? y - box.height - 10 : y + 16}px`;
}
const hideTip = () => { tip.hidden = true; };

// Redraw when the width of an element changes; its height depends on what is drawn.
function whenResized(id, draw) {
  let width = byId(id).clientWidth;
  new ResizeObserver(() => {
    if (byId(id).clientWidth === width) return;
    width = byId(id).clientWidth;
    draw();
  }).observe(byId(id));
}
