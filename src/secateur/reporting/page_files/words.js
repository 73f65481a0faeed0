// What is said in sentences: the headline, how sure one can be, how the path was made, and how to get a point again.

function showLead() {
  byId("title").textContent = `${report.model.type}, pruned`;
  const p = report.point;
  const loss = evaluated ? `; loss ${number(table.loss[0])} before, ${number(table.loss[p])} ± ${number(table.loss_se[p], 2)} after` : "";
  const cost = costIsSize ? "" : `; cost ${number(table.cost[0])} before, ${number(table.cost[p])} after`;
  byId("lead").textContent = `Chosen: point ${p} of ${nPoints - 1}, with ${count(table.n_nodes[p])} of ${count(table.n_nodes[0])} nodes (${share(table.n_nodes[p] / table.n_nodes[0])})${cost}${loss}.`;
}

function readOut(point) {
  const parts = [`point ${point} of ${nPoints - 1}`, `${count(table.n_nodes[point])} nodes`];
  if (!costIsSize) parts.push(`cost ${number(table.cost[point])}`);
  parts.push(evaluated ? `loss ${number(table.loss[point])}` : `risk ${number(table.risk[point])}`);
  if (point === report.point) parts.push("chosen");
  if (point === 0) parts.push("unpruned");
  return parts.join(" · ");
}

function showSure(point) {
  const { sure, facts } = report;
  const items = [];
  if (evaluated) {
    items.push(`Losses were measured on ${count(facts.evaluated_rows)} rows: ${facts.evaluated_on}.`);
    const error = table.increase_se[point];
    if (point && table.loss[point] !== null) items.push(`The loss here differs from the unpruned model's by ${number(table.loss[point] - table.loss[0], 3)}, known to ± ${number(error, 2)} (one standard error of the difference, row by row).`);
    items.push(`The lowest loss, ${number(table.loss[sure.best])}, is at point ${sure.best}. ${count(sure.within)} of ${count(nPoints)} points are within one standard error of it; the cheapest of these is point ${sure.cheapest} with ${count(table.n_nodes[sure.cheapest])} nodes. ${table.loss[point] !== null && table.loss[point] <= sure.one_se ? "The point shown is one of them." : "The point shown is not."}`);
  } else {
    items.push("The path has not been evaluated on rows of its own: nothing can be said of how well a point does elsewhere.");
  }
  if (sure.gap && sure.gap[point] !== null) {
    items.push(sure.gap[point] > 0 ? `Proved: no pruning that costs at most as much has a risk (on the rows pruned by) lower by more than ${number(sure.gap[point], 3)}, ${share(sure.gap[point] / table.risk[point])} of this one's.` : "Proved: no pruning that costs at most as much has a lower risk on the rows pruned by.");
  } else {
    items.push("The solver gives no bound on how much better another pruning of this cost could be.");
  }
  if (facts.interrupted) items.push("The search was interrupted: the path has the points found until then.");
  byId("sure-list").replaceChildren(...items.map((text) => element("li", {}, text)));
}

function showHow() {
  const { model, facts, versions } = report;
  const entries = [
    ["model", [model.type, ...model.inside].join(" > ") + `, ${model.library}`],
    ["task", model.task + (model.classes.length ? ` into ${model.classes.map(count).join(" and ")} classes` : "")],
    ["features", `${count(model.features_used)} looked at, of ${count(model.features)}`],
    ["solver", report.solver],
    ["loss", facts.loss],
    ["cost", facts.cost],
    ["pruned by", `${count(facts.made_on_rows)} rows`],
    ["chosen by", evaluated ? `${count(facts.evaluated_rows)} rows: ${facts.evaluated_on}` : "not evaluated"],
    ["points", count(nPoints)],
    ["versions", Object.entries(versions).map(([name, value]) => `${name} ${value}`).join(", ")],
  ];
  if (report.summary.clone) entries.push(["note", "the chosen point is a pruning of a clone of the model, trained on fewer features"]);
  byId("how-list").replaceChildren(...entries.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]));
}

function showCode(point) {
  const lines = [];
  const { code } = report;
  if (code.chosen && point === report.point) lines.push(code.chosen);
  if (code.shell) lines.push(code.shell.replaceAll("{point}", point));
  lines.push(code.python.replaceAll("{point}", point));
  byId("code-list").replaceChildren(...lines.map((text) => {
    const copy = element("button", { type: "button" }, "copy");
    copy.addEventListener("click", () => copyText(text, copy));
    return element("div", { class: "line" }, element("pre", {}, element("code", {}, text)), copy);
  }));
}

async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {
    const range = document.createRange();
    range.selectNodeContents(button.previousElementSibling);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    button.textContent = "selected";
  }
  setTimeout(() => { button.textContent = "copy"; }, 1500);
}
