/** Several things run at a time; what each prints is shown in one piece, in a fixed order. */

export class Turns {
  /** @type {Map<string, string>} what waits for its turn */
  #waiting = new Map();
  /** @type {Set<string>} */
  #ended = new Set();
  /** @type {string[]} those whose output is still to come, the first one's as it comes */
  #order;
  #begin;

  /** @param {string[]} order @param {(name: string) => void} begin called before the first output of each */
  constructor(order, begin) {
    this.#order = [...order];
    this.#begin = begin;
    this.#show();
  }

  /** @param {string} name @param {string} text */
  write(name, text) {
    if (name === this.#order[0]) {
      process.stdout.write(text);
    } else {
      this.#waiting.set(name, (this.#waiting.get(name) ?? "") + text);
    }
  }

  /** @param {string} name */
  end(name) {
    this.#ended.add(name);
    while (this.#order[0] !== undefined && this.#ended.has(this.#order[0])) {
      this.#order.shift();
      this.#show();
    }
  }

  #show() {
    const [name] = this.#order;
    if (name !== undefined) {
      this.#begin(name);
      process.stdout.write(this.#waiting.get(name) ?? "");
      this.#waiting.delete(name);
    }
  }
}
