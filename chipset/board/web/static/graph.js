// Draws the graph of a page: those that are linked are laid out by dagre, the others stand
// in a grid below.
"use strict";
(() => {
  const box = document.getElementById("graph");
  const NS = "http://www.w3.org/2000/svg", W = 210, H = 40;
  const make = (name, attributes, parent) => {
    const el = document.createElementNS(NS, name);
    for (const [k, v] of Object.entries(attributes)) el.setAttribute(k, v);
    if (parent) parent.append(el);
    return el;
  };
  // cut shortens a text to the width of a node, in the font that the page really has.
  const pen = document.createElement("canvas").getContext("2d"), family = getComputedStyle(box).fontFamily;
  const cut = (text, size) => {
    pen.font = `${size}px ${family}`;
    const fits = (t) => pen.measureText(t).width <= W - 18;
    if (fits(text)) return text;
    const letters = Array.from(text);
    let few = 0, many = letters.length;
    while (many - few > 1) {
      const half = (few + many) >> 1;
      if (fits(letters.slice(0, half).join("") + "…")) few = half; else many = half;
    }
    return letters.slice(0, few).join("") + "…";
  };
  const drawNode = (svg, n, x, y) => {
    const a = make("a", { href: n.link, class: n.class, transform: `translate(${x - W / 2} ${y - H / 2})` }, svg);
    make("title", {}, a).textContent = `${n.id} ${n.title}: ${n.word}`;
    make("rect", { width: W, height: H, rx: 6 }, a);
    make("text", { x: 9, y: 17, "font-size": 12 }, a).textContent = cut(n.title || n.id, 12);
    make("text", { x: 9, y: 32, "font-size": 11, class: "word" }, a).textContent = cut(n.id + " · " + n.word, 11);
  };
  const draw = (data, layout, alone) => {
    const perRow = Math.max(1, Math.floor((box.clientWidth - 16) / (W + 14)));
    const top = layout.height > 0 ? layout.height + 24 : 8;
    const height = top + Math.ceil(alone.length / perRow) * (H + 12), width = Math.max(layout.width, Math.min(perRow, alone.length) * (W + 14) + 8);
    const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    const marker = make("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, make("defs", {}, svg));
    make("path", { d: "M0 0 8 4 0 8z" }, marker);
    for (const points of layout.paths) make("path", { d: "M" + points.map((p) => `${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join("L"), "marker-end": "url(#arrow)" }, svg);
    for (const n of data.nodes) if (layout.places[n.id]) drawNode(svg, n, layout.places[n.id].x, layout.places[n.id].y);
    alone.forEach((n, i) => drawNode(svg, n, 8 + (i % perRow) * (W + 14) + W / 2, top + Math.floor(i / perRow) * (H + 12) + H / 2));
    const { scrollLeft, scrollTop } = box;
    const note = data.hidden > 0 ? Object.assign(document.createElement("p"), { textContent: `${data.hidden} more are not drawn.`, className: "faint" }) : "";
    box.replaceChildren(note, svg);
    Object.assign(box, { scrollLeft, scrollTop });
    box.dataset.drawn = data.nodes.length;
  };
  let before = "", worker = null, shape = "", layout = null;
  const load = async () => {
    const answer = await fetch(box.dataset.src, { cache: "no-store" });
    if (!answer.ok) return;
    const text = await answer.text();
    if (text === before) return;
    before = text;
    const data = JSON.parse(text);
    if (data.nodes.length === 0) { box.textContent = "There is no work yet."; return; }
    const linked = new Set(data.edges.flat());
    const some = data.nodes.filter((n) => linked.has(n.id)).map((n) => ({ id: n.id })), alone = data.nodes.filter((n) => !linked.has(n.id));
    const now = JSON.stringify([some, data.edges]);
    if (now === shape && layout) return draw(data, layout, alone);
    if (worker) worker.terminate();
    if (some.length === 0) return draw(data, { width: 0, height: 0, places: {}, paths: [] }, alone);
    if (!layout) box.textContent = `Laying out ${some.length} beads…`;
    worker = new Worker(box.dataset.dagre);
    worker.onmessage = (e) => { shape = now; layout = e.data; draw(data, layout, alone); worker.terminate(); worker = null; };
    worker.postMessage({ nodes: some, edges: data.edges });
  };
  let due = 0;
  document.addEventListener("parts", (e) => {
    if (!e.detail.some((p) => p === "work" || p === "convoys")) return;
    clearTimeout(due);
    due = setTimeout(load, 200);
  });
  load();
})();
