// The trees, drawn from the top; what was cut stays visible as a ghost, and large trees fold.

const treeState = { shown: 0, opened: new Map() };
const LEVEL = 64;
const LETTER = 6.4; // pixels

function setUpTrees() {
  const trees = report.trees;
  if (!trees.length) {
    byId("which").parentElement.hidden = true;
    byId("ghosts").parentElement.hidden = true;
    byId("tree-note").textContent = report.model.trees ? "The points of this path are prunings of several models, whose trees are not drawn." : "There are no trees.";
    return;
  }
  byId("which").append(...trees.map((tree, k) => element("option", { value: k }, treeTitle(tree, report.point))));
  byId("which").addEventListener("change", () => { treeState.shown = Number(byId("which").value); showTree(now.point); });
  byId("ghosts").addEventListener("change", () => showTree(now.point));
  const best = trees.reduce((found, tree, k) => (tree.sizes[report.point] > trees[found].sizes[report.point] ? k : found), 0);
  treeState.shown = best;
  byId("which").value = best;
  whenResized("tree", () => showTree(now.point));
}

function treeTitle(tree, point) {
  const feeds = tree.feeds === null ? "" : `, for ${tree.feeds}`;
  return `${tree.tree}${feeds}: ${count(tree.sizes[point])} of ${count(tree.sizes[0])} nodes`;
}

function showTree(point) {
  if (!report.trees.length) return;
  const tree = report.trees[treeState.shown];
  [...byId("which").options].forEach((option, k) => { option.textContent = treeTitle(report.trees[k], point); });
  const withGhosts = byId("ghosts").checked;
  const there = (k) => presentAt(tree.changes[k], point);
  const width = Math.max(byId("tree").clientWidth, 260);
  const open = openNodes(tree, Math.max(6, Math.min(40, Math.floor(width / 30))));
  const visible = (k) => withGhosts || there(k);
  const place = layOut(tree, open, visible);
  if (!place.size) {
    byId("tree").replaceChildren(element("p", { class: "note" }, `Tree ${tree.tree} is gone at this point.`));
  } else {
    byId("tree").replaceChildren(drawTree(tree, place, open, there, point, width));
  }
  explainTree(tree, point);
}

// Which splits are drawn with their children: those that stay longest first, until there is no room, then as clicked.
function openNodes(tree, room) {
  const open = new Set();
  if (tree.left[0] === -1) return open;
  const life = (k) => tree.changes[k][0] ?? nPoints;
  const queue = [0];
  let leaves = 1;
  while (queue.length && leaves < room) {
    let best = 0;
    queue.forEach((k, i) => { if (life(tree.left[k]) > life(tree.left[queue[best]])) best = i; });
    const [node] = queue.splice(best, 1);
    if (tree.left[node] === -1) continue;
    open.add(node);
    leaves += 1;
    for (const child of [tree.left[node], tree.right[node]]) if (tree.left[child] !== -1) queue.push(child);
  }
  const clicked = treeState.opened.get(treeState.shown) ?? new Map();
  for (const [node, wanted] of clicked) if (wanted) open.add(node); else open.delete(node);
  return open;
}

// Places: leaves side by side from the left, parents above the middle of their children.
function layOut(tree, open, visible) {
  const place = new Map();
  let slot = 0;
  const visit = (node, depth) => {
    if (!visible(node) && !below(node)) return;
    const children = open.has(node) && tree.left[node] !== -1 ? [tree.left[node], tree.right[node]] : [];
    const from = slot;
    children.forEach((child) => visit(child, depth + 1));
    const placed = children.filter((child) => place.has(child));
    const x = placed.length ? placed.reduce((sum, child) => sum + place.get(child).x, 0) / placed.length : slot++;
    place.set(node, { x, depth, from, slots: Math.max(slot - from, 1), children: placed });
  };
  // A node that took its dropped parent's place is visible though the parent is not.
  const below = (node) => tree.left[node] !== -1 && open.has(node) && [tree.left[node], tree.right[node]].some((child) => visible(child) || below(child));
  visit(0, 0);
  return place;
}

