/** Numbers as people read them. */

export function bytes(count: number): string {
  if (count < 1000) {
    return `${count} B`;
  }
  const kilo = count / 1000;
  return kilo < 1000 ? `${kilo < 10 ? kilo.toFixed(1) : Math.round(kilo)} kB` : `${(kilo / 1000).toFixed(1)} MB`;
}

export function seconds(count: number): string {
  if (count < 1) {
    return `${Math.round(count * 1000)} ms`;
  }
  return count < 100 ? `${count.toFixed(1)} s` : `${Math.floor(count / 60)} min ${Math.round(count % 60)} s`;
}

/** `183 nodes, 34 kB`; of a stage that is made when somebody opens it only that. */
export function sizeOf(stage: { bytes: number; nodes: number | null; made: boolean }): string {
  if (!stage.made) {
    return "made when it is opened";
  }
  const nodes = stage.nodes === null ? [] : [plural(stage.nodes, "node")];
  return [...nodes, bytes(stage.bytes)].join(", ");
}

/** `1 kernel`, `2 kernels`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** The time of day, with the date where it is not today. */
export function time(secondsSinceEpoch: number, now = new Date()): string {
  const when = new Date(secondsSinceEpoch * 1000);
  const clock = when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return when.toDateString() === now.toDateString() ? clock : `${when.toLocaleDateString()} ${clock}`;
}
