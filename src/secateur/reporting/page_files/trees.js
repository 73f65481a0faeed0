// The trees, with the root on top. Pruned nodes are shown as ghosts, and large subtrees are folded.

const treeState = { shown: 0, opened: new Map() };
const LEVEL = 64;
const LETTER = 6.4; // pixels

function setUpTrees() {
  const trees = report.trees;
  if (!trees.length) {
    byId("tree-select").parentElement.hidden = true;
    byId("ghosts").parentElement.hidden = true;
    byId("tree-note").textContent = report.model.trees ? "The points of this path are prunings of several models, so trees are not drawn." : "The model has no trees.";
    return;
  }
  byId("tree-select").append(...trees.map((tree, k) => element("option", { value: k }, treeTitle(tree, report.point))));
  byId("tree-select").addEventListener("change", () => { treeState.shown = Number(byId("tree-select").value); showTree(current.point); });
  byId("ghosts").addEventListener("change", () => showTree(current.point));
  const best = trees.reduce((found, tree, k) => (tree.sizes[report.point] > trees[found].sizes[report.point] ? k : found), 0);
  treeState.shown = best;
  byId("tree-select").value = best;
  whenResized("tree", () => showTree(current.point));
}

function treeTitle(tree, point) {
  const feeds = tree.feeds === null ? "" : `, for ${tree.feeds}`;
  return `${tree.tree}${feeds}: ${count(tree.sizes[point])} of ${count(tree.sizes[0])} nodes`;
}

function showTree(point) {
  if (!report.trees.length) return;
  const tree = report.trees[treeState.shown];
  [...byId("tree-select").options].forEach((option, k) => { option.textContent = treeTitle(report.trees[k], point); });
  const withGhosts = byId("ghosts").checked;
  const isKept = (k) => presentAt(tree.changes[k], point);
  const width = Math.max(byId("tree").clientWidth, 260);
  const open = openNodes(tree, Math.max(6, Math.min(40, Math.floor(width / 30))));
  const visible = (k) => withGhosts || isKept(k);
  const positions = layOut(tree, open, visible);
  if (!positions.size) {
    byId("tree").replaceChildren(element("p", { class: "note" }, `Tree ${tree.tree} is removed at this point.`));
  } else {
    byId("tree").replaceChildren(drawTree(tree, positions, open, isKept, point, width));
  }
  showTreeNote(tree, point);
}

// The splits drawn with their children: those kept at the most points, until the width is used, then as clicked.
function openNodes(tree, maxLeaves) {
  const open = new Set();
  if (tree.left[0] === -1) return open;
  const lifetime = (k) => tree.changes[k][0] ?? nPoints;
  const queue = [0];
  let leaves = 1;
  while (queue.length && leaves < maxLeaves) {
    let best = 0;
    queue.forEach((k, i) => { if (lifetime(tree.left[k]) > lifetime(tree.left[queue[best]])) best = i; });
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

// Positions: leaves side by side from the left, parents above the middle of their children.
function layOut(tree, open, visible) {
  const positions = new Map();
  let slot = 0;
  const visit = (node, depth) => {
    if (!visible(node) && !below(node)) return;
    const children = open.has(node) && tree.left[node] !== -1 ? [tree.left[node], tree.right[node]] : [];
    const from = slot;
    children.forEach((child) => visit(child, depth + 1));
    const placed = children.filter((child) => positions.has(child));
    const x = placed.length ? placed.reduce((sum, child) => sum + positions.get(child).x, 0) / placed.length : slot++;
    positions.set(node, { x, depth, from, slots: Math.max(slot - from, 1), children: placed });
  };
  // A node that has replaced its pruned parent is visible although the parent is not.
  const below = (node) => tree.left[node] !== -1 && open.has(node) && [tree.left[node], tree.right[node]].some((child) => visible(child) || below(child));
  visit(0, 0);
  return positions;
}

function drawTree(tree, positions, open, isKept, point, width) {
  const slots = Math.max(...[...positions.values()].map((spot) => spot.x)) + 1;
  const depth = Math.max(...[...positions.values()].map((spot) => spot.depth));
  const step = Math.max(26, Math.min(150, (width - 24) / slots));
  const total = Math.max(step * slots + 24, Math.min(width, 260));
  const left = (total - step * slots) / 2;
  const at = (spot) => ({ x: left + (spot.x + 0.5) * step, y: 24 + spot.depth * LEVEL, from: left + spot.from * step, to: left + (spot.from + spot.slots) * step });
  const picture = svgElement("svg", { width: total, height: 24 + depth * LEVEL + 46, role: "group", "aria-label": `Tree ${tree.tree}` });
  const lines = [...positions].flatMap(([node, spot]) => spot.children.map((child) => [node, child]));
  for (const [node, child] of lines.sort((a, b) => isKept(a[1]) - isKept(b[1]))) {
    const [from, to] = [at(positions.get(node)), at(positions.get(child))];
    const kept = isKept(node) && isKept(child);
    picture.append(svgElement("path", { class: kept ? "edge" : "edge ghost", d: `M${from.x} ${from.y}C${from.x} ${from.y + LEVEL / 2} ${to.x} ${to.y - LEVEL / 2} ${to.x} ${to.y}` }));
  }
  const values = leafValues(tree, point, isKept);
  for (const [node, spot] of positions) picture.append(drawNode(tree, node, spot, at(spot), step, open, isKept, point, values));
  return picture;
}

function drawNode(tree, node, spot, { x, y, from, to }, step, open, isKept, point, values) {
  const kept = isKept(node);
  const splits = kept && presentAt(tree.opens[node], point);
  const foldable = tree.left[node] !== -1;
  const support = tree.support ? 0.2 + 0.8 * tree.support[node] : 1;
  const group = svgElement("g", { "data-node": node, "data-kept": kept, opacity: kept ? support : 1 });
  const text = nodeText(tree, node, kept, splits, values);
  group.append(svgElement("title", {}, text.full));
  const maxLength = Math.floor((spot.slots * step - 6) / LETTER);
  const near = (shown) => Math.min(Math.max(x, from + (shown.length * LETTER) / 2), to - (shown.length * LETTER) / 2);
  if (spot.children.length) {
    group.append(svgElement("circle", { class: kept ? (splits ? "node" : `node leaf ${colour(tree, node, values)}`) : "node ghost", cx: x, cy: y, r: 7 }));
    label(group, splits || !kept ? tree.question[node] : text.short, near, y - 11, maxLength, kept, 5);
  } else if (foldable || tree.hidden[node]) {
    group.append(svgElement("path", { class: kept && splits ? "more" : kept ? `node leaf ${colour(tree, node, values)}` : "more ghost", d: splits || !kept ? `M${x} ${y - 8}l11 18h-22z` : circlePath(x, y, 7) }));
    label(group, splits || !kept ? hiddenCount(tree, node) : fitting(text, maxLength), near, y + 24, maxLength, kept, 2);
  } else {
    group.append(svgElement("circle", { class: kept ? `node leaf ${colour(tree, node, values)}` : "node ghost", cx: x, cy: y, r: kept ? 8 : 5 }));
    if (kept) label(group, fitting(text, maxLength), near, y + 22, maxLength, kept, 1);
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
    showTree(current.point);
    byId("tree").querySelector(`[data-node="${node}"]`)?.focus();
  };
  fill(group, { class: "button", tabindex: 0, role: "button", "aria-expanded": open.has(node), "aria-label": text }, []);
  group.addEventListener("click", toggle);
  group.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
  });
}

