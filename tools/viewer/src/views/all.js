// The views, in the order of the navigation.
import { compareView } from './compare.js';
import { graphView } from './graph.js';
import { kernelsView } from './kernels.js';
import { memoryView } from './memory.js';
import { rewritesView } from './rewrites.js';
import { schedulesView } from './schedules.js';
import { timelineView } from './timeline.js';

export const VIEWS = [
  timelineView,
  kernelsView,
  rewritesView,
  graphView,
  memoryView,
  schedulesView,
  compareView,
];
