"use strict";
// Charts of one pipeline, drawn with uPlot from figures that the node keeps in memory.
(() => {
  const place = document.querySelector("[data-series]");
  if (!place || !window.uPlot) return;
  const names = ["lag", "rows"];
  let columns = { at: [], lag: [], rows: [] };
  let range = 900;
  let plots = [];

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const figure = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: value < 1 ? 3 : value < 10 ? 2 : 0 }));

  // Where nobody points at a chart, its legend has the newest values.
  const lastOf = (plot, of) => plot.data[of][plot.data[of].length - 1];
  // UTC, as all other times of the pages and of logs.
  const clock = (at, digits = 5) => new Date(at * 1000).toISOString().slice(11, 11 + digits);
  const moment = (at) => (at === null || at === undefined ? "–" : clock(at, 8));

  const options = (element, name) => {
    const text = colour("--muted");
    const axis = { stroke: text, grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "11px system-ui, sans-serif" };
    return {
      width: element.clientWidth,
      height: 160,
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      cursor: { sync: { key: "setl" }, points: { size: 6 } },
      legend: { live: true },
      scales: {
        x: { time: true, range: () => { const now = Date.now() / 1000; return [now - range, now]; } },
        y: { range: (plot, least, most) => [0, most > 0 ? most * 1.1 : 1] },
      },
      axes: [{ ...axis, space: 70, values: (plot, ticks) => ticks.map((at) => clock(at)) }, { ...axis, size: 52, values: (plot, ticks) => ticks.map(figure) }],
      series: [
        { label: "at", value: (plot, at) => moment(at ?? lastOf(plot, 0)) },
        { label: name, stroke: colour(name === "lag" ? "--n1" : "--n0"), width: 1.75,
          fill: colour(name === "lag" ? "--n1" : "--n0") + "22", spanGaps: false, value: (plot, value, of, index) => figure(index === null || index === undefined ? lastOf(plot, of) : value),
          gaps: (plot, index, from, to, unknown) => [...unknown, ...silences(plot, from, to)].sort((a, b) => a[0] - b[0]), points: { show: false } },
      ],
    };
  };

  // Where nobody recorded anything, nothing is drawn.
  const silences = (plot, from, to) => {
    const at = plot.data[0], gaps = [];
    for (let i = from + 1; i <= to; i++) {
      if (at[i] - at[i - 1] > 150) gaps.push([Math.round(plot.valToPos(at[i - 1], "x", true)), Math.round(plot.valToPos(at[i], "x", true))]);
    }
    return gaps;
  };

  const data = (name) => {
    const first = Date.now() / 1000 - range;
    const from = columns.at.findIndex((at) => at >= first);
    return from < 0 ? [[], []] : [columns.at.slice(from), columns[name].slice(from)];
  };

  const draw = () => {
    for (const plot of plots) plot.destroy();
    plots = names.map((name) => {
      const element = place.querySelector(`[data-figure="${name}"]`);
      return new uPlot(options(element, name), data(name), element);
    });
    describe();
  };

  const refresh = () => {
    names.forEach((name, i) => plots[i].setData(data(name)));
    describe();
  };

  const describe = () => {
    for (const name of names) {
      const values = data(name)[1].filter((value) => value !== null);
      const words = values.length ? `now ${figure(values[values.length - 1])}, at most ${figure(Math.max(...values))}` : "nothing recorded";
      place.querySelector(`[data-figure="${name}"]`).setAttribute("aria-label", `${name === "lag" ? "Lag in seconds" : "Row changes a second"}, last ${range / 60} minutes: ${words}`);
    }
  };

  const load = async () => {
    const last = columns.at.length ? columns.at[columns.at.length - 1] : 0;
    try {
      const answer = await fetch(`${place.dataset.series}?since=${last}`);
      if (!answer.ok) return;
      const more = await answer.json();
      const edge = Date.now() / 1000 - 43200;
      const kept = columns.at.findIndex((at) => at >= edge);
      for (const name of ["at", ...names]) columns[name] = columns[name].slice(Math.max(0, kept)).concat(more[name]);
    } catch {
      return; // the sign at the top of the page says that the node does not answer
    }
    refresh();
  };

  for (const button of document.querySelectorAll("[data-range]")) {
    button.addEventListener("click", () => {
      range = Number(button.dataset.range);
      for (const other of document.querySelectorAll("[data-range]")) other.setAttribute("aria-pressed", String(other === button));
      refresh();
    });
  }
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let width = 0;
  new ResizeObserver(() => {
    if (place.clientWidth !== width) { width = place.clientWidth; draw(); }
  }).observe(place);
  draw();
  load();
  setInterval(() => { if (!document.hidden) load(); }, 5000);
})();