// The longest text of a leaf that fits; numbers are not truncated.
const fitting = (text, maxLength) => [text.short, text.brief].find((candidate) => candidate.length <= maxLength) ?? "";

// A label is placed as near to its node as possible, within the horizontal range of its subtree.
function label(group, text, near, y, maxLength, kept, least) {
  if (maxLength < least || !text) return;
  const cut = text.length > maxLength ? `${text.slice(0, Math.max(maxLength - 1, 1))}…` : text;
  group.append(svgElement("text", { x: near(cut), y, "text-anchor": "middle", class: kept ? null : "ghost" }, cut));
}

// The leaf values at a point: the original ones, or those refitted for the point.
function leafValues(tree, point, isKept) {
  if (!tree.new || point === 0) return { value: tree.value, class: tree.class };
  const refitted = tree.new[point];
  const found = { value: [], class: tree.class ? [] : undefined };
  if (!refitted) return found;
  let k = 0;
  for (let node = 0; node < tree.left.length; node++) {
    if (!isKept(node) || presentAt(tree.opens[node], point)) continue;
    found.value[node] = refitted.value[k];
    if (refitted.class) found.class[node] = refitted.class[k];
    k += 1;
  }
  return found;
}

function nodeText(tree, node, kept, splits, values) {
  const rows = `${percent(tree.cover[node])} of the training rows`;
  const value = values.value[node];
  const prediction = value === undefined || value === null ? "" : values.class ? `${className(values.class[node])} ${number(value, 2)}` : number(value, 3);
  const support = tree.support ? `\nsupport ${percent(tree.support[node])}` : "";
  const hidden = tree.hidden[node] ? `\n${tree.hidden[node]} nodes below are not on this page` : "";
  if (!kept) return { short: "", full: `pruned: ${tree.question[node] || "a leaf"}\n${rows}${support}` };
  if (splits) return { short: tree.question[node], full: `${tree.question[node]}? yes: left\n${rows}${support}${hidden}` };
  return { short: prediction, brief: number(value, 2), full: `predicts ${prediction || "a value that is not on this page for this point"}\n${rows}${support}` };
}

const className = (code) => report.classes[code] ?? String(code);

function colour(tree, node, values) {
  if (values.class && values.class[node] !== undefined) return `c${values.class[node] % 8}`;
  const value = values.value[node];
  if (value === undefined || value === null) return "c5";
  return value >= (tree.feeds === null && !report.classes.length ? tree.value[0] : 0) ? "c1" : "c0";
}

function showTreeNote(tree, point) {
  const notes = [];
  if (report.model.trees > report.trees.length) notes.push(`${count(report.trees.length)} of ${count(report.model.trees)} trees are on this page: those that are largest at the chosen point.`);
  notes.push("Rows that satisfy a condition are routed left. Dashed: pruned. Click a split to fold or unfold it.");
  if (tree.hidden.some((n) => n > 0)) notes.push("Triangles with a number stand for nodes of large trees that are not on this page.");
  if (tree.support) notes.push("Paler nodes have lower support in stability selection.");
  if (!tree.class) notes.push(report.classes.length || tree.feeds !== null ? "Leaves: orange increases the score, green decreases it." : "Leaves: orange is above the mean of the tree, green below.");
  if (tree.new && report.model.trees > 1) notes.push("Leaf values were refitted jointly, so only their sum over trees is meaningful.");
  if (tree.new && point > 0 && !tree.new[point]) notes.push("The leaf values of this point are not on this page.");
  byId("tree-note").textContent = notes.join(" ");
}
