// Turns numbers into text for people: durations, bytes, rates, counts.

function digits(value) {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  return value.toFixed(2);
}

/// Nanoseconds as "1.25 ms".
export function duration(ns) {
  const size = Math.abs(ns);
  if (size < 1e3) return `${Math.round(ns)} ns`;
  if (size < 1e6) return `${digits(ns / 1e3)} µs`;
  if (size < 1e9) return `${digits(ns / 1e6)} ms`;
  return `${digits(ns / 1e9)} s`;
}

export function bytes(count) {
  const size = Math.abs(count);
  if (size < 1024) return `${Math.round(count)} B`;
  if (size < 1024 ** 2) return `${digits(count / 1024)} KiB`;
  if (size < 1024 ** 3) return `${digits(count / 1024 ** 2)} MiB`;
  return `${digits(count / 1024 ** 3)} GiB`;
}

export function count(value) {
  return Math.round(value).toLocaleString('en-US');
}

export function percent(part) {
  if (!Number.isFinite(part)) return '–';
  return `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;
}

/// Per nanosecond is giga per second.
export function rate(perNs, unit) {
  return perNs > 0 && Number.isFinite(perNs) ? `${digits(perNs)} ${unit}` : '–';
}

export function ratio(value) {
  return Number.isFinite(value) && value > 0 ? `${value.toFixed(2)} ×` : '–';
}

/// Text of at most `length` characters.
export function shorten(text, length) {
  return text.length <= length ? text : `${text.slice(0, Math.max(0, length - 1))}…`;
}

/// "file:line", where known.
export function place(file, line) {
  if (!file) return '';
  return line ? `${file}:${line}` : file;
}

export function plural(number, word, words = `${word}${word.endsWith('ch') ? 'es' : 's'}`) {
  return `${count(number)} ${number === 1 ? word : words}`;
}
