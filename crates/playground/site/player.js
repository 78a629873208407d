// Virtual time as the page shows it: plays, pauses, steps; never ahead of the engine.

const PACES = [["real time", 1], ["2× slower", 0.5], ["5× slower", 0.2], ["10× slower", 0.1], ["20× slower", 0.05], ["50× slower", 0.02], ["200× slower", 0.005], ["5× faster", 5]];

export class Player {
  constructor({ play, step, pace, time, clock }, onTime) {
    Object.assign(this, { play, step, range: time, clock, onTime, time: 0, known: 0, pace: 0.1 });
    // The reader wants less motion: nothing plays before a click.
    this.calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    pace.replaceChildren(...PACES.map(([name, value]) => new Option(name, value, value === 0.1, value === 0.1)));
    pace.onchange = () => { this.pace = Number(pace.value); };
    this.paces = pace;
    play.onclick = () => this.set(!this.playing);
    time.oninput = () => { this.set(false); this.seek(Number(time.value)); };
    this.set(!this.calm);
    this.#show();
    let before = performance.now();
    const frame = (now) => {
      const passed = Math.min(0.1, (now - before) / 1000);
      before = now;
      if (this.playing && this.time < this.known) this.seek(Math.min(this.known, this.time + passed * this.pace));
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  hasPace(value) { return PACES.some(([, pace]) => pace === value); }

  setPace(value) {
    this.pace = value;
    this.paces.value = String(value);
  }

  set(playing) {
    this.playing = playing;
    if (playing && this.known > 0 && this.time >= this.known) this.time = 0;
    this.play.textContent = playing ? "Pause" : "Play";
  }

  seek(time) {
    this.time = Math.max(0, time);
    this.#show();
    this.onTime(this.time);
  }

  // The engine has come so far.
  reach(known) {
    this.known = known;
    this.range.max = Math.max(known, 0.001);
    this.#show();
    if (!this.playing) this.onTime(this.time);
  }

  reset(time) {
    this.known = 0;
    this.seek(time);
  }

  #show() {
    this.range.value = this.time;
    this.range.setAttribute("aria-valuetext", `${this.time.toFixed(3)} s`);
    this.clock.textContent = `${this.time.toFixed(3)} s`;
  }
}
