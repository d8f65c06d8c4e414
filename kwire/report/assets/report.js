"use strict";
// The script of a report: charts from the JSON in the page, and tables that sort and filter. Everything from a capture
// is text here too: it is only ever set as textContent.
(() => {
  const data = JSON.parse(document.getElementById("charts").textContent);
  const make = (name, words, ...inside) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(words || {})) made.setAttribute(key, value);
    made.append(...inside);
    return made;
  };
  const colours = () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const style = getComputedStyle(document.documentElement);
    return {
      text: style.getPropertyValue("--dim").trim(),
      grid: style.getPropertyValue("--line").trim(),
      lines: dark
        ? ["#6ea3ff", "#f0a35e", "#6fd08c", "#f48fb1", "#c5a3ff", "#5fd3d3", "#e6d36a", "#ff8a80", "#b0bec5", "#9ccc65"]
        : ["#2f6fd0", "#c4681c", "#2e8b57", "#c2185b", "#7b4fc9", "#00838f", "#8d7500", "#b3261e", "#546e7a", "#558b2f"],
    };
  };

  // --- numbers

  const scaled = (number, units) => {
    let size = Math.abs(number), k = 0;
    while (size >= 1000 && k < units.length - 1) { size /= 1000; k++; }
    const digits = size >= 100 || Number.isInteger(size) ? 0 : size >= 10 ? 1 : 2;
    return `${number < 0 ? "-" : ""}${size.toFixed(digits)}${units[k] ? " " + units[k] : ""}`;
  };
  const shown = {
    bytes: (one) => scaled(one, ["B", "kB", "MB", "GB", "TB"]),
    count: (one) => (Math.abs(one) < 1 && one !== 0 ? String(Number(one.toPrecision(2))) : scaled(one, ["", "k", "M", "G"])),
    ms: (one) => (one >= 1000 ? `${Number((one / 1000).toPrecision(3))} s` : `${Number(one.toPrecision(3))} ms`),
  };

  // A time of the axis, as fine as what is seen; the first of a day has the day below it.
  const moment = (at, k, all) => {
    const text = new Date(at * 1000).toISOString();
    const step = all.length > 1 ? all[1] - all[0] : 1;
    const day = text.slice(0, 10), before = k ? new Date(all[k - 1] * 1000).toISOString().slice(0, 10) : "";
    const time = step >= 60 ? text.slice(11, 16) : step >= 1 ? text.slice(11, 19) : text.slice(11, 23);
    return step >= 86400 ? day : day === before ? time : `${time}\n${day}`;
  };

  // --- charts over time

  const plots = [];
  const whole = data.x.length ? [data.x[0], data.x[data.x.length - 1] + data.width] : [0, 1];
  let seen = whole.slice();
  const zoom = (low, high) => {
    const least = data.width * 2;
    let size = Math.min(Math.max(high - low, least), whole[1] - whole[0] || least);
    low = Math.max(whole[0], Math.min(low, whole[1] - size));
    seen = [low, low + size];
    for (const plot of plots) plot.setScale("x", { min: seen[0], max: seen[1] });
  };
  const closer = (factor) => {
    const middle = (seen[0] + seen[1]) / 2, half = ((seen[1] - seen[0]) / 2) * factor;
    zoom(middle - half, middle + half);
  };
  const along = (part) => {
    const step = (seen[1] - seen[0]) * part;
    zoom(seen[0] + step, seen[1] + step);
  };
  const keys = {
    "+": () => closer(0.5), "=": () => closer(0.5), "-": () => closer(2), 0: () => zoom(...whole),
    Escape: () => zoom(...whole), ArrowLeft: () => along(-0.25), ArrowRight: () => along(0.25),
  };

  const charts = {
    traffic: {
      views: [["requests", "requests a second", "count"], ["frames", "frames a second", "count"],
        ["bytes", "bytes a second", "bytes"], ["errors", "responses with errors a second", "count"]],
      of: (view) => data.traffic[view],
    },
    waits: {
      views: Object.keys(data.waits).map((api) => [api, api || "all APIs", "ms"]),
      of: (view) => data.waits[view], log: true,
    },
    ways: {
      views: Object.keys(data.ways).map((way) => [way, way || "all topics", "ms"]),
      of: (view) => data.ways[view], log: true,
    },
    flow: {
      views: [["bytes written", "bytes written a second", "bytes"], ["bytes read", "bytes read a second", "bytes"],
        ["records written", "records written a second", "count"], ["records read", "records read a second", "count"]],
      of: (view) => data.flow[view],
    },
    wrong: { views: [["errors", "errors a second", "count"]], of: (view) => data.wrong[view] },
    groups: {
      views: [["generation", "generation", "count"], ["members", "members that said something", "count"],
        ["requests", "requests a second", "count"]],
      of: (view) => data.groups[view],
    },
  };

  const draw = (figure, chart) => {
    const title = figure.querySelector("figcaption").textContent;
    const tools = make("div", { class: "tools" });
    const place = make("div", { class: "plot", tabindex: "0", role: "img" });
    const chosen = make("select", { "aria-label": `${title}: what is shown` });
    for (const [name, words] of chart.views) chosen.append(make("option", { value: name }, words));
    if (chart.views.length > 1) tools.append(chosen);
    for (const [sign, words, act] of [["+", "closer", () => closer(0.5)], ["−", "farther", () => closer(2)],
      ["◀", "earlier", () => along(-0.25)], ["▶", "later", () => along(0.25)], ["all", "all of the time", () => zoom(...whole)]]) {
      const button = make("button", { type: "button", "aria-label": words, title: words }, sign);
      button.addEventListener("click", act);
      tools.append(button);
    }
    figure.append(tools, place);
    let plot = null;
    const show = () => {
      if (plot) { plots.splice(plots.indexOf(plot), 1); plot.destroy(); plot = null; }
      place.replaceChildren();
      const [view, words, unit] = chart.views.find(([name]) => name === chosen.value) || chart.views[0] || ["", "", "count"];
      const lines = (view === undefined ? null : chart.of(view)) || [];
      place.setAttribute("aria-label", `${title}: ${words}; + and - zoom, arrows move, 0 shows all`);
      if (!lines.length || !data.x.length) {
        place.append(make("p", { class: "none" }, "Nothing of this kind."));
        return;
      }
      const colour = colours();
      const text = shown[unit];
      const axis = { stroke: colour.text, grid: { stroke: colour.grid, width: 1 }, ticks: { stroke: colour.grid, width: 1 } };
      const options = {
        width: Math.max(place.clientWidth, 200), height: innerWidth < 640 ? 220 : 280,
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
        cursor: { sync: { key: "kwire" }, drag: { x: true, y: false, setScale: false } },
        select: { show: true },
        scales: {
          x: { time: true, range: () => seen },
          y: chart.log ? { distr: 3 } : { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] },
        },
        axes: [
          { ...axis, space: 90, values: (_, ticks) => ticks.map(moment) },
          { ...axis, size: 74, values: (_, ticks) => ticks.map((one) => (one === null ? "" : text(one))) },
        ],
        series: [
          { label: "UTC", value: (_, at) => (at === null ? "-" : new Date(at * 1000).toISOString().slice(0, 23).replace("T", " ")) },
          ...lines.map(([name], k) => ({
            label: name || "-", stroke: colour.lines[k % colour.lines.length], width: 1.5, spanGaps: true,
            points: { size: 4 },
            value: (_, one) => (one === null || one === undefined ? "-" : text(one)),
          })),
        ],
        hooks: {
          setSelect: [(self) => {
            if (self.select.width > 3) {
              zoom(self.posToVal(self.select.left, "x"), self.posToVal(self.select.left + self.select.width, "x"));
            }
            self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          }],
        },
      };
      plot = new uPlot(options, [data.x, ...lines.map(([, values]) => values)], place);
      plot.over.addEventListener("dblclick", () => zoom(...whole));
      for (const label of place.querySelectorAll(".u-legend .u-series:not(:first-child) th")) {
        label.tabIndex = 0;
        label.setAttribute("role", "button");
        label.addEventListener("keydown", (event) => {
          if (event.key === "Enter" || event.key === " ") { event.preventDefault(); label.click(); }
        });
      }
      plots.push(plot);
    };
    place.addEventListener("keydown", (event) => {
      if (event.target !== place || event.ctrlKey || event.metaKey || event.altKey) return;
      const act = keys[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    // Two fingers zoom.
    let apart = 0;
    const distance = (event) => Math.abs(event.touches[0].clientX - event.touches[1].clientX) || 1;
    place.addEventListener("touchstart", (event) => { apart = event.touches.length === 2 ? distance(event) : 0; }, { passive: true });
    place.addEventListener("touchmove", (event) => {
      if (apart && event.touches.length === 2) { const now = distance(event); closer(apart / now); apart = now; }
    }, { passive: true });
    chosen.addEventListener("change", show);
    show();
    return show;
  };

  const redraws = [];
  for (const figure of document.querySelectorAll("figure.chart")) {
    const chart = charts[figure.dataset.chart];
    if (chart) redraws.push(draw(figure, chart));
  }
  const redraw = () => { for (const one of redraws) one(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let wide = innerWidth, waiting = 0;
  addEventListener("resize", () => {
    if (innerWidth === wide) return;
    wide = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 150);
  });

  // --- who writes and who reads

  const NS = "http://www.w3.org/2000/svg";
  const part = (name, words, ...inside) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(words || {})) made.setAttribute(key, value);
    made.append(...inside);
    return made;
  };
  // A text that is too long for its box loses its middle: names that begin alike often differ at their end.
  const fit = (text, room) => {
    const whole = Array.from(text.textContent);
    let keep = Math.floor((whole.length * room) / text.getComputedTextLength());
    while (text.getComputedTextLength() > room && keep > 0) {
      text.textContent = [...whole.slice(0, Math.ceil(keep / 2)), "…", ...whole.slice(whole.length - Math.floor(keep / 2))].join("");
      keep--;
    }
    return text.getComputedTextLength();
  };
  const graph = (figure) => {
    const { nodes, arrows } = data.graph;
    const columns = { writer: 0, topic: 1, reader: 2 }, counts = [0, 0, 0];
    const height = 40, [width, box] = innerWidth < 640 ? [720, 200] : [1100, 290];
    const places = nodes.map(([kind]) => {
      const column = columns[kind];
      return { column, row: counts[column]++ };
    });
    const most = Math.max(...counts, 1);
    for (const place of places) {
      place.x = 10 + place.column * (width - box - 20) / 2;
      place.y = 26 + (place.row + (most - counts[place.column]) / 2) * height;
    }
    const svg = part("svg", { viewBox: `0 0 ${width} ${most * height + 40}`, role: "img", "aria-label": "graph of the table of edges below" });
    for (const [k, words] of ["writes", "topic", "reads"].entries()) {
      svg.append(part("text", { class: "dim", x: 10 + k * (width - box - 20) / 2, y: 14 }, words));
    }
    figure.append(make("div", { class: "graph", tabindex: "0" }, svg));
    const largest = Math.max(...arrows.map((one) => one[2]), 1);
    const lines = arrows.map(([from, to, size, words]) => {
      const a = places[from], b = places[to], x = a.x + box, middle = (x + b.x) / 2;
      const line = part("path", {
        d: `M${x},${a.y + 15}C${middle},${a.y + 15} ${middle},${b.y + 15} ${b.x},${b.y + 15}`,
        "stroke-width": (1 + 7 * Math.sqrt(size / largest)).toFixed(2),
      }, part("title", {}, words));
      svg.append(line);
      return line;
    });
    nodes.forEach(([kind, name, below], k) => {
      const { x, y } = places[k];
      const called = part("text", { x: x + 9, y: y + 20 }, name);
      const where = part("text", { class: "dim", x: x + box - 8, y: y + 19, "text-anchor": "end" }, below);
      const node = part("g", { class: kind, tabindex: "0" },
        part("title", {}, below ? `${name} (${below})` : name),
        part("rect", { x, y, width: box, height: 30, rx: 5 }), called, where);
      const mark = (on) => () => arrows.forEach(([from, to], at) => {
        if (from === k || to === k) lines[at].classList.toggle("on", on);
      });
      for (const event of ["pointerenter", "focus"]) node.addEventListener(event, mark(true));
      for (const event of ["pointerleave", "blur"]) node.addEventListener(event, mark(false));
      svg.append(node);
      fit(called, box - 25 - fit(where, 100));
    });
  };
  for (const figure of document.querySelectorAll("figure[data-chart=graph]")) if (data.graph.nodes.length) graph(figure);

  // --- tables

  for (const box of document.querySelectorAll("div.t")) {
    const body = box.querySelector("tbody"), heads = [...box.querySelectorAll("thead th")];
    const rows = [...body.rows];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, head.textContent);
      head.replaceChildren(button);
      const key = (row) => row.cells[column].dataset.v;
      const numeric = rows.some((row) => key(row) !== undefined);
      button.addEventListener("click", () => {
        const was = head.getAttribute("aria-sort");
        const down = was ? was === "ascending" : numeric;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1;
        const order = numeric
          ? (a, b) => {
            // What is not known stands last in either order.
            const [one, other] = [key(a), key(b)];
            if (one === undefined || other === undefined) return (one === undefined) - (other === undefined);
            return sign * (one - other);
          }
          : (a, b) => sign * a.cells[column].textContent.localeCompare(b.cells[column].textContent, "en", { numeric: true });
        body.append(...[...body.rows].sort(order));
      });
    });
    if (rows.length < 6) continue;
    const field = make("input", { type: "search", placeholder: "filter", "aria-label": `filter: ${box.getAttribute("aria-label") || "table"}` });
    const count = make("span", { class: "none", "aria-live": "polite" });
    const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        row.hidden = !words.every((word) => texts.get(row).includes(word));
        left += !row.hidden;
      }
      count.textContent = words.length ? `${left} of ${rows.length}` : "";
    });
    box.before(make("div", { class: "tools" }, field, count));
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const fields = [...document.querySelectorAll(".tools input")];
    const next = fields.find((field) => field.getBoundingClientRect().top > 0) || fields[0];
    if (next) { event.preventDefault(); next.focus(); }
  });
})();
