// Turns values of unknown JSON into values of a known type; whatever does not fit becomes empty.

export function text(value) {
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? String(value) : '';
}

export function number(value, otherwise = 0) {
  return typeof value === 'number' && Number.isFinite(value) ? value : otherwise;
}

export function integer(value, otherwise = 0) {
  return typeof value === 'number' && Number.isFinite(value) ? value | 0 : otherwise;
}

export function numbers(value) {
  return Array.isArray(value) ? value.map((item) => number(item)) : [];
}

export function integers(value) {
  return Array.isArray(value) ? value.map((item) => integer(item)) : [];
}

export function texts(value) {
  return Array.isArray(value) ? value.map(text) : [];
}

export function array(value) {
  return Array.isArray(value) ? value : [];
}

export function isObject(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

export function objects(value) {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
