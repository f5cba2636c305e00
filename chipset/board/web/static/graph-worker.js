// Lays a graph out beside the page, so that the page stays quick.
"use strict";
importScripts("dagre.min.js");
onmessage = (e) => {
  const { nodes, edges } = e.data;
  const g = new dagre.graphlib.Graph();
  g.setGraph({ rankdir: "LR", nodesep: 12, ranksep: 46, marginx: 8, marginy: 8, ranker: nodes.length > 200 ? "longest-path" : "network-simplex" });
  g.setDefaultEdgeLabel(() => ({}));
  for (const n of nodes) g.setNode(n.id, { width: 210, height: 40 });
  for (const [from, to] of edges) g.setEdge(from, to);
  dagre.layout(g);
  postMessage({
    width: g.graph().width, height: g.graph().height,
    places: Object.fromEntries(g.nodes().map((id) => [id, { x: g.node(id).x, y: g.node(id).y }])),
    paths: g.edges().map((edge) => g.edge(edge).points),
  });
};
