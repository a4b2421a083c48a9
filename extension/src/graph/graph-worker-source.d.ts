declare module "graph-worker-source" {
  /** The text of layoutWorker.ts, bundled. */
  const source: string;
  export default source;
}