function drawTree(tree, place, open, there, point, width) {
  const slots = Math.max(...[...place.values()].map((spot) => spot.x)) + 1;
  const depth = Math.max(...[...place.values()].map((spot) => spot.depth));
  const step = Math.max(26, Math.min(150, (width - 24) / slots));
  const total = Math.max(step * slots + 24, Math.min(width, 260));
  const left = (total - step * slots) / 2;
  const at = (spot) => ({ x: left + (spot.x + 0.5) * step, y: 24 + spot.depth * LEVEL, from: left + spot.from * step, to: left + (spot.from + spot.slots) * step });
  const picture = drawn("svg", { width: total, height: 24 + depth * LEVEL + 46, role: "group", "aria-label": `Tree ${tree.tree}` });
  const lines = [...place].flatMap(([node, spot]) => spot.children.map((child) => [node, child]));
  for (const [node, child] of lines.sort((a, b) => there(a[1]) - there(b[1]))) {
    const [from, to] = [at(place.get(node)), at(place.get(child))];
    const kept = there(node) && there(child);
    picture.append(drawn("path", { class: kept ? "edge" : "edge ghost", d: `M${from.x} ${from.y}C${from.x} ${from.y + LEVEL / 2} ${to.x} ${to.y - LEVEL / 2} ${to.x} ${to.y}` }));
  }
  const values = leafValues(tree, point, there);
  for (const [node, spot] of place) picture.append(drawNode(tree, node, spot, at(spot), step, open, there, point, values));
  return picture;
}

function drawNode(tree, node, spot, { x, y, from, to }, step, open, there, point, values) {
  const kept = there(node);
  const splits = kept && presentAt(tree.opens[node], point);
  const foldable = tree.left[node] !== -1;
  const support = tree.support ? 0.2 + 0.8 * tree.support[node] : 1;
  const group = drawn("g", { "data-node": node, "data-kept": kept, opacity: kept ? support : 1 });
  const text = tellNode(tree, node, kept, splits, values);
  group.append(drawn("title", {}, text.full));
  const room = Math.floor((spot.slots * step - 6) / LETTER);
  const near = (said) => Math.min(Math.max(x, from + (said.length * LETTER) / 2), to - (said.length * LETTER) / 2);
  if (spot.children.length) {
    group.append(drawn("circle", { class: kept ? (splits ? "node" : `node leaf ${colour(tree, node, values)}`) : "node ghost", cx: x, cy: y, r: 7 }));
    label(group, splits || !kept ? tree.question[node] : text.short, near, y - 11, room, kept, 5);
  } else if (foldable || tree.hidden[node]) {
    group.append(drawn("path", { class: kept && splits ? "more" : kept ? `node leaf ${colour(tree, node, values)}` : "more ghost", d: splits || !kept ? `M${x} ${y - 8}l11 18h-22z` : circlePath(x, y, 7) }));
    label(group, splits || !kept ? hiddenCount(tree, node) : fitting(text, room), near, y + 24, room, kept, 2);
  } else {
    group.append(drawn("circle", { class: kept ? `node leaf ${colour(tree, node, values)}` : "node ghost", cx: x, cy: y, r: kept ? 8 : 5 }));
    if (kept) label(group, fitting(text, room), near, y + 22, room, kept, 1);
  }
  if (foldable) makeButton(group, node, open, text.full);
  return group;
}

