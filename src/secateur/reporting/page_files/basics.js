// What all parts of the page use: the facts, elements, numbers as text, and the tip at the pointer.

const report = JSON.parse(document.getElementById("facts").textContent);
const table = report.table;
const nPoints = table.n_nodes.length;
const byId = (id) => document.getElementById(id);

// Make an element; text is only ever set as text, so that no name can become markup.
function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function drawn(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
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

function share(value) {
  if (value === null || value === undefined) return "–";
  const per = 100 * value;
  return `${per !== 0 && Math.abs(per) < 10 ? Number(per.toPrecision(2)) : Math.round(per)} %`;
}

function bytes(value) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (value >= size) return `${Number((value / size).toPrecision(3))} ${unit}`;
  }
  return `${value} B`;
}

// Whether something that comes and goes at the points listed is there: all begin as present.
function presentAt(changes, point) {
  let there = true;
  for (const change of changes) {
    if (change > point) break;
    there = !there;
  }
  return there;
}

// The place among some points that is nearest to a point, and whether it is that point.
function nearest(points, point) {
  let best = 0;
  points.forEach((other, k) => { if (Math.abs(other - point) < Math.abs(points[best] - point)) best = k; });
  return { place: best, exact: points[best] === point };
}

const costName = report.facts.cost;
const costIsSize = costName === "nodes" || costName === "leaves";
const evaluated = "loss" in table;
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

// Draw again when an element gets another width; its height follows from what is drawn.
function whenResized(id, draw) {
  let width = byId(id).clientWidth;
  new ResizeObserver(() => {
    if (byId(id).clientWidth === width) return;
    width = byId(id).clientWidth;
    draw();
  }).observe(byId(id));
}
