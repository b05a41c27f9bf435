// Chooses places for the nodes of a graph: dagre for graphs that it places in under a second, own
// layers for larger ones.
import { graphlib, layout as dagreLayout } from '@dagrejs/dagre';
import { layOutLayers } from './layers.js';

const DAGRE_NODES = 350,
  DAGRE_EDGES = 700; // measured: dagre needs 0.9 s for 350 nodes
const GAP = { across: 22, between: 34 };

function byDagre({ count, from, to, width, height }) {
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: 'TB', nodesep: GAP.across, ranksep: GAP.between });
  for (let i = 0; i < count; ++i) graph.setNode(String(i), { width: width[i], height: height[i] });
  for (let e = 0; e < from.length; ++e)
    graph.setEdge(String(from[e]), String(to[e]), {}, String(e));
  dagreLayout(graph);
  const x = new Float32Array(count),
    y = new Float32Array(count);
  for (let i = 0; i < count; ++i) ({ x: x[i], y: y[i] } = graph.node(String(i)));
  const bendStart = new Int32Array(from.length + 1),
    bends = [];
  for (let e = 0; e < from.length; ++e) {
    const { points } = graph.edge(String(from[e]), String(to[e]), String(e));
    for (const point of points) bends.push(point.x, point.y);
    bendStart[e + 1] = bends.length;
  }
  return { x, y, bendStart, bends: Float32Array.from(bends) };
}

/// Places nodes { count, from, to (edges from source to user), width, height }: x, y of the
/// centres, and for small graphs the bends of the edges.
export function layOut(graph) {
  const small = graph.count <= DAGRE_NODES && graph.from.length <= DAGRE_EDGES;
  if (small) {
    try {
      return byDagre(graph);
    } catch {
      // dagre cannot place every multigraph; the layers can
    }
  }
  return layOutLayers(graph, GAP);
}
