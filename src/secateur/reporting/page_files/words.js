// Sections of text: headline, uncertainty, model and method, and code that reproduces a point.

function showHeadline() {
  byId("title").textContent = `${report.model.type}, pruned`;
  const p = report.point;
  const loss = evaluated ? `; loss ${number(table.loss[0])} before, ${number(table.loss[p])} ± ${number(table.loss_se[p], 2)} after` : "";
  const cost = costIsSize ? "" : `; cost ${number(table.cost[0])} before, ${number(table.cost[p])} after`;
  const score = scored ? `; ${report.facts.scoring} ${number(table.score[0])} before, ${number(table.score[p])} after` : "";
  byId("lead").textContent = `Chosen: point ${p} of ${nPoints - 1}, with ${count(table.n_nodes[p])} of ${count(table.n_nodes[0])} nodes (${percent(table.n_nodes[p] / table.n_nodes[0])})${cost}${loss}${score}.`;
}

function pointSummary(point) {
  const parts = [`point ${point} of ${nPoints - 1}`, `${count(table.n_nodes[point])} nodes`];
  if (!costIsSize) parts.push(`cost ${number(table.cost[point])}`);
  parts.push(evaluated ? `loss ${number(table.loss[point])}` : `risk ${number(table.risk[point])}`);
  if (point === report.point) parts.push("chosen");
  if (point === 0) parts.push("unpruned");
  return parts.join(" · ");
}

function showUncertainty(point) {
  const { sure, facts } = report;
  const items = [];
  if (evaluated) {
    items.push(`Losses were measured on ${count(facts.evaluated_rows)} rows: ${facts.evaluated_on}.`);
    const error = table.increase_se[point];
    if (point && table.loss[point] !== null) items.push(`The difference from the loss of the unpruned model is ${number(table.loss[point] - table.loss[0], 3)} ± ${number(error, 2)} (one standard error of the paired difference).`);
    items.push(`The lowest loss, ${number(table.loss[sure.best])}, is at point ${sure.best}. ${count(sure.within)} of ${count(nPoints)} points are within one standard error of it; the cheapest of these is point ${sure.cheapest} with ${count(table.n_nodes[sure.cheapest])} nodes. ${table.loss[point] !== null && table.loss[point] <= sure.one_se ? "The current point is one of them." : "The current point is not one of them."}`);
  } else {
    items.push("The path has not been evaluated on validation rows, so the loss on new rows is unknown.");
  }
  if (sure.gap && sure.gap[point] !== null) {
    items.push(sure.gap[point] > 0 ? `Certified: no pruning of at most this cost has a risk (loss on the pruning rows) lower by more than ${number(sure.gap[point], 3)}, which is ${percent(sure.gap[point] / table.risk[point])} of the current risk.` : "Certified: no pruning of at most this cost has a lower risk (loss on the pruning rows).");
  } else {
    items.push("The solver certifies no bound on the risk of other prunings of this cost.");
  }
  if (facts.interrupted) items.push("The search was interrupted: the path contains the points found before that.");
  byId("sure-list").replaceChildren(...items.map((text) => element("li", {}, text)));
}

function showMethod() {
  const { model, facts, versions } = report;
  const entries = [
    ["model", [model.type, ...model.inside].join(" > ") + `, ${model.library}`],
    ["task", model.task + (model.classes.length ? ` into ${model.classes.map(count).join(" and ")} classes` : "")],
    ["features", `${count(model.features_used)} of ${count(model.features)} used`],
    ...[["trained for", model.objective], ["predicts", model.range]].filter(([, text]) => text),
    ...constraints(model.monotone ?? []),
    ["solver", report.solver],
    ["loss", facts.loss],
    ...(scored ? [["scoring", facts.scoring]] : []),
    ["cost", facts.cost],
    ["pruning rows", count(facts.made_on_rows)],
    ["validation rows", evaluated ? `${count(facts.evaluated_rows)}: ${facts.evaluated_on}` : "not evaluated"],
    ["points", count(nPoints)],
    ["versions", Object.entries(versions).map(([name, value]) => `${name} ${value}`).join(", ")],
  ];
  if (report.summary.clone) entries.push(["note", "the chosen point is a pruning of a clone of the model, trained on fewer features"]);
  byId("how-list").replaceChildren(...entries.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]));
}

// The features with a monotonic constraint, one entry per direction.
function constraints(monotone) {
  const entries = [["non-decreasing in", 1], ["non-increasing in", -1]];
  return entries.map(([name, sign]) => [name, monotone.filter((one) => one.sign === sign).map((one) => one.feature).join(", ")]).filter(([, text]) => text);
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