const circlePath = (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;

function hiddenCount(tree, node) {
  if (tree.hidden[node]) return `+${tree.hidden[node]}`;
  let total = 0;
  const stack = [tree.left[node], tree.right[node]];
  while (stack.length) {
    const k = stack.pop();
    total += 1 + tree.hidden[k];
    if (tree.left[k] !== -1) stack.push(tree.left[k], tree.right[k]);
  }
  return `+${total}`;
}

function makeButton(group, node, open, text) {
  const toggle = () => {
    const clicked = treeState.opened.get(treeState.shown) ?? new Map();
    clicked.set(node, !open.has(node));
    treeState.opened.set(treeState.shown, clicked);
    showTree(now.point);
    byId("tree").querySelector(`[data-node="${node}"]`)?.focus();
  };
  fill(group, { class: "button", tabindex: 0, role: "button", "aria-expanded": open.has(node), "aria-label": text }, []);
  group.addEventListener("click", toggle);
  group.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
  });
}

// What a leaf says, as far as there is room; a number is not cut short.
const fitting = (text, room) => [text.short, text.brief].find((said) => said.length <= room) ?? "";

// As near to its node as it can be without leaving the node's own part of the picture.
function label(group, text, near, y, room, kept, least) {
  if (room < least || !text) return;
  const cut = text.length > room ? `${text.slice(0, Math.max(room - 1, 1))}…` : text;
  group.append(drawn("text", { x: near(cut), y, "text-anchor": "middle", class: kept ? null : "ghost" }, cut));
}

// What the leaves say at a point: their own values, or those learned for the point.
function leafValues(tree, point, there) {
  if (!tree.new || point === 0) return { value: tree.value, class: tree.class };
  const learned = tree.new[point];
  const found = { value: [], class: tree.class ? [] : undefined };
  if (!learned) return found;
  let k = 0;
  for (let node = 0; node < tree.left.length; node++) {
    if (!there(node) || presentAt(tree.opens[node], point)) continue;
    found.value[node] = learned.value[k];
    if (learned.class) found.class[node] = learned.class[k];
    k += 1;
  }
  return found;
}

function tellNode(tree, node, kept, splits, values) {
  const rows = `${share(tree.cover[node])} of the training rows`;
  const value = values.value[node];
  const says = value === undefined || value === null ? "" : values.class ? `${className(values.class[node])} ${number(value, 2)}` : number(value, 3);
  const support = tree.support ? `\nsupport ${share(tree.support[node])}` : "";
  const hidden = tree.hidden[node] ? `\n${tree.hidden[node]} nodes below, not on this page` : "";
  if (!kept) return { short: "", full: `cut: ${tree.question[node] || "a leaf"}\n${rows}${support}` };
  if (splits) return { short: tree.question[node], full: `${tree.question[node]}? yes: left\n${rows}${support}${hidden}` };
  return { short: says, brief: number(value, 2), full: `says ${says || "a value that is told at other points only"}\n${rows}${support}` };
}

const className = (code) => report.classes[code] ?? String(code);

function colour(tree, node, values) {
  if (values.class && values.class[node] !== undefined) return `c${values.class[node] % 8}`;
  const value = values.value[node];
  if (value === undefined || value === null) return "c5";
  return value >= (tree.feeds === null && !report.classes.length ? tree.value[0] : 0) ? "c1" : "c0";
}

function explainTree(tree, point) {
  const notes = [];
  if (report.model.trees > report.trees.length) notes.push(`${count(report.trees.length)} of ${count(report.model.trees)} trees are on this page, those that are largest at the chosen point.`);
  notes.push("Rows that say yes go left. Dashed: cut. Click a split to fold or unfold it.");
  if (tree.hidden.some((n) => n > 0)) notes.push("Large trees are not on this page to the bottom: triangles with a number stand for nodes that are not.");
  if (tree.support) notes.push("The paler a node, the less sure: support in stability selection.");
  if (!tree.class) notes.push(report.classes.length || tree.feeds !== null ? "Leaves: orange adds to the score, green takes from it." : "Leaves: orange above the tree's mean, green below.");
  if (tree.new && report.model.trees > 1) notes.push("Leaf values were learned together: they make sense in the sum over trees only.");
  if (tree.new && point > 0 && !tree.new[point]) notes.push("Leaf values of this point are not on this page.");
  byId("tree-note").textContent = notes.join(" ");
}
