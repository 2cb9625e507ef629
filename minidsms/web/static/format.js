// Numbers and times as people read them.

const STEPS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** 1234567 -> "1.23M"; small ones with three digits. */
export function short(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  for (const [step, name] of STEPS) if (size >= step) return digits(value / step) + name;
  return Number.isInteger(value) ? String(value) : digits(value);
}

/** "1 row", "1.23M rows". */
export function counted(value, noun) {
  return `${short(value)} ${noun}${value === 1 ? "" : "s"}`;
}

function digits(value) {
  const size = Math.abs(value);
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : size >= 1 || size === 0 ? value.toFixed(2) : value.toPrecision(2);
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  while (value >= 1024 && unit < 4) { value /= 1024; unit += 1; }
  return `${unit ? digits(value) : value} ${["bytes", "KB", "MB", "GB", "TB"][unit]}`;
}

export function percent(value) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(Math.abs(value) < 0.1 && value ? 1 : 0)} %`;
}

/** Seconds since the beginning, as 1:05 or 2:03:10. */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (n) => String(n).padStart(2, "0");
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** A length of time. */
export function duration(seconds) {
  if (seconds === 0) return "0 s";
  if (seconds < 1) return seconds < 1e-3 ? `${digits(seconds * 1e6)} µs` : `${digits(seconds * 1e3)} ms`;
  return seconds < 120 ? `${digits(seconds)} s` : clock(seconds);
}

/** A value of a property of SysStream in its unit. */
export function property(name, value) {
  if (value === null || value === undefined) return "–";
  if (name === "nbytes" || name === "bytes") return bytes(value);
  if (/^rate(_|$)/.test(name)) return `${short(value)}/s`;
  if (name.endsWith("share") || /(drop|hit)_rate/.test(name) || name === "selectivity" || name === "dropped") return percent(value);
  if (name.endsWith("_ns")) return duration(value / 1e9);
  return short(value);
}
