// Chooses colours: one for each kernel, step or category, for light and dark pages.

const dark = window.matchMedia('(prefers-color-scheme: dark)');

/// Twelve hues that stay apart, also for most colour-blind readers, in turn light and less light.
const HUES = [210, 35, 150, 280, 0, 185, 60, 320, 95, 240, 20, 170];

function isDark() {
  return dark.matches;
}

export function onThemeChange(task) {
  dark.addEventListener('change', task);
}

/// The colour of the index-th thing of a list; black text on it is readable (contrast over 4.5).
export function colourOf(index) {
  const at = ((index % 36) + 36) % 36;
  const hue = HUES[at % 12];
  const lightness = [68, 78, 60][Math.floor(at / 12)];
  return `hsl(${hue} ${isDark() ? 55 : 65}% ${lightness}%)`;
}

const palette = { theme: null, values: null };

/// The page's own colours, read from its style sheet once for each theme.
export function theme() {
  if (palette.theme === isDark() && palette.values) return palette.values;
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  palette.theme = isDark();
  palette.values = Object.fromEntries(
    ['paper', 'panel', 'ink', 'muted', 'line', 'accent', 'warn', 'good', 'bad', 'grid'].map(
      (name) => [name, value(name)],
    ),
  );
  return palette.values;
}

export const CATEGORIES = ['plan', 'codegen', 'compile', 'run', 'stage', 'search', 'pool', 'jit'];
export const DIRECTIONS = ['host to device', 'device to host', 'on the device', 'fill'];
export const COLLECTIVES = [
  'all-reduce',
  'reduce-scatter',
  'all-gather',
  'all-to-all',
  'broadcast',
  'send',
  'receive',
];
