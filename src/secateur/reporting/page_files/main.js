// The current point, and the update of all sections when it changes.

const current = { point: report.point };

function choosePoint(point) {
  current.point = Math.max(0, Math.min(nPoints - 1, point));
  byId("slider").value = current.point;
  const text = pointSummary(current.point);
  byId("readout").textContent = text;
  byId("slider").setAttribute("aria-valuetext", text);
  byId("previous").disabled = current.point === 0;
  byId("next").disabled = current.point === nPoints - 1;
  byId("home").disabled = current.point === report.point;
  showTable(current.point);
  drawCurve(current.point);
  showTree(current.point);
  showFeatures(current.point);
  showUncertainty(current.point);
  showCode(current.point);
}

function changeTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

byId("slider").max = nPoints - 1;
byId("slider").addEventListener("input", () => choosePoint(Number(byId("slider").value)));
byId("previous").addEventListener("click", () => choosePoint(current.point - 1));
byId("next").addEventListener("click", () => choosePoint(current.point + 1));
byId("home").addEventListener("click", () => choosePoint(report.point));
byId("theme").addEventListener("click", changeTheme);
showHeadline();
showMethod();
showTableNote();
setUpCurve(choosePoint);
setUpTrees();
whenResized("histogram", () => showFeatures(current.point));
choosePoint(report.point);
