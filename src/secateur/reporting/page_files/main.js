// The point looked at, and everything that follows it.

const now = { point: report.point };

function choosePoint(point) {
  now.point = Math.max(0, Math.min(nPoints - 1, point));
  byId("slider").value = now.point;
  const text = readOut(now.point);
  byId("readout").textContent = text;
  byId("slider").setAttribute("aria-valuetext", text);
  byId("back").disabled = now.point === 0;
  byId("forth").disabled = now.point === nPoints - 1;
  byId("home").disabled = now.point === report.point;
  showTable(now.point);
  drawCurve(now.point);
  showTree(now.point);
  showFeatures(now.point);
  showSure(now.point);
  showCode(now.point);
}

function changeTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

byId("slider").max = nPoints - 1;
byId("slider").addEventListener("input", () => choosePoint(Number(byId("slider").value)));
byId("back").addEventListener("click", () => choosePoint(now.point - 1));
byId("forth").addEventListener("click", () => choosePoint(now.point + 1));
byId("home").addEventListener("click", () => choosePoint(report.point));
byId("theme").addEventListener("click", changeTheme);
showLead();
showHow();
explainTable();
setUpCurve(choosePoint);
setUpTrees();
whenResized("histogram", () => showFeatures(now.point));
choosePoint(report.point);
