// The ticks of an axis and the precision of its labels, by the rules of the command line's charts.

import {formatValue, kMonths, twoDigits} from "./chart_reader.js";

const kMinute = 60_000,
  kHour = 60 * kMinute,
  kDay = 24 * kHour;

// Milliseconds in the file's local time: the zone in the text is not applied. null for step numbers.
export function parseTime(text) {
  const found = /^(\d{4})-(\d\d)(?:-(\d\d))?(?:[T ](\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?)?/.exec(text);
  if (!found) return null;
  const [, year, month, day, hour, minute, second, fraction] = found;
  const time = new Date(0);
  time.setUTCFullYear(+year, month - 1, +(day || 1));
  time.setUTCHours(+(hour || 0), +(minute || 0), +(second || 0), 1000 * +(fraction || 0));
  return time.getTime();
}

// The coarsest precision that distinguishes all of these times.
export function precisionOf(times) {
  if (times.some(time => time % kMinute !== 0)) return "second";
  if (times.some(time => time % kDay !== 0)) return "minute";
  const monthly = times.length > 1 && times.every(time => new Date(time).getUTCDate() === 1);
  return monthly ? "month" : "day";
}

// Decimals for a value of this size among `values`: as many as they are written with, at least two, at
// most six digits in all (the precision of float32). Negative: powers of ten.
export function decimalsFor(size, values = []) {
  if (!(size > 0)) return 0;
  const digits = Math.floor(Math.log10(size)) + 1;
  if (digits > 12 || digits < -6) return -1;
  const most = Math.min(10, Math.max(0, 6 - digits));
  if (size < 1 || values.length === 0) return most;
  const written = Math.max(...values.map(value => (/\.(\d+)$/.exec(String(value))?.[1] ?? "").length));
  return Math.min(most, Math.max(2, written));
}

// Round numbers between low and high, about `count` of them.
export function valueTicks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map(times => times * power).find(size => size >= rough * 0.999);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9) + (Math.abs(step / power - 2.5) < 1e-9 ? 1 : 0));
  const size = Math.max(Math.abs(low), Math.abs(high));
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9 && ticks.length < 50; ++i)
    ticks.push(i * step);
  return {ticks, decimals: decimals > 8 || size >= 1e13 ? -1 : decimals};
}

const months = count => ({
  size: count * 30 * kDay,
  key: date => Math.floor((date.getUTCFullYear() * 12 + date.getUTCMonth()) / count),
});
const fixed = (size, shift = 0) => ({size, key: (date, time) => Math.floor((time + shift) / size)});
const kUnits = [
  fixed(1000),
  fixed(10_000),
  fixed(kMinute),
  fixed(5 * kMinute),
  fixed(15 * kMinute),
  fixed(30 * kMinute),
  fixed(kHour),
  fixed(3 * kHour),
  fixed(6 * kHour),
  fixed(12 * kHour),
  fixed(kDay),
  fixed(2 * kDay),
  fixed(7 * kDay, 3 * kDay),
  months(1),
  months(3),
  months(6),
  ...[1, 2, 5, 10, 20, 50, 100, 200].map(years => months(12 * years)),
];

function tickLabel(time, unit, isFirst) {
  const date = new Date(time);
  const day = `${date.getUTCDate()} ${kMonths[date.getUTCMonth()]}`;
  if (unit.size < kDay) {
    if (isFirst || date.getTime() % kDay === 0) return day;
    const clock = `${twoDigits(date.getUTCHours())}:${twoDigits(date.getUTCMinutes())}`;
    return unit.size < kMinute ? `${clock}:${twoDigits(date.getUTCSeconds())}` : clock;
  }
  if (unit.size < 28 * kDay) return day;
  if (unit.size >= 360 * kDay) return String(date.getUTCFullYear());
  if (isFirst) return `${kMonths[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
  return date.getUTCMonth() === 0 ? String(date.getUTCFullYear()) : kMonths[date.getUTCMonth()];
}

// Ticks where a unit of the calendar begins, at most `most`: [{step, label}]. Steps are evenly spaced,
// whatever their times.
export function timeTicks(times, from, to, most) {
  const first = Math.max(0, Math.ceil(from)),
    last = Math.min(times.length - 1, Math.floor(to));
  const span = times[last] - times[first];
  for (const unit of kUnits) {
    if (span / unit.size > 2 * most) continue;
    const steps = [];
    let before = first > 0 ? unit.key(new Date(times[first - 1]), times[first - 1]) : null;
    for (let step = first; step <= last; ++step) {
      const now = unit.key(new Date(times[step]), times[step]);
      if (before !== null && now !== before) steps.push(step);
      before = now;
    }
    if (steps.length <= most)
      return steps.map((step, i) => ({step, label: tickLabel(times[step], unit, i === 0)}));
  }
  return [];
}

// Ticks of a series without times: whole numbers on round steps.
export function stepTicks(from, to, most, firstNumber) {
  const {ticks} = valueTicks(from + firstNumber, to + firstNumber, most);
  const whole = ticks.filter(number => Number.isInteger(number));
  return whole.map(number => ({step: number - firstNumber, label: formatValue(number, 0)}));
}
