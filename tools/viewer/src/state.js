// Keeps the view in the URL's hash: #view=kernels&kernel=7. Every link of the page is such a hash.

/// The parameters of a hash: a plain object of strings.
export function parseHash(hash) {
  return Object.fromEntries(new URLSearchParams(hash.replace(/^#/, '')));
}

/// The hash of a view; empty parameters are left out.
export function hashOf(view, parameters = {}) {
  const search = new URLSearchParams({ view });
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value));
  }
  return `#${search}`;
}

/// A parameter as an integer, or null.
export function integerOf(parameters, name) {
  const value = Number.parseInt(parameters[name], 10);
  return Number.isSafeInteger(value) ? value : null;
}
