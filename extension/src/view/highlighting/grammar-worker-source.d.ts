declare module "grammar-worker-source" {
  /** The text of worker.ts, bundled. */
  const source: string;
  export default source;
}
