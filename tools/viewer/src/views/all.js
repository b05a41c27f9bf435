// The views, in the order of the navigation.
import { kernelsView } from './kernels.js';
import { timelineView } from './timeline.js';

export const VIEWS = [timelineView, kernelsView];
