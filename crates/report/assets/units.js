// Quantities as the pages write them, and as scenario files take them. The playground has this file as a module.

const units = (() => {
  const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, useGrouping: false });
  const number = (value) => short.format(value);
  const rate = (bps) => (bps >= 1e9 ? `${number(bps / 1e9)} Gbit/s` : bps >= 1e6 ? `${number(bps / 1e6)} Mbit/s` : `${number(bps / 1e3)} kbit/s`);
  const time = (s) => (s >= 1 ? `${number(s)} s` : s >= 1e-3 ? `${number(s * 1e3)} ms` : `${number(s * 1e6)} µs`);
  const share = (part) => `${number(part * 100)} %`;

  function bytes(count) {
    const scales = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]];
    const [unit, size] = scales.find(([, size]) => count >= size) ?? ["B", 1];
    return `${number(count / size)} ${unit}`;
  }

  // 1, 1.2, 1.5, 2 … per decade, from `low` to `high`.
  function ladder(low, high, from = []) {
    const steps = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
    const values = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const step of steps) values.push(Number((step * 10 ** power).toPrecision(2)));
    }
    return [...from, ...values.filter((value) => value >= low && value <= high)];
  }

  return { number, rate, time, share, bytes, ladder };
})();
